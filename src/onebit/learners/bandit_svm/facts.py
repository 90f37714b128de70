"""What answers prove, and the game played on it: the part that linear weights and kernels share.

A right guess i proves "x is i" and "x is not j" for every other j; a wrong guess i proves "x is not i", and with two
classes that x is the other. Class by class the facts are a binary problem, and its largest-margin separator is found by
dual coordinate ascent: the step on a fact with sign s, coefficient α ≥ 0 and score f raises or lowers α until
s·f + α/(2C) is the margin that the fact is due, or α = 0. Every such step raises the dual value, whichever fact it is
taken on, so any schedule of replays keeps the guarantee (docs/theory/bandit-svm.md).

A fact about the class that was guessed, or that is right, is due a margin of 1. "Not j, since it is i" is due half of
that: there are K−1 such facts for each right guess, and with a whole margin each they would hold classes down where
nobody has tried them yet.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from onebit.compiled import inlined
from onebit.draws import Draw, uniform, uniform_label
from onebit.inputs import Floats, Integers, Rows, unlocked
from onebit.learners.bandit_svm.drift import is_outdated, new_watch
from onebit.loop import Game, highest, plugged
from onebit.memory import Memory
from onebit.rounds import Answer

Signs = npt.NDArray[np.int8]


# What is proved of a class, as the score that is due: it is the right one, it is not, and "not j, since it is i".
# Where nothing is proved the target is 0.
IT_IS, IT_IS_NOT, IT_IS_ANOTHER = 1.0, -1.0, -0.5
# A fact that lacks more than this of its due is productive: its step raises the dual by a sure amount.
_PRODUCTIVE = 0.5
# A fact that lacks this much of its margin is stored in any case.
_MUCH = 0.8
# Disputed mistakes that are made before the reference is followed for the first time, and for each of its own.
PATIENCE, PATIENCE_PER_MISTAKE = 10, 10
# What a class that was never tried is preferred by: a tenth of a margin decides among classes that all look alike.
_CURIOSITY = 0.1


class Settings(NamedTuple):
    """The numbers that the compiled game needs."""

    softness: float
    """1/(2C): what a unit of coefficient may leave of the margin; 0 for a hard margin."""
    replays: int
    """The most further facts of a class that get a step after a violated one."""
    budget: int
    """The most examples stored."""
    guarded: bool
    """Whether disputed rounds are limited, and classes of which little is known preferred."""
    mix: float
    """The chance of a uniform guess when no class claims x, if not guarded."""
    trigger: float
    """How large a new fact's step must be, beside the mean coefficient above 0 of its class, for it to be stored."""
    tolerance: float
    """How far from its due a stored fact may be before it is replayed."""
    scales: bool
    """Whether columns are scaled as they come, and a constant is added."""
    is_closed: bool
    """Whether one of the classes is always right: of two, the one that was not wrong."""


class FactNumbers(NamedTuple):
    """The settings of the game in a space."""

    facts: Settings
    kernel: Any
    """The kernels' parameters."""


DISPUTED, FOLLOWED = range(2)
"""What `tally` counts: mistakes in disputed rounds guessed as usual, and mistakes made by following the reference."""


@inlined
def lack(target: Any, score: Any) -> Any:
    """Return what a fact lacks of the margin it is due; nothing is due where nothing is proved."""
    return np.sign(target) * (target - score)


@inlined
def is_productive(target: Any, score: Any) -> Any:
    """Say whether a fact lacks so much of the margin it is due that its step must count."""
    return lack(target, score) > _PRODUCTIVE


@inlined
def curiosity(right: Any, wrong: Any, n_classes: int, softness: float) -> Any:
    """Return what a class is preferred by; one guess in K is right by chance, so many wrong ones say as much as it."""
    # With a small C all scores are small: no step is longer than what its fact lacks, divided by the softness.
    return _CURIOSITY / max(1.0, softness) / (1.0 + right + 2.0 * wrong / n_classes)


@inlined
def is_to_follow(memory: Any, settings: Settings) -> bool:
    """Say whether the reference is to be followed where it disputes a label."""
    return settings.guarded and memory.tally[DISPUTED] > PATIENCE + PATIENCE_PER_MISTAKE * memory.tally[FOLLOWED]


@inlined
def look_up(memory: Any, sight: Any, settings: Settings) -> None:
    """Write whether the reference is to be followed, and let scores lean to classes of which little is known."""
    n_classes = sight.scores.shape[0]
    sight.follow[0] = is_to_follow(memory, settings)
    if settings.guarded:
        for i in range(n_classes):
            sight.scores[i] += curiosity(memory.right[i], memory.wrong[i], n_classes, settings.softness)


@inlined
def is_denied(score: Any) -> Any:
    """Say whether a label with that score is held to be wrong: a mistake on it would not be productive."""
    return score <= _PRODUCTIVE - 1.0


@inlined
def disputes(sight: Any, label: int) -> bool:
    """Say whether the reference holds a label to be wrong, so that a mistake would teach it nothing."""
    return bool(is_denied(sight.opinions[sight.reference[0], label]))


@inlined
def choose(sight: Any, draw: Draw, settings: Settings) -> tuple[int, bool]:
    """Return the highest score's label, or what the guard or exploration says instead."""
    scores = sight.scores
    best = highest(scores)
    if settings.guarded:
        if sight.follow[0] and disputes(sight, best):
            claimed = highest(sight.opinions[sight.reference[0]])
            if disputes(sight, claimed):
                return uniform_label(uniform(draw), scores.shape[0]), True
            return claimed, True
    elif settings.mix > 0.0 and scores[best] < 0.0:
        number = uniform(draw)
        # One number serves both choices: below the chance it is, once stretched, uniform again.
        if number < settings.mix:
            return uniform_label(number / settings.mix, scores.shape[0]), True
    return best, False


@inlined
def chances_of(sight: Any, settings: Settings, out: Floats) -> None:
    """Write the chance that `choose` gives to each label."""
    best, spread = highest(sight.scores), 0.0
    if settings.guarded:
        if sight.follow[0] and disputes(sight, best):
            best = highest(sight.opinions[sight.reference[0]])
            spread = 1.0 if disputes(sight, best) else 0.0
    elif sight.scores[best] < 0.0:
        spread = settings.mix
    for i in range(out.shape[0]):
        out[i] = spread / out.shape[0]
    out[best] += 1.0 - spread


@inlined
def keep_account(memory: Any, sight: Any, answer: Answer) -> None:
    """Count right and wrong guesses of each class, and disputed and followed mistakes."""
    if answer.correct:
        memory.right[answer.label] += 1
        return
    memory.wrong[answer.label] += 1
    if answer.explored:
        memory.tally[FOLLOWED] += 1
    elif disputes(sight, answer.label):
        memory.tally[DISPUTED] += 1


@inlined
def prove(answer: Answer, is_closed: bool, targets: Floats) -> None:
    """Write what an answer proves of each class; `is_closed` says that one of them is right."""
    n_classes = targets.shape[0]
    known = answer.truth
    if answer.correct:
        known = answer.label
    elif n_classes == 2 and is_closed:
        known = 1 - answer.label
    for i in range(n_classes):
        targets[i] = 0.0 if known < 0 else IT_IS_ANOTHER
    targets[answer.label] = IT_IS_NOT
    if known >= 0:
        targets[known] = IT_IS


@inlined
def is_worth_storing(
    sight: Any, scores: Floats, square: float, totals: Floats, supports: Integers, settings: Settings
) -> bool:
    """Say whether a fact has hardly a margin, or its step would count beside its class's coefficients.

    Where margins are small coefficients are large, and facts that are violated by a little come without end but change
    nothing; where examples are far apart each has something to add.
    """
    enough = _PRODUCTIVE if settings.guarded else _MUCH
    for i in range(scores.shape[0]):
        lacks = lack(sight.targets[i], scores[i])
        # The step is lacks/square, the mean coefficient totals/supports; multiplied out, nothing is divided by 0.
        if lacks > enough or (lacks > 0.0 and lacks * supports[i] >= settings.trigger * square * totals[i]):
            return True
    return False


@inlined
def stepped(alpha: float, target: float, score: float, square: float, softness: float) -> float:
    """Return a fact's coefficient after its step: the dual's maximum along it. A fact about nothing gets none."""
    curvature = square + softness
    if curvature <= 0.0:
        return alpha
    longer: float = alpha + (lack(target, score) - alpha * softness) / curvature
    return max(0.0, longer)


@inlined
def change_of_support(old: float, new: float) -> int:
    """Return by how many the coefficients above 0 become more."""
    return int(new > 0.0) - int(old > 0.0)


SIZE = 0
"""Where a memory of facts counts its examples."""


class FactMemory(Memory):
    """What memories of facts share."""

    per_class: ClassVar[tuple[str, ...]] = "scores", "opinions", "targets", "chances"

    def hear_logged(self, row: Rows, label: int, correct: bool, truth: int, propensity: float | None) -> bool:
        """Learn what is proved, whoever tried it; somebody else's mistakes are no sign of drift, and no dispute."""
        prepared = self.prepare(row)
        self.measure(prepared, row)
        moves, memory, sight, settings = self._at_hand[type(prepared)]
        tally, watch = self.arrays.tally, self.arrays.watch
        kept = tally.copy(), watch.copy()
        self._seen = -1
        try:
            watch[:] = new_watch()
            return moves.hear(memory, unlocked(prepared), sight, label, False, correct, truth, settings)
        finally:
            tally[:], watch[:] = kept

    def add_class(self) -> None:
        """Make room for one more class: it is not the right one where another is."""
        super().add_class()
        targets = self.arrays.targets
        targets[-1, (targets == IT_IS).any(axis=0)] = IT_IS_ANOTHER


def hearing(
    complete: Callable[..., None],
    judge: Callable[..., bool],
    learn: Callable[..., None],
    forget: Callable[..., None],
    count: Callable[..., None],
) -> Callable[..., bool]:
    """Return (memory, sight, answer, settings) → changed: how a memory of facts learns from an answer.

    Parameters
    ----------
    complete : (memory, sight, settings)
        Writes the opinions that were not needed for the guess.
    judge : (memory, sight, answer, settings) → whether the example is worth storing
        Compares what was proved with the opinions.
    learn : (memory, sight, settings)
        Stores the row with what ``sight.targets`` says is proved of it, and lets the separators take their steps.
    forget : (memory, sight, settings)
        Forgets all facts, and writes the opinions that are left.
    count : (memory, sight, settings)
        Takes the row into the statistics of the columns.
    """

    def hear(memory: Any, sight: Any, answer: Answer, settings: FactNumbers) -> bool:
        prove(answer, settings.facts.is_closed, sight.targets)
        outdated = is_outdated(memory.watch, answer.correct, sight.targets.shape[0], settings.facts.softness)
        if outdated or not answer.correct:
            complete(memory, sight, settings)
        keep_account(memory, sight, answer)
        if outdated:
            forget(memory, sight, settings)
        worth = judge(memory, sight, answer, settings.facts)
        if worth:
            complete(memory, sight, settings)
            learn(memory, sight, settings)
        if settings.facts.scales:
            count(memory, sight, settings)
        return worth

    return hear


@cache
def fact_game(measure: Callable[..., int], hear: Callable[..., bool], hears_label: bool) -> Game:
    """Return the game of a memory of facts.

    Parameters
    ----------
    measure : as for `Game`
        Writes the scores, the opinions they come from, and the row itself, to `sight`.
    hear : (memory, sight, answer, settings) → changed
        Made by `hearing`, and compiled.
    hears_label : bool
        As for `Game`.
    """

    def decide(sight: Any, draw: Draw, settings: FactNumbers) -> tuple[int, bool]:
        return choose(sight, draw, settings.facts)

    def weigh(sight: Any, settings: FactNumbers) -> None:
        chances_of(sight, settings.facts, sight.chances)

    def hear_row(memory: Any, _X: Any, _t: int, sight: Any, answer: Answer, settings: FactNumbers) -> bool:
        return hear(memory, sight, answer, settings)

    return plugged(Game(measure, decide, weigh, hear_row, hears_label=hears_label))
