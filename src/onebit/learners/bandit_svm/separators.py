"""Separators: what feedback proves, kernel values, steps of dual coordinate ascent, and the store of examples.

Class by class the facts are a binary problem, whose largest-margin separator is found by dual coordinate ascent: the
step on a fact with sign s, coefficient α ≥ 0 and score f raises or lowers α until s·f + α/(2C) is the margin that the
fact is due, or α = 0. That is 1, but half of it for "not j, since it is i": there are K−1 such facts for each right
guess, and with a whole margin each they would hold classes down that were not tried yet (docs/theory/bandit-svm.md).

Functions are called, not copied into their callers, and named tuples go by reference: that keeps compile time low.
"""

from typing import Any

import numpy as np

from onebit.engine.jit import jit_internal
from onebit.inputs import Floats, Integers
from onebit.kernels import Gaussian, Linear, Multinomial, Polynomial, Rational, gaussian_exponent
from onebit.learners.bandit_svm import bank
from onebit.learners.bandit_svm.bank import BankArrays, BankScratch, Settings

_LESSON = 0.03  # what a productive example counts beside a wrong opinion: trust the member that fits
_TOLERANCE = 1e-3  # of the margin: closer than guesses can tell, and replays need not go on
_LARGE = 1e300  # squares of coefficients beyond this would overflow in sums
_BLOCK = 256  # how many slopes are searched at once
_LEAST_WEIGHT = 1e-6  # members with less of the trust of the most trusted kernel do not count in what is removed
_LEAST_SHARE = 0.2  # a member that has little trust still gets this share of the replays, so that it can win it back
_ALONE = 5.0  # a linear kernel that is the only member takes this many times more steps: no other kernel needs time
_STEPS_AT_RESCALING = 100  # for each class of each member

# In the order of `bank.DOT` and so on.
COMPILED = (Linear, Gaussian, Rational, Polynomial, Multinomial)
_FORMULAS: tuple[Any, ...] = tuple(kernel.value for kernel in COMPILED[2:])
_rational, _polynomial, _multinomial = _FORMULAS


@jit_internal
def is_productive(targets: Floats, scores: Floats) -> bool:
    """Return whether one of the facts is productive."""
    found = False
    for i in range(targets.shape[0]):
        found = found or bank.lack(targets[i], scores[i]) > bank.PRODUCTIVE
    return found


@jit_internal
def write_values(state: BankArrays, scratch: BankScratch, settings: Settings, b: int, size: int) -> None:
    """Write the values of the row at hand with the first stored ones, and with itself, unless they are written."""
    base, flags, lines, products = settings.bases[b], scratch.flags, scratch.lines, scratch.lines[bank.PRODUCTS]
    entries, written = scratch.entries[bank.UNIT], bank.ASKED + scratch.opinions.shape[0] + b
    if flags[written] or base[bank.CODE] == bank.IN_PYTHON:
        return
    if base[bank.CODE] != bank.LAPLACE and not flags[bank.MULTIPLIED]:
        flags[bank.MULTIPLIED] = 1
        if state.units.shape[0] > 0:
            bank.multiply(state.units, scratch.columns, entries, flags[bank.ROW_ENTRIES], size, products)
        for s in range(0 if state.units.shape[0] > 0 else size):
            products[s] = 0.0
            for e in range(int(state.examples[bank.N_ENTRIES, s])):
                products[s] += state.values[s, e] * scratch.unit[state.columns[s, e]]
    lengths, length = state.examples[bank.LENGTH], scratch.numbers[bank.ROW_LENGTH]
    itself = compare(base, state.units, lengths, scratch.unit, length, size, lines, lines[bank.VALUES + b])
    scratch.numbers[bank.ITSELF + b], flags[written] = itself, 1


@jit_internal
def compare(
    base: Floats, units: Floats, lengths: Floats, unit: Floats, length: float, size: int, lines: Floats, out: Floats
) -> float:
    """Write a kernel's values of a row with the first stored ones, and return its value with itself.

    Rows are given by their length, and divided by it; their products are in `lines`, unless the kernel is Laplace's.
    """
    code, parameters, of_units = base[bank.CODE], base[bank.PARAMETER :], base[bank.OF_UNITS] != 0.0
    products, squares = lines[bank.PRODUCTS], lines[bank.ROOM]
    if code == bank.LAPLACE:
        out[:size] = 0.0
        for j in range(unit.shape[0]):
            entry, column = unit[j] * length, units[j]
            for s in range(size):
                out[s] += abs(entry - column[s] * lengths[s])
        for s in range(size):
            out[s] *= -parameters[0]
    else:
        if of_units:
            length = 1.0 if length > 0.0 else 0.0  # a row of zeros has no direction
        for s in range(size):
            other = (1.0 if lengths[s] > 0.0 else 0.0) if of_units else lengths[s]
            out[s], squares[s] = products[s] * length * other, other * other
    itself = length * length
    if code in (bank.LAPLACE, bank.GAUSSIAN):
        for s in range(size if code == bank.GAUSSIAN else 0):
            out[s] = gaussian_exponent(out[s], itself, squares[s], parameters)
        bank.exponentiate(out, size, squares)
        itself = 1.0
    elif code != bank.DOT:
        itself = _of_product(code, itself, parameters)
        for s in range(size):
            out[s] = _of_product(code, out[s], parameters)
    return itself


@jit_internal
def _of_product(code: float, product: float, parameters: Floats) -> Any:
    if code == bank.RATIONAL:
        return _rational(product, 0.0, 0.0, parameters)
    if code == bank.POLYNOMIAL:
        return _polynomial(product, 0.0, 0.0, parameters)
    return _multinomial(product, 0.0, 0.0, parameters)


@jit_internal
def write_powers(values: Floats, size: int, times: int, out: Floats) -> None:
    """Write values, squared that many times."""
    for r in range(size):
        out[r] = values[r]
    for _ in range(times):
        for r in range(size):
            out[r] *= out[r]


@jit_internal
def squared_often(value: float, times: int) -> float:
    """Return a value squared that many times."""
    for _ in range(times):
        value *= value
    return value


@jit_internal
def _stepped(alpha: float, target: float, score: float, square: float, softness: float) -> float:
    """Return a fact's coefficient after its step: the dual's maximum along it. A fact about nothing gets none."""
    curvature = square + softness
    return max(0.0, alpha + (bank.lack(target, score) - alpha * softness) / curvature) if curvature > 0.0 else alpha


@jit_internal
def _teach_guard(state: BankArrays, scratch: BankScratch, opinion: Floats, n: int, softness: float) -> None:
    """Update the guard with every fact that it violates; it keeps no examples, and replays nothing."""
    unit, targets, square = scratch.entries[bank.RAW_UNIT], scratch.targets, 0.0
    for e in range(n):
        square += unit[e] * unit[e]
    for i in range(targets.shape[0]):
        size = _stepped(0.0, targets[i], opinion[i], square, softness)
        step = size if targets[i] > 0.0 else -size
        for e in range(n if step != 0.0 else 0):
            state.guard[scratch.columns[e], i] += step * unit[e]


@jit_internal
def _change_coefficient(sums: Floats, i: int, old: float, new: float) -> None:
    sums[bank.TOTAL, i] += new - old
    sums[bank.SUPPORT, i] += (1.0 if new > 0.0 else 0.0) - (1.0 if old > 0.0 else 0.0)


@jit_internal
def _importance(importance: float, before: float, gained: float) -> float:
    # The sum of an example's squared coefficients after one has gained, or the nearest safe number.
    return max(-_LARGE, min(_LARGE, importance + gained * (2.0 * before + gained)))


@jit_internal
def _steepest(slopes: Floats, size: int, tolerance: float) -> int:
    """Return where the largest of the slopes is, none of which is negative, or −1 if none is beyond the tolerance."""
    # Numbers that are not negative are ordered as their bits are, and the compiler vectorises the search for the
    # largest integer, though not for the largest float. Where it is matters only in the block that has it.
    bits = slopes.view(np.int64)
    largest, first = 0, 0
    for start in range(0, size, _BLOCK):
        block, top = bits[start : min(start + _BLOCK, size)], 0
        for r in range(block.shape[0]):  # from 0: an index that might be negative would not be vectorised
            top = max(top, block[r])
        if top > largest:
            largest, first = top, start
    for s in range(first, min(first + _BLOCK, size)):
        if bits[s] == largest and slopes[s] > tolerance:
            return s
    return -1


@jit_internal
def _replay(
    state: BankArrays, scratch: BankScratch, settings: Settings, k: int, i: int, first: int, times: int, least: float
) -> None:
    """Take that many steps for class i of member k, the steepest first: the fewest to the optimum.

    If `first` is not −1, a step is taken on that example before. It ends where no slope is beyond `least`.
    """
    plan, size, softness = settings.plan[k], state.counts[bank.SIZE], settings.softness
    targets, alphas, scores = state.targets[i], state.alphas[k, i], state.scores[k, i]
    coefficients, importance, gram = state.coefficients[k], state.importance[k], state.grams[plan[bank.BASE]]
    line, slopes, s = scratch.lines[bank.LINE], scratch.lines[bank.ROOM], first
    for _ in range(times + 1):
        row, amount = gram[max(s, 0)], 0.0
        if plan[bank.SQUARINGS] > 0:
            write_powers(row, size, plan[bank.SQUARINGS], line)
            row = line
        if s >= 0:
            old, before = alphas[s], coefficients[s, i]
            new = _stepped(old, targets[s], scores[s], row[s], softness)
            amount = new - old if targets[s] > 0.0 else old - new
            alphas[s], coefficients[s, i] = new, before + amount
            _change_coefficient(state.sums[k], i, old, new)
            importance[s] = _importance(importance[s], before, amount)
            for e in range(int(state.examples[bank.N_ENTRIES, s]) if plan[bank.IS_LINEAR] else 0):
                j = state.columns[s, e]
                state.weights[j, i] += amount * (state.units[j, s] if state.units.shape[0] > 0 else state.values[s, e])
        for r in range(size):
            score, target = scores[r] + amount * row[r], targets[r]
            scores[r] = score
            slope = target - score if target > 0.0 else (score - target if target < 0.0 else 0.0)
            slope -= alphas[r] * softness
            slopes[r] = max(slope, -slope * (alphas[r] > 0.0))  # a coefficient of 0 cannot become smaller
        s = _steepest(slopes, size, least)
        if s < 0:
            break


@jit_internal
def replay_all(state: BankArrays, scratch: BankScratch, settings: Settings, place: int) -> None:
    """Replay the classes that violate a fact of the example that was just stored; all, if `place` is −1."""
    for k in range(settings.plan.shape[0]):
        times = _STEPS_AT_RESCALING
        if place >= 0:
            # A step costs one pass over the store: while it is small, more of them fit into the same work. Replays make
            # opinions better, so they go where opinions count.
            share = 1.0 if settings.plan[k, bank.IS_LINEAR] else max(state.members[k, bank.TRUST], _LEAST_SHARE)
            share *= 1.0 if state.units.shape[0] > 0 else _ALONE
            times = int(settings.replays * settings.budget / state.counts[bank.SIZE] * share)
        for i in range(state.targets.shape[0]):
            if place < 0 or bank.lack(state.targets[i, place], state.scores[k, i, place]) > 0.0:
                _replay(state, scratch, settings, k, i, place, times, _TOLERANCE)


# The store: when it is full, the example makes room whose removal changes the separators least.


@jit_internal
def _find_nearest(gram: Floats, size: int, nearest: Integers) -> None:
    """Find which other example is most like each, where it is not known."""
    for s in range(size):
        if nearest[s] == 0:
            best, line = -1, gram[s]
            for r in range(size):
                if r != s and (best < 0 or line[r] > line[best]):
                    best = r
            nearest[s] = best + 1


@jit_internal
def _note_nearest(gram: Floats, place: int, size: int, nearest: Integers) -> None:
    """Take in that another example is at a place now."""
    line, nearest[place] = gram[place], 0
    for s in range(size):
        if nearest[s] == place + 1:
            nearest[s] = 0
        elif nearest[s] > 0:
            most = gram[s, nearest[s] - 1]
            # Of equals the first, as `_find_nearest` has it: which one it is must not depend on when it was looked for.
            if line[s] > most or (line[s] == most and place + 1 < nearest[s]):
                nearest[s] = place + 1


@jit_internal
def _place_to_free(state: BankArrays, scratch: BankScratch, settings: Settings) -> int:
    """Return the place of the example whose projection onto the nearest other one changes the separators least.

    For a member that is the squared norm of the coefficients times k(x, x) − k(x, x')²/k(x', x'). Where the most
    trusted one is linear, of which nothing is lost, it is the next place in turn.
    """
    plan, trust, size, most = settings.plan, state.members[:, bank.TRUST], state.counts[bank.SIZE], 0.0
    effects, likeness, own = scratch.lines[bank.LINE], scratch.lines[bank.ROOM], scratch.lines[bank.PRODUCTS]
    for k in range(plan.shape[0]):
        if plan[k, bank.IS_LINEAR] and trust[k] == 1.0:
            return int(state.counts[bank.REMOVED] % size)
        most = most if plan[k, bank.IS_LINEAR] else max(most, trust[k])
    effects[:size] = 0.0
    for k in range(plan.shape[0]):
        weight, b, squarings = trust[k] / most if most > 0.0 else 1.0, plan[k, bank.BASE], plan[k, bank.SQUARINGS]
        if not plan[k, bank.IS_LINEAR] and weight >= _LEAST_WEIGHT:
            gram, nearest, importance = state.grams[b], scratch.nearest[b], state.importance[k]
            _find_nearest(gram, size, nearest)
            for s in range(size):
                likeness[s], own[s] = gram[s, max(nearest[s] - 1, 0)], gram[s, s]
            write_powers(likeness, size, squarings, likeness)
            write_powers(own, size, squarings, own)
            for s in range(size):
                of_nearest = own[max(nearest[s] - 1, 0)]
                kept = likeness[s] * likeness[s] / of_nearest if size > 1 and of_nearest > 0.0 else 0.0
                effects[s] += weight * importance[s] * max(own[s] - kept, 0.0)
    place = 0
    for s in range(1, size):
        if effects[s] < effects[place]:
            place = s
    return place


@jit_internal
def _project(state: BankArrays, scratch: BankScratch, settings: Settings, k: int, place: int) -> None:
    """Project what member k learned from an example that is removed onto the one most like it (Orabona et al. 2009)."""
    b, squarings, size = settings.plan[k, bank.BASE], settings.plan[k, bank.SQUARINGS], state.counts[bank.SIZE]
    gram, alphas, coefficients, importance = state.grams[b], state.alphas[k], state.coefficients[k], state.importance[k]
    line, other, values = scratch.lines[bank.LINE], scratch.lines[bank.ROOM], scratch.lines[bank.VALUES + b]
    nearest, ratio = -1, 0.0
    write_powers(gram[place], size, squarings, line)
    for s in range(size):
        if s != place and (nearest < 0 or line[s] > line[nearest]):
            nearest = s
    if nearest >= 0:
        write_powers(gram[nearest], size, squarings, other)
        # The projection of k(x, ·) onto k(nearest, ·): the least that is lost.
        ratio = line[nearest] / other[nearest] if other[nearest] > 0.0 else 0.0
    lost, gained = squared_often(values[place], squarings), squared_often(values[nearest], squarings) * ratio
    for i in range(state.targets.shape[0]):
        share, scores = coefficients[place, i], state.scores[k, i]
        if share != 0.0:
            scratch.opinions[k, i] += share * (gained - lost)
            moved = share * ratio
            for r in range(size):
                scores[r] += moved * other[r] - share * line[r]
            if moved != 0.0:
                old, before, target = alphas[i, nearest], coefficients[nearest, i], state.targets[i, nearest]
                importance[nearest] = _importance(importance[nearest], before, moved)
                coefficients[nearest, i] = before + moved
                # It counts as the nearest example's own only where it has its sign.
                own = moved if target > 0.0 else (-moved if target < 0.0 else 0.0)
                alphas[i, nearest] = max(0.0, old + own)
                _change_coefficient(state.sums[k], i, old, alphas[i, nearest])


@jit_internal
def _store_row(state: BankArrays, scratch: BankScratch, settings: Settings) -> int:
    """Store the row with what is proved of it, and return its place."""
    counts, flags, examples = state.counts, scratch.flags, state.examples
    place, n, is_full = int(counts[bank.SIZE]), flags[bank.ROW_ENTRIES], counts[bank.SIZE] == examples.shape[1]
    if is_full:
        place = _place_to_free(state, scratch, settings)
        counts[bank.REMOVED] += 1
    else:
        counts[bank.SIZE] = place + 1
    for k in range(settings.plan.shape[0]):
        if is_full and not settings.plan[k, bank.IS_LINEAR]:
            _project(state, scratch, settings, k, place)
        for i in range(scratch.targets.shape[0]):
            if is_full:
                _change_coefficient(state.sums[k], i, state.alphas[k, i, place], 0.0)
            state.coefficients[k, place, i] = state.alphas[k, i, place] = state.importance[k, place] = 0.0
            state.scores[k, i, place] = scratch.opinions[k, i]
    for b in range(settings.bases.shape[0]):
        gram, line = state.grams[b], scratch.lines[bank.VALUES + b]
        for s in range(counts[bank.SIZE]):
            gram[place, s] = gram[s, place] = line[s]
        gram[place, place] = scratch.numbers[bank.ITSELF + b]
        _note_nearest(gram, place, counts[bank.SIZE], scratch.nearest[b])
    for i in range(scratch.targets.shape[0]):
        state.targets[i, place] = scratch.targets[i]
    for j in range(state.units.shape[0]):
        state.units[j, place] = scratch.unit[j]
    for e in range(n):
        state.columns[place, e], state.raws[place, e] = scratch.columns[e], scratch.entries[bank.RAW, e]
    for e in range(min(n, state.values.shape[1])):
        state.values[place, e] = scratch.entries[bank.UNIT, e]
    examples[bank.LENGTH, place], examples[bank.N_ENTRIES, place] = scratch.numbers[bank.ROW_LENGTH], n
    examples[bank.KIND, place] = flags[bank.ROW_KIND]
    return place


@jit_internal
def learn(state: BankArrays, scratch: BankScratch, settings: Settings) -> None:
    """Store the row with what is proved of it, and replay."""
    members, m, n = state.members, settings.plan.shape[0], scratch.flags[bank.ROW_ENTRIES] - settings.scales
    # Before the store makes room, which changes opinions: productive is what was so when the guess was made.
    for k in range(members.shape[0]):
        if is_productive(scratch.targets, scratch.opinions[k]):
            members[k, bank.PRODUCED] += 1.0
            members[k, bank.LOSS] += _LESSON
            if k == m:
                _teach_guard(state, scratch, scratch.opinions[k], n, settings.softness)
    replay_all(state, scratch, settings, _store_row(state, scratch, settings))
