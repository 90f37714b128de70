"""Algorithm 4 of the paper: store right guesses, and repeat the label of the nearest one."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from onebit.bounds import BOUNDS, Claim, is_safe_reach
from onebit.engine.algorithm import FULL, READY, UNSCORED, Algorithm
from onebit.engine.jit import jit_inline
from onebit.engine.randomness import Draw, uniform, uniform_label
from onebit.engine.scaling import row_lengths, unit_of
from onebit.engine.state import State, check_stored
from onebit.game import Answer
from onebit.inputs import Floats, Integers, Rows, check_number, dense, unlocked
from onebit.learners.base import Learner

_FIRST_CAPACITY = 16  # doubled when full


@dataclass(eq=False, repr=False)
class NearestNeighbor(Learner):
    """Repeats the label of the nearest remembered example, if there is one within the radius.

    Otherwise it draws a label uniformly, and remembers the example if the label proves right.

    Guarantee: With radius γ on examples that are weakly separable with margin γ within radius R of the origin: at most
    (K−1)(2R/γ+1)^d expected mistakes, if every answer comes before the next guess, and at most (2R/γ+1)^d remembered
    examples, always (Theorem 21).

    Parameters
    ----------
    radius : float
        The largest distance at which a label is repeated; greater than 0. Any radius below √2·γ is safe on data with
        weak margin γ (the paper has γ).

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

    radius: float = 0.1

    def promise(self, *, n_classes: int, n_features: int, radius: float, margin: float) -> tuple[Claim, ...]:
        """Return Theorem 21 for this learner's radius, if the margin is large enough for it."""
        if not is_safe_reach(self.radius, margin):
            return ()
        numbers = {"radius": radius, "reach": self.radius, "dimension": n_features}
        return BOUNDS["21-memory"].claim(**numbers), BOUNDS["21-reach"].claim(n_classes=n_classes, **numbers)

    def effort(self, *, rounds: int, n_features: int, n_classes: int) -> float:
        return rounds * rounds / 2.0 * n_features

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(radius=0.05)
        yield cls(radius=0.6)

    def _new_state(self) -> State:
        radius = check_number("radius", self.radius, above=0.0)
        scale = 1.0 / max(unit_of(radius), 2.0**-1000)  # the reciprocal of the smallest unit overflows
        points, labels = np.zeros((_FIRST_CAPACITY, self.n_features_in_)), np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        arrays = _Neighbors(points, labels, np.zeros(1, dtype=np.int64))
        return _Remembered(arrays, _Settings(scale, (scale * radius) ** 2), len(self.classes_))

    @property
    def labels_(self) -> Any:
        """The remembered examples' labels."""
        return self.classes_[self.learned()["labels"].astype(np.int64)]


class _Neighbors(NamedTuple):
    points: Floats  # rows from `size` on are spare capacity
    labels: Integers
    size: Integers  # how many there are; one entry


class _Scratch(NamedTuple):
    scores: Floats  # empty: the algorithm has no scores
    near: Integers  # the label of the nearest stored example, −1 if none is within the radius; one entry
    propensities: Floats


class _Settings(NamedTuple):
    scale: float  # factor of differences: 1, unless the square of the radius would overflow or underflow
    radius_squared: float  # on that scale


class _Remembered(State):
    arrays: _Neighbors
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = {"points": ("example", ""), "labels": ("example",)}

    def new_scratch(self) -> _Scratch:
        return _Scratch(np.empty(0), np.empty(1, dtype=np.int64), np.empty(self.n_classes))

    def algorithm(self, is_sparse: bool) -> Algorithm:
        return Algorithm(_score, _choose, _probabilities, _update)

    def narrowed(self, prepared: Rows, row: Rows | str, among: Integers) -> _Scratch:
        """Return scratch with the nearest example among those with an allowed label."""
        now, (compiled, _, scratch, settings) = self.arrays, self._make_ready(prepared)
        kept = np.append(np.flatnonzero(np.isin(now.labels[: now.size[0]], among)), 0)  # the last place is room
        some = _Neighbors(now.points[kept], np.searchsorted(among, now.labels[kept]), np.array([len(kept) - 1]))
        why = compiled.guess(tuple(some), unlocked(prepared), scratch, 0, 0, settings)[0]
        if why != READY:
            self._settle(why, prepared, 0, row)
        return _Scratch(self.scratch.scores, self.scratch.near.copy(), np.empty(len(among)))

    def learn_from_log(self, row: Rows, label: int, correct: bool, truth: int, propensity: float | None) -> bool:
        # As if its label had been drawn.
        return self.learn_as_played(row, label, correct, truth, propensity, explored=True)

    def score_rows(self, rows: Rows) -> Floats:
        # Minus the distance to each class's nearest example; −∞ for a class without one.
        ready, out = dense(rows), np.full((rows.shape[0], self.n_classes), -np.inf)
        for point, label in zip(self.arrays.points, self.arrays.labels[: self.arrays.size[0]], strict=False):
            out[:, label] = np.maximum(out[:, label], -row_lengths(ready - point))
        return out

    def filled(self) -> dict[str, int]:
        return {"example": int(self.arrays.size[0])}

    def check_arrays(self, arrays: _Neighbors) -> None:
        check_stored(arrays.size[0], len(arrays.labels))
        if arrays.labels.max(initial=0) >= self.n_classes:
            raise ValueError(f"a remembered label is beyond the {self.n_classes} classes")

    def learned(self) -> dict[str, Floats]:
        size = self.arrays.size[0]
        return {"support": self.arrays.points[:size].copy(), "labels": self.arrays.labels[:size].astype(float)}


@jit_inline
def _score(state: _Neighbors, X: Floats, t: int, scratch: _Scratch, settings: _Settings) -> int:
    size, best, total = state.size[0], math.inf, 0.0
    if size == state.labels.shape[0]:
        return FULL
    for j in range(X.shape[1]):
        total += X[t, j] - X[t, j]
    # NaN and infinities are near nothing, and must not be stored.
    if total != 0.0:
        return UNSCORED
    scratch.near[0] = -1
    for s in range(size):
        distance = 0.0
        for j in range(X.shape[1]):
            difference = (X[t, j] - state.points[s, j]) * settings.scale
            distance += difference * difference
        # Strictly nearer: of equals the first stored one wins.
        if distance <= settings.radius_squared and distance < best:
            scratch.near[0], best = state.labels[s], distance
    return READY


@jit_inline
def _choose(scratch: _Scratch, draw: Draw, _settings: _Settings) -> tuple[int, bool]:
    if scratch.near[0] >= 0:
        return scratch.near[0], False
    return uniform_label(uniform(draw), scratch.propensities.shape[0]), True


@jit_inline
def _probabilities(scratch: _Scratch, _settings: _Settings) -> None:
    n_classes, near = scratch.propensities.shape[0], scratch.near[0]
    for i in range(n_classes):
        scratch.propensities[i] = 1.0 / n_classes if near < 0 else 0.0
    if near >= 0:
        scratch.propensities[near] = 1.0


@jit_inline
def _update(state: _Neighbors, X: Floats, t: int, scratch: _Scratch, answer: Answer, _settings: _Settings) -> bool:
    # Late feedback: an example within the radius of one stored since then would break the packing of Theorem 21.
    if not (answer.explored and answer.correct) or scratch.near[0] >= 0:
        return False
    s = state.size[0]
    for j in range(X.shape[1]):
        state.points[s, j] = X[t, j]
    state.labels[s] = answer.label
    state.size[0] = s + 1
    return True
