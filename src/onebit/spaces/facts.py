"""What answers prove, and the game played on it: the part that linear weights and kernels share.

A right guess i proves "x is i" and "x is not j" for every other j; a wrong guess i proves "x is not i", and with two
classes that x is the other. Class by class the facts are a binary problem, and its largest-margin separator is found by
dual coordinate ascent: the step on a fact with sign s, coefficient α ≥ 0 and score f raises or lowers α until
s·f + α/(2C) = 1, or α = 0. Every such step raises the dual value, whichever fact it is taken on, so any schedule of
replays keeps the guarantee (docs/theory/bandit-svm.md).
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from onebit.compiled import inlined
from onebit.draws import Draw, uniform, uniform_label
from onebit.inputs import Floats
from onebit.rounds import highest

Signs = npt.NDArray[np.int8]

ROUNDS, MISTAKES, BEST_RATE, BEST_SPREAD, RECENT = range(5)
_MEMORY = 64.0
_DEVIATIONS = 6.0
_MUCH = 0.8


class Settings(NamedTuple):
    """The numbers that the compiled game needs."""

    softness: float
    """1/(2C): what a unit of coefficient may leave of the margin; 0 for a hard margin."""
    replays: int
    """The most further facts of a class that get a step after a violated one."""
    budget: int
    """The most examples stored."""
    mix: float
    """The chance of a uniform guess when no class claims x."""
    trigger: float
    """How large a new fact's step must be, beside the mean coefficient of its class, for its example to be stored."""
    tolerance: float
    """How far from its due a stored fact may be before it is replayed."""


def new_watch() -> Floats:
    """Return an empty record of how the guesses went, for `is_outdated`."""
    return np.array([0.0, 0.0, math.inf, 0.0, 0.0])


@inlined
def choose(scores: Floats, seed: int, round: int, settings: Settings) -> tuple[int, bool]:
    """Return the highest score's label, or one drawn uniformly where no class claims x; −1 if a score is not finite."""
    for i in range(scores.shape[0]):
        if not np.isfinite(scores[i]):
            return -1, False
    best = highest(scores)
    if settings.mix > 0.0 and scores[best] < 0.0:
        number = uniform(Draw(seed, round))
        if number < settings.mix:
            return uniform_label(number / settings.mix, scores.shape[0]), True
    return best, False


@inlined
def chances(scores: Floats, settings: Settings, out: Floats) -> None:
    """Write the chance that `choose` gives to each label."""
    best = highest(scores)
    spread = settings.mix if scores[best] < 0.0 else 0.0
    for i in range(scores.shape[0]):
        out[i] = spread / scores.shape[0]
    out[best] += 1.0 - spread


@inlined
def prove(label: int, correct: bool, truth: int, signs: Signs) -> None:
    """Write what an answer proves for each class: +1 it is, −1 it is not, 0 nothing."""
    n_classes = signs.shape[0]
    known = truth
    if correct:
        known = label
    elif n_classes == 2:
        known = 1 - label
    for i in range(n_classes):
        signs[i] = 0 if known < 0 else -1
    if known >= 0:
        signs[known] = 1
    else:
        signs[label] = -1


@inlined
def is_worth_storing(
    signs: Signs, scores: Floats, square: float, totals: Floats, size: int, settings: Settings
) -> bool:
    """Say whether a fact has hardly a margin, or its step would count beside its class's coefficients.

    Where margins are small coefficients are large, and facts that are violated by a little come without end but change
    nothing; where examples are far apart each has something to add.
    """
    for i in range(signs.shape[0]):
        if signs[i] != 0:
            lack = 1.0 - signs[i] * scores[i]
            if lack > _MUCH or (lack > 0.0 and lack * size > settings.trigger * square * totals[i]):
                return True
    return False


@inlined
def stepped(alpha: float, sign: int, score: float, square: float, softness: float) -> float:
    """Return a fact's coefficient after its step: the dual's maximum along it. A fact about nothing gets none."""
    curvature = square + softness
    if curvature <= 0.0:
        return alpha
    return max(0.0, alpha + (1.0 - sign * score - alpha * softness) / curvature)


@inlined
def is_outdated(watch: Floats, correct: bool, n_classes: int, settings: Settings) -> bool:
    """Say whether the guesses have become too bad for chance, so that old facts no longer hold; start counting again.

    Two things must come together: mistakes since the start are six standard deviations above their best rate (the
    drift detection method of Gama et al. 2004, with its limit of three doubled), and those of late, averaged over some
    64 rounds, are nearer to blind guessing than to the best rate. With a hard margin facts never go out of date.
    """
    watch[ROUNDS] += 1.0
    watch[RECENT] -= watch[RECENT] / _MEMORY
    if not correct:
        watch[MISTAKES] += 1.0
        watch[RECENT] += 1.0 / _MEMORY
    n = watch[ROUNDS]
    if settings.softness == 0.0 or n < _MEMORY:
        return False
    rate = (watch[MISTAKES] + 1.0) / (n + 2.0)
    spread = math.sqrt(rate * (1.0 - rate) / n)
    if rate + spread < watch[BEST_RATE] + watch[BEST_SPREAD]:
        watch[BEST_RATE], watch[BEST_SPREAD] = rate, spread
    blind = 1.0 - 1.0 / n_classes
    if (
        rate > watch[BEST_RATE] + _DEVIATIONS * watch[BEST_SPREAD]
        and watch[RECENT] > 0.5 * (watch[BEST_RATE] + blind)
        and watch[BEST_RATE] < blind
    ):
        watch[ROUNDS], watch[MISTAKES], watch[RECENT] = 0.0, 0.0, 0.0
        watch[BEST_RATE], watch[BEST_SPREAD] = math.inf, 0.0
        return True
    return False
