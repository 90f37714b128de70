"""Settings as they are written on the command line: ``setting=value``, with commas between."""

from collections.abc import Iterable
from typing import Any

Value = bool | int | float | str | None
_WORDS: dict[str, Value] = {"true": True, "false": False, "none": None}


def read_value(text: str) -> Value:
    """Read a value: a truth value, none, a number, or else the text itself."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    # A whole number stays one: 1 and 1.0 are different settings, and a degree must be an int.
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def read_setting(name: str, part: str) -> tuple[str, Any]:
    """Read one ``setting=value``; `name` is whose it is, for errors."""
    setting, equals, value = part.partition("=")
    if not equals or not setting.strip():
        raise ValueError(f"settings of {name} are written setting=value, with commas between; got {part!r}")
    return setting.strip(), read_value(value.strip())


def once(settings: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return settings by name, or raise if one is given twice."""
    given: dict[str, Any] = {}
    for name, value in settings:
        if name in given:
            raise ValueError(f"{name} is given twice: {given[name]!r} and {value!r}")
        given[name] = value
    return given
