"""The figures of comparisons, evaluations and duels; apart from their tables because they need matplotlib."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from onebit.experiments.comparison import Outcome
from onebit.experiments.duels import DuelRow
from onebit.experiments.evaluate.estimates import ASSUMPTION, LEVEL, METHODS
from onebit.experiments.evaluate.replay import Evaluation
from onebit.reporting import figures as style
from onebit.reporting.looks import INK, PALETTE, Look, Shown, looks_of
from onebit.reporting.pages import Drawing
from onebit.reporting.text import grouped, in_figure

_PANELS = 4  # data sets in one figure of curves
_LEGEND = 56  # letters that fill a figure: of one name, or of two side by side
_DATASET = 24  # letters of a data set's name, beside its line or above its panel
_NAME = 30  # letters of a learner's name beside its row
_MARKS: dict[str, dict[str, Any]] = {
    "IPS": {"marker": "o", "color": INK, "markerfacecolor": "white", "markersize": 5.5},
    "SNIPS": {"marker": "s", "color": INK, "markerfacecolor": "white", "markersize": 5.5},
    "DR": {"marker": "D", "color": PALETTE[1], "markersize": 5.5},
    "DR+": {"marker": "o", "color": INK, "markersize": 5.5},
}
_BAR, _TINT = "#C9DDEB", "#0072B2"
_HALF = 0.34  # of a bar's height, in rows
_WIDE = 30.0  # panels whose numbers differ by a larger factor get a logarithmic axis


def drawings(outcomes: Sequence[Outcome]) -> list[Drawing]:
    """Return the figures of a comparison: the overview, then curves on every data set, four to a figure."""
    n_runs = len(outcomes[0].final)
    has_labels = any(outcome.entry.full_information for outcome in outcomes)
    bars = "bars are ± 1 standard error" if n_runs > 1 else "a single run has no standard error"
    caption = (
        "Mean mistakes of each learner over those of the best with right-or-wrong feedback, one line per data set; "
        f"{bars}.{' Hollow marks are learners that get the label.' if has_labels else ''}"
    )
    listed = [Drawing("overview", "Mistakes relative to the best", caption, partial(_draw_overview, outcomes))]
    caption = f"Each line is {style.what_lines_are(n_runs)}."
    caption += " Dotted lines are learners that get the label." if has_labels else ""
    datasets = list(dict.fromkeys(outcome.dataset for outcome in outcomes))
    for start in range(0, len(datasets), _PANELS):
        some = datasets[start : start + _PANELS]
        name, title = f"curves_{start // _PANELS + 1}", f"Mistakes round by round: {', '.join(some)}"
        listed.append(Drawing(name, title, caption, partial(_draw_curves, outcomes, some)))
    return listed


def _draw_curves(outcomes: Sequence[Outcome], datasets: Sequence[str]) -> Figure:
    """Draw cumulative mistakes against rounds, one panel per data set."""
    n_columns = min(2, len(datasets))
    n_rows = math.ceil(len(datasets) / n_columns)
    looks = looks_of(outcome.entry for outcome in outcomes)
    lines = {title: {"linestyle": look.dashes, "color": look.color} for title, look in looks.items()}
    handles, in_columns, height = _legend(outcomes, lines.__getitem__)
    with style.looks():
        figure, panels = style.new_figure(n_rows, n_columns, (2.5 if n_columns > 1 else 3.6) * n_rows + 0.4 + height)
        for axes, dataset in zip(panels, datasets, strict=False):
            mine = [outcome for outcome in outcomes if outcome.dataset == dataset]
            for outcome in mine:
                look = looks[outcome.entry.title]
                # Every curve begins with no mistakes in round 0.
                rounds, mean, error = np.insert([outcome.rounds, outcome.means, outcome.errors], 0, 0.0, axis=1)
                style.draw_mean(axes, rounds, mean, error, look.color, look.dashes)
            top = max(np.nansum([outcome.mean, outcome.standard_error]) for outcome in mine)
            axes.set_title(in_figure(dataset, most=_DATASET), loc="left", fontweight="bold")
            axes.set_xlim(0, int(mine[0].rounds[-1]))
            axes.set_ylim(0, max(1.0, 1.05 * top))
            style.count_axis(axes.xaxis, most_ticks=3)
            style.count_axis(axes.yaxis)
        # An odd number of data sets leaves a panel over.
        for axes in panels[len(datasets) :]:
            axes.set_visible(False)
        for axes in panels[: len(datasets)][-n_columns:]:
            axes.set_xlabel("round")
        for axes in panels[::n_columns]:
            axes.set_ylabel("mean mistakes so far" if n_columns > 1 else "mean cumulative mistakes")
        style.legend_below(figure, handles, in_columns)
    return figure


def _draw_overview(outcomes: Sequence[Outcome]) -> Figure:
    """Draw the mistakes of every entry on every data set as multiples of the best."""
    datasets = list(dict.fromkeys(outcome.dataset for outcome in outcomes))
    looks = looks_of(outcome.entry for outcome in outcomes)
    handles, in_columns, height = _legend(outcomes, lambda title: style.marker(looks[title]))
    with style.looks():
        figure, (axes,) = style.new_figure(1, 1, 1.3 + 0.42 * len(datasets) + height)
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
                ends = max(ratio - error, 1e-3), ratio + error
                _draw_interval(axes, ends, ratio, height, markersize=6.5, **style.marker(looks[outcome.entry.title]))
                extremes.append(ratio)
        style.multiples_axis(axes.xaxis, min(extremes) / 1.12, max(extremes) * 1.15)
        axes.axvline(1.0, color=INK, linewidth=1.0, zorder=1)
        style.name_rows(axes, [in_figure(dataset, most=_DATASET) for dataset in datasets])
        for edge in range(1, len(datasets)):
            axes.axhline(edge - 0.5, color="#E6E6E6", linewidth=0.8, zorder=0)
        axes.set_xlabel("mistakes, relative to the best\nwith right-or-wrong feedback")
        style.legend_below(figure, handles, in_columns)
    return figure


def _draw_interval(axes: Axes, ends: tuple[float, float], at: float, height: float, **looks: Any) -> None:
    axes.plot(ends, [height, height], color=looks["color"], linewidth=1.2, zorder=2)
    axes.plot([at], [height], zorder=3, **{"linestyle": "", **looks})


def _legend(outcomes: Sequence[Outcome], looks: Callable[[str], dict[str, Any]]) -> tuple[list[Line2D], int, float]:
    """Return one line of a legend for every entry, how many columns they have, and how many inches they need."""
    titles = {outcome.entry.title: outcome.entry.shown for outcome in outcomes}
    handles = [Line2D([], [], label=in_figure(name, most=_LEGEND), **looks(title)) for title, name in titles.items()]
    lengths = [len(str(handle.get_label())) for handle in handles]
    half = math.ceil(len(lengths) / 2)
    n_columns = 2 if len(lengths) > 1 and max(lengths[:half]) + max(lengths[half:]) <= _LEGEND else 1
    return handles, n_columns, 0.26 * math.ceil(len(handles) / n_columns)


# Evaluations: what is sure as bars, estimates with their intervals on them.


def evaluation_drawings(rows: Sequence[Evaluation]) -> list[Drawing]:
    """Return the figure of an evaluation."""
    caption = (
        "Light bars reach from the mistakes that are surely made to those that are at most made, as a share of the "
        "answered rounds; the line is what the log itself made."
    )
    methods = [method for method in METHODS if any(method in row.estimates.found for row in rows)]
    if methods:
        caption += (
            f" Marks are estimates, with {LEVEL:.0%} intervals; where there are none, nothing can be estimated. "
            f"{ASSUMPTION.capitalize()}; bounds do not."
        )
    title = "Mistakes: what is sure, and what is estimated"
    return [Drawing("evaluate", title, caption, partial(_draw_evaluation, rows, methods))]


def _draw_evaluation(rows: Sequence[Evaluation], methods: Sequence[str]) -> Figure:
    """Draw the bounds and estimates of all learners."""
    others, logged = [row for row in rows if not row.is_logged], rows[0].known.low
    of_log: dict[str, Any] = {"color": _TINT, "linewidth": 1.4, "linestyle": (0, (5, 2))}
    with style.looks():
        height = 1.5 + 0.8 * len(others) + 0.4 * bool(methods) + 0.3 * (len(methods) > 2)
        figure, (axes,) = style.new_figure(1, 1, height)
        for place, row in enumerate(others):
            low, high = row.known.low, row.known.high
            axes.barh(place, high - low, left=low, height=2 * _HALF, color=_BAR, linewidth=0, zorder=0.5)
            axes.vlines((low, high), place - _HALF, place + _HALF, color=_TINT, linewidth=1.4, zorder=1.5)
            for at, method in enumerate(methods):
                if (found := row.estimates.found.get(method)) is not None:
                    beside = place + 2 * _HALF * ((at + 0.5) / len(methods) - 0.5)
                    _draw_interval(axes, (found.low, found.high), found.rate, beside, **_MARKS[method])
        axes.axvline(logged, zorder=1, **of_log)
        ends = [logged, *(row.known.low for row in others), *(row.known.high for row in others)]
        pad = 0.04 * max(max(ends) - min(ends), 0.02)
        axes.set_xlim(max(0.0, min(ends) - pad) - 0.1 * pad, min(1.0, max(ends) + pad))
        style.name_rows(axes, [in_figure(row.title, most=_NAME) for row in others])
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        style.count_percent(axes.xaxis)
        axes.set_xlabel("share of mistakes in the answered rounds")
        handles = [
            Patch(color=_BAR, label="surely within"),
            Line2D([], [], label="the log itself", **of_log),
            *(Line2D([], [], linewidth=1.2, label=method, **_MARKS[method]) for method in methods),
        ]
        style.legend_below(figure, handles, 3, title="\n".join(wrap(ASSUMPTION, 50)) if methods else None)
    return figure


# Duels.


def draw_duel(rows: Sequence[DuelRow]) -> Figure:
    """Return a figure with a panel for each adversary: all learners' mistakes ± 1 standard error, the bound."""
    if not rows:
        raise ValueError("rows must hold at least one game; pass what duel returns")
    # Long names are broken between settings, never within a word.
    broken = {row.learner: wrap(row.short_name, 32, break_long_words=False, break_on_hyphens=False) for row in rows}
    # As high as their names are, and half a line of air.
    sizes = np.array([0.5 + len(lines) for lines in broken.values()])
    heights = dict(zip(broken, (np.cumsum(sizes) - sizes / 2.0).tolist(), strict=True))
    games: dict[str, list[DuelRow]] = {}
    for row in rows:
        it = row.challenge
        size = f"K = {it.n_classes}\nd = {it.n_features}\nR/γ = {grouped(it.radius / it.margin)}"
        title = f"{it.name}:\n{it.stated.binds.replace(' ', chr(10))}\n{size}\n{grouped(it.rounds)} rounds"
        games.setdefault(title, []).append(row)
    with style.looks():
        figure, panels = style.new_figure(1, len(games), 2.4 + 0.17 * float(sizes.sum()))
        for axes, (title, mine) in zip(panels, games.items(), strict=True):
            _draw_game(axes, mine, heights)
            axes.set_title(title, fontsize=10)
            axes.set_yticks(list(heights.values()), [])
            axes.set_ylim(float(sizes.sum()), 0.0)
        panels[0].set_yticks(list(heights.values()), ["\n".join(lines) for lines in broken.values()], fontsize=10)
        handles = [
            Line2D([], [], color=INK, linewidth=1.6, label="lower bound as stated"),
            Line2D([], [], color=INK, linewidth=1.4, linestyle=(0, (4, 3)), label="what the construction forces"),
            Line2D([], [], color=INK, marker="o", linestyle="", label="learners it binds"),
            Line2D([], [], color=INK, marker="o", mfc="w", linestyle="", label="other learners"),
        ]
        style.legend_below(figure, handles, 2)
    return figure


def _looks_of_rows(rows: Sequence[DuelRow]) -> dict[str, Look]:
    return looks_of(Shown(row.learner, row.learner, row.full_information) for row in rows)


def _draw_game(axes: Axes, rows: Sequence[DuelRow], heights: Mapping[str, float]) -> None:
    looks = _looks_of_rows(rows)
    for row in rows:
        color = looks[row.learner].color
        height, fill = heights[row.learner], color if row.lower_bound is not None else "w"
        axes.errorbar([row.mean], [height], xerr=[row.standard_error], fmt="o", color=color, mfc=fill, capsize=2)
    given = (bound for row in rows for bound in (row.lower_bound, row.sharp_lower_bound))
    bounds = [bound for bound in given if bound is not None][:2]  # the rows of one game share them
    for bound, strokes in zip(dict.fromkeys(bounds), ("-", (0, (4, 3))), strict=False):
        axes.axvline(bound, color=INK, linewidth=1.5, linestyle=strokes, zorder=1)
    values = [row.mean for row in rows] + bounds
    if 0.0 < _WIDE * min(values) < max(values):
        axes.set_xscale("log")
        axes.set_xlim(min(values) / 1.6, max(values) * 1.6)
        style.log_count_axis(axes.xaxis)
        axes.minorticks_off()
    else:
        axes.set_xlim(0.0, 1.15 * max(values))
        axes.xaxis.set_major_locator(MaxNLocator(2, steps=[1, 2, 2.5, 5, 10]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}" if value % 1 else grouped(value)))
    axes.set_xlabel("mistakes", fontsize=10)
    axes.tick_params(axis="x", labelsize=10)
    axes.tick_params(axis="y", length=0)


def draw_growth(rows: Sequence[DuelRow]) -> Figure:
    """Return a figure of mistakes against the number of features, for Theorem 24's adversary at one margin."""
    if len({(row.challenge.name, row.challenge.margin) for row in rows}) != 1:
        raise ValueError("rows must be of one adversary and one margin; pass what duel_by_dimension returns")
    challenge, looks, dimensions = rows[0].challenge, _looks_of_rows(rows), {row.challenge.n_features for row in rows}
    by_learner: dict[str, list[DuelRow]] = {}
    for row in sorted(rows, key=lambda row: row.challenge.n_features):
        by_learner.setdefault(row.learner, []).append(row)
    with style.looks():
        figure, (axes,) = style.new_figure(1, 1, 6.4)
        for learner in dict.fromkeys(row.learner for row in rows):
            mine = by_learner[learner]
            points: Any = zip(*((row.challenge.n_features, row.mean, row.standard_error) for row in mine), strict=True)
            look = {**style.marker(looks[learner]), "linestyle": looks[learner].dashes}
            axes.errorbar(*points, markersize=5, label=mine[0].short_name, **look)
        for name, dashes, label in [
            ("sharp_lower_bound", "--", "forced on ignorant learners by this adversary"),
            ("lower_bound", ":", "forced on ignorant learners, as stated"),
        ]:
            bound = {(each.challenge.n_features, getattr(each, name)) for each in rows if each.lower_bound is not None}
            if bound:
                axes.plot(*zip(*sorted(bound), strict=True), dashes, color=INK, label=label)
        # A promise that depends on d is Theorem 21's, far above everything that can be played.
        flat: dict[float, str] = {}
        for mine in by_learner.values():
            promised = {row.upper_bound for row in mine}
            value = promised.pop()
            if len(dimensions) > 1 and value is not None and not promised:
                flat.setdefault(value, f"promised by {mine[0].short_name}, in any dimension")
        for value, label in flat.items():
            # Not a learner's colour: what is promised lies far above what is played, and should recede.
            axes.axhline(value, linestyle="-.", color="#8C8C8C", label=label)
        axes.set_yscale("log")
        # The stated bound starts at 0.1, in two dimensions.
        axes.set_ylim(bottom=0.05)
        style.log_count_axis(axes.yaxis)
        axes.set_xticks(sorted(dimensions))
        axes.set_xlabel("features d")
        axes.set_ylabel("mistakes")
        axes.set_title(f"{challenge.name}: mistakes at a margin of {challenge.margin:g}")
        figure.legend(loc="outside lower left", ncols=1)
    return figure
