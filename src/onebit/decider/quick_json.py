"""JSON that is written and read thousands of times a second: the bodies of events, requests and answers.

Numbers come back as they were: whole ones of any size, and floats to the last bit.
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
    except UnicodeEncodeError:  # half a pair of surrogates, which JSON can write but UTF-8 cannot
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def of_json(text: str | bytes) -> Any:
    """Return the value that a JSON text says, or raise ValueError.

    >>> of_json('{"label": 3}')
    {'label': 3}
    """
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError):
        try:
            return json.loads(text)  # it knows half a pair of surrogates, and says where a text is wrong
        except RecursionError:
            raise ValueError("the JSON is nested too deep") from None
