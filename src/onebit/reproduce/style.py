"""How the paper's figures look: colours, dashes, planes.

A contestant has the same colour in all figures. All colours stay apart under the common kinds of colour blindness
(Okabe and Ito's palette; Banditron's rates are shades of one hue, told apart by dashes as well). What all figures of
onebit share is in `onebit.reporting.style`.
"""

from matplotlib.axes import Axes
from matplotlib.patches import Circle

from onebit.reporting.style import Dashes
from onebit.reproduce.contestants import RATES

DISC = 0.5**0.5
"""Radius of the disc that the first two features of the paper's data sets lie in."""
CLASS_COLORS = ("#D55E00", "#009E73", "#0072B2")
"""The paper's red, green and blue, as the colour-blind can tell them apart."""
CLASS_TINTS = ("#F7D3BD", "#BFE7DC", "#BFDCEC")
CLASS_MARKERS = ("o", "s", "^")
PUBLISHED_COLOR = "#B3B3B3"
_BANDITRON_SHADES = ("#3B0F4F", "#6A2480", "#9B3FA0", "#C25FAF", "#DB86BB", "#E9AECB")
_COLORS = {
    "algorithm-1": "#0072B2",
    "algorithm-1-authors": "#56B4E9",
    "algorithm-2": "#D55E00",
    "algorithm-2-authors": "#E69F00",
    "multiclass-perceptron": "#009E73",
    **{f"banditron-{rate:g}": shade for rate, shade in zip(RATES, _BANDITRON_SHADES, strict=True)},
}


def color_of(key: str) -> str:
    """Return the colour of a contestant; a stranger's is dark grey."""
    return _COLORS.get(key, "#555555")


def dashes_of(key: str) -> Dashes:
    """Return the line style of a contestant: dashed for the authors' update, dotted for every other Banditron."""
    if key.endswith("-authors"):
        return 0, (5, 2)
    return (0, (1.2, 0.8)) if key in [f"banditron-{rate:g}" for rate in RATES[1::2]] else (0, ())


def as_plane(axes: Axes, radius: float) -> None:
    """Show a disc in the plane: equal scales, its circle, no frame."""
    # At the bottom of its box a square panel leaves room for its title.
    axes.set_aspect("equal", anchor="S")
    axes.set_xlim(-1.06 * radius, 1.06 * radius)
    axes.set_ylim(-1.06 * radius, 1.06 * radius)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.add_patch(Circle((0, 0), radius, fill=False, edgecolor="#777777", linewidth=0.9, zorder=5))
