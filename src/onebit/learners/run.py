"""The run of a learner, underneath its protocol: how it begins, takes rows and labels, plays streams, and is restored.

`play_stream` and `all_or_nothing` take the learner's lock; for the other functions the caller holds it.
"""

import copy
import threading
from collections.abc import Callable, Iterable, Iterator, KeysView, ValuesView
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import validate_data

from onebit import inputs
from onebit.engine.algorithm import EXPLORED, MISTAKES, PASSED, UPDATES, Record, is_right
from onebit.game import Guess
from onebit.inputs import Integers, Rows
from onebit.labels import (
    check_answers,
    check_classes,
    check_labels,
    classes_and_codes,
    encode_labels,
    first_right,
    infer_classes,
    positions,
)
from onebit.machine_memory import SHARE, claim_memory

if TYPE_CHECKING:
    from onebit.learners.base import Learner

    class _Classifier:
        # scikit-learn has no type hints: the part of its two base classes that is used here.
        feature_names_in_: npt.NDArray[Any]
        _lock: threading.RLock

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...
        def _repr_html_(self) -> str: ...

else:

    class _Classifier(ClassifierMixin, BaseEstimator):
        def __new__(cls, *_settings, **_named):
            # Not in the data class, whose signature is that of its fields.
            learner = super().__new__(cls)
            learner._lock = threading.RLock()
            return learner


_LEAST_PROPENSITY = 2.0**-1000  # the reciprocal of less may overflow
_MOST_REPORTS, _LEAST_STEP = 200, 50  # of progress: how often, and after how many rounds
_LET_IT_JOIN = "list it in classes=, or let it join a run that has begun: add_class"


@dataclass(eq=False, repr=False, kw_only=True)
class CommonSettings(_Classifier):
    """What every learner is: a scikit-learn classifier, with a lock, so that threads may share it.

    Learners are data classes: their fields are their settings, and nothing else. Copies, here or in another process,
    have their own lock and no open tickets: those belong to the original.
    """

    classes: Any = None
    seed: int = 0

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name. Classes that are a dictionary's keys are a list here: keys cannot be copied."""
        settings = super().get_params(deep)
        return {name: list(it) if isinstance(it, (KeysView, ValuesView)) else it for name, it in settings.items()}

    def __copy__(self) -> Self:
        return copy.deepcopy(self)  # with a shared state each would learn from the other's rounds

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        vars(twin).update(copy.deepcopy(self.__getstate__(), memo))
        vars(twin).pop("_tickets", None)
        return twin

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:  # rounds that other threads play meanwhile must not change what is being saved
            kept = {name: value for name, value in self.__dict__.items() if name != "_lock"}
            return copy.deepcopy(kept, {id(self): self})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._lock = threading.RLock()  # the oldest pickle protocols do not call `__new__`
        self.__dict__.update(state)


class LearnedArray:
    """An attribute of a learner that is one of the arrays it has learned."""

    def __set_name__(self, _kind: type, attribute: str) -> None:
        self._attribute, self._name = attribute, attribute.removesuffix("_")

    def __get__(self, learner: Any, kind: type) -> Any:
        if learner is None:
            return self
        arrays = learner.learned() if learner._started else {}
        if self._name not in arrays:
            needed = ""
            if "kernel" in learner.get_params(deep=False):
                needed = f" with {'kernel=None' if self._name == 'weights' else 'a kernel'}"
            raise AttributeError(f"{self._attribute} is there once {kind.__name__} has played{needed}")
        return arrays[self._name]


def grows(learner: "Learner") -> bool:
    """Return whether new labels join the classes when they are met."""
    return isinstance(learner.classes, str) and learner.classes == "grow"


def classes_for(learner: "Learner", given: Any = None, labels: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
    """Return the classes of a run that begins: those of the setting, or else those given, or those of the labels."""
    if learner.classes is not None and not grows(learner):
        given = learner.classes
    elif given is None and labels is not None:
        given = infer_classes(labels)
    elif given is None and grows(learner):
        raise ValueError("no label is known yet: guess(x, among=[…]), learn_labels or play brings the first ones")
    elif given is None:
        raise ValueError(
            "classes is not known: pass a count or a list of labels, "
            f'for example {type(learner).__name__}(classes=["yes", "no"])'
        )
    return check_classes(given)


def begin(
    learner: "Learner", n_features: int, classes: npt.NDArray[Any], seed: int | None = None, given: Any = None
) -> None:
    """Set up an empty state, within `all_or_nothing`. `given` is a frame, or what may be one."""
    learner._key = inputs.check_seed(learner.seed if seed is None else seed)
    learner.classes_, learner._labels = classes, tuple(classes.tolist())
    learner.n_features_in_, learner._row_shape = n_features, (n_features,)
    check_columns(learner, given, reset=True)
    learner._state, learner._started = learner._new_state(), True
    if SHARE.get():  # the system has not allocated untouched zeros yet
        claim_memory(learner._state.n_bytes())
    # A setting with parameters of its own, such as a wrapped classifier, may be changed later.
    learner._in_force = {
        name: clone(value) if hasattr(value, "get_params") and not isinstance(value, type) else value
        for name, value in learner.get_params(deep=False).items()
    }
    learner.n_rounds_ = learner.n_mistakes_ = learner.n_updates_ = learner.n_uniform_guesses_ = 0
    learner._tickets = learner._confidence = None


@contextmanager
def all_or_nothing(learner: "Learner", fresh: bool = True, *, is_one: bool = False) -> Iterator[None]:
    """Restore the learner if the block inside is interrupted, by an error or by Ctrl-C.

    A fresh run gets a new state, so that the old one needs no copy; that of a `ByHand` does: it is the learner itself.
    Nor does a single round in a run that has begun (`is_one`): it is applied or refused as a whole.
    """
    with learner._lock:
        is_by_hand = learner._started and learner._state.plays_by_hand
        if is_one and not fresh and learner._started and not is_by_hand:
            yield
            return
        before, bookmark = dict(vars(learner)), None
        before["_confidence"] = copy.deepcopy(learner._confidence)
        if learner._started and (not fresh or is_by_hand):
            before["_tickets"] = copy.copy(learner._tickets)
            bookmark = learner._state.bookmark()
        try:
            yield
        except BaseException:
            vars(learner).update(before)  # not cleared first: it holds the lock that other threads wait for
            for name in vars(learner).keys() - before.keys():
                del vars(learner)[name]
            if bookmark is not None:
                learner._state.n_classes = len(learner.classes_)
                learner._state.restore(bookmark)
            raise


# Rows and labels.


def check_width(learner: "Learner", n_features: int, given: Any = None) -> None:
    """Raise ValueError, in scikit-learn's words, for rows of another width, or a frame with other columns, than so far.

    Nothing is wrong before a run has begun.
    """
    if learner._started:
        if inputs.is_frame(given):
            check_columns(learner, given, reset=False)
        if n_features != learner.n_features_in_:
            name, known = type(learner).__name__, learner.n_features_in_
            raise ValueError(f"X has {n_features} features, but {name} is expecting {known} features as input")


def check_columns(learner: "Learner", X: Any, *, reset: bool) -> None:
    """Store the column names, or check X against the stored ones."""
    if type(X) is np.ndarray and "feature_names_in_" not in vars(learner):
        return  # no names on either side: saves scikit-learn's check, 20 µs
    try:
        validate_data(learner, inputs.as_frame(X), reset=reset, skip_check_array=True, ensure_2d=False)
    except (TypeError, ValueError) as error:
        remedy = "" if reset else f" Give them in that order: X[{learner.feature_names_in_.tolist()!r:.200}]"
        raise ValueError(f"X has other columns. {error}{remedy}") from error


def check_list(among: Any) -> npt.NDArray[Any]:
    """Return a list of labels as an array; raise ValueError if it is not a list or is empty."""
    if isinstance(among, (str, bytes)) or not isinstance(among, Iterable):
        raise ValueError(f"among must be a list of labels; got {among!r}")
    labels = list(among)
    if not labels:
        raise ValueError("among must have at least one label; got none")
    return check_labels(labels, len(labels), "among")


def allowed_positions(learner: "Learner", among: Any) -> Integers:
    """Return the positions of allowed labels, in the order of the classes."""
    labels, n = check_list(among), len(learner.classes_)
    if len(labels) > n:
        raise ValueError(f"among must list some of the {n} classes; got {len(labels)} labels. Name each label once")
    return np.unique(encode_labels(labels, learner.classes_, "among", _LET_IT_JOIN))


def codes_of(learner: "Learner", labels: npt.NDArray[Any], n_features: int, name: str, given: Any) -> Integers:
    """Return the positions of labels; begin a run if needed, and add new labels where classes grow."""
    if not learner._started:
        begin(learner, n_features, classes_for(learner, labels=labels), given=given)
    elif grows(learner):
        met = infer_classes(labels)
        if (is_new := positions(met, learner.classes_) < 0).any():
            join(learner, met[is_new].tolist())
    return encode_labels(labels, learner.classes_, name, _LET_IT_JOIN)


def _has_new(learner: "Learner", labels: npt.NDArray[Any]) -> bool:
    return grows(learner) and not (learner._started and set(labels.ravel().tolist()) <= set(learner._labels))


def join(learner: "Learner", labels: list[Any]) -> None:
    """Add labels to the classes, all or none of them."""
    wider = check_classes([*learner._labels, *labels])
    claim_memory(learner.n_bytes() * len(wider) / len(learner._labels))
    with all_or_nothing(learner, fresh=False):
        for n in range(len(learner._labels) + 1, len(wider) + 1):
            learner.classes_ = wider[:n]
            learner._labels = tuple(learner.classes_.tolist())
            learner._state.add_class()


# Known rounds, and streams.


def learn_known(learner: "Learner", name: str, X: Any, tried: Any, correct: Any, propensities: Any) -> None:
    """Learn from rounds that another system played, all or none of them; `name` is the argument with the labels."""
    rows = inputs.check_rows(X)
    labels = check_labels(tried, rows.shape[0], name)
    feedback, n = np.asarray(correct), len(labels)
    chances = np.ones(()) if propensities is None else inputs.check_real(propensities, "propensities").astype(float)
    for which, given in (("correct", feedback), ("propensities", chances)):  # one stands for all
        if given.shape not in ((), (n,)):
            raise ValueError(f"{which} must have {n} entries, one for each round; got shape {given.shape}")
    if feedback.dtype.kind != "b":
        raise ValueError(f"correct must be True or False for each round; got {correct!r:.80}")
    for wrong in chances[~((chances > _LEAST_PROPENSITY) & (chances <= 1.0))].flat:
        raise ValueError(f"propensities must be above 0 (above {_LEAST_PROPENSITY:.1g}) and at most 1; got {wrong:g}")
    with all_or_nothing(learner, fresh=False, is_one=n == 1 and not _has_new(learner, labels)):
        check_width(learner, rows.shape[1], X)
        if not learner._started and learner.classes is None and name != "y":
            raise ValueError("classes is not known: pass classes=, for labels that were never tried count too")
        codes = codes_of(learner, labels, rows.shape[1], name, X).tolist()
        known = zip(codes, np.broadcast_to(feedback, n).tolist(), np.broadcast_to(chances, n).tolist(), strict=True)
        for t, (code, right, chance) in enumerate(known):
            row, truth = inputs.take(rows, t, t + 1), code if learner.full_information and right else -1
            propensity = None if propensities is None else chance
            learner.n_updates_ += learner._state.learn_from_log(row, code, right, truth, propensity)


def new_record(n_rounds: int, checkpoints: npt.ArrayLike | None = None, keep_guesses: bool = False) -> Record:
    """Return an empty record for that many rounds; by default with a few hundred checkpoints."""
    if checkpoints is None:
        points = default_checkpoints(n_rounds)
    else:
        points = np.unique(np.append(inputs.check_whole_numbers("checkpoints", checkpoints), n_rounds))
        if points[0] < 1 or points[-1] > n_rounds:
            raise ValueError(f"checkpoints must be whole numbers from 1 to {n_rounds}; got {checkpoints!r}")
    guesses = np.zeros(n_rounds if keep_guesses else 0, dtype=np.int32)
    return Record(np.zeros(4, dtype=np.int64), points, np.zeros(len(points), dtype=np.int64), guesses)


def default_checkpoints(n_rounds: int) -> Integers:
    """Return at most a few hundred rounds at which to write the curve down: evenly spaced ones and log-spaced ones."""
    even = np.linspace(0, n_rounds, 101)
    log = np.geomspace(1, n_rounds, int(np.ceil(16 * np.log10(n_rounds))) + 1)  # 16 in every decade
    points = np.unique(np.rint(np.concatenate([even, log])).astype(np.int64))
    return points[points > 0]


def _begin_stream(
    learner: "Learner", rows: Rows, labels: npt.NDArray[Any], given: Any, seed: int | None, fresh: bool, classes: Any
) -> Integers:
    """Prepare for the first round of a checked stream, whose rows came as `given`; return its labels as indices."""
    n_features, several = rows.shape[1], labels.ndim == 2  # then several may be right (see `classes_and_codes`)
    if several and learner.full_information:
        name = type(learner).__name__
        raise ValueError(f"y must hold one label for each round: the feedback of {name} is the right label itself")
    if fresh or not learner._started:
        if learner.classes is not None and not grows(learner):
            classes = learner.classes
        elif several and classes is None:
            classes = labels.shape[1]
        known, codes = classes_and_codes(labels, classes)
        begin(learner, n_features, known, seed, given)
        return codes
    learner.begin(n_features, seed=seed, fresh=False)
    check_columns(learner, given, reset=False)
    if several:
        return classes_and_codes(labels, learner.classes_)[1]
    return codes_of(learner, labels, n_features, "y", given)


def play_stream(
    learner: "Learner",
    X: Any,
    y: Any,
    *,
    seed: int | None = None,
    fresh: bool = True,
    classes: Any = None,
    checkpoints: npt.ArrayLike | None = None,
    keep_guesses: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
    by_round: bool = False,
    asks: Callable[[Guess, bool], bool] | None = None,
) -> Record:
    """Play a whole stream, compiled unless `by_round`; the arguments are those of `onebit.play` and `play_rounds`."""
    rows = inputs.check_rows(X)
    labels = check_answers(y, rows.shape[0])
    record, n = new_record(len(labels), checkpoints, keep_guesses), len(labels)
    with all_or_nothing(learner, fresh, is_one=n == 1 and not by_round and not _has_new(learner, labels)):
        codes, first = _begin_stream(learner, rows, labels, X, seed, fresh, classes), learner.n_rounds_
        if by_round or learner._state.plays_by_hand:
            pairs = ((inputs.row_of(rows, t), code) for t, code in enumerate(codes.tolist()))
            play_rounds(learner, pairs, record, asks=asks, on_progress=on_progress)
            return record
        step = n if on_progress is None else max(_LEAST_STEP, n // _MOST_REPORTS)
        try:
            for start in range(0, n, step):
                some = rows if step == n else inputs.take(rows, start, start + step)
                learner._state.play(some, codes[start : start + step], learner._key, first, record, start)
                if on_progress is not None:
                    on_progress(min(start + step, n), n)
        finally:  # also when Ctrl-C came just after the only round
            mistakes, updates, explored, passed = record.counts.tolist()
            learner.n_rounds_ = first + (int(record.checkpoints[passed - 1]) if passed else 0)
            learner.n_mistakes_ += mistakes
            learner.n_updates_ += updates
            learner.n_uniform_guesses_ += explored
    return record


def play_rounds(
    learner: "Learner",
    rounds: Iterable[tuple[Any, int]],
    record: Record,
    *,
    asks: Callable[[Guess, bool], bool] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> int:
    """Play rounds by calling `guess` and `tell`; return how many, at most as many as the record is for.

    A round is its features and its code (see `classes_and_codes`). `asks` is called with each guess and whether it is
    right, and returns whether the label is asked for, which is no mistake.
    """
    counts, limit, updates, t = record.counts, int(record.checkpoints[-1]), learner.n_updates_, 0
    step = max(_LEAST_STEP, limit // _MOST_REPORTS)
    for t, (features, code) in enumerate(rounds, start=1):
        guess = learner.guess(features)
        correct = bool(is_right(guess.index, code))
        asked = asks is not None and asks(guess, correct)
        named = guess.index if correct else first_right(code)  # where several are right, one of them
        if asked and named >= 0:
            learner.label(guess, learner._labels[named])
        elif learner.full_information:
            learner.tell(guess, correct, learner._labels[code])
        else:
            learner.tell(guess, correct)
        counts[MISTAKES] += not correct and not asked
        counts[EXPLORED] += guess.explored
        if len(record.guesses):
            record.guesses[t - 1] = guess.index
        if t == record.checkpoints[counts[PASSED]]:
            record.cumulative[counts[PASSED]] = counts[MISTAKES]
            counts[PASSED] += 1
        if on_progress is not None and (t % step == 0 or t == limit):
            on_progress(t, limit)
        if t == limit:
            break
    counts[UPDATES] = learner.n_updates_ - updates
    return t
