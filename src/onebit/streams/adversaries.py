"""Streams on which mistakes cannot be avoided: the constructions behind the paper's lower bounds.

`bandit_sequence` (Theorem 3), `one_example_sequence` (its Remark) and `full_information_sequence` (Theorem 11) draw
their labels from a seed and return a `HardSequence`. `IgnorantAdversary` (Theorem 24) adapts to the learner while it
plays, and returns its `HardSequence` afterwards. K = n_classes, R = radius, γ = margin, d = n_features. The proofs are
in docs/theory/lower-bounds.md.

References
----------
Beygelzimer et al. (2019). ICML. Definition 1, Theorems 3, 11 and 24, Lemma 25, Algorithm 5.
Long (1995). On the sample complexity of PAC learning half-spaces against the uniform distribution. IEEE Transactions on
Neural Networks 6. Lemma 6.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from onebit.bounds import BOUNDS, Claim, most_directions, squared_ratio
from onebit.engine.randomness import STREAM, random_numbers
from onebit.inputs import Floats, Integers, check_integer, check_seed
from onebit.streams.data_set import LearnerView

_FEASIBLE_DIRECTIONS = 100_000  # more take minutes to find and hours to play: time grows with their square
_SLACK = 1e-12  # the separators' squared lengths sum to 1 but for rounding
_MOST_NUMBERS = 250_000_000  # two gigabytes of floats
_BLOCK = 128  # directions drawn at a time, so that comparing them with those kept is one matrix product


@dataclass(frozen=True)
class Challenge:
    """A lower bound's sequence before it is drawn: its size, its margin, and the mistakes it forces."""

    name: str  # where it comes from: "Theorem 3"
    kind: Literal["weak", "strong"]  # which of the two separabilities of Definition 1 is proved
    n_classes: int
    n_features: int
    rounds: int
    radius: float  # no example is longer
    margin: float  # γ, the margin with which the examples are separable, at least
    stated: Claim  # the theorem: expected mistakes over all random numbers, and the learners it covers
    forced: Claim  # the most that the same construction forces on every learner it covers


@dataclass(frozen=True)
class HardSequence:
    """Labelled examples on which mistakes cannot be avoided.

    A label may never occur: give the learner ``classes=challenge.n_classes``. The separators are the vectors of the
    proof, one for each class, Σ‖wᵢ‖² ≤ 1.
    """

    challenge: Challenge
    X: Floats
    y: Integers
    separators: Floats

    @property
    def lower_bound(self) -> float | None:
        """Expected mistakes of any learner that the theorem binds; None beyond a float."""
        return self.challenge.stated.value

    def proved_margin(self) -> float:
        """Return the margin that the separators prove, by Definition 1."""
        return proved_margin(self.X, self.y, self.separators, self.challenge.kind)


def proved_margin(X: Floats, y: Integers, separators: Floats, kind: str) -> float:
    """Return the largest γ for which given vectors satisfy Definition 1; not positive if they separate nothing.

    Parameters
    ----------
    X, y, separators : arrays
        Examples; labels that count the rows of `separators`; w₁…w_K, of which Σ‖wᵢ‖² must not exceed 1.
    kind : {"weak", "strong"}
        Weak: the own score exceeds every other by γ. Strong: it is at least γ/2, every other at most −γ/2.

    Examples
    --------
    >>> X, W = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.5, -0.5], [-0.5, 0.5]])
    >>> proved_margin(X, np.array([0, 1]), W, "weak"), proved_margin(X, np.array([0, 1]), W, "strong")
    (1.0, 1.0)
    """
    size = float(np.sum(separators**2))
    if size > 1.0 + _SLACK:
        raise ValueError(f"separators must have Σ‖w‖² at most 1; got {size!r}. Divide them by {size**0.5:.6g}")
    scores = X @ separators.T
    # The best of the other scores decides for both kinds: weak compares it with the own score, strong with −γ/2.
    is_own = np.arange(len(separators)) == y[:, None]
    own, best_other = scores[is_own], np.where(is_own, -np.inf, scores).max(axis=1)
    if kind == "weak":
        return float((own - best_other).min())
    return 2.0 * float(np.minimum(own, -best_other).min())


def _check_size(rounds: int, n_features: int, margin: float, theorem: str, largest: str) -> None:
    if not rounds:
        problem = f"margin must be at most {largest}, or {theorem} has no example to show; got {margin!r}"
        raise ValueError(f"{problem}. Use a smaller margin")
    if rounds * n_features > _MOST_NUMBERS:
        needed = f"{margin!r} needs {rounds} rounds of {n_features} features, more than {_MOST_NUMBERS} numbers"
        raise ValueError(f"margin is too small to write the examples down: {needed}. Use a larger margin")


def _random_labels(n: int, n_classes: int, seed: int) -> Integers:
    numbers = random_numbers(check_seed(seed), STREAM).random(n)
    return np.minimum((numbers * n_classes).astype(np.int64), n_classes - 1)


def bandit_sequence(n_classes: int, margin: float, radius: float = 1.0, seed: int = 0) -> HardSequence:
    """Return Theorem 3's examples: vectors with one coordinate in common, each shown K−1 times with a random label.

    M = ⌊¼(R/γ)²⌋ vectors v_j = (R/√2)(e_j + e_{M+1}). Each label must be found by trying: with K−1 questions that costs
    ½(K−1) mistakes on average, whatever was learned from the other vectors.

    Parameters
    ----------
    n_classes, margin, radius, seed : int, float, float, int
        K, from 2 to (R/γ)²; γ, the strong margin, at most R/2; R, the length of every example; seed of the labels.

    Examples
    --------
    >>> hard = bandit_sequence(n_classes=3, margin=0.1)
    >>> hard.X.shape, hard.lower_bound, round(hard.proved_margin(), 9)
    ((50, 26), 25.0, 0.1)
    """
    K = check_integer("n_classes", n_classes, low=2)
    claim = BOUNDS["3"].claim(n_classes=K, radius=radius, margin=margin)
    M = math.floor(squared_ratio(radius, margin) / 4)
    _check_size(M * (K - 1), M + 1, margin, "Theorem 3", f"radius/2 = {radius / 2:.6g}")
    labels = _random_labels(M, K, seed)
    # The common coordinate pulls every score down by γ/2, a label's own coordinate lifts its score by γ.
    w = np.zeros((K, M + 1))
    w[labels, np.arange(M)] = math.sqrt(2.0) * margin / radius
    w[:, M] = -margin / (math.sqrt(2.0) * radius)
    challenge = Challenge("Theorem 3", "strong", K, M + 1, M * (K - 1), radius, margin, stated=claim, forced=claim)
    v = np.column_stack([np.eye(M), np.ones(M)]) * (radius / math.sqrt(2.0))
    # K−1 times: after as many wrong guesses the label is known, and another round would force nothing.
    return HardSequence(challenge, np.repeat(v, K - 1, axis=0), np.repeat(labels, K - 1), w)


def one_example_sequence(n_classes: int, margin: float, radius: float = 1.0, seed: int = 0) -> HardSequence:
    """Return the Remark's single example, shown K times with one random label.

    Parameters are those of `bandit_sequence`, with K from 2 to 4(R/γ)²: beyond it no strongly separable example exists.

    Examples
    --------
    >>> hard = one_example_sequence(n_classes=5, margin=0.5)
    >>> hard.X.shape, hard.lower_bound, hard.proved_margin()
    ((5, 1), 2.0, 0.5)
    """
    K = check_integer("n_classes", n_classes, low=2)
    claim = BOUNDS["3-remark"].claim(n_classes=K, radius=radius, margin=margin)
    label = int(_random_labels(1, K, seed)[0])
    # In one feature: the right class scores γ/2, every other −γ/2.
    w = np.full((K, 1), -margin / (2.0 * radius))
    w[label] *= -1.0
    challenge = Challenge("Remark", "strong", K, 1, K, radius, margin, stated=claim, forced=claim)
    return HardSequence(challenge, np.full((K, 1), float(radius)), np.full(K, label, dtype=np.int64), w)


def full_information_sequence(n_classes: int, margin: float, radius: float = 1.0, seed: int = 0) -> HardSequence:
    """Return Theorem 11's examples: orthogonal vectors R·e_t with random labels, about which nothing can be learned.

    T = ⌊(R/γ)²⌋ of them, each shown once. Every learner, with full information or not, makes exactly T(1−1/K) mistakes
    on average. Parameters are those of `bandit_sequence`, with K ≥ 2 and γ, the weak margin, at most R.

    Examples
    --------
    >>> hard = full_information_sequence(n_classes=3, margin=0.1)
    >>> hard.X.shape, hard.lower_bound, round(hard.proved_margin(), 9)
    ((100, 100), 50.0, 0.1)
    """
    K = check_integer("n_classes", n_classes, low=2)
    T = math.floor(squared_ratio(radius, margin))
    _check_size(T, T, margin, "Theorem 11", f"radius = {radius!r}")
    labels = _random_labels(T, K, seed)
    # Each class adds up (γ/R)e_t over its own rounds, so that Σ‖w‖² = T(γ/R)² ≤ 1.
    w = np.zeros((K, T))
    w[labels, np.arange(T)] = margin / radius
    stated, forced = (BOUNDS[name].claim(n_classes=K, radius=radius, margin=margin) for name in ("11", "11-sharp"))
    challenge = Challenge("Theorem 11", "weak", K, T, T, radius, margin, stated, forced)
    return HardSequence(challenge, radius * np.eye(T), labels, w)


@dataclass(frozen=True)
class _Packing:
    """Lemma 25's vectors v, the normals u of their hyperplanes, and whether they are all ⌊N⌋ of the lemma."""

    margin: float
    u: Floats
    v: Floats
    is_complete: bool


def pack_directions(margin: float, n_features: int, directions: int | None = None, seed: int = 0) -> _Packing:
    """Return Lemma 25's vectors `v`, and `u`, the normals of their hyperplanes; or as many as are asked for.

    Fewer directions of the same seed are the beginning of more.

    Parameters
    ----------
    margin, n_features : float, int
        γ, below 1/160; d, at least 2.
    directions : int, optional
        How many, at most `most_directions` and at most 100 000; all of them by default.
    seed : int
        Seed of the directions.

    Examples
    --------
    >>> packing = pack_directions(margin=0.001, n_features=5)
    >>> products = packing.u @ packing.v.T
    >>> len(packing.v), bool((products[~np.eye(15, dtype=bool)] <= -0.001).all())
    (15, True)
    """
    most = most_directions(margin, n_features)
    if directions is None and most > _FEASIBLE_DIRECTIONS:
        raise ValueError(
            f"directions must be given: Lemma 25 has about 10^{math.log10(most):.1f} of them for margin {margin!r} and "
            f"n_features {n_features}, too many to build. Pass directions={_FEASIBLE_DIRECTIONS} or fewer"
        )
    wanted = most if directions is None else directions
    n = check_integer("directions", wanted, low=1, high=min(most, _FEASIBLE_DIRECTIONS))
    # The lemma's own numbers: an angle of √(40γ) gives ⟨z_i, z_j⟩ ≤ 1 − 8γ.
    z = _spread(n, n_features - 1, math.cos(math.sqrt(40.0 * margin)), check_seed(seed))
    half = np.full((n, 1), 0.5)
    u, v = np.hstack([0.5 * z, -half * (1.0 - 4.0 * margin)]), np.hstack([0.5 * z, half])
    u.setflags(write=False)
    v.setflags(write=False)
    return _Packing(float(margin), u, v, n == most)


def _spread(n: int, dimension: int, most_cosine: float, seed: int) -> Floats:
    """Return unit vectors no two of which have a larger inner product, greedily."""
    generator = random_numbers(seed, STREAM)
    kept, size = np.empty((n, dimension)), 0
    while size < n:
        drawn = generator.standard_normal((_BLOCK, dimension))
        drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        nearest = (drawn @ kept[:size].T).max(axis=1, initial=-1.0)
        before = size
        # Those far enough from what was kept before the block must still be far enough from each other.
        for z in drawn[nearest <= most_cosine]:
            if size < n and (kept[before:size] @ z).max(initial=-1.0) <= most_cosine:
                kept[size] = z
                size += 1
    return kept


class IgnorantAdversary:
    """Shows direction after direction as label 0 until the learner is nearly sure of it, then insists on label 1.

    Phase 1: while the learner guesses label 1 with a probability above q₀ = 1/√T, the next direction has label 0; each
    such round costs more than q₀ mistakes. Phase 2: as soon as the probability is at most q₀, that direction has label
    1, now and for the rest of the T rounds; a learner that does not change after a mistake errs until the q₀ comes up.
    With a single direction (T = 1) it takes the less likely label. It is an `AdaptiveStream`, made for one game.

    Parameters
    ----------
    packing : object
        From `pack_directions`; T is the number of its directions.

    Guarantee
    ---------
    Ignorant learners make at least (1/10)(1/(160γ))^((d−2)/4) expected mistakes (Theorem 24; √T/10 with T directions of
    a larger packing). The same adversary forces (√T−1)(1−(1−1/√T)^T): what the proof sums up is concave in the round in
    which phase 2 starts, so it is smallest for the first or the last. Some ignorant learner makes no more.

    Examples
    --------
    >>> import onebit
    >>> adversary = IgnorantAdversary(pack_directions(margin=0.001, n_features=8))
    >>> onebit.play(onebit.NearestNeighbor(radius=0.001), adversary, seed=1).mistakes
    130
    >>> hard = adversary.played()
    >>> hard.X.shape, hard.proved_margin() >= 0.001
    ((244, 8), True)
    """

    classes: ClassVar[int] = 2

    def __init__(self, packing: _Packing) -> None:
        self.packing, gamma = packing, packing.margin
        T, d = packing.v.shape
        self.n_features = d
        # Only all of Lemma 25's directions give the theorem's number; with fewer, their own number takes its place.
        whole = BOUNDS["24"].claim(margin=gamma, dimension=d)
        stated = whole if packing.is_complete else BOUNDS["24-directions"].claim(directions=T)
        forced = BOUNDS["24-directions-sharp"].claim(directions=T)
        self.challenge = Challenge("Theorem 24", "strong", 2, d, T, 1.0, gamma, stated, forced)
        self._shown: list[int] = []
        self._labels: list[int] = []
        self._turned: int | None = None

    def next(self, learner: LearnerView) -> tuple[Floats, int] | None:
        """Return the next features and their label, or None after T rounds."""
        t, T = len(self._shown), len(self.packing.v)
        if t == T:
            return None
        # In phase 2 it need not ask the learner any more: an ignorant learner does not change.
        if self._turned is None:
            propensities = learner.probabilities(self.packing.v[t])
            if len(propensities) != self.classes:
                raise ValueError(f"learner must have two classes against this adversary; got {len(propensities)}")
            first, second = map(float, propensities)
            # For T = 1, q₀ would be 1, and the proof's 1 − q₀ nothing; the less likely label costs half a mistake.
            if first >= 1.0 - 1.0 / math.sqrt(T) if T > 1 else second < first:
                self._turned = t
        shown = t if self._turned is None else self._turned
        self._shown.append(shown)
        self._labels.append(0 if self._turned is None else 1)
        return self.packing.v[shown], self._labels[-1]

    def played(self) -> HardSequence:
        """Return the examples shown so far, with vectors that separate them.

        Phase 2 makes u of its direction the normal: w = ∓u/2. If it never started, there is one label, and w = ±e_d/√2.
        """
        if not self._shown:
            raise ValueError("played has nothing to return before the first round; play the adversary first")
        if self._turned is None:
            normal = np.zeros(self.n_features)
            normal[-1] = -math.sqrt(0.5)
        else:
            normal = self.packing.u[self._turned] / 2.0
        shown, separators = self.packing.v[self._shown], np.array([-normal, normal])
        return HardSequence(self.challenge, shown, np.array(self._labels), separators)
