"""What a bank says about a row: the opinion of every kernel that is asked, and the vote among them.

The guess is a vote of the opinions, weighted by how often each was wrong. Where the most trusted kernel is sure, so
that nothing productive would be left to learn if it is right, it guesses alone, and the others are asked only if it was
wrong: most rounds of an easy stream need one kernel. Where the vote holds every label to be wrong, those that were
proved wrong of this very row are passed over.
"""

import math
from typing import Any

from onebit.compiled import frugal, inlined, shared
from onebit.inputs import Floats
from onebit.kernels import is_lost
from onebit.learners.bandit_svm.bank_facts import DUE, BankFacts, BankSight
from onebit.learners.bandit_svm.bank_plan import (
    BASE,
    CODE,
    IN_PYTHON,
    LINEAR,
    SQUARINGS,
    BankNumbers,
    compare,
    is_too_long,
    squared_often,
    write_powers,
)
from onebit.learners.bandit_svm.facts import (
    IT_IS,
    IT_IS_ANOTHER,
    IT_IS_NOT,
    SIZE,
    FactNumbers,
    is_denied,
    is_productive,
    is_to_follow,
    look_up,
)
from onebit.lengths import shorten, to_unit
from onebit.loop import FULL, READY, UNSCORED, highest, ready_if_finite
from onebit.scaling import scaled

# A vote counts a score beyond two margins as two: one kernel's certainty must not drown the others.
LOUDEST = 2.0
# What a label that is passed over loses at least: more than scores in a vote can differ by.
_PASSED_OVER = 8.0


@inlined
def multiply_weights(weights: Floats, unit: Floats, out: Floats) -> None:
    """Write every class's score of a unit row."""
    for i in range(out.shape[0]):
        out[i] = 0.0
    for j in range(unit.shape[0]):
        entry = unit[j]
        for i in range(out.shape[0]):
            out[i] += entry * weights[j, i]


@shared
def add_up(coefficients: Floats, similarities: Floats, size: int, out: Floats) -> None:
    """Write every class's score of an example with those similarities."""
    for i in range(out.shape[0]):
        out[i] = 0.0
    # Four examples at a time, in the order of one at a time: classes are too few to make a loop over them alone fast.
    whole = size - size % 4
    for s in range(0, whole, 4):
        one, two, three, four = similarities[s], similarities[s + 1], similarities[s + 2], similarities[s + 3]
        for i in range(out.shape[0]):
            total = out[i] + one * coefficients[s, i] + two * coefficients[s + 1, i]
            out[i] = total + three * coefficients[s + 2, i] + four * coefficients[s + 3, i]
    for s in range(whole, size):
        for i in range(out.shape[0]):
            out[i] += similarities[s] * coefficients[s, i]


@inlined
def liken(memory: BankFacts, sight: BankSight, k: int, numbers: BankNumbers) -> None:
    """Write kernel k's similarities of the row in `sight` with all stored ones, and with itself."""
    base, times, size = numbers.plan[k, BASE], numbers.plan[k, SQUARINGS], memory.counts[SIZE]
    compare(memory, size, sight, base, numbers)
    write_powers(sight.bases[base], size, times, sight.similarities[k])
    sight.itself[1, k] = squared_often(sight.itself[0, base], times)


@inlined
def ask(memory: BankFacts, sight: BankSight, k: int, numbers: BankNumbers) -> None:
    """Write kernel k's opinion of the row in `sight`, or the guard's."""
    sight.asked[k] = 1
    if k == numbers.plan.shape[0]:
        for j in range(sight.raw.shape[0]):
            sight.raw_unit[j] = sight.raw[j]
        shorten(sight.raw_unit, sight.raw_unit.shape[0])
        multiply_weights(memory.guard, sight.raw_unit, sight.opinions[k])
    elif numbers.plan[k, LINEAR]:
        multiply_weights(memory.weights, sight.unit, sight.opinions[k])
        sight.itself[1, k] = 1.0 if sight.length[0] > 0.0 else 0.0
    else:
        liken(memory, sight, k, numbers)
        add_up(memory.coefficients[k], sight.similarities[k], memory.counts[SIZE], sight.opinions[k])


@shared
def ask_all(memory: BankFacts, sight: BankSight, settings: FactNumbers) -> None:
    """Write the opinions of all kernels that were not asked yet."""
    for k in range(sight.asked.shape[0]):
        if not sight.asked[k]:
            ask(memory, sight, k, settings.kernel)


@inlined
def scale_row(memory: BankFacts, sight: BankSight) -> None:
    """Write the row as the kernels see it."""
    n_features = memory.rows.shape[0]
    scale = memory.scales[sight.kind[0]]
    for j in range(n_features):
        sight.features[0, j] = scaled(scale, j, sight.raw[j])
    sight.features[0, n_features] = 1.0


@inlined
def take_direction(sight: BankSight) -> None:
    """Write the length of the row in ``sight.features``, and the row divided by it; nothing is known of it yet."""
    n = sight.unit.shape[0]
    for j in range(n):
        sight.unit[j] = sight.features[0, j]
    unit, square = to_unit(sight.unit, n)
    length = math.sqrt(square)
    sight.length[0] = length * unit
    if length > 0.0:
        for j in range(n):
            sight.unit[j] /= length
    sight.is_multiplied[0] = 0
    for k in range(sight.asked.shape[0]):
        sight.asked[k] = 0


@inlined
def is_sure(opinion: Floats) -> bool:
    """Say whether nothing productive is left to learn if an opinion is right."""
    best, sure = highest(opinion), True
    for i in range(opinion.shape[0]):
        sure = sure and not is_productive(IT_IS if i == best else IT_IS_ANOTHER, opinion[i])
    return sure


@inlined
def write_vote(memory: BankFacts, sight: BankSight, leader: int) -> None:
    """Write the weighted mean of the opinions, or what the leader says alone."""
    m, n_classes = memory.trust.shape[0], sight.scores.shape[0]
    total = 0.0
    for i in range(n_classes):
        sight.scores[i] = 0.0
    for k in range(m):
        if sight.asked[k]:
            trust, opinion = memory.trust[k] if leader < 0 else 1.0, sight.opinions[k]
            total += trust
            for i in range(n_classes):
                heard = opinion[i]
                if m > 1:
                    heard = min(LOUDEST, max(-LOUDEST, heard))
                sight.scores[i] += trust * heard
    for i in range(n_classes):
        sight.scores[i] /= total


@inlined
def what_is_lost(scores: Floats) -> Any:
    """Return what a label that is passed over loses, so that it is below all that are not."""
    # One kernel's scores are not clipped: where rows are long they may differ by any amount.
    lowest, top = scores[0], scores[0]
    for i in range(1, scores.shape[0]):
        lowest, top = min(lowest, scores[i]), max(top, scores[i])
    return max(_PASSED_OVER, 2.0 * (top - lowest))


@inlined
def pass_over(memory: BankFacts, sight: BankSight) -> None:
    """Lower the scores of labels that were proved wrong of this very row, so that no mistake on it is repeated."""
    disproved, (n_classes, _) = sight.chances, memory.targets.shape  # scratch paper, until chances are weighed
    for i in range(n_classes):
        disproved[i] = 0.0
    for s in range(memory.counts[SIZE]):
        is_same = True
        for j in range(memory.features.shape[0]):
            if memory.features[j, s] != sight.features[0, j]:
                is_same = False
                break
        if is_same:
            for i in range(n_classes):
                if memory.targets[i, s] == IT_IS_NOT:
                    disproved[i] = 1.0
    lost = what_is_lost(sight.scores)
    for i in range(n_classes):
        sight.scores[i] -= lost * disproved[i]


@shared
def measure_row(memory: BankFacts, sight: BankSight, settings: FactNumbers) -> int:
    """Write what the kernels say about the row that was read; see `onebit.loop.Game`."""
    capacity, size, facts, numbers = memory.lengths.shape[0], memory.counts[SIZE], settings.facts, settings.kernel
    if memory.counts[DUE] or (size == capacity and capacity < facts.budget):
        return FULL
    if sight.line.shape[0] < capacity:  # Ctrl-C came when the memory had grown, and the paper had not
        return FULL
    if facts.scales:
        scale_row(memory, sight)
    if ready_if_finite(sight.features[0]) != READY:
        return UNSCORED
    take_direction(sight)
    for b in range(sight.compared.shape[0]):
        sight.compared[b] = numbers.forms[b, CODE] == IN_PYTHON
        if is_too_long(numbers, b, sight.length[0]):
            return UNSCORED
    m, reference, leader = memory.trust.shape[0], 0, 0
    for k in range(1, memory.productive.shape[0]):
        if memory.productive[k] < memory.productive[reference]:
            reference = k
        if k < m and memory.trust[k] > memory.trust[leader]:
            leader = k
    sight.reference[0], sight.denied[0] = reference, 0
    if m > 1 and numbers.is_bounded and not is_to_follow(memory, facts):
        ask(memory, sight, leader, numbers)
        if is_sure(sight.opinions[leader]):
            write_vote(memory, sight, leader)
            look_up(memory, sight, facts)
            return READY
    return hold_vote(memory, sight, settings)


@frugal
def hold_vote(memory: BankFacts, sight: BankSight, settings: FactNumbers) -> int:
    """Ask all kernels, and write what they say together."""
    facts, numbers = settings.facts, settings.kernel
    ask_all(memory, sight, settings)
    if not numbers.is_bounded:
        for k in range(memory.trust.shape[0]):
            if is_lost(sight.itself[1, k], sight.length[0] ** 2, sight.features, 0):
                return UNSCORED
            if ready_if_finite(sight.opinions[k]) != READY:
                return UNSCORED
    write_vote(memory, sight, -1)
    if facts.guarded and is_denied(sight.scores[highest(sight.scores)]):
        sight.denied[0] = 1
        pass_over(memory, sight)
    look_up(memory, sight, facts)
    return READY
