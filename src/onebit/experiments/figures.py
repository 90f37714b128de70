"""The figures of comparisons, leagues, evaluations and duels; apart from their tables because they need matplotlib."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator

from onebit.experiments.comparison import Outcome, by_dataset
from onebit.experiments.duels import DuelRow
from onebit.experiments.evaluate import estimates
from onebit.experiments.evaluate.replay import Evaluation
from onebit.experiments.statistics import LEVEL, Standing, Standings
from onebit.inputs import Floats
from onebit.reporting import figures as style
from onebit.reporting.looks import INK, PALETTE, Look, Shown, looks_of
from onebit.reporting.pages import Drawing
from onebit.reporting.text import grouped, in_figure

_PANELS = 4  # data sets in one figure of curves
_LEGEND = 56  # letters that fill a figure: of one name, or of two side by side
_DATASET = 24  # letters of a data set's name, beside its line or above its panel
_NAME = 30  # letters of a learner's name, beside its row or in a legend
_MARKS: dict[str, dict[str, Any]] = {
    "IPS": {"marker": "o", "color": INK, "markerfacecolor": "white", "markersize": 5.5},
    "SNIPS": {"marker": "s", "color": INK, "markerfacecolor": "white", "markersize": 5.5},
    "DR": {"marker": "D", "color": PALETTE[1], "markersize": 5.5},
    "DR+": {"marker": "o", "color": INK, "markersize": 5.5},
}
_BAR, _TINT = "#C9DDEB", "#0072B2"
_HALF = 0.34  # of a bar's height, in rows
_WIDE = 30.0  # panels whose numbers differ by a larger factor get a logarithmic axis
_GREY, _PALE = "#8C8C8C", "#E6E6E6"
_MULTIPLES = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_FINE_MULTIPLES = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)
_FIGURE_SPACE = "\N{FIGURE SPACE}"  # as wide as a digit
_LEADER = {"arrowstyle": "-", "color": _GREY, "linewidth": 0.6, "shrinkA": 5, "shrinkB": 4}
_IN_POINTS = {"xycoords": "figure points", "textcoords": "figure points", "annotation_clip": False}
_SHARES = (0.0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)


def comparison_drawings(outcomes: Sequence[Outcome]) -> list[Drawing]:
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
    of_set = by_dataset(outcomes)
    for number, start in enumerate(range(0, len(of_set), _PANELS), start=1):
        some = dict(list(of_set.items())[start : start + _PANELS])
        title, draw = f"Mistakes round by round: {', '.join(some)}", partial(_draw_curves, some)
        listed.append(Drawing(f"curves_{number}", title, caption, draw))
    return listed


@style.looks()
def _draw_curves(of_set: Mapping[str, Sequence[Outcome]]) -> Figure:
    """Draw cumulative mistakes against rounds, one panel per data set."""
    n_columns = min(2, len(of_set))
    n_rows = math.ceil(len(of_set) / n_columns)
    outcomes = [outcome for mine in of_set.values() for outcome in mine]
    looks = looks_of(outcome.entry for outcome in outcomes)
    lines = {title: {"linestyle": look.dashes, "color": look.color} for title, look in looks.items()}
    handles, in_columns, height = _legend(outcomes, lines.__getitem__)
    figure, panels = style.new_figure(n_rows, n_columns, (2.5 if n_columns > 1 else 3.6) * n_rows + 0.4 + height)
    for axes, (dataset, mine) in zip(panels, of_set.items(), strict=False):
        for outcome in mine:
            look = looks[outcome.entry.title]
            # Every curve begins with no mistakes in round 0.
            rounds, mean, error = np.insert([outcome.rounds, outcome.means, outcome.errors], 0, 0.0, axis=1)
            style.draw_mean(axes, rounds, mean, error, look.color, look.dashes)
        top = max(np.nansum([outcome.mean, outcome.standard_error]) for outcome in mine)
        axes.set_title(in_figure(dataset, most=_DATASET), loc="left", fontweight="bold")
        axes.set(xlim=(0, int(mine[0].rounds[-1])), ylim=(0, max(1.0, 1.05 * top)))
        style.count_axis(axes.xaxis, most_ticks=3)
        style.count_axis(axes.yaxis)
    # An odd number of data sets leaves a panel over.
    for axes in panels[len(of_set) :]:
        axes.set_visible(False)
    for axes in panels[: len(of_set)][-n_columns:]:
        axes.set_xlabel("round")
    for axes in panels[::n_columns]:
        axes.set_ylabel("mean mistakes so far" if n_columns > 1 else "mean cumulative mistakes")
    style.legend_below(figure, handles, in_columns)
    return figure


@style.looks()
def _draw_overview(outcomes: Sequence[Outcome]) -> Figure:
    """Draw the mistakes of every entry on every data set as multiples of the best."""
    of_set = by_dataset(outcomes)
    looks = looks_of(outcome.entry for outcome in outcomes)
    handles, in_columns, height = _legend(outcomes, lambda title: looks[title].mark())
    figure, (axes,) = style.new_figure(1, 1, 1.3 + 0.42 * len(of_set) + height)
    extremes = [1.0]
    for place, mine in enumerate(of_set.values()):
        bandits = [outcome for outcome in mine if not (outcome.entry.full_information or outcome.entry.asks)] or mine
        unit = max(1.0, min(outcome.mean for outcome in bandits))
        for k, outcome in enumerate(mine):
            # A perfect game has no place on a logarithmic axis: half a mistake stands for it.
            ratio, error = max(outcome.mean, 0.5) / unit, outcome.standard_error / unit
            # Marks a little above and below their line, so that equal ones can both be seen.
            height = place + 0.5 * ((k + 0.5) / len(mine) - 0.5)
            ends = max(ratio - error, 1e-3), ratio + error
            _draw_interval(axes, ends, ratio, height, markersize=6.5, **looks[outcome.entry.title].mark())
            extremes.append(ratio)
    _multiples_axis(axes.xaxis, min(extremes) / 1.12, max(extremes) * 1.15)
    axes.axvline(1.0, color=INK, linewidth=1.0, zorder=1)
    _name_rows(axes, [in_figure(dataset, most=_DATASET) for dataset in of_set])
    for edge in range(1, len(of_set)):
        axes.axhline(edge - 0.5, color=_PALE, linewidth=0.8, zorder=0)
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


# Leagues: learners carry the number of their place, so that thirty of them find room in a figure on a phone.


def league_drawings(standings: Standings) -> list[Drawing]:
    """Return what to draw of the whole league; what would be empty is left out."""
    everyone, n_sets, test = standings.everyone, len(standings.datasets), standings.friedman
    easier = dict.fromkeys(row.entry.advantage for row in standings.unranked)
    unranked = " or ".join(each + " (hollow marks)" * (each == "told the label") for each in easier)
    marks = f" Letters: not ranked, since they were {unranked}." if unranked else ""
    if any(row.finished < n_sets for row in everyone):
        marks += " *: over the sets that it finished, which are not all."
    listed = []
    if test is not None:
        caption = f"Friedman's test: p = {test:.2g}: on these sets the learners cannot be told apart by mean ranks."
        if test < LEVEL:
            caption = (
                f"Friedman's test: p = {test:.2g}. Learners joined by a bar on the right cannot be told apart: their "
                f"mean ranks are nearer than {standings.critical_difference:.2f}, Nemenyi's critical difference for "
                f"{len(standings.ranked)} learners on {n_sets} sets at level {LEVEL:g}."
            )
        draw = partial(_draw_critical_difference, standings)
        listed.append(Drawing("critical_difference", "Mean ranks over the sets", caption, draw))
    if any(not math.isnan(row.explored) for row in everyone):
        caption = (
            "Mistakes, as multiples of the best on each set (geometric mean over the sets), against the share of "
            f"guesses that were drawn to explore (mean over the sets).{marks}"
        )
        draw = partial(_draw_exploration, standings)
        listed.append(Drawing("exploration", "Mistakes against exploration", caption, draw))
    if any(not math.isnan(row.microseconds) for row in everyone):
        caption = (
            "Mistakes as before, against time per round (geometric mean over the sets; it is of this machine, and no "
            f"part of the results). The line joins the learners than which no other is both faster and better.{marks}"
        )
        listed.append(Drawing("time", "Mistakes against time", caption, partial(_draw_time, standings)))
    return listed


@style.looks()
def _draw_critical_difference(standings: Standings) -> Figure:
    """Draw mean ranks, one learner below the other, and bars that join those without significant differences."""
    rows, width = standings.ranked, standings.critical_difference
    looks, n = looks_of(row.entry for row in rows), len(rows)
    figure, (axes,) = style.new_figure(1, 1, 1.5 + 0.27 * n)
    for place, row in enumerate(rows):
        look = looks[row.title]
        axes.plot([1, row.mean_rank], [place, place], color=_PALE, linewidth=0.8, zorder=1)
        axes.plot([row.mean_rank], [place], look.marker, color=look.color, markersize=7, zorder=3)
    end, step = 1.02 * n, 0.022 * n
    columns = _side_by_side(standings.groups)
    for column, (first, last) in zip(columns, standings.groups, strict=True):
        x = [end + (column + 1) * step] * 2
        axes.plot(x, [first - 0.25, last + 0.25], color=INK, linewidth=2.4, solid_capstyle="butt", zorder=3)
    # How far apart mean ranks must be.
    axes.plot([1, 1 + width], [-1.0, -1.0], color=INK, linewidth=1.4, marker="|", markersize=9)
    axes.text(1, -1.3, f"critical difference {width:.2f}", ha="left", va="bottom", fontsize=11)
    _name_rows(axes, [f"{in_figure(row.title, _NAME)}  {row.number!s:{_FIGURE_SPACE}>2}" for row in rows])
    axes.set(ylim=(n - 0.4, -1.9), xlim=(1 - 0.02 * n, end + (max(columns, default=0) + 1.6) * step))
    # Beyond the last rank there are bars only.
    axes.spines["bottom"].set_bounds(1, n)
    ticks = MaxNLocator(7, integer=True, steps=[1, 2, 5, 10]).tick_values(1, n)
    axes.set_xticks([tick for tick in {1, *ticks} if 1 <= tick <= n])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("mean rank (1 is best)")
    return figure


def _side_by_side(groups: Sequence[tuple[int, int]]) -> list[int]:
    """Return a column for every group, such that groups in one column do not touch."""
    ends: list[int] = []
    columns = []
    for first, last in groups:
        column = next((at for at, end in enumerate(ends) if end < first), len(ends))
        ends[column : column + 1] = [last]
        columns.append(column)
    return columns


def _draw_exploration(standings: Standings) -> Figure:
    """Draw mistakes against the share of guesses drawn to explore."""
    rows = [row for row in standings.everyone if not math.isnan(row.explored)]
    most = max(row.explored for row in rows)

    def set_axis(axes: Axes) -> None:
        # Square roots: none and one in a hundred are far apart, and none has no place on a logarithmic axis.
        axes.set_xscale("function", functions=(lambda x: np.sign(x) * np.abs(x) ** 0.5, lambda x: np.sign(x) * x**2))
        axes.set_xlim(-0.0015, 1.02 if most > 0.5 else min(1.0, 1.3 * max(most, 0.02)))
        style.count_percent(axes.xaxis, [share for share in _SHARES if share <= axes.get_xlim()[1]])
        axes.set_xlabel("guesses drawn to explore")

    return _scatter(standings, rows, [row.explored for row in rows], set_axis)


def _draw_time(standings: Standings) -> Figure:
    """Draw mistakes against time per round, and the Pareto front."""
    rows = [row for row in standings.everyone if not math.isnan(row.microseconds)]
    times = [row.microseconds for row in rows]

    def set_axis(axes: Axes) -> None:
        axes.set(xscale="log", xlim=(min(times) / 1.5, max(times) * 1.5))
        style.log_count_axis(axes.xaxis)
        if max(times) < 100 * min(times):
            # Powers of ten would be one or two.
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=20))
            axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("microseconds per round")
        front = _pareto([(row.microseconds, row.relative) for row in rows if row.number is not None])
        if front:
            # Steps: for a given time, the best learner that needs no more.
            xs, ratios = zip(*front, (axes.get_xlim()[1], front[-1][1]), strict=True)
            axes.step(xs, ratios, where="post", color=_GREY, linewidth=1.2, zorder=1)

    return _scatter(standings, rows, times, set_axis)


def _pareto(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points of which no other is at most as large in both, by their first number."""
    front: list[tuple[float, float]] = []
    for point in sorted(points):
        if not front or point[1] < front[-1][1]:
            front.append(point)
    return front


@style.looks()
def _scatter(
    standings: Standings, rows: Sequence[Standing], xs: Sequence[float], set_axis: Callable[[Axes], None]
) -> Figure:
    """Draw the learners' mistakes at these places, marked by place, or by letter if not ranked, with a legend."""
    looks = looks_of(row.entry for row in standings.everyone)
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    marks = {row.title: str(row.number or next(letters, "z")) for row in standings.everyone}
    n_columns = 2 if len(rows) > 3 else 1
    figure, (axes,) = style.new_figure(1, 1, 4.4 + 0.24 * math.ceil(len(rows) / n_columns))
    set_axis(axes)
    ys = [row.relative for row in rows]
    _multiples_axis(axes.yaxis, min(ys) / 1.15, max(ys) * 1.2)
    axes.set_ylabel("mistakes, relative to the best")
    handles = []
    for row, x in zip(rows, xs, strict=True):
        mark = looks[row.title].mark()
        axes.plot([x], [row.relative], markersize=7, zorder=3, clip_on=False, **mark)
        star = "*" if row.finished < len(standings.datasets) else ""
        handles.append(Line2D([], [], label=f"{marks[row.title]}{star} {in_figure(row.title, _NAME)}", **mark))
    style.legend_below(figure, handles, n_columns, columnspacing=1.0, handletextpad=0.2)
    # The layout must be known before there are inches between points.
    figure.draw_without_rendering()
    places = axes.transData.transform(np.column_stack([xs, ys])) / figure.dpi
    texts = [marks[row.title] for row in rows]
    for text, place, label in zip(texts, places, _spots(places, texts), strict=True):
        leader = _LEADER if np.hypot(*(label - place)) > 0.2 else None
        where: dict[str, Any] = {**_IN_POINTS, "arrowprops": leader}
        note = axes.annotate(text, place * 72, label * 72, ha="center", va="center", fontsize=10, **where)
        note.set_in_layout(False)  # it has its place, and moves nothing
    return figure


def _spots(places: Floats, texts: Sequence[str]) -> Floats:
    """Return where to write a text beside every place, in inches: as near as it can be without covering another."""
    angles = np.radians([45, 135, 315, 225, 0, 90, 180, 270])
    ring = np.column_stack([np.cos(angles), np.sin(angles)])
    candidates = np.concatenate([radius * ring for radius in (0.15, 0.24, 0.36, 0.5)])
    found: list[Floats] = []
    for place, text in zip(places, texts, strict=True):
        at = place + candidates
        half = np.array([0.045 * len(text) + 0.01, 0.08])
        covered = np.zeros(len(at))
        for others, reach in ((places, half + 0.05), (np.array(found).reshape(-1, 2), half + 0.07)):
            apart = np.abs(at[:, None, :] - others[None, :, :])
            covered += np.all(apart < reach, axis=2).sum(axis=1)
        found.append(at[int(np.argmin(covered))])
    return np.array(found).reshape(-1, 2)


# Evaluations: what is sure as bars, estimates with their intervals on them.


def evaluation_drawings(rows: Sequence[Evaluation]) -> list[Drawing]:
    """Return the figure of an evaluation."""
    caption = (
        "Light bars reach from the mistakes that are surely made to those that are at most made, as a share of the "
        "answered rounds; the line is what the log itself made."
    )
    methods = [method for method in estimates.METHODS if any(method in row.estimates.found for row in rows)]
    if methods:
        caption += (
            f" Marks are estimates, with {estimates.LEVEL:.0%} intervals; where there are none, nothing can be "
            f"estimated. {estimates.ASSUMPTION.capitalize()}; bounds do not."
        )
    title = "Mistakes: what is sure, and what is estimated"
    return [Drawing("evaluate", title, caption, partial(_draw_evaluation, rows, methods))]


@style.looks()
def _draw_evaluation(rows: Sequence[Evaluation], methods: Sequence[str]) -> Figure:
    """Draw the bounds and estimates of all learners."""
    others, logged = [row for row in rows if not row.is_logged], rows[0].known.low
    of_log: dict[str, Any] = {"color": _TINT, "linewidth": 1.4, "linestyle": (0, (5, 2))}
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
    _name_rows(axes, [in_figure(row.title, most=_NAME) for row in others])
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    style.count_percent(axes.xaxis)
    axes.set_xlabel("share of mistakes in the answered rounds")
    handles = [
        Patch(color=_BAR, label="surely within"),
        Line2D([], [], label="the log itself", **of_log),
        *(Line2D([], [], linewidth=1.2, label=method, **_MARKS[method]) for method in methods),
    ]
    style.legend_below(figure, handles, 3, title="\n".join(wrap(estimates.ASSUMPTION, 50)) if methods else None)
    return figure


# Duels.


@style.looks()
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
    figure, panels = style.new_figure(1, len(games), 2.4 + 0.17 * float(sizes.sum()))
    for axes, (title, mine) in zip(panels, games.items(), strict=True):
        _draw_game(axes, mine, heights)
        axes.set_title(title, fontsize=10)
        axes.set(yticks=list(heights.values()), yticklabels=[], ylim=(float(sizes.sum()), 0.0))
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
        axes.set(xscale="log", xlim=(min(values) / 1.6, max(values) * 1.6))
        style.log_count_axis(axes.xaxis)
        axes.minorticks_off()
    else:
        axes.set_xlim(0.0, 1.15 * max(values))
        axes.xaxis.set_major_locator(MaxNLocator(2, steps=[1, 2, 2.5, 5, 10]))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}" if value % 1 else grouped(value))
    axes.set_xlabel("mistakes", fontsize=10)
    axes.tick_params(axis="x", labelsize=10)
    axes.tick_params(axis="y", length=0)


@style.looks()
def draw_growth(rows: Sequence[DuelRow]) -> Figure:
    """Return a figure of mistakes against the number of features, for Theorem 24's adversary at one margin."""
    if len({(row.challenge.name, row.challenge.margin) for row in rows}) != 1:
        raise ValueError("rows must be of one adversary and one margin; pass what duel_by_dimension returns")
    challenge, looks, dimensions = rows[0].challenge, _looks_of_rows(rows), {row.challenge.n_features for row in rows}
    by_learner: dict[str, list[DuelRow]] = {}
    for row in sorted(rows, key=lambda row: row.challenge.n_features):
        by_learner.setdefault(row.learner, []).append(row)
    figure, (axes,) = style.new_figure(1, 1, 6.4)
    for learner in dict.fromkeys(row.learner for row in rows):
        mine = by_learner[learner]
        points: Any = zip(*((row.challenge.n_features, row.mean, row.standard_error) for row in mine), strict=True)
        look = {**looks[learner].mark(), "linestyle": looks[learner].dashes}
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
        axes.axhline(value, linestyle="-.", color=_GREY, label=label)
    axes.set_yscale("log")
    # The stated bound starts at 0.1, in two dimensions.
    axes.set_ylim(bottom=0.05)
    style.log_count_axis(axes.yaxis)
    title = f"{challenge.name}: mistakes at a margin of {challenge.margin:g}"
    axes.set(xticks=sorted(dimensions), xlabel="features d", ylabel="mistakes", title=title)
    figure.legend(loc="outside lower left", ncols=1)
    return figure


def _multiples_axis(axis: Axis, low: float, high: float) -> None:
    """Let an axis count multiples on a logarithmic scale: more of them where it spans a decade or less."""
    name = "x" if axis is axis.axes.xaxis else "y"
    axis.axes.set(**{f"{name}scale": "log", f"{name}lim": (low, high)})
    ticks = _MULTIPLES if high > 12.0 * low else _FINE_MULTIPLES
    axis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:g}×")


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Write a name beside every row of a figure, the first on top."""
    axes.set(yticks=range(len(names)), yticklabels=list(names), ylim=(len(names) - 0.5, -0.5))
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
