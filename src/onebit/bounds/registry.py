"""The theorems as functions of numbers, in a list that fills itself; and the checks that they share."""

import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from onebit.bounds.claim import About, Claim, Side
from onebit.exact import squared_ratio
from onebit.inputs import check_integer

_Function = TypeVar("_Function", bound=Callable[..., float])

SMALLEST_LOG2, LARGEST_LOG2 = -1022.0, 1023.0
"""Between them a power of 2 is an ordinary float; claims beyond them are told by their logarithm."""

MOST_EXACT_DIMENSIONS = 1000
"""Powers beyond this are formed from logarithms: exact ones would take seconds, and soon for ever."""

# A margin that was measured may exceed the largest possible one by its rounding.
_SLACK = Fraction(1, 10**9)
_SAME_UNITS = "Check that margin and radius are in the same units"


@dataclass(frozen=True)
class Bound:
    """One entry of `BOUNDS`: a theorem, before numbers are put in."""

    theorem: str
    side: Side
    """Either "upper" or "lower"."""
    about: About
    """What it bounds."""
    binds: str
    """Whom it speaks of."""
    function: Callable[..., float]
    log2: Callable[..., float] | None
    """The function's logarithm, if its numbers outgrow a float."""
    parameters: dict[str, str]
    """What each argument means, in the function's order."""

    @property
    def title(self) -> str:
        """The first line of the function's documentation."""
        return (inspect.getdoc(self.function) or "").split("\n", 1)[0]

    def claim(self, binds: str | None = None, /, **numbers: Any) -> Claim:
        """Return what the theorem says for these numbers, of `binds` if that names them more closely.

        Examples
        --------
        >>> BOUNDS["10"].claim(radius=1, margin=0.1).value
        200
        """
        named = self.theorem, self.about, self.side, binds or self.binds
        size = float(self.log2(**numbers)) if self.log2 is not None else 0.0
        if math.isfinite(size) and not SMALLEST_LOG2 < size < LARGEST_LOG2:
            return Claim(*named, None, size)
        value = self.function(**numbers)
        if value == 0:
            return Claim(*named, value, None)
        # Functions without a logarithm of their own return whole numbers, which have one at any size.
        size = math.log2(value)
        return Claim(*named, value if size < LARGEST_LOG2 else None, size)

    def silence(self, because: str, binds: str | None = None) -> Claim:
        """Return the claim of a theorem that says nothing, and why."""
        return Claim(self.theorem, self.about, self.side, binds or self.binds, None, None, because)


BOUNDS: dict[str, Bound] = {}
"""All theorems by number; "21-sharp" is Theorem 21 with a better constant, "6" is Corollary 6."""


def bound(
    theorem: str,
    side: Side,
    about: About = "expected mistakes",
    *,
    binds: str,
    log2: Callable[..., float] | None = None,
) -> Callable[[_Function], _Function]:
    """Enter a function in `BOUNDS`; what its parameters mean is read from its docstring."""

    def enter(function: _Function) -> _Function:
        # NumPy style: names, a colon and their type, and indented below it what they mean.
        sections = re.findall(r"(?m)^([\w, ]+) : .*\n((?: {4}.*\n?)+)", inspect.getdoc(function) or "")
        documented = {name: " ".join(text.split()) for names, text in sections for name in names.split(", ")}
        meanings = {name: documented.get(name, "") for name in inspect.signature(function).parameters}
        BOUNDS[theorem] = Bound(theorem, side, about, binds, function, log2, meanings)
        return function

    return enter


def strong_ratio(n_classes: Any, radius: Any, margin: Any) -> Fraction:
    """Return (R/γ)², having checked that a strong margin can be that large: γ ≤ 2R/√K."""
    K = check_integer("n_classes", n_classes, low=1)
    ratio = squared_ratio(radius, margin)
    if 4 * ratio * (1 + _SLACK) < K:
        limit = 2.0 * float(radius) / math.sqrt(K)
        raise ValueError(
            f"margin must be at most 2·radius/√n_classes = {limit:.6g}, the largest strong margin of {K} classes "
            f"within radius {radius!r}; got {margin!r}. {_SAME_UNITS}"
        )
    # A margin rounded past its limit counts as the limit.
    return max(ratio, Fraction(K, 4))


def weak_ratio(n_classes: Any, radius: Any, margin: Any, *, remedy: str = _SAME_UNITS) -> Fraction:
    """Return (R/γ)², having checked that a weak margin can be that large: γ² ≤ R²·K/(K−1)."""
    K = check_integer("n_classes", n_classes, low=2)
    ratio = squared_ratio(radius, margin)
    if K * ratio * (1 + _SLACK) < K - 1:
        limit = float(radius) * math.sqrt(K / (K - 1))
        raise ValueError(
            f"margin must be at most radius·√(K/(K−1)) = {limit:.6g}, the largest weak margin of {K} classes within "
            f"radius {radius!r}; got {margin!r}. {remedy}"
        )
    # A margin rounded past its limit counts as the limit.
    return max(ratio, Fraction(K - 1, K))
