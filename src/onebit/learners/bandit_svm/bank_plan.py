"""Which kernels a bank has, and how their values come from one product and one distance per stored example."""

import sys
from typing import Any, NamedTuple

import numpy as np

from onebit.compiled import inlined, shared
from onebit.inputs import Floats, Integers
from onebit.kernels import Gaussian, Kernel, Laplace, Linear, Multinomial, Polynomial, Rational, gaussian_exponent
from onebit.learners.bandit_svm.exponentials import exponentiate

BASE, SQUARINGS, LINEAR = range(3)
"""What a plan says of each kernel."""
CODE, OF_UNITS = range(2)
"""What a form says of each base."""
# Beyond, the squares in ‖x‖² + ‖x'‖² − 2⟨x, x'⟩ are no floats, and their difference is no number.
_LONGEST = 1e150

# By its code compiled code knows a kernel's formula, so that one compiled game serves every bank.
_COMPILED = (Linear, Gaussian, Rational, Polynomial, Multinomial)
_LINEAR, _GAUSSIAN, _RATIONAL, _POLYNOMIAL, _MULTINOMIAL, _LAPLACE, IN_PYTHON = range(7)
_FORMULAS: tuple[Any, ...] = tuple(kernel.value for kernel in _COMPILED[2:])
_rational, _polynomial, _multinomial = _FORMULAS


class BankNumbers(NamedTuple):
    """What compiled code is told about a bank."""

    plan: Integers
    """For each kernel its base, how often to square that, and whether its weights are kept (m × 3)."""
    forms: Integers
    """For each base its formula, and whether that is about unit rows (bases × 2)."""
    parameters: Floats
    """The number in each base's formula (bases × 1)."""
    is_bounded: bool
    """Whether no row that `is_too_long` lets pass makes a kernel overflow, nor needs Python: then not every kernel must
    be asked in every round."""


class Bank(NamedTuple):
    """The kernels, and how they are computed."""

    kernels: tuple[Kernel, ...]
    bases: tuple[Kernel, ...]
    """Kernels with similarities of their own; the others are powers of them."""
    numbers: BankNumbers


def new_bank(kernels: tuple[Kernel, ...], width: int) -> Bank:
    """Return how to compute kernels on rows of that many features.

    A Gaussian whose exponent is another's times a power of two is had by squaring.
    """
    bases: list[Kernel] = []
    plan = np.zeros((len(kernels), 3), dtype=np.int64)
    for k, kernel in enumerate(kernels):
        plan[k, LINEAR] = type(kernel) is Linear and kernel.normalize
        for b, base in enumerate(bases):
            squarings = _squarings(base, kernel)
            if squarings is not None:
                plan[k, BASE], plan[k, SQUARINGS] = b, squarings
                break
        else:
            plan[k, BASE] = len(bases)
            bases.append(kernel)
    forms = np.array([(_code(base), base.normalize) for base in bases], dtype=np.int64)
    parameters = np.array([[_parameter(base, width)] for base in bases])
    return Bank(kernels, tuple(bases), BankNumbers(plan, forms, parameters, all(map(_is_bounded, bases))))


def _is_bounded(kernel: Kernel) -> bool:
    if _code(kernel) == IN_PYTHON:
        return False
    if isinstance(kernel, Polynomial) and kernel.degree >= sys.float_info.max_exp:
        return False  # even of a unit row with itself, (1 + 1)ⁿ is no float
    return kernel.normalize or isinstance(kernel, (Gaussian, Laplace))


def _squarings(base: Kernel, kernel: Kernel) -> int | None:
    """Return how often a kernel's values must be squared to get another's, or None."""
    if base == kernel:
        return 0
    # A subclass may have another formula.
    if type(base) is type(kernel) is Gaussian and base.normalize == kernel.normalize:
        ratio = kernel.parameters[0] / base.parameters[0]
        for squarings in range(1, 9):
            if ratio == 2.0**squarings:
                return squarings
    return None


def _code(kernel: Kernel) -> int:
    if type(kernel) in _COMPILED:
        return _COMPILED.index(type(kernel))
    return _LAPLACE if type(kernel) is Laplace and not kernel.normalize else IN_PYTHON


def _parameter(kernel: Kernel, width: int) -> float:
    if _code(kernel) == IN_PYTHON:
        return 0.0
    return kernel.parameters[0] / (width if isinstance(kernel, Laplace) else 1)


def is_symmetric(kernel: Kernel) -> bool:
    """Return whether the value of two rows is the same to the last bit whichever of them came first."""
    return _code(kernel) == _LAPLACE or (_code(kernel) != IN_PYTHON and kernel.normalize)


@inlined
def is_too_long(numbers: BankNumbers, b: int, length: float) -> bool:
    """Say whether base b cannot tell how far a row of that length is from others."""
    return bool(numbers.forms[b, CODE] == _GAUSSIAN and not numbers.forms[b, OF_UNITS] and length > _LONGEST)


@shared
def write_products(units: Floats, unit: Floats, size: int, out: Floats) -> None:
    """Write the products of a unit row with the first stored ones."""
    for s in range(size):
        out[s] = 0.0
    for j in range(unit.shape[0]):
        entry = unit[j]
        if entry != 0.0:  # bits, one-hot columns and pixels are mostly zero
            column = units[j]
            for s in range(size):
                out[s] += entry * column[s]


@shared
def write_distances(stored: Floats, features: Floats, size: int, out: Floats) -> None:
    """Write ‖x−x'‖₁ for the first stored rows x'."""
    for s in range(size):
        out[s] = 0.0
    for j in range(features.shape[0]):
        entry, column = features[j], stored[j]
        for s in range(size):
            out[s] += abs(entry - column[s])


@shared
def write_values(code: int, square: float, squares: Floats, parameters: Floats, size: int, out: Floats) -> Any:
    """Turn products into a kernel's values, given the squared lengths, which may be written over; return k(x, x)."""
    if code == _LINEAR:
        return square
    if code == _GAUSSIAN:
        for s in range(size):
            out[s] = gaussian_exponent(out[s], square, squares[s], parameters)
        exponentiate(out, size, squares)
        return 1.0
    if code == _RATIONAL:
        for s in range(size):
            out[s] = _rational(out[s], square, squares[s], parameters)
        return _rational(square, square, square, parameters)
    if code == _POLYNOMIAL:
        for s in range(size):
            out[s] = _polynomial(out[s], square, squares[s], parameters)
        return _polynomial(square, square, square, parameters)
    for s in range(size):
        out[s] = _multinomial(out[s], square, squares[s], parameters)
    return _multinomial(square, square, square, parameters)


@inlined
def compare(memory: Any, size: int, sight: Any, b: int, numbers: BankNumbers) -> None:
    """Write base b's similarities of the row in `sight` with all stored ones, and with itself, unless they are there.

    What only Python can compute was written before.
    """
    if sight.compared[b]:
        return
    sight.compared[b] = 1
    out, code, length = sight.bases[b], numbers.forms[b, CODE], sight.length[0]
    if code == _LAPLACE:
        write_distances(memory.features, sight.features[0], size, out)
        for s in range(size):
            out[s] *= -numbers.parameters[b, 0]
        exponentiate(out, size, sight.squares)
        sight.itself[0, b] = 1.0
        return
    if not sight.is_multiplied[0]:
        write_products(memory.units, sight.unit, size, sight.products)
        sight.is_multiplied[0] = 1
    squares = sight.squares
    if numbers.forms[b, OF_UNITS]:
        square = 1.0 if length > 0.0 else 0.0  # a row of zeros has no direction
        for s in range(size):
            out[s] = sight.products[s]
            squares[s] = 1.0 if memory.lengths[s] > 0.0 else 0.0
    else:
        square = length * length
        for s in range(size):
            other = memory.lengths[s]
            out[s] = sight.products[s] * length * other
            squares[s] = other * other
    sight.itself[0, b] = write_values(code, square, squares, numbers.parameters[b], size, out)


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
