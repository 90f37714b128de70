"""The paper's Figure 2: the regions R⁺ and R⁻ of two halfspaces, and the polynomials that tell them apart."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Patch

from onebit.inputs import Floats, check_integer
from onebit.reporting.figures import looks, new_figure
from onebit.reporting.looks import INK, PALETTE
from onebit.theory.polynomials import ChebyshevConstruction, Halfspaces, RationalConstruction
from onebit.theory.polynomials.halfspaces import HalfspacePolynomial

_Colour = tuple[float, float, float]


def _tint(colour: str, share: float) -> _Colour:
    """Return a colour mixed with white: lines and names have to stand out from it."""
    red, green, blue = (1.0 - share * (1.0 - part) for part in to_rgb(colour))
    return red, green, blue


_PLUS, _MINUS = PALETTE[:2]
_LEVELS: dict[str, _Colour] = {
    "p ≤ −½": _tint(_MINUS, 0.5),
    "−½ < p < 0": _tint(_MINUS, 0.15),
    "0 < p < ½": _tint(_PLUS, 0.15),
    "p ≥ ½": _tint(_PLUS, 0.45),
}


def figure_2_halfspaces() -> Halfspaces:
    """Return the two halfspaces of the paper's Figure 2: borders at 120° and 240°, margin √3/10.

    Examples
    --------
    >>> figure_2_halfspaces().sides([[-0.5, 0.0], [0.5, 0.0], [0.0, 0.0]]).tolist()
    [1, -1, 0]
    """
    # sin 60°, which turns the paper's borders at 120° and 240° into normals of length 1.
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
    with looks():
        figure, panels = new_figure(1, len(polynomials), 4.6)
        for axes, p in zip(panels, polynomials, strict=True):
            _draw_values(axes, p, resolution)
            _draw_borders(axes, p.halfspaces, resolution)
            axes.set_title(f"{type(p).__name__.removesuffix('Construction')} construction, degree ≤ {p.degree_bound}")
            axes.set_aspect("equal")
            axes.set_axis_off()
        handles: list[Patch | Line2D] = [Patch(color=_LEVELS[name], label=name) for name in reversed(_LEVELS)]
        handles.append(Line2D([], [], color=INK, linewidth=2.2, label="R⁺ and R⁻"))
        handles.append(Line2D([], [], color=INK, linewidth=1.0, linestyle="--", label="⟨vᵢ, x⟩ = 0"))
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
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
    # |p| ≥ ½ is log₂|p| ≥ −1.
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
    # How deep a point lies in a region: its least distance to what bounds the region, the disc's edge included.
    lowest, margin = (points @ halfspaces.matrix.T).min(axis=1), float(halfspaces.margin)
    room = 1.0 - np.sqrt(np.einsum("ij,ij->i", points, points))
    for name, depths in (("$R^+$", np.minimum(lowest - margin, room)), ("$R^-$", np.minimum(-margin - lowest, room))):
        deepest = int(np.argmax(depths))
        if depths[deepest] > 0.0:
            axes.contour(ticks, ticks, depths.reshape(len(ticks), -1), levels=[0.0], colors=INK, linewidths=2.2)
            axes.text(
                float(points[deepest, 0]),
                float(points[deepest, 1]),
                name,
                ha="center",
                va="center",
                fontsize="xx-large",
                color=INK,
            )
    # A direction of length 0 has no border.
    for v in halfspaces.matrix:
        length = float(np.hypot(*v))
        if length > 0.0:
            along = np.array([-v[1], v[0]]) / length
            axes.plot([-along[0], along[0]], [-along[1], along[1]], "--", color=INK, linewidth=1.0)
    axes.set_xlim(-1.03, 1.03)
    axes.set_ylim(-1.03, 1.03)
