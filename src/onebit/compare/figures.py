"""The figures of a comparison: curves on every data set, four to a figure, and everyone at a glance."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from onebit.compare.comparison import Outcome
from onebit.reporting import style
from onebit.reporting.names import in_figure
from onebit.reporting.style import Dashes, Drawing
from onebit.reporting.tables import grouped

PANELS = 4
"""Data sets in one figure of curves."""
_LEGEND = 72  # letters: two names side by side fill a figure
_TOLD: Dashes = (0, (1.2, 1.0))
_SOLID: Dashes = (0, ())
_LONG: Dashes = (0, (6, 2))
# Every step is at least a fifth, so that labels on a logarithmic axis do not touch.
_TICKS = (0.1, 0.2, 0.5, 1, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)


def drawings(outcomes: Sequence[Outcome]) -> list[Drawing]:
    """Return what to draw: the overview, then all curves."""
    datasets = list(dict.fromkeys(outcome.dataset for outcome in outcomes))
    overview = partial(draw_overview, outcomes)
    listed = [Drawing("overview", "Mistakes relative to the best", _overview_caption(outcomes), overview)]
    for start in range(0, len(datasets), PANELS):
        shown = datasets[start : start + PANELS]
        title = f"Mistakes round by round: {', '.join(shown)}"
        curves = partial(draw_curves, outcomes, shown)
        listed.append(Drawing(f"curves_{start // PANELS + 1}", title, _curves_caption(outcomes), curves))
    return listed


def _overview_caption(outcomes: Sequence[Outcome]) -> str:
    bars = "bars are ± 1 standard error" if len(outcomes[0].final) > 1 else "a single run has no standard error"
    told = " Hollow marks are learners that are told the label." if any(o.entry.hears_label for o in outcomes) else ""
    return (
        f"Mean mistakes of each learner over those of the best that hears only right or wrong, one line per data set; "
        f"{bars}.{told}"
    )


def _curves_caption(outcomes: Sequence[Outcome]) -> str:
    shown = style.what_lines_are(len(outcomes[0].final))
    told = " Dotted lines are learners that are told the label." if any(o.entry.hears_label for o in outcomes) else ""
    return f"Each line is {shown}.{told}"


def draw_curves(outcomes: Sequence[Outcome], datasets: Sequence[str]) -> Figure:
    """Draw cumulative mistakes against rounds, one panel per data set."""
    n_columns = min(2, len(datasets))
    n_rows = math.ceil(len(datasets) / n_columns)
    titles = _titles(outcomes)
    with style.looks():
        width, height = 5.4 * n_columns + 0.2, 3.9 * n_rows + 0.28 * math.ceil(len(titles) / n_columns)
        figure, panels = style.new_figure(n_rows, n_columns, width, height)
        for axes, dataset in zip(panels, datasets, strict=False):
            _draw_panel(axes, [outcome for outcome in outcomes if outcome.dataset == dataset], titles)
        # An odd number of data sets leaves a panel over.
        for axes in panels[len(datasets) :]:
            axes.set_visible(False)
        figure.legend(
            handles=[_handle(outcome, titles, is_line=True) for outcome in _representatives(outcomes)],
            loc="outside lower center",
            ncols=n_columns,
        )
    return figure


def _draw_panel(axes: Axes, outcomes: Sequence[Outcome], titles: Sequence[str]) -> None:
    last = int(outcomes[0].rounds[-1])
    for outcome in outcomes:
        color, dashes, _ = look_of(outcome, titles)
        # Everyone begins with no mistakes in round 0.
        rounds, mean, error = (np.insert(curve, 0, 0) for curve in (outcome.rounds, outcome.means, outcome.errors))
        style.draw_mean(axes, rounds, mean, error, color, dashes)
    top = max(np.nansum([outcome.mean, outcome.standard_error]) for outcome in outcomes)
    axes.set_title(in_figure(outcomes[0].dataset), loc="left", fontweight="bold")
    axes.set_xlim(0, last)
    axes.set_ylim(0, max(1.0, 1.05 * top))
    axes.set_xlabel("round")
    axes.set_ylabel("mean cumulative mistakes")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 2.5, 5, 10]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: grouped(value)))


def draw_overview(outcomes: Sequence[Outcome]) -> Figure:
    """Draw everyone's mistakes on every data set as multiples of the best."""
    datasets = list(dict.fromkeys(outcome.dataset for outcome in outcomes))
    titles = _titles(outcomes)
    with style.looks():
        height = 1.5 + 0.42 * len(datasets) + 0.26 * math.ceil(len(titles) / 2)
        figure, (axes,) = style.new_figure(1, 1, 9.5, height)
        extremes = [1.0]
        for place, dataset in enumerate(datasets):
            mine = [outcome for outcome in outcomes if outcome.dataset == dataset]
            bandits = [outcome for outcome in mine if not outcome.entry.hears_label] or mine
            unit = max(1.0, min(outcome.mean for outcome in bandits))
            for k, outcome in enumerate(mine):
                # A perfect game has no place on a logarithmic axis: half a mistake stands for it.
                ratio = max(outcome.mean, 0.5) / unit
                # Marks a little above and below their line, so that equal ones can both be seen.
                height = place + 0.5 * ((k + 0.5) / len(mine) - 0.5)
                _draw_mark(axes, outcome, titles, ratio, outcome.standard_error / unit, height)
                extremes.append(ratio)
        _overview_axes(axes, datasets, min(extremes), max(extremes))
        figure.legend(
            handles=[_handle(outcome, titles, is_line=False) for outcome in _representatives(outcomes)],
            loc="outside lower center",
            ncols=2,
        )
    return figure


def _draw_mark(axes: Axes, outcome: Outcome, titles: Sequence[str], ratio: float, error: float, height: float) -> None:
    color, _, marker = look_of(outcome, titles)
    axes.plot([max(ratio - error, 1e-3), ratio + error], [height, height], color=color, linewidth=1.2, zorder=2)
    fill = "white" if outcome.entry.hears_label else color
    axes.plot([ratio], [height], marker, color=color, markerfacecolor=fill, markersize=6.5, linestyle="", zorder=3)


def _overview_axes(axes: Axes, datasets: Sequence[str], low: float, high: float) -> None:
    axes.set_xscale("log")
    axes.set_xlim(low / 1.12, high * 1.15)
    ticks = [tick for tick in _TICKS if low / 1.12 <= tick <= high * 1.15]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    axes.axvline(1.0, color=style.INK, linewidth=1.0, zorder=1)
    axes.set_yticks(range(len(datasets)), [in_figure(dataset) for dataset in datasets])
    axes.set_ylim(len(datasets) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    for edge in range(1, len(datasets)):
        axes.axhline(edge - 0.5, color="#E6E6E6", linewidth=0.8, zorder=0)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("mean mistakes, relative to the best that hears only right or wrong")


def _titles(outcomes: Sequence[Outcome]) -> list[str]:
    return list(dict.fromkeys(outcome.entry.title for outcome in outcomes))


def _representatives(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return one outcome of everyone, for the legend."""
    return list({outcome.entry.title: outcome for outcome in reversed(outcomes)}.values())[::-1]


def look_of(outcome: Outcome, titles: Sequence[str]) -> tuple[str, Dashes, str]:
    """Return the colour, dashes and marker of an entry: the same in all figures, and no two alike up to sixteen."""
    at = titles.index(outcome.entry.title)
    dashes = _TOLD if outcome.entry.hears_label else _LONG if at >= len(style.PALETTE) else _SOLID
    return style.PALETTE[at % len(style.PALETTE)], dashes, style.MARKERS[at % len(style.MARKERS)]


def _legend_name(outcome: Outcome) -> str:
    return in_figure(outcome.entry.shown, most=_LEGEND)


def _handle(outcome: Outcome, titles: Sequence[str], *, is_line: bool) -> Line2D:
    color, dashes, marker = look_of(outcome, titles)
    if is_line:
        return Line2D([], [], color=color, linestyle=dashes, label=_legend_name(outcome))
    fill = "white" if outcome.entry.hears_label else color
    return Line2D([], [], color=color, marker=marker, markerfacecolor=fill, linestyle="", label=_legend_name(outcome))
