"""Figures 4 and 5 of the paper: mean cumulative mistakes against rounds, on the strong and on the weak set.

Each comes twice: as 4a with linear axes like the paper's, and as 4b with logarithmic ones, where all learners can be
seen at once. A third figure shows the weak set at a glance: one line of each kind.
"""

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from onebit.experiments.compare_figures import shown
from onebit.experiments.comparison import Outcome
from onebit.experiments.entries import Entry
from onebit.experiments.reproduce.contestants import DATASETS, contestants
from onebit.experiments.reproduce.published import published_curves, published_learner
from onebit.inputs import Floats
from onebit.reporting import style
from onebit.reporting.learner_looks import Look, looks_of
from onebit.reporting.tables import grouped

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
PUBLISHED_COLOR = "#BDBDBD"
GLANCE = "weak_set_mistakes"
"""The name of the figure at a glance; the README has it."""
# The order of the labels is that of the ends; Banditron is shown by its best rate.
_AT_A_GLANCE = ("algorithm-1", "algorithm-2", "multiclass-perceptron", "bandit-svm")
_BANDITRON = "banditron-"
_LABEL_GAP = 0.135  # two lines of text, as a share of the panel's height


class _Line(NamedTuple):
    """One line of a figure, ours or the paper's."""

    who: Entry
    rounds: Floats
    mean: Floats
    error: Floats
    look: Look | None = None
    """None for a published line, which is grey."""

    @property
    def top(self) -> float:
        return float(np.nansum([self.mean[-1], self.error[-1]]))


class _Lines(NamedTuple):
    """All lines of a figure."""

    ours: list[_Line]
    published: list[_Line]

    def low(self, dataset: str) -> "_Lines":
        """Return those that the enlarged panel is for."""
        ours, published = ([line for line in lines if line.who.key in _LOW[dataset]] for lines in self)
        return _Lines(ours, published)

    @property
    def top(self) -> float:
        return max([line.top for lines in self for line in lines] + [1.0])


def name(dataset: str, is_log: bool) -> str:
    """Return the figure's name: the paper's number, and a letter for the version.

    >>> name("strong", False), name("strong", True)
    ('figure_4a', 'figure_4b')
    """
    return f"figure_{NUMBERS[dataset]}{'b' if is_log else 'a'}"


def title(dataset: str, is_log: bool) -> str:
    """Return the heading of the figure."""
    axes = "logarithmic axes" if is_log else "linear axes, as in the paper"
    number = name(dataset, is_log).removeprefix("figure_")
    return f"Figure {number}: mistakes on the {DATASETS[dataset]} set, {axes}"


def caption(outcomes: list[Outcome], dataset: str, is_log: bool) -> str:
    """Return two sentences with the numbers of this experiment."""
    mine = [outcome for outcome in outcomes if outcome.dataset == dataset]
    drawn = style.what_lines_are(len(mine[0].mistakes))
    if _lines(outcomes, dataset, is_log).published:
        drawn += "; grey lines are the paper's"
    if is_log:
        return f"Each line is {drawn}. A line that has become flat belongs to a learner that makes no more mistakes."
    ends = [(outcome.mean, outcome.entry) for outcome in mine]
    banditrons = [(end, who.title) for end, who in ends if who.key.startswith("banditron-")]
    ends_by_player = [
        f"{grouped(end)} by {who.title}" for end, who in ends if who.key in ("algorithm-1", "algorithm-2")
    ]
    ends_by_player += [
        f"{grouped(end)} by the best Banditron ({name.partition(', ')[2]})" for end, name in sorted(banditrons)[:1]
    ]
    return (
        f"Each line is {drawn}, and the lower panel enlarges the bottom of the upper one. "
        f"Mistakes after {grouped(mine[0].rounds[-1])} rounds: {', '.join(ends_by_player)}."
    )


def draw(outcomes: list[Outcome], dataset: str, is_log: bool) -> Figure:
    """Draw the mistakes of all entries on a data set, beside the published curves.

    The linear figure has two panels: the paper's own range, in which the best learners look like zero, and below it the
    bottom of that plot, enlarged until they can. The legend has the order in which the lines end; the published curves
    are grey, behind ours. Bands are ± 1 standard error.
    """
    lines = _lines(outcomes, dataset, is_log)
    with style.looks():
        if is_log:
            figure, panels = style.new_figure(1, 1, 7.2)
            _plot(panels[0], lines)
            _log_axes(panels[0], lines)
        else:
            figure, panels = style.new_figure(2, 1, 9.2)
            for axes, top, heading in (
                (panels[0], lines.top, "all learners"),
                (panels[1], lines.low(dataset).top, "the same, enlarged near zero"),
            ):
                _plot(axes, lines)
                _linear_axes(axes, lines, top)
                axes.set_title(heading, loc="left")
        figure.legend(
            handles=_legend(lines, dataset), loc="outside lower left", ncols=2, columnspacing=1.0, fontsize=10
        )
    return figure


def _legend(lines: _Lines, dataset: str) -> list[Line2D]:
    """Return the handles, from the line that ends highest to the one that ends lowest."""
    handles = [
        Line2D([], [], color=line.look.color, linestyle=line.look.dashes, label=line.who.shown)
        for line in sorted(lines.ours, key=lambda line: -line.mean[-1])
        if line.look is not None
    ]
    if lines.published:
        handles.append(Line2D([], [], color=PUBLISHED_COLOR, linewidth=3.2, label=_published_title(dataset)))
    return handles


def glance_title(dataset: str) -> str:
    """Return the heading of the figure at a glance."""
    return f"At a glance: mistakes on the {DATASETS[dataset]} set"


def glance_caption(outcomes: list[Outcome], dataset: str) -> str:
    """Return two sentences about the figure at a glance."""
    mine = [outcome for outcome in outcomes if outcome.dataset == dataset]
    return (
        f"Each line is {style.what_lines_are(len(mine[0].mistakes))}, both axes are logarithmic, and of Banditron's "
        "rates the one with the fewest mistakes is shown. Figures 4 and 5 have everyone, beside the paper's own curves."
    )


def draw_glance(outcomes: list[Outcome], dataset: str) -> Figure:
    """Draw one line of each kind, with its name and its mistakes where it ends."""
    everyone = _lines(outcomes, dataset, is_log=True).ours
    banditrons = [line for line in everyone if line.who.key.startswith(_BANDITRON)]
    best = sorted(banditrons, key=lambda line: float(line.mean[-1]))[:1]
    lines = _Lines([line for line in everyone if line.who.key in _AT_A_GLANCE] + best, [])
    with style.looks():
        figure, (axes,) = style.new_figure(1, 1, 4.6)
        _plot(axes, lines)
        _log_axes(axes, lines)
        _label_ends(axes, lines.ours)
    return figure


def _label_ends(axes: Axes, lines: list[_Line]) -> None:
    """Name lines right of their ends: with a piece of the line, at its height or as near to it as there is room."""
    to_axes = axes.transData + axes.transAxes.inverted()
    lines = sorted(lines, key=lambda line: float(line.mean[-1]))
    ends = [float(to_axes.transform((line.rounds[-1], max(line.mean[-1], 1.0)))[1]) for line in lines]
    for line, place in zip(lines, style.spread(ends, _LABEL_GAP), strict=True):
        assert line.look is not None
        axes.plot(
            [1.015, 1.065],
            [place, place],
            transform=axes.transAxes,
            color=line.look.color,
            linestyle=line.look.dashes,
            clip_on=False,
        )
        prefix, end = "told the label: " if line.who.full_information else "", float(line.mean[-1])
        text = f"{line.who.title}\n{prefix}{grouped(end, 1 if end < 10 else 0)} mistakes"
        axes.text(1.08, place, text, transform=axes.transAxes, va="center", fontsize=11, linespacing=1.1)


def _published_title(dataset: str) -> str:
    return f"published (paper, Fig. {NUMBERS[dataset]})"


def _lines(outcomes: list[Outcome], dataset: str, is_log: bool) -> _Lines:
    lines = _Lines([], [])
    drawn = set()
    # Of all contestants, whether they play or not: a shorter list must not change anyone's dashes.
    looks = looks_of(shown(entry) for entry in [*contestants(), *(outcome.entry for outcome in outcomes)])
    for outcome in outcomes:
        if outcome.dataset != dataset:
            continue
        who, last = outcome.entry, float(outcome.rounds[-1])
        # A linear plot begins at zero mistakes in round zero, which a logarithmic one cannot show.
        curves = np.array([outcome.rounds, outcome.means, outcome.errors])
        rounds, mean, error = curves if is_log else np.insert(curves, 0, 0.0, axis=1)
        lines.ours.append(_Line(who, rounds, mean, error, looks[who.title]))
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
            lines.published.append(_Line(who, xs, ys, np.zeros(len(xs))))
    return lines


def _plot(axes: Axes, lines: _Lines) -> None:
    for line in lines.published:
        axes.plot(line.rounds, line.mean, color=PUBLISHED_COLOR, linewidth=3.2, zorder=2)
    for line in lines.ours:
        assert line.look is not None
        style.draw_mean(axes, line.rounds, line.mean, line.error, line.look.color, line.look.dashes)
    axes.set_xlabel("round")
    axes.set_ylabel("mean cumulative mistakes")


def _linear_axes(axes: Axes, lines: _Lines, top: float) -> None:
    axes.set_xlim(0, max(line.rounds[-1] for line in lines.ours))
    axes.set_ylim(0, top * 1.06)
    style.count_axis(axes.xaxis, most_ticks=3)
    style.count_axis(axes.yaxis)


def _log_axes(axes: Axes, lines: _Lines) -> None:
    last = max(line.rounds[-1] for line in lines.ours)
    axes.set_xscale("log")
    axes.set_yscale("log", nonpositive="clip")
    axes.set_xlim(min(10.0, last / 10), last)
    # Below one mistake there is nothing to see.
    axes.set_ylim(1, lines.top * 1.6)
    style.log_count_axis(axes.xaxis, every=2)
    style.log_count_axis(axes.yaxis)
