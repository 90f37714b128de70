"""How a bank guesses and learns: the vote of its members on a row, the guard, and what an answer changes.

The guess is a vote of the members, weighted by how often each was wrong. Where the most trusted member is sure, so that
nothing productive would be left to learn if it is right, it guesses alone (while it is seldom wrong there, and the
reference is not followed), and the others are asked only if it was wrong: most rounds of an easy stream need one
member. Where the vote holds every label to be wrong, those that were
proved wrong of this very row are passed over. Then the regressions may propose another label. The guard limits mistakes
that the reference, the member with the fewest productive examples, would not have made. Any rule may say which label is
about to be guessed: the guarantee comes from the guard alone (docs/theory/bandit-svm.md).
"""

import math
from typing import TYPE_CHECKING, Any

from onebit.compiled import frugal, inlined, shared
from onebit.inputs import Floats, Integers
from onebit.kernels import is_lost
from onebit.learners.bandit_svm.guesses import (
    ASK_ALL,
    ASKED,
    DENIED,
    FOLLOW,
    LATELY,
    MULTIPLIED,
    REFERENCE,
    ROW_KIND,
    count_row,
    is_denied,
    is_outdated,
    is_to_follow,
    keep_account,
    prefer,
)
from onebit.learners.bandit_svm.regressions import (
    VOTE,
    add_landmark,
    count_sure,
    estimate_row,
    learn_answer,
    may_guess_alone,
    propose,
)
from onebit.learners.bandit_svm.separators import (
    BASE,
    CODE,
    DENSE,
    DUE,
    GAUSSIAN,
    IMPORTANCE,
    IN_PYTHON,
    IS_LINEAR,
    IT_IS,
    IT_IS_ANOTHER,
    IT_IS_NOT,
    KIND,
    LAPLACE,
    LENGTH,
    LINE,
    OF_UNITS,
    PRODUCTIVE,
    PRODUCTS,
    RAW,
    RAW_UNIT,
    ROOM,
    SCALE,
    SIZE,
    SQUARINGS,
    STATISTICS,
    TOLERANCE,
    UNIT,
    VALUES,
    Settings,
    add_up,
    change_coefficient,
    compare,
    is_worth_storing,
    lack,
    multiply_weights,
    place_to_free,
    project,
    prove,
    replay,
    squared_often,
    stepped,
    write_powers,
)
from onebit.lengths import shorten, to_unit
from onebit.loop import FULL, READY, UNSCORED, highest, ready_if_finite
from onebit.scaling import count_entry, scaled

if TYPE_CHECKING:
    from onebit.learners.bandit_svm.guesses import BankState, Scratch

LOSS, TRUST, PRODUCED = range(3)
"""`members`: how often each was wrong (less than 1 is added where it may have been), and a little for each productive
example; what it counts in the vote, exp(−loss), the best one's being 1; how many stored examples had a productive fact
for it. The guard is the last."""
ROW_LENGTH, ITSELF = range(2)
"""`numbers`: the length of the scaled row, and then k(x, x) of each base."""
# A vote counts a score beyond two margins as two: one member's certainty must not drown the others.
LOUDEST = 2.0
# What a label that is passed over loses at least: more than scores in a vote can differ by.
_PASSED_OVER = 8.0
# What a productive example counts beside a wrong opinion: among members that are wrong alike, trust the one that fits.
_LESSON = 0.03
# A member that has little trust still gets this share of the replays, so that it can win trust back.
_LEAST_SHARE = 0.2
# Steps for each class of each member when the scale changes.
_STEPS_AT_RESCALING = 100
# Beyond, the squares in ‖x‖² + ‖x'‖² − 2⟨x, x'⟩ are no floats, and their difference is no number.
_LONGEST = 1e150


# What the members of a bank say about a row.


@inlined
def see_row(scaling: Floats, scales: bool, row: Floats, flags: Integers, numbers: Floats) -> bool:
    """Write the row as it is seen, scaled and divided by its length; return whether its entries are numbers."""
    unit, n_features = row[UNIT], row.shape[1] - scales
    for j in range(n_features):
        unit[j] = row[RAW, j]
        if scales:
            unit[j] = scaled(scaling[flags[ROW_KIND], SCALE], j, row[RAW, j])
    if scales:
        unit[n_features] = 1.0
    if ready_if_finite(unit) != READY:
        return False
    power, square = to_unit(unit, unit.shape[0])
    length = math.sqrt(square)
    for j in range(unit.shape[0] if length > 0.0 else 0):
        unit[j] /= length
    numbers[ROW_LENGTH] = length * power
    for f in range(MULTIPLIED, flags.shape[0]):
        flags[f] = 0
    return True


@shared
def ask(state: "BankState", scratch: "Scratch", settings: Settings, first: int, stop: int, compares_all: bool) -> None:
    """Write what some members say about the row, unless it is written; and all bases' values, if asked for."""
    plan, bases, guard, opinions = settings.plan, settings.bases, state.guard, scratch.opinions
    row, lines, numbers, flags = scratch.row, scratch.lines, scratch.numbers, scratch.flags
    size, units, lengths = state.counts[SIZE], state.units, state.examples[LENGTH]
    m, compared = plan.shape[0], ASKED + opinions.shape[0]
    for k in range(first, stop):
        b = plan[k, BASE] if k < m else -1
        is_needed = k < m and (compares_all or not plan[k, IS_LINEAR])
        if is_needed and not flags[compared + b] and bases[b, CODE] != IN_PYTHON:
            numbers[ITSELF + b] = compare(
                bases[b],
                units,
                lengths,
                row[UNIT],
                numbers[ROW_LENGTH],
                size,
                lines[PRODUCTS],
                flags[MULTIPLIED],
                lines[ROOM],
                lines[VALUES + b],
            )
            flags[compared + b] = 1
            if bases[b, CODE] != LAPLACE:
                flags[MULTIPLIED] = 1
        if flags[ASKED + k]:
            continue
        flags[ASKED + k] = 1
        if k == m:
            for j in range(guard.shape[0]):
                row[RAW_UNIT, j] = row[RAW, j]
            shorten(row[RAW_UNIT], guard.shape[0])
            multiply_weights(guard, row[RAW_UNIT], opinions[k])
        elif plan[k, IS_LINEAR]:
            multiply_weights(state.weights, row[UNIT], opinions[k])
            numbers[ITSELF + b] = 1.0 if numbers[ROW_LENGTH] > 0.0 else 0.0
        else:
            write_powers(lines[VALUES + b], size, plan[k, SQUARINGS], lines[LINE])
            add_up(state.coefficients[k], lines[LINE], size, opinions[k])


@inlined
def itself(plan: Integers, k: int, numbers: Floats) -> float:
    """Return member k's kernel value of the row with itself."""
    return squared_often(numbers[ITSELF + plan[k, BASE]], plan[k, SQUARINGS])


@inlined
def is_sure(opinion: Floats) -> bool:
    """Say whether nothing productive is left to learn if an opinion is right."""
    best, sure = highest(opinion), True
    for i in range(opinion.shape[0]):
        sure = sure and lack(IT_IS if i == best else IT_IS_ANOTHER, opinion[i]) <= PRODUCTIVE
    return sure


@inlined
def write_vote(members: Floats, opinions: Floats, m: int, flags: Integers, scores: Floats) -> None:
    """Write the weighted mean of the members that were asked."""
    total = 0.0
    for i in range(scores.shape[0]):
        scores[i] = 0.0
    for k in range(m):
        if flags[ASKED + k]:
            trust = members[k, TRUST]
            total += trust
            for i in range(scores.shape[0]):
                score = opinions[k, i]
                scores[i] += trust * (min(LOUDEST, max(-LOUDEST, score)) if m > 1 else score)
    for i in range(scores.shape[0]):
        scores[i] /= total


@inlined
def what_is_lost(scores: Floats) -> Any:
    """Return what a label that is passed over loses, so that it is below all that are not."""
    # One member's scores are not clipped: where rows are long they may differ by any amount.
    lowest, top = scores[0], scores[0]
    for i in range(1, scores.shape[0]):
        lowest, top = min(lowest, scores[i]), max(top, scores[i])
    return max(_PASSED_OVER, 2.0 * (top - lowest))


@shared
def pass_over(size: int, rows: Floats, raw: Floats, targets: Floats, room: Floats, scores: Floats) -> None:
    """Lower the scores of labels that were proved wrong of this very row, so that no mistake on it is repeated."""
    n_classes = scores.shape[0]
    for i in range(n_classes):
        room[i] = 0.0
    for s in range(size):
        is_same, j = True, 0
        while is_same and j < rows.shape[0]:
            is_same = rows[j, s] == raw[j]
            j += 1
        for i in range(n_classes if is_same else 0):
            if targets[i, s] == IT_IS_NOT:
                room[i] = 1.0
    lost = what_is_lost(scores)
    for i in range(n_classes):
        scores[i] -= lost * room[i]


@shared
def score_row(state: "BankState", scratch: "Scratch", settings: Settings) -> int:
    """Write what the members say about the row in ``scratch.row[RAW]``; see `onebit.loop.Game`."""
    counts, flags, members, opinions = state.counts, scratch.flags, state.members, scratch.opinions
    size, capacity, m, n_asked = counts[SIZE], state.examples.shape[1], settings.plan.shape[0], members.shape[0]
    if counts[DUE] or (size == capacity and capacity < settings.budget):
        return FULL
    if scratch.lines.shape[1] < capacity:  # Ctrl-C came when the state had grown, and the scratch arrays had not
        return FULL
    if not see_row(state.scaling, settings.scales, scratch.row, flags, scratch.numbers):
        return UNSCORED
    length = scratch.numbers[ROW_LENGTH]
    for b in range(settings.bases.shape[0]):
        if settings.bases[b, CODE] == GAUSSIAN and not settings.bases[b, OF_UNITS] and length > _LONGEST:
            return UNSCORED
    reference, leader = 0, 0
    for k in range(1, n_asked):
        if members[k, PRODUCED] < members[reference, PRODUCED]:
            reference = k
        if k < m and members[k, TRUST] > members[leader, TRUST]:
            leader = k
    follow = is_to_follow(counts, settings.guarded)
    flags[REFERENCE], flags[FOLLOW], flags[DENIED] = reference, follow, 0
    is_alone = False
    if m > 1 and settings.is_bounded and not follow and not flags[ASK_ALL] and may_guess_alone(state.mixture):
        ask(state, scratch, settings, leader, leader + 1, False)
        is_alone = is_sure(opinions[leader])
    if not is_alone:
        ask(state, scratch, settings, 0, n_asked, False)
        for k in range(0 if settings.is_bounded else m):
            square = itself(settings.plan, k, scratch.numbers)
            if is_lost(square, length**2, scratch.row, UNIT) or ready_if_finite(opinions[k]) != READY:
                return UNSCORED
    scores = scratch.scores
    write_vote(members, opinions, m, flags, scores)
    for i in range(scores.shape[0]):
        scratch.estimates[VOTE, i] = scores[i]
    if settings.guarded:
        top = scores[highest(scores)]
        if is_denied(top):
            flags[DENIED] = 1
            pass_over(size, state.rows, scratch.row[RAW], state.targets, scratch.chances, scores)
        prefer(state.guesses, settings.softness, state.watch[LATELY] if top < 0.0 else 0.0, scores)
    if state.mixture.shape[0] > 0 and not is_alone:
        estimate_row(state, scratch, length)
        if not flags[ASK_ALL]:
            propose(scratch.estimates, state.guesses, state.mixture, scratch.known, scores)
    return READY


# What an answer changes.


@inlined
def write_trust(members: Floats, m: int) -> None:
    """Write what each member counts in the vote."""
    fewest = members[0, LOSS]
    for k in range(1, m):
        fewest = min(fewest, members[k, LOSS])
    for k in range(m):
        members[k, TRUST] = math.exp(fewest - members[k, LOSS])


@inlined
def is_productive(targets: Floats, opinion: Floats) -> bool:
    """Say whether a proved fact is productive, given a member's scores."""
    found = False
    for i in range(targets.shape[0]):
        found = found or lack(targets[i], opinion[i]) > PRODUCTIVE
    return found


@inlined
def teach_guard(guard: Floats, unit: Floats, targets: Floats, opinion: Floats, softness: float) -> None:
    """Let the guard take its step on every fact that it violates; it keeps no examples, and replays nothing."""
    square = 0.0
    for j in range(guard.shape[0]):
        square += unit[j] * unit[j]
    for i in range(targets.shape[0]):
        size = stepped(0.0, targets[i], opinion[i], square, softness)
        step = size if targets[i] > 0.0 else -size
        for j in range(guard.shape[0] if step != 0.0 else 0):
            guard[j, i] += step * unit[j]


@inlined
def store_row(state: "BankState", scratch: "Scratch", settings: Settings) -> int:
    """Store the row with what is proved of it, and return its place; what is removed for it is projected."""
    plan, counts, lines, row = settings.plan, state.counts, scratch.lines, scratch.row
    place, n_classes = int(counts[SIZE]), scratch.targets.shape[0]
    is_full = place == state.examples.shape[1]
    if is_full:
        place = place_to_free(state.examples[IMPORTANCE], counts[SIZE], counts)
    else:
        counts[SIZE] = place + 1
    size = counts[SIZE]
    for k in range(plan.shape[0]):
        if is_full and not plan[k, IS_LINEAR]:
            project(
                place,
                size,
                plan[k, SQUARINGS],
                state.grams[plan[k, BASE]],
                state.targets,
                state.alphas[k],
                state.scores[k],
                state.coefficients[k],
                state.sums[k],
                state.examples[IMPORTANCE],
                lines[VALUES + plan[k, BASE]],
                scratch.opinions[k],
                lines,
            )
        for i in range(n_classes):
            if is_full:
                change_coefficient(state.sums[k], i, state.alphas[k, i, place], 0.0)
            state.coefficients[k, place, i] = state.alphas[k, i, place] = 0.0
            state.scores[k, i, place] = scratch.opinions[k, i]
    for b in range(settings.bases.shape[0]):
        gram, values = state.grams[b], lines[VALUES + b]
        for s in range(size):
            gram[place, s] = gram[s, place] = values[s]
        gram[place, place] = scratch.numbers[ITSELF + b]
    for i in range(n_classes):
        state.targets[i, place] = scratch.targets[i]
    for j in range(state.units.shape[0]):
        state.units[j, place] = row[UNIT, j]
    for j in range(state.rows.shape[0]):  # as it came, to be scaled anew
        state.rows[j, place] = row[RAW, j]
    state.examples[LENGTH, place], state.examples[IMPORTANCE, place] = scratch.numbers[ROW_LENGTH], 0.0
    state.examples[KIND, place] = scratch.flags[ROW_KIND]
    return place


@shared
def learn_row(
    state: "BankState",
    scratch: "Scratch",
    label: int,
    explored: bool,
    correct: bool,
    truth: int,
    settings: Settings,
) -> bool:
    """Learn from the answer about the row at hand, and say whether it was stored; see `onebit.loop.Game`."""
    members, opinions, targets, flags = state.members, scratch.opinions, scratch.targets, scratch.flags
    m, n_asked, lately = settings.plan.shape[0], members.shape[0], state.watch[LATELY]
    known = prove(label, correct, truth, settings.is_closed, targets)
    outdated = is_outdated(state.watch, correct, targets.shape[0], settings.softness)
    are_asked = True
    for k in range(n_asked):
        are_asked = are_asked and flags[ASKED + k] != 0
    take_part = are_asked and state.mixture.shape[0] > 0
    if not correct:
        ask(state, scratch, settings, 0, n_asked, False)
        are_asked = True
    keep_account(state.counts, state.guesses, opinions[flags[REFERENCE]], label, explored, correct)
    leader = 0
    for k in range(1, m):
        if members[k, TRUST] > members[leader, TRUST]:
            leader = k
    square = itself(settings.plan, leader, scratch.numbers)
    is_wanted = is_worth_storing(targets, opinions[leader], square, state.sums[leader], settings.guarded)
    said = highest(opinions[leader])
    if state.mixture.shape[0] > 0 and (known >= 0 or said == label) and is_sure(opinions[leader]):
        count_sure(state.mixture, said != known)
    if take_part:
        is_told = truth >= 0 or (settings.is_closed and targets.shape[0] == 2)
        learn_answer(state, scratch, label, correct, known, is_told)
    if are_asked:  # otherwise the leader was sure, and right
        for k in range(m):
            said = highest(opinions[k])
            # What is not known to be right may be wrong: it is charged the more, the oftener guesses are wrong.
            doubt = 1.0 if said == label else lately**4
            members[k, LOSS] += doubt if known < 0 else int(said != known)
        write_trust(members, m)
        # What is productive for the reference is always stored: the guarantee is about those facts. And where every
        # label is held to be wrong, it must be known which were tried.
        is_wanted = is_wanted or is_productive(targets, opinions[flags[REFERENCE]])
        is_wanted = is_wanted or (flags[DENIED] != 0 and not correct)
    if is_wanted:
        ask(state, scratch, settings, 0, n_asked, True)
        # Before the store makes room, which changes opinions: productive is what was so when the guess was made.
        for k in range(n_asked):
            if is_productive(targets, opinions[k]):
                members[k, PRODUCED] += 1.0
                members[k, LOSS] += _LESSON
                if k == m:
                    teach_guard(state.guard, scratch.row[RAW_UNIT], targets, opinions[k], settings.softness)
        place = store_row(state, scratch, settings)
        add_landmark(state, scratch, scratch.numbers[ROW_LENGTH])
        # A step costs one pass over the store: while it is small, more of them fit into the same work.
        times = settings.replays * settings.budget / state.counts[SIZE]
        for k in range(m):
            # Replays make opinions better, so they go where opinions count.
            share = 1.0 if settings.plan[k, IS_LINEAR] else max(members[k, TRUST], _LEAST_SHARE)
            for i in range(targets.shape[0]):
                if lack(targets[i], state.scores[k, i, place]) > 0.0:
                    replay(state, scratch, settings, k, i, place, int(times * share), TOLERANCE)
    kind = flags[ROW_KIND]
    n = count_row(state.counts, kind, settings.scales, outdated)
    for j in range(state.scaling.shape[3]):
        count_entry(state.scaling[kind, STATISTICS], j, scratch.row[RAW, j], n, kind == DENSE)
    return is_wanted


# A new scale: every stored example is looked at again.


@frugal
def compare_all(
    size: int, bases: Floats, units: Floats, lengths: Floats, grams: Floats, row: Floats, lines: Floats
) -> None:
    """Write the kernel values of all stored examples with those before them, as if they came one after the other."""
    unit = row[UNIT]
    for s in range(size):
        for j in range(unit.shape[0]):
            unit[j] = units[j, s]
        is_multiplied = 0
        for b in range(bases.shape[0]):
            if bases[b, CODE] != IN_PYTHON:
                values, gram = lines[VALUES + b], grams[b]
                gram[s, s] = compare(
                    bases[b], units, lengths, unit, lengths[s], s, lines[PRODUCTS], is_multiplied, lines[ROOM], values
                )
                is_multiplied = is_multiplied or bases[b, CODE] != LAPLACE
                for r in range(s):
                    gram[s, r] = gram[r, s] = values[r]


@frugal
def refit(state: "BankState", scratch: "Scratch", settings: Settings) -> bool:
    """Score all stored examples, and replay what has changed; return whether all scores are numbers."""
    plan, line, scores, size = settings.plan, scratch.lines[LINE], scratch.scores, state.counts[SIZE]
    are_finite = True
    for k in range(plan.shape[0]):
        for s in range(size):
            if plan[k, IS_LINEAR]:
                for j in range(state.units.shape[0]):
                    scratch.row[UNIT, j] = state.units[j, s]
                multiply_weights(state.weights, scratch.row[UNIT], scores)
            else:
                write_powers(state.grams[plan[k, BASE], s], size, plan[k, SQUARINGS], line)
                add_up(state.coefficients[k], line, size, scores)
            for i in range(scores.shape[0]):
                state.scores[k, i, s] = scores[i]
                are_finite = are_finite and math.isfinite(scores[i])
    for k in range(plan.shape[0] if are_finite else 0):
        for i in range(scores.shape[0]):
            replay(state, scratch, settings, k, i, -1, _STEPS_AT_RESCALING, TOLERANCE)
    return are_finite
