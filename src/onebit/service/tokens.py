"""Bearer tokens with roles and namespaces, of which the file stores only hashes; and which names are allowed."""

import hmac
import re
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import msgspec

from onebit.files import locked_folder, make_folder, replace_file

_ROLES = ("play", "read", "admin")
"""play: guess, tell, shadow. read: status, report, log, metrics. admin: all of these, and changes of deciders."""
_EVERYWHERE = "*"
NAME = r"[a-z0-9][a-z0-9_-]{0,63}"
"""Names of namespaces, deciders and tokens, safe in URLs and as file names on every system."""
_is_name = re.compile(NAME, re.ASCII).fullmatch
_is_span = re.compile(r"([0-9]{1,6})([mhdw])", re.ASCII).fullmatch
_LOOK_AGAIN_SECONDS = 1.0  # after which the file of tokens may have changed
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def check_name(what: str, name: Any) -> str:
    """Return a valid name, or raise ValueError."""
    if not isinstance(name, str) or not _is_name(name):
        raise ValueError(
            f"{what} must be 1 to 64 small letters, digits, _ and -, the first a letter or digit; got {name!r:.80}"
        )
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
        return namespace is None or not {_EVERYWHERE, namespace}.isdisjoint(self.namespaces)


ANYBODY = Token("anybody on this machine", list(_ROLES), [_EVERYWHERE])
"""The caller where no tokens are required."""


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
        for space in {*spaces} - {_EVERYWHERE}:
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
