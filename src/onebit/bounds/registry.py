"""The list of bounds, which fills itself, and the checks that they share."""

import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from onebit.bounds.margin_transformation import exactly
from onebit.inputs import check_integer

_Function = TypeVar("_Function", bound=Callable[..., float])

# A margin that was measured may exceed the largest possible one by its rounding.
_SLACK = Fraction(1, 10**9)


@dataclass(frozen=True)
class Bound:
    """One entry of `BOUNDS`."""

    theorem: str
    side: str
    """Either "upper" or "lower"."""
    function: Callable[..., float]
    parameters: dict[str, str]
    """What each argument means, in the function's order."""

    @property
    def title(self) -> str:
        """The first line of the function's documentation."""
        return (inspect.getdoc(self.function) or "").split("\n", 1)[0]


BOUNDS: dict[str, Bound] = {}
"""All bounds by theorem number; "21-sharp" is Theorem 21 with a better constant, "6" is Corollary 6."""


def bound(theorem: str, side: str) -> Callable[[_Function], _Function]:
    """Enter a function in `BOUNDS`; what its parameters mean is read from its docstring."""

    def enter(function: _Function) -> _Function:
        documented = dict(re.findall(r"(?m)^(\w+) : .*\n((?: {4}.*\n?)+)", inspect.getdoc(function) or ""))
        names = inspect.signature(function).parameters
        meanings = {name: " ".join(documented.get(name, "").split()) for name in names}
        BOUNDS[theorem] = Bound(theorem, side, function, meanings)
        return function

    return enter


def strong_ratio(n_classes: Any, radius: Any, margin: Any) -> Fraction:
    """Return (R/γ)², having checked that a strong margin can be that large: γ ≤ 2R/√K."""
    K = check_integer("n_classes", n_classes, low=1)
    ratio = (exactly("radius", radius) / exactly("margin", margin)) ** 2
    if 4 * ratio * (1 + _SLACK) < K:
        limit = 2.0 * float(radius) / math.sqrt(K)
        raise ValueError(
            f"margin must be at most 2·radius/√n_classes = {limit:.6g}, the largest strong margin of {K} classes "
            f"within radius {radius!r}; got {margin!r}. Check that margin and radius are in the same units"
        )
    return max(ratio, Fraction(K, 4))


def weak_ratio(n_classes: Any, radius: Any, margin: Any) -> Fraction:
    """Return (R/γ)², having checked that a weak margin can be that large: γ² ≤ R²·K/(K−1)."""
    K = check_integer("n_classes", n_classes, low=2)
    ratio = (exactly("radius", radius) / exactly("margin", margin)) ** 2
    if K * ratio * (1 + _SLACK) < K - 1:
        limit = float(radius) * math.sqrt(K / (K - 1))
        raise ValueError(
            f"margin must be at most radius·√(K/(K−1)) = {limit:.6g}, the largest weak margin of {K} classes within "
            f"radius {radius!r}; got {margin!r}. Check that margin and radius are in the same units"
        )
    return max(ratio, Fraction(K - 1, K))


def log2_fraction(value: Fraction) -> float:
    """Return log₂ of a positive fraction of any size."""
    return math.log2(value.numerator) - math.log2(value.denominator)
