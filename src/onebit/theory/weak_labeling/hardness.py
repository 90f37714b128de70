"""How the exact solver's work grows with the size of the problem."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from onebit.inputs import check_integer, check_number
from onebit.theory.weak_labeling.set_splitting import random_set_splitting
from onebit.theory.weak_labeling.solver import solve


class SolvingRow(NamedTuple):
    """One problem, solved: its size, the answer, the nodes searched and the seconds taken."""

    n_elements: int
    n_subsets: int
    seed: int
    is_splittable: bool
    n_nodes: int
    seconds: float


def measure_solving(
    sizes: Sequence[int], *, subsets_per_element: float = 4.0, repeats: int = 5, seed: int = 0
) -> list[SolvingRow]:
    """Solve random set splitting problems, as weak labelling problems, and say what each took.

    Every subset has three elements. At 4 subsets per element nearly all the problems have no solution, which the
    solver has to prove. The nodes are the same on every run, the seconds are not.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of elements N, each at least 3.
    subsets_per_element : float
        The number of subsets is this times N, rounded.
    repeats : int
        Problems per size.
    seed : int
        Seed of the first problem of each size; the others count on from it.

    Examples
    --------
    >>> rows = measure_solving([4, 5], repeats=2)
    >>> [(row.n_elements, row.n_subsets, row.seed) for row in rows]
    [(4, 16, 0), (4, 16, 1), (5, 20, 0), (5, 20, 1)]
    """
    check_number("subsets_per_element", subsets_per_element, above=0.0)
    check_integer("repeats", repeats, low=1)
    rows = []
    for n_elements in [check_integer(f"sizes[{i}]", size, low=3) for i, size in enumerate(sizes)]:
        n_subsets = round(subsets_per_element * n_elements)
        for number in range(seed, seed + repeats):
            problem = random_set_splitting(n_elements, n_subsets, size=3, seed=number).to_weak_labeling()
            # The clock starts after the problem is built: building is not solving.
            start = time.perf_counter()
            answer = solve(problem)
            seconds = time.perf_counter() - start
            rows.append(SolvingRow(n_elements, n_subsets, number, answer.weights is not None, answer.n_nodes, seconds))
    return rows
