"""The paper's figures: 1 and 3 (the data), 4 and 5 (mistakes against rounds), 6 to 8 (what was learned).

Figures 4 and 5 come twice: as 4a with linear axes like the paper's, and as 4b with logarithmic ones, where all learners
can be seen at once. Another figure shows the weak set at a glance: one line of each kind. Colours of classes are the
paper's red, green and blue in variants that the colour-blind can tell apart.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Patch

from onebit.experiments.comparison import Outcome, by_dataset
from onebit.experiments.entries import Entry
from onebit.experiments.paper import DATASETS, contestants, published_curve
from onebit.experiments.players import build
from onebit.inputs import Floats, Integers
from onebit.kernels import as_kernel
from onebit.learners import BanditPerceptron
from onebit.reporting import figures as style
from onebit.reporting.looks import INK, PALETTE, Look, looks_of
from onebit.reporting.pages import Drawing
from onebit.reporting.text import grouped
from onebit.streams import paper_strong, paper_weak, wedges

_DISC = 0.5**0.5  # radius of the disc that the first two features of the paper's data sets lie in
_CLASS_COLORS = (PALETTE[1], PALETTE[2], PALETTE[0])
_CLASS_TINTS = ("#F7D3BD", "#BFE7DC", "#BFDCEC")
_DASHED = (0, (4, 3))
_PUBLISHED_COLOR = "#BDBDBD"
_FIGURE_NUMBERS = {"strong": 4, "weak": 5}  # the paper's number of the figure for each data set
_REGIONS = {6: "banditron-0.02", 7: "algorithm-1", 8: "algorithm-2"}  # whose regions each figure shows
_UNCLAIMED = 3
# Whose curves a linear plot of all learners cannot show beside zero. On the weak set Algorithm 1 has no guarantee.
_LOW_ON_WEAK = ("algorithm-2", "algorithm-2-authors", "bandit-svm", "multiclass-perceptron")
_LOW = {"strong": ("algorithm-1", "algorithm-1-authors", *_LOW_ON_WEAK), "weak": _LOW_ON_WEAK}
# The order of the labels is that of the ends; Banditron is shown by its best rate.
_AT_A_GLANCE = ("algorithm-1", "algorithm-2", "multiclass-perceptron", "bandit-svm")
_LABEL_GAP = 0.135  # two lines of text, as a share of the panel's height
_N_SHOWN = 6000  # points of Figure 3: as dense as the paper's
# Where two of the three scores tie, with the paper's labels.
_RAYS = ((0.0, "⟨w₃ − w₁, x⟩ = 0"), (120.0, "⟨w₁ − w₂, x⟩ = 0"), (240.0, "⟨w₂ − w₃, x⟩ = 0"))
_TIE_ANGLES = np.deg2rad([15.0, -15.0, 180.0])  # where the two largest entries of Wx are equal (Section 6)
_GRID = 401  # a cell of the grid is a pixel or two of the saved figure
_N_POINTS = 1200  # dots that show the data and still leave the regions to be seen
_N_JUDGED = 20_000  # shares are good to a tenth of a percent
_CHUNK = 4096  # rows scored at once: their kernel matrix stays below 100 MB
_FIGURE_1 = (
    "Each class fills a wedge of 120°, so three weight vectors 120° apart score every point highest in its own class: "
    "the points are weakly separable. Strong separability would ask each class to lie alone on one side of a "
    "line through the centre, but the other two classes together span 240°."
)
_FIGURE_3 = (
    "The first two features of 6 000 rounds of each stream, in the circle of radius 1/√2; the third is always 1/√2. "
    "Eight in ten points belong to class 1, which fills the angles within ±15°, and points too close "
    "to a boundary are left out."
)


def drawings(outcomes: list[Outcome], seed: int) -> list[Drawing]:
    """Return what to draw: the weak set at a glance, then all figures that the outcomes allow, in the paper's order."""
    listed = []
    of_set = by_dataset(outcomes)
    if weak := of_set.get("weak"):
        lines = style.what_lines_are(len(weak[0].mistakes))
        caption = (
            f"Each line is {lines}, both axes are logarithmic, and of Banditron's rates the one with the fewest "
            "mistakes is shown. Figures 4 and 5 have all learners, beside the paper's own curves."
        )
        title = f"At a glance: mistakes on the {DATASETS['weak']} set"
        # The README has it under this name.
        listed.append(Drawing("weak_set_mistakes", title, caption, partial(_draw_glance, weak, "weak")))
    listed.append(Drawing("figure_1", "Figure 1: weakly but not strongly separable", _FIGURE_1, _draw_wedges))
    listed.append(Drawing("figure_3", "Figure 3: the two data sets", _FIGURE_3, partial(_draw_data_sets, seed)))
    for dataset, place in _FIGURE_NUMBERS.items():
        mine = of_set.get(dataset, [])
        for is_log in (False, True) if mine else ():
            number = f"{place}{'b' if is_log else 'a'}"
            axes = "logarithmic axes" if is_log else "linear axes, as in the paper"
            title = f"Figure {number}: mistakes on the {DATASETS[dataset]} set, {axes}"
            caption = _curves_caption(mine, dataset, is_log)
            listed.append(Drawing(f"figure_{number}", title, caption, partial(_draw_curves, mine, dataset, is_log)))
    for place, key in _REGIONS.items():
        if mine := [outcome for outcome in outcomes if outcome.entry.key == key]:
            rest = "Its exploration is left out: the regions show its best guess."
            if _leaves_unclaimed(mine[0]):
                rest = "Where it is hatched no class claims the point, and the learner guesses uniformly."
            caption = (
                f"Colours show what the first run guesses after {grouped(mine[0].rounds[-1])} rounds; dashed lines are "
                "the true boundaries, dots a sample of the data, and the titles give the share of a larger sample that "
                f"is guessed wrong. {rest}"
            )
            title = f"Figure {place}: final decision regions, {mine[0].entry.title}"
            listed.append(Drawing(f"figure_{place}", title, caption, partial(_draw_regions, mine, seed)))
    return listed


# Figures 1 and 3.


@style.looks()
def _draw_wedges() -> Figure:
    """Draw the 78 points of Figure 1, the three rays where two scores tie, and the circle that holds them."""
    X, y = wedges()
    figure, (axes,) = style.new_figure(1, 1, 5.0)
    _as_plane(axes, 1.0)
    # Wider than high: the equations stand beside the disc.
    axes.set(xlim=(-1.15, 1.75), ylim=(-1.08, 1.08))
    for label, (color, marker) in enumerate(zip(_CLASS_COLORS, "os^", strict=True)):
        x1, x2 = X[y == label].T
        axes.scatter(x1, x2, s=34, color=color, marker=marker, label=f"class {label + 1}", zorder=3)
    for angle, equation in _RAYS:
        end = np.array([np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))])
        axes.plot([0, end[0]], [0, end[1]], color=INK, linewidth=2.2, solid_capstyle="round")
        axes.text(1.06 * end[0], 1.06 * end[1], equation, ha="left" if angle == 0 else "right", va="center")
    axes.legend(loc="upper right")
    return figure


@style.looks()
def _draw_data_sets(seed: int) -> Figure:
    """Draw both sets side by side, seen in their first two features; the third is the same for all points."""
    figure, panels = style.new_figure(1, 2, 4.0)
    for axes, (dataset, title) in zip(panels, DATASETS.items(), strict=True):
        _as_plane(axes, _DISC)
        axes.set_title(title)
        _scatter(axes, *_sample(dataset, _N_SHOWN, seed), s=5)
    style.legend_below(figure, panels[0].get_legend_handles_labels()[0], 3, markerscale=3)
    return figure


def _sample(dataset: str, n_points: int, seed: int) -> tuple[Floats, Integers]:
    """Return the first rounds of a data set's stream."""
    return {"strong": paper_strong, "weak": paper_weak}[dataset](n_points, seed)


def _as_plane(axes: Axes, radius: float) -> None:
    """Show a disc in the plane: equal scales, its circle, no frame."""
    # At the bottom of its box a square panel leaves room for its title.
    axes.set_aspect("equal", anchor="S")
    ends = -1.06 * radius, 1.06 * radius
    axes.set(xlim=ends, ylim=ends, xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.add_patch(Circle((0, 0), radius, fill=False, edgecolor="#777777", linewidth=0.9, zorder=5))


def _scatter(axes: Axes, X: Floats, y: Integers, **looks: Any) -> None:
    # Rasterised: thousands of circles would make an SVG of megabytes.
    looks = {"linewidths": 0, "rasterized": True, "zorder": 6, **looks}
    for label, color in enumerate(_CLASS_COLORS):
        points = X[y == label]
        axes.scatter(points[:, 0], points[:, 1], color=color, label=f"class {label + 1}", **looks)


# Figures 4 and 5.


class _Line(NamedTuple):
    entry: Entry
    rounds: Floats
    mean: Floats
    error: Floats
    look: Look | None = None  # None for a published line, which is grey


def _curves_caption(outcomes: list[Outcome], dataset: str, is_log: bool) -> str:
    """Return two sentences with the numbers of this experiment."""
    drawn = style.what_lines_are(len(outcomes[0].mistakes))
    if any(line.look is None for line in _lines(outcomes, dataset, is_log)):
        drawn += "; grey lines are the paper's"
    if is_log:
        return f"Each line is {drawn}. A line that has become flat belongs to a learner that makes no more mistakes."
    by = {each.entry.key: each for each in outcomes}
    ends = [f"{grouped(by[key].mean)} by {by[key].entry.title}" for key in ("algorithm-1", "algorithm-2") if key in by]
    if banditrons := [outcome for key, outcome in by.items() if key.startswith("banditron-")]:
        best = min(banditrons, key=lambda outcome: outcome.mean)
        ends.append(f"{grouped(best.mean)} by the best Banditron ({best.entry.title.partition(', ')[2]})")
    return (
        f"Each line is {drawn}, and the lower panel enlarges the bottom of the upper one. "
        f"Mistakes after {grouped(outcomes[0].rounds[-1])} rounds: {', '.join(ends)}."
    )


@style.looks()
def _draw_curves(outcomes: list[Outcome], dataset: str, is_log: bool) -> Figure:
    """Draw the mistakes of all entries on a data set, beside the published curves."""
    lines = _lines(outcomes, dataset, is_log)
    low = [line for line in lines if line.entry.key in _LOW[dataset]]
    if is_log:
        figure, panels = style.new_figure(1, 1, 7.2)
        _plot(panels[0], lines)
        _log_axes(panels[0], lines)
    else:
        figure, panels = style.new_figure(2, 1, 9.2)
        titles = ("all learners", "the same, enlarged near zero")
        for axes, top, title in zip(panels, (_top(lines), _top(low)), titles, strict=True):
            _plot(axes, lines)
            last = max(line.rounds[-1] for line in lines if line.look is not None)
            axes.set(xlim=(0, last), ylim=(0, top * 1.06))
            style.count_axis(axes.xaxis, most_ticks=3)
            style.count_axis(axes.yaxis)
            axes.set_title(title, loc="left")
    handles = [
        Line2D([], [], color=line.look.color, linestyle=line.look.dashes, label=line.entry.shown)
        for line in sorted(lines, key=lambda line: -line.mean[-1])
        if line.look is not None
    ]
    if len(handles) < len(lines):
        title = f"published (paper, Fig. {_FIGURE_NUMBERS[dataset]})"
        handles.append(Line2D([], [], color=_PUBLISHED_COLOR, linewidth=3.2, label=title))
    figure.legend(handles=handles, loc="outside lower left", ncols=2, columnspacing=1.0, fontsize=10)
    return figure


@style.looks()
def _draw_glance(outcomes: list[Outcome], dataset: str) -> Figure:
    """Draw one line of each kind, with its name and its mistakes where it ends."""
    ours = [line for line in _lines(outcomes, dataset, is_log=True) if line.look is not None]
    banditrons = [line for line in ours if line.entry.key.startswith("banditron-")]
    best = sorted(banditrons, key=lambda line: float(line.mean[-1]))[:1]
    lines = [line for line in ours if line.entry.key in _AT_A_GLANCE] + best
    figure, (axes,) = style.new_figure(1, 1, 4.6)
    _plot(axes, lines)
    _log_axes(axes, lines)
    # Names right of the ends: with a piece of the line, at its height or as near to it as there is room.
    lines.sort(key=lambda line: float(line.mean[-1]))
    to_axes = axes.transData + axes.transAxes.inverted()
    ends = [float(to_axes.transform((line.rounds[-1], max(line.mean[-1], 1.0)))[1]) for line in lines]
    for line, place in zip(lines, style.spread(ends, _LABEL_GAP), strict=True):
        assert line.look is not None
        piece: dict[str, Any] = {"color": line.look.color, "linestyle": line.look.dashes, "clip_on": False}
        axes.plot([1.015, 1.065], [place, place], transform=axes.transAxes, **piece)
        prefix, end = "told the label: " if line.entry.full_information else "", float(line.mean[-1])
        text = f"{line.entry.title}\n{prefix}{grouped(end, 1 if end < 10 else 0)} mistakes"
        axes.text(1.08, place, text, transform=axes.transAxes, va="center", fontsize=11, linespacing=1.1)
    return figure


def _lines(outcomes: list[Outcome], dataset: str, is_log: bool) -> list[_Line]:
    """Return the published lines, then ours."""
    ours: list[_Line] = []
    published: dict[int, _Line] = {}
    # Of all contestants, whether they play or not: a shorter list must not change anyone's dashes.
    looks = looks_of(entry for entry in [*contestants(), *(outcome.entry for outcome in outcomes)])
    for outcome in outcomes:
        if outcome.dataset != dataset:
            continue
        entry, last = outcome.entry, float(outcome.rounds[-1])
        # A linear plot begins at zero mistakes in round zero, which a logarithmic one cannot show.
        curves = np.array([outcome.rounds, outcome.means, outcome.errors])
        rounds, mean, error = curves if is_log else np.insert(curves, 0, 0.0, axis=1)
        ours.append(_Line(entry, rounds, mean, error, looks[entry.title]))
        curve = published_curve(dataset, entry.key)
        if curve is None or id(curve) in published:  # both updates of an algorithm have the same
            continue
        rounds, mistakes = curve
        inside = (rounds < last) & (rounds >= (1 if is_log else 0))
        xs = np.append(rounds[inside], min(last, float(rounds[-1])))
        # Between its points the paper's curve is unknown, so a game that ends before the first is shown without it.
        if last >= rounds[1] and len(xs) > 1:
            published[id(curve)] = _Line(entry, xs, np.interp(xs, rounds, mistakes), np.zeros(len(xs)))
    return [*published.values(), *ours]


def _plot(axes: Axes, lines: list[_Line]) -> None:
    for line in lines:
        if line.look is None:
            axes.plot(line.rounds, line.mean, color=_PUBLISHED_COLOR, linewidth=3.2, zorder=2)
        else:
            style.draw_mean(axes, line.rounds, line.mean, line.error, line.look.color, line.look.dashes)
    axes.set(xlabel="round", ylabel="mean cumulative mistakes")


def _top(lines: list[_Line]) -> float:
    return max([float(np.nansum([line.mean[-1], line.error[-1]])) for line in lines] + [1.0])


def _log_axes(axes: Axes, lines: list[_Line]) -> None:
    last = max(line.rounds[-1] for line in lines if line.look is not None)
    axes.set_yscale("log", nonpositive="clip")
    # Below one mistake there is nothing to see.
    axes.set(xscale="log", xlim=(min(10.0, last / 10), last), ylim=(1, _top(lines) * 1.6))
    style.log_count_axis(axes.xaxis, every=2)
    style.log_count_axis(axes.yaxis)


# Figures 6 to 8.


def _leaves_unclaimed(outcome: Outcome) -> bool:
    """Return whether a learner guesses uniformly where no class has a score of at least 0."""
    return outcome.entry.spec.name == BanditPerceptron.__name__


def _scores(outcome: Outcome, X: Floats) -> Floats:
    """Return every row's score for every class, from what the first run had learned."""
    learned = outcome.learned
    if "weights" in learned:
        product: Floats = X @ learned["weights"].T
        return product
    kernel = as_kernel(build(outcome.entry.spec).get_params()["kernel"])
    assert kernel is not None
    if not len(learned["support"]):
        return np.zeros((len(X), learned["coefficients"].shape[1]))
    chunks = np.split(X, range(_CHUNK, len(X), _CHUNK))
    return np.concatenate([kernel(rows, learned["support"]) @ learned["coefficients"] for rows in chunks])


def _regions(outcome: Outcome, X: Floats) -> Integers:
    """Return every row's guess, or `_UNCLAIMED` where a bandit perceptron would guess uniformly."""
    values = _scores(outcome, X)
    guesses: Integers = values.argmax(axis=1)
    if _leaves_unclaimed(outcome):
        # Algorithm 1's set S is empty: no class has a score of at least 0.
        guesses[values.max(axis=1) < 0] = _UNCLAIMED
    return guesses


@style.looks()
def _draw_regions(outcomes: list[Outcome], seed: int) -> Figure:
    """Draw one contestant's regions, a panel for each data set it played, the third feature held at 1/√2."""
    figure, panels = style.new_figure(1, len(outcomes), 4.7)
    for axes, outcome in zip(panels, outcomes, strict=True):
        _as_plane(axes, _DISC)
        _paint(axes, outcome)
        _scatter(axes, *_sample(outcome.dataset, _N_POINTS, seed), s=6, alpha=0.55)
        for angle in _TIE_ANGLES:
            end = _DISC * np.array([np.cos(angle), np.sin(angle)])
            axes.plot([0, end[0]], [0, end[1]], color=INK, linestyle=_DASHED, linewidth=1.3, zorder=7)
        X, y = _sample(outcome.dataset, _N_JUDGED, seed)
        guesses = _regions(outcome, X)
        unclaimed = float((guesses == _UNCLAIMED).mean())
        judged = f"{100 * (float((guesses != y).mean()) - unclaimed):.2g} % wrong"
        judged += f", {100 * unclaimed:.2g} % unclaimed" if unclaimed > 0 else ""
        axes.set_title(f"{DATASETS[outcome.dataset]}\n{judged}")
    handles: list[Patch | Line2D] = [
        Patch(facecolor=tint, edgecolor=color, label=f"class {label + 1}")
        for label, (tint, color) in enumerate(zip(_CLASS_TINTS, _CLASS_COLORS, strict=True))
    ]
    handles.append(Line2D([], [], color=INK, linestyle=_DASHED, linewidth=1.3, label="true boundary"))
    if _leaves_unclaimed(outcomes[0]):
        handles.append(Patch(facecolor="white", edgecolor="#8C8C8C", hatch="////", label="no class claims it"))
    style.legend_below(figure, handles, 3)
    return figure


def _paint(axes: Axes, outcome: Outcome) -> None:
    """Colour the disc by the guess."""
    ticks = np.linspace(-_DISC, _DISC, _GRID)
    first, second = np.meshgrid(ticks, ticks)
    # Corners of the square are pulled onto the circle: the kernel ends there, and the clipping hides them.
    shrink = np.minimum(1.0, _DISC / np.maximum(np.hypot(first, second), 1e-12))
    X = np.column_stack([(first * shrink).ravel(), (second * shrink).ravel(), np.full(_GRID**2, _DISC)])
    guesses = _regions(outcome, X).reshape(_GRID, _GRID)
    disc = Circle((0, 0), _DISC, transform=axes.transData)
    # imshow counts from the outer edges of its cells, the grid from their centres.
    half = _DISC * (1 + 1 / (_GRID - 1))
    place: dict[str, Any] = {"origin": "lower", "extent": (-half, half, -half, half), "interpolation": "nearest"}
    tints = ListedColormap([*_CLASS_TINTS, "white"])
    image = axes.imshow(guesses, cmap=tints, vmin=0, vmax=_UNCLAIMED, zorder=1, **place)
    image.set_clip_path(disc)
    if (guesses == _UNCLAIMED).any():
        unclaimed = (guesses == _UNCLAIMED).astype(float)
        hatching = axes.contourf(first, second, unclaimed, levels=[0.5, 1.5], colors="none", hatches=["////"], zorder=2)
        hatching.set_clip_path(disc)
