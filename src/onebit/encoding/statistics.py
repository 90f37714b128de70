"""Running means and variances of the slots of a row, over the numbers present."""

from typing import Any

import numpy as np

from onebit.engine.jit import jit_no_refcount
from onebit.engine.lengths import MOST
from onebit.inputs import Floats, Integers, check_integer

_MOST_SQUARE = 16.0 * MOST * MOST


class Running:
    """Mean and sum of squared deviations of the numbers in each slot."""

    def __init__(self, n_places: int) -> None:
        self.means = np.zeros(n_places)
        self._counts = np.zeros(n_places)
        self._squares = np.zeros(n_places)

    def take(self, places: Integers, values: Floats) -> None:
        """Add numbers to some slots, row by row (Welford's method)."""
        _take(self._counts, self.means, self._squares, places, values)

    def standardized(self, places: Integers, values: Floats) -> Floats:
        """Return standardised numbers, by mean and variance so far; 0 for constant slots.

        Clipped to ±√n, the maximum for any of the n numbers so far, so that outliers do not dominate.
        """
        counts, means = self._counts[places], self.means[places]
        deviations = np.sqrt(self._squares[places] / np.maximum(counts, 1.0))
        varies = deviations > 1e-12 * abs(means)  # rounding leaves a constant column a tiny variance
        limits = np.sqrt(counts)
        scaled = (values - means) / np.where(varies, deviations, 1.0)
        return np.where(varies, np.minimum(np.maximum(scaled, -limits), limits), 0.0)

    def state(self, places: list[int]) -> list[Any]:
        """Return count, mean and sum of squared deviations of some slots."""
        kept = zip(
            self._counts[places].tolist(), self.means[places].tolist(), self._squares[places].tolist(), strict=True
        )
        return [[int(count), mean, squares] for count, mean, squares in kept]

    def set_state(self, places: list[int], state: Any) -> None:
        """Set the statistics of some slots, or raise ValueError."""
        if type(state) is not list or len(state) != len(places):
            raise ValueError(f"the state must have statistics of {len(places)} places; got {state!r:.80}")
        for place, each in zip(places, state, strict=True):
            if type(each) is not list or len(each) != 3 or not all(type(number) is float for number in each[1:]):
                raise ValueError(f"statistics are a count, a mean and a sum of squares; got {each!r:.80}")
            count, mean, squares = check_integer("a count", each[0], low=0, high=1 << 52), each[1], each[2]
            is_possible = abs(mean) <= 2.0 * MOST and 0.0 <= squares <= count * _MOST_SQUARE
            if not is_possible or (count == 0 and mean != 0.0):
                raise ValueError(f"no numbers have count, mean and sum of squares {each!r:.80}")
            self._counts[place], self.means[place], self._squares[place] = count, mean, squares


@jit_no_refcount
def all_within(values: Floats, most: float) -> bool:
    """Return whether all |values| ≤ most, false for NaN; several times as fast as NumPy for few values."""
    is_within = True
    for i in range(values.shape[0]):
        is_within &= abs(values[i]) <= most
    return is_within


@jit_no_refcount
def _take(counts: Floats, means: Floats, squares: Floats, places: Integers, values: Floats) -> None:
    for t in range(values.shape[0]):
        for i in range(places.shape[0]):
            place = places[i]
            counts[place] += 1.0
            off = values[t, i] - means[place]
            means[place] += off / counts[place]
            squares[place] += off * (values[t, i] - means[place])
