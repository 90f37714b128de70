"""How every figure looks, is drawn and is saved: width, fonts, lines, numbers on axes, files.

`onebit.reporting.learner_looks` knows which colour a learner has. Nothing here changes matplotlib's global settings.
"""

import io
import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

from onebit.files import replace_file
from onebit.reporting.tables import grouped

INK = "#222222"  # nearly black: softer than black on white
WIDTH = 6.6
"""Inches, of every figure: letters of 12 points are then 8.5 pixels high on a phone, where a figure is 340 wide."""
Dashes = tuple[float, Sequence[float]]
"""Offset, and lengths of strokes and gaps in line widths."""

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F5539", INK)
"""Okabe and Ito's palette, which the colour-blind can tell apart; its yellow (too pale for lines) replaced by brown."""

_LOOKS: dict[Any, Any] = {
    # Comes with matplotlib, so that figures are the same everywhere.
    "font.family": "DejaVu Sans",
    "font.size": 12,
    "axes.titlesize": 12,
    "legend.fontsize": 11,
    "legend.handlelength": 2.4,
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
    # Without a fixed salt, ids in an SVG would be random.
    "svg.hashsalt": "onebit",
    # Letters as outlines look the same where the font is missing.
    "svg.fonttype": "path",
}


@dataclass(frozen=True)
class FigureFile:
    """A figure that has been drawn and saved."""

    name: str
    """Of its files, such as "figure_4a"."""
    title: str
    caption: str
    png: Path
    svg: Path


class Drawing(NamedTuple):
    """A figure that is to be drawn."""

    name: str
    """Of its files, such as "figure_4a"."""
    title: str
    caption: str
    draw: Callable[[], Figure]
    """Called when its turn comes: a drawn figure takes megabytes."""


def looks() -> AbstractContextManager[None]:
    """Return a context in which matplotlib draws in our style; afterwards its settings are as before."""
    return matplotlib.rc_context(_LOOKS)


def new_figure(n_rows: int, n_columns: int, height: float) -> tuple[Figure, list[Axes]]:
    """Return an empty figure as wide as all are, its height in inches, and its axes row by row. Call within `looks`."""
    # Not pyplot's: it would keep every figure alive, and choose a window system.
    figure = Figure(figsize=(WIDTH, height), layout=ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.08))
    return figure, list(figure.subplots(n_rows, n_columns, squeeze=False).ravel())


def count_axis(axis: Axis, most_ticks: int = 5) -> None:
    """Let a linear axis count: few ticks, whole numbers, thousands set apart as everywhere."""
    axis.set_major_locator(MaxNLocator(most_ticks, integer=True, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: grouped(value)))


def log_count_axis(axis: Axis, every: int = 1) -> None:
    """Write the numbers of a logarithmic axis as those of a linear one: 10 000, and not a power of ten.

    Parameters
    ----------
    axis : Axis
        Already logarithmic, and with its limits.
    every : int
        Which powers of ten get their number, from the lowest in sight on: 2 where neighbours would touch.
    """
    first = math.ceil(math.log10(min(axis.get_view_interval())) - 1e-9)

    def written(value: float, _: int | None) -> str:
        power = round(math.log10(value))
        return (grouped(value) if power >= 0 else f"{value:g}") if (power - first) % every == 0 else ""

    axis.set_major_locator(LogLocator(numticks=20))
    axis.set_major_formatter(FuncFormatter(written))


def draw_mean(axes: Axes, rounds: Any, mean: Any, error: Any, color: str, dashes: Dashes) -> None:
    """Draw a mean curve with a band of ± 1 standard error."""
    axes.fill_between(rounds, mean - error, mean + error, color=color, alpha=0.2, linewidth=0)
    # In front of everyone's band and of published curves.
    axes.plot(rounds, mean, color=color, linestyle=dashes, zorder=3)


def what_lines_are(n_runs: int) -> str:
    """Return the caption for what `draw_mean` shows."""
    return f"the mean of {n_runs} runs with a band of ± 1 standard error" if n_runs > 1 else "a single run"


def save(figure: Figure, folder: Path, name: str) -> tuple[Path, Path]:
    """Write a figure as PNG and SVG and return both paths; the same figure gives the same bytes."""
    paths = []
    # Dates and program versions in a file would make equal figures differ.
    for suffix, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
        content = io.BytesIO()
        with looks(), warnings.catch_warnings():
            # A letter that the font lacks is drawn as a box; tables have the whole name.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            figure.savefig(content, format=suffix, dpi=150, facecolor="white", metadata=metadata)
        paths.append(folder / f"{name}.{suffix}")
        replace_file(paths[-1], content.getvalue())
    return paths[0], paths[1]


def draw_files(drawings: Sequence[Drawing], folder: Path) -> list[FigureFile]:
    """Draw figures, save each as PNG and SVG in the folder, which is made if it is missing, and return them."""
    folder.mkdir(parents=True, exist_ok=True)
    # One after the other: other processes would spend the time they save on importing matplotlib (measured).
    return [FigureFile(name, title, caption, *save(draw(), folder, name)) for name, title, caption, draw in drawings]


def spread(heights: list[float], gap: float) -> list[float]:
    """Return increasing heights between 0 and 1 moved apart to at least `gap`; beyond 1 only if they do not fit.

    >>> spread([0.0, 0.0, 0.5, 1.0, 1.0], 0.1)
    [0.0, 0.1, 0.5, 0.9, 1.0]
    """
    places = list(heights)
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + gap)
    ceiling = max(1.0, gap * (len(places) - 1))
    for i in reversed(range(len(places))):
        places[i] = min(places[i], ceiling)
        ceiling = places[i] - gap
    return places
