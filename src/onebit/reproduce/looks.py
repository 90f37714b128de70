"""How the contestants look: the same colour and dashes in all figures.

Banditron's rates are shades of one hue, told apart by dashes as well.
"""

from onebit.reporting.style import INK, PALETTE, Dashes
from onebit.reproduce.contestants import RATES

PUBLISHED_COLOR = "#B3B3B3"
_BLUE, _ORANGE, _GREEN, _, _YELLOW, _SKY, _, _ = PALETTE
_RED = "#B2182B"
_BANDITRON_SHADES = ("#3B0F4F", "#6A2480", "#9B3FA0", "#C25FAF", "#DB86BB", "#E9AECB")
_COLORS = {
    # An algorithm and the authors' variant of it are neighbours in hue.
    "algorithm-1": _BLUE,
    "algorithm-1-authors": _SKY,
    "algorithm-2": _ORANGE,
    "algorithm-2-authors": _YELLOW,
    "bandit-svm": _RED,
    "multiclass-perceptron": _GREEN,
    **{f"banditron-{rate:g}": shade for rate, shade in zip(RATES, _BANDITRON_SHADES, strict=True)},
}


def color_of(key: str) -> str:
    """Return the colour of a contestant; a stranger's is dark."""
    return _COLORS.get(key, INK)


def dashes_of(key: str) -> Dashes:
    """Return the line style of a contestant: dashed for the authors' update, dotted for every other Banditron."""
    if key.endswith("-authors"):
        return 0, (5, 2)
    return (0, (1.2, 0.8)) if key in [f"banditron-{rate:g}" for rate in RATES[1::2]] else (0, ())
