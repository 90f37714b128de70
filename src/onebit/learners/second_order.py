"""The state of second-order learners: weights w over all classes and features, and a matrix A over the same.

Every step has a direction z = v ⊗ x, an outer product of a vector v over the classes (in SOBA one class gains and one
loses, in PNewtron all take part) with the features x. A gains weight·zzᵀ, the target θ loses pull·z, and the weights
become the point of the ball ‖w‖ ≤ D (the whole space, if D is infinite) where ½wᵀAw − θᵀw is smallest. A starts as a
multiple of the identity, the *floor*, and only grows: it is always positive definite.

A *rule* defines the step for an answer; a *form* takes it: the diagonal one, here, keeps only the diagonal of A, so
that a step takes O(Kd); the full one is in `second_order_full`.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onebit.engine.jit import jit_inline, jit_no_refcount
from onebit.engine.loop import FULL, UNSCORED, Algorithm, Record, ready_if_finite
from onebit.engine.state import LARGEST_SQUARE, State, check_finite, divisible_chance, unlocked
from onebit.game import Answer, Guess
from onebit.inputs import Floats, Integers, Rows, dense
from onebit.learners.base import Learner
from onebit.spaces.rule import find_rule

LAMBDA, SHIFT, MARGINS = range(3)
"""In `tallies`: the λ of the weights, the λ₀ of the stored inverse, and a sum for the rule."""
TALLIES = 3
RENEW_EVERY = 1000
"""Steps after which the inverse is recomputed; or the number of weights, if larger."""
TOLERANCE = 1e-12
"""How far, relatively, the length of the weights may be from the radius."""
_MOST_NEWTON_STEPS = 100


@jit_inline
def renew_after(n_weights: int) -> int:
    """Return after how many steps the inverse is recomputed."""
    return max(RENEW_EVERY, n_weights)


class JointScratch(NamedTuple):
    """Scratch arrays of one round."""

    scores: Floats
    current: Floats
    propensities: Floats
    shares: Floats
    """v: each class's share in the step's direction."""
    solved: Floats
    """A⁻¹z, and beside it room for one more vector; empty in the diagonal form."""
    spare: Floats


class JointSettings(NamedTuple):
    """The numbers that the compiled functions need."""

    rule: Any
    floor: float
    radius: float
    least_chance: float
    """The smallest propensity of a label, times the number of classes."""


class JointRule(NamedTuple):
    """How a learner guesses, and which step it takes on an answer: `onebit.engine.jit.jit_inline` functions.

    Attributes
    ----------
    home : str
        The rule's import path, for loading a saved learner: ``"package.module:NAME"``.
    choose, probabilities
        As in `Algorithm`.
    chance : (scratch, answer, settings) → float
        The propensity of the label when it was guessed.
    plan : (scratch, answer, chance, settings) → (weight, pull)
        Writes ``scratch.shares``; a weight of 0 means that there is nothing to learn.
    accept : (state, scratch, weight, reach) → bool
        Whether the step is taken, given zᵀA⁻¹z; None if always.
    """

    home: str
    choose: Callable[..., tuple[int, bool]]
    probabilities: Callable[..., None]
    chance: Callable[..., float]
    plan: Callable[..., tuple[float, float]]
    accept: Callable[..., bool] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return find_rule, (self.home,)  # compiled functions cannot be pickled; an import path can

    def __deepcopy__(self, _memo: Any) -> "JointRule":
        return self  # immutable


class Form(NamedTuple):
    """How steps are taken.

    Attributes
    ----------
    name : str
        For readers.
    reach : (state, X, t, scratch) → float
        zᵀA⁻¹z.
    absorb : (state, X, t, scratch, reach, weight, pull, settings)
        Takes the step.
    """

    name: str
    reach: Callable[..., float]
    absorb: Callable[..., None]


@jit_inline
def _score(state: Any, X: Floats, t: int, scratch: JointScratch, settings: JointSettings) -> int:
    n, n_classes, square = X.shape[1], scratch.current.shape[0], 0.0
    if state.worn[0] >= renew_after(state.weights.shape[0]):
        return FULL
    for j in range(n):
        square += X[t, j] * X[t, j]
    if not square * n_classes <= LARGEST_SQUARE * settings.least_chance:  # nor is NaN
        return UNSCORED
    for i in range(n_classes):
        total = 0.0
        for j in range(n):
            total += X[t, j] * state.weights[i * n + j]
        scratch.current[i] = total
    return ready_if_finite(scratch.current)


@jit_inline
def _always(_state: Any, _scratch: JointScratch, _weight: float, _reach: float) -> bool:
    return True


@cache
def _learns(rule: JointRule, form: Form) -> Callable[..., bool]:
    """Return the compiled (state, X, t, scratch, answer, chance, settings) → changed."""
    plan, reach_of, absorb = rule.plan, form.reach, form.absorb
    accept, is_choosy = rule.accept or _always, rule.accept is not None or form.name == "full"

    def learn(
        state: Any, X: Floats, t: int, scratch: JointScratch, answer: Answer, chance: float, settings: JointSettings
    ) -> bool:
        weight, pull = plan(scratch, answer, chance, settings)
        if weight == 0.0:
            return False
        reach = reach_of(state, X, t, scratch) if is_choosy else 0.0
        if not accept(state, scratch, weight, reach):
            return False
        absorb(state, X, t, scratch, reach, weight, pull, settings)
        return True

    return jit_no_refcount(learn)


@cache
def _joint_algorithm(rule: JointRule, form: Form) -> Algorithm:
    """Return the algorithm of a rule in a form."""
    learn, chance = _learns(rule, form), rule.chance

    def update(state: Any, X: Floats, t: int, scratch: JointScratch, answer: Answer, settings: JointSettings) -> bool:
        return learn(state, X, t, scratch, answer, chance(scratch, answer, settings), settings)

    return Algorithm(_score, rule.choose, rule.probabilities, jit_inline(update))


class JointState(State):
    """What both forms share. The inverse of the full form is renewed before it is used."""

    form: ClassVar[Form]
    may_have_kernel = False
    per_class: ClassVar[tuple[str, ...]] = "scores", "current", "propensities", "shares"

    def __init__(self, rule: JointRule, settings: JointSettings, n_features: int, n_classes: int) -> None:
        self.rule, self.settings, self.n_features, self.n_classes = rule, settings, n_features, n_classes
        self.arrays = self.new_arrays(n_features * n_classes)
        self.scratch = self.new_scratch()

    @abstractmethod
    def new_arrays(self, n: int) -> Any:
        """Return initial arrays for n weights."""

    @abstractmethod
    def scratch_size(self) -> int:
        """Return the length of the scratch vectors."""

    def new_scratch(self) -> JointScratch:
        """Return empty scratch arrays."""
        scores, propensities, shares = np.empty((3, self.n_classes))
        solved, spare = np.empty((2, self.scratch_size()))
        return JointScratch(scores, scores, propensities, shares, solved, spare)

    def algorithm(self, is_sparse: bool) -> Algorithm:
        """Return the rule's algorithm; rows are already dense."""
        return _joint_algorithm(self.rule, self.form)

    def check_arrays(self, arrays: Any) -> None:
        """Raise if A is below its start, or a sum is negative."""
        check_finite(*(array for array in arrays if array.dtype.kind == "f"))
        diagonal = arrays.matrix if arrays.matrix.ndim == 1 else arrays.matrix.diagonal()
        if not (diagonal >= self.settings.floor).all() or not (arrays.tallies >= 0.0).all():
            raise ValueError("its matrix is less than at the start, or a sum is below 0")

    def renew_inverse(self) -> None:
        """Recompute what rounding has degraded."""

    def make_room(self, rows: Rows, t: int) -> None:
        """Recompute the inverse: the loop stops for this."""
        self.renew_inverse()

    def _tidy(self) -> None:
        if self.arrays.worn[0] >= renew_after(len(self.arrays.weights)):
            self.renew_inverse()
            self.renew()

    def update(self, guess: Guess, correct: bool, truth: int) -> bool:
        """Learn from the answer to one guess."""
        changed = super().update(guess, correct, truth)
        self._tidy()
        return changed

    def play(self, X: Rows, y: Integers, seed: int, first_round: int, record: Record) -> None:
        """Play a stream."""
        super().play(X, y, seed, first_round, record)
        self._tidy()

    def learn_from_log(self, row: Rows, label: int, correct: bool, truth: int, propensity: float | None) -> bool:
        """Learn from a round that another system played, with the propensity of its label."""
        prepared = dense(row)
        self.score(prepared, row)
        self._scored_round = -1
        chance = divisible_chance(propensity, prepared)
        learn, answer = _learns(self.rule, self.form), Answer(label, False, correct, truth)
        try:
            return learn(self.arrays, unlocked(prepared), 0, self.scratch, answer, chance, self.settings)
        finally:
            self._tidy()

    def score_rows(self, rows: Rows) -> Floats:
        """Return ⟨wᵢ, x⟩ for every row and class."""
        scores: Floats = dense(rows) @ self.arrays.weights.reshape(self.n_classes, self.n_features).T
        return scores

    def learned(self) -> dict[str, Floats]:
        """Return the weights, one row per class."""
        return {"weights": self.arrays.weights.reshape(self.n_classes, self.n_features).copy()}

    def add_class(self) -> None:
        """Add a block to the matrix, a multiple of the identity."""
        blank = self.new_arrays(self.n_features * (self.n_classes + 1))._asdict()
        for name, array in self.arrays._asdict().items():
            blank[name][tuple(slice(n) for n in array.shape)] = array
        self.n_classes += 1
        self.arrays = type(self.arrays)(**blank)
        self.renew()


# The diagonal form.


@jit_no_refcount
def multiplier(values: Floats, target: Floats, radius: float, start: float) -> float:
    """Return the λ ≥ 0 with which w = (A + λI)⁻¹θ has the smallest ½wᵀAw − θᵀw in the ball ‖w‖ ≤ D.

    `values` are the eigenvalues of A, all above 0, `target` is θ in its eigenvectors, `start` the last λ, or 0. Where
    A⁻¹θ is longer than D it is the one λ > 0 for which ‖w(λ)‖ = D: one equation, ∑ θᵢ²/(aᵢ + λ)² = D². Newton's method
    is applied to 1/‖w(λ)‖ = 1/D, whose left side is concave and nearly a line (Moré and Sorensen, 1983): from any λ it
    needs a few steps, all but the first from the same side. With v = w(λ), d‖v‖²/dλ = −2vᵀ(A + λI)⁻¹v, so the step is
    ‖v‖²/(vᵀ(A + λI)⁻¹v)·(‖v‖/D − 1).
    """
    shift = start
    for _ in range(_MOST_NEWTON_STEPS):
        square, slope = 0.0, 0.0
        for i in range(values.shape[0]):
            part = target[i] / (values[i] + shift)
            square += part * part
            slope += part * part / (values[i] + shift)
        length = math.sqrt(square)
        is_within = length <= radius * (1.0 + TOLERANCE)
        if is_within and (shift == 0.0 or length >= radius * (1.0 - TOLERANCE)):
            return shift
        following = max(0.0, shift + square / slope * (length / radius - 1.0)) if slope > 0.0 else 0.0
        if following == shift:
            return shift
        shift = following
    return shift


class Diagonal(NamedTuple):
    """What is learned; class i's feature j is entry i·d + j."""

    weights: Floats
    target: Floats
    """θ: without a ball the weights are A⁻¹θ."""
    matrix: Floats
    """The diagonal of A."""
    tallies: Floats
    worn: Integers
    """Always 0: a diagonal needs no inverse."""


@jit_inline
def _reach(state: Diagonal, X: Floats, t: int, scratch: JointScratch) -> float:
    n, total = X.shape[1], 0.0
    for i in range(scratch.shares.shape[0]):
        if scratch.shares[i] != 0.0:
            for j in range(n):
                z = scratch.shares[i] * X[t, j]
                total += z * z / state.matrix[i * n + j]
    return total


@jit_inline
def _absorb(
    state: Diagonal,
    X: Floats,
    t: int,
    scratch: JointScratch,
    _reach: float,
    weight: float,
    pull: float,
    settings: JointSettings,
) -> None:
    n, weights, target, matrix = X.shape[1], state.weights, state.target, state.matrix
    for i in range(scratch.shares.shape[0]):
        if scratch.shares[i] != 0.0:
            for j in range(n):
                z, at = scratch.shares[i] * X[t, j], i * n + j
                matrix[at] += weight * z * z
                target[at] -= pull * z
                weights[at] = target[at] / matrix[at]
    if settings.radius < math.inf:
        shift = multiplier(matrix, target, settings.radius, state.tallies[LAMBDA])
        state.tallies[LAMBDA] = shift
        for at in range(weights.shape[0]):
            weights[at] = target[at] / (matrix[at] + shift)


_DIAGONAL = Form("diagonal", _reach, _absorb)


class DiagonalState(JointState):
    """The diagonal form: three numbers for every class and feature."""

    arrays: Diagonal
    form = _DIAGONAL

    def new_arrays(self, n: int) -> Diagonal:
        """Return initial arrays for n weights."""
        diagonal = np.full(n, self.settings.floor)
        return Diagonal(np.zeros(n), np.zeros(n), diagonal, np.zeros(TALLIES), np.zeros(1, dtype=np.int64))

    def check_arrays(self, arrays: Diagonal) -> None:
        """Raise if `worn` is not 0, which would stop the loop forever."""
        super().check_arrays(arrays)
        if arrays.worn[0] != 0:
            raise ValueError("a diagonal is never worn")

    def scratch_size(self) -> int:
        """Return 0: a step needs no scratch vectors."""
        return 0


class SecondOrderLearner(Learner):
    """A learner with one matrix over all classes, or its diagonal."""

    def effort(self, *, rounds: int, n_features: int, n_classes: int) -> float:
        """Return the cost of one matrix over all classes, 0 for the diagonal."""
        return 0.0 if getattr(self, "diagonal", True) else float(rounds) * (n_classes * n_features) ** 2
