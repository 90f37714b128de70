"""What a theorem says for given numbers (`Claim`), and the list of all theorems (`BOUNDS`).

What outgrows a float is kept as its base-2 logarithm.
"""

import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import update_wrapper
from typing import Any, Generic, Literal, NamedTuple, ParamSpec

About = Literal["updates", "mistakes", "expected mistakes", "strong margin"]
_Side = Literal["upper", "lower"]
_P = ParamSpec("_P")

# Between them a power of 2 is an ordinary float; claims beyond them are given by their logarithm.
_SMALLEST_LOG2, _LARGEST_LOG2 = -1022.0, 1023.0

_MOST_BITS = 2**22  # half a megabyte: larger whole numbers take seconds, and say no more than their logarithm
# Powers beyond this are formed from logarithms: exact ones would take seconds, and soon for ever.
MOST_EXACT_EXPONENT = 1000

_MEANINGS = {
    "n_classes": "K, the number of classes",
    "radius": "R: no example is longer; in a kernel's space the root of the largest k(x, x)",
    "margin": "γ, the strong or weak margin of the examples, whichever the theorem is about",
    "dimension": "d, the number of features",
    "reach": "r, the radius within which nearest neighbour looks",
    "directions": "T, the number of directions",
    "exploration": "p, the chance of a uniform guess where no class claims the example, above 0 and at most 1",
    "n_kernels": "m, the number of members, one of them linear (or the guard, where columns are scaled)",
    "softness": "1/(2C), 0 for a hard margin",
    "n_hypotheses": "H, the number of hypotheses",
}


@dataclass(frozen=True)
class Claim:
    """What one theorem says for given numbers; made by an entry of `BOUNDS`."""

    theorem: str
    """Its name in `BOUNDS`: "2", "3-remark", "21-sharp"."""
    about: About
    """What it bounds. Updates and mistakes are those of every run, expected mistakes the mean over random numbers."""
    side: _Side
    """Whether that is at most the value (upper) or at least (lower)."""
    binds: str
    """Whose updates, mistakes or margin these are."""
    value: float | None
    """The number; None if the theorem is silent or the number is beyond a float."""
    log2: float | None
    """Its base-2 logarithm; None if the theorem is silent or the number is 0."""
    silent_because: str = ""
    """Why the theorem says nothing."""

    @property
    def subject(self) -> str:
        """What the number bounds, and whose it is."""
        return f"{self.about} {'after' if self.about == 'strong margin' else 'of'} {self.binds}"

    def as_dict(self) -> dict[str, Any]:
        """Return what a table or a JSON document shows of it."""
        numbers = {"value": self.value, "log2": self.log2, "silent_because": self.silent_because}
        return {"theorem": self.theorem, "about": self.subject, **numbers}


def at_most(claims: Iterable[Claim], about: About) -> float:
    """Return the smallest number that claims allow for `about`; infinity if none of them speaks of it."""
    # What holds in every run holds on average.
    kinds = {about, "mistakes"} if about == "expected mistakes" else {about}
    spoken = [claim.value for claim in claims if claim.side == "upper" and claim.about in kinds]
    return min((value for value in spoken if value is not None), default=math.inf)


def log2(value: Fraction | int) -> float:
    """Return log₂ of a number of any size; −∞ for 0."""
    # Near 1 the difference of two logarithms would keep few of its digits.
    if Fraction(1, 2) < value < 2:
        return math.log1p(value - 1) / math.log(2.0)
    # Python takes logarithms of whole numbers of any size, of floats only below 2^1024.
    return math.log2(value.numerator) - math.log2(value.denominator) if value else -math.inf


class Size(NamedTuple):
    """The number factor · base^exponent · 2^twos, of any size; a whole one if the factor is an int."""

    factor: Any
    base: Any = 1
    exponent: Any = 1
    twos: int = 0

    @property
    def log2(self) -> float:
        """Its base-2 logarithm; −∞ for 0."""
        return log2(self.factor) + float(self.exponent) * log2(self.base) + self.twos

    def value(self, bound: "Bound[Any]", /) -> float:
        """Return it as a float; too large for one, infinity as an upper bound, an OverflowError as a lower one."""
        size = self.log2
        if isinstance(self.factor, int):
            if size > _MOST_BITS:
                raise bound.overflow(size)
            return self.factor * int(self.base**self.exponent) << self.twos
        if size >= _LARGEST_LOG2:
            if bound.side == "lower":  # "at most infinity" is true, "at least infinity" would not be
                raise bound.overflow(size)
            return math.inf
        if self.exponent > MOST_EXACT_EXPONENT or self.base >= 2**1000:
            return float(2.0**size)
        # A whole exponent makes it a fraction, which is rounded once.
        return float(self.factor * self.base**self.exponent)


class Bound(Generic[_P]):
    """A theorem before numbers are put in: call it for its number, or `log2` for the number's logarithm."""

    def __init__(self, number: Callable[_P, Any], theorem: str, side: _Side, about: About, binds: str) -> None:
        update_wrapper(self, number)
        self.theorem, self.side, self.about, self.binds, self.name = theorem, side, about, binds, number.__name__
        self._number: Callable[..., Any] = number

    def _size(self, *numbers: Any, **named: Any) -> Any:
        number = self._number(*numbers, **named)
        return Size(number) if isinstance(number, int) else number

    def __call__(self, *numbers: _P.args, **named: _P.kwargs) -> float:
        """Return the number, as a Python integer if it is a whole one."""
        value: float = self._size(*numbers, **named).value(self)
        return value

    def log2(self, *numbers: _P.args, **named: _P.kwargs) -> float:
        """Return the number's base-2 logarithm, however large it is; −∞ for 0."""
        size: float = self._size(*numbers, **named).log2
        return size

    @property
    def parameters(self) -> dict[str, str]:
        """What each argument means, in the function's order."""
        return {name: _MEANINGS[name] for name in inspect.signature(self).parameters}

    @property
    def title(self) -> str:
        """The first line of the function's documentation."""
        return (self.__doc__ or "").split("\n", 1)[0]

    def claim(self, binds: str | None = None, /, **numbers: Any) -> Claim:
        """Return what the theorem says for these numbers, of `binds` if that names them more closely."""
        named, number = (self.theorem, self.about, self.side, binds or self.binds), self._size(**numbers)
        size = number.log2
        if math.isfinite(size) and not _SMALLEST_LOG2 < size < _LARGEST_LOG2:
            return Claim(*named, None, size)
        value = number.value(self)
        return Claim(*named, value, math.log2(value) if value else None)

    def silence(self, because: str, binds: str | None = None) -> Claim:
        """Return the claim of a theorem that says nothing, and why."""
        return Claim(self.theorem, self.about, self.side, binds or self.binds, None, None, because)

    def overflow(self, size: float) -> OverflowError:
        """Return the error for a number too large to return."""
        return OverflowError(f"the bound is about 2^{size:.0f}; use {self.name}.log2 instead")


BOUNDS: dict[str, Bound[...]] = {}
"""All theorems by number; "21-sharp" is Theorem 21 with a better constant, "6" is Corollary 6."""


def bound(
    theorem: str, side: _Side, about: About = "expected mistakes", *, binds: str
) -> Callable[[Callable[_P, Any]], Bound[_P]]:
    """Enter a function in `BOUNDS`. It returns an int, or what has a ``log2`` and a ``value(bound)``: a `Size`."""

    def enter(number: Callable[_P, Any]) -> Bound[_P]:
        made = Bound(number, theorem, side, about, binds)
        BOUNDS[theorem] = made
        return made

    return enter
