"""The store of examples: what is stored, what makes room for it, and the replays that follow.

When the store is full, the example makes room whose removal changes the separators least. What a kernel's separators
learned from it is projected onto the example most like it; a linear member loses nothing, since what it learned is in
its weights.
"""

import math

from onebit.engine.jit import jit_internal
from onebit.inputs import Floats, Integers
from onebit.learners.bandit_svm.regressions import shortened
from onebit.learners.bandit_svm.separators import (
    CODE,
    IN_PYTHON,
    KIND,
    LENGTH,
    LINE,
    N_ENTRIES,
    PRODUCTS,
    ROOM,
    TOLERANCE,
    VALUES,
    add_up,
    bounded,
    change_coefficient,
    compare,
    lack,
    multiply_weights,
    replay,
    squared_often,
    write_powers,
    write_products,
)
from onebit.learners.bandit_svm.vote import (
    BASE,
    IS_LINEAR,
    ITSELF,
    LANDMARKS,
    RAW,
    REMOVED,
    ROW_ENTRIES,
    ROW_KIND,
    ROW_LENGTH,
    SIZE,
    SQUARINGS,
    TRUST,
    UNIT,
    BankArrays,
    BankScratch,
    Settings,
)

# Members with less than this share of the trust of the most trusted kernel have no say in what is removed.
_LEAST_SAY = 1e-6
# A member that has little trust still gets this share of the replays, so that it can win trust back.
_LEAST_SHARE = 0.2
# A linear kernel that is the only member takes this many times more steps: no other kernel needs time.
_ALONE = 5.0
# Steps for each class of each member when the scale changes.
_STEPS_AT_RESCALING = 100


@jit_internal
def find_nearest(gram: Floats, size: int, nearest: Integers) -> None:
    """Find which other example is most like each, where it is not known."""
    for s in range(size):
        if nearest[s] == 0:
            best, line = -1, gram[s]
            for r in range(size):
                if r != s and (best < 0 or line[r] > line[best]):
                    best = r
            nearest[s] = best + 1


@jit_internal
def note_nearest(gram: Floats, place: int, size: int, nearest: Integers) -> None:
    """Take in that another example is at a place now."""
    line, nearest[place] = gram[place], 0
    for s in range(size):
        if nearest[s] == place + 1:
            nearest[s] = 0
        elif nearest[s] > 0:
            most = gram[s, nearest[s] - 1]
            # Of equals the first, as `find_nearest` has it: which one it is must not depend on when it was looked for.
            if line[s] > most or (line[s] == most and place + 1 < nearest[s]):
                nearest[s] = place + 1


@jit_internal
def place_to_free(state: BankArrays, scratch: BankScratch, settings: Settings) -> int:
    """Return the place of the example whose projection onto the nearest other one changes the separators least.

    For a member that is the squared norm of the coefficients times k(x, x) − k(x, x')²/k(x', x'). Members count by
    their trust. Where the most trusted one is linear, of which nothing is lost, it is the next place in turn: fresh
    examples teach it most.
    """
    plan, size, lines, most = settings.plan, state.counts[SIZE], scratch.lines, 0.0
    effects, likeness, own = lines[LINE], lines[ROOM], lines[PRODUCTS]
    for k in range(plan.shape[0]):
        if plan[k, IS_LINEAR] and state.members[k, TRUST] == 1.0:
            return int(state.counts[REMOVED] % size)
        most = most if plan[k, IS_LINEAR] else max(most, state.members[k, TRUST])
    for s in range(size):
        effects[s] = 0.0
    for k in range(plan.shape[0]):
        trust = state.members[k, TRUST] / most if most > 0.0 else 1.0
        if not plan[k, IS_LINEAR] and trust >= _LEAST_SAY:
            gram, nearest, importance = state.grams[plan[k, BASE]], scratch.nearest[plan[k, BASE]], state.importance[k]
            find_nearest(gram, size, nearest)
            for s in range(size):
                likeness[s], own[s] = gram[s, max(nearest[s] - 1, 0)], gram[s, s]
            write_powers(likeness, size, plan[k, SQUARINGS], likeness)
            write_powers(own, size, plan[k, SQUARINGS], own)
            for s in range(size):
                of_nearest = own[max(nearest[s] - 1, 0)]
                kept = likeness[s] * likeness[s] / of_nearest if size > 1 and of_nearest > 0.0 else 0.0
                effects[s] += trust * importance[s] * max(own[s] - kept, 0.0)
    place = 0
    for s in range(1, size):
        if effects[s] < effects[place]:
            place = s
    return place


@jit_internal
def project(
    place: int,
    size: int,
    squarings: int,
    gram: Floats,
    targets: Floats,
    alphas: Floats,
    scores: Floats,
    coefficients: Floats,
    sums: Floats,
    importance: Floats,
    values: Floats,
    opinion: Floats,
    lines: Floats,
) -> None:
    """Project what a member learned from an example that is removed onto the example most like it.

    See Orabona, Keshet, Caputo (2009). The member's scores of the row at hand, whose kernel values are `values`, change
    too.
    """
    line, other, nearest, ratio = lines[LINE], lines[ROOM], -1, 0.0
    write_powers(gram[place], size, squarings, line)
    for s in range(size):
        if s != place and (nearest < 0 or line[s] > line[nearest]):
            nearest = s
    if nearest >= 0:
        write_powers(gram[nearest], size, squarings, other)
        # The projection of k(x, ·) onto k(nearest, ·): the least that is lost.
        ratio = line[nearest] / other[nearest] if other[nearest] > 0.0 else 0.0
    lost, gained = squared_often(values[place], squarings), squared_often(values[nearest], squarings) * ratio
    for i in range(opinion.shape[0]):
        share = coefficients[place, i]
        if share != 0.0:
            opinion[i] += share * (gained - lost)
            moved = share * ratio
            for r in range(size):
                scores[i, r] += moved * other[r] - share * line[r]
            if moved != 0.0:
                old, before = alphas[i, nearest], coefficients[nearest, i]
                importance[nearest] = bounded(importance[nearest] + moved * (2.0 * before + moved))
                coefficients[nearest, i] = before + moved
                # It counts as the nearest example's own only where it has its sign.
                target = targets[i, nearest]
                own = moved if target > 0.0 else (-moved if target < 0.0 else 0.0)
                alphas[i, nearest] = max(0.0, old + own)
                change_coefficient(sums, i, old, alphas[i, nearest])


@jit_internal
def store_row(state: BankArrays, scratch: BankScratch, settings: Settings) -> int:
    """Store the row with what is proved of it, and return its place; what is removed for it is projected."""
    plan, counts, lines, n = settings.plan, state.counts, scratch.lines, scratch.flags[ROW_ENTRIES]
    place, n_classes = int(counts[SIZE]), scratch.targets.shape[0]
    is_full = place == state.examples.shape[1]
    if is_full:
        place = place_to_free(state, scratch, settings)
        counts[REMOVED] += 1
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
                state.importance[k],
                lines[VALUES + plan[k, BASE]],
                scratch.opinions[k],
                lines,
            )
        for i in range(n_classes):
            if is_full:
                change_coefficient(state.sums[k], i, state.alphas[k, i, place], 0.0)
            state.coefficients[k, place, i] = state.alphas[k, i, place] = state.importance[k, place] = 0.0
            state.scores[k, i, place] = scratch.opinions[k, i]
    for b in range(settings.bases.shape[0]):
        gram, line = state.grams[b], lines[VALUES + b]
        for s in range(size):
            gram[place, s] = gram[s, place] = line[s]
        gram[place, place] = scratch.numbers[ITSELF + b]
        note_nearest(gram, place, size, scratch.nearest[b])
    for i in range(n_classes):
        state.targets[i, place] = scratch.targets[i]
    for j in range(state.units.shape[0]):
        state.units[j, place] = scratch.unit[j]
    for e in range(n):
        state.columns[place, e], state.raws[place, e] = scratch.columns[e], scratch.entries[RAW, e]
    for e in range(min(n, state.values.shape[1])):
        state.values[place, e] = scratch.entries[UNIT, e]
    examples = state.examples
    examples[LENGTH, place] = scratch.numbers[ROW_LENGTH]
    examples[KIND, place], examples[N_ENTRIES, place] = scratch.flags[ROW_KIND], n
    n_landmarks, length = counts[LANDMARKS], shortened(scratch.numbers[ROW_LENGTH], scratch.unit.shape[0])
    if n_landmarks < state.landmarks.shape[1]:
        for j in range(state.landmarks.shape[0]):
            state.landmarks[j, n_landmarks] = length * scratch.unit[j]
        counts[LANDMARKS] = n_landmarks + 1
    return place


@jit_internal
def replay_all(state: BankArrays, scratch: BankScratch, settings: Settings, place: int) -> None:
    """Replay the classes that violate a fact of the example that was just stored; all, if `place` is −1."""
    plan, size, n_weights = settings.plan, state.counts[SIZE], state.weights.shape[0]
    for k in range(plan.shape[0]):
        times = _STEPS_AT_RESCALING
        if place >= 0:
            # A step costs one pass over the store: while it is small, more of them fit into the same work. Replays make
            # opinions better, so they go where opinions count.
            share = 1.0 if plan[k, IS_LINEAR] else max(state.members[k, TRUST], _LEAST_SHARE)
            share *= 1.0 if state.units.shape[0] > 0 else _ALONE
            times = int(settings.replays * settings.budget / size * share)
        for i in range(state.targets.shape[0]):
            if place < 0 or lack(state.targets[i, place], state.scores[k, i, place]) > 0.0:
                replay(
                    i,
                    place,
                    times,
                    size,
                    plan[k, SQUARINGS],
                    settings.softness,
                    TOLERANCE,
                    state.grams[plan[k, BASE]],
                    state.targets[i],
                    state.alphas[k, i],
                    state.scores[k, i],
                    state.coefficients[k],
                    state.sums[k],
                    state.importance[k],
                    state.examples,
                    state.columns,
                    state.values,
                    state.units,
                    state.weights[: n_weights * plan[k, IS_LINEAR]],
                    scratch.lines,
                )


@jit_internal
def refit(state: BankArrays, scratch: BankScratch, settings: Settings, learns: bool) -> bool:
    """Write the kernel values of all stored examples, as if they came one after the other.

    If asked to learn, score them all again, and replay what has changed; return whether all scores are numbers.
    """
    plan, bases, lines, unit, entries = settings.plan, settings.bases, scratch.lines, scratch.unit, scratch.entries
    size, scores, are_finite = state.counts[SIZE], scratch.scores, True
    unit[:] = 0.0
    scratch.nearest[:] = 0
    for s in range(size):
        n = int(state.examples[N_ENTRIES, s])
        for e in range(n):
            j = state.columns[s, e]
            entries[UNIT, e] = unit[j] = state.units[j, s] if state.units.shape[0] > 0 else state.values[s, e]
        write_products(
            s,
            state.columns,
            state.values,
            state.examples,
            state.units,
            state.columns[s],
            entries[UNIT],
            n,
            unit,
            lines[PRODUCTS],
        )
        for b in range(bases.shape[0]):
            if bases[b, CODE] != IN_PYTHON:
                gram, lengths = state.grams[b], state.examples[LENGTH]
                gram[s, s] = compare(
                    bases[b], state.units, lengths, unit, lengths[s], s, lines[PRODUCTS], lines[ROOM], lines[VALUES]
                )
                for r in range(s):
                    gram[s, r] = gram[r, s] = lines[VALUES, r]
        for k in range(plan.shape[0] if learns else 0):
            if plan[k, IS_LINEAR]:
                multiply_weights(state.weights, state.columns[s], entries[UNIT], n, scores)
                for i in range(scores.shape[0]):
                    state.scores[k, i, s] = scores[i]
        for e in range(n):
            unit[state.columns[s, e]] = 0.0
    for k in range(plan.shape[0] if learns else 0):
        for s in range(size if not plan[k, IS_LINEAR] else 0):
            write_powers(state.grams[plan[k, BASE], s], size, plan[k, SQUARINGS], lines[LINE])
            add_up(state.coefficients[k], lines[LINE], size, scores)
            for i in range(scores.shape[0]):
                state.scores[k, i, s] = scores[i]
        for s in range(size):
            for i in range(scores.shape[0]):
                are_finite = are_finite and math.isfinite(state.scores[k, i, s])
    if learns and are_finite:
        replay_all(state, scratch, settings, -1)
    scratch.flags[ROW_ENTRIES] = 0
    return are_finite
