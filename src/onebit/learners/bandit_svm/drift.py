"""Noticing that old facts no longer hold: guesses that have become too bad for chance.

References
----------
Gama, Medas, Castillo, Rodrigues (2004). Learning with drift detection. SBIA.
"""

import math

import numpy as np

from onebit.compiled import inlined
from onebit.inputs import Floats

ROUNDS, LATELY, USUALLY, BEST = range(4)
# Mistakes of late are averaged over about this many rounds; fewer say nothing about a rate.
_MEMORY = 64.0
# What is usual is averaged over about this share of the stream, so that the rounds in which all was new are forgotten.
_SHARE = 0.25
# Gama et al. take three standard deviations; over a long stream that is exceeded by chance.
_DEVIATIONS = 7.0


def new_watch() -> Floats:
    """Return an empty record of how the guesses went."""
    return np.array([0.0, 0.0, 0.0, math.inf])


@inlined
def is_outdated(watch: Floats, correct: bool, n_classes: int, softness: float) -> bool:
    """Say whether the guesses have become too bad for chance, so that old facts no longer hold; start counting again.

    The rate of mistakes over some 64 rounds is compared with the best rate so far over a quarter of the stream. It must
    be seven standard deviations above it, and nearer to blind guessing than to it. With a hard margin facts never go
    out of date.
    """
    watch[ROUNDS] += 1.0
    n, wrong = watch[ROUNDS], 0.0 if correct else 1.0
    watch[LATELY] += (wrong - watch[LATELY]) / min(n, _MEMORY)
    memory = max(min(n, _MEMORY), _SHARE * n)
    watch[USUALLY] += (wrong - watch[USUALLY]) / memory
    if softness == 0.0 or n < _MEMORY:
        return False
    # Laplace's rule keeps the rate away from 0, where its spread would vanish. An average that forgets at rate 1/m
    # varies like one over 2m rounds.
    usual = (2.0 * memory * watch[USUALLY] + 1.0) / (2.0 * memory + 2.0)
    watch[BEST] = min(watch[BEST], usual + math.sqrt(usual * (1.0 - usual) / (2.0 * memory)))
    best, blind = watch[BEST], 1.0 - 1.0 / n_classes
    if (
        watch[LATELY] > best + _DEVIATIONS * math.sqrt(best * (1.0 - best) / (2.0 * _MEMORY))
        and watch[LATELY] > 0.5 * (best + blind)
        and best < blind
    ):
        watch[ROUNDS], watch[LATELY], watch[USUALLY], watch[BEST] = 0.0, 0.0, 0.0, math.inf
        return True
    return False
