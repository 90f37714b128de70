"""Figures of the theory: the paper's Figure 2, and how the weak labelling solver's work grows.

The only module for these that needs matplotlib.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Patch

from onebit.inputs import Floats, check_integer
from onebit.theory.polynomials import ChebyshevConstruction, Halfspaces, RationalConstruction
from onebit.theory.polynomials.halfspaces import HalfspacePolynomial
from onebit.theory.weak_labeling.hardness import SolvingRow

_LEVELS = {"p ≤ −½": "#f4b183", "−½ < p < 0": "#fbe5d6", "0 < p < ½": "#deebf7", "p ≥ ½": "#9dc3e6"}
_INK = "#222222"
_SOLVABLE, _UNSOLVABLE = "#2e75b6", "#c55a11"


def figure_2_halfspaces() -> Halfspaces:
    """Return the two halfspaces of the paper's Figure 2: borders at 120° and 240°, margin √3/10.

    Examples
    --------
    >>> figure_2_halfspaces().sides([[-0.5, 0.0], [0.5, 0.0], [0.0, 0.0]]).tolist()
    [1, -1, 0]
    """
    height = math.sqrt(3.0) / 2.0
    return Halfspaces([[-height, -0.5], [-height, 0.5]], math.sqrt(3.0) / 10.0)


def draw_regions(polynomials: Sequence[HalfspacePolynomial] | None = None, *, resolution: int = 801) -> Figure:
    """Return a figure of R⁺ and R⁻ in the plane, with the values of polynomials that tell them apart behind them.

    Parameters
    ----------
    polynomials : sequence of constructions, optional
        Each in two variables, one panel for each; by default both constructions for the paper's Figure 2.
    resolution : int
        Pixels across the unit disc, at least 2.

    Examples
    --------
    >>> len(draw_regions(resolution=11).axes)
    2

    References
    ----------
    Beygelzimer et al. (2019). ICML. Figure 2, Theorems 7 and 8.
    """
    check_integer("resolution", resolution, low=2)
    if polynomials is None:
        polynomials = [ChebyshevConstruction(figure_2_halfspaces()), RationalConstruction(figure_2_halfspaces())]
    if not polynomials:
        raise ValueError(f"polynomials must hold at least one construction; got {polynomials!r}")
    for i, p in enumerate(polynomials):
        if not isinstance(p, HalfspacePolynomial) or p.halfspaces.n_variables != 2:
            raise ValueError(f"polynomials[{i}] must be a construction in 2 variables; got {p!r}")
    figure = Figure(figsize=(5.1 * len(polynomials), 6.2), layout="constrained")
    for axes, p in zip(figure.subplots(1, len(polynomials), squeeze=False)[0], polynomials, strict=True):
        _draw_values(axes, p, resolution)
        _draw_borders(axes, p.halfspaces, resolution)
        axes.set_title(f"{type(p).__name__.removesuffix('Construction')} construction, degree ≤ {p.degree_bound}")
        axes.set_aspect("equal")
        axes.set_axis_off()
    handles: list[Patch | Line2D] = [Patch(color=_LEVELS[name], label=name) for name in reversed(_LEVELS)]
    handles.append(Line2D([], [], color=_INK, linewidth=2.2, label="R⁺ and R⁻"))
    handles.append(Line2D([], [], color=_INK, linewidth=1.0, linestyle="--", label="⟨vᵢ, x⟩ = 0"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _grid(resolution: int) -> tuple[Floats, Floats]:
    """Return coordinates along one side of the disc's square, and the square's points as rows."""
    ticks = np.linspace(-1.0, 1.0, resolution)
    across, up = np.meshgrid(ticks, ticks)
    return ticks, np.column_stack([across.ravel(), up.ravel()])


def _draw_values(axes: Axes, p: HalfspacePolynomial, resolution: int) -> None:
    ticks, points = _grid(resolution)
    inside = np.einsum("ij,ij->i", points, points) <= 1.0
    levels = np.full(len(points), np.nan)
    signs, sizes = p.signs_and_log2(points[inside])
    levels[inside] = np.where(signs > 0.0, np.where(sizes >= -1.0, 3, 2), np.where(sizes >= -1.0, 0, 1))
    image = axes.imshow(
        levels.reshape(len(ticks), -1),
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


def _draw_borders(axes: Axes, halfspaces: Halfspaces, resolution: int) -> None:
    """Draw the regions' outlines and names and the halfspaces' borders."""
    ticks, points = _grid(resolution)
    lowest, margin = (points @ halfspaces.matrix.T).min(axis=1), float(halfspaces.margin)
    room = 1.0 - np.sqrt(np.einsum("ij,ij->i", points, points))
    for name, depths in (("$R^+$", np.minimum(lowest - margin, room)), ("$R^-$", np.minimum(-margin - lowest, room))):
        deepest = int(np.argmax(depths))
        if depths[deepest] > 0.0:
            axes.contour(ticks, ticks, depths.reshape(len(ticks), -1), levels=[0.0], colors=_INK, linewidths=2.2)
            axes.text(
                float(points[deepest, 0]),
                float(points[deepest, 1]),
                name,
                ha="center",
                va="center",
                fontsize="xx-large",
                color=_INK,
            )
    for v in halfspaces.matrix:
        length = float(np.hypot(*v))
        if length > 0.0:
            along = np.array([-v[1], v[0]]) / length
            axes.plot([-along[0], along[0]], [-along[1], along[1]], "--", color=_INK, linewidth=1.0)
    axes.set_xlim(-1.03, 1.03)
    axes.set_ylim(-1.03, 1.03)


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
    figure = Figure(figsize=(9.2, 4.1), layout="constrained")
    nodes, seconds = figure.subplots(1, 2)
    _draw_by_size(nodes, rows, lambda row: float(row.n_nodes), "nodes searched")
    _draw_by_size(seconds, rows, lambda row: row.seconds, "seconds")
    handles = [
        Line2D([], [], color=_SOLVABLE, marker="o", linestyle="", label="has a solution"),
        Line2D([], [], color=_UNSOLVABLE, marker="o", linestyle="", label="has none"),
        Line2D([], [], color=_INK, label="median"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _draw_by_size(axes: Axes, rows: Sequence[SolvingRow], value: Callable[[SolvingRow], float], name: str) -> None:
    sizes = sorted({row.n_elements for row in rows})
    medians = [float(np.median([value(row) for row in rows if row.n_elements == size])) for size in sizes]
    axes.plot(sizes, medians, color=_INK)
    for answer, colour in ((True, _SOLVABLE), (False, _UNSOLVABLE)):
        some = [row for row in rows if row.is_splittable == answer]
        axes.plot([row.n_elements for row in some], [value(row) for row in some], "o", color=colour, ms=4, alpha=0.75)
    axes.set_yscale("log")
    axes.set_xticks(sizes)
    axes.set_xlabel("elements of the set splitting problem")
    axes.set_ylabel(name)
    axes.grid(axis="y", color="0.88")
    axes.spines[["top", "right"]].set_visible(False)
