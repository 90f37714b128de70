"""Settings of a decider, which are stored in its log; some can be changed later."""

from collections.abc import Callable
from typing import Any, NamedTuple

from onebit.decider.log_errors import LogError
from onebit.encoding import Encoder
from onebit.inputs import brief, check_choice, check_integer, check_number
from onebit.labels import check_classes
from onebit.learners import BanditSVM, Learner
from onebit.learners.saving import from_bytes, to_bytes
from onebit.typed_json import Trusted, describe, restore

NOTHING, WRONG = SILENCES = ("nothing", "wrong")
CHANGEABLE = ("deadline", "silence", "exploration_floor", "max_open")
"""The settings that can be changed later."""


class Settings(NamedTuple):
    """Settings of a decider, described in `Decider.open`."""

    classes: list[Any]
    """The initial labels."""
    learner: bytes
    """The initial learner, serialized."""
    kinds: dict[str, str]
    """Kinds of columns given by the user."""
    deadline: float | None
    """Seconds after which a ticket without feedback is closed."""
    silence: str
    """How a ticket closed without feedback counts: "nothing" or "wrong"."""
    exploration_floor: float
    """Share of guesses drawn uniformly from the labels."""
    max_open: int
    """Maximum number of open tickets; beyond it the oldest is closed."""
    seed: int
    """Seed of the uniform draws."""

    def described(self) -> dict[str, Any]:
        """Return the settings as they are stored in the log."""
        return {name: describe(value) for name, value in self._asdict().items()}

    def changed(self, changes: dict[str, Any]) -> "Settings":
        """Return the settings with some changed; raises ValueError for invalid ones."""
        for name in changes:
            if name not in CHANGEABLE:
                raise ValueError(f"{name!r:.80} cannot be changed; {', '.join(CHANGEABLE)} can. Begin another decider")
        return self._replace(**{name: _CHECKS[name](value) for name, value in changes.items()})

    def changeable(self) -> dict[str, Any]:
        """Return the settings that can be changed."""
        return {name: getattr(self, name) for name in CHANGEABLE}

    def new_learner(self, trusted: Any = ()) -> Learner:
        """Return a copy of the initial learner."""
        return from_bytes(self.learner, "the decider's learner", trusted)


def settings_of(described: dict[str, Any], trusted: Any = ()) -> Settings:
    """Return the settings stored in a log; raises ValueError for invalid ones."""
    missing = [name for name in Settings._fields if name not in described]
    if missing:
        raise LogError(f"the log does not say its decider's {', '.join(missing)}; put a backup in its place")
    allowed = Trusted(trusted)
    found = {name: restore(described[name], allowed) for name in Settings._fields}
    return new_settings(found.pop("classes"), from_bytes(found.pop("learner"), "its learner", trusted), **found)


def new_settings(
    classes: Any,
    learner: Learner | None,
    *,
    kinds: dict[str, str] | None = None,
    deadline: float | None = None,
    silence: str = "nothing",
    exploration_floor: float = 0.0,
    max_open: int = 100_000,
    seed: int = 0,
) -> Settings:
    """Check settings, which are described in `Decider.open`."""
    if isinstance(learner, type) or not isinstance(learner, Learner | None):
        raise ValueError(f"learner must be a learner such as onebit.BanditSVM(); got {brief(learner)}")
    made = BanditSVM() if learner is None else learner
    if made.full_information:
        raise ValueError(f"learner={made!r} must be told the right label, and a decider hears only right or wrong")
    if made._started:
        raise ValueError(f"learner={made!r} has begun; give a new one: clone(learner)")
    labels = check_classes(classes).tolist()
    if made.classes is not None and check_classes(made.classes).tolist() != labels:
        raise ValueError(f"classes={labels!r:.80} are not the learner's, {made.classes!r:.80}; give them once")
    Encoder(dict(kinds or {}))  # raises before a file is created
    fresh = type(made)(**made.get_params(deep=False)).set_params(classes=labels)
    return Settings(
        labels,
        bytes(to_bytes(fresh)),
        dict(kinds or {}),
        _CHECKS["deadline"](deadline),
        _CHECKS["silence"](silence),
        _CHECKS["exploration_floor"](exploration_floor),
        _CHECKS["max_open"](max_open),
        check_integer("seed", seed, low=0),
    )


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "deadline": lambda value: None if value is None else check_number("deadline", value, above=0.0),
    "silence": lambda value: check_choice("silence", value, SILENCES),
    "exploration_floor": lambda value: check_number("exploration_floor", value, at_least=0.0, at_most=1.0),
    "max_open": lambda value: check_integer("max_open", value, low=1),
}


def check_same(
    path: Any, settings: Settings, given: dict[str, Any], trusted: Any = (), classes: list[Any] | None = None
) -> None:
    """Raise LogError if settings given on reopening differ from the stored ones; defaults always match.

    `classes` are the current ones, which are accepted as well as the initial ones.
    """
    was = new_settings(settings.classes, settings.new_learner(trusted))
    for name, value in given.items():
        if value is None:  # not given
            continue
        old, new = getattr(settings, name), value
        if name == "classes":
            new = check_classes(value).tolist()
            old = classes if classes is not None and repr(new) == repr(classes) else old
        elif value == getattr(was, name):  # the default
            continue
        elif name == "learner":
            old, new = (
                type(each)(**each.get_params(deep=False) | {"classes": None})
                for each in (settings.new_learner(trusted), value)
            )
        if repr(old) != repr(new):
            verb, remedy = "was begun with", "begin another decider"
            if name in CHANGEABLE:
                verb, remedy = "has", f"call change({name}={new!r})"
            raise LogError(
                f"{path}: {verb} {name}={old!r:.200}, and is opened with {new!r:.200}; leave it out, or {remedy}"
            )
