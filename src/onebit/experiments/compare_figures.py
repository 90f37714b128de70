"""The figures of a comparison: curves on every data set, four to a figure, and an overview."""

import math
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from onebit.experiments.comparison import Outcome
from onebit.experiments.entries import Entry
from onebit.reporting import figures as style
from onebit.reporting.figures import Drawing
from onebit.reporting.looks import INK, Look, Shown, looks_of
from onebit.reporting.text import in_figure

_PANELS = 4  # data sets in one figure of curves
_LEGEND = 56  # letters that fill a figure: of one name, or of two side by side
_DATASET = 24  # letters of a data set's name, beside its line or above its panel
_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
# Where all lie within a decade there is room between them.
_FINE_TICKS = (0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7)


def drawings(outcomes: Sequence[Outcome]) -> list[Drawing]:
    """Return what to draw: the overview, then curves on every data set, four to a figure."""
    n_runs = len(outcomes[0].final)
    told = any(outcome.entry.full_information for outcome in outcomes)
    bars = "bars are ± 1 standard error" if n_runs > 1 else "a single run has no standard error"
    caption = (
        "Mean mistakes of each learner over those of the best that hears only right or wrong, one line per data set; "
        f"{bars}.{' Hollow marks are learners that are told the label.' if told else ''}"
    )
    listed = [Drawing("overview", "Mistakes relative to the best", caption, partial(draw_overview, outcomes))]
    caption = f"Each line is {style.what_lines_are(n_runs)}."
    caption += " Dotted lines are learners that are told the label." if told else ""
    datasets = list(dict.fromkeys(outcome.dataset for outcome in outcomes))
    for start in range(0, len(datasets), _PANELS):
        some = datasets[start : start + _PANELS]
        name, title = f"curves_{start // _PANELS + 1}", f"Mistakes round by round: {', '.join(some)}"
        listed.append(Drawing(name, title, caption, partial(draw_curves, outcomes, some)))
    return listed


def draw_curves(outcomes: Sequence[Outcome], datasets: Sequence[str]) -> Figure:
    """Draw cumulative mistakes against rounds, one panel per data set."""
    n_columns = min(2, len(datasets))
    n_rows = math.ceil(len(datasets) / n_columns)
    looks = _looks(outcomes)
    handles = [_handle(outcome, looks, is_line=True) for outcome in _representatives(outcomes)]
    with style.looks():
        panel_height = 2.5 if n_columns > 1 else 3.6
        figure, panels = style.new_figure(n_rows, n_columns, panel_height * n_rows + 0.4 + _legend_height(handles))
        for axes, dataset in zip(panels, datasets, strict=False):
            _draw_panel(axes, [outcome for outcome in outcomes if outcome.dataset == dataset], looks)
        # An odd number of data sets leaves a panel over.
        for axes in panels[len(datasets) :]:
            axes.set_visible(False)
        for axes in panels[: len(datasets)][-n_columns:]:
            axes.set_xlabel("round")
        for axes in panels[::n_columns]:
            axes.set_ylabel("mean mistakes so far" if n_columns > 1 else "mean cumulative mistakes")
        _add_legend(figure, handles)
    return figure


def _draw_panel(axes: Axes, outcomes: Sequence[Outcome], looks: Mapping[str, Look]) -> None:
    for outcome in outcomes:
        look = looks[outcome.entry.title]
        # Every curve begins with no mistakes in round 0.
        rounds, mean, error = (np.insert(curve, 0, 0) for curve in (outcome.rounds, outcome.means, outcome.errors))
        style.draw_mean(axes, rounds, mean, error, look.color, look.dashes)
    top = max(np.nansum([outcome.mean, outcome.standard_error]) for outcome in outcomes)
    axes.set_title(in_figure(outcomes[0].dataset, most=_DATASET), loc="left", fontweight="bold")
    axes.set_xlim(0, int(outcomes[0].rounds[-1]))
    axes.set_ylim(0, max(1.0, 1.05 * top))
    style.count_axis(axes.xaxis, most_ticks=3)
    style.count_axis(axes.yaxis)


def draw_overview(outcomes: Sequence[Outcome]) -> Figure:
    """Draw the mistakes of every entry on every data set as multiples of the best."""
    datasets = list(dict.fromkeys(outcome.dataset for outcome in outcomes))
    looks = _looks(outcomes)
    handles = [_handle(outcome, looks, is_line=False) for outcome in _representatives(outcomes)]
    with style.looks():
        figure, (axes,) = style.new_figure(1, 1, 1.3 + 0.42 * len(datasets) + _legend_height(handles))
        extremes = [1.0]
        for place, dataset in enumerate(datasets):
            mine = [outcome for outcome in outcomes if outcome.dataset == dataset]
            bandits = [outcome for outcome in mine if not outcome.entry.full_information] or mine
            unit = max(1.0, min(outcome.mean for outcome in bandits))
            for k, outcome in enumerate(mine):
                # A perfect game has no place on a logarithmic axis: half a mistake stands for it.
                ratio, error = max(outcome.mean, 0.5) / unit, outcome.standard_error / unit
                # Marks a little above and below their line, so that equal ones can both be seen.
                height = place + 0.5 * ((k + 0.5) / len(mine) - 0.5)
                color, _, marker, fill = looks[outcome.entry.title]
                ends = [max(ratio - error, 1e-3), ratio + error]
                axes.plot(ends, [height, height], color=color, linewidth=1.2, zorder=2)
                axes.plot([ratio], [height], marker, color=color, mfc=fill, markersize=6.5, linestyle="", zorder=3)
                extremes.append(ratio)
        _overview_axes(axes, datasets, min(extremes), max(extremes))
        _add_legend(figure, handles)
    return figure


def _overview_axes(axes: Axes, datasets: Sequence[str], low: float, high: float) -> None:
    axes.set_xscale("log")
    axes.set_xlim(low / 1.12, high * 1.15)
    style.count_multiples(axes.xaxis, _TICKS if high > 7.0 * low else _FINE_TICKS)
    axes.axvline(1.0, color=INK, linewidth=1.0, zorder=1)
    axes.set_yticks(range(len(datasets)), [in_figure(dataset, most=_DATASET) for dataset in datasets])
    axes.set_ylim(len(datasets) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    for edge in range(1, len(datasets)):
        axes.axhline(edge - 0.5, color="#E6E6E6", linewidth=0.8, zorder=0)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("mistakes, relative to the best\nthat hears only right or wrong")


def _representatives(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return one outcome of every entry, for the legend."""
    return list({outcome.entry.title: outcome for outcome in reversed(outcomes)}.values())[::-1]


def _looks(outcomes: Sequence[Outcome]) -> dict[str, Look]:
    return looks_of(shown(outcome.entry) for outcome in outcomes)


def shown(entry: Entry) -> Shown:
    """Return the identity of an entry, for its colours."""
    return Shown(entry.title, entry.written, entry.full_information)


def _handle(outcome: Outcome, looks: Mapping[str, Look], *, is_line: bool) -> Line2D:
    color, dashes, marker, fill = looks[outcome.entry.title]
    label = in_figure(outcome.entry.shown, most=_LEGEND)
    if is_line:
        return Line2D([], [], color=color, linestyle=dashes, label=label)
    return Line2D([], [], color=color, marker=marker, markerfacecolor=fill, linestyle="", label=label)


def _add_legend(figure: Figure, handles: Sequence[Line2D]) -> None:
    figure.legend(handles=list(handles), loc="outside lower center", ncols=_legend_columns(handles), columnspacing=1.2)


def _legend_columns(handles: Sequence[Line2D]) -> int:
    lengths = [len(str(handle.get_label())) for handle in handles]
    half = math.ceil(len(lengths) / 2)
    return 2 if len(lengths) > 1 and max(lengths[:half]) + max(lengths[half:]) <= _LEGEND else 1


def _legend_height(handles: Sequence[Line2D]) -> float:
    return 0.26 * math.ceil(len(handles) / _legend_columns(handles))
