"""How the paper's data are shown: the plane of their first two features, and the colours of the three classes."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Circle

from onebit.inputs import Floats, Integers
from onebit.reporting.style import PALETTE

DISC = 0.5**0.5
"""Radius of the disc that the first two features of the paper's data sets lie in."""
CLASS_COLORS = (PALETTE[1], PALETTE[2], PALETTE[0])
"""The paper's red, green and blue, in shades that are safe for colour blindness."""
CLASS_TINTS = ("#F7D3BD", "#BFE7DC", "#BFDCEC")
"""The same at a quarter of their strength."""
CLASS_MARKERS = ("o", "s", "^")


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


def scatter(axes: Axes, X: Floats, y: Integers, **looks: Any) -> None:
    """Show points in their first two features, coloured by class."""
    # Rasterised: thousands of circles would make an SVG of megabytes.
    looks = {"linewidths": 0, "rasterized": True, "zorder": 6, **looks}
    for label, color in enumerate(CLASS_COLORS):
        points = X[y == label]
        axes.scatter(points[:, 0], points[:, 1], color=color, label=f"class {label + 1}", **looks)
