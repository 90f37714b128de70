from functools import partial
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from onebit.reporting.style import Drawing, draw_files, looks, new_figure, save, spread
from onebit.reproduce import figure_1, figure_3


def figure_of_a_line() -> Figure:
    with looks():
        figure, (axes,) = new_figure(1, 1, 4.0, 3.0)
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


def test_end_labels_keep_their_distance() -> None:
    places = np.array(spread([0.0, 0.0, 0.01, 0.5, 0.99, 1.0, 1.0], 0.06))
    assert (np.diff(places) > 0.06 - 1e-12).all()
    assert places.min() >= 0
    assert places.max() <= 1
    assert spread([], 0.1) == []
    assert min(spread([1.0] * 30, 0.06)) > -1e-9


@pytest.mark.parametrize("jobs", [1, 2])
def test_figures_come_back_in_their_order_whoever_draws_them(tmp_path: Path, jobs: int) -> None:
    """Eight are enough for two processes; other orders and processes give the same files."""
    listed = [Drawing(f"{k}", f"title {k}", "A caption.", figure_1.draw) for k in range(7)]
    listed.append(Drawing("7", "title 7", "A caption.", partial(figure_3.draw, 1)))
    drawn = draw_files(listed, tmp_path / "new", jobs)
    assert [(figure.name, figure.title) for figure in drawn] == [(f"{k}", f"title {k}") for k in range(8)]
    assert len({figure.svg.read_bytes() for figure in drawn}) == 2
    assert all(figure.png.read_bytes().startswith(b"\x89PNG") for figure in drawn)
