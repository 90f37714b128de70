"""Kernels: inner products in another space, as functions of ⟨x,x'⟩, ‖x‖² and ‖x'‖².

A learner with a kernel keeps examples, and its scores are sums of kernel values. Two more properties let a block of
rounds be scored at once without changing a guess: `sensitivity` to rounding, and a `series`, a polynomial close to it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.spatial.distance

from onebit.engine.jit import in_python, jit, jit_inline
from onebit.engine.scaling import LEAST_SQUARE, row_lengths, unit_rows
from onebit.inputs import Floats, Rows, check_integer, check_number, check_rows, dense

__all__ = [
    "Custom",
    "Gaussian",
    "Kernel",
    "Laplace",
    "Linear",
    "Multinomial",
    "Polynomial",
    "Rational",
    "Series",
    "as_kernel",
]

Value = Callable[[float, float, float, tuple[float, ...]], float]

_UNIT_BALL_SLACK = 1e-9  # rows that were normalised elsewhere are off by rounding
_MOST_DEGREE = 1_000_000  # a value takes that many products
_MOST_SERIES_DEGREE = 1000  # beyond, a binomial coefficient is no float
_LEAST_NORMAL = 2.0**-1022  # below, floats have fewer digits


class Series(NamedTuple):
    """A polynomial Σ aⱼzʲ in z = ⟨x,x'⟩ and the most it differs from the kernel."""

    coefficients: Floats
    error: float


class Kernel(ABC):
    """A positive definite kernel; with ``normalize=True`` it divides every row by its length first.

    Call it on rows for the matrix of values: ``kernel(X, Y)``. To write one of your own as a class, give `value` (an
    `onebit.engine.jit.jit_inline` function), `parameters` and `sensitivity`; a plain Python function will do too, see
    `Custom`.
    """

    normalize: bool = False
    value: ClassVar[Value | None]
    """Compiled: (⟨x,x'⟩, ‖x‖², ‖x'‖², parameters) → k(x, x'); None if only Python can compute it, from rows."""

    @property
    def parameters(self) -> tuple[float, ...]:
        """The numbers that `value` is given; at least one."""
        return (0.0,)

    @abstractmethod
    def sensitivity(self, radius: float) -> float:
        """Return how far k can move, per unit of relative rounding in ⟨x,x'⟩, ‖x‖² and k, on a ball of that radius."""

    def series(self, n_features: int) -> Series | None:
        """Return a polynomial in ⟨x,x'⟩ close to the kernel everywhere it is defined, or None if there is none.

        So many features vary: the fewer, the less a long polynomial costs.
        """
        return None

    def prepare(self, X: Floats) -> Floats:
        """Return rows as the kernel takes them: divided by their length if `normalize` is set, and checked."""
        return unit_rows(X) if self.normalize else X

    def matrix(self, X: Floats, Y: Floats) -> Floats:
        """Return k for every pair of prepared rows."""
        return self.of_products(X @ Y.T, np.einsum("ij,ij->i", X, X), np.einsum("ij,ij->i", Y, Y))

    def of_products(self, products: Floats, squares_x: Floats, squares_y: Floats) -> Floats:
        """Turn a matrix of inner products into kernel values, in place, and return it."""
        value = type(self).value
        if value is None:
            raise TypeError(f"{self!r} is computed from rows, not from inner products")
        _apply(value)(products, squares_x, squares_y, self.parameters)
        return products

    def __repr__(self) -> str:
        """Name the kernel and the settings that differ from their defaults."""
        own: Any = self
        values = [(each.name, getattr(self, each.name), each.default) for each in fields(own)]
        shown = [f"{name}={value!r}" for name, value, default in values if default is MISSING or value != default]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __call__(self, X: npt.ArrayLike | Rows, Y: npt.ArrayLike | Rows | None = None) -> Floats:
        """Return the matrix k(X[i], Y[j]); Y is X if it is not given."""
        left = self.prepare(dense(check_rows(X, "X")))
        right = left if Y is None else self.prepare(dense(check_rows(Y, "Y")))
        if left.shape[1] != right.shape[1]:
            raise ValueError(f"X and Y must have the same features; got {left.shape[1]} and {right.shape[1]}")
        return self.matrix(left, right)


def _power(base: float, exponent: float) -> float:
    """Return a power; infinity beyond the largest float, where Python's own raises."""
    with np.errstate(over="ignore"):
        return float(np.float64(base) ** exponent)


@jit_inline
def is_lost(itself: float, square: float, X: Floats, t: int) -> bool:
    """Return whether k(x, x) of row t is no number, or vanishes only because the row's square does.

    A kernel's other values with that row, at most √k(x, x)√k(x', x'), would be lost too, without a sign of it.
    """
    if not math.isfinite(itself):
        return True
    # Both: other kernels have their least value elsewhere, where nothing is lost.
    if itself < _LEAST_NORMAL and square < LEAST_SQUARE:
        for j in range(X.shape[1]):
            if X[t, j] != 0.0:
                return True
    return False


@cache
def _apply(value: Value) -> Callable[..., None]:
    """Return a compiled function that applies a kernel's value to a whole matrix of inner products, in place."""

    @jit
    def apply(products: Floats, squares_x: Floats, squares_y: Floats, parameters: tuple[float, ...]) -> None:
        for i in range(products.shape[0]):
            for j in range(products.shape[1]):
                products[i, j] = value(products[i, j], squares_x[i], squares_y[j], parameters)

    return apply


@jit_inline
def _linear(dot: float, _a: float, _b: float, _parameters: tuple[float, ...]) -> float:
    return dot


@dataclass(frozen=True, repr=False)
class Linear(Kernel):
    """k(x, x') = ⟨x, x'⟩: the plain inner product, kept as examples rather than as weights."""

    normalize: bool = False
    value = _linear

    def sensitivity(self, radius: float) -> float:
        """Return the largest |k|."""
        return _power(radius, 2)

    def series(self, n_features: int) -> Series:
        """Return z itself."""
        return Series(np.array([0.0, 1.0]), 0.0)


@jit_inline
def _rational(dot: float, _a: float, _b: float, _parameters: tuple[float, ...]) -> float:
    return 1.0 / (1.0 - 0.5 * dot)


@dataclass(frozen=True, repr=False)
class Rational(Kernel):
    """k(x, x') = 1/(1 − ½⟨x, x'⟩) on the unit ball: it makes any weakly separable set strongly separable.

    Values lie in [2/3, 2]. This is the kernel of the paper's Algorithm 2 and of its Theorem 5.

    Parameters
    ----------
    normalize : bool
        Divide every row by its length first, as the paper's footnote allows: a weak margin γ within radius R becomes at
        least γ/R. Without it a row longer than 1 is an error.

    Examples
    --------
    >>> float(Rational()([[1.0, 0.0]])[0, 0])
    2.0

    References
    ----------
    Shalev-Shwartz, Shamir, Sridharan (2011). Learning kernel-based halfspaces with the 0-1 loss. SIAM J. Computing.
    """

    normalize: bool = False
    value = _rational

    def sensitivity(self, radius: float) -> float:
        """Return max |k| + max |z·dk/dz|: 2 + 2 on the unit ball."""
        return 4.0

    def series(self, n_features: int) -> Series:
        """Return the Chebyshev expansion of 2/(2−z) on [−1, 1], cut off; its terms shrink by 2−√3 each."""
        # Degree 8 has 165 monomials in three features and an error of 2·10⁻⁵: enough for nearly every round. In two
        # features degree 11 has 78, and an error of 4·10⁻⁷.
        degree, ratio, first = 8 if n_features > 2 else 11, 2.0 - math.sqrt(3.0), 2.0 / math.sqrt(3.0)
        chebyshev = 2.0 * first * ratio ** np.arange(degree + 1)
        chebyshev[0] = first
        error = 2.0 * first * ratio ** (degree + 1) / (1.0 - ratio)
        return Series(np.polynomial.chebyshev.cheb2poly(chebyshev), error)

    def prepare(self, X: Floats) -> Floats:
        """Return the rows, each within the unit ball."""
        rows = super().prepare(X)
        squares = np.einsum("ij,ij->i", rows, rows)
        if squares.max(initial=0.0) > 1.0 + _UNIT_BALL_SLACK:
            row = int(np.argmax(squares > 1.0 + _UNIT_BALL_SLACK))
            length = row_lengths(rows[row : row + 1])[0]
            raise ValueError(
                f"the rational kernel needs rows within the unit ball; row {row} has length {length:.6g}. "
                "Use Rational(normalize=True) to divide every row by its length, or scale the data"
            )
        return rows


@dataclass(frozen=True, repr=False)
class _OfDegree(Kernel):
    """A polynomial in ⟨x, x'⟩, whose degree is a setting."""

    degree: int = 2
    normalize: bool = False

    def __post_init__(self) -> None:
        check_integer("degree", self.degree, low=1, high=_MOST_DEGREE)

    @property
    def parameters(self) -> tuple[float, ...]:
        """The degree."""
        return (float(self.degree),)

    def sensitivity(self, radius: float) -> float:
        """Return (2n + 1)·k: a bound on |k| + |z·dk/dz| + the rounding of the products."""
        value: Any = type(self).value
        return (2 * self.degree + 1) * float(in_python(value)(_power(radius, 2), 0.0, 0.0, self.parameters))

    def series(self, n_features: int) -> Series | None:
        """Return all terms, exact, unless there are too many."""
        return Series(np.array(self._terms()), 0.0) if self.degree <= _MOST_SERIES_DEGREE else None

    @abstractmethod
    def _terms(self) -> list[float]:
        """Return the coefficients of the polynomial."""


@jit_inline
def _polynomial(dot: float, _a: float, _b: float, parameters: tuple[float, ...]) -> float:
    result = 1.0
    for _ in range(int(parameters[0])):  # not pow: products round alike on every machine
        result *= 1.0 + dot
    return result


@dataclass(frozen=True, repr=False)
class Polynomial(_OfDegree):
    """k(x, x') = (1 + ⟨x, x'⟩)ⁿ.

    Parameters
    ----------
    degree : int
        n, from 1 to 1 000 000.
    """

    value = _polynomial

    def _terms(self) -> list[float]:
        return [float(math.comb(self.degree, j)) for j in range(self.degree + 1)]


@jit_inline
def _multinomial(dot: float, _a: float, _b: float, parameters: tuple[float, ...]) -> float:
    result = 1.0
    for _ in range(int(parameters[0])):  # Horner's scheme
        result = 1.0 + dot * result
    return result


@dataclass(frozen=True, repr=False)
class Multinomial(_OfDegree):
    """k(x, x') = Σ_{i ≤ n} ⟨x, x'⟩ⁱ.

    Parameters
    ----------
    degree : int
        n, from 1 to 1 000 000.

    References
    ----------
    Goel, Klivans (2017). Learning neural networks with two nonlinear layers in polynomial time. arXiv:1709.06010.
    """

    value = _multinomial

    def _terms(self) -> list[float]:
        return [1.0] * (self.degree + 1)


@jit_inline
def gaussian_exponent(dot: float, a: float, b: float, parameters: Any) -> Any:
    """Return the logarithm of a Gaussian's value."""
    # Rounding can leave the squared distance of near twins below zero.
    return -max(a + b - 2.0 * dot, 0.0) * parameters[0]


@jit_inline
def _gaussian(dot: float, a: float, b: float, parameters: tuple[float, ...]) -> float:
    return math.exp(gaussian_exponent(dot, a, b, parameters))


@dataclass(frozen=True, repr=False)
class Gaussian(Kernel):
    """k(x, x') = exp(−‖x − x'‖²/(2·width²)).

    Parameters
    ----------
    width : float
        The distance at which two rows begin to look different; from 1e-150 to 1e150, where its square is a float.
    """

    width: float = 1.0
    normalize: bool = False
    value = _gaussian

    def __post_init__(self) -> None:
        check_number("width", self.width, above=1e-150, at_most=1e150)

    @property
    def parameters(self) -> tuple[float, ...]:
        """1/(2·width²)."""
        return (0.5 / self.width**2,)

    def sensitivity(self, radius: float) -> float:
        """Return 1 + the largest change of the exponent."""
        return 1.0 + 4.0 * _power(radius, 2) * self.parameters[0]


@dataclass(frozen=True, repr=False)
class Laplace(Kernel):
    """k(x, x') = exp(−(sharpness/d)·‖x−x'‖₁), d the number of features: differences add up column by column.

    A column far off costs no more than its distance, so noisy columns and outliers do less harm than to `Gaussian`.
    Meant for columns of similar spread, such as standardised ones.

    Parameters
    ----------
    sharpness : float
        How fast similarity falls with the mean difference of a column; greater than 0.

    Examples
    --------
    >>> Laplace(sharpness=2.0)([[0.0, 0.0]], [[1.0, 0.0]]).round(3)
    array([[0.368]])
    """

    sharpness: float = 3.0
    normalize: bool = False
    value = None

    def __post_init__(self) -> None:
        check_number("sharpness", self.sharpness, above=0.0)

    @property
    def parameters(self) -> tuple[float, ...]:
        """The sharpness."""
        return (self.sharpness,)

    def sensitivity(self, radius: float) -> float:
        """Return 1 + the largest change of the exponent."""
        return 1.0 + 2.0 * self.sharpness * radius

    def matrix(self, X: Floats, Y: Floats) -> Floats:
        """Return k for every pair of prepared rows."""
        distances: Floats = scipy.spatial.distance.cdist(X, Y, "cityblock")
        values: Floats = np.exp(distances * (-self.sharpness / X.shape[1]))
        return values


@dataclass(frozen=True, repr=False)
class Custom(Kernel):
    """A user's own kernel: a Python function of two row matrices that returns the matrix of values.

    Learners wrap a plain function in this by themselves. It must be positive definite for the theorems to hold.

    Parameters
    ----------
    function : callable
        ``function(X, Y)`` with shapes (n, d) and (m, d) returns shape (n, m), as for scikit-learn's ``SVC``.

    Examples
    --------
    >>> Custom(lambda X, Y: np.tanh(1.0 + X @ Y.T))([[0.0]]).round(3)
    array([[0.762]])
    """

    function: Callable[[Floats, Floats], Any]
    normalize: bool = False
    value = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ValueError(f"function must be callable as function(X, Y); got {self.function!r}")

    def sensitivity(self, radius: float) -> float:
        """Return a guess: nothing is known about the function, so its values are trusted to nine digits."""
        return 1e6 * (1.0 + _power(radius, 2))  # 10⁶ · 2⁻⁵³ is about 10⁻¹⁰

    def matrix(self, X: Floats, Y: Floats) -> Floats:
        """Return the function's values, checked."""
        values = np.asarray(self.function(X, Y))
        if values.shape != (len(X), len(Y)) or values.dtype.kind not in "fiu":
            raise ValueError(
                f"the kernel function must return real numbers of shape {(len(X), len(Y))} for inputs of shapes "
                f"{X.shape} and {Y.shape}; got {values.dtype} of shape {values.shape}"
            )
        return np.array(values, dtype=np.float64, order="C")


def as_kernel(kernel: Any) -> Any:
    """Return a kernel, a plain function wrapped as one, or None for the linear space kept as weights."""
    if kernel is None or isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, type) or not callable(kernel):
        raise ValueError(
            f"kernel must be None, a kernel such as onebit.kernels.Rational(), or a function(X, Y); got {kernel!r}"
        )
    return Custom(kernel)


def kernel_name(kernel: "Kernel | None") -> str:
    """Return the display name of a kernel, without its `normalize` setting.

    Examples
    --------
    >>> [kernel_name(kernel) for kernel in (Linear(), Gaussian(0.5, normalize=True), Polynomial(3), Laplace())]
    ['linear', 'Gaussian, width 0.5', 'Polynomial, degree 3', 'Laplace, sharpness 3']
    """
    if kernel is None or isinstance(kernel, Linear):
        return "linear"
    settings = [name for name in ("width", "degree", "sharpness") if hasattr(kernel, name)]
    return ", ".join([type(kernel).__name__, *(f"{name} {getattr(kernel, name):g}" for name in settings)])
