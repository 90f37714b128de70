"""What feedback proves, and separators consistent with it: stored examples, kernel values, steps of dual ascent.

A right guess i proves "x is i" and "x is not j" for every other j; a wrong guess i proves "x is not i", and with two
classes that x is the other. Class by class the facts are a binary problem, and its largest-margin separator is found by
dual coordinate ascent: the step on a fact with sign s, coefficient α ≥ 0 and score f raises or lowers α until
s·f + α/(2C) is the margin that the fact is due, or α = 0. Every such step raises the dual value, whichever fact it is
taken on, so any schedule of replays keeps the guarantee (docs/theory/bandit-svm.md).

A fact about the class that was guessed, or that is right, is due a margin of 1. "Not j, since it is i" is due half of
that: there are K−1 such facts for each right guess, and with a whole margin each they would hold classes down that were
not tried yet.

Functions take plain arrays and are called, not copied into their callers: that keeps compile time low.
"""

import math
from typing import Any

import numpy as np

from onebit.engine.jit import jit_internal
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
# Squares of coefficients beyond this would overflow in sums.
_LARGE = 1e300

TOTAL, SUPPORT = range(2)
"""`sums`: of each class, the sum of its coefficients, and how many are above 0."""
LENGTH, KIND, N_ENTRIES = range(3)
"""`examples`: of each stored row its length, its kind and the number of its entries."""
CODE, OF_UNITS, PARAMETER = range(3)
"""`bases`: of each kernel with values of its own, the formula, whether it is about unit rows, and its parameter."""
ROOM, LINE, PRODUCTS, VALUES = range(4)
"""`lines`: two written over at will, the products of unit rows, and then the values of each base."""

# By its code compiled code knows a kernel's formula, so that one compiled function serves every bank.
COMPILED = (Linear, Gaussian, Rational, Polynomial, Multinomial)
_LINEAR, GAUSSIAN, _RATIONAL, _POLYNOMIAL, _MULTINOMIAL, LAPLACE, IN_PYTHON = range(7)
_FORMULAS: tuple[Any, ...] = tuple(kernel.value for kernel in COMPILED[2:])
_rational, _polynomial, _multinomial = _FORMULAS

# How many slopes are searched at once.
_BLOCK = 256


# What feedback proves.


@jit_internal
def lack(target: float, score: float) -> float:
    """Return what a fact lacks of the margin it is due; nothing is due where nothing is proved."""
    return target - score if target > 0.0 else (score - target if target < 0.0 else 0.0)


@jit_internal
def prove(label: int, correct: bool, truth: int, is_closed: bool, targets: Floats) -> int:
    """Write what an answer proves of each class; return the right one, or −1 if that is not known."""
    n_classes, known = targets.shape[0], truth
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


@jit_internal
def largest_lack(targets: Floats, scores: Floats) -> float:
    """Return the most that a fact lacks of its margin."""
    most = -math.inf
    for i in range(targets.shape[0]):
        most = max(most, lack(targets[i], scores[i]))
    return most


@jit_internal
def counts_for(i: int, lacks: float, enough: float, square: float, sums: Floats) -> bool:
    """Return whether a fact of class i lacks enough of its margin, or its step would count beside the coefficients.

    Where margins are small coefficients are large, and facts that are violated by a little come without end but change
    nothing; where examples are far apart each has something to add.
    """
    # The step is lacks/square, the mean coefficient total/support; multiplied out, nothing is divided by 0.
    small = _TRIGGER * square * sums[TOTAL, i]
    return bool(lacks > enough or (lacks > 0.0 and lacks * sums[SUPPORT, i] >= small))


@jit_internal
def is_worth_storing(targets: Floats, scores: Floats, square: float, sums: Floats, guarded: bool) -> bool:
    """Return whether one of the facts has hardly a margin, or its step would count: see `counts_for`."""
    enough, found = PRODUCTIVE if guarded else _MUCH, False
    for i in range(targets.shape[0]):
        found = found or counts_for(i, lack(targets[i], scores[i]), enough, square, sums)
    return found


@jit_internal
def stepped(alpha: float, target: float, score: float, square: float, softness: float) -> float:
    """Return a fact's coefficient after its step: the dual's maximum along it. A fact about nothing gets none."""
    curvature = square + softness
    if curvature <= 0.0:
        return alpha
    return max(0.0, alpha + (lack(target, score) - alpha * softness) / curvature)


@jit_internal
def change_coefficient(sums: Floats, i: int, old: float, new: float) -> None:
    """Keep the sum of class i's coefficients, and the number of those above 0."""
    sums[TOTAL, i] += new - old
    sums[SUPPORT, i] += (1.0 if new > 0.0 else 0.0) - (1.0 if old > 0.0 else 0.0)


@jit_internal
def bounded(number: float) -> float:
    """Return a number, or the nearest that is far from overflow."""
    return max(-_LARGE, min(_LARGE, number))


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


@jit_internal
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


@jit_internal
def write_products(
    size: int,
    store_columns: Integers,
    store_values: Floats,
    examples: Floats,
    units: Floats,
    columns: Integers,
    entries: Floats,
    n_entries: int,
    unit: Floats,
    products: Floats,
) -> None:
    """Write the inner products of a unit row, given by its entries and whole, with the first stored ones."""
    for s in range(size):
        products[s] = 0.0
    if units.shape[0] > 0:
        for e in range(n_entries):
            entry = entries[e]
            if entry != 0.0:  # rows may be mostly zero
                column = units[columns[e]]
                for s in range(size):
                    products[s] += entry * column[s]
    else:
        for s in range(size):
            for e in range(int(examples[N_ENTRIES, s])):
                products[s] += store_values[s, e] * unit[store_columns[s, e]]


@jit_internal
def compare(
    base: Floats,
    units: Floats,
    lengths: Floats,
    unit: Floats,
    length: float,
    size: int,
    products: Floats,
    room: Floats,
    out: Floats,
) -> float:
    """Write a kernel's values of a row with the first stored ones, and return its value with itself.

    Rows are given by their length, and divided by it; `write_products` has written the products, unless the kernel is
    Laplace's. What is in `room` is written over.
    """
    code, parameters, square = base[CODE], base[PARAMETER:], length * length
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
    elif code != _LINEAR:
        itself = _of_product(code, square, parameters)
        for s in range(size):
            out[s] = _of_product(code, out[s], parameters)
    return itself


@jit_internal
def _of_product(code: float, product: float, parameters: Floats) -> Any:
    """Return the value of a kernel that depends on nothing but the product of two rows."""
    if code == _RATIONAL:
        return _rational(product, 0.0, 0.0, parameters)
    if code == _POLYNOMIAL:
        return _polynomial(product, 0.0, 0.0, parameters)
    return _multinomial(product, 0.0, 0.0, parameters)


@jit_internal
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


@jit_internal
def squared_often(value: float, times: int) -> float:
    """Return a value squared that many times."""
    for _ in range(times):
        value *= value
    return value


# Scores.


@jit_internal
def multiply_weights(weights: Floats, columns: Integers, entries: Floats, n_entries: int, out: Floats) -> None:
    """Write every class's score of a row, given by its entries."""
    for i in range(out.shape[0]):
        out[i] = 0.0
    for e in range(n_entries):
        entry, line = entries[e], weights[columns[e]]
        for i in range(out.shape[0]):
            out[i] += entry * line[i]


@jit_internal
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


@jit_internal
def steepest(slopes: Floats, size: int, tolerance: float) -> int:
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
def replay(
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
    examples: Floats,
    store_columns: Integers,
    store_values: Floats,
    units: Floats,
    weights: Floats,
    lines: Floats,
) -> None:
    """Let class i of one member take that many steps, the steepest first: the fewest to the optimum.

    If `first` is not −1, a step is taken on that example before. `targets`, `alphas` and `scores` are those of the
    class, `weights` is empty unless the member keeps them.
    """
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
            importance[s] = bounded(importance[s] + amount * (2.0 * before + amount))
            for e in range(int(examples[N_ENTRIES, s]) if weights.shape[0] > 0 else 0):
                j = store_columns[s, e]
                weights[j, i] += amount * (units[j, s] if units.shape[0] > 0 else store_values[s, e])
        for r in range(size):
            score, target = scores[r] + amount * row[r], targets[r]
            scores[r] = score
            slope = target - score if target > 0.0 else (score - target if target < 0.0 else 0.0)
            slope -= alphas[r] * softness
            slopes[r] = max(slope, -slope * (alphas[r] > 0.0))  # a coefficient of 0 cannot become smaller
        s = steepest(slopes, size, tolerance)
        if s < 0:
            break
