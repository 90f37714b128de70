"""The theory's figures: Figure 2 of the paper, how loose Theorem 5 is, and how hard weak labelling is.

They are apart from the rest of the theory because they need matplotlib.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Patch

from onebit.inputs import Floats, check_integer
from onebit.reporting.figures import log_count_axis, looks, new_figure
from onebit.reporting.looks import INK, PALETTE
from onebit.reporting.text import grouped
from onebit.theory.polynomials import ChebyshevConstruction, HalfspacePolynomial, Halfspaces, RationalConstruction
from onebit.theory.weak_labeling import SolvingRow
from onebit.theory.weak_to_strong import Looseness

_PLUS, _MINUS = PALETTE[:2]
# Colours with their opacity, so that lines and names stand out.
_LEVELS = {
    "p ≤ −½": to_rgba(_MINUS, 0.5),
    "−½ < p < 0": to_rgba(_MINUS, 0.15),
    "0 < p < ½": to_rgba(_PLUS, 0.15),
    "p ≥ ½": to_rgba(_PLUS, 0.45),
}
_ANSWERS = {True: (PALETTE[0], "has a solution"), False: (PALETTE[1], "has none")}
_LINES = [
    ("measured_log2", PALETTE[0], "measured"),
    ("sharper_log2", PALETTE[4], "proved, sharper constants"),
    ("guaranteed_log2", PALETTE[1], "Theorem 5 as stated"),
]


def _figure_2_halfspaces() -> Halfspaces:
    """Return the two halfspaces of the paper's Figure 2: borders at 120° and 240°, margin √3/10."""
    # sin 60°, which turns the paper's borders at 120° and 240° into normals of length 1.
    height = math.sqrt(3.0) / 2.0
    return Halfspaces([[-height, -0.5], [-height, 0.5]], math.sqrt(3.0) / 10.0)


def draw_regions(polynomials: Sequence[HalfspacePolynomial] | None = None, *, resolution: int = 801) -> Figure:
    """Return a figure of R⁺ and R⁻ in the plane, with the values of polynomials that tell them apart behind them.

    There is a panel for each polynomial, of two variables; by default both constructions for the paper's Figure 2.
    """
    check_integer("resolution", resolution, low=2)
    if polynomials is None:
        polynomials = [ChebyshevConstruction(_figure_2_halfspaces()), RationalConstruction(_figure_2_halfspaces())]
    if not polynomials:
        raise ValueError(f"polynomials must hold at least one construction; got {polynomials!r}")
    for i, p in enumerate(polynomials):
        if not isinstance(p, HalfspacePolynomial) or p.halfspaces.n_variables != 2:
            raise ValueError(f"polynomials[{i}] must be a construction in 2 variables; got {p!r}")
    ticks = np.linspace(-1.0, 1.0, resolution)
    points = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    with looks():
        figure, panels = new_figure(1, len(polynomials), 4.6)
        for axes, p in zip(panels, polynomials, strict=True):
            _draw_values(axes, p, points)
            _draw_borders(axes, p.halfspaces, ticks, points)
            axes.set_title(f"{type(p).__name__.removesuffix('Construction')} construction, degree ≤ {p.degree_bound}")
            axes.set_aspect("equal")
            axes.set_axis_off()
        handles: list[Patch | Line2D] = [Patch(color=_LEVELS[name], label=name) for name in reversed(_LEVELS)]
        handles.append(Line2D([], [], color=INK, linewidth=2.2, label="R⁺ and R⁻"))
        handles.append(Line2D([], [], color=INK, linewidth=1.0, linestyle="--", label="⟨vᵢ, x⟩ = 0"))
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def _draw_values(axes: Axes, p: HalfspacePolynomial, points: Floats) -> None:
    inside = np.einsum("ij,ij->i", points, points) <= 1.0
    levels = np.full(len(points), np.nan)
    levels[inside] = np.digitize(p(points[inside]), [-0.5, 0.0, 0.5])
    image = axes.imshow(
        levels.reshape(math.isqrt(len(points)), -1),
        extent=(-1.0, 1.0, -1.0, 1.0),
        origin="lower",
        cmap=ListedColormap(list(_LEVELS.values())),
        vmin=-0.5,
        vmax=3.5,
        interpolation="nearest",
    )
    disc = Circle((0.0, 0.0), 1.0, fill=False, edgecolor="0.6")
    axes.add_patch(disc)
    image.set_clip_path(disc)


def _draw_borders(axes: Axes, halfspaces: Halfspaces, ticks: Floats, points: Floats) -> None:
    """Draw the regions' outlines and names and the halfspaces' borders."""
    # How deep a point lies in a region: its least distance to what bounds the region, the disc's edge included.
    lowest, margin = (points @ halfspaces.matrix.T).min(axis=1), float(halfspaces.margin)
    room = 1.0 - np.sqrt(np.einsum("ij,ij->i", points, points))
    for name, depths in (("$R^+$", np.minimum(lowest - margin, room)), ("$R^-$", np.minimum(-margin - lowest, room))):
        deepest = int(np.argmax(depths))
        if depths[deepest] > 0.0:
            axes.contour(ticks, ticks, depths.reshape(len(ticks), -1), levels=[0.0], colors=INK, linewidths=2.2)
            x, y = points[deepest].tolist()
            axes.text(x, y, name, ha="center", va="center", fontsize="xx-large", color=INK)
    # A direction of length 0 has no border.
    for v in halfspaces.matrix[halfspaces.matrix.any(axis=1)]:
        along = np.array([-v[1], v[0]]) / np.hypot(*v)
        axes.plot([-along[0], along[0]], [-along[1], along[1]], "--", color=INK, linewidth=1.0)
    axes.set_xlim(-1.03, 1.03)
    axes.set_ylim(-1.03, 1.03)


def draw_looseness(rows: Sequence[Looseness]) -> Figure:
    """Return a figure of how far the margin guaranteed by Theorem 5 lies below the measured one, by the data's size."""
    if not rows or len({row.n_classes for row in rows}) != 1:
        raise ValueError(f"rows must be at least one and share their number of classes; got {list(rows)!r}")
    sized = sorted((row for row in rows if row.data != "wedges"), key=lambda row: row.n_examples)
    # The wedges have no size to grow by: they stand beside the curve, not on it.
    others = [row for row in rows if row.data == "wedges"]
    sizes, other_sizes = [row.n_examples for row in sized], [row.n_examples for row in others]
    with looks():
        figure, (axes,) = new_figure(1, 1, 4.2)
        for name, colour, label in _LINES:
            axes.plot(sizes, [getattr(row, name) for row in sized], "o-", color=colour, label=label)
            axes.plot(other_sizes, [getattr(row, name) for row in others], "D", color=colour, mfc="w")
        axes.set_title("the bound falls with γ, the margin hardly", fontsize="medium")
        axes.set_xscale("log")
        # Sizes within one decade would get crowded labels of their own accord.
        axes.set_xticks(sizes, [grouped(size) for size in sizes])
        axes.minorticks_off()
        axes.set_ylim(top=3)
        axes.set_xlabel("examples (●: first rounds of paper_weak,  ◇: wedges)")
        axes.set_ylabel("log₂ of the strong margin\nafter the rational kernel")
        figure.legend(loc="outside lower center", ncols=2)
    return figure


def draw_solving_time(rows: Sequence[SolvingRow]) -> Figure:
    """Return a figure of the nodes and the seconds that the exact solver takes, by the size of the problem."""
    if not rows or not all(isinstance(row, SolvingRow) for row in rows):
        raise ValueError(f"rows must be what measure_solving returns, at least one; got {rows!r}")
    with looks():
        figure, (nodes, seconds) = new_figure(1, 2, 3.6)
        _draw_work(nodes, rows, lambda row: float(row.n_nodes), "nodes searched")
        _draw_work(seconds, rows, lambda row: row.seconds, "seconds")
        handles = [Line2D([], [], color=c, marker="o", linestyle="", label=label) for c, label in _ANSWERS.values()]
        handles.append(Line2D([], [], color=INK, label="median"))
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def _draw_work(axes: Axes, rows: Sequence[SolvingRow], value: Callable[[SolvingRow], float], name: str) -> None:
    sizes = sorted({row.n_elements for row in rows})
    axes.plot(sizes, [np.median([value(row) for row in rows if row.n_elements == size]) for size in sizes], color=INK)
    for answer, (colour, _) in _ANSWERS.items():
        some = [row for row in rows if row.is_splittable == answer]
        axes.plot([row.n_elements for row in some], [value(row) for row in some], "o", color=colour, ms=4, alpha=0.75)
    # Exponential growth is a line on this axis.
    axes.set_yscale("log")
    log_count_axis(axes.yaxis)
    axes.set_xticks(sizes)
    axes.set_xlabel("elements to split")
    axes.set_ylabel(name)
