"""Who may ask: bearer tokens with roles and namespaces. The file keeps their hashes, so it tells nobody a token."""

import hmac
import json
import os
import secrets
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from onebit.files import claimed, make_folder, replace_file
from onebit.live.service.names import check_name

ROLES = ("play", "read", "admin")
"""play: guess, tell, shadow. read: status, report, log, metrics. admin: all of it, and whatever changes a decider."""
EVERYWHERE = "*"
FILE = "tokens.json"
_PREFIX = "onebit_"
_LOOK_AGAIN_SECONDS = 1.0


class Caller(NamedTuple):
    """Somebody who may ask."""

    name: str
    roles: frozenset[str]
    namespaces: frozenset[str]

    def has_role(self, role: str) -> bool:
        """Say whether it may do what that role may; admin may do everything."""
        return role in self.roles or "admin" in self.roles

    def sees(self, namespace: str) -> bool:
        """Say whether a namespace is there for it."""
        return EVERYWHERE in self.namespaces or namespace in self.namespaces


ANYBODY = Caller("anybody on this machine", frozenset(ROLES), frozenset({EVERYWHERE}))
"""Who asks where no tokens are needed."""


def add_token(folder: Path, name: str, roles: Iterable[str], namespaces: Iterable[str]) -> str:
    """Add a token and return it; it cannot be read again.

    Parameters
    ----------
    folder : Path
        The service's.
    name : str
        Whose it is.
    roles, namespaces : iterables of str
        What it may do, and where; ``"*"`` is every namespace.
    """
    check_name("name", name)
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
    since = datetime.now(UTC).isoformat(timespec="seconds")
    line = {"name": name, "roles": wanted, "namespaces": places, "sha256": _hash(token).hex(), "since": since}
    make_folder(folder)
    with _changing(folder) as known:
        if any(each["name"] == name for each in known):
            raise ValueError(f"there is a token {name!r} already; choose another name, or remove it first")
        _write(folder, [*known, line])
    return token


def remove_token(folder: Path, name: str) -> None:
    """Remove a token; a running service knows within a second."""
    if not folder.is_dir():
        raise _missing(name, [])
    with _changing(folder) as known:
        left = [each for each in known if each["name"] != name]
        if len(left) == len(known):
            raise _missing(name, known)
        _write(folder, left)


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
            }
            for each in found
        ]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: is no file of tokens ({error!r:.80}); put a backup there, or remove it") from error


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
        Whether nobody may ask without one. Where it is not, it becomes so with the first token.
    """

    def __init__(self, folder: Path, required: bool) -> None:
        self._folder, self._required = folder, required
        self._lock = threading.Lock()
        self._looked, self._stamp = 0.0, (0, 0)
        self._known: list[tuple[bytes, Caller]] = []
        self._look()

    @property
    def are_required(self) -> bool:
        """Whether a token is needed."""
        return self._required

    def __len__(self) -> int:
        return len(self._known)

    def caller(self, authorization: str | None) -> Caller | None:
        """Return who has the token of an ``Authorization`` header, or None for nobody."""
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
            except OSError:
                stamp = (0, 0)
            if stamp == self._stamp:
                return
            self._stamp = stamp
            try:
                self._known = [
                    (
                        bytes.fromhex(each["sha256"]),
                        Caller(each["name"], frozenset(each["roles"]), frozenset(each["namespaces"])),
                    )
                    for each in read_tokens(self._folder)
                ]
                self._required = self._required or bool(self._known)
            except (ValueError, OSError):  # it is tried again: rights can change, and the file stay the same
                self._known, self._required, self._stamp = [], True, (-1, -1)
