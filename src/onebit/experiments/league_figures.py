"""The figures of a league: mean ranks, and mistakes against exploration and against time.

Learners carry the number of their place, so that thirty of them find room in a figure that a phone can show.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from onebit.experiments.statistics import LEVEL, Standing, Standings
from onebit.inputs import Floats
from onebit.reporting import figures as style
from onebit.reporting.looks import INK, looks_of
from onebit.reporting.pages import Drawing
from onebit.reporting.text import in_figure

_NAME = 30  # letters of a learner's name, beside its row or in a legend
_GREY = "#8C8C8C"
_FIGURE_SPACE = "\N{FIGURE SPACE}"  # as wide as a digit
_LEADER = {"arrowstyle": "-", "color": _GREY, "linewidth": 0.6, "shrinkA": 5, "shrinkB": 4}
_SHARES = (0.0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)


def drawings(standings: Standings) -> list[Drawing]:
    """Return what to draw of the whole league; what would be empty is left out."""
    everyone, n_sets, test = standings.everyone, len(standings.datasets), standings.friedman
    easier = dict.fromkeys(row.entry.advantage for row in standings.unranked)
    unranked = " or ".join(each + " (hollow marks)" * (each == "told the label") for each in easier)
    marks = f" Letters: not ranked, since they were {unranked}." if unranked else ""
    if any(row.finished < n_sets for row in everyone):
        marks += " *: over the sets that it finished, which are not all."
    listed = []
    if test is not None:
        caption = f"Friedman's test: p = {test.p:.2g}: on these sets the learners cannot be told apart by mean ranks."
        if test.p < LEVEL:
            caption = (
                f"Friedman's test: p = {test.p:.2g}. Learners joined by a bar on the right cannot be told apart: their "
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


def _draw_critical_difference(standings: Standings) -> Figure:
    """Draw mean ranks, one learner below the other, and bars that join those without significant differences."""
    rows, width = standings.ranked, standings.critical_difference
    looks, n = looks_of(row.entry for row in rows), len(rows)
    with style.looks():
        figure, (axes,) = style.new_figure(1, 1, 1.5 + 0.27 * n)
        for place, row in enumerate(rows):
            look = looks[row.title]
            axes.plot([1, row.mean_rank], [place, place], color="#E6E6E6", linewidth=0.8, zorder=1)
            axes.plot([row.mean_rank], [place], look.marker, color=look.color, markersize=7, zorder=3)
        end, step = 1.02 * n, 0.022 * n
        columns = _side_by_side(standings.groups)
        for column, (first, last) in zip(columns, standings.groups, strict=True):
            x = [end + (column + 1) * step] * 2
            axes.plot(x, [first - 0.25, last + 0.25], color=INK, linewidth=2.4, solid_capstyle="butt", zorder=3)
        # How far apart mean ranks must be.
        axes.plot([1, 1 + width], [-1.0, -1.0], color=INK, linewidth=1.4, marker="|", markersize=9)
        axes.text(1, -1.3, f"critical difference {width:.2f}", ha="left", va="bottom", fontsize=11)
        style.name_rows(axes, [f"{in_figure(row.title, _NAME)}  {row.number!s:{_FIGURE_SPACE}>2}" for row in rows])
        axes.set_ylim(n - 0.4, -1.9)
        axes.set_xlim(1 - 0.02 * n, end + (max(columns, default=0) + 1.6) * step)
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
        axes.set_xscale("log")
        axes.set_xlim(min(times) / 1.5, max(times) * 1.5)
        style.log_count_axis(axes.xaxis)
        if max(times) < 100 * min(times):
            # Powers of ten would be one or two.
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=20))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
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


def _scatter(
    standings: Standings, rows: Sequence[Standing], xs: Sequence[float], set_axis: Callable[[Axes], None]
) -> Figure:
    """Draw the learners' mistakes at these places, marked by place, or by letter if not ranked, with a legend."""
    looks = looks_of(row.entry for row in standings.everyone)
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    marks = {row.title: str(row.number or next(letters, "z")) for row in standings.everyone}
    n_columns = 2 if len(rows) > 3 else 1
    with style.looks():
        figure, (axes,) = style.new_figure(1, 1, 4.4 + 0.24 * math.ceil(len(rows) / n_columns))
        set_axis(axes)
        ys = [row.relative for row in rows]
        style.multiples_axis(axes.yaxis, min(ys) / 1.15, max(ys) * 1.2)
        axes.set_ylabel("mistakes, relative to the best")
        handles = []
        for row, x in zip(rows, xs, strict=True):
            mark = style.marker(looks[row.title])
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
            where: dict[str, Any] = {
                "xycoords": "figure points",
                "textcoords": "figure points",
                "annotation_clip": False,
            }
            note = axes.annotate(
                text, place * 72, label * 72, ha="center", va="center", fontsize=10, arrowprops=leader, **where
            )
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
