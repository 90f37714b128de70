"""Figure 3 of the paper: the two data sets of the experiments."""

from matplotlib.figure import Figure

from onebit.experiments.reproduce import planes
from onebit.experiments.reproduce.contestants import DATASETS, STREAMS
from onebit.inputs import Floats, Integers
from onebit.reporting import style
from onebit.streams.sources import draw_function

TITLE = "Figure 3: the two data sets"
CAPTION = (
    "The first two features of 6 000 rounds of each stream, in the circle of radius 1/√2; the third is always 1/√2. "
    "Eight in ten points belong to class 1, which fills the angles within ±15°, and points too close "
    "to a boundary are left out."
)
N_POINTS = 6000  # as dense as the paper's figure


def sample(dataset: str, n_points: int, seed: int) -> tuple[Floats, Integers]:
    """Return the first rounds of a data set's stream."""
    X, y = draw_function(STREAMS[dataset])(n_points, seed)
    return X, y


def draw(seed: int) -> Figure:
    """Draw both sets side by side, seen in their first two features.

    The third feature is the same for all points and not shown. On the strong set the points lie on the circle itself;
    on the weak set they fill the disc. Colours are the paper's red, green and blue in variants that the colour-blind
    can tell apart.
    """
    with style.looks():
        figure, panels = style.new_figure(1, 2, 4.0)
        for axes, (dataset, title) in zip(panels, DATASETS.items(), strict=True):
            planes.as_plane(axes, planes.DISC)
            axes.set_title(title)
            planes.scatter(axes, *sample(dataset, N_POINTS, seed), s=5)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, markerscale=3)
    return figure
