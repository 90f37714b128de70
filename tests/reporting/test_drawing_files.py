from functools import partial
from pathlib import Path

import pytest

from onebit.reporting.drawing import Drawing, draw_files
from onebit.reproduce import figure_1, figure_3


@pytest.mark.parametrize("jobs", [1, 2])
def test_figures_come_back_in_their_order_whoever_draws_them(tmp_path: Path, jobs: int) -> None:
    """Eight are enough for two processes; other orders and processes give the same files."""
    listed = [Drawing(f"{k}", f"title {k}", "A caption.", figure_1.draw) for k in range(7)]
    listed.append(Drawing("7", "title 7", "A caption.", partial(figure_3.draw, 1)))
    drawn = draw_files(listed, tmp_path / "new", jobs)
    assert [(figure.name, figure.title) for figure in drawn] == [(f"{k}", f"title {k}") for k in range(8)]
    assert len({figure.svg.read_bytes() for figure in drawn}) == 2
    assert all(figure.png.read_bytes().startswith(b"\x89PNG") for figure in drawn)
