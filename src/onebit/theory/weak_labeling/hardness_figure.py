"""The figure of how the exact solver's work grows; kept apart because it needs matplotlib."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from onebit.reporting.figures import log_count_axis, looks, new_figure
from onebit.reporting.looks import INK, PALETTE
from onebit.theory.weak_labeling.hardness import SolvingRow

_SOLVABLE, _UNSOLVABLE = PALETTE[:2]


def draw_solving_time(rows: Sequence[SolvingRow]) -> Figure:
    """Return a figure of the nodes and the seconds that the exact solver takes, by the size of the problem.

    Parameters
    ----------
    rows : sequence of SolvingRow
        From `onebit.theory.weak_labeling.measure_solving`.

    Examples
    --------
    >>> len(draw_solving_time([SolvingRow(4, 16, 0, True, 7, 0.01)]).axes)
    2
    """
    if not rows or not all(isinstance(row, SolvingRow) for row in rows):
        raise ValueError(f"rows must be what measure_solving returns, at least one; got {rows!r}")
    with looks():
        figure, (nodes, seconds) = new_figure(1, 2, 3.6)
        _draw_by_size(nodes, rows, lambda row: float(row.n_nodes), "nodes searched")
        _draw_by_size(seconds, rows, lambda row: row.seconds, "seconds")
        handles = [
            Line2D([], [], color=_SOLVABLE, marker="o", linestyle="", label="has a solution"),
            Line2D([], [], color=_UNSOLVABLE, marker="o", linestyle="", label="has none"),
            Line2D([], [], color=INK, label="median"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def _draw_by_size(axes: Axes, rows: Sequence[SolvingRow], value: Callable[[SolvingRow], float], name: str) -> None:
    sizes = sorted({row.n_elements for row in rows})
    medians = [float(np.median([value(row) for row in rows if row.n_elements == size])) for size in sizes]
    axes.plot(sizes, medians, color=INK)
    for answer, colour in ((True, _SOLVABLE), (False, _UNSOLVABLE)):
        some = [row for row in rows if row.is_splittable == answer]
        axes.plot([row.n_elements for row in some], [value(row) for row in some], "o", color=colour, ms=4, alpha=0.75)
    # Exponential growth is a line on this axis.
    axes.set_yscale("log")
    log_count_axis(axes.yaxis)
    axes.set_xticks(sizes)
    axes.set_xlabel("elements to split")
    axes.set_ylabel(name)
