"""Who may ask: bearer tokens with roles and namespaces. The file keeps their hashes, so it tells nobody a token."""

import hmac
import json
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
from typing import Any, NamedTuple

from onebit.files import claimed, make_folder, replace_file
from onebit.service.names import check_name

ROLES = ("play", "read", "admin")
"""play: guess, tell, shadow. read: status, report, log, metrics. admin: all of it, and whatever changes a decider."""
EVERYWHERE = "*"
FILE = "tokens.json"
_PREFIX = "onebit_"
_LOOK_AGAIN_SECONDS = 1.0
_NO_FILE, _UNREADABLE = (0, 0), (-1, -1)
_is_span = re.compile(r"([0-9]{1,6})([mhdw])", re.ASCII).fullmatch
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Caller(NamedTuple):
    """Who asks."""

    name: str
    roles: frozenset[str]
    namespaces: frozenset[str]
    expires: float = math.inf
    """When its token ends, in seconds since 1970."""

    @property
    def is_expired(self) -> bool:
        """Whether its token has ended."""
        return self.expires <= time.time()

    def has_role(self, role: str) -> bool:
        """Say whether it may do what that role may; admin may do everything."""
        return role in self.roles or "admin" in self.roles

    def sees(self, namespace: str) -> bool:
        """Say whether a namespace is there for it."""
        return EVERYWHERE in self.namespaces or namespace in self.namespaces


ANYBODY = Caller("anybody on this machine", frozenset(ROLES), frozenset({EVERYWHERE}))
"""Who asks where no tokens are needed."""


def expiry(text: str, now: datetime) -> datetime:
    """Return when a token ends: after so many minutes, hours, days or weeks, or at a date (UTC, as it begins).

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
    """Add a token and return it; it cannot be read again.

    Parameters
    ----------
    folder : Path
        The service's.
    name : str
        Whose it is.
    roles, namespaces : iterables of str
        What it may do, and where; ``"*"`` is every namespace.
    expires : str, optional
        When it ends, as `expiry` reads it; never, if not given.
    """
    check_name("name", name)
    now = datetime.now(UTC)
    ends = None if expires is None else expiry(expires, now).isoformat(timespec="seconds")
    wanted, places = sorted(set(roles)), sorted(set(namespaces))
    for role in wanted:
        if role not in ROLES:
            raise ValueError(f"role must be one of {', '.join(ROLES)}; got {role!r}")
    for place in places:
        if place != EVERYWHERE:
            check_name("namespace", place)
    if not wanted or not places:
        raise ValueError(f"a token needs a role ({', '.join(ROLES)}) and a namespace, or {EVERYWHERE} for every one")
    token = _PREFIX + secrets.token_urlsafe(32)
    line = {
        "name": name,
        "roles": wanted,
        "namespaces": places,
        "sha256": _hash(token).hex(),
        "since": now.isoformat(timespec="seconds"),
        "expires": ends,
    }
    make_folder(folder)
    with _changing(folder) as known:
        if any(each["name"] == name for each in known):
            raise ValueError(f"there is a token {name!r} already; choose another name, or remove it first")
        _write(folder, [*known, line])
    return token


def remove_token(folder: Path, name: str) -> int:
    """Remove a token, and return how many are left; a running service knows within a second."""
    if not folder.is_dir():
        raise _missing(name, [])
    with _changing(folder) as known:
        left = [each for each in known if each["name"] != name]
        if len(left) == len(known):
            raise _missing(name, known)
        _write(folder, left)
    return len(left)


def _missing(name: str, known: list[dict[str, Any]]) -> ValueError:
    names = ", ".join(each["name"] for each in known) or "none"
    return ValueError(f"there is no token {name!r:.80}; there are {names}")


def read_tokens(folder: Path) -> list[dict[str, Any]]:
    """Return all tokens, without what they are; raises ValueError for a file that is something else."""
    path = folder / FILE
    try:
        found = json.loads(path.read_bytes())
        return [
            {
                "name": str(each["name"]),
                "roles": [str(role) for role in each["roles"]],
                "namespaces": [str(place) for place in each["namespaces"]],
                "sha256": bytes.fromhex(each["sha256"]).hex(),
                "since": str(each["since"]),
                "expires": None if each.get("expires") is None else _moment(each["expires"]).isoformat(),
            }
            for each in found
        ]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: is no file of tokens ({error!r:.80}); put a backup there, or remove it: "
            "without that file everybody on this machine may ask"
        ) from error


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return found


@contextmanager
def _changing(folder: Path) -> Iterator[list[dict[str, Any]]]:
    """Give all tokens to whoever changes them; another who wants to waits, lest it writes over what it did not see."""
    lock = folder / f"{FILE}.lock"
    with claimed(lock):
        try:
            yield read_tokens(folder)
        finally:
            lock.unlink(missing_ok=True)


def _write(folder: Path, tokens: list[dict[str, Any]]) -> None:
    before = os.umask(0o077)  # hashes tell nothing, but who has which role is nobody's business
    try:
        replace_file(folder / FILE, (json.dumps(tokens, indent=1) + "\n").encode())
    finally:
        os.umask(before)


def _hash(token: str) -> bytes:
    # One round is enough: a token is 32 bytes of chance, which nobody can try out.
    return sha256(token.encode("utf-8", "surrogateescape")).digest()


class Tokens:
    """The tokens of a folder, read again when the file changes.

    Parameters
    ----------
    folder : Path
        The service's.
    required : bool
        Whether a token is needed even if there is no file of tokens. A file that exists means that one is needed, also
        when all tokens in it were removed, or the file was while the service runs.
    """

    def __init__(self, folder: Path, required: bool) -> None:
        self._folder, self._required = folder, required
        self._lock = threading.Lock()
        self._looked, self._stamp = 0.0, _NO_FILE
        self._known: list[tuple[bytes, Caller]] = []
        self._look()

    @property
    def are_required(self) -> bool:
        """Whether a token is needed."""
        return self._required

    def __len__(self) -> int:
        return len(self._known)

    def caller(self, authorization: str | None) -> Caller | None:
        """Return who has the token of an ``Authorization`` header, or None; the token may have expired."""
        if time.monotonic() - self._looked > _LOOK_AGAIN_SECONDS:
            self._look()
        if not self._required:
            return ANYBODY
        kind, _, token = (authorization or "").partition(" ")
        if kind.lower() != "bearer":
            return None
        shown, found = _hash(token.strip()), None
        for known, caller in self._known:  # all of them: how long it takes tells nothing
            if hmac.compare_digest(known, shown):
                found = caller
        return found

    def _look(self) -> None:
        """Read the file again if it is another; one that cannot be read lets nobody in."""
        with self._lock:
            self._looked = time.monotonic()
            try:
                found = (self._folder / FILE).stat()
                stamp = (found.st_mtime_ns, found.st_ino)
            except FileNotFoundError:  # a link that leads nowhere is no missing file: what it leads to may come back
                stamp = _UNREADABLE if (self._folder / FILE).is_symlink() else _NO_FILE
            except OSError:
                stamp = _UNREADABLE
            if stamp == self._stamp:
                return
            self._stamp, self._required = stamp, self._required or stamp != _NO_FILE
            try:
                self._known = [
                    (
                        bytes.fromhex(each["sha256"]),
                        Caller(
                            each["name"],
                            frozenset(each["roles"]),
                            frozenset(each["namespaces"]),
                            math.inf if each["expires"] is None else _moment(each["expires"]).timestamp(),
                        ),
                    )
                    for each in read_tokens(self._folder)
                ]
            except (ValueError, OSError):  # it is tried again: rights can change, and the file stay the same
                self._known, self._stamp = [], _UNREADABLE
