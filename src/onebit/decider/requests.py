"""Requests as JSON: functions whose parameters are the fields of a request, which msgspec checks.

The description of a field's type completes the message "… must be …".
"""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from inspect import signature
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, defstruct

from onebit.inputs import brief
from onebit.typed_json import parse

_PLACE = re.compile(r"`\$\.(\w+)(?:\[(\d+)\])?")  # in an error of msgspec: the field, and the item of a list
_Struct = TypeVar("_Struct", bound=Struct)


def _read_json(body: bytes) -> Any:
    """Parse a JSON body, or raise ValueError."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return msgspec.json.decode(body)
    try:
        value = parse(body.decode())
        if b"\\ud" in body or b"\\uD" in body:
            json.dumps(value, ensure_ascii=False).encode()  # lone surrogates cannot be stored
    except UnicodeDecodeError as error:
        raise ValueError("the body must be JSON in UTF-8") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"the body must be JSON: {error}") from error
    return value


@lru_cache
def request_of(verb: Callable[..., Any]) -> Any:
    """Return the class of a verb's requests, whose fields are its parameters but the decider."""
    given = [p for name, p in signature(verb).parameters.items() if name not in ("decider", "self")]
    fields: list[Any] = [(p.name, p.annotation, p.default)[: 2 + (p.default is not p.empty)] for p in given]
    return defstruct(verb.__name__.title().replace("_", ""), fields, forbid_unknown_fields=True)


def parsed(kind: type[_Struct], body: bytes, takes_lists: bool = False) -> Any:
    """Return a JSON body as a struct, or as a list of plain values if it is one and may be; raises ValueError."""
    value = _read_json(body)
    return value if takes_lists and isinstance(value, list) else checked(kind, value)


def checked(kind: type[_Struct], value: Any, strict: bool = True) -> _Struct:
    """Return parsed JSON as a struct, or raise ValueError that names the field, the value and the remedy."""
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise ValueError(_explained(kind, value, str(error))) from None


def _explained(kind: type[Struct], value: Any, error: str) -> str:
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    needed = [name for name, field in fields.items() if field.required]
    if not isinstance(value, dict):
        return f"a JSON object with {', '.join(needed or fields)} is needed; got {type(value).__name__}"
    if missing := [name for name in needed if name not in value]:
        return f"{missing[0]} is missing; needed: {', '.join(needed)}"
    if unknown := [name for name in value if name not in fields]:
        return f"there is no field {unknown[0]!r:.80}; there are {', '.join(fields)}"
    if (place := _PLACE.search(error)) is None:
        return error
    name, item = place.groups()
    described = [meta.description for meta in getattr(fields[name].type, "__metadata__", ())]
    reason = f"must be {described[-1]}" if described and described[-1] else f"is wrong: {error}"
    return f"{name} {reason}; got {brief(value[name] if item is None else value[name][int(item)])}"
