"""The figure of how loose Theorem 5 is; kept apart because it needs matplotlib."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from onebit.bounds.margin_transformation import sharper_margin, transformed_margin
from onebit.reporting.figures import looks, new_figure
from onebit.reporting.looks import PALETTE
from onebit.reporting.text import grouped
from onebit.theory.looseness import Looseness

_MARGIN = "log₂ of the strong margin\nafter the rational kernel"
_MEASURED, _SHARPER, _STATED = PALETTE[0], PALETTE[4], PALETTE[1]


def draw_looseness(rows: Sequence[Looseness]) -> Figure:
    """Return a figure of how far the margin guaranteed by Theorem 5 lies below the measured one.

    On the left the data sets by size, on the right by weak margin, where the guarantee is a curve.

    Parameters
    ----------
    rows : sequence of Looseness
        From `onebit.theory.measure_looseness`; all with the same number of classes.

    Examples
    --------
    >>> row = Looseness("wedges", 78, 3, 0.1125, -61.2, -43.0, 0.0729)
    >>> len(draw_looseness([row]).axes)
    2
    """
    if not rows or len({row.n_classes for row in rows}) != 1:
        raise ValueError(f"rows must be at least one and share their number of classes; got {list(rows)!r}")
    with looks():
        figure, (by_size, by_margin) = new_figure(2, 1, 7.6)
        by_margin.sharey(by_size)
        _draw_by_size(by_size, rows)
        _draw_by_margin(by_margin, rows)
        by_size.set_ylim(top=3)
        figure.legend(loc="outside lower center", ncols=2)
    return figure


def _draw_by_size(axes: Axes, rows: Sequence[Looseness]) -> None:
    sized = sorted((row for row in rows if row.data != "wedges"), key=lambda row: row.n_examples)
    # The wedges have no size to grow by: they stand beside the curve, not on it.
    others = [row for row in rows if row.data == "wedges"]
    for name, colour, label in [
        ("measured_log2", _MEASURED, "measured"),
        ("sharper_log2", _SHARPER, "proved, sharper constants"),
        ("guaranteed_log2", _STATED, "Theorem 5 as stated"),
    ]:
        axes.plot(
            [row.n_examples for row in sized], [getattr(row, name) for row in sized], "o-", color=colour, label=label
        )
        axes.plot(
            [row.n_examples for row in others], [getattr(row, name) for row in others], "D", color=colour, mfc="w"
        )
    axes.set_title("the bound falls with γ, the margin hardly", fontsize="medium")
    axes.set_xscale("log")
    # Sizes within one decade would get crowded labels of their own accord.
    axes.set_xticks([row.n_examples for row in sized], [grouped(row.n_examples) for row in sized])
    axes.minorticks_off()
    axes.set_xlabel("examples (●: first rounds of paper_weak,  ◇: wedges)")
    axes.set_ylabel(_MARGIN)


def _draw_by_margin(axes: Axes, rows: Sequence[Looseness]) -> None:
    K = rows[0].n_classes
    weak = np.array([row.weak for row in rows])
    # Enough points that the steps, where a ceiling of the theorem jumps, look upright.
    grid = np.geomspace(min(0.04, 0.8 * weak.min()), 1.0, 600)
    axes.plot(grid, [transformed_margin(K, g).log2 for g in grid], color=_STATED)
    axes.plot(grid, [sharper_margin(K, g).log2 for g in grid], color=_SHARPER)
    for row in rows:
        marker, fill = ("D", "w") if row.data == "wedges" else ("o", _MEASURED)
        axes.plot(row.weak, row.measured_log2, marker, color=_MEASURED, mfc=fill)
    axes.set_title("the bound as a function of γ, and the same data", fontsize="medium")
    axes.set_xscale("log")
    axes.set_xlabel(f"weak margin γ before the kernel (K = {K})")
    axes.set_ylabel(_MARGIN)
    ticks = [0.05, 0.1, 0.2, 0.5, 1.0]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
