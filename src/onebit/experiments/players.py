"""Players: anything that plays a stream and returns a trace. Learners are players, and so are rivals. And their games.

A player is known by its spec, a name with plain settings, so that a cell can be hashed, stored and played in another
process: `player_from` makes the player again. The name is that of a learner of onebit, or the import path of anything
else: a learner of the user's own, or a subclass of `Player`.
"""

import inspect
import shutil
import tempfile
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onebit import learners, typed_json
from onebit.asking import Asking
from onebit.code_version import reachable
from onebit.experiments.store import JSON, Cell, Played, Result, Spec
from onebit.import_paths import find_by_import_path, import_path_of, is_import_path
from onebit.inputs import Integers
from onebit.learners import Learner
from onebit.learners.run import default_checkpoints
from onebit.playing import play
from onebit.streams.preprocess import preprocess
from onebit.streams.sources import Source

NOT_SETTINGS = ("classes", "seed")  # set by the game, not settings of a learner
LIMITS = ("wrong_at_most", "ask_at_most")  # beside a learner's settings: it asks for the label when it is unsure
ROUNDS = 10_000  # of a game, at most: they show how learners differ
PATIENCE = 3600.0  # default time limit of a rival's program for a game, in seconds
TOO_LITTLE = "give it more with --rival-seconds, play fewer rounds, or leave it out"
_LEARNED = "learned."  # prefix that keeps a learner's arrays apart from the curve
_WARM_UP_ROUNDS = 1000  # reaches every branch of a learner; a few milliseconds
_WARMED_UP: set[tuple[Spec, bool]] = set()


class PlayerTrace(NamedTuple):
    """What happened when a player played a stream."""

    curve: Integers
    """Cumulative mistakes at `onebit.learners.run.default_checkpoints`; the last is the number of mistakes."""
    updates: int | None = None
    uniform_guesses: int | None = None
    learned: Mapping[str, Any] = {}
    """The arrays it holds at the end, by name."""
    seconds: float | None = None
    """How long it took; not part of the result."""
    asked: int | None = None
    """Rounds in which it asked for the label, which are no mistakes; None for a player that never asks."""

    def result(self, keep_learned: bool) -> Result:
        """Return what is stored of it."""
        counts = {"mistakes": int(self.curve[-1]), "updates": self.updates, "uniform_guesses": self.uniform_guesses}
        counts["asked"] = self.asked
        learned = {_LEARNED + name: array for name, array in self.learned.items()} if keep_learned else {}
        numbers: dict[str, int | float] = {name: count for name, count in counts.items() if count is not None}
        return Result(numbers, {"curve": self.curve, **learned})


def learned_arrays(result: Result) -> dict[str, Any]:
    """Return the arrays that a player had learned, from what was stored of its game."""
    return {name.removeprefix(_LEARNED): array for name, array in result.arrays.items() if name.startswith(_LEARNED)}


class Player(ABC):
    """Something that can be entered. A subclass gives `spec` and `play`, and changes the rest where it differs."""

    full_information: bool = False
    """Whether its feedback is the label."""
    asks: bool = False
    """Whether it asks for the label in some rounds, which are no mistakes."""
    scales_rows: bool = False
    """Whether it scales columns itself, so that it gets rows that are not preprocessed."""
    family: str | None = None
    """The name of the tuned family that this is one setting of; the best of a family is found in hindsight."""
    note: str = ""
    """A remark for under a table."""
    takes_several_right: bool = False
    """Whether it plays streams in which several labels may be right; then y is a matrix, as `onebit.play` takes it."""
    patience: float = PATIENCE
    """Seconds after which a program that plays for it is ended."""

    @property
    @abstractmethod
    def spec(self) -> Spec:
        """Its import path and the settings that its class takes, plus whatever else its results depend on."""

    @property
    def title(self) -> str:
        """What it is called in tables and figures."""
        return self.spec.label

    def effort(self, *, rounds: int, n_features: int, n_classes: int) -> float:
        """Return roughly how many numbers it touches in a game, as `Learner.effort` does; 0 if that is not known."""
        return 0.0

    def code(self) -> set[str]:
        """Return the names of the modules that decide what it does."""
        return reachable(type(self).__module__)

    @abstractmethod
    def play(self, X: Any, y: Integers, n_classes: int, seed: int, scratch: Path) -> PlayerTrace:
        """Play a stream from its first round to its last.

        Parameters
        ----------
        X : array or scipy CSR array of shape (rounds, features)
            The rows, in order.
        y : array of int
            Their labels, 0 to n_classes − 1: for answering right or wrong. See `takes_several_right`.
        n_classes : int
            How many labels there are.
        seed : int
            Seed of its random numbers.
        scratch : Path
            A folder that exists as long as the stream is played. Players of one kind share it, so that a file of the
            rounds need be written only once.
        """


class LearnerPlayer(Player):
    """A learner as a player.

    Parameters
    ----------
    learner : Learner
        With its settings. It is not played itself: `play` makes another with the same settings.
    limit : float
        ``wrong_at_most`` or ``ask_at_most``, as `onebit.play` takes it; without it the learner never asks.
    """

    def __init__(self, learner: Learner, **limit: Any) -> None:
        self.alone, self.limit, self.asks = _describe(learner), limit, bool(limit)
        if limit:
            Asking(**limit)  # checks it
        self.full_information = type(learner).full_information
        self.takes_several_right = not self.full_information
        self.scales_rows = getattr(learner, "scale", None) is not None
        # Settings are checked only when a run begins.
        build(self.alone).begin(1, 2)

    @property
    def spec(self) -> Spec:
        """The learner's class and settings, and when it asks."""
        return Spec(self.alone.name, {**self.alone.settings, **self.limit})

    def effort(self, *, rounds: int, n_features: int, n_classes: int) -> float:
        """Return the learner's effort."""
        return build(self.alone).effort(rounds=rounds, n_features=n_features, n_classes=n_classes)

    def code(self) -> set[str]:
        """Return the modules of the learner, of what its settings name, of `play`, and this one."""
        described = (value for value in self.spec.settings.values() if not isinstance(value, str))
        named = {path.partition(":")[0] for value in described for path in paths_in(value)}
        return reachable("onebit.playing", _class_of(self.spec.name).__module__, *named) | {__name__}

    def play(self, X: Any, y: Integers, n_classes: int, seed: int, scratch: Path) -> PlayerTrace:
        """Play a stream with a fresh learner."""
        # A few rounds once per process, so that compile time is not counted; other code plays sparse rows.
        kind = self.spec, isinstance(X, np.ndarray)
        if kind not in _WARMED_UP:
            _WARMED_UP.add(kind)
            few = slice(min(len(y), _WARM_UP_ROUNDS))
            play(build(self.alone).set_params(classes=n_classes), X[few], y[few], seed=0, **self.limit)
        # Given, not inferred: a short stream may lack a label.
        learner = build(self.alone).set_params(classes=n_classes)
        start = time.perf_counter()
        trace = play(learner, X, y, seed=seed, **self.limit)
        seconds = time.perf_counter() - start
        counts = trace.curve.mistakes, trace.updates, trace.uniform_guesses
        return PlayerTrace(*counts, learner.learned(), seconds, trace.asked if self.asks else None)


def player_from(spec: Spec) -> Player:
    """Return the player that a spec names.

    Examples
    --------
    >>> player_from(Spec("Banditron", {"exploration": 0.1})).spec.label
    'Banditron(exploration=0.1, kernel=None)'
    """
    cls = _class_of(spec.name)
    if issubclass(cls, Learner):
        alone, limit = _without_limit(spec)
        return LearnerPlayer(build(alone), **limit)
    player: Player = cls(**spec.settings)
    return player


def _describe(learner: Learner) -> Spec:
    """Return a learner's class and settings."""
    cls = type(learner)
    name = cls.__name__ if getattr(learners, cls.__name__, None) is cls else import_path_of(cls)
    given = learner.get_params(deep=False)
    described: dict[str, JSON] = {
        setting: typed_json.describe(value) for setting, value in given.items() if setting not in NOT_SETTINGS
    }
    return Spec(name, described)


def _without_limit(spec: Spec) -> tuple[Spec, dict[str, Any]]:
    """Return the spec of a learner that never asks, and the limit with which it would."""
    own = inspect.signature(_class_of(spec.name)).parameters
    limit = {name: value for name, value in spec.settings.items() if name in LIMITS and name not in own}
    return Spec(spec.name, {name: value for name, value in spec.settings.items() if name not in limit}), limit


def build(spec: Spec) -> Learner:
    """Return the learner that `_describe` described."""
    for name in _without_limit(spec)[1]:
        option = f"--{name.replace('_', '-')}"
        raise ValueError(f"{name} is for learners in a comparison; leave it out here (onebit play has {option})")
    trusted = _EverythingTrusted()
    settings = {
        name: typed_json.restore(value, trusted) if isinstance(value, (dict, list)) else value
        for name, value in spec.settings.items()
    }
    learner: Learner = _class_of(spec.name)(**settings)
    return learner


def _class_of(name: str) -> Any:
    return find_by_import_path(name, "learner") if ":" in name else getattr(learners, name)


class _EverythingTrusted(typed_json.Trusted):
    """What a user has named is the user's own code, or ours."""

    def find(self, path: Any) -> Any:
        return find_by_import_path(str(path), "setting")


def paths_in(value: JSON) -> Iterator[str]:
    """Yield the import paths among all texts in settings."""
    if isinstance(value, str):
        if is_import_path(value):
            yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from paths_in(item)


# The games of a comparison: which rows are played, in which order. This module is in the key of every stored game.


@dataclass(eq=False)
class _Rounds:
    """The rounds of one run."""

    raw: Any  # the rows in order, as they come
    X: Any  # preprocessed
    y: Integers
    n_classes: int

    @cached_property
    def scratch(self) -> Path:
        """A folder for players' files, which goes when the rounds do."""
        folder = tempfile.mkdtemp(prefix="onebit-rounds-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)


@lru_cache(maxsize=1)  # cells with the same rounds follow each other
def make_rounds(stream: Spec, source: Source, seed: int) -> _Rounds:
    """Return the rows of one run, their labels, and the number of classes."""
    settings: dict[str, Any] = dict(stream.settings)
    if source.stream is not None:
        raw, y, n_classes = source.drawn(settings["rounds"], seed)
    else:
        data = source.load()
        # The parent keyed the results by what it read; a worker must not store those of other rows under that key.
        if data.content != settings["content"]:
            raise ValueError(f"{source.path or source.name} has changed while it was being played; run again")
        n_classes = data.n_classes
        raw, y = source.changed(*data.shuffled(seed, settings["rounds"]), n_classes, seed)
    X = preprocess(raw, str(settings["preprocessing"]), bool(settings["unit_length"]))
    return _Rounds(raw, X, y, n_classes)


def play_cell(keep_learned: bool, patience: float, cell: Cell) -> Played:
    """Let a player play its rounds; one that scales columns gets raw rows."""
    rounds = make_rounds(cell.stream, cell.source, cell.seed)
    player, y = player_from(cell.player), rounds.y
    object.__setattr__(player, "patience", patience)  # a user's player may be a frozen dataclass
    if y.ndim == 2 and not player.takes_several_right:
        raise ValueError(f"{player.title} needs one right label in every round; leave it out of {cell.source.name}")
    start = time.perf_counter()
    X = rounds.raw if player.scales_rows else rounds.X
    trace = player.play(X, y, rounds.n_classes, cell.seed, rounds.scratch)
    seconds = time.perf_counter() - start if trace.seconds is None else float(trace.seconds)
    expected = len(default_checkpoints(len(y)))
    if np.shape(trace.curve) != (expected,) or np.asarray(trace.curve).dtype.kind not in "iu":
        raise ValueError(
            f"a player's curve must hold whole numbers, its mistakes after each of the {expected} rounds of "
            f"onebit.learners.run.default_checkpoints({len(y)}); got shape {np.shape(trace.curve)}"
        )
    return Played(cell, trace.result(keep_learned), seconds if np.isfinite(seconds) else None)
