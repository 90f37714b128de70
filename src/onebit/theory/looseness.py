"""How loose Theorem 5 is: the strong margin that the rational kernel makes, beside the one it is proved to make."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from onebit.bounds.margin_transformation import sharper_margin, transformed_margin
from onebit.inputs import Floats, Integers, check_integer
from onebit.kernels import Rational
from onebit.streams import paper_weak, wedges
from onebit.theory.separability import margin

# Half a decade apart, up to where the margins hardly fall any more.
SIZES = (30, 100, 300, 1000, 3000, 10_000)
"""How many rounds of `paper_weak` the table takes by default."""


class Looseness(NamedTuple):
    """One data set's margins: weak before the kernel, strong after it."""

    data: str
    n_examples: int
    n_classes: int
    weak: float
    """γ, the largest weak margin in R^d."""
    guaranteed_log2: float
    """log₂ γ' as Theorem 5 states it."""
    sharper_log2: float
    """log₂ γ' as its proof allows."""
    measured: float
    """The largest strong margin in the rational kernel's space."""

    @property
    def measured_log2(self) -> float:
        """The logarithm of the measured margin."""
        return math.log2(self.measured)

    @property
    def factor_log2(self) -> float:
        """How many times larger than guaranteed the margin is, as a power of 2."""
        return self.measured_log2 - self.guaranteed_log2


def measure_looseness(
    sizes: Sequence[int] = SIZES, seed: int = 0, on_row: Callable[[Looseness], None] | None = None
) -> list[Looseness]:
    """Return one row for Figure 1's wedges and one for the beginning of `paper_weak` at each size.

    Parameters
    ----------
    sizes : sequence of int
        How many rounds of `paper_weak` to take; enough that all three classes occur.
    seed : int
        Names the draw of `paper_weak`.
    on_row : callable, optional
        Called with every row as it is ready.

    Examples
    --------
    >>> wedges_row, paper_row = measure_looseness(sizes=[100])
    >>> round(wedges_row.guaranteed_log2), round(wedges_row.measured_log2)
    (-61, -4)

    References
    ----------
    Beygelzimer et al. (2019). ICML. Theorem 5.
    """
    rows = []
    for data, X, y in _sets(sizes, seed):
        row = measure_one(data, X, y)
        rows.append(row)
        if on_row is not None:
            on_row(row)
    return rows


def measure_one(data: str, X: Floats, y: Integers) -> Looseness:
    """Return the row of one data set, which must be weakly separable and lie in the unit ball.

    Parameters
    ----------
    data : str
        What to call it.
    X, y : arrays
        The examples and their labels.
    """
    before, after = margin(X, y), margin(X, y, Rational())
    K = len(before.classes)
    if before.weak <= 0.0:
        raise ValueError(
            f"X, y must be weakly separable for Theorem 5; of {data!r} no weak margin was found, and it is at most "
            f"{before.weak_limit:.3g} (see margin().weak_certificate)"
        )
    guaranteed, sharper = transformed_margin(K, before.weak).log2, sharper_margin(K, before.weak).log2
    return Looseness(data, len(y), K, before.weak, guaranteed, sharper, after.strong)


def _sets(sizes: Sequence[int], seed: int) -> Iterator[tuple[str, Floats, Integers]]:
    yield "wedges", *wedges()
    counts = [check_integer("sizes", size, low=1) for size in sizes]
    # One draw for all sizes: a smaller set is the beginning of a larger one, so its margins are no smaller.
    X, y = paper_weak(rounds=max(counts, default=1), seed=seed)
    for count in counts:
        yield "paper_weak", X[:count], y[:count]
