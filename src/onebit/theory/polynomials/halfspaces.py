"""Intersections of halfspaces with a margin, and polynomials that tell the inside from the outside.

For directions v₁,…,v_m of length at most 1 and a margin γ in (0, 1), within the unit ball:

    R⁺ = {x : ⟨vᵢ,x⟩ ≥ γ for every i}        R⁻ = {x : ⟨vᵢ,x⟩ ≤ −γ for some i}

Theorems 7 and 8 each build a polynomial p with p ≥ ½ on R⁺ and p ≤ −½ on R⁻, and bound its degree and its norm without
regard to the number of variables. In the band between the two regions p may do as it likes.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from onebit.inputs import Floats, Integers
from onebit.theory.exact import Number, check_dense_rows, check_fraction, check_point, check_points, dot
from onebit.theory.polynomials.multivariate import MultivariatePolynomial

# What normalizing in floats adds to a squared length, with much to spare.
UNIT_BALL_SLACK = Fraction(1, 10**9)


class Halfspaces:
    """The halfspaces ⟨vᵢ,x⟩ ≥ 0 with a margin on either side.

    Parameters
    ----------
    directions : sequence of sequences of numbers
        v₁,…,v_m, each of length at most 1 (a billionth more is forgiven, for rows that were normalized in floats).
    margin : number
        γ, strictly between 0 and 1. A float is taken at its exact binary value: write ``Fraction(1, 9)`` for a ninth.

    Examples
    --------
    >>> quadrant = Halfspaces(directions=[[1, 0], [0, 1]], margin=0.25)
    >>> quadrant.sides([[0.5, 0.5], [0.5, -0.5], [0.5, 0.1]]).tolist()
    [1, -1, 0]
    """

    def __init__(self, directions: Any, margin: Number) -> None:
        self.directions = check_points("directions", directions)
        self.margin = check_fraction("margin", margin)
        for i, v in enumerate(self.directions):
            if dot(v, v) > 1 + UNIT_BALL_SLACK:
                raise ValueError(
                    f"directions must have length at most 1; directions[{i}] has length {math.sqrt(dot(v, v)):.6g}. "
                    "Divide the directions and the margin by the largest length"
                )

    @property
    def n_halfspaces(self) -> int:
        """The number of halfspaces, m."""
        return len(self.directions)

    @property
    def n_variables(self) -> int:
        """The number of variables, d."""
        return len(self.directions[0])

    @cached_property
    def matrix(self) -> Floats:
        """The directions as rows of floats."""
        return np.array([[float(entry) for entry in v] for v in self.directions])

    def scores(self, x: Sequence[Number]) -> list[Fraction]:
        """Return ⟨v₁,x⟩,…,⟨v_m,x⟩, exactly."""
        point = check_point("x", x, self.n_variables)
        return [dot(v, point) for v in self.directions]

    def side(self, x: Sequence[Number]) -> int:
        """Return 1 if x is in R⁺, −1 if it is in R⁻, 0 if it is in neither; exactly."""
        point = check_point("x", x, self.n_variables)
        # Both regions are parts of the unit ball.
        if dot(point, point) > 1:
            return 0
        scores = self.scores(point)
        return -1 if min(scores) <= -self.margin else int(min(scores) >= self.margin)

    def sides(self, X: Any) -> Integers:
        """Return the side of every row, in floating point."""
        rows = check_dense_rows("X", X, self.n_variables)
        lowest = (rows @ self.matrix.T).min(axis=1)
        margin = float(self.margin)
        sides = (lowest >= margin).astype(np.int64) - (lowest <= -margin)
        return np.where(np.einsum("ij,ij->i", rows, rows) <= 1.0, sides, 0)

    def __repr__(self) -> str:
        return f"Halfspaces(directions={self.matrix.tolist()}, margin={float(self.margin)})"


class HalfspacePolynomial(ABC):
    """A polynomial that is at least ½ on R⁺ and at most −½ on R⁻, kept in the form it was built in.

    `evaluate` is exact at any degree, calling it on rows is fast, and neither needs the coefficients. `expand`
    multiplies them out, which is feasible while `n_coefficients` is in the thousands.
    """

    def __init__(self, halfspaces: Halfspaces) -> None:
        if not isinstance(halfspaces, Halfspaces):
            raise ValueError(f"halfspaces must be a Halfspaces(directions, margin); got {halfspaces!r}")
        self.halfspaces = halfspaces

    @property
    @abstractmethod
    def degree_bound(self) -> int:
        """What the theorem says the degree is at most."""

    @property
    @abstractmethod
    def log2_norm_bound(self) -> float:
        """log₂ of what the theorem says the norm is at most."""

    @abstractmethod
    def of_scores(self, scores: Sequence[Fraction]) -> Fraction:
        """Return p at a point with the given ⟨v₁,x⟩,…,⟨v_m,x⟩, exactly."""

    @abstractmethod
    def signs_and_log2_of_scores(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return sign p and log₂|p| for rows of ⟨v₁,x⟩,…,⟨v_m,x⟩, in floating point."""

    @abstractmethod
    def expand(self) -> MultivariatePolynomial:
        """Return the polynomial with its coefficients multiplied out, exactly."""

    @property
    def n_coefficients(self) -> int:
        """The most coefficients that the expansion can have: one per monomial of degree at most `degree_bound`."""
        return math.comb(self.degree_bound + self.halfspaces.n_variables, self.halfspaces.n_variables)

    def evaluate(self, x: Sequence[Number]) -> Fraction:
        """Return p(x), exactly."""
        return self.of_scores(self.halfspaces.scores(x))

    def signs_and_log2(self, X: Any) -> tuple[Floats, Floats]:
        """Return sign p and log₂|p| for rows within the unit ball, in floating point: p itself often overflows."""
        rows = check_dense_rows("X", X, self.halfspaces.n_variables)
        # Beyond the ball the theorems promise nothing, and the sizes below may overflow.
        squares = np.einsum("ij,ij->i", rows, rows)
        if squares.max() > 1.0 + float(UNIT_BALL_SLACK):
            row = int(np.argmax(squares))
            raise ValueError(
                f"X must lie within the unit ball; row {row} has length {math.sqrt(squares[row]):.6g}. Scale the rows"
            )
        return self.signs_and_log2_of_scores(rows @ self.halfspaces.matrix.T)

    def __call__(self, X: Any) -> Floats:
        """Return p for every row, in floating point; ±∞ where it does not fit."""
        signs, sizes = self.signs_and_log2(X)
        with np.errstate(over="ignore"):
            return signs * np.exp2(sizes)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.halfspaces!r})"
