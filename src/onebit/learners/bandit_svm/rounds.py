"""What happens in a round: a row is scored, a label is chosen, and the answer is learned from.

A member is sure if nothing productive would be left to learn, were it right. The most trusted member guesses alone
where it is sure, unless it was often wrong when sure, or the reference is followed; the others are asked only if it was
wrong. So most rounds of an easy stream need one member. Otherwise all vote, and the regressions may propose another
label.

Python calls one compiled function, `run`, for everything, so everything is compiled once.
"""

from functools import partial
from typing import Any

from onebit.engine.jit import by_reference, jit_internal, jit_no_refcount
from onebit.engine.lengths import shorten
from onebit.engine.loop import EXPLORED, FULL, MISTAKES, PASSED, READY, UNSCORED, UPDATES, ready_if_finite
from onebit.engine.scaling import count_entry, scaled
from onebit.engine.state import in_python
from onebit.inputs import Floats, Integers
from onebit.kernels import is_lost
from onebit.learners.bandit_svm.regressions import VOTE, count_sure, estimate, learn, may_guess_alone, propose
from onebit.learners.bandit_svm.separators import (
    CODE,
    GAUSSIAN,
    IN_PYTHON,
    LAPLACE,
    LENGTH,
    LINE,
    N_ENTRIES,
    OF_UNITS,
    PRODUCTIVE,
    PRODUCTS,
    ROOM,
    VALUES,
    add_up,
    compare,
    is_worth_storing,
    largest_lack,
    multiply_weights,
    prove,
    squared_often,
    write_powers,
    write_products,
)
from onebit.learners.bandit_svm.store import refit, replay_all, store_row
from onebit.learners.bandit_svm.vote import (
    ASK_ALL,
    ASKED,
    BASE,
    DENIED,
    DENSE,
    DISPUTED,
    DUE,
    FOLLOW,
    FOLLOWED,
    IS_LINEAR,
    ITSELF,
    LANDMARKS,
    LATELY,
    LOSS,
    MULTIPLIED,
    PRODUCED,
    RAW,
    RAW_UNIT,
    REFERENCE,
    RIGHT,
    ROW_ENTRIES,
    ROW_KIND,
    ROW_LENGTH,
    SCALE,
    SEEN,
    SIZE,
    SPARSE,
    SQUARINGS,
    STATISTICS,
    TO_FORGET,
    TRUST,
    UNIT,
    WRONG,
    BankArrays,
    BankScratch,
    Settings,
    choose,
    highest_of,
    is_denied,
    is_outdated,
    is_sure,
    is_to_follow,
    judge_members,
    newcomer,
    pass_over,
    prefer,
    teach_guard,
    write_vote,
)

SCORE, SCORE_ALL, CHOOSE, LEARN, PLAY, REFIT = range(6)
"""What `run` is asked for."""

# What a productive example counts beside a wrong opinion: among members that are wrong alike, trust the one that fits.
_LESSON = 0.03
# Beyond, the squares in ‖x‖² + ‖x'‖² − 2⟨x, x'⟩ are no floats, and their difference is no number.
_LONGEST = 1e150
# Called here, and not copied into each caller.
_shorten = jit_internal(in_python(shorten))


@jit_internal
def read_row(
    values: Floats,
    columns: Integers,
    starts: Integers,
    t: int,
    scales: bool,
    scaling: Floats,
    row_columns: Integers,
    entries: Floats,
    unit: Floats,
    numbers: Floats,
    flags: Integers,
) -> int:
    """Read row t, scale it and divide it by its length; return READY, FULL for a long row, or UNSCORED.

    Dense rows lie one behind the other in `values`, and `starts` is empty.
    """
    n_features, new = unit.shape[0] - scales, entries[UNIT]
    kind, first, n = DENSE, t * n_features, n_features
    if starts.shape[0] > 0:
        kind, first, n = SPARSE, starts[t], starts[t + 1] - starts[t]
    if n + scales > entries.shape[1]:
        return FULL
    for e in range(flags[ROW_ENTRIES]):  # of the row before
        unit[row_columns[e]] = 0.0
    stop, n = first + n, 0
    for place in range(first, stop):
        j, value = columns[place] if kind == SPARSE else place - first, values[place]
        if scales or value != 0.0:  # scaled, a value of 0 is another
            row_columns[n], entries[RAW, n] = j, value
            new[n] = scaled(scaling[kind, SCALE], j, value) if scales else value
            n += 1
    if scales:
        row_columns[n], entries[RAW, n], new[n] = n_features, 1.0, 1.0
        n += 1
    flags[ROW_ENTRIES], flags[ROW_KIND] = n, kind
    if ready_if_finite(new[:n]) != READY:
        return UNSCORED
    numbers[ROW_LENGTH] = _shorten(new, n)
    for e in range(n):
        unit[row_columns[e]] = new[e]
    for f in range(MULTIPLIED, flags.shape[0]):
        flags[f] = 0
    return READY


@jit_internal
def ask(state: BankArrays, scratch: BankScratch, settings: Settings, first: int, stop: int, compares_all: bool) -> None:
    """Write the scores that some members give to the row, unless they are written; and all bases' values, if wanted."""
    plan, bases, guard, opinions = settings.plan, settings.bases, state.guard, scratch.opinions
    lines, numbers, flags, entries = scratch.lines, scratch.numbers, scratch.flags, scratch.entries
    size, m, n, n_raw = state.counts[SIZE], plan.shape[0], flags[ROW_ENTRIES], flags[ROW_ENTRIES] - settings.scales
    compared = ASKED + opinions.shape[0]
    for k in range(first, stop):
        b = plan[k, BASE] if k < m else -1
        is_needed = k < m and (compares_all or not plan[k, IS_LINEAR])
        if is_needed and not flags[compared + b] and bases[b, CODE] != IN_PYTHON:
            if bases[b, CODE] != LAPLACE and not flags[MULTIPLIED]:
                write_products(
                    size,
                    state.columns,
                    state.values,
                    state.examples,
                    state.units,
                    scratch.columns,
                    entries[UNIT],
                    n,
                    scratch.unit,
                    lines[PRODUCTS],
                )
                flags[MULTIPLIED] = 1
            numbers[ITSELF + b] = compare(
                bases[b],
                state.units,
                state.examples[LENGTH],
                scratch.unit,
                numbers[ROW_LENGTH],
                size,
                lines[PRODUCTS],
                lines[ROOM],
                lines[VALUES + b],
            )
            flags[compared + b] = 1
        if flags[ASKED + k]:
            continue
        flags[ASKED + k] = 1
        if k == m:
            for e in range(n_raw):
                entries[RAW_UNIT, e] = entries[RAW, e]
            _shorten(entries[RAW_UNIT], n_raw)
            multiply_weights(guard, scratch.columns, entries[RAW_UNIT], n_raw, opinions[k])
        elif plan[k, IS_LINEAR]:
            multiply_weights(state.weights, scratch.columns, entries[UNIT], n, opinions[k])
            numbers[ITSELF + b] = 1.0 if numbers[ROW_LENGTH] > 0.0 else 0.0
        else:
            write_powers(lines[VALUES + b], size, plan[k, SQUARINGS], lines[LINE])
            add_up(state.coefficients[k], lines[LINE], size, opinions[k])


@jit_internal
def score_row(
    state: BankArrays,
    scratch: BankScratch,
    settings: Settings,
    values: Floats,
    columns: Integers,
    starts: Integers,
    t: int,
) -> int:
    """Write what is known about row t, and the scores that the guess is made from; return READY, FULL or UNSCORED."""
    counts, flags, members, opinions = state.counts, scratch.flags, state.members, scratch.opinions
    capacity, m, n_asked = state.examples.shape[1], settings.plan.shape[0], members.shape[0]
    if counts[DUE] or (counts[SIZE] == capacity and capacity < settings.budget):
        return FULL
    # Ctrl-C may have come when the state had changed its size, and the scratch arrays had not.
    are_wide = scratch.lines.shape[1] == capacity and scratch.entries.shape[1] == state.columns.shape[1]
    if not are_wide or scratch.scores.shape[0] != state.targets.shape[0]:
        return FULL
    entries, numbers, scores = scratch.entries, scratch.numbers, scratch.scores
    why = read_row(
        values,
        columns,
        starts,
        t,
        settings.scales,
        state.scaling,
        scratch.columns,
        entries,
        scratch.unit,
        numbers,
        flags,
    )
    if why != READY:
        return why
    length = numbers[ROW_LENGTH]
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
    is_alone = settings.is_bounded and not follow and not flags[ASK_ALL] and may_guess_alone(state.mixture)
    first, stop = (leader, leader + 1) if is_alone else (0, n_asked)
    while True:
        ask(state, scratch, settings, first, stop, False)
        is_alone = is_alone and is_sure(opinions[leader])
        if is_alone or stop - first == n_asked:
            break
        first, stop = 0, n_asked
    for k in range(0 if settings.is_bounded else m):
        itself = squared_often(numbers[ITSELF + settings.plan[k, BASE]], settings.plan[k, SQUARINGS])
        if is_lost(itself, length**2, entries[:, : flags[ROW_ENTRIES]], UNIT) or ready_if_finite(opinions[k]) != READY:
            return UNSCORED
    write_vote(members, opinions, m, flags, scores)
    for i in range(scores.shape[0]):
        scratch.estimates[VOTE, i] = scores[i]
    if settings.guarded:
        top = scores[highest_of(scores)]
        if is_denied(top):
            flags[DENIED] = 1
            pass_over(
                counts[SIZE],
                state.columns,
                state.raws,
                state.examples[N_ENTRIES],
                state.targets,
                scratch.columns,
                entries[RAW],
                flags[ROW_ENTRIES],
                scratch.propensities,
                scores,
            )
        prefer(state.guesses, settings.softness, state.watch[LATELY] if top < 0.0 else 0.0, scores)
    if state.mixture.shape[0] > 0 and not is_alone:
        estimate(
            scratch.unit,
            length,
            state.landmarks,
            counts[LANDMARKS],
            state.landmark_weights,
            state.row_changes,
            state.row_weights,
            scratch.features[0],
            scratch.features[1],
            scratch.estimates,
        )
        tried = -1
        if settings.guarded:
            tried = newcomer(
                counts[SIZE],
                scratch.lines[scratch.lines.shape[0] - 1],  # of the default bank's last kernel, Laplace's
                state.targets,
                state.guesses[RIGHT],
                state.watch[LATELY],
                scratch.propensities,
                scores,
            )
        if tried >= 0:
            flags[DENIED] = 1  # so that a mistake is stored
            scores[tried] = scores[highest_of(scores)] + 1.0
        elif not flags[ASK_ALL]:
            propose(scratch.estimates, state.guesses, state.mixture, scratch.known, scores)
    return READY


# Learning from an answer.


@jit_internal
def learn_row(
    state: BankArrays, scratch: BankScratch, settings: Settings, label: int, explored: bool, correct: bool, truth: int
) -> bool:
    """Learn from the answer about the row at hand, and return whether it was stored."""
    members, opinions, targets, flags = state.members, scratch.opinions, scratch.targets, scratch.flags
    counts, n_classes = state.counts, scratch.targets.shape[0]
    m, n_asked, lately = settings.plan.shape[0], members.shape[0], state.watch[LATELY]
    known = prove(label, correct, truth, settings.is_closed, targets)
    outdated = is_outdated(state.watch, correct, n_classes, settings.softness)
    are_asked, leader = True, 0
    for k in range(n_asked):
        are_asked = are_asked and flags[ASKED + k] != 0
        if k < m and members[k, TRUST] > members[leader, TRUST]:
            leader = k
    take_part = are_asked and state.mixture.shape[0] > 0
    reference = opinions[flags[REFERENCE]]
    square = squared_often(scratch.numbers[ITSELF + settings.plan[leader, BASE]], settings.plan[leader, SQUARINGS])
    is_wanted = is_worth_storing(targets, opinions[leader], square, state.sums[leader], settings.guarded)
    # What is productive for the reference is always stored: the guarantee is about those facts. And where every label
    # is held to be wrong, it must be known which were tried.
    if are_asked:
        is_wanted = is_wanted or largest_lack(targets, reference) > PRODUCTIVE or (flags[DENIED] != 0 and not correct)
    if is_wanted or not correct:
        ask(state, scratch, settings, 0, n_asked, True)
        is_wanted = is_wanted or largest_lack(targets, reference) > PRODUCTIVE
    state.guesses[RIGHT if correct else WRONG, label] += 1
    if not correct and explored:
        counts[FOLLOWED] += 1
    elif not correct and is_denied(reference[label]):
        counts[DISPUTED] += 1
    guessed = highest_of(opinions[leader])
    if state.mixture.shape[0] > 0 and (known >= 0 or guessed == label) and is_sure(opinions[leader]):
        count_sure(state.mixture, guessed != known)
    if take_part:
        learn(
            label,
            correct,
            known,
            truth >= 0 or (settings.is_closed and n_classes == 2),
            state.landmark_weights.shape[0] - state.landmarks.shape[1] + counts[LANDMARKS],
            state.landmark_changes,
            state.landmark_weights,
            state.row_changes,
            state.row_weights,
            state.mixture,
            scratch.features[0],
            scratch.features[1],
            scratch.estimates,
            scratch.known,
        )
    if are_asked or not correct:  # otherwise the leader was sure, and right
        judge_members(members, m, opinions, label, known, lately)
    n_raw = flags[ROW_ENTRIES] - settings.scales
    if is_wanted:
        # Before the store makes room, which changes opinions: productive is what was so when the guess was made.
        for k in range(n_asked):
            if largest_lack(targets, opinions[k]) > PRODUCTIVE:
                members[k, PRODUCED] += 1.0
                members[k, LOSS] += _LESSON
                if k == m:
                    teach_guard(
                        state.guard,
                        scratch.columns,
                        scratch.entries[RAW_UNIT],
                        n_raw,
                        targets,
                        opinions[k],
                        settings.softness,
                    )
        replay_all(state, scratch, settings, store_row(state, scratch, settings))
    # A new scale is due after 1, 2, 4, 8, … rows of a kind.
    kind = flags[ROW_KIND]
    counts[SEEN + kind] += 1
    n = counts[SEEN + kind]
    if settings.scales and n & (n - 1) == 0:
        counts[DUE] += 1 + kind
    if outdated:
        counts[DUE] += TO_FORGET
    for e in range(n_raw if settings.scales else 0):
        count_entry(state.scaling[kind, STATISTICS], scratch.columns[e], scratch.entries[RAW, e], n, kind == DENSE)
    return is_wanted


@partial(jit_no_refcount, is_long=True)
def run(
    task: int,
    state_arrays: Any,
    scratch_arrays: Any,
    setting_values: Any,
    rows: Any,
    t: int,
    y: Integers,
    start: int,
    seed: int,
    first_round: int,
    answer: Any,
    record_arrays: Any,
    out: Floats,
) -> tuple[int, int, int, bool]:
    """Do a task; return the round it came to, READY or why it stopped, a label, and whether it was explored.

    Parameters
    ----------
    task : int
        SCORE a row and choose a label; SCORE_ALL rows into `out`; CHOOSE from the scratch arrays as they are, where
        `explored` says whether the regressions propose first; LEARN from an answer about the row scored last, and
        return in place of "explored" whether it was stored; PLAY rows and labels; REFIT the stored examples, where
        `explored` says whether to learn from them.
    state_arrays, scratch_arrays, setting_values, record_arrays : tuples
        `BankArrays`, `BankScratch`, `Settings` and `Record` as plain tuples, which Python hands over faster.
    rows : tuple of arrays
        Values, columns and starts of `SparseRows`; of dense rows the values alone, the others empty.
    t, y, start, seed, first_round : int, array, int, int, int
        The row to begin with, the right labels, and how to count rounds: row t is round first_round + start + t.
    answer : tuple
        Label, explored, correct and truth, as in `onebit.game.Answer`.
    """
    state, scratch, settings = (
        by_reference(BankArrays(*state_arrays)),
        by_reference(BankScratch(*scratch_arrays)),
        by_reference(Settings(*setting_values)),
    )
    (values, columns, starts), (label, explored, correct, truth) = rows, answer
    counts, checkpoints, cumulative, guesses = record_arrays
    scores_rows, chooses, learns = (
        task in (SCORE, SCORE_ALL, PLAY),
        task in (SCORE, CHOOSE, PLAY),
        task in (LEARN, PLAY),
    )
    why, n = READY, t + 1
    if task == REFIT:
        return t, why, label, refit(state, scratch, settings, explored)
    if task in (SCORE_ALL, PLAY):
        n = y.shape[0] if task == PLAY else out.shape[0]
    while t < n:
        if scores_rows:
            why = score_row(state, scratch, settings, values, columns, starts, t)
            if why != READY:
                break
        if task == SCORE_ALL:
            for i in range(out.shape[1]):
                out[t, i] = scratch.scores[i]
        if task == CHOOSE and explored:
            propose(scratch.estimates, state.guesses, state.mixture, scratch.known, scratch.scores)
        if chooses:
            label, explored = choose(
                scratch.scores,
                scratch.opinions[scratch.flags[REFERENCE]],
                scratch.flags[FOLLOW],
                settings.guarded,
                settings.mix,
                seed,
                first_round + start + t,
                scratch.propensities,
            )
        if task == PLAY:
            correct, truth = label == y[t], y[t] if settings.full_information else -1
        changed = learns and learn_row(state, scratch, settings, label, explored, correct, truth)
        if task == LEARN:
            return t, why, label, changed
        if task == PLAY:
            counts[MISTAKES] += not correct
            counts[UPDATES] += changed
            counts[EXPLORED] += explored
            if guesses.shape[0] > 0:
                guesses[start + t] = label
            passed = counts[PASSED]
            if passed < checkpoints.shape[0] and start + t + 1 == checkpoints[passed]:
                cumulative[passed] = counts[MISTAKES]
                counts[PASSED] = passed + 1
        t += 1
    return t, why, label, explored
