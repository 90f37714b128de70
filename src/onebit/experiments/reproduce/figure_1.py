"""Figure 1 of the paper: 78 points in three wedges, weakly but not strongly separable."""

import numpy as np
from matplotlib.figure import Figure

from onebit.experiments.reproduce import planes
from onebit.reporting import style
from onebit.streams import wedges

TITLE = "Figure 1: weakly but not strongly separable"
CAPTION = (
    "Each class fills a wedge of 120°, so three weight vectors 120° apart score every point highest in its own class: "
    "the points are weakly separable. Strong separability would ask each class to lie alone on one side of a "
    "line through the centre, but the other two classes together span 240°."
)

# Where two of the three scores tie, with the paper's labels.
_RAYS = ((0.0, "⟨w₃ − w₁, x⟩ = 0"), (120.0, "⟨w₁ − w₂, x⟩ = 0"), (240.0, "⟨w₂ − w₃, x⟩ = 0"))


def draw() -> Figure:
    """Draw the points, the three rays where two scores tie, and the circle that holds them.

    Each class has its own colour and its own marker. The rays carry the equation of the tie, as in the paper, and the
    wedges the number of their class. The points are the 78 of the paper's figure, scaled into the unit disc.
    """
    X, y = wedges()
    with style.looks():
        figure, (axes,) = style.new_figure(1, 1, 5.0)
        planes.as_plane(axes, 1.0)
        # Wider than high: the equations stand beside the disc.
        axes.set_xlim(-1.15, 1.75)
        axes.set_ylim(-1.08, 1.08)
        for label, (color, marker) in enumerate(zip(planes.CLASS_COLORS, planes.CLASS_MARKERS, strict=True)):
            points = X[y == label]
            axes.scatter(
                points[:, 0], points[:, 1], s=34, color=color, marker=marker, label=f"class {label + 1}", zorder=3
            )
        for angle, equation in _RAYS:
            end = np.array([np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))])
            axes.plot([0, end[0]], [0, end[1]], color=style.INK, linewidth=2.2, solid_capstyle="round")
            axes.text(1.06 * end[0], 1.06 * end[1], equation, ha="left" if angle == 0 else "right", va="center")
        axes.legend(loc="upper right")
    return figure
