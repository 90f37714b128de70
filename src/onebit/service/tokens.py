"""Bearer tokens with roles and namespaces, of which the file stores only hashes; and which names are allowed."""

import hmac
import math
import os
import re
import secrets
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from onebit.files import claimed, make_folder, replace_file

ROLES = ("play", "read", "admin")
"""play: guess, tell, shadow. read: status, report, log, metrics. admin: all of these, and changes of deciders."""
EVERYWHERE = "*"
FILE = "tokens.json"
NAME = r"[a-z0-9][a-z0-9_-]{0,63}"
"""Names of namespaces, deciders and tokens, safe in URLs and as file names on every system."""
_PREFIX = "onebit_"
_LOOK_AGAIN_SECONDS = 1.0
_NO_FILE, _UNREADABLE = (0, 0), (-1, -1)
_is_name = re.compile(NAME, re.ASCII).fullmatch
_is_span = re.compile(r"([0-9]{1,6})([mhdw])", re.ASCII).fullmatch
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


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


class Caller(NamedTuple):
    """The caller of a request."""

    name: str
    roles: frozenset[str]
    namespaces: frozenset[str]
    expires: float = math.inf  # expiry of the token, in seconds since 1970

    @property
    def is_expired(self) -> bool:
        """Whether the token has expired."""
        return self.expires <= time.time()

    def has_role(self, role: str) -> bool:
        """Return whether the caller has a role; admin includes all."""
        return role in self.roles or "admin" in self.roles

    def sees(self, namespace: str) -> bool:
        """Return whether the caller may access a namespace."""
        return EVERYWHERE in self.namespaces or namespace in self.namespaces

    def refusal(self, role: str, namespace: str | None) -> str | None:
        """Return why the caller may not use a role in a namespace, which may not exist; None if it may."""
        if not self.has_role(role):
            return f"token {self.name!r} has the role {', '.join(sorted(self.roles))}; this needs {role}"
        if namespace is not None and not self.sees(namespace):
            return f"token {self.name!r} may not see the namespace {namespace!r:.80}"
        return None


ANYBODY = Caller("anybody on this machine", frozenset(ROLES), frozenset({EVERYWHERE}))
"""The caller where no tokens are required."""


class _Stored(msgspec.Struct):
    """A token in the file."""

    name: str
    roles: list[str]
    namespaces: list[str]
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    since: str
    expires: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


def expiry(text: str, now: datetime) -> datetime:
    """Parse the expiry of a token: minutes, hours, days or weeks from now, or a date (its start in UTC).

    >>> now = datetime(2026, 11, 17, 12, tzinfo=UTC)
    >>> expiry("90d", now).isoformat(), expiry("2027-01-01", now).isoformat()
    ('2027-02-15T12:00:00+00:00', '2027-01-01T00:00:00+00:00')
    >>> expiry("soon", now)
    Traceback (most recent call last):
        ...
    ValueError: expires must be such as 30m, 12h, 90d or 8w, or a date such as 2027-12-31; got 'soon'
    """
    span = _is_span(text)
    try:
        ends = now + timedelta(**{_UNITS[span[2]]: int(span[1])}) if span else datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise ValueError(
            f"expires must be such as 30m, 12h, 90d or 8w, or a date such as 2027-12-31; got {text!r:.80}"
        ) from None
    ends = ends if ends.tzinfo else ends.replace(tzinfo=UTC)
    if ends <= now:
        raise ValueError(f"expires must be in the future; got {text!r:.80}")
    return ends


def add_token(
    folder: Path, name: str, roles: Iterable[str], namespaces: Iterable[str], expires: str | None = None
) -> str:
    """Create a token and return it; ``"*"`` is every namespace, and `expires` has the syntax of `expiry`."""
    check_name("name", name)
    now = datetime.now(UTC)
    ends = None if expires is None else expiry(expires, now).replace(microsecond=0)
    wanted, spaces = sorted(set(roles)), sorted(set(namespaces))
    for role in wanted:
        if role not in ROLES:
            raise ValueError(f"role must be one of {', '.join(ROLES)}; got {role!r}")
    for space in spaces:
        if space != EVERYWHERE:
            check_name("namespace", space)
    if not wanted or not spaces:
        raise ValueError(f"a token needs a role ({', '.join(ROLES)}) and a namespace, or {EVERYWHERE} for every one")
    token = _PREFIX + secrets.token_urlsafe(32)
    stored = _Stored(name, wanted, spaces, _hash(token).hex(), now.isoformat(timespec="seconds"), ends)
    make_folder(folder)
    with _changing(folder) as known:
        if any(each.name == name for each in known):
            raise ValueError(f"there is a token {name!r} already; choose another name, or remove it first")
        _write(folder, [*known, stored])
    return token


def remove_token(folder: Path, name: str) -> int:
    """Remove a token; return how many are left. A running service notices within a second."""
    if not folder.is_dir():
        raise _missing(name, [])
    with _changing(folder) as known:
        left = [each for each in known if each.name != name]
        if len(left) == len(known):
            raise _missing(name, known)
        _write(folder, left)
    return len(left)


def _missing(name: str, known: list[_Stored]) -> ValueError:
    names = ", ".join(each.name for each in known) or "none"
    return ValueError(f"there is no token {name!r:.80}; there are {names}")


def read_tokens(folder: Path) -> list[dict[str, Any]]:
    """Return the stored tokens, which hold hashes; raises ValueError for an invalid file."""
    return [
        msgspec.structs.asdict(each) | {"expires": None if each.expires is None else each.expires.isoformat()}
        for each in _stored(folder)
    ]


def _stored(folder: Path) -> list[_Stored]:
    path = folder / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[_Stored])
    except FileNotFoundError:
        return []
    except (msgspec.DecodeError, ValueError) as error:
        raise ValueError(
            f"{path}: is no file of tokens ({error!r:.80}); put a backup there, or remove it: "
            "without that file everybody on this machine may ask"
        ) from error


@contextmanager
def _changing(folder: Path) -> Iterator[list[_Stored]]:
    """Context to change the tokens under a file lock, so that concurrent changes are not lost."""
    lock = folder / f"{FILE}.lock"
    with claimed(lock):
        try:
            yield _stored(folder)
        finally:
            lock.unlink(missing_ok=True)


def _write(folder: Path, tokens: list[_Stored]) -> None:
    before = os.umask(0o077)  # names and roles are private, though hashes reveal nothing
    try:
        replace_file(folder / FILE, msgspec.json.format(msgspec.json.encode(tokens), indent=1) + b"\n")
    finally:
        os.umask(before)


def _hash(token: str) -> bytes:
    # One round suffices: a token is 32 random bytes, too many to search.
    return sha256(token.encode("utf-8", "surrogateescape")).digest()


class Tokens:
    """The tokens of a folder, read again when the file changes.

    With a file of tokens one is always required, also if all are removed from it, or the file is removed while the
    service runs; without a file, if `required`.
    """

    def __init__(self, folder: Path, required: bool) -> None:
        self._folder, self.are_required = folder, required
        self._lock = threading.Lock()
        self._looked, self._stamp = 0.0, _NO_FILE
        self._known: list[tuple[bytes, Caller]] = []
        self._look()

    def caller(self, authorization: str | None) -> Caller | None:
        """Return the caller of an ``Authorization`` header, or None; the token may have expired."""
        if time.monotonic() - self._looked > _LOOK_AGAIN_SECONDS:
            self._look()
        if not self.are_required:
            return ANYBODY
        kind, _, token = (authorization or "").partition(" ")
        if kind.lower() != "bearer":
            return None
        shown, found = _hash(token.strip()), None
        for known, caller in self._known:  # compare all: constant time
            if hmac.compare_digest(known, shown):
                found = caller
        return found

    def _look(self) -> None:
        """Reload the file if it has changed; an unreadable file denies all access."""
        with self._lock:
            self._looked = time.monotonic()
            try:
                found = (self._folder / FILE).stat()
                stamp = (found.st_mtime_ns, found.st_ino)
            except FileNotFoundError:  # a broken link does not count as a missing file: its target may come back
                stamp = _UNREADABLE if (self._folder / FILE).is_symlink() else _NO_FILE
            except OSError:
                stamp = _UNREADABLE
            if stamp == self._stamp:
                return
            self._stamp, self.are_required = stamp, self.are_required or stamp != _NO_FILE
            try:
                self._known = [(bytes.fromhex(each.sha256), _caller(each)) for each in _stored(self._folder)]
            except (ValueError, OSError):  # retried: permissions can change without a change of the file
                self._known, self._stamp = [], _UNREADABLE


def _caller(token: _Stored) -> Caller:
    expires = math.inf if token.expires is None else token.expires.timestamp()
    return Caller(token.name, frozenset(token.roles), frozenset(token.namespaces), expires)
