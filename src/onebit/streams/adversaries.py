"""Streams on which mistakes cannot be avoided: the constructions behind the paper's lower bounds.

==============================  ==============  =========================================  ====================
construction                    from            expected mistakes, at least                binds
==============================  ==============  =========================================  ====================
`bandit_sequence`               Theorem 3       ½(K−1)⌊¼(R/γ)²⌋                            bandit learners
`one_example_sequence`          its Remark      ½(K−1)                                     bandit learners
`full_information_sequence`     Theorem 11      ½⌊(R/γ)²⌋                                  every learner
`IgnorantAdversary`             Theorem 24      (1/10)(1/(160γ))^((d−2)/4)                 ignorant learners
==============================  ==============  =========================================  ====================

The first three draw their labels from a seed and return a `HardSequence`. The last adapts to the learner while it
plays, and returns its `HardSequence` afterwards. Each carries vectors that separate its examples: `proved_margin`
checks them. K = n_classes, R = radius, γ = margin, d = n_features.
"""

import math

import numpy as np

from onebit.bounds import BOUNDS
from onebit.bounds.claims import squared_ratio
from onebit.bounds.lower import bandit_examples, full_information_examples, most_directions
from onebit.inputs import check_integer
from onebit.streams.hard_sequence import Challenge, HardSequence, check_size, proved_margin, random_labels
from onebit.streams.ignorant_adversary import IgnorantAdversary
from onebit.streams.packing import Packing, pack_directions

__all__ = [
    "Challenge",
    "HardSequence",
    "IgnorantAdversary",
    "Packing",
    "bandit_sequence",
    "full_information_sequence",
    "most_directions",
    "one_example_sequence",
    "pack_directions",
    "proved_margin",
]


def bandit_sequence(n_classes: int, margin: float, radius: float = 1.0, seed: int = 0) -> HardSequence:
    """Return Theorem 3's examples: vectors with one coordinate in common, each shown K−1 times with a random label.

    M = ⌊¼(R/γ)²⌋ vectors v_j = (R/√2)(e_j + e_{M+1}). Each label must be found by trying: with K−1 questions that costs
    ½(K−1) mistakes on average, whatever was learned from the other vectors.

    Parameters
    ----------
    n_classes : int
        K, from 2 to (R/γ)².
    margin : float
        γ, the strong margin; at most R/2.
    radius : float
        R, the length of every example.
    seed : int
        Seed of the labels.

    Examples
    --------
    >>> hard = bandit_sequence(n_classes=3, margin=0.1)
    >>> hard.X.shape, hard.lower_bound, round(hard.proved_margin(), 9)
    ((50, 26), 25.0, 0.1)

    References
    ----------
    Beygelzimer et al. (2019). ICML. Theorem 3.
    """
    K = check_integer("n_classes", n_classes, low=2)
    ratio, M = squared_ratio(radius, margin), bandit_examples(radius, margin)
    if ratio < K:
        raise ValueError(
            f"n_classes must be at most (radius/margin)² = {float(ratio):.6g} for Theorem 3; got {K}. Use a smaller "
            "margin, or one_example_sequence, which allows four times as many"
        )
    if M == 0:
        raise ValueError(
            f"margin must be at most radius/2 = {radius / 2:.6g}, or Theorem 3 has no example to show; got {margin!r}. "
            "Use a smaller margin, or one_example_sequence"
        )
    check_size(M * (K - 1), M + 1, margin)
    labels = random_labels(M, K, seed)
    v = np.zeros((M, M + 1))
    v[:, :M] = np.eye(M)
    v[:, M] = 1.0
    # The common coordinate pulls every score down by γ/2, a label's own coordinate lifts its score by γ.
    w = np.zeros((K, M + 1))
    w[labels, np.arange(M)] = math.sqrt(2.0) * margin / radius
    w[:, M] = -margin / (math.sqrt(2.0) * radius)
    claim = BOUNDS["3"].claim(n_classes=K, radius=radius, margin=margin)
    return HardSequence(
        Challenge("Theorem 3", "strong", K, M + 1, M * (K - 1), radius, margin, stated=claim, forced=claim),
        # K−1 times: after as many wrong guesses the label is known, and another round would force nothing.
        np.repeat(v * (radius / math.sqrt(2.0)), K - 1, axis=0),
        np.repeat(labels, K - 1),
        w,
    )


def one_example_sequence(n_classes: int, margin: float, radius: float = 1.0, seed: int = 0) -> HardSequence:
    """Return the Remark's single example, shown K times with one random label.

    The Remark asks for γ ≤ R and nothing else; what it needs is γ ≤ 2R/√K, beyond which no strongly separable example
    exists.

    Parameters
    ----------
    n_classes : int
        K, from 2 to 4(R/γ)².
    margin : float
        γ, the strong margin.
    radius : float
        R, the length of the example.
    seed : int
        Seed of the label.

    Examples
    --------
    >>> hard = one_example_sequence(n_classes=5, margin=0.5)
    >>> hard.X.shape, hard.lower_bound, hard.proved_margin()
    ((5, 1), 2.0, 0.5)

    References
    ----------
    Beygelzimer et al. (2019). ICML. Remark after Theorem 3.
    """
    K = check_integer("n_classes", n_classes, low=2)
    if 4 * squared_ratio(radius, margin) < K:
        raise ValueError(
            f"margin must be at most 2·radius/√n_classes = {2 * radius / math.sqrt(K):.6g}: {K} classes have no larger "
            f"strong margin within radius {radius!r}; got {margin!r}. Use a smaller margin or fewer classes"
        )
    label = int(random_labels(1, K, seed)[0])
    # In one feature: the right class scores γ/2, every other −γ/2.
    w = np.full((K, 1), -margin / (2.0 * radius))
    w[label] *= -1.0
    claim = BOUNDS["3-remark"].claim(n_classes=K, radius=radius, margin=margin)
    return HardSequence(
        Challenge("Remark", "strong", K, 1, K, radius, margin, stated=claim, forced=claim),
        np.full((K, 1), float(radius)),
        np.full(K, label, dtype=np.int64),
        w,
    )


def full_information_sequence(n_classes: int, margin: float, radius: float = 1.0, seed: int = 0) -> HardSequence:
    """Return Theorem 11's examples: orthogonal vectors R·e_t with random labels, about which nothing can be learned.

    T = ⌊(R/γ)²⌋ of them, each shown once. Every learner, with full information or not, makes exactly T(1−1/K) mistakes
    on average.

    Parameters
    ----------
    n_classes : int
        K, at least 2.
    margin : float
        γ, the weak margin; at most R.
    radius : float
        R, the length of every example.
    seed : int
        Seed of the labels.

    Examples
    --------
    >>> hard = full_information_sequence(n_classes=3, margin=0.1)
    >>> hard.X.shape, hard.lower_bound, round(hard.proved_margin(), 9)
    ((100, 100), 50.0, 0.1)

    References
    ----------
    Beygelzimer et al. (2019). ICML. Theorem 11.
    """
    K = check_integer("n_classes", n_classes, low=2)
    T = full_information_examples(radius, margin)
    if T == 0:
        raise ValueError(
            f"margin must be at most radius = {radius!r}, or Theorem 11 has no example to show; got {margin!r}. Use a "
            "smaller margin"
        )
    check_size(T, T, margin)
    labels = random_labels(T, K, seed)
    # Each class adds up (γ/R)e_t over its own rounds, so that Σ‖w‖² = T(γ/R)² ≤ 1.
    w = np.zeros((K, T))
    w[labels, np.arange(T)] = margin / radius
    stated, forced = (
        BOUNDS[theorem].claim(n_classes=K, radius=radius, margin=margin) for theorem in ("11", "11-sharp")
    )
    return HardSequence(
        Challenge("Theorem 11", "weak", K, T, T, radius, margin, stated, forced),
        radius * np.eye(T),
        labels,
        w,
    )
