"""What happens in a round: a row is scored, a label is chosen, and the answer is learned from.

A member is sure if its own label, taken as right, would add no example to what it has learned. The most trusted member
guesses alone where it is sure, unless it was often wrong when sure, or the reference is followed. Otherwise all vote,
and the regressions may propose another label.

Python calls one compiled function, `run`, for every kind of round, so that it is compiled once. Rounds in which the
most trusted member is sure and right, and nothing is stored or due, are quiet: `play_quiet` plays them in blocks.
"""

import math
from functools import partial
from typing import Any

from onebit.engine.algorithm import (
    EXPLORED,
    FULL,
    MISTAKES,
    PASSED,
    READY,
    UNSCORED,
    UPDATES,
    is_right,
    ready_if_finite,
)
from onebit.engine.jit import by_reference, in_python, jit_internal, jit_no_refcount
from onebit.engine.scaling import LEAST_SQUARE, MOST_SQUARE, count_entry, scaled, shorten
from onebit.inputs import Floats, Integers
from onebit.kernels import is_lost
from onebit.learners.bandit_svm import bank, guesses, separators
from onebit.learners.bandit_svm.bank import BankArrays, BankScratch, Settings

SCORE, SCORE_ALL, CHOOSE, LEARN, PLAY, REFIT = range(6)
"""What `run` can do: SCORE a row and choose a label; SCORE_ALL rows into `out`; CHOOSE from the scratch arrays as they
are, where `explored` is whether the regressions propose first; LEARN from an answer about the row scored last; PLAY
rows and labels; REFIT the stored examples, where `explored` is whether to learn from them."""

_FIRST_BLOCK = 16  # rows in the first block of a quiet stretch: most stretches are short
_TOO_LONG = 1e150  # beyond, the squares in ‖x‖² + ‖x'‖² − 2⟨x, x'⟩ are no floats, and their difference is no number
# Disputed mistakes that are made before the reference is followed for the first time, and for each of its own.
_PATIENCE, _PATIENCE_PER_MISTAKE = 10, 30
_SELDOM = 0.02  # the leading separator guesses alone where it is sure, while it is wrong there in less of the rounds
_MUCH = 0.8  # a fact that lacks this much of its margin is stored in any case
_TRIGGER = 0.3  # a step below this share of the mean coefficient changes little (docs/experiments/bandit-svm.md)
# Two labels tie if both scores are above 0, and differ by less than `_TIE`; by less and less as ties come, since their
# chances of being right are the same only where the scores are. A right guess of a tie adds 1 to the evidence that
# several labels may be right, a wrong one takes `_WRONG_TIE` off. Ten are enough, and two more with each doubling of
# the ties: guesses that are right half of the time reach that in few games, however many ties come.
_TIE, _FEWER_TIES, _WRONG_TIE = 0.2, 64.0, 2
_ENOUGH_EVIDENCE, _MORE_EVIDENCE, _FEW_TIES = 10.0, 2.0, 32.0

# Called here, and not copied into each caller.
_shorten = jit_internal(in_python(shorten))


@jit_internal
def _clear_row(scratch: BankScratch) -> None:
    for e in range(scratch.flags[bank.ROW_ENTRIES]):
        scratch.unit[scratch.columns[e]] = 0.0
    scratch.flags[bank.MULTIPLIED :] = 0


@jit_internal
def _read_row(state: BankArrays, scratch: BankScratch, settings: Settings, rows: Any, t: int) -> int:
    """Read row t, scale it and divide it by its length; return READY, FULL for a long row, or UNSCORED.

    Dense rows lie one behind the other in their values, and their starts are empty.
    """
    (values, columns, starts), scales, row_columns, unit = rows, settings.scales, scratch.columns, scratch.unit
    raw, new, n_features = scratch.entries[bank.RAW], scratch.entries[bank.UNIT], unit.shape[0] - scales
    kind, first, n = bank.DENSE, t * n_features, n_features
    if starts.shape[0] > 0:
        kind, first, n = bank.SPARSE, starts[t], starts[t + 1] - starts[t]
    if n + scales > raw.shape[0]:
        return FULL
    _clear_row(scratch)
    scale, stop, n = state.scaling[kind, bank.SCALE], first + n, 0
    for place in range(first, stop):
        j, value = columns[place] if kind == bank.SPARSE else place - first, values[place]
        if scales or value != 0.0:  # scaled, a value of 0 is another
            row_columns[n], raw[n], new[n] = j, value, scaled(scale, j, value) if scales else value
            n += 1
    if scales:
        row_columns[n], raw[n], new[n] = n_features, 1.0, 1.0
        n += 1
    scratch.flags[bank.ROW_ENTRIES], scratch.flags[bank.ROW_KIND] = n, kind
    if ready_if_finite(new[:n]) != READY:
        return UNSCORED
    scratch.numbers[bank.ROW_LENGTH] = _shorten(new, n)
    for e in range(n):
        unit[row_columns[e]] = new[e]
    return READY


@jit_internal
def _recall_row(state: BankArrays, scratch: BankScratch, s: int) -> None:
    """Make a stored row the current one."""
    _clear_row(scratch)
    n = int(state.examples[bank.N_ENTRIES, s])
    for e in range(n):
        j = state.columns[s, e]
        entry = state.units[j, s] if state.units.shape[0] > 0 else state.values[s, e]
        scratch.columns[e], scratch.entries[bank.UNIT, e], scratch.unit[j] = j, entry, entry
    scratch.flags[bank.ROW_ENTRIES], scratch.numbers[bank.ROW_LENGTH] = n, state.examples[bank.LENGTH, s]


@jit_internal
def _write_scores(
    state: BankArrays, scratch: BankScratch, settings: Settings, k: int, values: Floats, out: Floats
) -> None:
    """Write member k's scores of the row at hand, whose kernel values with all stored examples are given."""
    entries, n, size = scratch.entries[bank.UNIT], scratch.flags[bank.ROW_ENTRIES], state.counts[bank.SIZE]
    b, squarings, line = settings.plan[k, bank.BASE], settings.plan[k, bank.SQUARINGS], scratch.lines[bank.LINE]
    if settings.plan[k, bank.IS_LINEAR]:
        bank.multiply(state.weights, scratch.columns, entries, n, out.shape[0], out)
        scratch.numbers[bank.ITSELF + b] = 1.0 if scratch.numbers[bank.ROW_LENGTH] > 0.0 else 0.0
    else:
        separators.write_powers(values, size, squarings, line)
        bank.add_up(state.coefficients[k], line, size, out)


@jit_internal
def _ask(
    state: BankArrays, scratch: BankScratch, settings: Settings, first: int, stop: int, compares_all: bool
) -> None:
    """Write some members' scores of the row, unless they are written; and all bases' values, if `compares_all`."""
    plan, opinions, raw_unit = settings.plan, scratch.opinions, scratch.entries[bank.RAW_UNIT]
    m, n = plan.shape[0], scratch.flags[bank.ROW_ENTRIES] - settings.scales
    for k in range(first, stop):
        b = plan[k, bank.BASE] if k < m else 0
        if k < m and (compares_all or not plan[k, bank.IS_LINEAR]):
            separators.write_values(state, scratch, settings, b, state.counts[bank.SIZE])
        if scratch.flags[bank.ASKED + k]:
            continue
        scratch.flags[bank.ASKED + k] = 1
        if k < m:
            _write_scores(state, scratch, settings, k, scratch.lines[bank.VALUES + b], opinions[k])
        else:  # the guard
            for e in range(n):
                raw_unit[e] = scratch.entries[bank.RAW, e]
            _shorten(raw_unit, n)
            bank.multiply(state.guard, scratch.columns, raw_unit, n, opinions.shape[1], opinions[k])


@jit_internal
def _refit(state: BankArrays, scratch: BankScratch, settings: Settings, learns: bool) -> bool:
    """Write the kernel values of all stored examples, as if they came one after the other.

    If asked to learn, score them all again, and replay what has changed; return whether all scores are numbers.
    """
    size, scores, are_finite = state.counts[bank.SIZE], scratch.scores, True
    scratch.unit[:], scratch.nearest[:] = 0.0, 0
    for s in range(size):
        _recall_row(state, scratch, s)
        for b in range(settings.bases.shape[0]):
            gram, line = state.grams[b], scratch.lines[bank.VALUES + b]
            if settings.bases[b, bank.CODE] != bank.IN_PYTHON:
                separators.write_values(state, scratch, settings, b, s)
                gram[s, s] = scratch.numbers[bank.ITSELF + b]
                for r in range(s):
                    gram[s, r] = gram[r, s] = line[r]
    for s in range(size if learns else 0):
        _recall_row(state, scratch, s)
        for k in range(settings.plan.shape[0]):
            _write_scores(state, scratch, settings, k, state.grams[settings.plan[k, bank.BASE], s], scores)
            for i in range(scores.shape[0]):
                state.scores[k, i, s] = scores[i]
                are_finite = are_finite and math.isfinite(scores[i])
    if learns and are_finite:
        separators.replay_all(state, scratch, settings, -1)
    return are_finite


@jit_internal
def _leader(state: BankArrays, m: int) -> int:
    leader = 0
    for k in range(1, m):
        if state.members[k, bank.TRUST] > state.members[leader, bank.TRUST]:
            leader = k
    return leader


@jit_internal
def _square(scratch: BankScratch, settings: Settings, k: int) -> float:
    """Return member k's kernel value of the row with itself."""
    itself = scratch.numbers[bank.ITSELF + settings.plan[k, bank.BASE]]
    return separators.squared_often(itself, settings.plan[k, bank.SQUARINGS])


@jit_internal
def _is_exclusive(counts: Integers, settings: Settings) -> bool:
    """Return whether a right label proves all others wrong."""
    return bool(settings.exclusive and counts[bank.IS_SHARED] == 0)


@jit_internal
def _is_sure(opinion: Floats, exclusive: bool) -> bool:
    """Return whether nothing productive is left to learn if an opinion is right."""
    best, sure = guesses.highest_of(opinion), True
    for i in range(opinion.shape[0]):
        target = bank.IT_IS if i == best else (bank.IT_IS_ANOTHER if exclusive else 0.0)
        sure = sure and bank.lack(target, opinion[i]) <= bank.PRODUCTIVE
    return sure


@jit_internal
def _is_to_follow(counts: Integers, guarded: bool) -> bool:
    """Return whether the reference is to be followed where it disputes a label."""
    return bool(guarded and counts[bank.DISPUTED] > _PATIENCE + _PATIENCE_PER_MISTAKE * counts[bank.FOLLOWED])


@jit_internal
def _may_guess_alone(state: BankArrays, settings: Settings) -> bool:
    """Return whether no other member need be asked where the leading one is sure."""
    is_reliable = state.mixture.shape[0] == 0 or state.mixture[bank.NUMBERS, bank.SURE_WRONG] < _SELDOM
    return bool(is_reliable and settings.is_bounded and not _is_to_follow(state.counts, settings.guarded))


@jit_internal
def _score_row(state: BankArrays, scratch: BankScratch, settings: Settings, rows: Any, t: int) -> int:
    """Write what is known about row t, and the scores that the guess is made from; return READY, FULL or UNSCORED."""
    counts, members, flags = state.counts, state.members, scratch.flags
    opinions, scores = scratch.opinions, scratch.scores
    capacity, m, n_asked = state.examples.shape[1], settings.plan.shape[0], members.shape[0]
    if counts[bank.DUE] or (counts[bank.SIZE] == capacity and capacity < settings.budget):
        return FULL
    # Ctrl-C may have come when the state had changed its size, and the scratch arrays had not.
    are_wide = scratch.lines.shape[1] == capacity and scratch.entries.shape[1] == state.columns.shape[1]
    if not are_wide or scores.shape[0] != state.targets.shape[0]:
        return FULL
    why = _read_row(state, scratch, settings, rows, t)
    if why != READY:
        return why
    length = scratch.numbers[bank.ROW_LENGTH]
    for b in range(settings.bases.shape[0] if length > _TOO_LONG else 0):
        if settings.bases[b, bank.CODE] == bank.GAUSSIAN and not settings.bases[b, bank.OF_UNITS]:
            return UNSCORED
    reference, leader, follow = 0, _leader(state, m), _is_to_follow(counts, settings.guarded)
    for k in range(1, n_asked):
        if members[k, bank.PRODUCED] < members[reference, bank.PRODUCED]:
            reference = k
    flags[bank.REFERENCE], flags[bank.FOLLOW], flags[bank.DENIED] = reference, follow, 0
    is_alone = not flags[bank.ASK_ALL] and _may_guess_alone(state, settings)
    if is_alone:
        _ask(state, scratch, settings, leader, leader + 1, False)
        is_alone = _is_sure(opinions[leader], _is_exclusive(counts, settings))
    if not is_alone:
        _ask(state, scratch, settings, 0, n_asked, False)
    for k in range(0 if settings.is_bounded else m):
        row, square = scratch.entries[:, : flags[bank.ROW_ENTRIES]], _square(scratch, settings, k)
        if is_lost(square, length**2, row, bank.UNIT) or ready_if_finite(opinions[k]) != READY:
            return UNSCORED
    guesses.write_scores(state, scratch, settings, is_alone)
    return READY


@jit_internal
def _prove(label: int, correct: bool, truth: int, is_closed: bool, exclusive: bool, targets: Floats) -> int:
    """Write what an answer proves of each class; return the right one, or −1 if that is not known."""
    is_other = targets.shape[0] == 2 and is_closed and exclusive  # of two classes, the one that was not guessed
    known = label if correct else (1 - label if is_other else truth)
    targets[:] = bank.IT_IS_ANOTHER if known >= 0 and exclusive else 0.0
    targets[label] = bank.IT_IS_NOT
    if known >= 0:
        targets[known] = bank.IT_IS
    return known


@jit_internal
def _counts_for(i: int, lacks: float, enough: float, square: float, sums: Floats) -> bool:
    """Return whether a fact of class i lacks enough of its margin, or its step would count beside the coefficients."""
    # The step is lacks/square, the mean coefficient total/support; multiplied out, nothing is divided by 0.
    small = _TRIGGER * square * sums[bank.TOTAL, i]
    return bool(lacks > enough or (lacks > 0.0 and lacks * sums[bank.SUPPORT, i] >= small))


@jit_internal
def _is_worth_storing(targets: Floats, scores: Floats, square: float, sums: Floats, guarded: bool) -> bool:
    """Return whether one of the facts has hardly a margin, or its step would count."""
    enough, found = bank.PRODUCTIVE if guarded else _MUCH, False
    for i in range(targets.shape[0]):
        found = found or _counts_for(i, bank.lack(targets[i], scores[i]), enough, square, sums)
    return found


@jit_internal
def _is_shared(scores: Floats, label: int, correct: bool, counts: Integers) -> bool:
    """Return whether ties have shown that several labels may be right, and count this round if it is one.

    Which of two labels with nearly the same score is guessed hardly depends on which is right: where only one can be,
    at most half of such guesses are right.
    """
    second = -1
    for i in range(scores.shape[0]):
        if i != label and (second < 0 or scores[i] > scores[second]):
            second = i
    ahead = scores[label] - scores[second] if second >= 0 else -1.0
    if not 0.0 <= ahead < _TIE / math.sqrt(1.0 + counts[bank.TIES] / _FEWER_TIES) or scores[second] <= 0.0:
        return False
    counts[bank.TIES] += 1
    counts[bank.EVIDENCE] = counts[bank.EVIDENCE] + 1 if correct else max(0, counts[bank.EVIDENCE] - _WRONG_TIE)
    enough = _ENOUGH_EVIDENCE + _MORE_EVIDENCE * math.log2(1.0 + counts[bank.TIES] / _FEW_TIES)
    return bool(counts[bank.EVIDENCE] >= enough)


@jit_internal
def _learn_row(
    state: BankArrays, scratch: BankScratch, settings: Settings, label: int, explored: bool, correct: bool, truth: int
) -> bool:
    """Learn from the answer about the row at hand, and return whether it was stored."""
    counts, flags, opinions, targets = state.counts, scratch.flags, scratch.opinions, scratch.targets
    m, n_asked, n_classes = settings.plan.shape[0], opinions.shape[0], targets.shape[0]
    lately, has_regressions = state.watch[bank.LATELY], state.mixture.shape[0] > 0
    n, kind = flags[bank.ROW_ENTRIES] - settings.scales, flags[bank.ROW_KIND]
    exclusive = _is_exclusive(counts, settings)
    known = _prove(label, correct, truth, settings.is_closed, exclusive, targets)
    outdated = guesses.is_outdated(state.watch, correct, n_classes, settings.softness)
    are_asked, leader, reference = True, _leader(state, m), opinions[flags[bank.REFERENCE]]
    for k in range(n_asked):
        are_asked = are_asked and flags[bank.ASKED + k] != 0
    square, opinion = _square(scratch, settings, leader), opinions[leader]
    is_wanted = _is_worth_storing(targets, opinion, square, state.sums[leader], settings.guarded)
    # What is productive for the reference is always stored: the guarantee is about those facts. And where every label
    # is held to be wrong, it must be known which were tried.
    if are_asked:
        is_denied = flags[bank.DENIED] != 0 and not correct
        is_wanted = is_wanted or is_denied or separators.is_productive(targets, reference)
    if is_wanted or not correct:
        _ask(state, scratch, settings, 0, n_asked, True)
        is_wanted = is_wanted or separators.is_productive(targets, reference)
    state.guesses[bank.RIGHT if correct else bank.WRONG, label] += 1
    if not correct and explored:
        counts[bank.FOLLOWED] += 1
    elif not correct and reference[label] <= bank.HELD_WRONG:
        counts[bank.DISPUTED] += 1
    guessed = guesses.highest_of(opinion)
    is_known = guessed in (label, known) or (known >= 0 and exclusive)
    if is_known and _is_sure(opinion, exclusive):
        guesses.count_sure(state.mixture, guessed != known)
    if has_regressions and are_asked:
        is_given = exclusive and (truth >= 0 or (settings.is_closed and n_classes == 2))
        guesses.learn(state, scratch, label, correct, known, is_given, exclusive)
    if are_asked or not correct:  # otherwise the leader was sure, and right
        guesses.judge_members(state, scratch, m, label, known, exclusive, lately)
    if is_wanted:
        guesses.keep_landmark(state, scratch)
        separators.learn(state, scratch, settings)
    # A new scale is due after 1, 2, 4, 8, … rows of a kind.
    counts[bank.SEEN + kind] += 1
    n_seen = counts[bank.SEEN + kind]
    if settings.scales and n_seen & (n_seen - 1) == 0:
        counts[bank.DUE] += 1 + kind
    if outdated:
        counts[bank.DUE] += bank.TO_FORGET
    may_tell = exclusive and settings.finds_out and not explored
    if may_tell and _is_shared(scratch.scores, label, correct, counts):
        counts[bank.DUE] += bank.TO_SHARE
    statistics, raw = state.scaling[kind, bank.STATISTICS], scratch.entries[bank.RAW]
    for e in range(n if settings.scales else 0):
        count_entry(statistics, scratch.columns[e], raw[e], n_seen, kind == bank.DENSE)
    return is_wanted


@jit_internal
def _write_down(record: Any, t: int, label: int) -> None:
    """Write down the guess of round t of a stream, whose mistakes are counted already."""
    counts, checkpoints, cumulative, guessed = record
    if guessed.shape[0] > 0:
        guessed[t] = label
    passed = counts[PASSED]
    if passed < checkpoints.shape[0] and t + 1 == checkpoints[passed]:
        cumulative[passed] = counts[MISTAKES]
        counts[PASSED] = passed + 1


@partial(jit_no_refcount, is_long=True)
def run(
    task: int, arrays: Any, rows: Any, y: Integers, where: Any, answer: Any, record: Any, out: Floats
) -> tuple[int, int, int, bool]:
    """Do a task; return the round it came to, READY or why it stopped, a label, and whether it was explored.

    Named tuples come as plain ones, which is faster: `arrays` are `BankArrays`, `BankScratch` and `Settings`, `rows`
    values, columns and starts of `SparseRows` (of dense rows the values, the others empty), `answer` label, explored,
    correct and truth. `where` has the row t to begin with, `start`, the seed and `first_round`: row t is round
    first_round + start + t. In place of "explored" LEARN returns whether the row was stored, REFIT if all is finite.
    """
    state, scratch = by_reference(BankArrays(*arrays[0])), by_reference(BankScratch(*arrays[1]))
    settings, why = by_reference(Settings(*arrays[2])), READY
    (t, start, seed, first_round), (label, explored, correct, truth) = where, answer
    counts = record[0]
    if task == REFIT:
        return t, why, label, _refit(state, scratch, settings, explored)
    stop = y.shape[0] if task == PLAY else out.shape[0] if task == SCORE_ALL else t + 1
    while t < stop:
        if task in (SCORE, SCORE_ALL, PLAY):
            why = _score_row(state, scratch, settings, rows, t)
            if why != READY:
                break
        if task == SCORE_ALL:
            for i in range(out.shape[1]):
                out[t, i] = scratch.scores[i]
        if task == CHOOSE and explored:
            guesses.propose(state, scratch)
        if task in (SCORE, CHOOSE, PLAY):
            label, explored = guesses.choose(scratch, settings, seed, first_round + start + t)
        if task == PLAY:
            correct, truth = is_right(label, y[t]), y[t] if settings.full_information else -1
        changed = task in (LEARN, PLAY) and _learn_row(state, scratch, settings, label, explored, correct, truth)
        if task == LEARN:
            return t, why, label, changed
        if task == PLAY:
            counts[MISTAKES] += not correct
            counts[UPDATES] += changed
            counts[EXPLORED] += explored
            _write_down(record, start + t, label)
        t += 1
    return t, why, label, explored


@jit_internal
def _see_rows(X: Floats, first: int, n_rows: int, scale: Floats, units: Floats, lengths: Floats) -> int:
    """Write rows, one column each, as `_read_row` would; return how many, up to one whose square is lost."""
    for r in range(n_rows):
        square = 0.0
        for j in range(units.shape[0]):
            entry = X[first + r, j] if j < X.shape[1] else 1.0
            units[j, r] = scaled(scale, j, entry) if j < scale.shape[1] else entry
            square += units[j, r] * units[j, r]
        if not LEAST_SQUARE < square < MOST_SQUARE:
            return r
        lengths[r] = math.sqrt(square)
        for j in range(units.shape[0]):
            units[j, r] /= lengths[r]
    return n_rows


@partial(jit_no_refcount, is_long=True)
def play_quiet(arrays: Any, X: Floats, y: Integers, first: int, record: Any, leader: Any, block: Floats) -> int:
    """Play quiet rounds as `run` would, to the last bit; return how many. Row 0 is the stream's round `first`.

    Only the leading member is asked, about a block of rows at a time, by the same operations in the same order; its
    kernel's values must not depend on which of two rows came first. `leader` is its number, the units, lengths and
    coefficients of the examples that it uses (or its weights), and all columns; `block` is room.
    """
    state, settings = BankArrays(*arrays[0]), Settings(*arrays[1])
    (k, units, lengths, coefficients, columns), sums = leader, state.sums[leader[0]]
    width, n_classes, capacity, start = columns.shape[0], sums.shape[1], state.examples.shape[1], 0
    counts, watch, is_full = state.counts, state.watch, state.counts[bank.SIZE] == capacity < settings.budget
    if counts[bank.DUE] or is_full or not (_is_exclusive(counts, settings) and _may_guess_alone(state, settings)):
        return 0
    seen, seen_lengths, scores = block[:width], block[width], block[width + 1 : width + 1 + n_classes]
    lines, values = block[width + 1 + n_classes :], block[block.shape[0] - 1]
    scale, statistics = state.scaling[bank.DENSE, bank.SCALE], state.scaling[bank.DENSE, bank.STATISTICS]
    plan, base = settings.plan[k], settings.bases[settings.plan[k, bank.BASE]]
    # The kernel's value of any row with itself, unless all of it is 0.
    own = separators.compare(base, seen, seen_lengths, seen_lengths[:0], 1.0, 0, lines, values)
    square = separators.squared_often(own, plan[bank.SQUARINGS])
    while start < y.shape[0]:
        n_wanted = min(_FIRST_BLOCK + start, block.shape[1], y.shape[0] - start)
        n_rows = _see_rows(X, start, n_wanted, scale, seen, seen_lengths)
        scores[:, :n_rows] = 0.0
        for s in range(coefficients.shape[0]):
            terms = seen[s] if plan[bank.IS_LINEAR] else values
            if not plan[bank.IS_LINEAR]:
                if base[bank.CODE] != bank.LAPLACE:
                    bank.multiply(seen, columns, units[s], width, n_rows, lines[bank.PRODUCTS])
                separators.compare(base, seen, seen_lengths, units[s], lengths[s], n_rows, lines, values)
                separators.write_powers(values, n_rows, plan[bank.SQUARINGS], values)
            for i in range(n_classes):
                coefficient, line = coefficients[s, i], scores[i]
                for r in range(n_rows):
                    line[r] += coefficient * terms[r]
        for r in range(n_rows):
            t, n, label, is_quiet = start + r, counts[bank.SEEN + bank.DENSE] + 1, y[start + r], True
            for i in range(n_classes):
                lacks = bank.lack(bank.IT_IS if i == label else bank.IT_IS_ANOTHER, scores[i, r])
                is_quiet = is_quiet and not _counts_for(i, lacks, bank.PRODUCTIVE, square, sums)
            # A round in which none or several labels are right has no label: its code is negative.
            if not is_quiet or label < 0 or (settings.scales and n & (n - 1) == 0):
                return t
            before = watch[0], watch[1], watch[2], watch[3]
            if guesses.is_outdated(watch, True, n_classes, settings.softness):
                watch[0], watch[1], watch[2], watch[3] = before
                return t
            state.guesses[bank.RIGHT, label] += 1
            guesses.count_sure(state.mixture, False)
            _write_down(record, first + t, label)
            counts[bank.SEEN + bank.DENSE] = n
            for j in range(scale.shape[1]):
                count_entry(statistics, j, X[t, j], n, True)
        start += n_rows
        if n_rows < n_wanted:
            break
    return start
