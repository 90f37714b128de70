"""How a decider is opened: where its log is, and its settings, which the log holds; some can be changed later."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from onebit.asking import Asking, check_share
from onebit.decider.log import EventLog
from onebit.decider.sqlite import SQLiteLog
from onebit.decider.tickets import LogError
from onebit.encoding import Encoder
from onebit.extras import require_extra
from onebit.inputs import brief, check_choice, check_integer, check_number
from onebit.labels import check_classes
from onebit.learners.base import Learner
from onebit.learners.saving import from_bytes, to_bytes
from onebit.typed_json import Trusted, describe, restore

LATEST_TIME = 32_503_680_000.0  # the year 3000: later times are not in seconds
_OPTIONS: dict[str, tuple[Any, Callable[[Any], Any]]] = {  # the default, and what checks other values
    "kinds": (None, dict),  # the rest is checked by the encoder
    "seed": (0, lambda value: check_integer("seed", value, low=0)),
    "deadline": (None, lambda value: check_number("deadline", value, above=0.0)),
    "silence": ("nothing", lambda value: check_choice("silence", value, ("nothing", "wrong"))),
    "exploration_floor": (0.0, lambda value: check_number("exploration_floor", value, at_least=0.0, at_most=1.0)),
    "max_open": (100_000, lambda value: check_integer("max_open", value, low=1)),
    "wrong_at_most": (None, lambda value: check_share("wrong_at_most", value)),
    "ask_at_most": (None, lambda value: check_share("ask_at_most", value)),
}
_CHANGEABLE = tuple(_OPTIONS)[2:]  # the settings that can be changed later


def _checked(name: str, value: Any) -> Any:
    default, check = _OPTIONS[name]
    return default if value is default else check(value)


class Settings(NamedTuple):
    """Settings of a decider, described in `Decider.open`; classes and learner are the initial ones."""

    classes: list[Any]
    learner: bytes
    kinds: dict[str, str] | None
    seed: int
    deadline: float | None
    silence: str
    exploration_floor: float
    max_open: int
    wrong_at_most: float | None
    ask_at_most: float | None
    trusted: Any = ()  # not stored

    @classmethod
    def new(cls, classes: Any, learner: Learner, **options: Any) -> "Settings":
        """Check settings, which are described in `Decider.open`."""
        if not isinstance(learner, Learner):
            raise ValueError(f"learner must be a learner such as onebit.BanditSVM(); got {brief(learner)}")
        if learner.full_information:
            raise ValueError(f"{learner=} must be told the right label, and a decider gets only right or wrong")
        if learner._started:
            raise ValueError(f"{learner=} has begun; give a new one: clone(learner)")
        labels = check_classes(classes).tolist()
        if learner.classes is not None and check_classes(learner.classes).tolist() != labels:
            raise ValueError(f"classes={labels!r:.80} are not the learner's, {learner.classes!r:.80}; give them once")
        given = {name: default for name, (default, _) in _OPTIONS.items()} | options
        checked = {name: _checked(name, value) for name, value in given.items()}
        Encoder(checked["kinds"])  # raises before a file is created
        fresh = type(learner)(**learner.get_params(deep=False)).set_params(classes=labels)
        settings = cls(labels, bytes(to_bytes(fresh)), **checked)
        settings.new_asking()  # raises if both are given
        return settings

    @classmethod
    def of(cls, described: dict[str, Any], trusted: Any = ()) -> "Settings":
        """Return the settings stored in a log; raises ValueError for invalid ones."""
        stored, allowed = ("classes", "learner", *_OPTIONS), Trusted(trusted)
        if missing := [name for name in stored if name not in described]:
            raise LogError(f"the log does not say its decider's {', '.join(missing)}; put a backup in its place")
        found = {name: restore(described[name], allowed) for name in stored}
        found["learner"] = from_bytes(found["learner"], "its learner", trusted)
        return cls.new(**found)._replace(trusted=trusted)

    def described(self) -> dict[str, Any]:
        """Return the settings as they are stored in the log."""
        return {name: describe(value) for name, value in self._asdict().items() if name != "trusted"}

    def changed(self, changes: dict[str, Any]) -> "Settings":
        """Return the settings with some changed; raises ValueError for invalid ones."""
        names = ", ".join(_CHANGEABLE)
        if not changes:
            raise ValueError(f"name what to change: {names}")
        if others := [name for name in changes if name not in _CHANGEABLE]:
            raise ValueError(f"{others[0]!r:.80} cannot be changed; {names} can. Begin another decider")
        found = self._replace(**{name: _checked(name, value) for name, value in changes.items()})
        found.new_asking()  # raises if both are given
        return found

    def changeable(self) -> dict[str, Any]:
        """Return the settings that can be changed."""
        return {name: getattr(self, name) for name in _CHANGEABLE}

    def new_asking(self) -> Asking | None:
        """Return the rule that decides when to ask, with nothing counted yet; None if it never does."""
        if self.wrong_at_most is None and self.ask_at_most is None:
            return None
        return Asking(wrong_at_most=self.wrong_at_most, ask_at_most=self.ask_at_most)

    def new_learner(self) -> Learner:
        """Return a copy of the initial learner."""
        return from_bytes(self.learner, "the decider's learner", self.trusted)

    @staticmethod
    def check_time(seconds: Any) -> float:
        """Return the time of a clock, or raise ValueError unless it can be in seconds since 1970."""
        try:
            found = float(seconds)
        except (TypeError, ValueError, OverflowError):
            found = -1.0
        if not 0.0 <= found <= LATEST_TIME:
            wanted = "seconds since 1970, before the year 3000"
            raise ValueError(f"clock must return {wanted}; got {brief(seconds)}. Are they milliseconds?")
        return found

    def check_same(self, path: Any, given: dict[str, Any], classes: list[Any]) -> None:
        """Raise LogError if settings given on reopening differ from these; defaults always match.

        `classes` are the current ones, which are accepted as well as the initial ones.
        """
        for name, value in given.items():
            if value is None or (name in _OPTIONS and value == _OPTIONS[name][0]):
                continue
            old, new = getattr(self, name), value
            if name == "classes":
                new = check_classes(value).tolist()
                old = classes if repr(new) == repr(classes) else old
            elif name == "learner":
                both = self.new_learner(), value
                old, new = (type(each)(**each.get_params(deep=False) | {"classes": None}) for each in both)
            if repr(old) != repr(new):
                was, remedy = "was begun with", "begin another decider"
                if name in _CHANGEABLE:
                    was, remedy = "has", f"call change({name}={new!r})"
                given_now = f"is opened with {new!r:.200}; leave it out, or {remedy}"
                raise LogError(f"{path}: {was} {name}={old!r:.200}, and {given_now}")


# Where the log is.


def is_database(path: Any) -> bool:
    """Return whether a path is the URL of a database."""
    return isinstance(path, str) and path.startswith(("postgresql://", "postgres://"))


def has_password(url: str) -> bool:
    """Return whether the URL of a database contains a password, in any form that libpq accepts."""
    user, at, _ = url.partition("//")[2].partition("/")[0].partition("@")
    return bool(at and ":" in user) or any(name.endswith("password") for name in parse_qs(url.partition("?")[2]))


def open_log(
    path: "str | os.PathLike[str]",
    name: str | None,
    about: dict[str, Any] | None = None,
    *,
    accept_loss: bool = False,
    read_only: bool = False,
) -> EventLog:
    """Open the log at a path, or that of a name in a database; with settings, `about`, create it if necessary.

    With `read_only`, a log in a database may be open elsewhere; a file may not.
    """
    if not is_database(path):
        if name is not None:
            raise ValueError(f"name={name!r:.80} is for deciders in a database; a file has one, leave it out")
        return SQLiteLog(path, about, accept_loss)
    if name is None:
        raise ValueError('a database has many deciders: say which, name="routing"')
    if accept_loss:
        raise ValueError("accept_loss=True is for deciders in files; a database keeps its own journal, leave it out")
    require_extra("PostgreSQL needs", "postgres")
    from onebit.decider.postgres import PostgresLog, PostgresReader

    return (PostgresReader if read_only else PostgresLog)(str(path), name, about)
