"""What answers prove, and separators consistent with it: stored examples, kernel values, steps of dual ascent.

A right guess i proves "x is i" and "x is not j" for every other j; a wrong guess i proves "x is not i", and with two
classes that x is the other. Class by class the facts are a binary problem, and its largest-margin separator is found by
dual coordinate ascent: the step on a fact with sign s, coefficient α ≥ 0 and score f raises or lowers α until
s·f + α/(2C) is the margin that the fact is due, or α = 0. Every such step raises the dual value, whichever fact it is
taken on, so any schedule of replays keeps the guarantee (docs/theory/bandit-svm.md).

A fact about the class that was guessed, or that is right, is due a margin of 1. "Not j, since it is i" is due half of
that: there are K−1 such facts for each right guess, and with a whole margin each they would hold classes down that were
not tried yet.

Functions that loop over the store are compiled once and called, on plain arrays: a copy in each caller, or arguments
that are large tuples, would take ten times as long to compile.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from onebit.compiled import inlined, shared
from onebit.inputs import Floats, Integers
from onebit.kernels import Gaussian, Linear, Multinomial, Polynomial, Rational, gaussian_exponent

# What is proved of a class, as the score that is due: it is the right one, it is not, and "not j, since it is i".
# Where nothing is proved the target is 0.
IT_IS, IT_IS_NOT, IT_IS_ANOTHER = 1.0, -1.0, -0.5
# A fact that lacks more than this of its due is productive: its step raises the dual by a sure amount.
PRODUCTIVE = 0.5
# A fact that lacks this much of its margin is stored in any case.
_MUCH = 0.8
# A step below three tenths of the mean coefficient changes next to nothing (docs/experiments/bandit-svm.md).
_TRIGGER = 0.3
# A thousandth of the margin: closer than guesses can tell, and replays need not go on.
TOLERANCE = 1e-3
# Processors are slow with numbers that become ever smaller: averages stop there.
NEXT_TO_NOTHING = 1e-12

DENSE, SPARSE = range(2)
"""Kinds of rows: each has statistics and a scale of its own, and a count of rows."""
SIZE, NEXT, DUE, DISPUTED, FOLLOWED, LANDMARKS, SEEN = range(7)
"""`counts`: stored examples; removals, or the place of the oldest; what Python must do before the next round (1 + the
kind of rows that get a new scale, and TO_FORGET, if old facts no longer hold); mistakes in disputed rounds; mistakes
made by following the reference; landmarks of the regressions; rows heard, dense and then sparse."""
N_COUNTS = SEEN + 2
TO_FORGET = 4
TOTAL, SUPPORT = range(2)
"""`sums`: of each class, the sum of its coefficients, and how many are above 0."""
RIGHT, WRONG = range(2)
"""`guesses`: how often each class was guessed, and it was right or wrong."""
LENGTH, KIND, IMPORTANCE = range(3)
"""`examples`: the length of each stored row, its kind, and the sum of its squared coefficients in all separators."""
BASE, SQUARINGS, IS_LINEAR = range(3)
"""`plan`: of each member, whose kernel values it uses, how often they are squared, and whether weights are kept."""
CODE, OF_UNITS, PARAMETER = range(3)
"""`bases`: of each kernel with values of its own, the formula, whether it is about unit rows, and its parameter."""
ROOM, LINE, PRODUCTS, VALUES = range(4)
"""`lines`: two written over at will, the products of unit rows, and then the values of each base."""
RAW, UNIT, RAW_UNIT = range(3)
"""`row`: the row as it came, scaled and divided by its length, and as it came but divided by its length."""
STATISTICS, SCALE = range(2)
"""`scaling`: of each kind of rows, what is known of the columns, and the scale in force (see `onebit.scaling`)."""

# By its code compiled code knows a kernel's formula, so that one compiled game serves every bank.
COMPILED = (Linear, Gaussian, Rational, Polynomial, Multinomial)
_LINEAR, GAUSSIAN, _RATIONAL, _POLYNOMIAL, _MULTINOMIAL, LAPLACE, IN_PYTHON = range(7)
_FORMULAS: tuple[Any, ...] = tuple(kernel.value for kernel in COMPILED[2:])
_rational, _polynomial, _multinomial = _FORMULAS

# One removal in four goes in turn: enough to wash noise out, too few to lose what is needed.
_TURNOVER = 4
# How many slopes are searched at once.
_BLOCK = 256


class Settings(NamedTuple):
    """The numbers that compiled code needs."""

    plan: Integers
    """Of each member (m × 3)."""
    softness: float
    """1/(2C): what a unit of coefficient may leave of the margin; 0 for a hard margin."""
    bases: Floats
    """Of each kernel with values of its own (bases × 3)."""
    replays: int
    """The most further facts of a class that get a step after a violated one."""
    budget: int
    """The most examples stored."""
    guarded: bool
    """Whether disputed rounds are limited, and classes of which little is known preferred."""
    mix: float
    """The chance of a uniform guess when no class claims x, if not guarded."""
    scales: bool
    """Whether columns are scaled as they come, and a constant is added."""
    is_closed: bool
    """Whether one of the classes is always right: of two, the one that was not wrong."""
    is_bounded: bool
    """Whether no kernel value can overflow or needs Python: then not every member must be asked in every round."""


# What answers prove.


@inlined
def lack(target: float, score: float) -> float:
    """Return what a fact lacks of the margin it is due; nothing is due where nothing is proved."""
    return target - score if target > 0.0 else (score - target if target < 0.0 else 0.0)


@inlined
def prove(label: int, correct: bool, truth: int, is_closed: bool, targets: Floats) -> int:
    """Write what an answer proves of each class; return the right one, or −1 if that is not known."""
    n_classes = targets.shape[0]
    known = truth
    if correct:
        known = label
    elif n_classes == 2 and is_closed:
        known = 1 - label
    for i in range(n_classes):
        targets[i] = 0.0 if known < 0 else IT_IS_ANOTHER
    targets[label] = IT_IS_NOT
    if known >= 0:
        targets[known] = IT_IS
    return known


@inlined
def is_worth_storing(targets: Floats, scores: Floats, square: float, sums: Floats, guarded: bool) -> bool:
    """Say whether a fact has hardly a margin, or its step would count beside its class's coefficients.

    Where margins are small coefficients are large, and facts that are violated by a little come without end but change
    nothing; where examples are far apart each has something to add.
    """
    enough, found = PRODUCTIVE if guarded else _MUCH, False
    for i in range(targets.shape[0]):
        found = found or counts_for(i, lack(targets[i], scores[i]), enough, square, sums)
    return found


@inlined
def counts_for(i: int, lacks: float, enough: float, square: float, sums: Floats) -> Any:
    """Say whether a fact of class i lacks enough of its margin, or its step would count beside the coefficients."""
    # The step is lacks/square, the mean coefficient total/support; multiplied out, nothing is divided by 0.
    small = _TRIGGER * square * sums[TOTAL, i]
    return lacks > enough or (lacks > 0.0 and lacks * sums[SUPPORT, i] >= small)


@inlined
def stepped(alpha: float, target: float, score: float, square: float, softness: float) -> float:
    """Return a fact's coefficient after its step: the dual's maximum along it. A fact about nothing gets none."""
    curvature = square + softness
    if curvature <= 0.0:
        return alpha
    longer: float = alpha + (lack(target, score) - alpha * softness) / curvature
    return max(0.0, longer)


@inlined
def change_coefficient(sums: Floats, i: int, old: float, new: float) -> None:
    """Keep the sum of class i's coefficients, and the number of those above 0."""
    sums[TOTAL, i] += new - old
    sums[SUPPORT, i] += int(new > 0.0) - int(old > 0.0)


# Kernel values.

# ln 2 in two parts: the first has so few digits that its products with exponents are exact.
_LN2_HEAD = 0.693145751953125
_LN2_TAIL = 1.42860682030941723212e-6
# Added to a number this leaves it whole, and in the last bits what the exponent of 2 to that power is stored as.
_WHOLE = 1.5 * 2.0**52 + 1023.0
_PLACES = 52
# Below, eˣ is no normal float.
_LEAST = -708.0
# 1/13!, 1/12!, …: enough for |r| ≤ ln 2 / 2.
_SERIES = tuple(1.0 / math.factorial(n) for n in range(13, -1, -1))


@inlined
def exponentiate(values: Floats, size: int, room: Floats) -> None:
    """Turn the first values, none above 0, into their exponentials, to about a unit in the last place.

    Below e⁻⁷⁰⁸ they are 0. What is in `room` is written over. Compiled code would call the system's `exp` for one
    number at a time; these loops are sums and products, which the compiler makes vectors of.
    """
    bits = room.view(np.int64)
    for s in range(size):
        x = max(values[s], _LEAST)
        shifted = x * (1.0 / math.log(2.0)) + _WHOLE
        whole = shifted - _WHOLE
        rest = (x - whole * _LN2_HEAD) - whole * _LN2_TAIL
        total = 0.0
        for term in _SERIES:
            total = total * rest + term
        room[s] = shifted
        values[s] = 0.0 if values[s] < _LEAST else total + 0.0 * values[s]  # what is no number stays none
    for s in range(size):
        bits[s] <<= _PLACES
    for s in range(size):
        values[s] *= room[s]


@shared
def compare(
    base: Floats,
    units: Floats,
    lengths: Floats,
    unit: Floats,
    length: float,
    size: int,
    products: Floats,
    is_multiplied: int,
    room: Floats,
    out: Floats,
) -> Any:
    """Write a kernel's values of a row with the first stored ones, and return its value with itself.

    Rows are given by their length, and divided by it. The products of the row with the stored ones are written too,
    unless they are there; what is in `room` is written over.
    """
    code, parameters = base[CODE], base[PARAMETER:]
    if code != LAPLACE and not is_multiplied:
        for s in range(size):
            products[s] = 0.0
        for j in range(unit.shape[0]):
            entry = unit[j]
            if entry != 0.0:  # sparse rows are mostly zero
                column = units[j]
                for s in range(size):
                    products[s] += entry * column[s]
    square = length * length
    if code == LAPLACE:
        for s in range(size):
            out[s] = 0.0
        for j in range(unit.shape[0]):
            entry, column = unit[j] * length, units[j]
            for s in range(size):
                out[s] += abs(entry - column[s] * lengths[s])
        for s in range(size):
            out[s] *= -parameters[0]
    elif base[OF_UNITS]:
        square = 1.0 if length > 0.0 else 0.0  # a row of zeros has no direction
        for s in range(size):
            out[s] = products[s]
            room[s] = 1.0 if lengths[s] > 0.0 else 0.0
    else:
        for s in range(size):
            out[s] = products[s] * length * lengths[s]
            room[s] = lengths[s] * lengths[s]
    itself = square
    if code in (LAPLACE, GAUSSIAN):
        itself = 1.0
        for s in range(size if code == GAUSSIAN else 0):
            out[s] = gaussian_exponent(out[s], square, room[s], parameters)
        exponentiate(out, size, room)
    elif code == _RATIONAL:
        itself = _rational(square, square, square, parameters)
        for s in range(size):
            out[s] = _rational(out[s], square, room[s], parameters)
    elif code == _POLYNOMIAL:
        itself = _polynomial(square, square, square, parameters)
        for s in range(size):
            out[s] = _polynomial(out[s], square, room[s], parameters)
    elif code == _MULTINOMIAL:
        itself = _multinomial(square, square, square, parameters)
        for s in range(size):
            out[s] = _multinomial(out[s], square, room[s], parameters)
    return itself


@shared
def write_powers(values: Floats, size: int, times: int, out: Floats) -> None:
    """Write values, squared that many times."""
    # The default bank squares twice and four times: one pass each is faster than one for every squaring.
    if times == 2:
        for r in range(size):
            square = values[r] * values[r]
            out[r] = square * square
    elif times == 4:
        for r in range(size):
            square = values[r] * values[r]
            fourth = square * square
            eighth = fourth * fourth
            out[r] = eighth * eighth
    else:
        for r in range(size):
            out[r] = values[r]
        for _ in range(times):
            for r in range(size):
                out[r] *= out[r]


@inlined
def squared_often(value: float, times: int) -> float:
    """Return a value squared that many times."""
    for _ in range(times):
        value *= value
    return value


# Scores.


@shared
def multiply_weights(weights: Floats, unit: Floats, out: Floats) -> None:
    """Write every class's score of a unit row."""
    for i in range(out.shape[0]):
        out[i] = 0.0
    for j in range(weights.shape[0]):
        entry = unit[j]
        for i in range(out.shape[0]):
            out[i] += entry * weights[j, i]


@shared
def add_up(coefficients: Floats, similarities: Floats, size: int, out: Floats) -> None:
    """Write every class's score of an example with those kernel values."""
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


# Steps.


@inlined
def steepest(slopes: Floats, size: int, tolerance: float) -> int:
    """Return where the largest of the slopes is, none of which is negative, or −1 if none is beyond the tolerance."""
    # Numbers that are not negative are ordered as their bits are, and the compiler vectorises the search for the
    # largest integer, though not for the largest float. Where it is matters only in the block that has it.
    bits = slopes.view(np.int64)
    largest, first, worst = 0, 0, -1
    for start in range(0, size, _BLOCK):
        block, top = bits[start : min(start + _BLOCK, size)], 0
        for r in range(block.shape[0]):
            top = max(top, block[r])
        if top > largest:
            largest, first = top, start
    for s in range(first, min(first + _BLOCK, size)):
        if bits[s] == largest and slopes[s] > tolerance:
            worst = s
            break
    return worst


@shared
def replay_class(
    i: int,
    first: int,
    times: int,
    size: int,
    squarings: int,
    softness: float,
    tolerance: float,
    gram: Floats,
    targets: Floats,
    alphas: Floats,
    scores: Floats,
    coefficients: Floats,
    sums: Floats,
    importance: Floats,
    weights: Floats,
    units: Floats,
    lines: Floats,
) -> None:
    """Do what `replay` says, given the arrays of one member; those of class i, and weights only if they are kept."""
    line, slopes, s = lines[LINE], lines[ROOM], first
    for _ in range(times + 1):
        row, amount = gram[max(s, 0)], 0.0
        if squarings > 0:
            write_powers(row, size, squarings, line)
            row = line
        if s >= 0:
            old, before = alphas[s], coefficients[s, i]
            new = stepped(old, targets[s], scores[s], row[s], softness)
            amount = new - old if targets[s] > 0.0 else old - new
            alphas[s], coefficients[s, i] = new, before + amount
            change_coefficient(sums, i, old, new)
            importance[s] += amount * (2.0 * before + amount)
            for j in range(weights.shape[0]):
                weights[j, i] += amount * units[j, s]
        for r in range(size):
            score, target = scores[r] + amount * row[r], targets[r]
            scores[r] = score
            slope = target - score if target > 0.0 else (score - target if target < 0.0 else 0.0)
            slope -= alphas[r] * softness
            slopes[r] = max(slope, -slope * (alphas[r] > 0.0))  # a coefficient of 0 cannot become smaller
        s = steepest(slopes, size, tolerance)
        if s < 0:
            break


@inlined
def replay(
    state: Any, scratch: Any, settings: Settings, k: int, i: int, first: int, times: int, tolerance: float
) -> None:
    """Let class i of member k take that many steps, the steepest first: the fewest to the optimum.

    If `first` is not −1, a step is taken on that example before.
    """
    plan = settings.plan
    replay_class(
        i,
        first,
        times,
        state.counts[SIZE],
        plan[k, SQUARINGS],
        settings.softness,
        tolerance,
        state.grams[plan[k, BASE]],
        state.targets[i],
        state.alphas[k, i],
        state.scores[k, i],
        state.coefficients[k],
        state.sums[k],
        state.examples[IMPORTANCE],
        state.weights[: state.weights.shape[0] * plan[k, IS_LINEAR]],
        state.units,
        scratch.lines,
    )


# The store.


@shared
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

    See Orabona, Keshet, Caputo (2009). What the member says about the row at hand, whose kernel values are `values`,
    changes too.
    """
    line, other = lines[LINE], lines[ROOM]
    write_powers(gram[place], size, squarings, line)
    nearest = -1
    for s in range(size):
        if s != place and (nearest < 0 or line[s] > line[nearest]):
            nearest = s
    ratio = 0.0
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
                importance[nearest] += moved * (2.0 * before + moved)
                coefficients[nearest, i] = before + moved
                # It counts as the nearest example's own only where it has its sign.
                target = targets[i, nearest]
                alphas[i, nearest] = max(0.0, old + (moved if target > 0.0 else (-moved if target < 0.0 else 0.0)))
                change_coefficient(sums, i, old, alphas[i, nearest])


@inlined
def place_to_free(importance: Floats, size: int, counts: Integers) -> int:
    """Return the place of the example of least importance, or of the next in turn, and count the removal.

    Noise has large coefficients and would stay for ever: so every fourth time it is the next in turn.
    """
    place = 0
    for s in range(1, size):
        if importance[s] < importance[place]:
            place = s
    removed = counts[NEXT]
    counts[NEXT] = removed + 1
    return removed // _TURNOVER % size if removed % _TURNOVER == 0 else place
