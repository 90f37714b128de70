"""How every figure is drawn and saved: width, fonts, lines, numbers on axes, files.

Which colour a learner has is in `onebit.reporting.looks`. Nothing here changes matplotlib's global settings.
"""

import io
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator

from onebit.files import replace_file
from onebit.reporting.looks import INK, Look
from onebit.reporting.text import grouped

_WIDTH = 6.6
"""Inches, of every figure: letters of 12 points are then 8.5 pixels high on a phone, where a figure is 340 wide."""
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
_MULTIPLES = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_FINE_MULTIPLES = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)


@contextmanager
def looks() -> Iterator[None]:
    """Let matplotlib draw in our style, in a ``with`` statement or a function decorated by it."""
    with matplotlib.rc_context(_LOOKS):
        yield


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
    """Write the numbers of a logarithmic axis that has its limits as those of a linear one: 10 000, no power of ten.

    Every second power of ten gets its number where neighbours would touch.
    """
    first = math.ceil(math.log10(min(axis.get_view_interval())) - 1e-9)

    def written(value: float, _: float) -> str:
        power = round(math.log10(value))
        return (grouped(value) if power >= 0 else f"{value:g}") if (power - first) % every == 0 else ""

    axis.set_major_locator(LogLocator(numticks=20))
    axis.set_major_formatter(written)


def multiples_axis(axis: Axis, low: float, high: float) -> None:
    """Let an axis count multiples on a logarithmic scale: more of them where it spans a decade or less."""
    name = "x" if axis is axis.axes.xaxis else "y"
    axis.axes.set(**{f"{name}scale": "log", f"{name}lim": (low, high)})
    ticks = _MULTIPLES if high > 12.0 * low else _FINE_MULTIPLES
    axis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:g}×")


def count_percent(axis: Axis, ticks: Sequence[float] | None = None) -> None:
    """Let an axis of shares count per cent, at these ticks."""
    axis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    if ticks is not None:
        axis.set_major_locator(FixedLocator(ticks))


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Write a name beside every row of a figure, the first on top."""
    axes.set(yticks=range(len(names)), yticklabels=list(names), ylim=(len(names) - 0.5, -0.5))
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def legend_below(figure: Figure, handles: Sequence[Artist], n_columns: int, **looks: Any) -> None:
    """Put a legend below all panels."""
    figure.legend(handles=list(handles), loc="outside lower center", ncols=n_columns, **{"columnspacing": 1.2, **looks})


def marker(look: Look) -> dict[str, Any]:
    """Return how a learner's mark is drawn, without a line."""
    return {"color": look.color, "marker": look.marker, "markerfacecolor": look.fill, "linestyle": ""}


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
