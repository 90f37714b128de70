"""Homogeneous strict inequalities ⟨row, w⟩ > 0, met or refuted without rounding.

By Gordan's theorem either some w meets them all, or some y ≥ 0, y ≠ 0 combines the rows to Σ yᵢ·rowᵢ = 0: never both.
The linear program

    maximize t   such that   ⟨row, w⟩ ≥ t for every row   and   |w| ≤ 1

proposes w (if t > 0) or, as its multipliers, y (if t = 0); scaling makes the box harmless. Floating point only
proposes: w is checked, and y is solved for on its support, in exact arithmetic. Should neither pass, as when features
are in proportion up to rounding, the simplex method is run on fractions.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

from onebit.inputs import Floats
from onebit.theory.exact import Objects, Point, vanishing_weights, whole_multiple

# Simple weights first: they are easier to read, and to calculate with.
_DENOMINATORS = (1, 2, 10, 100, 10_000)
# What is smaller is the linear program's rounding: t, and multipliers as a share of the largest.
_ROUNDING = 1e-9


def positive_solution(rows: Objects) -> Point | None:
    """Return w with ⟨row, w⟩ > 0 for every row of whole numbers, or None if there is none; exact.

    >>> positive_solution(np.array([[1, 0], [-1, 2]], dtype=object))
    (Fraction(1, 1), Fraction(1, 1))
    >>> positive_solution(np.array([[1, 0], [-1, 2], [-1, -2]], dtype=object)) is None
    True
    """
    if not len(rows):
        return tuple(Fraction(0) for _ in range(rows.shape[1]))
    largest = np.abs(rows).max(axis=1, initial=0)
    if not largest.all():
        return None
    # Rows of one size keep the program's tolerances meaningful.
    proposal, t, multipliers = _linear_program((rows / largest[:, None]).astype(np.float64))
    multipliers /= largest.astype(np.float64)
    if t > _ROUNDING:
        for weights in _simplest(proposal):
            if (rows @ np.array(whole_multiple(weights), dtype=object) > 0).all():
                return weights
    elif multipliers.any() and vanishing_weights(rows[multipliers > _ROUNDING * multipliers.max()]) is not None:
        return None
    return solve_by_simplex([[Fraction(entry) for entry in row] for row in rows])


def _linear_program(rows: Floats) -> tuple[Floats, float, Floats]:
    """Return the weights with the largest t, t, and the multipliers that show that none is larger; zeros on failure."""
    n_rows, n_free = rows.shape
    result = linprog(
        np.append(np.zeros(n_free), -1.0),
        A_ub=np.column_stack([-rows, np.ones(n_rows)]),
        b_ub=np.zeros(n_rows),
        bounds=[(-1.0, 1.0)] * n_free + [(0.0, None)],
        method="highs",
    )
    if result.status != 0:
        return np.zeros(n_free), 0.0, np.zeros(n_rows)
    return result.x[:-1], float(result.x[-1]), -result.ineqlin.marginals


def _simplest(proposal: Floats) -> Iterator[Point]:
    """Yield the proposal, scaled to a largest entry of 1 and rounded to small denominators first, exactly at last."""
    exact = [Fraction(value) for value in (proposal / np.abs(proposal).max()).tolist()]
    for denominator in _DENOMINATORS:
        yield tuple(value.limit_denominator(denominator) for value in exact)
    yield tuple(exact)


def solve_by_simplex(rows: Sequence[Sequence[Fraction]]) -> Point | None:
    """Return w with ⟨row, w⟩ > 0 for every row, or None, by the simplex method on fractions alone.

    It looks for y ≥ 0 with Σ yᵢ·rowᵢ = 0 and Σ yᵢ = 1, starting from artificial variables whose sum it brings down. If
    the sum ends above 0 there is no such y, and the prices of the equations are a w. Bland's rule makes it end.

    >>> solve_by_simplex([[Fraction(1), Fraction(3)], [Fraction(-1), Fraction(-2)]])
    (Fraction(-5, 1), Fraction(2, 1))
    """
    n_rows, n_free = len(rows), len(rows[0])
    # Columns: y, the artificial variables, the right hand side. Last row: what the sum still has to lose.
    equations = np.array([*zip(*rows, strict=True), [Fraction(1)] * n_rows], dtype=object)
    right = np.array([Fraction(0)] * n_free + [Fraction(1)], dtype=object)
    tableau = np.column_stack([equations, np.eye(n_free + 1, dtype=object), right])
    costs = -tableau.sum(axis=0)
    costs[n_rows:-1] = 0
    tableau = np.vstack([tableau, costs])
    basis = list(range(n_rows, n_rows + n_free + 1))
    # Bland's rule: the first column that helps, and of equal ratios the one with the smallest variable.
    while (helping := np.flatnonzero(tableau[-1, :n_rows] < 0)).size:
        entering = int(helping[0])
        rising = [i for i in range(n_free + 1) if tableau[i, entering] > 0]
        leaving = min(rising, key=lambda i: (tableau[i, -1] / tableau[i, entering], basis[i]))
        tableau[leaving] /= tableau[leaving, entering]
        for i in np.flatnonzero(tableau[:, entering]):
            if i != leaving:
                tableau[i] -= tableau[i, entering] * tableau[leaving]
        basis[leaving] = entering
    if tableau[-1, -1] == 0:
        return None
    # The reduced cost of artificial variable k is 1 − priceₖ, and ⟨row, prices⟩ ≤ −(price of Σ yᵢ = 1) < 0.
    return tuple(Fraction(value - 1) for value in tableau[-1, n_rows : n_rows + n_free])
