"""What a decider is told once, when it is made; it is in the log."""

from typing import Any, NamedTuple

from onebit.inputs import check_choice, check_integer, check_number
from onebit.labels import check_classes
from onebit.learners import BanditSVM, Learner
from onebit.learners.loading import from_bytes
from onebit.learners.saving import to_bytes
from onebit.live.log import LogError
from onebit.live.records import Encoder
from onebit.typed_json import Trusted, describe, restore

NOTHING, WRONG = SILENCES = ("nothing", "wrong")


class Settings(NamedTuple):
    """How a decider decides."""

    classes: list[Any]
    """The labels it began with."""
    learner: bytes
    """The learner that began, as its file."""
    kinds: dict[str, str]
    """What columns are, where the user says so."""
    deadline: float | None
    """After so many seconds a ticket without an answer is closed."""
    silence: str
    """What that says: "nothing", or that the guess was "wrong"."""
    exploration_floor: float
    """The share of guesses that are drawn evenly among the labels, whatever the learner says."""
    max_open: int
    """How many tickets may be open; when there are more the oldest is closed, as if its deadline had come."""
    seed: int
    """Names the draws of those guesses."""

    def described(self) -> dict[str, Any]:
        """Return them as a log keeps them."""
        return {name: describe(value) for name, value in self._asdict().items()}

    def new_learner(self, trusted: Any = ()) -> Learner:
        """Return the learner that began."""
        return from_bytes(self.learner, "the decider's learner", trusted)


def settings_of(described: dict[str, Any], trusted: Any = ()) -> Settings:
    """Return settings that a log keeps; raises ValueError for what could never have been described."""
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
    """Check settings; `Decider.open` says what they mean."""
    if isinstance(learner, type) or not isinstance(learner, Learner | None):
        raise ValueError(f"learner must be a learner such as onebit.BanditSVM(); got {learner!r}")
    made = BanditSVM() if learner is None else learner
    if made.hears_label:
        raise ValueError(f"learner={made!r} must be told the right label, and a decider hears only right or wrong")
    if made._started:
        raise ValueError(f"learner={made!r} has begun; give a new one: clone(learner)")
    labels = check_classes(classes).tolist()
    if made.classes is not None and check_classes(made.classes).tolist() != labels:
        raise ValueError(f"classes={labels!r:.80} are not the learner's, {made.classes!r:.80}; give them once")
    Encoder(dict(kinds or {}))  # says what is wrong before there is a file
    fresh = type(made)(**made.get_params(deep=False)).set_params(classes=labels)
    return Settings(
        labels,
        bytes(to_bytes(fresh)),
        dict(kinds or {}),
        None if deadline is None else check_number("deadline", deadline, above=0.0),
        check_choice("silence", silence, SILENCES),
        check_number("exploration_floor", exploration_floor, at_least=0.0, at_most=1.0),
        check_integer("max_open", max_open, low=1),
        check_integer("seed", seed, low=0),
    )


def check_same(path: Any, settings: Settings, told: dict[str, Any], trusted: Any = ()) -> None:
    """Raise LogError if a decider that goes on was to be another; what is left out is what it was."""
    was = new_settings(settings.classes, settings.new_learner(trusted))
    for name, value in told.items():
        if value is None:  # left out
            continue
        old, new = getattr(settings, name), value
        if name == "classes":
            new = check_classes(value).tolist()
        elif value == getattr(was, name):  # left out, too
            continue
        elif name == "learner":
            old, new = (
                type(each)(**each.get_params(deep=False) | {"classes": None})
                for each in (settings.new_learner(trusted), value)
            )
        if repr(old) != repr(new):
            raise LogError(
                f"{path}: was begun with {name}={old!r:.200}, and is opened with {new!r:.200}; leave it out, or begin "
                "another file"
            )
