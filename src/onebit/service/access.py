"""Who may ask, and who did what: bearer tokens, of which the file stores only hashes, and the audit log.

Requests are only counted. A few times a second a thread writes a line for each caller, verb, decider and status; of
guesses and feedback that were taken once a minute, so that they do not push older lines out of the bounded files.
"""

import hmac
import logging
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
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import msgspec

from onebit.files import locked_folder, make_folder, replace_file

# play: guess, tell, shadow. read: status, report, log, metrics. admin: all of these, and changes of deciders.
_ROLES = ("play", "read", "admin")
_EVERYWHERE = "*"
NAME = r"[a-z0-9][a-z0-9_-]{0,63}"  # of namespaces, deciders and tokens: safe in URLs and as file names everywhere
_is_name = re.compile(NAME, re.ASCII).fullmatch
_is_span = re.compile(r"([0-9]{1,6})([mhdw])", re.ASCII).fullmatch
_LOOK_AGAIN_SECONDS = 1.0  # after which the file of tokens may have changed
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

_FILE = "audit.jsonl"
_LARGEST_FILE = 64 << 20  # bytes after which a new file is started
_N_FILES = 8  # number of files kept: ``audit.jsonl``, and ``audit.jsonl.1`` to ``audit.jsonl.7``, the oldest
_WRITE_SECONDS = 0.2
_OFTEN = frozenset({"guess", "tell", "shadow"})
_OFTEN_SECONDS = 60.0  # between lines about frequent verbs
_MOST_WAITING = 100_000  # lines kept while the disk is full; further requests are only counted
_MOST_REFUSED_NAMES = 5  # per write; further refused requests share lines, since callers choose their names
_LONGEST_PATH = 200
_decider_of = re.compile(f"/v1/({NAME}/{NAME})(?:/.*)?", re.ASCII).fullmatch
_LOG = logging.getLogger("onebit.serve")


def check_name(what: str, name: Any) -> str:
    """Return a valid name, or raise ValueError."""
    if not isinstance(name, str) or not _is_name(name):
        allowed = "1 to 64 small letters, digits, _ and -, the first a letter or digit"
        raise ValueError(f"{what} must be {allowed}; got {name!r:.80}")
    return name


class Token(msgspec.Struct):
    """Whose token it is and what it may do, as the file stores it; also the caller of a request."""

    name: str
    roles: list[str]
    namespaces: list[str]
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")] = ""
    since: str = ""
    expires: Annotated[datetime, msgspec.Meta(tz=True)] | None = None

    @property
    def is_expired(self) -> bool:
        """Whether the token has expired."""
        return self.expires is not None and self.expires.timestamp() <= time.time()

    @property
    def all_roles(self) -> list[str]:
        """All roles that the caller has; admin includes the others."""
        return [role for role in _ROLES if role in self.roles or "admin" in self.roles]

    def sees(self, namespace: str | None) -> bool:
        """Return whether the caller may access a namespace; anybody may what is in none."""
        return namespace is None or _EVERYWHERE in self.namespaces or namespace in self.namespaces


ANYBODY = Token("anybody on this machine", list(_ROLES), [_EVERYWHERE])  # where no tokens are required


def _expiry(text: str, now: datetime) -> datetime:
    """Parse the expiry of a token: minutes, hours, days or weeks from now, or a date (its start in UTC)."""
    span, allowed = _is_span(text), "such as 30m, 12h, 90d or 8w, or a date such as 2027-12-31"
    try:
        ends = now + timedelta(**{_UNITS[span[2]]: int(span[1])}) if span else datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise ValueError(f"expires must be {allowed}; got {text!r:.80}") from None
    ends = ends if ends.tzinfo else ends.replace(tzinfo=UTC)
    if ends <= now:
        raise ValueError(f"expires must be in the future; got {text!r:.80}")
    return ends.replace(microsecond=0)


def _hash_of(text: str) -> str:
    """Return what is stored of a token: one round suffices, as it is 32 random bytes, too many to search."""
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


class Tokens:
    """The tokens of a folder, in a file that is read again when it changes.

    Once there is a file of tokens, one is required for good, also when the last is removed; before that if `required`.
    """

    def __init__(self, folder: Path, required: bool = False) -> None:
        self.path, self.are_required = folder / "tokens.json", required
        self._known: list[Token] = []
        self._stamp: tuple[int, int] | None = None
        self._look()

    def add(
        self, name: str, roles: Iterable[str], namespaces: Iterable[str] = (_EVERYWHERE,), expires: str | None = None
    ) -> str:
        """Create a token and return it; ``"*"`` is every namespace. It expires in 30m, 12h, 90d or 8w, or at a date."""
        check_name("name", name)
        now = datetime.now(UTC)
        ends = None if expires is None else _expiry(expires, now)
        wanted, spaces = sorted(set(roles)), sorted(set(namespaces))
        if not wanted or not set(wanted) <= set(_ROLES):
            raise ValueError(f"role must be one of {', '.join(_ROLES)}, or several; got {' '.join(wanted) or 'none'}")
        for space in spaces:
            if space != _EVERYWHERE:
                check_name("namespace", space)
        text = f"onebit_{secrets.token_urlsafe(32)}"
        token = Token(name, wanted, spaces or [_EVERYWHERE], _hash_of(text), now.isoformat(timespec="seconds"), ends)
        make_folder(self.path.parent)
        with self._changing() as known:
            if any(each.name == name for each in known):
                raise ValueError(f"there is a token {name!r} already; choose another name, or remove it first")
            known.append(token)
        return text

    def remove(self, name: str) -> int:
        """Remove a token; return how many are left. A running service notices within a second."""
        found = [each.name for each in self.stored()]
        if name not in found:
            raise ValueError(f"there is no token {name!r:.80}; there are {', '.join(found) or 'none'}")
        with self._changing() as known:
            known[:] = [each for each in known if each.name != name]
        return len(known)

    def stored(self) -> list[Token]:
        """Return the tokens in the file, which hold hashes; raises ValueError for an invalid file."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=list[Token])
        except FileNotFoundError:
            return []
        except (msgspec.DecodeError, ValueError) as error:
            remedy = "put a backup there, or remove it: without that file everybody on this machine may ask"
            raise ValueError(f"{self.path}: is no file of tokens ({error!r:.80}); {remedy}") from error

    @contextmanager
    def _changing(self) -> Iterator[list[Token]]:
        """Context to change the tokens, one process at a time, so that no change is lost."""
        with locked_folder(self.path.parent):
            known = self.stored()
            yield known
            replace_file(self.path, msgspec.json.format(msgspec.json.encode(known), indent=1) + b"\n", mode=0o600)

    def caller(self, authorization: str | None) -> Token | None:
        """Return the token of an ``Authorization`` header, or None if it is unknown; it may have expired."""
        if time.monotonic() - self._looked > _LOOK_AGAIN_SECONDS:
            self._look()
        if not self.are_required:
            return ANYBODY
        kind, _, text = (authorization or "").partition(" ")
        if kind.lower() != "bearer":
            return None
        shown = _hash_of(text.strip())
        found = [token for token in self._known if hmac.compare_digest(token.sha256, shown)]  # all: constant time
        return found[0] if found else None

    def _look(self) -> None:
        """Read the file if it has changed; one that cannot be read denies all access."""
        self._looked = time.monotonic()
        try:
            found = self.path.stat()
            if (found.st_mtime_ns, found.st_ino) != self._stamp:
                self._known, self.are_required = self.stored(), True
                self._stamp = found.st_mtime_ns, found.st_ino
        except (ValueError, OSError) as error:  # retried: permissions can change without a change of the file
            is_missing = isinstance(error, FileNotFoundError) and not self.path.is_symlink()  # whose target may come
            self._known, self.are_required, self._stamp = [], self.are_required or not is_missing, None


class AuditLog:
    """Writes the audit log, in files of a folder that are readable by this user only."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE
        self._counting, self._writing, self._stop = threading.Lock(), threading.Lock(), threading.Event()
        self._waiting: dict[tuple[Any, ...], list[Any]] = {}  # line: the time of its first request, and their number
        self._n_refused_names, self._n_lost, self._is_failing = 0, 0, False
        self._unwritten = b""  # lines that could not be written; retried first
        try:
            folder.mkdir(parents=True, exist_ok=True)
            os.close(self._open())
        except OSError as error:
            message = f"the audit log cannot be written ({error.strerror}): mend that, or serve with --no-audit"
            raise OSError(error.errno, message, str(self._path)) from error

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Context in which a thread writes the file."""
        thread = threading.Thread(target=self._write_in_turn, name="onebit audit", daemon=True)
        thread.start()
        yield
        self._stop.set()
        thread.join()

    def note(self, token: str | None, verb: str, path: str, status: int, address: str) -> None:
        """Count a request: the name of its token, its verb and path, its status, and the client's address."""
        key = token, verb, path[:_LONGEST_PATH], status, address
        with self._counting:
            if status >= 400 and key not in self._waiting:
                self._n_refused_names += 1
                key = key if self._n_refused_names <= _MOST_REFUSED_NAMES else (token, verb, "", status, address)
            if key in self._waiting or len(self._waiting) < _MOST_WAITING:
                self._waiting.setdefault(key, [time.time(), 0])[1] += 1
            else:
                self._n_lost += 1
        if self._stop.is_set():  # a response after closing
            self._write()

    def _write_in_turn(self) -> None:
        while not self._stop.wait(_WRITE_SECONDS):
            self._write()
        self._write()

    def _write(self) -> None:
        """Write all pending lines, or keep them for the next try."""
        with self._writing:
            try:
                self._write_out()
                self._unwritten = self._next_lines()
                self._write_out()
                self._is_failing = False
            except OSError as error:
                if not self._is_failing:  # log only once
                    _LOG.error("the audit log cannot be written (%s); lines wait in memory", error)
                self._is_failing = True

    def _next_lines(self) -> bytes:
        since = math.inf if self._stop.is_set() else time.time() - _OFTEN_SECONDS
        with self._counting:
            waiting = list(self._waiting.items())
            due = [key for key, (first, _) in waiting if key[1] not in _OFTEN or key[3] >= 400 or first <= since]
            taken = [(key, self._waiting.pop(key)) for key in due]
            n_lost, self._n_refused_names = self._n_lost if due else 0, 0
            self._n_lost -= n_lost
        lines: list[dict[str, Any]] = []
        for (token, verb, path, status, address), (first, n_requests) in taken:
            at, decider = datetime.fromtimestamp(first, UTC).isoformat(timespec="milliseconds"), _decider_of(path)
            line = {"time": at, "token": token, "verb": verb, "decider": None if decider is None else decider[1]}
            lines.append(line | {"status": status, "address": address, "requests": n_requests})
        if n_lost:
            lines.append({"time": at, "verb": "lost", "requests": n_lost})
        return msgspec.json.Encoder().encode_lines(lines)

    def _write_out(self) -> None:
        if not self._unwritten:
            return
        if self._path.exists() and self._path.stat().st_size > max(_LARGEST_FILE - len(self._unwritten), 0):
            names = [_FILE, *(f"{_FILE}.{number}" for number in range(1, _N_FILES))]
            for newer, older in reversed(list(pairwise(map(self._path.with_name, names)))):
                if newer.exists():
                    os.replace(newer, older)
        opened = self._open()
        try:
            while self._unwritten:
                self._unwritten = self._unwritten[os.write(opened, self._unwritten) :]
        finally:
            os.close(opened)

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
