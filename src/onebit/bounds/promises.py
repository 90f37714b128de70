"""What the paper's theorems say about a data set of known margins."""

import math
from typing import NamedTuple

from onebit.bounds import (
    kernel_perceptron_mistakes,
    log2_nearest_neighbor_mistakes,
    log2_rational_kernel_mistakes,
    multiclass_perceptron_mistakes,
    nearest_neighbor_mistakes,
    perceptron_mistakes,
)
from onebit.bounds.margin_transformation import transformed_margin

_UNIT_BALL_SLACK = 1e-10
_NOT_WEAK = "the data are not weakly separable"
_NOT_STRONG = "the data are not strongly separable"


class Guarantee(NamedTuple):
    """One theorem's word on a data set."""

    theorem: str
    about: str
    """What the number bounds."""
    value: float | None
    """The number; None if the theorem is silent or the number is beyond a float."""
    log2: float | None
    """Its base-2 logarithm; None if the theorem is silent."""
    silent_because: str = ""
    """Why the theorem says nothing."""


def promises(
    *, n_classes: int, n_features: int, radius: float, weak: float, strong: float, in_kernel_space: bool
) -> list[Guarantee]:
    """Return what Theorems 2, 4, 5, 10, 21 and Corollary 6 say; a margin of 0 means that there is none."""
    weak, strong = _round_down(weak, radius), _round_down(strong, radius)
    listed = [_perceptron(n_classes, radius, strong, in_kernel_space)]
    if not in_kernel_space:
        listed += _after_rational(n_classes, radius, weak)
    listed.append(_full_information(radius, weak))
    if not in_kernel_space:
        listed.append(_nearest_neighbor(n_classes, n_features, radius, weak))
    return listed


def _perceptron(n_classes: int, radius: float, strong: float, in_kernel_space: bool) -> Guarantee:
    theorem = "4" if in_kernel_space else "2"
    about = f"expected mistakes of Algorithm {'2 with this kernel' if in_kernel_space else '1'}"
    if strong <= 0.0:
        return Guarantee(theorem, about, None, None, _NOT_STRONG)
    rule = kernel_perceptron_mistakes if in_kernel_space else perceptron_mistakes
    return _number(theorem, about, rule(n_classes, radius, strong))


def _full_information(radius: float, weak: float) -> Guarantee:
    about = "mistakes of the Multiclass Perceptron, told every label"
    if weak <= 0.0:
        return Guarantee("10", about, None, None, _NOT_WEAK)
    return _number("10", about, multiclass_perceptron_mistakes(radius, weak))


def _after_rational(n_classes: int, radius: float, weak: float) -> list[Guarantee]:
    is_inside = radius <= 1.0 + _UNIT_BALL_SLACK
    kernel = "Rational()" if is_inside else "Rational(normalize=True)"
    margin_about, mistakes_about = f"strong margin after {kernel}", f"expected mistakes of Algorithm 2 with {kernel}"
    if weak <= 0.0:
        return [
            Guarantee("5", margin_about, None, None, _NOT_WEAK),
            Guarantee("6", mistakes_about, None, None, _NOT_WEAK),
        ]
    inside = weak if is_inside else weak / radius
    log2_margin = transformed_margin(n_classes, inside).log2
    log2_mistakes = log2_rational_kernel_mistakes(n_classes, inside)
    return [
        Guarantee("5", margin_about, 2.0**log2_margin if log2_margin > -1022 else None, log2_margin),
        Guarantee("6", mistakes_about, 2.0**log2_mistakes if log2_mistakes < 1023 else None, log2_mistakes),
    ]


def _nearest_neighbor(n_classes: int, n_features: int, radius: float, weak: float) -> Guarantee:
    about = "expected mistakes of nearest neighbour within the weak margin"
    if weak <= 0.0:
        return Guarantee("21", about, None, None, _NOT_WEAK)
    size = log2_nearest_neighbor_mistakes(n_classes, radius, weak, n_features)
    value = nearest_neighbor_mistakes(n_classes, radius, weak, n_features) if size < 1023 else None
    return Guarantee("21", about, value, size)


def _number(theorem: str, about: str, value: int) -> Guarantee:
    return Guarantee(theorem, about, value, math.log2(value))


def _round_down(margin: float, radius: float) -> float:
    """Return a little less than a measured margin, so that its rounding cannot make a promise too good."""
    return margin * (1.0 - 1e-12 - 1e-15 * (radius / margin) ** 2) if margin > 0.0 else 0.0
