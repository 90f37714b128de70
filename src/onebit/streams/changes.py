"""Changes that make a stream harder or other: wrong labels, drift, rare classes, several right labels.

On the command line they are written before the data: ``drift:gradual,at=0.3:paper_weak``, or two,
``noise:0.1:imbalance:20:iris``. There all but imbalance are drawn anew for every run, on its rounds in the order in
which they are played. The change of a round depends on the seed, the round and its label alone: except where a position
is given as a share of all rounds, a shorter stream is the beginning of a longer one.
"""

from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse
from numpy.random import Generator

from onebit.engine.randomness import CHANGE, random_numbers
from onebit.import_paths import did_you_mean, read_settings
from onebit.inputs import Integers, check_choice, check_integer, check_number, check_rows, check_seed
from onebit.labels import check_labels, classes_and_codes
from onebit.streams.data_set import DataSet, Matrix, as_matrix
from onebit.streams.preprocess import preprocess

_Stream = TypeVar("_Stream", bound=DataSet | tuple[Any, Any])
_RULES = {"linear": "the highest of a random linear rule", "next": "the label and those that follow it"}


@dataclass(frozen=True)
class Change(ABC):
    """One change with its settings; the first of its fields may be written without its name."""

    name: ClassVar[str]  # its name on the command line
    number: ClassVar[int]  # keeps its random numbers apart from those of other changes with the same seed
    keeps_rounds: ClassVar[bool] = True  # there are as many rounds afterwards

    @property
    def written(self) -> str:
        """The change with all its settings, as part of a result's key."""
        return f"{self.name}:{','.join(f'{name}={value}' for name, value in vars(self).items())}"

    @abstractmethod
    def __str__(self) -> str: ...  # what is changed, in words

    def applied(self, X: Matrix, y: Any, n_classes: int, seed: int) -> tuple[Matrix, Any]:
        """Return rows and labels, changed. Labels are positions, 0 to n_classes − 1."""
        if y.ndim != 1:
            raise ValueError(f"{self.name} needs one label a round: several comes last, as in several:3:{self.name}:…")
        if n_classes < 2:
            raise ValueError(f"{self.name} needs a stream of at least two labels; got {n_classes}")
        return self._apply(X, y, n_classes, random_numbers(seed, CHANGE, number=self.number))

    @abstractmethod
    def _apply(self, X: Matrix, y: Integers, n_classes: int, generator: Generator) -> tuple[Matrix, Integers]: ...


@dataclass(frozen=True)
class LabelNoise(Change):
    """See `with_label_noise`."""

    name, number = "noise", 1
    rate: float

    def __post_init__(self) -> None:
        check_number("rate", self.rate, above=0, at_most=1)

    def __str__(self) -> str:
        return f"{100 * self.rate:g} % of the labels replaced by another, at random"

    def _apply(self, X: Matrix, y: Integers, n_classes: int, generator: Generator) -> tuple[Matrix, Integers]:
        drawn = generator.random((len(y), 2))
        others = np.minimum((drawn[:, 1] * (n_classes - 1)).astype(np.int64), n_classes - 2)
        return X, np.where(drawn[:, 0] < self.rate, (y + 1 + others) % n_classes, y)


@dataclass(frozen=True)
class _Drift(Change):
    """See `with_drift`."""

    name, number = "drift", 2
    kind: str = "sudden"
    at: int | float = 0.5
    what: str = "labels"
    width: int | float = 0.2

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, ("sudden", "gradual"))
        check_choice("what", self.what, ("labels", "features"))
        for name, value in (("at", self.at), ("width", self.width)):
            if not _is_share(value):
                check_integer(name, value, low=1)
            elif not 0 < value < 1:
                allowed = "a share of the rounds between 0 and 1, or a whole number"
                raise ValueError(f"{name} must be {allowed}; got {value!r}")

    def __str__(self) -> str:
        at, width = (
            f"{100 * place:g} % of the rounds" if _is_share(place) else f"{place} rounds"
            for place in (self.at, self.width)
        )
        how = "at once" if self.kind == "sudden" else f"more and more often over {width}"
        what = "every class takes another's label" if self.what == "labels" else "columns change places and signs"
        return f"{what} from {at} on, {how}"

    def _apply(self, X: Matrix, y: Integers, n_classes: int, generator: Generator) -> tuple[Matrix, Integers]:
        n = len(y)
        start, width = (round(place * n) if _is_share(place) else int(place) for place in (self.at, self.width))
        if not 0 < start < n:
            raise ValueError(
                f"at must leave at least one of the {n} rounds before the drift and one after; got {self.at!r}, which "
                f"is round {start}"
            )
        # First what changes, then which rounds: so a round does not depend on how many rounds there are.
        order = generator.permutation(n_classes if self.what == "labels" else X.shape[1])
        signs = np.where(generator.random(len(order)) < 0.5, -1.0, 1.0)
        is_new = np.arange(n) >= start
        if self.kind == "gradual":
            is_new &= generator.random(n) < (np.arange(n) - start + 1) / max(width, 1)
        if self.what == "features":
            return _rotated(X, is_new, order, signs), y
        # One cycle: no class keeps its label.
        after = np.empty(n_classes, dtype=np.int64)
        after[order] = np.roll(order, -1)
        return X, np.where(is_new, after[y], y)


@dataclass(frozen=True)
class _Imbalance(Change):
    """See `with_imbalance`."""

    name, number, keeps_rounds = "imbalance", 3, False
    ratio: float

    def __post_init__(self) -> None:
        check_number("ratio", self.ratio, above=1)

    def __str__(self) -> str:
        return f"classes thinned out, in random order, down to 1 in {self.ratio:g}"

    def _apply(self, X: Matrix, y: Integers, n_classes: int, generator: Generator) -> tuple[Matrix, Integers]:
        shares = np.empty(n_classes)
        shares[generator.permutation(n_classes)] = self.ratio ** -np.linspace(0.0, 1.0, n_classes)
        kept = np.flatnonzero(generator.random(len(y)) < shares[y])
        return X[kept], y[kept]


@dataclass(frozen=True)
class _SeveralRight(Change):
    """See `with_several_right`."""

    name, number = "several", 4
    n_right: int = 3
    rule: str = "linear"

    def __post_init__(self) -> None:
        check_integer("n_right", self.n_right, low=1)
        check_choice("rule", self.rule, _RULES)

    def __str__(self) -> str:
        return f"{self.n_right} labels are right in every round, {_RULES[self.rule]}"

    def _apply(self, X: Matrix, y: Integers, n_classes: int, generator: Generator) -> tuple[Matrix, Any]:
        if self.n_right >= n_classes:
            raise ValueError(f"n_right must be below the number of labels, {n_classes}; got {self.n_right}")
        right, rounds = np.zeros((len(y), n_classes), dtype=np.bool_), np.arange(len(y))[:, None]
        if self.rule == "next":
            chosen = (y[:, None] + np.arange(self.n_right)) % n_classes
        else:
            rows = preprocess(X, "standardize")
            scores = rows @ generator.normal(size=(rows.shape[1], n_classes))
            chosen = np.argsort(-scores, axis=1, kind="stable")[:, : self.n_right]
        right[rounds, chosen] = True
        return X, right


CHANGES: dict[str, type[Change]] = {cls.name: cls for cls in (LabelNoise, _Drift, _Imbalance, _SeveralRight)}


def with_label_noise(stream: _Stream, rate: float, seed: int = 0) -> _Stream:
    """Return a stream in which each label is, with probability `rate`, replaced by another one, all others as likely.

    Parameters
    ----------
    stream : pair (X, y) or DataSet
        Rows and labels. The labels to choose from are those that occur in y, or all of a data set's.
    rate, seed : float, int
        Share of wrong labels, in (0, 1], and the seed of the draw.

    Examples
    --------
    >>> from onebit.streams import bundled
    >>> iris = bundled("iris")
    >>> int((with_label_noise(iris, 0.1, seed=1).y != iris.y).sum())
    16
    >>> X, y = with_label_noise((iris.X, iris.y), 1.0)
    >>> bool((y == iris.y).any())
    False
    """
    return _changed(LabelNoise(rate), stream, seed)


def with_drift(
    stream: _Stream,
    kind: str = "sudden",
    at: int | float = 0.5,
    seed: int = 0,
    *,
    what: str = "labels",
    width: int | float = 0.2,
) -> _Stream:
    """Return a stream with concept drift.

    With ``what="labels"`` every class takes the label of another: a random cyclic permutation. With ``what="features"``
    the rows are rotated by quarter turns: columns change places at random, and half of them signs. Lengths, angles
    between rows on the same side of the drift, and the number of zeros stay the same. Columns should have one scale.

    Parameters
    ----------
    stream : pair (X, y) or DataSet
        Rows and labels, in the order in which they are played.
    kind : {"sudden", "gradual"}
        All rounds from `at` on are changed, or the probability of a change grows linearly from 0 to 1 over `width`.
    at, width : int or float
        The first round that may be changed, counted from 0, and how many a gradual drift takes; or shares of all.
    seed : int
        Seed of the draw.
    what : {"labels", "features"}
        What changes.

    Examples
    --------
    >>> from onebit.streams import paper_weak
    >>> X, y = paper_weak(rounds=10, seed=1)
    >>> y.tolist(), with_drift((X, y), "sudden", at=6, seed=2)[1].tolist()
    ([0, 0, 0, 0, 0, 0, 1, 1, 2, 0], [0, 0, 0, 0, 0, 0, 0, 0, 1, 2])
    """
    return _changed(_Drift(kind, at, what, width), stream, seed)


def with_imbalance(stream: _Stream, ratio: float, seed: int = 0) -> _Stream:
    """Return a stream with rounds left out, so that some classes are rare.

    Classes are put in a random order. Of the first all rounds stay, of the last one in `ratio`, of those between in
    geometric steps; each round stays or goes by itself, with that propensity.

    Parameters
    ----------
    stream, ratio, seed : pair (X, y) or DataSet, float, int
        Rows and labels; more than 1, and the seed of the draw.

    Examples
    --------
    >>> from onebit.streams import bundled
    >>> np.bincount(with_imbalance(bundled("iris"), 10, seed=1).y).tolist()
    [18, 50, 3]
    """
    return _changed(_Imbalance(ratio), stream, seed)


def with_several_right(
    stream: DataSet | tuple[Any, Any], n_right: int = 3, seed: int = 0, *, rule: str = "linear"
) -> tuple[Matrix, npt.NDArray[np.bool_]]:
    """Return a stream in which several labels are right in every round: rows, and of every label whether it is right.

    Parameters
    ----------
    stream : pair (X, y) or DataSet
        Rows and labels. The labels to choose from are those that occur in y, or all of a data set's.
    n_right, seed : int
        How many labels are right, fewer than there are, and the seed of the rule.
    rule : {"linear", "next"}
        Which are right: the highest of a random linear rule of the row, whose columns are standardised over all rows;
        or the label itself and the next ones in the order of the labels, the first after the last.

    Examples
    --------
    >>> from onebit.streams import bundled
    >>> X, right = with_several_right(bundled("digits"), 3)
    >>> right.shape, set(right.sum(axis=1).tolist())
    ((1797, 10), {3})
    """
    return _changed(_SeveralRight(n_right, rule), stream, seed)  # type: ignore[return-value]


def split_changes(text: str) -> tuple[tuple[Change, ...], str]:
    """Read the changes before a source, the outermost first, and return them with the rest.

    >>> split_changes("noise:0.05:imbalance:3:digits")
    ((LabelNoise(rate=0.05), _Imbalance(ratio=3)), 'digits')
    """
    changes: list[Change] = []
    name, colon, tail = text.partition(":")
    while colon and name in CHANGES:
        settings, colon, text = tail.partition(":")
        if not text:
            raise ValueError(f"{name}:{settings}: on which data? Write it after, such as {name}:{settings}:digits")
        changes.append(_read_change(name, settings))
        name, colon, tail = text.partition(":")
    names = [change.name for change in changes]
    for change in changes:
        if names.count(change.name) > 1:
            raise ValueError(f"{change.name} is named twice; name it once")
        # It decides the number of rounds, which must be known before rows are shuffled.
        if not change.keeps_rounds and change is not changes[-1]:
            raise ValueError(f"{change.name} stands next to the data: write the other changes before it")
    return tuple(changes), text


def _read_change(name: str, text: str) -> Change:
    first, *others = fields(CHANGES[name])
    known = [first.name, *(field.name for field in others)]
    try:
        given = read_settings(name, text, first.name)
        for setting in given:
            if setting not in known:
                near = did_you_mean(setting, known)
                raise ValueError(f"{name} has no setting {setting!r}; it has {', '.join(known)}{near}")
        if first.default is MISSING and first.name not in given:
            raise ValueError(f"{name} needs a {first.name}, a number after the colon")
        return CHANGES[name](**given)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name}:{text}: {error}") from error


def _changed(change: Change, stream: _Stream, seed: int) -> _Stream:
    """Return a pair or a data set, changed; if several labels are right then, rows and a matrix."""
    changed: Any
    if isinstance(stream, DataSet):
        changed = X, y = change.applied(stream.X, stream.y, stream.n_classes, check_seed(seed))
        if y.ndim == 1:
            changed = replace(stream, X=X, y=y, about=(*stream.about, ("changed", str(change))))
    else:
        if not isinstance(stream, tuple) or len(stream) != 2:
            raise ValueError(f"stream must be a pair (X, y), or a DataSet; got {type(stream).__name__}")
        rows = as_matrix(check_rows(stream[0]))
        names, codes = classes_and_codes(check_labels(stream[1], rows.shape[0]))
        X, y = change.applied(rows, codes, len(names), check_seed(seed))
        changed = X, y if y.ndim == 2 else names[y]
    result: _Stream = changed
    return result


def _is_share(place: int | float) -> bool:
    return isinstance(place, (float, np.floating))


def _rotated(X: Matrix, is_new: npt.NDArray[np.bool_], order: Integers, signs: npt.NDArray[np.float64]) -> Matrix:
    """Return rows of which some have column ``order[j]`` where column j was, times its sign."""
    if not scipy.sparse.issparse(X):
        return np.where(is_new[:, None], X[:, order] * signs + 0.0, X)  # adding zero turns −0.0 into 0.0
    d, n = len(order), len(is_new)
    turn = scipy.sparse.csr_array((signs, (order, np.arange(d))), shape=(d, d))
    rotated = scipy.sparse.vstack([X, X @ turn], format="csr")[np.arange(n) + n * is_new]
    rotated.sort_indices()
    return rotated
