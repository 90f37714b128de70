"""The figures of a duel; separate from the table because they need matplotlib."""

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from onebit.experiments.duels import DuelRow, short_name
from onebit.reporting.figures import log_count_axis, looks, new_figure
from onebit.reporting.looks import INK, Look, Shown, looks_of
from onebit.reporting.text import grouped

# Not a learner's colour: what is promised lies far above what is played, and should recede.
_FREE = "#8C8C8C"
_DASHES = (0, (4, 3))
# Panels whose numbers differ by a larger factor get a logarithmic axis: on a linear one the small ones fall together.
_WIDE = 30.0
_NAME = 32  # letters in a line of a learner's name


def draw_duel(rows: Sequence[DuelRow]) -> Figure:
    r"""Return a figure with a panel for each adversary: every learner's mistakes beside the lower bound.

    Filled points are learners that the theorem covers, open ones those it does not. Bars are ± 1 standard error.
    Colours are the learners', as in every figure.

    >>> from onebit.streams.adversaries import one_example_sequence
    >>> row = DuelRow(one_example_sequence(5, 0.5).challenge, "UniformGuess()", 20, 4.0, 0.3, True, None)
    >>> draw_duel([row]).axes[0].get_title()
    'Remark:\nbandit\nlearners\nK = 5\nd = 1\nR/γ = 2\n5 rounds'
    """
    _check(rows)
    names = {row.learner: _on_lines(short_name(row.learner)) for row in rows}
    # As high as their names are, and half a line of air.
    sizes = np.array([0.5 + len(name.splitlines()) for name in names.values()])
    heights = dict(zip(names, (np.cumsum(sizes) - sizes / 2.0).tolist(), strict=True))
    games = list(dict.fromkeys(_title(row) for row in rows))
    with looks():
        figure, panels = new_figure(1, len(games), 2.4 + 0.17 * float(sizes.sum()))
        for axes, game in zip(panels, games, strict=True):
            _draw_game(axes, [row for row in rows if _title(row) == game], heights)
            axes.set_title(game, fontsize=10)
            axes.set_yticks(list(heights.values()), [])
            axes.set_ylim(float(sizes.sum()), 0.0)
        panels[0].set_yticks(list(heights.values()), list(names.values()), fontsize=10)
        figure.legend(handles=_duel_legend(), loc="outside lower center", ncols=2)
    return figure


def _on_lines(name: str) -> str:
    """Break a name between its settings, where it is long; never within a word."""
    return "\n".join(textwrap.wrap(name, _NAME, break_long_words=False, break_on_hyphens=False))


def draw_growth(rows: Sequence[DuelRow]) -> Figure:
    """Return a figure of mistakes against the number of features, for Theorem 24's adversary at one margin.

    >>> from onebit.streams.adversaries import IgnorantAdversary, pack_directions
    >>> challenge = IgnorantAdversary(pack_directions(0.001, 8)).challenge
    >>> row = DuelRow(challenge, "UniformGuess()", 20, 122.0, 1.1, True, None)
    >>> draw_growth([row]).axes[0].get_yscale()
    'log'
    """
    _check(rows)
    if len({(row.challenge.name, row.challenge.margin) for row in rows}) != 1:
        raise ValueError("rows must be of one adversary and one margin; pass what duel_by_dimension returns")
    challenge = rows[0].challenge
    with looks():
        figure, (axes,) = new_figure(1, 1, 6.4)
        for learner, look in _looks(rows).items():
            mine = sorted((row for row in rows if row.learner == learner), key=lambda row: row.challenge.n_features)
            _draw_learner(axes, mine, look)
        _draw_growth_bounds(axes, rows)
        axes.set_yscale("log")
        # The stated bound starts at 0.1, in two dimensions.
        axes.set_ylim(bottom=0.05)
        log_count_axis(axes.yaxis)
        axes.set_xticks(sorted({row.challenge.n_features for row in rows}))
        axes.set_xlabel("features d")
        axes.set_ylabel("mistakes")
        axes.set_title(f"{challenge.name}: mistakes at a margin of {challenge.margin:g}")
        figure.legend(loc="outside lower left", ncols=1)
    return figure


def _looks(rows: Sequence[DuelRow]) -> Mapping[str, Look]:
    found = looks_of(Shown(row.learner, row.learner, row.full_information) for row in rows)
    return {row.learner: found[row.learner] for row in rows}


def _draw_learner(axes: Axes, rows: Sequence[DuelRow], look: Look) -> None:
    axes.errorbar(
        [row.challenge.n_features for row in rows],
        [row.mean for row in rows],
        [row.standard_error for row in rows],
        marker=look.marker,
        color=look.color,
        linestyle=look.dashes,
        mfc=look.fill,
        markersize=5,
        label=short_name(rows[0].learner),
    )


def _draw_growth_bounds(axes: Axes, rows: Sequence[DuelRow]) -> None:
    for name, style, label in [
        ("sharp_lower_bound", "--", "forced on ignorant learners by this adversary"),
        ("lower_bound", ":", "forced on ignorant learners, as stated"),
    ]:
        bounds = sorted({(row.challenge.n_features, getattr(row, name)) for row in rows if row.is_bound})
        if bounds:
            axes.plot(*zip(*bounds, strict=True), style, color=INK, label=label)
    # A promise that depends on d is Theorem 21's, far above everything that can be played.
    flat: dict[float, str] = {}
    if len({row.challenge.n_features for row in rows}) == 1:  # then nothing can be seen to depend on d, or not to
        return
    for learner in dict.fromkeys(row.learner for row in rows):
        promised = {row.upper_bound for row in rows if row.learner == learner}
        value = promised.pop()
        if value is not None and not promised:
            flat.setdefault(value, learner)
    for value, learner in flat.items():
        axes.axhline(value, linestyle="-.", color=_FREE, label=f"promised by {short_name(learner)}, in any dimension")


def _draw_game(axes: Axes, rows: Sequence[DuelRow], heights: Mapping[str, float]) -> None:
    found = _looks(rows)
    for row in rows:
        color = found[row.learner].color
        height, fill = heights[row.learner], color if row.is_bound else "w"
        axes.errorbar([row.mean], [height], xerr=[row.standard_error], fmt="o", color=color, mfc=fill, capsize=2)
    bounds = [
        (row.lower_bound, row.sharp_lower_bound)
        for row in rows
        if row.lower_bound is not None and row.sharp_lower_bound is not None
    ]
    # The rows of one game share its bounds.
    for stated, sharp in bounds[:1]:
        axes.axvline(stated, color=INK, linewidth=1.6, zorder=1)
        if sharp > stated:
            axes.axvline(sharp, color=INK, linewidth=1.4, linestyle=_DASHES, zorder=1)
    values = [row.mean for row in rows] + [value for pair in bounds for value in pair]
    if 0.0 < _WIDE * min(values) < max(values):
        axes.set_xscale("log")
        axes.set_xlim(min(values) / 1.6, max(values) * 1.6)
        log_count_axis(axes.xaxis)
        axes.minorticks_off()
    else:
        axes.set_xlim(0.0, 1.15 * max(values))
        axes.xaxis.set_major_locator(MaxNLocator(2, steps=[1, 2, 2.5, 5, 10]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}" if value % 1 else grouped(value)))
    axes.set_xlabel("mistakes", fontsize=10)
    axes.tick_params(axis="x", labelsize=10)
    axes.tick_params(axis="y", length=0)


def _duel_legend() -> list[Line2D]:
    return [
        Line2D([], [], color=INK, linewidth=1.6, label="lower bound as stated"),
        Line2D([], [], color=INK, linewidth=1.4, linestyle=_DASHES, label="what the construction forces"),
        Line2D([], [], color=INK, marker="o", linestyle="", label="learners it binds"),
        Line2D([], [], color=INK, marker="o", mfc="w", linestyle="", label="other learners"),
    ]


def _title(row: DuelRow) -> str:
    it = row.challenge
    binds = it.stated.binds.replace(" ", "\n")
    size = f"K = {it.n_classes}\nd = {it.n_features}\nR/γ = {grouped(it.radius / it.margin)}"
    return f"{it.name}:\n{binds}\n{size}\n{grouped(it.rounds)} rounds"


def _check(rows: Sequence[DuelRow]) -> None:
    if not rows:
        raise ValueError("rows must hold at least one game; pass what duel or duel_by_dimension returns")
