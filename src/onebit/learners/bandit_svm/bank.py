"""The arrays of a bank: what each holds, its shape, and how it begins.

Python hands over each array at a cost, so small things share an array, and have names for their positions in it. Here
are also the loops that members and regressions share.
"""

import math
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_type_hints

import numpy as np

from onebit.engine.jit import jit_internal
from onebit.engine.scaling import new_scale, new_statistics
from onebit.inputs import Floats, Integers

BASE, SQUARINGS, IS_LINEAR = range(3)  # of `plan`
CODE, OF_UNITS, PARAMETER = range(3)  # of `bases`


class Settings(NamedTuple):
    """The numbers that compiled code needs."""

    softness: float  # 1/(2C): what a unit of coefficient may leave of the margin; 0 for a hard margin
    replays: int  # when the store is full: how many more facts of a class are revisited after each violated one
    budget: int  # the most examples stored
    guarded: bool  # whether disputed rounds are limited, and classes of which little is known preferred
    mix: float  # the chance of a uniform guess when no class claims x, if not guarded
    scales: bool  # whether columns are scaled as they come, and a constant is added
    is_closed: bool  # whether one of the classes is always right: of two, the one that was not wrong
    full_information: bool  # whether every answer is the right label itself
    exclusive: bool  # whether a right label proves all others wrong
    finds_out: bool  # whether that is given up once answers speak against it
    # The rest is written by `BankState`. Of each member: whose kernel values it uses, how often they are squared,
    # whether it keeps weights; of each kernel with values of its own: formula, whether it is about unit rows,
    # parameter; whether no kernel value overflows or needs Python: then not all members must be asked.
    plan: Integers = np.zeros((0, 3), np.int64)
    bases: Floats = np.zeros((0, 3))
    is_bounded: bool = True


# By its code compiled code knows a kernel's formula, so that one compiled function serves every bank.
DOT, GAUSSIAN, RATIONAL, POLYNOMIAL, MULTINOMIAL, LAPLACE, IN_PYTHON = range(7)


DENSE, SPARSE = range(2)  # kinds of rows
LENGTH, KIND, N_ENTRIES = range(3)  # of `examples`
TOTAL, SUPPORT = range(2)  # of `sums`
LOSS, TRUST, PRODUCED = range(3)  # of `members`
RIGHT, WRONG = range(2)  # of `guesses`
SIZE, REMOVED, DUE, DISPUTED, FOLLOWED, LANDMARKS, TIES, EVIDENCE, IS_SHARED, SEEN = range(10)  # of `counts`
TO_FORGET, TO_SHARE = 4, 8
ROUNDS, LATELY, USUALLY, BEST = range(4)  # of `watch`
STATISTICS, SCALE = range(2)  # of `scaling`
_SOURCES = ("vote", "regression on rows", "regression on landmarks")
MIXED = ("constant", *(name for source in _SOURCES for name in (source, f"lead in the {source}")))
"""What the mixture knows of a label: scores, and by how much each is above the best other label's."""
N_MIXED = len(MIXED)
WEIGHTS, NUMBERS = N_MIXED, N_MIXED + 1  # of `mixture`
ANSWERS, NOISE, SURE, SURE_WRONG = range(4)  # of its last row


class BankArrays(NamedTuple):
    """What was learned, with the axes of each array."""

    columns: Annotated[Integers, "example entry"]  # where each example has entries
    raws: Annotated[Floats, "example entry"]  # these entries as they came
    values: Annotated[Floats, "example value"]  # scaled and divided by the row's length, if all members are linear
    units: Annotated[Floats, "unit example"]  # the examples scaled and divided by their length, if not
    examples: Annotated[Floats, "3 example"]  # of each its length, its kind, and how many entries it has
    grams: Annotated[Floats, "base example example"]  # kernel values of the examples
    targets: Annotated[Floats, "class example"]  # what is proved of them, as the scores that are due
    alphas: Annotated[Floats, "member class example"]  # the dual coefficients, never negative
    coefficients: Annotated[Floats, "member example class"]  # sign times alpha, and what was projected
    importance: Annotated[Floats, "member example"]  # the sum of the squares of each example's coefficients
    scores: Annotated[Floats, "member class example"]  # every class's score of each example
    sums: Annotated[Floats, "member 2 class"]  # the sum of each class's alphas, and how many are above 0
    weights: Annotated[Floats, "weight class"]  # the linear member's, with what removed examples left in them
    # Weights for rows as they came, without a vote, which can be the reference: no scale touches their guarantee.
    guard: Annotated[Floats, "guarded class"]
    # How often each member was wrong (less than 1 is added where it may have been), with a little for each productive
    # example; what it counts in the vote, exp(−loss), the best one's being 1; how many stored examples had a productive
    # fact for it. The guard is the last.
    members: Annotated[Floats, "asked 3"]
    guesses: Annotated[Integers, "2 class"]  # how often each class was guessed and it was right, and wrong
    # Stored examples; removals; what Python must do before the next round (1 + the kind of rows that get a new scale,
    # and TO_FORGET, if old facts no longer hold, and TO_SHARE, if several labels may be right); mistakes in disputed
    # rounds; mistakes made by following the reference; landmarks of the regressions; rounds in which two labels tied;
    # the evidence of them that several may be right; whether it was enough; rows learned from, dense and then sparse.
    counts: Annotated[Integers, "11"]
    watch: Annotated[Floats, "4"]  # rounds played, the rate of mistakes of late and usually, and the best usual rate
    scaling: Annotated[Floats, "2 2 4 scaled"]  # for each kind of rows, statistics of columns and the scale in force
    landmarks: Annotated[Floats, "seen landmark"]  # rows, as the kernels saw them when they were stored
    landmark_changes: Annotated[Floats, "feature feature"]  # N of the regression on landmarks
    landmark_weights: Annotated[Floats, "feature class"]
    row_changes: Annotated[Floats, "class row row"]  # N of every class of the regression on rows
    row_weights: Annotated[Floats, "row class"]
    # The covariance of the mixture's weights; the weights; and numbers: answers, the mean squared error, rounds in
    # which the leading separator was sure, the share of them of late in which it was wrong.
    mixture: Annotated[Floats, "mixture 7"]


RAW, UNIT, RAW_UNIT = range(3)  # of `entries`
ROOM, LINE, PRODUCTS, VALUES = range(4)  # of `lines`
ROW_LENGTH, ITSELF = range(2)  # of `numbers`
ROW_ENTRIES, ROW_KIND, REFERENCE, FOLLOW, DENIED, ASK_ALL, MULTIPLIED, ASKED = range(8)  # of `flags`
LINEAR, NEAR, WIDTHS, VOTE = range(4)  # of `estimates`


class BankScratch(NamedTuple):
    """What is known about one round, with the axes of each array."""

    scores: Annotated[Floats, "class"]  # what the guess is made from: the vote, and what is preferred or proposed
    opinions: Annotated[Floats, "asked class"]  # the scores of every member, and of the guard, as far as it was asked
    targets: Annotated[Floats, "class"]  # what the answer proves
    propensities: Annotated[Floats, "class"]
    columns: Annotated[Integers, "entry"]  # where the row has entries
    entries: Annotated[Floats, "3 entry"]  # as they came; scaled and divided by the row's length; only divided by it
    unit: Annotated[Floats, "width"]  # the whole row, scaled and divided by its length
    lines: Annotated[Floats, "line example"]  # two written over at will, products of unit rows, values of each base
    nearest: Annotated[Integers, "base example"]  # 1 + the place of the other example most like it; 0: not known
    numbers: Annotated[Floats, "number"]  # the length of the scaled row, and then k(x, x) of each base
    # How many entries the row has; its kind; the reference; whether it is followed where it disputes the guess; whether
    # the vote holds every label to be wrong; whether all members must be asked; whether products are written; and then
    # of each member whether it was asked, and of each base whether its values are written.
    flags: Annotated[Integers, "flag"]
    features: Annotated[Floats, "2 feature"]  # what the regression on landmarks sees of the row, and room for as much
    estimates: Annotated[Floats, "4 class"]  # of the regression on rows, on landmarks, widths of the first, the vote
    known: Annotated[Floats, "2 7"]  # what the mixture knows of two labels


_Fields = TypeVar("_Fields", BankArrays, BankScratch)
_HINTS: dict[Any, Any] = {kind: get_type_hints(kind, include_extras=True) for kind in (BankArrays, BankScratch)}
_AXES = {kind: {name: get_args(hint)[1].split() for name, hint in hints.items()} for kind, hints in _HINTS.items()}
_INTEGERS = {name for hints in _HINTS.values() for name, hint in hints.items() if get_args(hint)[0] == Integers}
_GROWING = ("class", "example", "entry", "value", "landmark", "feature")
GROWING = {name: tuple(axis if axis in _GROWING else "" for axis in axes) for name, axes in _AXES[BankArrays].items()}
"""The axes that can grow, for `State.axes`."""

# Before anything is known the vote decides.
_FIRST_WEIGHTS, FIRST_VARIANCE = (0.3, 0.3, 0.2, 0.0, 0.0, 0.0, 0.0), 0.005


def shapes(fields: type[Any], sizes: dict[str, int]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a named tuple's arrays, whose axes have these sizes; an axis may be named by its size."""
    return {
        name: tuple([int(axis) if axis.isdigit() else sizes.get(axis, 0) for axis in axes])
        for name, axes in _AXES[fields].items()
    }


def zeros(fields: type[_Fields], sizes: dict[str, int]) -> _Fields:
    """Return a named tuple of arrays of zeros."""
    found: Any = shapes(fields, sizes).items()
    return fields(*[np.zeros(shape, int if name in _INTEGERS else float) for name, shape in found])


def new_arrays(sizes: dict[str, int]) -> BankArrays:
    """Return arrays that have learned nothing."""
    arrays = zeros(BankArrays, sizes)
    arrays.members[:, TRUST], arrays.watch[BEST], n_scaled = 1.0, math.inf, arrays.scaling.shape[-1]
    arrays.scaling[:, STATISTICS], arrays.scaling[:, SCALE] = new_statistics(n_scaled), new_scale(n_scaled)
    arrays.mixture[:] = new_mixture()[: len(arrays.mixture)]
    return arrays


def new_mixture() -> Floats:
    """Return a mixture that has learned nothing, and follows the vote."""
    mixture = np.zeros((N_MIXED + 2, N_MIXED))
    mixture[:N_MIXED] = FIRST_VARIANCE * np.eye(N_MIXED)
    mixture[WEIGHTS], mixture[NUMBERS, NOISE] = _FIRST_WEIGHTS, 0.25
    return mixture


# What is proved of a class, as the score that is due: it is the right one, it is not, and "not j, since it is i".
# Where nothing is proved the target is 0.
IT_IS, IT_IS_NOT, IT_IS_ANOTHER = 1.0, -1.0, -0.5
PRODUCTIVE = 0.5  # a fact that lacks more than this of its due is productive: its step raises the dual by a sure amount
HELD_WRONG = PRODUCTIVE - 1.0  # a label with this score is held to be wrong: a mistake on it would not be productive

# ln 2 in two parts: the first has so few digits that its products with exponents are exact.
_LN2_HEAD, _LN2_TAIL = 0.693145751953125, 1.42860682030941723212e-6
# Added to a number this leaves it whole, and in the last bits what the exponent of 2 to that power is stored as.
_WHOLE, _PLACES = 1.5 * 2.0**52 + 1023.0, 52
_LEAST = -708.0  # below, eˣ is no normal float
_SERIES = tuple(1.0 / math.factorial(n) for n in range(13, -1, -1))  # enough for |r| ≤ ln 2 / 2


@jit_internal
def lack(target: float, score: float) -> float:
    """Return what a fact lacks of the margin it is due; nothing is due where nothing is proved."""
    return target - score if target > 0.0 else (score - target if target < 0.0 else 0.0)


@jit_internal
def exponentiate(values: Floats, size: int, room: Floats) -> None:
    """Turn the first values, none above 0, into their exponentials, to about a unit in the last place; use `room`.

    Compiled code would call the system's `exp` for one number at a time; these loops become vectors.
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
def multiply(matrix: Floats, columns: Integers, entries: Floats, n_entries: int, size: int, out: Floats) -> None:
    """Write the products of a row, given by its entries, with the first columns of a matrix."""
    out[:size] = 0.0
    for e in range(n_entries):
        entry = entries[e]
        if entry != 0.0:  # rows may be mostly zero
            line = matrix[columns[e]]
            for s in range(size):
                out[s] += entry * line[s]


@jit_internal
def add_up(coefficients: Floats, similarities: Floats, size: int, out: Floats) -> None:
    """Write every class's sum of the first coefficients, each times its similarity."""
    out[:] = 0.0
    # Four at a time, in the order of one at a time: classes are too few to make a loop over them alone fast.
    whole = size - size % 4
    for s in range(0, whole, 4):
        one, two, three, four = similarities[s], similarities[s + 1], similarities[s + 2], similarities[s + 3]
        for i in range(out.shape[0]):
            total = out[i] + one * coefficients[s, i] + two * coefficients[s + 1, i]
            out[i] = total + three * coefficients[s + 2, i] + four * coefficients[s + 3, i]
    for s in range(whole, size):
        for i in range(out.shape[0]):
            out[i] += similarities[s] * coefficients[s, i]
