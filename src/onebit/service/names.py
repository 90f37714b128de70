"""Names of namespaces, deciders and tokens, safe in URLs and as file names on every system."""

import re
from typing import Any

PATTERN = r"[a-z0-9][a-z0-9_-]{0,63}"
_is_name = re.compile(PATTERN, re.ASCII).fullmatch


def check_name(what: str, name: Any) -> str:
    """Return a valid name, or raise ValueError.

    >>> check_name("namespace", "shop-2")
    'shop-2'
    >>> check_name("namespace", "../shop")
    Traceback (most recent call last):
        ...
    ValueError: namespace must be 1 to 64 small letters, digits, _ and -, the first a letter or digit; got '../shop'
    """
    if not isinstance(name, str) or not _is_name(name):
        raise ValueError(
            f"{what} must be 1 to 64 small letters, digits, _ and -, the first a letter or digit; got {name!r:.80}"
        )
    return name
