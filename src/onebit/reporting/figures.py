"""How every figure is drawn and saved: width, fonts, lines, numbers on axes, files.

Which colour a learner has is in `onebit.reporting.looks`. Nothing here changes matplotlib's global settings.
"""

import io
import math
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator

from onebit.files import replace_file
from onebit.reporting.text import grouped

_WIDTH = 6.6
"""Inches, of every figure: letters of 12 points are then 8.5 pixels high on a phone, where a figure is 340 wide."""

looks = partial(matplotlib.rc_context, fname=Path(__file__).with_suffix(".mplstyle"))
"""Let matplotlib draw in our style, in a ``with`` statement or a function decorated by it."""


def new_figure(n_rows: int, n_columns: int, height: float) -> tuple[Figure, list[Axes]]:
    """Return an empty figure as wide as all are, its height in inches, and its axes row by row. Call within `looks`."""
    # Not pyplot's: it would keep every figure alive, and choose a window system.
    figure = Figure(figsize=(_WIDTH, height), layout=ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.08))
    return figure, list(figure.subplots(n_rows, n_columns, squeeze=False).ravel())


def count_axis(axis: Axis, most_ticks: int = 5) -> None:
    """Let a linear axis count: few ticks, whole numbers, thousands set apart as everywhere."""
    axis.set_major_locator(MaxNLocator(most_ticks, integer=True, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(lambda value, _: grouped(value))


def log_count_axis(axis: Axis, every: int = 1) -> None:
    """Write 10 000, not 10⁴, on a logarithmic axis that has its limits, at every `every`-th power of ten."""
    first = math.ceil(math.log10(min(axis.get_view_interval())) - 1e-9)

    def written(value: float, _: float) -> str:
        power = round(math.log10(value))
        return (grouped(value) if power >= 0 else f"{value:g}") if (power - first) % every == 0 else ""

    axis.set_major_locator(LogLocator(numticks=20))
    axis.set_major_formatter(written)


def count_percent(axis: Axis, ticks: Sequence[float] | None = None) -> None:
    """Let an axis of shares count per cent, at these ticks."""
    axis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    if ticks is not None:
        axis.set_major_locator(FixedLocator(ticks))


def legend_below(figure: Figure, handles: Sequence[Artist], n_columns: int, **looks: Any) -> None:
    """Put a legend below all panels."""
    figure.legend(handles=list(handles), loc="outside lower center", ncols=n_columns, **{"columnspacing": 1.2, **looks})


def draw_mean(axes: Axes, rounds: Any, mean: Any, error: Any, color: str, dashes: Any) -> None:
    """Draw a mean curve with a band of ± 1 standard error."""
    axes.fill_between(rounds, mean - error, mean + error, color=color, alpha=0.2, linewidth=0)
    # In front of all bands and of published curves.
    axes.plot(rounds, mean, color=color, linestyle=dashes, zorder=3)


def what_lines_are(n_runs: int) -> str:
    """Return the caption for what `draw_mean` shows."""
    return f"the mean of {n_runs} runs with a band of ± 1 standard error" if n_runs > 1 else "a single run"


def save(figure: Figure, folder: Path, name: str) -> tuple[Path, Path]:
    """Write a figure as PNG and SVG and return both paths; the same figure gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    # Dates and program versions in a file would make equal figures differ.
    for path, metadata in ((png, {"Software": None}), (svg, {"Date": None, "Creator": None})):
        content = io.BytesIO()
        with looks(), warnings.catch_warnings():
            # A letter that the font lacks is drawn as a box; tables have the whole name.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            figure.savefig(content, format=path.suffix[1:], dpi=150, facecolor="white", metadata=metadata)
        replace_file(path, content.getvalue())
    return png, svg


def spread(heights: list[float], gap: float) -> list[float]:
    """Return increasing heights between 0 and 1 moved apart to at least `gap`; beyond 1 only if they do not fit."""
    places = list(heights)
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + gap)
    ceiling = max(1.0, gap * (len(places) - 1))
    for i in reversed(range(len(places))):
        places[i] = min(places[i], ceiling)
        ceiling = places[i] - gap
    return places
