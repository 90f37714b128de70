"""What the paper's theorems say about a data set of known margins."""

from typing import Any

from onebit.bounds.claim import Claim
from onebit.bounds.registry import BOUNDS

# The longest of rows that were normalized in floats.
_UNIT_BALL_SLACK = 1e-10
_NOT_WEAK = "the data are not weakly separable"
_NOT_STRONG = "the data are not strongly separable"


def promises(
    *, n_classes: int, n_features: int, radius: float, weak: float, strong: float, in_kernel_space: bool
) -> list[Claim]:
    """Return what Theorems 2, 4, 5, 10, 21 and Corollary 6 say; a margin of 0 means that there is none."""
    weak, strong = _round_down(weak, radius), _round_down(strong, radius)
    perceptron = _told("4" if in_kernel_space else "2", _NOT_STRONG, strong, n_classes=n_classes, radius=radius)
    full_information = _told("10", _NOT_WEAK, weak, radius=radius)
    if in_kernel_space:
        return [perceptron, full_information]
    # Theorem 5 is about the unit ball: dividing each row by its length gets there, at the price of a factor R in γ.
    is_inside = radius <= 1.0 + _UNIT_BALL_SLACK
    kernel, inside = ("Rational()", weak) if is_inside else ("Rational(normalize=True)", weak / radius)
    return [
        perceptron,
        _told("5", _NOT_WEAK, inside, kernel, n_classes=n_classes),
        _told("6", _NOT_WEAK, inside, f"Algorithm 2 with {kernel}", n_classes=n_classes),
        full_information,
        _told("21", _NOT_WEAK, weak, n_classes=n_classes, radius=radius, dimension=n_features),
    ]


def _told(theorem: str, silence: str, margin: float, binds: str | None = None, **numbers: Any) -> Claim:
    entry = BOUNDS[theorem]
    return entry.claim(binds, margin=margin, **numbers) if margin > 0.0 else entry.silence(silence, binds)


def _round_down(margin: float, radius: float) -> float:
    """Return a little less than a measured margin, so that its rounding cannot make a promise too good."""
    return margin * (1.0 - 1e-12 - 1e-15 * (radius / margin) ** 2) if margin > 0.0 else 0.0
