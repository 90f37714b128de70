from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from drawn import draw_files
from onebit.reporting.figures import looks, new_figure, save, spread
from onebit.reporting.pages import Drawing


def figure_of_a_line() -> Figure:
    with looks():
        figure, (axes,) = new_figure(1, 1, 3.0)
        axes.plot([0, 1], [0, 1])
    return figure


def test_the_same_figure_is_the_same_bytes(tmp_path: Path) -> None:
    first, second = save(figure_of_a_line(), tmp_path, "first"), save(figure_of_a_line(), tmp_path, "second")
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_drawing_leaves_matplotlib_as_it_was(tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    save(figure_of_a_line(), tmp_path, "line")
    assert dict(matplotlib.rcParams) == before


def test_figures_come_back_in_their_order_as_files(tmp_path: Path) -> None:
    listed = [Drawing(f"{k}", f"title {k}", "A caption.", figure_of_a_line) for k in range(3)]
    drawn = draw_files(listed, tmp_path / "new")
    assert [(figure.name, figure.title) for figure in drawn] == [(f"{k}", f"title {k}") for k in range(3)]
    assert all(figure.png.read_bytes().startswith(b"\x89PNG") for figure in drawn)
    assert len({figure.svg.read_bytes() for figure in drawn}) == 1


def test_example_of_spread() -> None:
    assert spread([0.0, 0.0, 0.5, 1.0, 1.0], 0.1) == [0.0, 0.1, 0.5, 0.9, 1.0]


def test_end_labels_keep_their_distance() -> None:
    places = np.array(spread([0.0, 0.0, 0.01, 0.5, 0.99, 1.0, 1.0], 0.06))
    assert (np.diff(places) > 0.06 - 1e-12).all()
    assert places.min() >= 0
    assert places.max() <= 1
    assert spread([], 0.1) == []
    assert min(spread([1.0] * 30, 0.06)) > -1e-9
