"""Algorithm 4 of the paper: remember right guesses, and repeat the nearest one's label."""

import math
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from onebit.bounds import BOUNDS, Claim, is_safe_reach
from onebit.compiled import compiled, inlined
from onebit.draws import Draw, uniform, uniform_label
from onebit.inputs import Floats, Integers, Rows, SparseRows, check_number, densify
from onebit.learners.base import Learner, bad_row_error
from onebit.rounds import Guess, Record, note

_FIRST_CAPACITY = 16
_NO_SCORES = np.empty(0)


class NearestNeighbor(Learner):
    """Repeats the label of the nearest remembered example, if there is one within the radius.

    Otherwise it draws a label uniformly, and remembers the example if the label proves right. Sparse rows are accepted
    and made dense one by one.

    Parameters
    ----------
    radius : float
        How near is near; greater than 0. Any radius up to √2·γ is safe on data with weak margin γ (the paper says γ).
    classes : None, int or list
        The labels, or how many; `play` and `fit` find out by themselves.
    seed : int
        Names the learner's random numbers.

    Guarantee
    ---------
    With radius γ on examples that are weakly separable with margin γ within radius R of the origin: at most
    (K−1)(2R/γ+1)^d expected mistakes, and at most (2R/γ+1)^d remembered examples, always (Theorem 21).

    Attributes
    ----------
    support_, labels_ : arrays
        The remembered examples and their labels.

    Examples
    --------
    >>> learner = NearestNeighbor(radius=0.5, classes=["no", "yes"], seed=2)
    >>> guess = learner.guess([0.0, 1.0])
    >>> learner.tell(guess, correct=True)
    >>> learner.guess([0.1, 0.9]).label == guess.label
    True

    References
    ----------
    Beygelzimer et al. (2019). ICML. Algorithm 4, Theorem 21.
    """

    def __init__(self, radius: float = 0.1, *, classes: Any = None, seed: int = 0) -> None:
        self.radius = radius
        self.classes = classes
        self.seed = seed

    def promise(self, *, n_classes: int, n_features: int, radius: float, margin: float) -> tuple[Claim, ...]:
        """Return Theorem 21 for this learner's radius, if the margin is large enough for it."""
        if not is_safe_reach(self.radius, margin):
            return ()
        numbers = {"radius": radius, "reach": self.radius, "dimension": n_features}
        return BOUNDS["21-memory"].claim(**numbers), BOUNDS["21-reach"].claim(n_classes=n_classes, **numbers)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield a small and a large radius."""
        yield cls(radius=0.05)
        yield cls(radius=0.6)

    def _start(self) -> None:
        self._radius_squared = check_number("radius", self.radius, above=0.0) ** 2
        self._points = np.empty((_FIRST_CAPACITY, self.n_features_in_))
        self._indices = np.empty(_FIRST_CAPACITY, dtype=np.int64)
        self._size = 0

    def _prepare(self, rows: Rows) -> Floats:
        return densify(rows, 0, len(rows)) if isinstance(rows, SparseRows) else rows

    def _near(self, row: Rows) -> int:
        """Return the index of the nearest remembered label, or −1 if none is within the radius."""
        dense = self._prepare(row)
        if not math.isfinite(float(dense.sum())):
            raise bad_row_error(row)
        return _nearest_label(self._points, self._indices, self._size, dense, 0, self._radius_squared)

    def _decide(self, row: Rows, round: int) -> tuple[int, bool, float, Floats, Rows]:
        near = self._near(row)
        if near >= 0:
            return near, False, 1.0, _NO_SCORES, row
        n_classes = len(self.classes_)
        return uniform_label(uniform(Draw(self._key, round)), n_classes), True, 1.0 / n_classes, _NO_SCORES, row

    def _hear(self, guess: Guess, correct: bool, truth: int) -> bool:
        # Late feedback: an example that something remembered since then covers would break the packing of Theorem 21.
        if not (guess.explored and correct) or (guess.version != self.n_updates_ and self._near(guess.row) >= 0):
            return False
        self._grow()
        self._points[self._size] = self._prepare(guess.row)[0]
        self._indices[self._size] = guess.index
        self._size += 1
        return True

    def _probabilities(self, row: Rows) -> Floats:
        near, n_classes = self._near(row), len(self.classes_)
        return np.full(n_classes, 1.0 / n_classes) if near < 0 else np.eye(n_classes)[near]

    def _play(self, X: Rows, y: Integers, first_round: int, record: Record) -> None:
        rows = self._prepare(X)
        played = 0
        while played < len(y):
            self._grow()
            played, self._size = _play_until_full(
                self._points, self._indices, self._size, rows, y, len(self.classes_), self._radius_squared,
                self._key, first_round, played, record,
            )  # fmt: skip

    def _grow(self) -> None:
        if self._size == len(self._points):
            self._points = np.concatenate([self._points, np.empty_like(self._points)])
            self._indices = np.concatenate([self._indices, np.empty_like(self._indices)])

    def _decision(self, rows: Rows) -> Floats:
        out = np.full((rows.shape[0], len(self.classes_)), -np.inf)
        _nearness(self._points, self._indices, self._size, self._prepare(rows), out)
        return out

    def learned(self) -> dict[str, Floats]:
        """Return copies of the remembered examples and the positions of their labels among the classes."""
        self._check_started("learned")
        return {"support": self._points[: self._size].copy(), "labels": self._indices[: self._size].astype(float)}

    @property
    def support_(self) -> Floats:
        """The remembered examples, oldest first."""
        self._check_started("support_")
        return self._points[: self._size].copy()

    @property
    def labels_(self) -> Any:
        """The remembered examples' labels."""
        self._check_started("labels_")
        return self.classes_[self._indices[: self._size]]


@inlined
def _square_distance(points: Floats, s: int, rows: Floats, t: int) -> float:
    total = 0.0
    for j in range(rows.shape[1]):
        difference = rows[t, j] - points[s, j]
        total += difference * difference
    return total


@compiled
def _nearest_label(points: Floats, indices: Integers, size: int, rows: Floats, t: int, radius_squared: float) -> int:
    label, best = -1, math.inf
    for s in range(size):
        distance = _square_distance(points, s, rows, t)
        if distance <= radius_squared and distance < best:
            label, best = indices[s], distance
    return label


@compiled
def _nearness(points: Floats, indices: Integers, size: int, rows: Floats, out: Floats) -> None:
    for t in range(rows.shape[0]):
        for s in range(size):
            out[t, indices[s]] = max(out[t, indices[s]], -math.sqrt(_square_distance(points, s, rows, t)))


@compiled
def _play_until_full(
    points: Floats,
    indices: Integers,
    size: int,
    rows: Floats,
    y: Integers,
    n_classes: int,
    radius_squared: float,
    seed: int,
    first_round: int,
    played: int,
    record: Record,
) -> tuple[int, int]:
    """Play on until the stream ends or the memory is full; return the rounds played and the examples remembered."""
    for t in range(played, y.shape[0]):
        if size == points.shape[0]:
            return t, size
        label = _nearest_label(points, indices, size, rows, t, radius_squared)
        explored = label < 0
        if explored:
            label = uniform_label(uniform(Draw(seed, first_round + t)), n_classes)
        correct = label == y[t]
        changed = explored and correct
        if changed:
            points[size] = rows[t]
            indices[size] = label
            size += 1
        note(record, t, label, explored, correct, changed)
    return y.shape[0], size
