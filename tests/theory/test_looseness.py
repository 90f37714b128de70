import json
import subprocess
import sys

import numpy as np
import pytest

from onebit.streams import paper_weak
from onebit.theory import measure_looseness
from onebit.theory.looseness import measure_one
from onebit.theory.looseness_figure import draw_looseness


def test_measured_margin_exceeds_the_guarantee() -> None:
    seen: list[str] = []
    rows = measure_looseness(sizes=[50, 500], seed=1, on_row=lambda row: seen.append(row.data))
    assert seen == ["wedges", "paper_weak", "paper_weak"]
    assert [row.n_examples for row in rows] == [78, 50, 500]
    for row in rows:
        assert row.guaranteed_log2 < row.sharper_log2 < row.measured_log2 < 0.0
        assert row.factor_log2 > 50.0
    assert rows[0].measured == pytest.approx(0.0729119, rel=1e-5)
    assert rows[1].weak > rows[2].weak
    assert rows[1].measured > rows[2].measured


def test_unseparable_data_have_no_row() -> None:
    X, y = paper_weak(rounds=100, seed=1)
    with pytest.raises(ValueError, match="weakly separable"):
        measure_one("spoilt", np.concatenate([X, X[:1]]), np.append(y, 1 - min(y[0], 1)))


def test_the_figure_has_every_row() -> None:
    rows = measure_looseness(sizes=[50])
    figure = draw_looseness(rows)
    measured = figure.axes[0].lines[0].get_ydata()
    assert measured == pytest.approx([rows[1].measured_log2])
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["50"]
    with pytest.raises(ValueError, match="rows must be at least one"):
        draw_looseness([])


def test_theory_does_not_import_matplotlib() -> None:
    code = "import sys, json, onebit.theory, onebit.theory.looseness; print(json.dumps('matplotlib' in sys.modules))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(answer.stdout) is False
