"""Figures 4 and 5 of the paper: mean cumulative mistakes against rounds, on the strong and on the weak set.

Each comes twice: with linear axes like the paper's, and with logarithmic ones, where all learners can be seen at once.
"""

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from onebit.compare.comparison import Outcome
from onebit.inputs import Floats
from onebit.reporting import style
from onebit.reporting.tables import grouped
from onebit.reproduce.contestants import DATASETS
from onebit.reproduce.looks import PUBLISHED_COLOR, color_of, dashes_of
from onebit.reproduce.published import published_curves, published_learner

NUMBERS = {"strong": 4, "weak": 5}
"""The paper's number of the figure for each data set."""

# Whose curves a linear plot of everyone cannot tell from zero. On the weak set Algorithm 1 has no guarantee.
_LOW = {
    "strong": (
        "algorithm-1",
        "algorithm-1-authors",
        "algorithm-2",
        "algorithm-2-authors",
        "bandit-svm",
        "multiclass-perceptron",
    ),
    "weak": ("algorithm-2", "algorithm-2-authors", "bandit-svm", "multiclass-perceptron"),
}
_UNITS = ((1_000_000, 1_000_000, " (millions)"), (10_000, 1_000, " (thousands)"), (0, 1, ""))
"""From how many rounds on the axis counts in what."""


class _Line(NamedTuple):
    """One line of a figure, ours or the paper's."""

    key: str
    title: str
    rounds: Floats
    mean: Floats
    error: Floats

    @property
    def top(self) -> float:
        return float(np.nansum([self.mean[-1], self.error[-1]]))


class _Lines(NamedTuple):
    """All lines of a figure."""

    ours: list[_Line]
    published: list[_Line]

    def low(self, dataset: str) -> "_Lines":
        """Return those that the enlarged panel is for."""
        ours, published = ([line for line in lines if line.key in _LOW[dataset]] for lines in self)
        return _Lines(ours, published)

    @property
    def top(self) -> float:
        return max([line.top for lines in self for line in lines] + [1.0])


def title(dataset: str, is_log: bool) -> str:
    """Return the heading of the figure."""
    axes = ", logarithmic axes" if is_log else ""
    return f"Figure {NUMBERS[dataset]}: mistakes on the {DATASETS[dataset]} set{axes}"


def caption(outcomes: list[Outcome], dataset: str, is_log: bool) -> str:
    """Return two sentences with the numbers of this experiment."""
    mine = [outcome for outcome in outcomes if outcome.dataset == dataset]
    shown = style.what_lines_are(len(mine[0].mistakes))
    if _lines(outcomes, dataset, is_log).published:
        shown += "; grey lines are the paper's"
    if is_log:
        return f"Each line is {shown}. A line that has become flat belongs to a learner that makes no more mistakes."
    ends = [(outcome.mean, outcome.entry) for outcome in mine]
    banditrons = [(end, who.title) for end, who in ends if who.key.startswith("banditron-")]
    told = [f"{grouped(end)} by {who.title}" for end, who in ends if who.key in ("algorithm-1", "algorithm-2")]
    told += [
        f"{grouped(end)} by the best Banditron ({name.partition(', ')[2]})" for end, name in sorted(banditrons)[:1]
    ]
    return (
        f"Each line is {shown}, and the lower panel enlarges the bottom of the upper one. "
        f"Mistakes after {grouped(mine[0].rounds[-1])} rounds: {', '.join(told)}."
    )


def draw(outcomes: list[Outcome], dataset: str, is_log: bool) -> Figure:
    """Draw the mistakes of everyone who played a data set, beside the published curves.

    The linear figure has two panels: the paper's own range, in which the best learners cannot be told from zero, and
    below it the bottom of that plot, enlarged until they can. Lines are labelled where they end; the published curves
    are grey, behind ours, and named where they stand alone. Bands are ± 1 standard error.
    """
    lines = _lines(outcomes, dataset, is_log)
    low = lines.low(dataset)
    with style.looks():
        if is_log:
            figure, panels = style.new_figure(1, 1, 9.5, 6.6)
            _plot(panels[0], lines)
            _log_axes(panels[0], lines)
            _label_ends(panels[0], _Lines(lines.ours, low.published))
        else:
            figure, panels = style.new_figure(2, 1, 9.5, 9.6)
            for axes, top, named, heading in (
                (panels[0], lines.top, _Lines(lines.ours, []), "all learners"),
                (panels[1], low.top, low, "the same, enlarged near zero"),
            ):
                _plot(axes, lines)
                _linear_axes(axes, lines, top)
                _label_ends(axes, named)
                axes.set_title(heading, loc="left")
        if lines.published:
            panels[0].plot([], [], color=PUBLISHED_COLOR, linewidth=3.2, label=_published_title(dataset))
            panels[0].legend(loc="upper left")
    return figure


def _published_title(dataset: str) -> str:
    return f"published (paper, Fig. {NUMBERS[dataset]})"


def _lines(outcomes: list[Outcome], dataset: str, is_log: bool) -> _Lines:
    lines = _Lines([], [])
    drawn = set()
    for outcome in outcomes:
        if outcome.dataset != dataset:
            continue
        who, last = outcome.entry, float(outcome.rounds[-1])
        # A linear plot begins at zero mistakes in round zero, which a logarithmic one cannot show.
        curves = np.array([outcome.rounds, outcome.means, outcome.errors])
        lines.ours.append(_Line(who.key, who.shown, *(curves if is_log else np.insert(curves, 0, 0.0, axis=1))))
        published = published_learner(who.key)
        if published is None or published in drawn:
            continue
        drawn.add(published)
        rounds, mistakes = published_curves()[dataset, published]
        inside = (rounds < last) & (rounds >= (1 if is_log else 0))
        end = min(last, float(rounds[-1]))
        xs = np.append(rounds[inside], end)
        # Between its points the paper's curve is unknown, so a game that ends before the first is shown without it.
        if last >= rounds[1] and len(xs) > 1:
            ys = np.interp(xs, rounds, mistakes)
            lines.published.append(_Line(who.key, f"published: {who.title}", xs, ys, np.zeros(len(xs))))
    return lines


def _plot(axes: Axes, lines: _Lines) -> None:
    for line in lines.published:
        axes.plot(line.rounds, line.mean, color=PUBLISHED_COLOR, linewidth=3.2, zorder=2)
    for line in lines.ours:
        style.draw_mean(axes, line.rounds, line.mean, line.error, color_of(line.key), dashes_of(line.key))
    axes.set_ylabel("mean cumulative mistakes")


def _linear_axes(axes: Axes, lines: _Lines, top: float) -> None:
    last = max(line.rounds[-1] for line in lines.ours)
    unit, name = next((unit, name) for threshold, unit, name in _UNITS if last >= threshold)
    axes.set_xlim(0, last)
    axes.set_ylim(0, top * 1.06)
    axes.set_xlabel(f"round{name}")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / unit:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: grouped(value) if value == int(value) else ""))


def _log_axes(axes: Axes, lines: _Lines) -> None:
    last = max(line.rounds[-1] for line in lines.ours)
    axes.set_xscale("log")
    axes.set_yscale("log", nonpositive="clip")
    axes.set_xlim(min(10.0, last / 10), last)
    # Below one mistake there is nothing to see, above the top there is room for the legend.
    axes.set_ylim(1, lines.top * 1.6)
    axes.set_xlabel("round")


def _label_ends(axes: Axes, named: _Lines) -> None:
    """Name lines at their right ends, the names spread so that they do not overlap."""
    to_axes = axes.transData + axes.transAxes.inverted()
    labels = []
    for line in named.ours + named.published:
        color = "#777777" if line.title.startswith("published") else color_of(line.key)
        height = to_axes.transform((line.rounds[-1], max(line.mean[-1], 1e-9)))[1]
        labels.append((max(float(height), 0.0), line.title, color))
    labels.sort()
    # 0.056 of a panel's height is a line of text and a little air.
    places = style.spread([height for height, _, _ in labels], 0.056)
    for (height, text, color), place in zip(labels, places, strict=True):
        axes.plot([1.0, 1.03], [height, place], transform=axes.transAxes, color=color, linewidth=1.3, clip_on=False)
        axes.text(1.035, place, text, transform=axes.transAxes, va="center", fontsize=10)
