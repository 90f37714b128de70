"""The pictures of a duel; kept apart because they need matplotlib."""

import re
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import StrMethodFormatter

from onebit.duels.duel import DuelRow

_BOUND, _FREE, _LOWER, _INK = "#0072B2", "#8C8C8C", "#D55E00", "#222222"
_DASHES = (0, (4, 3))
_COLORS = ("#D55E00", "#0072B2", "#56B4E9", "#009E73", "#CC79A7", "#E69F00")
_MARKERS = "os^Dvp"
_WIDE = 30.0
"""Panels whose numbers differ by a larger factor get a logarithmic axis."""


def draw_duel(rows: Sequence[DuelRow]) -> Figure:
    r"""Return a figure with a panel for each adversary: every learner's mistakes beside the lower bound.

    Filled points are learners that the theorem speaks of, open ones those it does not. Bars are ± 1 standard error.

    Parameters
    ----------
    rows : sequence of DuelRow
        From `onebit.duels.duel.duel`.

    Examples
    --------
    >>> row = DuelRow("Remark", "bandit learners", 5, 1, 1.0, 0.5, 5, "UniformGuess()", 20, 4.0, 0.3, 2.0, 2.0, None)
    >>> draw_duel([row]).axes[0].get_title()
    'Remark: bandit learners\nK = 5, d = 1, R/γ = 2, 5 rounds'
    """
    _check(rows)
    learners = list(dict.fromkeys(row.learner for row in rows))
    games = list(dict.fromkeys(_game(row) for row in rows))
    figure = Figure(figsize=(4.2 + 2.8 * len(games), 2.0 + 0.3 * len(learners)), layout="constrained")
    panels = figure.subplots(1, len(games), sharey=True, squeeze=False)[0]
    for axes, game in zip(panels, games, strict=True):
        _draw_game(axes, [row for row in rows if _game(row) == game], learners)
        axes.set_title(game, fontsize="medium")
    panels[0].set_yticks(range(len(learners)), [_shorten(name) for name in learners])
    panels[0].set_ylim(len(learners) - 0.4, -0.6)
    figure.legend(handles=_duel_legend(), loc="outside lower center", ncols=4, frameon=False)
    return figure


def draw_growth(rows: Sequence[DuelRow]) -> Figure:
    """Return a figure of mistakes against the number of features, for Theorem 24's adversary at one margin.

    Parameters
    ----------
    rows : sequence of DuelRow
        From `onebit.duels.duel.duel_by_dimension`.

    Examples
    --------
    >>> binds = "ignorant learners"
    >>> row = DuelRow("Theorem 24", binds, 2, 8, 1.0, 0.001, 244, "UniformGuess()", 20, 122.0, 1.1, 1.6, 14.6, None)
    >>> draw_growth([row]).axes[0].get_yscale()
    'log'
    """
    _check(rows)
    if len({(row.adversary, row.margin) for row in rows}) != 1:
        raise ValueError("rows must be of one adversary and one margin; pass what duel_by_dimension returns")
    figure = Figure(figsize=(8.4, 6.0), layout="constrained")
    axes = figure.subplots()
    for i, learner in enumerate(dict.fromkeys(row.learner for row in rows)):
        mine = sorted((row for row in rows if row.learner == learner), key=lambda row: row.n_features)
        _draw_learner(axes, mine, _COLORS[i % len(_COLORS)], _MARKERS[i % len(_MARKERS)])
    _draw_growth_bounds(axes, rows)
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.05)
    axes.set_xticks(sorted({row.n_features for row in rows}))
    axes.set_xlabel("features d")
    axes.set_ylabel("mistakes")
    axes.set_title(f"{rows[0].adversary}: mistakes at a margin of {rows[0].margin:g}", fontsize="medium")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    _tidy(axes)
    return figure


def _draw_learner(axes: Axes, rows: Sequence[DuelRow], color: str, marker: str) -> None:
    dimensions = [row.n_features for row in rows]
    means, errors = [row.mean for row in rows], [row.standard_error for row in rows]
    name = _shorten(rows[0].learner)
    axes.errorbar(dimensions, means, errors, fmt=f"{marker}-", color=color, markersize=5, linewidth=1.6, label=name)


def _draw_growth_bounds(axes: Axes, rows: Sequence[DuelRow]) -> None:
    for name, style, label in [
        ("sharp_lower_bound", "--", "forced on ignorant learners by this adversary"),
        ("lower_bound", ":", "forced on ignorant learners, as stated"),
    ]:
        bounds = sorted({(row.n_features, getattr(row, name)) for row in rows if row.lower_bound is not None})
        if bounds:
            axes.plot(*zip(*bounds, strict=True), style, color=_INK, label=label)
    # A promise that depends on d is Theorem 21's, far above everything that can be played.
    flat: dict[float, str] = {}
    for learner in dict.fromkeys(row.learner for row in rows):
        promised = {row.upper_bound for row in rows if row.learner == learner}
        value = promised.pop()
        if value is not None and not promised:
            flat.setdefault(value, learner)
    for value, learner in flat.items():
        axes.axhline(value, linestyle="-.", color=_FREE, label=f"promised by {_shorten(learner)}, in any dimension")


def _draw_game(axes: Axes, rows: Sequence[DuelRow], learners: list[str]) -> None:
    for row in rows:
        color, fill = (_FREE, "w") if row.lower_bound is None else (_BOUND, _BOUND)
        height = learners.index(row.learner)
        axes.errorbar([row.mean], [height], xerr=[row.standard_error], fmt="o", color=color, mfc=fill, capsize=2)
    bounds = [
        (row.lower_bound, row.sharp_lower_bound)
        for row in rows
        if row.lower_bound is not None and row.sharp_lower_bound is not None
    ]
    for stated, sharp in bounds[:1]:
        axes.axvline(stated, color=_LOWER, linewidth=1.6, zorder=1)
        if sharp > stated:
            axes.axvline(sharp, color=_LOWER, linewidth=1.4, linestyle=_DASHES, zorder=1)
    values = [row.mean for row in rows] + [value for pair in bounds for value in pair]
    if 0.0 < _WIDE * min(values) < max(values):
        axes.set_xscale("log")
        axes.set_xlim(min(values) / 1.6, max(values) * 1.6)
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    else:
        axes.set_xlim(0.0, 1.15 * max(values))
    axes.set_xlabel("mistakes")
    axes.tick_params(axis="y", length=0)
    _tidy(axes)


def _duel_legend() -> list[Line2D]:
    return [
        Line2D([], [], color=_LOWER, linewidth=1.6, label="lower bound as stated"),
        Line2D([], [], color=_LOWER, linewidth=1.4, linestyle=_DASHES, label="what the construction forces"),
        Line2D([], [], color=_BOUND, marker="o", linestyle="", label="learners it binds"),
        Line2D([], [], color=_FREE, marker="o", mfc="w", linestyle="", label="other learners"),
    ]


def _game(row: DuelRow) -> str:
    size = f"K = {row.n_classes}, d = {row.n_features}, R/γ = {row.radius / row.margin:g}, {row.rounds} rounds"
    return f"{row.adversary}: {row.binds}\n{size}"


def _shorten(learner: str) -> str:
    """Return a learner's settings without the names of arguments that speak for themselves.

    >>> _shorten("BanditPerceptron(kernel=Rational(normalize=True), ties='random')")
    "BanditPerceptron(Rational, ties='random')"
    """
    short = re.sub(r",? ?normalize=(True|False)", "", learner)
    return re.sub(r"(kernel|exploration|degree|width)=", "", short).replace("()", "")


def _tidy(axes: Axes) -> None:
    axes.grid(color="0.92")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _check(rows: Sequence[DuelRow]) -> None:
    if not rows:
        raise ValueError("rows must hold at least one game; pass what duel or duel_by_dimension returns")
