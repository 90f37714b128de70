"""eˣ of many numbers at once.

Compiled code calls the system's `exp` for one number at a time, which was a seventh of a bank's time. Here the whole
loop is sums and products, which the compiler makes vectors of; the last bit then depends on no library either.
"""

import math

import numpy as np

from onebit.compiled import shared
from onebit.inputs import Floats

# ln 2 in two parts: the first has so few digits that its products with exponents are exact.
_LN2_HEAD = 0.693145751953125
_LN2_TAIL = 1.42860682030941723212e-6
# Added to a number this leaves it whole, and in the last bits what the exponent of 2 to that power is stored as.
_WHOLE = 1.5 * 2.0**52 + 1023.0
_PLACES = 52
# Below, eˣ is no normal float.
_LEAST = -708.0
# 1/13!, 1/12!, …: enough for |r| ≤ ln 2 / 2.
_SERIES = tuple(1.0 / math.factorial(n) for n in range(13, -1, -1))


@shared
def exponentiate(values: Floats, size: int, room: Floats) -> None:
    """Turn the first values, none above 0, into their exponentials, to about a unit in the last place.

    Below e⁻⁷⁰⁸ they are 0. What is in `room` is written over.
    """
    bits = room.view(np.int64)
    for s in range(size):
        x = max(values[s], _LEAST)
        shifted = x * (1.0 / math.log(2.0)) + _WHOLE
        whole = shifted - _WHOLE
        rest = (x - whole * _LN2_HEAD) - whole * _LN2_TAIL
        total = 0.0
        for term in _SERIES:
            total = total * rest + term
        room[s] = shifted
        values[s] = 0.0 if values[s] < _LEAST else total + 0.0 * values[s]  # what is no number stays none
    for s in range(size):
        bits[s] <<= _PLACES
    for s in range(size):
        values[s] *= room[s]
