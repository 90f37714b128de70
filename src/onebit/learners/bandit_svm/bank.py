"""The arrays of a bank: what each holds, its shape, and how it begins.

Compiled code gets three named tuples: `BankArrays` (what was learned), `BankScratch` (what is known about one round)
and `Settings`. Python hands over each array at a cost, so small things share an array, and have names for their
positions in it.
"""

import math
import sys
from typing import Any, NamedTuple

import numpy as np

from onebit.engine.scaling import new_scale, new_statistics
from onebit.inputs import Floats, Integers
from onebit.kernels import Gaussian, Kernel, Laplace, Linear, Multinomial, Polynomial, Rational

BASE, SQUARINGS, IS_LINEAR = range(3)  # of `plan`
CODE, OF_UNITS, PARAMETER = range(3)  # of `bases`


class Settings(NamedTuple):
    """The numbers that compiled code needs."""

    plan: Integers  # of each member: whose kernel values it uses, how often they are squared, whether it keeps weights
    bases: Floats  # of each kernel with values of its own: formula, whether it is about unit rows, parameter
    softness: float  # 1/(2C): what a unit of coefficient may leave of the margin; 0 for a hard margin
    replays: int  # the most further facts of a class that get a step after a violated one, with a full store
    budget: int  # the most examples stored
    guarded: bool  # whether disputed rounds are limited, and classes of which little is known preferred
    mix: float  # the chance of a uniform guess when no class claims x, if not guarded
    scales: bool  # whether columns are scaled as they come, and a constant is added
    is_closed: bool  # whether one of the classes is always right: of two, the one that was not wrong
    is_bounded: bool  # whether no kernel value overflows or needs Python: then not all members must be asked
    full_information: bool  # whether every answer is the right label itself


# By its code compiled code knows a kernel's formula, so that one compiled function serves every bank.
COMPILED = (Linear, Gaussian, Rational, Polynomial, Multinomial)
LINEAR_CODE, GAUSSIAN, RATIONAL, POLYNOMIAL, MULTINOMIAL, LAPLACE, IN_PYTHON = range(7)


def plan_members(kernels: tuple[Kernel, ...], settings: Settings, width: int) -> tuple[tuple[Kernel, ...], Settings]:
    """Return the kernels with values of their own, and the settings with what compiled code is told about members.

    A kernel whose exponent is another's times a power of two is had by squaring.
    """
    bases: list[Kernel] = []
    plan, numbers = np.zeros((len(kernels), 3), np.int64), []
    for k, kernel in enumerate(kernels):
        plan[k, IS_LINEAR] = type(kernel) is Linear and bool(kernel.normalize)
        found = [(b, n) for b, base in enumerate(bases) if (n := _squarings(base, kernel)) >= 0]
        plan[k, BASE], plan[k, SQUARINGS] = found[0] if found else (len(bases), 0)
        if not found:
            code = _code(kernel)
            parameter = 0.0 if code == IN_PYTHON else kernel.parameters[0] / (width if code == LAPLACE else 1)
            bases.append(kernel)
            numbers.append((code, bool(kernel.normalize), parameter))
    is_bounded = all(map(_is_bounded, bases))
    return tuple(bases), settings._replace(plan=plan, bases=np.array(numbers, np.float64), is_bounded=is_bounded)


def _code(kernel: Kernel) -> int:
    if type(kernel) in COMPILED:
        return COMPILED.index(type(kernel))
    return LAPLACE if type(kernel) is Laplace and not kernel.normalize else IN_PYTHON


def _is_bounded(kernel: Kernel) -> bool:
    if isinstance(kernel, Polynomial) and kernel.degree >= sys.float_info.max_exp:
        return False  # even of a unit row with itself, (1 + 1)ⁿ is no float
    return _code(kernel) != IN_PYTHON and (bool(kernel.normalize) or isinstance(kernel, (Gaussian, Laplace)))


def _squarings(base: Kernel, kernel: Kernel) -> int:
    """Return how often a kernel's values must be squared to get another's, or −1."""
    if base == kernel:
        return 0
    # A subclass may have another formula.
    if type(base) is type(kernel) and type(base) in (Gaussian, Laplace) and base.normalize == kernel.normalize:
        ratio = kernel.parameters[0] / base.parameters[0]
        return next((n for n in range(1, 9) if ratio == 2.0**n), -1)
    return -1


DENSE, SPARSE = range(2)  # kinds of rows
LENGTH, KIND, N_ENTRIES = range(3)  # of `examples`
TOTAL, SUPPORT = range(2)  # of `sums`
LOSS, TRUST, PRODUCED = range(3)  # of `members`
RIGHT, WRONG = range(2)  # of `guesses`
SIZE, REMOVED, DUE, DISPUTED, FOLLOWED, LANDMARKS, SEEN = range(7)  # of `counts`
N_COUNTS, TO_FORGET = SEEN + 2, 4
ROUNDS, LATELY, USUALLY, BEST = range(4)  # of `watch`
STATISTICS, SCALE = range(2)  # of `scaling`
_SOURCES = ("vote", "regression on rows", "regression on landmarks")
MIXED = ("constant", *(name for source in _SOURCES for name in (source, f"lead in the {source}")))
"""What the mixture knows of a label: scores, and by how much each is above the best other label's."""
N_MIXED = len(MIXED)
WEIGHTS, NUMBERS = N_MIXED, N_MIXED + 1  # of `mixture`
HEARD, NOISE, SURE, SURE_WRONG = range(4)  # of its last row


class BankArrays(NamedTuple):
    """What was learned: their axes are in `_AXES`."""

    columns: Integers  # where each example has entries
    raws: Floats  # these entries as they came
    values: Floats  # these entries scaled and divided by the row's length, if all members are linear
    units: Floats  # the examples scaled and divided by their length, if not
    examples: Floats  # the length of each example, its kind (dense or sparse), and how many entries it has
    grams: Floats  # kernel values of the examples
    targets: Floats  # what is proved of them, as the scores that are due
    alphas: Floats  # the dual coefficients, never negative
    coefficients: Floats  # what each class gained of each example: sign times alpha, and what was projected
    importance: Floats  # the sum of the squares of each example's coefficients
    scores: Floats  # every class's score of each example
    sums: Floats  # the sum of each class's alphas, and how many are above 0
    weights: Floats  # the linear member's separators, with what removed examples left in them
    # Linear separators on rows as they came, without a vote, which can be the reference: a scale that changes cannot
    # touch their guarantee.
    guard: Floats
    # How often each member was wrong (less than 1 is added where it may have been), with a little for each productive
    # example; what it counts in the vote, exp(−loss), the best one's being 1; how many stored examples had a productive
    # fact for it. The guard is the last.
    members: Floats
    guesses: Integers  # how often each class was guessed and it was right, and wrong
    # Stored examples; removals; what Python must do before the next round (1 + the kind of rows that get a new scale,
    # and TO_FORGET, if old facts no longer hold); mistakes in disputed rounds; mistakes made by following the
    # reference; landmarks of the regressions; rows learned from, dense and then sparse.
    counts: Integers
    watch: Floats  # rounds played, the rate of mistakes of late and usually, and the best usual rate
    scaling: Floats  # for each kind of rows, statistics of the columns, and the scale in force
    landmarks: Floats  # rows, as the kernels saw them when they were stored
    landmark_changes: Floats  # N of the regression on landmarks
    landmark_weights: Floats
    row_changes: Floats  # N of every class of the regression on rows
    row_weights: Floats
    # The covariance of the mixture's weights; the weights; and numbers: answers, the mean squared error, rounds in
    # which the leading separator was sure, the share of them of late in which it was wrong.
    mixture: Floats


_AXES: dict[str, tuple[str | int, ...]] = {
    "columns": ("example", "entry"),
    "raws": ("example", "entry"),
    "values": ("example", "value"),
    "units": ("unit", "example"),
    "examples": (3, "example"),
    "grams": ("base", "example", "example"),
    "targets": ("class", "example"),
    "alphas": ("member", "class", "example"),
    "coefficients": ("member", "example", "class"),
    "importance": ("member", "example"),
    "scores": ("member", "class", "example"),
    "sums": ("member", 2, "class"),
    "weights": ("weight", "class"),
    "guard": ("raw column", "class"),
    "members": ("opinion", 3),
    "guesses": (2, "class"),
    "counts": (N_COUNTS,),
    "watch": (4,),
    "scaling": (2, 2, 4, "scaled column"),
    "landmarks": ("seen column", "landmark"),
    "landmark_changes": ("feature", "feature"),
    "landmark_weights": ("feature", "class"),
    "row_changes": ("class", "row column", "row column"),
    "row_weights": ("row column", "class"),
    "mixture": ("mixture row", N_MIXED),
}
_GROWING = ("class", "example", "entry", "value", "landmark", "feature")
AXES = {name: tuple(str(axis) if axis in _GROWING else "" for axis in axes) for name, axes in _AXES.items()}
"""The axes that can grow, for `State.axes`."""

RAW, UNIT, RAW_UNIT = range(3)  # of `entries`
ROOM, LINE, PRODUCTS, VALUES = range(4)  # of `lines`
ROW_LENGTH, ITSELF = range(2)  # of `numbers`
ROW_ENTRIES, ROW_KIND, REFERENCE, FOLLOW, DENIED, ASK_ALL, MULTIPLIED, ASKED = range(8)  # of `flags`
LINEAR, NEAR, WIDTHS, VOTE = range(4)  # of `estimates`


class BankScratch(NamedTuple):
    """What is known about one round."""

    scores: Floats  # what the guess is made from: the vote, with what is preferred, passed over and proposed
    opinions: Floats  # every member's scores, then the guard's if there is one, as far as it was asked
    targets: Floats  # what the answer proves
    propensities: Floats
    columns: Integers  # where the row has entries
    entries: Floats  # of the row as it came; scaled and divided by its length; as it came, divided by its length
    unit: Floats  # the whole row, scaled and divided by its length
    lines: Floats  # numbers for each example: two written over at will, products of unit rows, values of each base
    nearest: Integers  # of each base, which other example is most like each: 1 + its place, or 0 if it is not known
    numbers: Floats  # the length of the scaled row, and then k(x, x) of each base
    # How many entries the row has; its kind; the reference; whether it is followed where it disputes the guess; whether
    # the vote holds every label to be wrong; whether all members must be asked; whether products are written; and then
    # of each member whether it was asked, and of each base whether its values are written.
    flags: Integers
    features: Floats  # what the regression on landmarks sees of the row, and room for as much
    estimates: Floats  # of every class: of the regression on rows, of that on landmarks, widths of the first, the vote
    known: Floats  # what the mixture knows of two labels


MOST_LANDMARKS = 300
"""A round costs two passes over a matrix of this size."""
# The regression on rows is left out where a round would cost more than this (classes × features²).
_MOST_OF_ROWS = 1 << 18
# The one on landmarks has the row beside the similarities up to this many features; beyond, a constant.
_MOST_BESIDE = 200
# Before anything is known the vote decides.
_FIRST_WEIGHTS, FIRST_VARIANCE = (0.3, 0.3, 0.2, 0.0, 0.0, 0.0, 0.0), 0.005


def shapes(
    settings: Settings, n_features: int, n_classes: int, has_regressions: bool, capacity: int, n_entries: int = 1
) -> dict[str, tuple[int, ...]]:
    """Return the shape of every array, with places for so many examples of so many entries."""
    is_linear, width = settings.plan[:, IS_LINEAR] != 0, n_features + settings.scales
    sizes = {"example": capacity, "entry": n_entries, "class": n_classes}
    sizes |= {"member": len(is_linear), "opinion": len(is_linear), "base": len(settings.bases)}
    sizes |= {"value": n_entries} if is_linear.all() else {"unit": width}
    if is_linear.any():
        sizes["weight"] = width
    if settings.scales:
        sizes["scaled column"] = n_features
    if settings.scales and settings.guarded and not is_linear.all():
        sizes |= {"raw column": n_features, "opinion": len(is_linear) + 1}
    if has_regressions:
        n_landmarks, sees_row = min(capacity, MOST_LANDMARKS), width <= _MOST_BESIDE
        sizes |= {"seen column": width, "landmark": n_landmarks, "mixture row": N_MIXED + 2}
        sizes["feature"] = n_landmarks + (width if sees_row else 1)
        sizes["row column"] = width * (sees_row and n_classes * width**2 <= _MOST_OF_ROWS)
    return {
        name: tuple(axis if isinstance(axis, int) else sizes.get(axis, 0) for axis in axes)
        for name, axes in _AXES.items()
    }


def new_arrays(shapes: dict[str, tuple[int, ...]]) -> BankArrays:
    """Return arrays that have learned nothing."""
    whole: Any = ("columns", "guesses", "counts")
    arrays = BankArrays(**{name: np.zeros(shape, int if name in whole else float) for name, shape in shapes.items()})
    arrays.members[:, TRUST], arrays.watch[:], n_scaled = 1.0, new_watch(), arrays.scaling.shape[-1]
    arrays.scaling[:, STATISTICS], arrays.scaling[:, SCALE] = new_statistics(n_scaled), new_scale(n_scaled)
    arrays.mixture[:] = new_mixture()[: len(arrays.mixture)]
    return arrays


def new_watch() -> Floats:
    """Return an empty record of how the guesses went."""
    return np.array([0.0, 0.0, 0.0, math.inf])


def new_mixture() -> Floats:
    """Return a mixture that has learned nothing, and follows the vote."""
    mixture = np.zeros((N_MIXED + 2, N_MIXED))
    mixture[:N_MIXED] = FIRST_VARIANCE * np.eye(N_MIXED)
    mixture[WEIGHTS], mixture[NUMBERS, NOISE] = _FIRST_WEIGHTS, 0.25
    return mixture


def new_scratch(state: BankArrays) -> BankScratch:
    """Return scratch arrays."""
    n_asked, (n_bases, capacity, _), n_classes = len(state.members), state.grams.shape, len(state.targets)
    n_entries, width = state.columns.shape[1], max(len(state.units), len(state.weights))
    return BankScratch(
        scores=np.empty(n_classes),
        opinions=np.empty((n_asked, n_classes)),
        targets=np.empty(n_classes),
        propensities=np.empty(n_classes),
        columns=np.zeros(n_entries, int),
        entries=np.zeros((3, n_entries)),
        unit=np.zeros(width),
        lines=np.zeros((VALUES + n_bases, capacity)),
        nearest=np.zeros((n_bases, capacity), int),
        numbers=np.zeros(ITSELF + n_bases),
        flags=np.zeros(ASKED + n_asked + n_bases, int),
        features=np.zeros((2, len(state.landmark_changes))),
        estimates=np.zeros((4, n_classes)),
        known=np.zeros((2, N_MIXED)),
    )
