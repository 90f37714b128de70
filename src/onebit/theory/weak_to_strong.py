"""Theorem 5's proof, carried out: weak separators in the unit ball become strong ones in the rational kernel's space.

Let w₁,…,w_K with Σ‖wᵢ‖² ≤ 1 separate examples weakly with margin γ. Class i lies where every ⟨(wᵢ−wⱼ)/2, x⟩ ≥ γ/2, the
other classes where one of them is at most −γ/2. Theorem 7 or 8 makes of these K−1 halfspaces a polynomial pᵢ that is at
least ½ on class i and at most −½ on the others. By Lemma 9 it is ⟨cᵢ, φ(·)⟩, with a vector no longer than a number B
that depends on K and γ alone. The vectors uᵢ = cᵢ/(√K·B) have Σ‖uᵢ‖² ≤ 1 and scores of ½/(√K·B) or more to the right
side: by Definition 1 a strong margin of 1/(√K·B). That is 2γ₁ with Theorem 7 and 4γ₂ with Theorem 8, more than
Theorem 5 states.

All numbers are exact but the coordinates of uᵢ, which are irrational and come as floats.

References
----------
Beygelzimer et al. (2019). ICML. Theorem 5 and its proof.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from onebit.bounds.margin_transformation import InversePower, transformed_margin
from onebit.inputs import Floats, check_rows, dense
from onebit.kernels import Rational
from onebit.labels import check_classes, check_labels, encode_labels
from onebit.theory.exact import Number, Point, check_fraction, check_points, dot
from onebit.theory.feature_map import FeatureMap
from onebit.theory.polynomials import ChebyshevConstruction, HalfspacePolynomial, Halfspaces, RationalConstruction
from onebit.theory.polynomials.halfspaces import UNIT_BALL_SLACK
from onebit.theory.separability import margin as largest_margins

Construction = type[ChebyshevConstruction] | type[RationalConstruction]


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
    >>> wings.construction.__name__, wings.polynomials[0].degree_bound
    ('ChebyshevConstruction', 4)
    >>> [round(float(value), 2) for value in wings.values([1, 0])]
    [2.04, -3.16, -20.14]
    >>> sum(wings.squared_norms()) <= 1
    True
    >>> round(wings.proved_margin.log2, 2), round(wings.stated_margin.log2, 2)
    (-21.9, -22.9)
    """

    def __init__(
        self, weak_vectors: Any, margin: Number, construction: Construction | None = None, *, classes: Any = None
    ) -> None:
        self.weak_vectors = _check_vectors(weak_vectors)
        self.margin = check_fraction("margin", margin)
        stated = transformed_margin(len(self.weak_vectors), self.margin)
        self.classes = check_classes(len(self.weak_vectors) if classes is None else classes)
        if len(self.classes) != len(self.weak_vectors):
            raise ValueError(
                f"classes must have one label for each of the {len(self.weak_vectors)} vectors; got {classes!r}"
            )
        if construction is None:
            construction = ChebyshevConstruction if stated.larger is stated.chebyshev else RationalConstruction
        if construction not in (ChebyshevConstruction, RationalConstruction):
            raise ValueError(
                f"construction must be ChebyshevConstruction or RationalConstruction; got {construction!r}"
            )
        self.construction = construction
        self.stated_margin = stated.chebyshev if construction is ChebyshevConstruction else stated.rational
        """γ₁ or γ₂, as Theorem 5 states it."""

    @property
    def proved_margin(self) -> InversePower:
        """1/(√K·B), the strong margin that the proof gives: 2γ₁ or 4γ₂."""
        times = 2 if self.construction is ChebyshevConstruction else 4
        return self.stated_margin._replace(factor=self.stated_margin.factor // times**2)

    @cached_property
    def polynomials(self) -> tuple[HalfspacePolynomial, ...]:
        """p₁,…,p_K: at least ½ on the own class, at most −½ on all others."""
        return tuple(
            self.construction(Halfspaces(list(self._directions(i)), self.margin / 2))
            for i in range(len(self.weak_vectors))
        )

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
        """Return the square of the strong margin that u₁,…,u_K have on labelled examples, exactly; 0 if they have none.

        Parameters
        ----------
        X : sequence of sequences of numbers
            Examples in the unit ball.
        y : sequence
            Their labels.
        """
        points = check_points("X", X)
        _check_unit_ball(float(max(dot(x, x) for x in points)))
        codes = encode_labels(check_labels(y, len(points)), self.classes)
        least = min(
            value if i == code else -value
            for x, code in zip(points, codes.tolist(), strict=True)
            for i, value in enumerate(self.values(x))
        )
        # Scores are the values times 1/(√K·B), and Definition 1 asks for half the margin on either side.
        return max(2 * least, Fraction(0)) ** 2 / self.proved_margin.inverse_square

    def _directions(self, i: int) -> Iterator[Point]:
        own = self.weak_vectors[i]
        for j, other in enumerate(self.weak_vectors):
            if j != i:
                yield tuple((a - b) / 2 for a, b in zip(own, other, strict=True))


def strong_separators(X: Any, y: Any, construction: Construction | None = None) -> StrongSeparators:
    """Return Theorem 5's construction for labelled examples, from the separators with the largest weak margin.

    Parameters
    ----------
    X, y : arrays
        Weakly separable examples in the unit ball, sparse or not, and their labels.
    construction : ChebyshevConstruction or RationalConstruction, optional
        Theorem 7 or Theorem 8; by default the one with the larger margin.

    Examples
    --------
    >>> from onebit.streams import wedges
    >>> X, y = wedges()
    >>> made = strong_separators(X, y)
    >>> made.squared_margin(X, y) >= Fraction(1, made.stated_margin.inverse_square)
    True

    References
    ----------
    Beygelzimer et al. (2019). ICML. Theorem 5.
    """
    rows = dense(check_rows(X))
    found = largest_margins(rows, y)
    if found.weak_vectors is None:
        raise ValueError("X, y must be weakly separable for Theorem 5; see margin(X, y).weak_certificate")
    _check_unit_ball(found.radius**2)
    gamma = weak_margin_of(found.weak_vectors, rows, encode_labels(check_labels(y, len(rows)), found.classes))
    return StrongSeparators(found.weak_vectors, gamma, construction, classes=found.classes)


def weak_margin_of(vectors: Any, X: Any, positions: Any) -> Fraction:
    """Return the weak margin of given vectors on examples, by Definition 1, exactly; at most 0 if they have none.

    Parameters
    ----------
    vectors : sequence of K sequences of numbers
        w₁,…,w_K, with Σ‖wᵢ‖² ≤ 1.
    X : sequence of sequences of numbers
        The examples.
    positions : sequence of int
        The position of each example's class among the vectors.

    Examples
    --------
    >>> weak_margin_of([[0.5, 0], [-0.5, 0]], [[1, 0], [-0.5, 0.5]], [0, 1])
    Fraction(1, 2)
    """
    w, points = _check_vectors(vectors), check_points("X", X)
    codes = encode_labels(check_labels(positions, len(points), "positions"), check_classes(len(w)), "positions")
    scores = [[dot(v, x) for v in w] for x in points]
    leads: Iterator[Fraction] = (
        row[code] - score
        for row, code in zip(scores, codes.tolist(), strict=True)
        for i, score in enumerate(row)
        if i != code
    )
    return min(leads)


def _check_unit_ball(square: float) -> None:
    if square > 1 + UNIT_BALL_SLACK:
        raise ValueError(
            f"X must lie within the unit ball; the longest row has length {math.sqrt(square):.6g}. Scale X"
        )


def _check_vectors(vectors: Any) -> tuple[Point, ...]:
    w = check_points("vectors", vectors)
    square = sum((dot(v, v) for v in w), Fraction(0))
    if len(w) < 2 or square > 1 + UNIT_BALL_SLACK:
        raise ValueError(
            f"vectors must be at least two with Σ‖wᵢ‖² ≤ 1; got {len(w)} with {float(square):.6g}. Divide them by the "
            "square root of that sum"
        )
    return w
