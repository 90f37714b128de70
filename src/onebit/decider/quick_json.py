"""Fast JSON for the bodies of events, requests and responses.

Numbers are preserved: integers of any size, and floats to the last bit.
"""

import json
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def to_json(value: Any) -> bytes:
    """Return the JSON of a value that holds no NaN and no infinity (they would become null).

    >>> to_json({"label": 3, "chance": 0.1})
    b'{"label":3,"chance":0.1}'
    """
    try:
        return _encode(value)
    except UnicodeEncodeError:  # a lone surrogate, which JSON can encode but UTF-8 cannot
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def of_json(text: str | bytes) -> Any:
    """Parse JSON, or raise ValueError.

    >>> of_json('{"label": 3}')
    {'label': 3}
    """
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError):
        try:
            return json.loads(text)  # it accepts lone surrogates, and its errors give the position
        except RecursionError:
            raise ValueError("the JSON is nested too deep") from None
