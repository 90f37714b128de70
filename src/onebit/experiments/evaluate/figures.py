"""The figure of an evaluation: what is sure as bars, estimates with their intervals on them."""

from collections.abc import Sequence
from functools import partial
from textwrap import wrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from onebit.experiments.evaluate.answer_rates import ASSUMPTION
from onebit.experiments.evaluate.estimates import LEVEL, METHODS
from onebit.experiments.evaluate.replay import Evaluation
from onebit.reporting import figures as style
from onebit.reporting.figures import Drawing
from onebit.reporting.looks import INK, PALETTE
from onebit.reporting.text import in_figure

_BAR, _TINT = "#C9DDEB", "#0072B2"
_MARKS = {
    "IPS": ("o", "white"),
    "SNIPS": ("s", "white"),
    "DR": ("D", PALETTE[1]),
    "DR+": ("o", INK),
}
_HALF = 0.34  # of a bar's height, in rows
_LINE = 50  # letters
_NAME = 30  # letters of a learner's name beside its bar


def drawings(rows: Sequence[Evaluation]) -> list[Drawing]:
    """Return what to draw."""
    caption = (
        "Light bars reach from the mistakes that are surely made to those that are at most made, as a share of the "
        "answered rounds; the line is what the log itself made."
    )
    if _methods(rows):
        caption += (
            f" Marks are estimates, with {LEVEL:.0%} intervals; where there are none, nothing can be estimated. "
            f"{ASSUMPTION.capitalize()}; bounds do not."
        )
    return [Drawing("evaluate", "Mistakes: what is sure, and what is estimated", caption, partial(draw, rows))]


def _methods(rows: Sequence[Evaluation]) -> list[str]:
    return [method for method in METHODS if any(method in row.estimates.found for row in rows)]


def draw(rows: Sequence[Evaluation]) -> Figure:
    """Draw everyone's bounds and estimates."""
    methods, others = _methods(rows), [row for row in rows if not row.is_logged]
    logged = rows[0].known.low
    with style.looks():
        figure, (axes,) = style.new_figure(
            1, 1, 1.5 + 0.8 * len(others) + 0.4 * bool(methods) + 0.3 * (len(methods) > 2)
        )
        for place, row in enumerate(others):
            _draw_row(axes, row, place, methods)
        axes.axvline(logged, color=_TINT, linewidth=1.4, linestyle=(0, (5, 2)), zorder=1)
        ends = [logged, *(row.known.low for row in others), *(row.known.high for row in others)]
        pad = 0.04 * max(max(ends) - min(ends), 0.02)
        axes.set_xlim(max(0.0, min(ends) - pad) - 0.1 * pad, min(1.0, max(ends) + pad))
        axes.set_yticks(range(len(others)), [in_figure(row.title, most=_NAME) for row in others])
        axes.set_ylim(len(others) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g}%"))
        axes.set_xlabel("share of mistakes in the answered rounds")
        handles = [Patch(color=_BAR, label="surely within"), _log_handle(), *map(_handle, methods)]
        assumed = "\n".join(wrap(ASSUMPTION, _LINE)) if methods else None
        figure.legend(handles=handles, title=assumed, loc="outside lower center", ncols=3, columnspacing=1.2)
    return figure


def _draw_row(axes: Axes, row: Evaluation, place: int, methods: Sequence[str]) -> None:
    low, high = row.known.low, row.known.high
    axes.barh(place, high - low, left=low, height=2 * _HALF, color=_BAR, linewidth=0, zorder=0.5)
    for end in (low, high):
        axes.plot([end, end], [place - _HALF, place + _HALF], color=_TINT, linewidth=1.4, zorder=1.5)
    for at, method in enumerate(methods):
        found = row.estimates.found.get(method)
        if found is not None:
            marker, fill = _MARKS[method]
            height = place + 2 * _HALF * ((at + 0.5) / len(methods) - 0.5)
            edge = INK if fill == "white" else fill
            axes.plot([found.low, found.high], [height, height], color=edge, linewidth=1.2, zorder=2)
            axes.plot([found.rate], [height], marker, color=edge, markerfacecolor=fill, markersize=5.5, zorder=3)


def _log_handle() -> Line2D:
    return Line2D([], [], color=_TINT, linewidth=1.4, linestyle=(0, (5, 2)), label="the log itself")


def _handle(method: str) -> Line2D:
    marker, fill = _MARKS[method]
    edge = INK if fill == "white" else fill
    return Line2D([], [], color=edge, marker=marker, markerfacecolor=fill, markersize=5.5, linewidth=1.2, label=method)
