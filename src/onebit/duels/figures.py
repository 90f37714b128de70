"""The pictures of a duel; kept apart from the table because they need matplotlib."""

import re
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import StrMethodFormatter

from onebit.duels.table import DuelRow
from onebit.reporting.style import INK, MARKERS, PALETTE, looks, new_figure

_BOUND, _LOWER = PALETTE[:2]
# Not a colour of the palette: what no theorem speaks of should recede.
_FREE = "#8C8C8C"
_DASHES = (0, (4, 3))
# Panels whose numbers differ by a larger factor get a logarithmic axis: on a linear one the small ones fall together.
_WIDE = 30.0


def draw_duel(rows: Sequence[DuelRow]) -> Figure:
    r"""Return a figure with a panel for each adversary: every learner's mistakes beside the lower bound.

    Filled points are learners that the theorem speaks of, open ones those it does not. Bars are ± 1 standard error.

    Parameters
    ----------
    rows : sequence of DuelRow
        From `onebit.duels.duel.duel`.

    Examples
    --------
    >>> from onebit.streams.adversaries import one_example_sequence
    >>> row = DuelRow(one_example_sequence(5, 0.5).challenge, "UniformGuess()", 20, 4.0, 0.3, True, None)
    >>> draw_duel([row]).axes[0].get_title()
    'Remark: bandit learners\nK = 5, d = 1, R/γ = 2, 5 rounds'
    """
    _check(rows)
    learners = list(dict.fromkeys(row.learner for row in rows))
    games = list(dict.fromkeys(_title(row) for row in rows))
    with looks():
        figure, panels = new_figure(1, len(games), 4.4 + 3.3 * len(games), 2.0 + 0.3 * len(learners))
        for axes, game in zip(panels, games, strict=True):
            _draw_game(axes, [row for row in rows if _title(row) == game], learners)
            axes.set_title(game, fontsize="medium")
            axes.set_yticks(range(len(learners)), [])
            axes.set_ylim(len(learners) - 0.4, -0.6)
        panels[0].set_yticks(range(len(learners)), [_shorten(name) for name in learners])
        figure.legend(handles=_duel_legend(), loc="outside lower center", ncols=4)
    return figure


def draw_growth(rows: Sequence[DuelRow]) -> Figure:
    """Return a figure of mistakes against the number of features, for Theorem 24's adversary at one margin.

    Parameters
    ----------
    rows : sequence of DuelRow
        From `onebit.duels.duel.duel_by_dimension`.

    Examples
    --------
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
        figure, (axes,) = new_figure(1, 1, 8.4, 6.0)
        for i, learner in enumerate(dict.fromkeys(row.learner for row in rows)):
            mine = sorted((row for row in rows if row.learner == learner), key=lambda row: row.challenge.n_features)
            _draw_learner(axes, mine, PALETTE[i % len(PALETTE)], MARKERS[i % len(MARKERS)])
        _draw_growth_bounds(axes, rows)
        axes.set_yscale("log")
        # The stated bound starts at 0.1, in two dimensions.
        axes.set_ylim(bottom=0.05)
        axes.set_xticks(sorted({row.challenge.n_features for row in rows}))
        axes.set_xlabel("features d")
        axes.set_ylabel("mistakes")
        axes.set_title(f"{challenge.name}: mistakes at a margin of {challenge.margin:g}")
        figure.legend(loc="outside lower center", ncols=2, fontsize="small")
    return figure


def _draw_learner(axes: Axes, rows: Sequence[DuelRow], color: str, marker: str) -> None:
    dimensions = [row.challenge.n_features for row in rows]
    means, errors = [row.mean for row in rows], [row.standard_error for row in rows]
    name = _shorten(rows[0].learner)
    axes.errorbar(dimensions, means, errors, fmt=f"{marker}-", color=color, markersize=5, linewidth=1.6, label=name)


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
        axes.axhline(value, linestyle="-.", color=_FREE, label=f"promised by {_shorten(learner)}, in any dimension")


def _draw_game(axes: Axes, rows: Sequence[DuelRow], learners: list[str]) -> None:
    for row in rows:
        color, fill = (_BOUND, _BOUND) if row.is_bound else (_FREE, "w")
        height = learners.index(row.learner)
        axes.errorbar([row.mean], [height], xerr=[row.standard_error], fmt="o", color=color, mfc=fill, capsize=2)
    bounds = [
        (row.lower_bound, row.sharp_lower_bound)
        for row in rows
        if row.lower_bound is not None and row.sharp_lower_bound is not None
    ]
    # The rows of one game share its bounds.
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


def _duel_legend() -> list[Line2D]:
    return [
        Line2D([], [], color=_LOWER, linewidth=1.6, label="lower bound as stated"),
        Line2D([], [], color=_LOWER, linewidth=1.4, linestyle=_DASHES, label="what the construction forces"),
        Line2D([], [], color=_BOUND, marker="o", linestyle="", label="learners it binds"),
        Line2D([], [], color=_FREE, marker="o", mfc="w", linestyle="", label="other learners"),
    ]


def _title(row: DuelRow) -> str:
    it = row.challenge
    size = f"K = {it.n_classes}, d = {it.n_features}, R/γ = {it.radius / it.margin:g}, {it.rounds} rounds"
    return f"{it.name}: {it.stated.binds}\n{size}"


def _shorten(learner: str) -> str:
    """Return a learner's settings without the names of arguments that speak for themselves.

    >>> _shorten("BanditPerceptron(kernel=Rational(normalize=True), ties='random')")
    "BanditPerceptron(Rational, ties='random')"
    """
    short = re.sub(r",? ?normalize=(True|False)", "", learner)
    return re.sub(r"(kernel|exploration|degree|width)=", "", short).replace("()", "")


def _check(rows: Sequence[DuelRow]) -> None:
    if not rows:
        raise ValueError("rows must hold at least one game; pass what duel or duel_by_dimension returns")
