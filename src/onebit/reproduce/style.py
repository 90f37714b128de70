"""How every figure looks: colours, fonts, files.

A contestant has the same colour in all figures. All colours stay apart under the common kinds of colour blindness
(Okabe and Ito's palette; Banditron's rates are shades of one hue, told apart by dashes as well). Only these modules
import matplotlib, and none of them changes its global settings.
"""

import io
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Circle

from onebit.reproduce.contestants import RATES
from onebit.reproduce.summary import replace_file

DISC = 0.5**0.5
"""Radius of the disc that the first two features of the paper's data sets lie in."""
CLASS_COLORS = ("#D55E00", "#009E73", "#0072B2")
"""The paper's red, green and blue, as the colour-blind can tell them apart."""
CLASS_TINTS = ("#F7D3BD", "#BFE7DC", "#BFDCEC")
CLASS_MARKERS = ("o", "s", "^")
PUBLISHED_COLOR = "#B3B3B3"
INK = "#222222"
Dashes = tuple[float, Sequence[float]]
"""Offset, and lengths of strokes and gaps in line widths."""

_BANDITRON_SHADES = ("#3B0F4F", "#6A2480", "#9B3FA0", "#C25FAF", "#DB86BB", "#E9AECB")
_COLORS = {
    "algorithm-1": "#0072B2",
    "algorithm-1-authors": "#56B4E9",
    "algorithm-2": "#D55E00",
    "algorithm-2-authors": "#E69F00",
    "multiclass-perceptron": "#009E73",
    **{f"banditron-{rate:g}": shade for rate, shade in zip(RATES, _BANDITRON_SHADES, strict=True)},
}
_LOOKS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "text.color": INK,
    "hatch.color": "#8C8C8C",
    "hatch.linewidth": 0.6,
    "svg.hashsalt": "onebit",
    "svg.fonttype": "path",
}


@dataclass(frozen=True)
class FigureFile:
    """A figure that has been drawn and saved."""

    name: str
    """Of its files, such as "figure_4"."""
    title: str
    caption: str
    png: Path
    svg: Path


def looks() -> AbstractContextManager[None]:
    """Return a context in which matplotlib draws in our style; afterwards its settings are as before."""
    return matplotlib.rc_context(_LOOKS)


def color_of(key: str) -> str:
    """Return the colour of a contestant; a stranger's is dark grey."""
    return _COLORS.get(key, "#555555")


def dashes_of(key: str) -> Dashes:
    """Return the line style of a contestant: dashed for the authors' update, dotted for every other Banditron."""
    if key.endswith("-authors"):
        return 0, (5, 2)
    return (0, (1.2, 0.8)) if key in [f"banditron-{rate:g}" for rate in RATES[1::2]] else (0, ())


def new_figure(n_rows: int, n_columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """Return an empty figure, its size in inches, and its axes row by row. Call it within `looks`."""
    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
    return figure, list(figure.subplots(n_rows, n_columns, squeeze=False).ravel())


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


def save(figure: Figure, folder: Path, name: str) -> tuple[Path, Path]:
    """Write a figure as PNG and SVG and return both paths; the same figure gives the same bytes."""
    paths = []
    for suffix, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
        content = io.BytesIO()
        with looks():
            figure.savefig(content, format=suffix, dpi=150, facecolor="white", metadata=metadata)
        paths.append(folder / f"{name}.{suffix}")
        replace_file(paths[-1], content.getvalue())
    return paths[0], paths[1]
