"""What the paper's theorems say about a data set of known margins."""

import math
from typing import Any

from onebit.bounds.claim import Claim
from onebit.bounds.registry import BOUNDS

# The longest of rows that were normalized in floats.
_UNIT_BALL_SLACK = 1e-10


def promises(
    *,
    n_classes: int,
    n_features: int,
    radius: float,
    weak: float,
    strong: float,
    weak_limit: float,
    strong_limit: float,
    in_kernel_space: bool,
) -> list[Claim]:
    """Return what Theorems 2, 4, 5, 10, 21 and Corollary 6 say.

    A margin of 0 means that none was found; if its limit is 0 too, there is none.
    """
    not_weak, not_strong = _why_silent("weak", weak_limit), _why_silent("strong", strong_limit)
    # Theorems read a float as the decimal that it is written as, which is within the next one.
    weak, strong, radius = math.nextafter(weak, 0.0), math.nextafter(strong, 0.0), math.nextafter(radius, math.inf)
    perceptron = _told("4" if in_kernel_space else "2", not_strong, strong, n_classes=n_classes, radius=radius)
    full_information = _told("10", not_weak, weak, radius=radius)
    if in_kernel_space:
        return [perceptron, full_information]
    # Theorem 5 is about the unit ball: dividing each row by its length gets there, at the price of a factor R in γ.
    is_inside = radius <= 1.0 + _UNIT_BALL_SLACK
    kernel, inside = ("Rational()", weak) if is_inside else ("Rational(normalize=True)", weak / radius)
    return [
        perceptron,
        _told("5", not_weak, inside, kernel, n_classes=n_classes),
        _told("6", not_weak, inside, f"Algorithm 2 with {kernel}", n_classes=n_classes),
        full_information,
        _told("21", not_weak, weak, n_classes=n_classes, radius=radius, dimension=n_features),
    ]


def _told(theorem: str, silence: str, margin: float, binds: str | None = None, **numbers: Any) -> Claim:
    entry = BOUNDS[theorem]
    return entry.claim(binds, margin=margin, **numbers) if margin > 0.0 else entry.silence(silence, binds)


def _why_silent(kind: str, limit: float) -> str:
    if limit > 0.0:
        return f"no {kind} margin was found; it is at most {limit:.3g}"
    return f"the data are not {kind}ly separable"
