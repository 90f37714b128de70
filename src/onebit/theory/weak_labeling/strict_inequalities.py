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
from onebit.theory.exact import Objects, Point, whole_multiple

# Simple weights first: whoever reads them, or goes on calculating with them, has less to do.
_DENOMINATORS = (1, 2, 10, 100, 10_000)
# Multipliers below this share of the largest are the linear program's rounding.
_SUPPORT = 1e-9

Matrix = list[list[Fraction]]


def positive_solution(rows: Objects) -> Point | None:
    """Return w with ⟨row, w⟩ > 0 for every row of whole numbers, or None if there is none; exact.

    Examples
    --------
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
    proposal, multipliers = _linear_program((rows / largest[:, None]).astype(np.float64))
    for weights in _simplest(proposal):
        if (rows @ np.array(whole_multiple(weights), dtype=object) > 0).all():
            return weights
    if _contradicts(rows, multipliers / largest.astype(np.float64)):
        return None
    return solve_by_simplex([[Fraction(entry) for entry in row] for row in rows])


def _linear_program(rows: Floats) -> tuple[Floats, Floats]:
    """Return the weights with the largest t, and the multipliers that show that no t is larger; zeros on failure."""
    n_rows, n_free = rows.shape
    result = linprog(
        np.append(np.zeros(n_free), -1.0),
        A_ub=np.column_stack([-rows, np.ones(n_rows)]),
        b_ub=np.zeros(n_rows),
        bounds=[(-1.0, 1.0)] * n_free + [(0.0, None)],
        method="highs",
    )
    if result.status != 0:
        return np.zeros(n_free), np.zeros(n_rows)
    return result.x[:-1], -result.ineqlin.marginals


def _simplest(proposal: Floats) -> Iterator[Point]:
    """Yield the proposal, scaled to a largest entry of 1 and rounded to small denominators first, exactly at last."""
    largest = float(np.abs(proposal).max())
    if largest == 0.0:
        return
    exact = [Fraction(value) for value in (proposal / largest).tolist()]
    for denominator in _DENOMINATORS:
        yield tuple(value.limit_denominator(denominator) for value in exact)
    yield tuple(exact)


def _contradicts(rows: Objects, multipliers: Floats) -> bool:
    """Return whether some y ≥ 0, y ≠ 0 on the multipliers' support has Σ yᵢ·rowᵢ = 0, in fractions."""
    largest = multipliers.max()
    if largest <= 0.0:
        return False
    support = np.flatnonzero(multipliers > _SUPPORT * largest)
    pivots, reduced = _row_echelon([[Fraction(entry) for entry in row] for row in rows[support].T if row.any()])
    # Where y is free any fraction near the proposal will do; the other entries follow from those exactly.
    y = [Fraction(value).limit_denominator(1000) for value in (multipliers[support] / largest).tolist()]
    free = [j for j in range(len(y)) if j not in pivots]
    for row, pivot in zip(reduced, pivots, strict=True):
        y[pivot] = -sum((row[j] * y[j] for j in free), Fraction(0))
    return any(y) and all(value >= 0 for value in y)


def _row_echelon(matrix: Matrix) -> tuple[list[int], Matrix]:
    """Return the pivot columns and the non-zero rows of the reduced row echelon form."""
    pivots: list[int] = []
    for column in range(len(matrix[0]) if matrix else 0):
        found = next((i for i in range(len(pivots), len(matrix)) if matrix[i][column]), None)
        if found is not None:
            top = len(pivots)
            matrix[top], matrix[found] = matrix[found], matrix[top]
            _pivot(matrix, top, column)
            pivots.append(column)
    return pivots, matrix[: len(pivots)]


def _pivot(matrix: Matrix, pivot_row: int, column: int) -> None:
    """Make a column the unit vector of a row, in place."""
    lead = matrix[pivot_row][column]
    matrix[pivot_row] = [entry / lead for entry in matrix[pivot_row]]
    for i, row in enumerate(matrix):
        factor = row[column]
        if i != pivot_row and factor:
            matrix[i] = [a - factor * b if b else a for a, b in zip(row, matrix[pivot_row], strict=True)]


def solve_by_simplex(rows: Sequence[Sequence[Fraction]]) -> Point | None:
    """Return w with ⟨row, w⟩ > 0 for every row, or None, by the simplex method on fractions alone.

    It looks for y ≥ 0 with Σ yᵢ·rowᵢ = 0 and Σ yᵢ = 1, starting from artificial variables whose sum it brings down. If
    the sum ends above 0 there is no such y, and the prices of the equations are a w. Bland's rule makes it end.

    Examples
    --------
    >>> solve_by_simplex([[Fraction(1), Fraction(3)], [Fraction(-1), Fraction(-2)]])
    (Fraction(-5, 1), Fraction(2, 1))
    """
    n_rows, n_free = len(rows), len(rows[0])
    equations = [*([row[k] for row in rows] for k in range(n_free)), [Fraction(1)] * n_rows]
    # Columns: y, the artificial variables, the right hand side. Last row: what the sum still has to lose.
    tableau = [
        [*equation, *(Fraction(int(i == k)) for i in range(n_free + 1)), Fraction(int(k == n_free))]
        for k, equation in enumerate(equations)
    ]
    costs = [-sum(column, Fraction(0)) for column in zip(*tableau, strict=True)]
    costs[n_rows : n_rows + n_free + 1] = [Fraction(0)] * (n_free + 1)
    tableau.append(costs)
    basis = list(range(n_rows, n_rows + n_free + 1))
    while True:
        # Bland's rule: the first column that helps, and of equal ratios the one with the smallest variable.
        entering = next((j for j in range(n_rows) if tableau[-1][j] < 0), None)
        if entering is None:
            break
        ratios = [(row[-1] / row[entering], basis[i], i) for i, row in enumerate(tableau[:-1]) if row[entering] > 0]
        _, _, leaving = min(ratios)
        _pivot(tableau, leaving, entering)
        basis[leaving] = entering
    if tableau[-1][-1] == 0:
        return None
    # The reduced cost of artificial variable k is 1 − priceₖ, and ⟨row, prices⟩ ≤ −(price of Σ yᵢ = 1) < 0.
    return tuple(tableau[-1][n_rows + k] - 1 for k in range(n_free))
