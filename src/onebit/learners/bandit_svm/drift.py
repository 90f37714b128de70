"""Noticing that old facts no longer hold: guesses that have become too bad for chance.

References
----------
Gama, Medas, Castillo, Rodrigues (2004). Learning with drift detection. SBIA.
"""

import math

import numpy as np

from onebit.compiled import inlined
from onebit.inputs import Floats

ROUNDS, WRONG, BEST_RATE, BEST_SPREAD, RECENT = range(5)
# Mistakes of late are averaged over about this many rounds; fewer say nothing about a rate.
_MEMORY = 64.0
# Gama et al. take three standard deviations; over a long stream that is exceeded by chance, six is not.
_DEVIATIONS = 6.0


def new_watch() -> Floats:
    """Return an empty record of how the guesses went."""
    return np.array([0.0, 0.0, math.inf, 0.0, 0.0])


@inlined
def is_outdated(watch: Floats, correct: bool, n_classes: int, softness: float) -> bool:
    """Say whether the guesses have become too bad for chance, so that old facts no longer hold; start counting again.

    Two things must come together: mistakes since the start are six standard deviations above their best rate (the
    drift detection method, with its limit of three doubled), and those of late, averaged over some 64 rounds, are
    nearer to blind guessing than to the best rate. With a hard margin facts never go out of date.
    """
    watch[ROUNDS] += 1.0
    watch[RECENT] -= watch[RECENT] / _MEMORY
    if not correct:
        watch[WRONG] += 1.0
        watch[RECENT] += 1.0 / _MEMORY
    n = watch[ROUNDS]
    if softness == 0.0 or n < _MEMORY:
        return False
    # Laplace's rule keeps the rate away from 0, where its spread would vanish.
    rate = (watch[WRONG] + 1.0) / (n + 2.0)
    spread = math.sqrt(rate * (1.0 - rate) / n)
    if rate + spread < watch[BEST_RATE] + watch[BEST_SPREAD]:
        watch[BEST_RATE], watch[BEST_SPREAD] = rate, spread
    blind = 1.0 - 1.0 / n_classes
    if (
        rate > watch[BEST_RATE] + _DEVIATIONS * watch[BEST_SPREAD]
        and watch[RECENT] > 0.5 * (watch[BEST_RATE] + blind)
        and watch[BEST_RATE] < blind
    ):
        watch[ROUNDS], watch[WRONG], watch[RECENT] = 0.0, 0.0, 0.0
        watch[BEST_RATE], watch[BEST_SPREAD] = math.inf, 0.0
        return True
    return False
