"""Figures 6, 7 and 8 of the paper: what Banditron, Algorithm 1 and Algorithm 2 guess after the last round."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Patch

from onebit.experiments.comparison import Outcome
from onebit.experiments.players import build
from onebit.experiments.reproduce import planes
from onebit.experiments.reproduce.contestants import DATASETS
from onebit.experiments.reproduce.figure_3 import sample
from onebit.inputs import Floats, Integers
from onebit.kernels import as_kernel
from onebit.learners import BanditPerceptron
from onebit.reporting import style
from onebit.reporting.tables import grouped

FIGURES = {"figure_6": "banditron-0.02", "figure_7": "algorithm-1", "figure_8": "algorithm-2"}
"""Whose regions each figure shows, by contestant key."""
UNCLAIMED = 3

_GRID = 401  # a cell of the grid is a pixel or two of the saved figure
_N_POINTS = 1200  # dots that show the data and still leave the regions to be seen
_N_JUDGED = 20_000  # shares are good to a tenth of a percent
_CHUNK = 4096  # rows scored at once: their kernel matrix stays below 100 MB
_TIE_ANGLES = np.deg2rad([15.0, -15.0, 180.0])  # where the two largest entries of Wx are equal (Section 6)


def title(name: str, outcome: Outcome) -> str:
    """Return the heading of a figure that shows this contestant."""
    return f"Figure {name.removeprefix('figure_')}: final decision regions, {outcome.entry.title}"


def caption(outcomes: list[Outcome]) -> str:
    """Return two sentences about one contestant's regions."""
    if _leaves_unclaimed(outcomes[0]):
        rest = "Where it is hatched no class claims the point, and the learner guesses uniformly."
    else:
        rest = "Its exploration is left out: the regions show its best guess."
    return (
        f"Colours show what the first run guesses after {grouped(outcomes[0].rounds[-1])} rounds; dashed lines are the "
        f"true boundaries, dots a sample of the data, and the titles give the share of a larger sample that is guessed "
        f"wrong. {rest}"
    )


def _leaves_unclaimed(outcome: Outcome) -> bool:
    """Return whether a learner guesses uniformly where no class has a score of at least 0."""
    return outcome.entry.spec.name == BanditPerceptron.__name__


def scores(outcome: Outcome, X: Floats) -> Floats:
    """Return every row's score for every class, from what the first run had learned."""
    learned = outcome.learned
    if "weights" in learned:
        product: Floats = X @ learned["weights"].T
        return product
    kernel = as_kernel(build(outcome.entry.spec).get_params()["kernel"])
    assert kernel is not None
    out = np.zeros((len(X), learned["coefficients"].shape[1]))
    if len(learned["support"]):
        for start in range(0, len(X), _CHUNK):
            rows = slice(start, start + _CHUNK)
            out[rows] = kernel(X[rows], learned["support"]) @ learned["coefficients"]
    return out


def regions(outcome: Outcome, X: Floats) -> Integers:
    """Return every row's guess, or `UNCLAIMED` where a bandit perceptron would guess uniformly."""
    values = scores(outcome, X)
    guesses: Integers = values.argmax(axis=1)
    if _leaves_unclaimed(outcome):
        # Algorithm 1's set S is empty: no class has a score of at least 0.
        guesses[values.max(axis=1) < 0] = UNCLAIMED
    return guesses


def draw(outcomes: list[Outcome], seed: int) -> Figure:
    """Draw one contestant's regions, a panel for each data set it played.

    The disc of radius 1/√2 is coloured by the guess of the first run, the third feature held at 1/√2. Points where no
    class has a score of at least 0 are left white and hatched, for the bandit perceptrons only. A sample of the
    stream lies on top; the dashed rays at ±15° and 180° are where the two best entries of Wx tie.
    """
    with style.looks():
        figure, panels = style.new_figure(1, len(outcomes), 4.7)
        for axes, outcome in zip(panels, outcomes, strict=True):
            planes.as_plane(axes, planes.DISC)
            _paint(axes, outcome)
            _overlay(axes, outcome, seed)
            axes.set_title(f"{DATASETS[outcome.dataset]}\n{_judged(outcome, seed)}")
        claims = _leaves_unclaimed(outcomes[0])
        figure.legend(handles=_legend(claims), loc="outside lower center", ncols=3, columnspacing=1.2)
    return figure


def _paint(axes: Axes, outcome: Outcome) -> None:
    """Colour the disc by the guess."""
    ticks = np.linspace(-planes.DISC, planes.DISC, _GRID)
    first, second = np.meshgrid(ticks, ticks)
    # Corners of the square are pulled onto the circle: the kernel ends there, and the clipping hides them.
    shrink = np.minimum(1.0, planes.DISC / np.maximum(np.hypot(first, second), 1e-12))
    X = np.column_stack([(first * shrink).ravel(), (second * shrink).ravel(), np.full(_GRID**2, planes.DISC)])
    guesses = regions(outcome, X).reshape(_GRID, _GRID)
    disc = Circle((0, 0), planes.DISC, transform=axes.transData)
    # imshow counts from the outer edges of its cells, the grid from their centres.
    half = planes.DISC * (1 + 1 / (_GRID - 1))
    image = axes.imshow(
        guesses,
        origin="lower",
        extent=(-half, half, -half, half),
        cmap=ListedColormap([*planes.CLASS_TINTS, "white"]),
        vmin=0,
        vmax=UNCLAIMED,
        interpolation="nearest",
        zorder=1,
    )
    image.set_clip_path(disc)
    if (guesses == UNCLAIMED).any():
        unclaimed = (guesses == UNCLAIMED).astype(float)
        hatching = axes.contourf(first, second, unclaimed, levels=[0.5, 1.5], colors="none", hatches=["////"], zorder=2)
        hatching.set_clip_path(disc)


def _overlay(axes: Axes, outcome: Outcome, seed: int) -> None:
    """Draw a sample of the points and the true boundaries."""
    X, y = sample(outcome.dataset, _N_POINTS, seed)
    planes.scatter(axes, X, y, s=6, alpha=0.55)
    for angle in _TIE_ANGLES:
        end = planes.DISC * np.array([np.cos(angle), np.sin(angle)])
        axes.plot([0, end[0]], [0, end[1]], color=style.INK, linestyle=(0, (4, 3)), linewidth=1.3, zorder=7)


def _judged(outcome: Outcome, seed: int) -> str:
    X, y = sample(outcome.dataset, _N_JUDGED, seed)
    guesses = regions(outcome, X)
    unclaimed = float((guesses == UNCLAIMED).mean())
    wrong = float((guesses != y).mean()) - unclaimed
    text = f"{100 * wrong:.2g} % wrong"
    return f"{text}, {100 * unclaimed:.2g} % unclaimed" if unclaimed > 0 else text


def _legend(claims: bool) -> list[Patch | Line2D]:
    handles: list[Patch | Line2D] = [
        Patch(facecolor=tint, edgecolor=color, label=f"class {label + 1}")
        for label, (tint, color) in enumerate(zip(planes.CLASS_TINTS, planes.CLASS_COLORS, strict=True))
    ]
    handles.append(Line2D([], [], color=style.INK, linestyle=(0, (4, 3)), linewidth=1.3, label="true boundary"))
    if claims:
        handles.append(Patch(facecolor="white", edgecolor="#8C8C8C", hatch="////", label="no class claims it"))
    return handles
