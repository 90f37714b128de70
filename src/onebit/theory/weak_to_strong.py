"""Theorem 5's proof, carried out: weak separators in the unit ball become strong ones in the rational kernel's space.

All numbers are exact but the coordinates of the vectors, which are irrational and come as floats. See
docs/theory/margin-transformation.md.

References
----------
Beygelzimer et al. (2019). ICML. Theorem 5 and its proof.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from onebit.bounds import sharper_margin, transformed_margin
from onebit.inputs import Floats, Integers, check_integer, check_rows, dense
from onebit.kernels import Rational
from onebit.labels import check_classes, check_labels, encode_labels
from onebit.streams import paper_weak, wedges
from onebit.theory.certificates import least_conditions
from onebit.theory.exact import Number, Objects, check_fraction, check_points
from onebit.theory.multivariate import FeatureMap
from onebit.theory.polynomials import (
    UNIT_BALL_SLACK,
    ChebyshevConstruction,
    HalfspacePolynomial,
    Halfspaces,
    RationalConstruction,
    check_unit_ball,
)
from onebit.theory.separability import margin as largest_margins

_Construction = type[HalfspacePolynomial]
_SIZES = (30, 100, 300, 1000, 3000, 10_000)  # how many rounds of `paper_weak` `measure_looseness` takes by default


class StrongSeparators:
    """Theorem 5's vectors u₁,…,u_K in the rational kernel's space, each as a polynomial in x.

    Parameters
    ----------
    weak_vectors : sequence of K sequences of numbers
        w₁,…,w_K, with Σ‖wᵢ‖² ≤ 1.
    margin : number
        γ, the weak margin that they have on the examples in question. A float is taken at its exact binary value.
    construction : ChebyshevConstruction or RationalConstruction, optional
        Theorem 7 or Theorem 8; by default the one with the larger margin, as in the proof.
    classes : None, int or list
        The label of each vector; 0…K−1 by default.

    Examples
    --------
    >>> wings = StrongSeparators([[0.6, 0], [0, 0], [-0.6, 0]], margin=0.5)
    >>> [round(float(value), 2) for value in wings.values([1, 0])]
    [2.04, -3.16, -20.14]
    >>> round(wings.proved_margin.log2, 2), round(wings.stated_margin.log2, 2)
    (-21.9, -22.9)
    """

    @classmethod
    def from_data(cls, X: Any, y: Any, construction: _Construction | None = None) -> "StrongSeparators":
        """Return those of the largest weak margin of labelled examples in the unit ball, sparse or not.

        Examples
        --------
        >>> made = StrongSeparators.from_data(*wedges())
        >>> made.squared_margin(*wedges()) >= Fraction(1, made.stated_margin.inverse_square)
        True
        """
        rows = dense(check_rows(X))
        found = largest_margins(rows, y)
        if found.weak_vectors is None:
            raise ValueError("X, y must be weakly separable for Theorem 5; see margin(X, y).weak_certificate")
        check_unit_ball(rows)
        gamma = weak_margin_of(found.weak_vectors, rows, encode_labels(check_labels(y, len(rows)), found.classes))
        return cls(found.weak_vectors, gamma, construction, classes=found.classes)

    def __init__(
        self, weak_vectors: Any, margin: Number, construction: _Construction | None = None, *, classes: Any = None
    ) -> None:
        self.weak_vectors = _check_vectors(weak_vectors)
        self.margin = check_fraction("margin", margin)
        stated = transformed_margin(len(self.weak_vectors), self.margin)
        self.classes = check_classes(len(self.weak_vectors) if classes is None else classes)
        if len(self.classes) != len(self.weak_vectors):
            raise ValueError(
                f"classes must have one label for each of the {len(self.weak_vectors)} vectors; got {classes!r}"
            )
        # γ₁ or γ₂, and how often the proof has it: 2γ₁ or 4γ₂.
        margins = {ChebyshevConstruction: (stated.chebyshev, 2), RationalConstruction: (stated.rational, 4)}
        self.construction = construction or max(margins, key=lambda each: margins[each][0].log2)
        if self.construction not in margins:
            raise ValueError(
                f"construction must be ChebyshevConstruction or RationalConstruction; got {construction!r}"
            )
        self.stated_margin, times = margins[self.construction]
        """γ₁ or γ₂, as Theorem 5 states it."""
        self.proved_margin = self.stated_margin._replace(factor=self.stated_margin.factor // times**2)
        """1/(√K·B), the strong margin that the proof gives."""

    @cached_property
    def polynomials(self) -> tuple[HalfspacePolynomial, ...]:
        """p₁,…,p_K: at least ½ on the own class, at most −½ on all others."""
        w = self.weak_vectors
        halfspaces = [Halfspaces((w[i] - np.delete(w, i, axis=0)) / 2, self.margin / 2) for i in range(len(w))]
        return tuple(self.construction(each) for each in halfspaces)

    @cached_property
    def feature_map(self) -> FeatureMap:
        """φ of the rational kernel, up to the polynomials' degree: the other coordinates of uᵢ are 0."""
        return FeatureMap(Rational(), len(self.weak_vectors[0]), max(p.degree_bound for p in self.polynomials))

    def values(self, x: Sequence[Number]) -> list[Fraction]:
        """Return p₁(x),…,p_K(x), exactly; ⟨uᵢ, φ(x)⟩ is pᵢ(x) times `proved_margin`."""
        return [p.evaluate(x) for p in self.polynomials]

    def squared_norms(self) -> list[Fraction]:
        """Return ‖u₁‖²,…,‖u_K‖², exactly: their sum is at most 1. It multiplies the polynomials out."""
        inverse = self.proved_margin.inverse_square
        return [self.feature_map.squared_vector_norm(p.expand()) / inverse for p in self.polynomials]

    def vectors(self) -> Floats:
        """Return u₁,…,u_K as rows of coordinates of `feature_map`, in floating point."""
        scale = 2.0**self.proved_margin.log2
        return np.array([self.feature_map.vector(p.expand()) * scale for p in self.polynomials])

    def squared_margin(self, X: Any, y: Any) -> Fraction:
        """Return the squared strong margin of u₁,…,u_K on labelled examples in the unit ball, exactly; 0 for none."""
        points = check_points("X", X)
        check_unit_ball(points)
        codes = encode_labels(check_labels(y, len(points)), self.classes)
        least = least_conditions("strong", np.array([self.values(x) for x in points]), codes).min()
        # Scores are the values times 1/(√K·B), and Definition 1 asks for half the margin on either side.
        return Fraction(max(2 * least, 0)) ** 2 / self.proved_margin.inverse_square


def weak_margin_of(vectors: Any, X: Any, positions: Any) -> Fraction:
    """Return the weak margin of vectors with Σ‖wᵢ‖² ≤ 1, by Definition 1, exactly; at most 0 if they have none.

    `positions` has the position of each example's class among the vectors.
    """
    w, points = _check_vectors(vectors), check_points("X", X)
    codes = encode_labels(check_labels(positions, len(points), "positions"), check_classes(len(w)), "positions")
    return Fraction(least_conditions("weak", points @ w.T, codes).min())


def _check_vectors(vectors: Any) -> Objects:
    w = check_points("vectors", vectors)
    square = (w * w).sum()
    if len(w) < 2 or square > 1 + UNIT_BALL_SLACK:
        raise ValueError(
            f"vectors must be at least two with Σ‖wᵢ‖² ≤ 1; got {len(w)} with {float(square):.6g}. Divide them by the "
            "square root of that sum"
        )
    return w


class Looseness(NamedTuple):
    """One data set's margins: weak before the kernel, strong after it."""

    data: str
    n_examples: int
    n_classes: int
    weak: float  # γ, the largest weak margin in R^d
    guaranteed_log2: float  # log₂ γ' as Theorem 5 states it
    sharper_log2: float  # and as its proof allows
    measured: float  # the largest strong margin in the rational kernel's space

    @property
    def measured_log2(self) -> float:
        """The logarithm of the measured margin."""
        return math.log2(self.measured)


def measure_looseness(sizes: Sequence[int] = _SIZES, seed: int = 0) -> list[Looseness]:
    """Return one row for Figure 1's wedges and one for the beginning of `paper_weak` at each size.

    The sizes are numbers of rounds, enough that all three classes occur.
    """
    counts = [check_integer("sizes", size, low=1) for size in sizes]
    # One draw for all sizes: a smaller set is the beginning of a larger one, so its margins are no smaller.
    X_all, y_all = paper_weak(rounds=max(counts, default=1), seed=seed)
    return [_measure_one("wedges", *wedges()), *(_measure_one("paper_weak", X_all[:n], y_all[:n]) for n in counts)]


def _measure_one(data: str, X: Floats, y: Integers) -> Looseness:
    """Return the row of one data set, which must be weakly separable and lie in the unit ball."""
    before, after = largest_margins(X, y), largest_margins(X, y, Rational())
    K = len(before.classes)
    if before.weak <= 0.0:
        raise ValueError(
            f"X, y must be weakly separable for Theorem 5; of {data!r} no weak margin was found, and it is at most "
            f"{before.weak_limit:.3g}"
        )
    guaranteed, sharper = transformed_margin(K, before.weak).log2, sharper_margin(K, before.weak).log2
    return Looseness(data, len(y), K, before.weak, guaranteed, sharper, after.strong)
