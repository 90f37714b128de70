"""The run of a learner, underneath its protocol: how it begins, takes rows and labels, plays streams, and is restored.

A run begins when the number of features and the classes are known, and ends with the next fresh start. The functions
take the learner; `play_stream` and `all_or_nothing` take its lock, for the others the caller holds it.
"""

import copy
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import validate_data

from onebit.confidence import Confidence
from onebit.engine.loop import EXPLORED, MISTAKES, PASSED, UPDATES, Record, new_record
from onebit.inputs import (
    Floats,
    Integers,
    Rows,
    SparseRows,
    as_frame,
    check_real,
    check_rows,
    check_seed,
    check_sparse_row,
    is_frame,
    take,
)
from onebit.labels import (
    check_answers,
    check_classes,
    check_labels,
    classes_and_codes,
    codes_of_right,
    encode_labels,
    infer_classes,
    positions,
)
from onebit.machine_memory import claim_memory

_FLOAT64 = np.dtype(np.float64)
_LEAST_PROPENSITY = 2.0**-1000  # the reciprocal of less may overflow
LET_IT_JOIN = "list it in classes=, or let it join a run that has begun: add_class"
"""What to do about a label that is not among the classes."""


if TYPE_CHECKING:
    from onebit.learners.base import Learner

    class Classifier:  # noqa: D101
        # scikit-learn has no type hints: the part of its two base classes that is used here.
        feature_names_in_: npt.NDArray[Any]

        @classmethod
        def _get_param_names(cls) -> list[str]: ...
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...
        def _repr_html_(self) -> str: ...

else:

    class Classifier(ClassifierMixin, BaseEstimator):
        """The base classes of a scikit-learn classifier."""


class _Locked(Classifier):
    _lock: threading.RLock

    def __new__(cls, *_settings: Any, **_named: Any) -> Self:
        """Give every learner a lock, so that threads may share it: a round runs in one thread at a time."""
        learner = super().__new__(cls)
        learner._lock = threading.RLock()
        return learner


@dataclass(eq=False, repr=False, kw_only=True)
class CommonSettings(_Locked):
    """The settings of every learner. Learners are data classes: their fields are their settings, and nothing else."""

    classes: Any = None
    seed: int = 0


class LearnedArray:
    """An attribute of a learner that is one of the arrays it has learned."""

    def __set_name__(self, _kind: type, attribute: str) -> None:
        self._attribute, self._name = attribute, attribute.removesuffix("_")

    def __get__(self, learner: Any, kind: type) -> Any:
        if learner is None:
            return self
        arrays = learner.learned() if learner._started else {}
        if self._name not in arrays:
            if "kernel" in learner.get_params(deep=False):
                needed = f" with {'kernel=None' if self._name == 'weights' else 'a kernel'}"
                raise AttributeError(f"{self._attribute} is there once {kind.__name__} has played{needed}")
            shown = f"; it has {', '.join(arrays)}" if arrays else ""
            raise AttributeError(f"{kind.__name__} has not learned {self._attribute}{shown}")
        return arrays[self._name]


def grows(learner: "Learner") -> bool:
    """Return whether new labels join the classes when they are met."""
    return isinstance(learner.classes, str) and learner.classes == "grow"


def begin(
    learner: "Learner", n_features: int, classes: npt.NDArray[Any] | None, seed: int | None, given: Any = None
) -> None:
    """Set up an empty state, within `all_or_nothing`. `given` is a frame, or what may be one."""
    if classes is None:
        if grows(learner):
            raise ValueError("no label is known yet: guess(x, among=[…]), learn_labels or play brings the first ones")
        if learner.classes is None:
            raise ValueError(
                "classes is not known: pass a count or a list of labels, "
                f'for example {type(learner).__name__}(classes=["yes", "no"])'
            )
        classes = check_classes(learner.classes)
    learner._key = check_seed(learner.seed if seed is None else seed)
    learner.classes_, learner._labels = classes, tuple(classes.tolist())
    learner.n_features_in_, learner._row_shape = n_features, (n_features,)
    check_columns(learner, given, reset=True)
    learner._state, learner._started = learner._new_state(), True
    claim_memory(learner._state.n_bytes())  # the system has not allocated untouched zeros yet
    # A setting with parameters of its own, such as a wrapped classifier, may be changed later.
    learner._in_force = {
        name: clone(value) if hasattr(value, "get_params") and not isinstance(value, type) else value
        for name, value in learner.get_params(deep=False).items()
    }
    learner.n_rounds_ = learner.n_mistakes_ = learner.n_updates_ = learner.n_uniform_guesses_ = 0
    learner._tickets = learner._confidence = None


def new_confidence(learner: "Learner") -> Confidence | None:
    """Return an estimator of confidence that has learned nothing; None for a learner without scores."""
    if learner._state.plays_by_hand:
        return None
    return Confidence(len(learner._labels), learner._state.n_extra)


@contextmanager
def all_or_nothing(learner: "Learner", fresh: bool = True) -> Iterator[None]:
    """Restore the learner if the block inside is interrupted, by an error or by Ctrl-C.

    A fresh run gets a new state, so that the old one needs no copy; that of a `ByHand` does: it is the learner itself.
    """
    with learner._lock:
        before, bookmark = dict(vars(learner)), None
        before["_confidence"] = None if learner._confidence is None else learner._confidence.copy()
        if learner._started and (not fresh or learner._state.plays_by_hand):
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


# Rows.


def one_row(learner: "Learner", features: Any) -> Rows:
    """Return a copy of one round's features as a matrix of one row; `score` finds NaN and infinities."""
    if type(features) is np.ndarray and features.dtype is _FLOAT64 and features.shape == learner._row_shape:
        return np.array(features, ndmin=2)  # the common case
    if scipy.sparse.issparse(features) or isinstance(features, SparseRows):
        sparse = check_sparse_row(features, "features")
        if learner._started:
            check_n_features(learner, sparse.n_columns)
        return sparse
    features = as_frame(features)
    array = check_real(features, "features")
    if array.ndim == 0 or array.size == 0 or array.size != array.shape[-1]:
        raise ValueError(f"features must be one round's, of shape (n_features,); got shape {array.shape}")
    if learner._started and is_frame(features):
        check_columns(learner, features, reset=False)
    if learner._started and array.size != learner.n_features_in_:
        raise ValueError(f"features must have length {learner.n_features_in_}; got {array.size}")
    return np.array(array, dtype=np.float64, ndmin=2)


def check_width(learner: "Learner", rows: Rows, given: Any = None) -> Rows:
    """Return rows of the expected width; the columns of a frame must have the same names, too."""
    if learner._started:
        if is_frame(given):
            check_columns(learner, given, reset=False)
        check_n_features(learner, rows.shape[1])
    return rows


def check_n_features(learner: "Learner", n_features: int) -> None:
    """Raise ValueError unless a run that has begun has so many features, in scikit-learn's words."""
    if n_features != learner.n_features_in_:
        name, known = type(learner).__name__, learner.n_features_in_
        raise ValueError(f"X has {n_features} features, but {name} is expecting {known} features as input")


def row_of(rows: Rows, t: int) -> Any:
    """Return one row as `guess` takes it."""
    return take(rows, t, t + 1) if isinstance(rows, SparseRows) else rows[t]


def check_columns(learner: "Learner", X: Any, *, reset: bool) -> None:
    """Store the column names, or check X against the stored ones."""
    if type(X) is np.ndarray and "feature_names_in_" not in vars(learner):
        return  # no names on either side: saves scikit-learn's check, 20 µs
    try:
        validate_data(learner, as_frame(X), reset=reset, skip_check_array=True, ensure_2d=False)
    except (TypeError, ValueError) as error:
        remedy = "" if reset else f" Give them in that order: X[{learner.feature_names_in_.tolist()!r:.200}]"
        raise ValueError(f"X has other columns. {error}{remedy}") from error


# Labels and feedback.


def check_list(name: str, among: Any) -> npt.NDArray[Any]:
    """Return a list of labels as an array; raise ValueError if it is not a list or is empty."""
    if isinstance(among, (str, bytes)) or not isinstance(among, Iterable):
        raise ValueError(f"{name} must be a list of labels; got {among!r}")
    labels = list(among)
    if not labels:
        raise ValueError(f"{name} must have at least one label; got none")
    return check_labels(labels, len(labels), name)


def allowed_positions(learner: "Learner", among: Any) -> Integers:
    """Return the positions of allowed labels, in the order of the classes."""
    labels = check_list("among", among)
    if len(labels) > len(learner.classes_):
        raise ValueError(
            f"among must list some of the {len(learner.classes_)} classes; got {len(labels)} labels. Name each label "
            "once"
        )
    return np.unique(encode_labels(labels, learner.classes_, "among", LET_IT_JOIN))


def codes_of(learner: "Learner", labels: npt.NDArray[Any], n_features: int, name: str, given: Any) -> Integers:
    """Return the positions of labels; begin a run if needed, and add new labels where classes grow."""
    if not learner._started:
        chosen = infer_classes(labels) if learner.classes is None or grows(learner) else learner.classes
        begin(learner, n_features, check_classes(chosen), None, given)
    elif grows(learner):
        met = infer_classes(labels)
        if (is_new := positions(met, learner.classes_) < 0).any():
            join(learner, met[is_new].tolist())
    return encode_labels(labels, learner.classes_, name, LET_IT_JOIN)


def join(learner: "Learner", labels: list[Any]) -> None:
    """Add labels to the classes, all or none of them."""
    wider = check_classes([*learner._labels, *labels])
    claim_memory(learner.n_bytes() * len(wider) / len(learner._labels))
    with all_or_nothing(learner, fresh=False):
        for n in range(len(learner._labels) + 1, len(wider) + 1):
            learner.classes_ = wider[:n]
            learner._labels = tuple(learner.classes_.tolist())
            learner._state.add_class()
            if learner._confidence is not None:
                learner._confidence.add_class()


def check_feedback(correct: Any, n: int) -> npt.NDArray[np.bool_]:
    """Return n truth values, or raise ValueError; one stands for all."""
    answers = np.asarray(correct)
    if answers.dtype.kind != "b" or answers.shape not in ((), (n,)):
        raise ValueError(f"correct must be True or False for each of the {n} rounds; got {correct!r:.80}")
    return np.broadcast_to(answers, (n,))


def check_propensities(propensities: Any, n: int) -> Floats:
    """Return n propensities in (0, 1], or raise ValueError; one stands for all."""
    found = check_real(propensities, "propensities").astype(np.float64)
    if found.shape not in ((), (n,)):
        raise ValueError(f"propensities must have {n} entries, one for each round; got shape {found.shape}")
    wrong = ~((found > _LEAST_PROPENSITY) & (found <= 1.0))
    if wrong.any():
        raise ValueError(
            f"propensities must be above 0 (above {_LEAST_PROPENSITY:.1g}) and at most 1; got {found[wrong].flat[0]:g}"
        )
    return np.broadcast_to(found, (n,))


def propensities(learner: "Learner", features: Any, among: Any) -> Floats:
    """Return the propensity of each label in one round, or in each of many; nothing is changed."""
    shape = getattr(features, "shape", None)
    are_many = isinstance(features, SparseRows) or (np.ndim(features) if shape is None else len(shape)) == 2
    many = check_width(learner, check_rows(features, "features"), features) if are_many else None
    rows = one_row(learner, features) if many is None else many
    if not learner._started:
        # This must not start a run: a copy starts it instead.
        learner = type(learner)(**learner.get_params(deep=False))
        begin(learner, rows.shape[1], None, None)
    state, allowed = learner._state, None if among is None else allowed_positions(learner, among)
    found = [
        state.probabilities(row) if allowed is None else state.probabilities_among(row, allowed)
        for row in (take(rows, t, t + 1) for t in range(rows.shape[0]))
    ]
    return np.stack(found) if are_many else found[0]


# Known rounds.


def learn_from(learner: "Learner", X: Any, guesses: Any, correct: Any, propensities: Any = None) -> None:
    """Learn from rounds that another system played, all or none of them."""
    rows = check_rows(X)
    labels = check_labels(guesses, rows.shape[0], "guesses")
    feedback = check_feedback(correct, len(labels))
    known = None if propensities is None else check_propensities(propensities, len(labels))
    # A single round is applied or refused as a whole; only with several must a failure be rolled back.
    is_one = len(labels) == 1 and learner._started and not grows(learner)
    with learner._lock if is_one else all_or_nothing(learner, fresh=False):
        check_width(learner, rows, X)
        if not learner._started and learner.classes is None:
            raise ValueError("classes is not known: pass classes=, for labels that were never tried count too")
        codes = codes_of(learner, labels, rows.shape[1], "guesses", X)
        for t, code in enumerate(codes.tolist()):
            row, truth = take(rows, t, t + 1), code if learner.full_information and feedback[t] else -1
            propensity = None if known is None else float(known[t])
            learner.n_updates_ += learner._state.learn_from_log(row, code, bool(feedback[t]), truth, propensity)


def learn_labels(learner: "Learner", X: Any, y: Any) -> None:
    """Learn from rows whose labels are known, all or none of them."""
    rows = check_rows(X)
    labels = check_labels(y, rows.shape[0])
    if learner._started and not grows(learner):
        encode_labels(labels, learner.classes_, "y", LET_IT_JOIN)
        learn_from(learner, X, labels, True, 1.0)  # one row needs no copy of the state
        return
    with all_or_nothing(learner, fresh=False):
        check_width(learner, rows, X)
        codes_of(learner, labels, rows.shape[1], "y", X)
        learn_from(learner, X, labels, True, 1.0)


# Streams.


def begin_stream(
    learner: "Learner",
    rows: Rows,
    labels: npt.NDArray[Any],
    given: Any,
    *,
    seed: int | None = None,
    fresh: bool = True,
    classes: Any = None,
) -> Integers:
    """Prepare for the first round of a checked stream, whose rows came as `given`; return its labels as indices.

    Where several labels may be right, `labels` is a matrix of truth values, and the numbers are `codes_of_right`.
    """
    if labels.ndim == 2:
        return _begin_several(learner, rows, labels, given, seed, fresh, classes)
    if not fresh and learner._started:
        learner.begin(rows.shape[1], seed=seed, fresh=False)
        check_columns(learner, given, reset=False)
        return codes_of(learner, labels, rows.shape[1], "y", given)
    chosen = classes if learner.classes is None or grows(learner) else learner.classes
    known, codes = classes_and_codes(labels, chosen)
    begin(learner, rows.shape[1], known, seed, given)
    return codes


def _begin_several(
    learner: "Learner", rows: Rows, right: npt.NDArray[Any], given: Any, seed: int | None, fresh: bool, classes: Any
) -> Integers:
    """Prepare for the first round of a stream in which several labels may be right; return `codes_of_right`."""
    name, n_columns = type(learner).__name__, right.shape[1]
    if learner.full_information:
        raise ValueError(f"y must hold one label for each round: the feedback of {name} is the right label itself")
    if not fresh and learner._started:
        learner.begin(rows.shape[1], seed=seed, fresh=False)
        check_columns(learner, given, reset=False)
    else:
        chosen = classes if learner.classes is None or grows(learner) else learner.classes
        begin(learner, rows.shape[1], check_classes(n_columns if chosen is None else chosen), seed, given)
    if len(learner.classes_) != n_columns:
        raise ValueError(f"y must have a column for each of the {len(learner.classes_)} classes; got {n_columns}")
    return codes_of_right(right)


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
) -> Record:
    """Play a whole stream, compiled where the learner is."""
    rows = check_rows(X)
    labels = check_answers(y, rows.shape[0])
    record = new_record(len(labels), checkpoints, keep_guesses)
    with learner._lock:
        is_one = len(labels) == 1 and not fresh and learner._started and not learner._state.plays_by_hand
        if is_one and not (grows(learner) and labels.tolist()[0] not in learner._labels):
            # One round cannot fail halfway (only `score` can fail, before any change): the state need not be copied.
            codes = begin_stream(learner, rows, labels, X, seed=seed, fresh=False)
            try:
                learner._state.play(rows, codes, learner._key, learner.n_rounds_, record)
            finally:
                count(learner, record, int(record.counts[PASSED]))  # also when Ctrl-C came just after the round
            return record
        with all_or_nothing(learner, fresh):
            codes = begin_stream(learner, rows, labels, X, seed=seed, fresh=fresh, classes=classes)
            learner._state.play(rows, codes, learner._key, learner.n_rounds_, record)
            if not learner._state.plays_by_hand:
                count(learner, record, len(codes))
    return record


def count(learner: "Learner", record: Record, rounds: int) -> None:
    """Add a record's counts to the learner's."""
    learner.n_rounds_ += rounds
    learner.n_mistakes_ += int(record.counts[MISTAKES])
    learner.n_updates_ += int(record.counts[UPDATES])
    learner.n_uniform_guesses_ += int(record.counts[EXPLORED])
