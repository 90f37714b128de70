"""The theory's figures: what is on them, and that pyplot stays out."""

import io
import subprocess
import sys

import pytest
from matplotlib.figure import Figure

from onebit.theory import measure_looseness
from onebit.theory.figures import _figure_2_halfspaces, draw_looseness, draw_regions, draw_solving_time
from onebit.theory.polynomials import ChebyshevConstruction, Halfspaces
from onebit.theory.weak_labeling import measure_solving


def saves(figure: Figure) -> bool:
    target = io.BytesIO()
    figure.savefig(target, dpi=40)
    return target.tell() > 1000


def test_figure_2() -> None:
    figure = draw_regions(resolution=101)
    assert len(figure.axes) == 2
    for axes in figure.axes:
        assert {text.get_text() for text in axes.texts} >= {"$R^+$", "$R^-$"}
    assert saves(figure)


def test_figure_2_has_the_papers_halfspaces() -> None:
    halfspaces = _figure_2_halfspaces()
    apex = [-0.2 - 1e-9, 0.0]
    assert halfspaces.sides([apex, [0.2 + 1e-9, 0.0]]).tolist() == [1, -1]
    assert halfspaces.sides([[-0.19, 0.0], [0.19, 0.0]]).tolist() == [0, 0]


def test_an_empty_region_has_no_name() -> None:
    narrow = ChebyshevConstruction(Halfspaces([[1, 0], [-1, 0]], 0.5))
    figure = draw_regions([narrow], resolution=101)
    assert [text.get_text() for text in figure.axes[0].texts] == ["$R^-$"]
    assert saves(figure)


def test_solving_time() -> None:
    rows = measure_solving([4, 6], repeats=2)
    figure = draw_solving_time(rows)
    assert [axes.get_yscale() for axes in figure.axes] == ["log", "log"]
    assert saves(figure)


def test_looseness_has_every_row() -> None:
    rows = measure_looseness(sizes=[50])
    figure = draw_looseness(rows)
    measured = figure.axes[0].lines[0].get_ydata()
    assert measured == pytest.approx([rows[1].measured_log2])
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["50"]
    with pytest.raises(ValueError, match="rows must be at least one"):
        draw_looseness([])


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"polynomials\[0\] must be a construction in 2 variables"):
        draw_regions([ChebyshevConstruction(Halfspaces([[1]], 0.5))])
    with pytest.raises(ValueError, match="polynomials must hold at least one"):
        draw_regions([])
    with pytest.raises(ValueError, match="resolution"):
        draw_regions(resolution=1)
    with pytest.raises(ValueError, match="rows must be what measure_solving"):
        draw_solving_time([])


def test_matplotlib_is_imported_by_the_figures_alone() -> None:
    code = (
        "import sys, onebit.theory, onebit.theory.weak_labeling;"
        "assert 'matplotlib' not in sys.modules;"
        "import onebit.theory.figures;"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
