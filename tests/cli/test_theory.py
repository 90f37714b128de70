"""``onebit theory`` as a user meets it."""

import csv
import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.image import imread

from in_process import onebit as run
from onebit.bounds import BOUNDS
from onebit.reporting.figures import _WIDTH
from onebit.theory.weak_labeling import SetSplitting
from plain_programs import split_by_enumeration


@pytest.mark.slow
def test_theory_writes_tables_and_figures(tmp_path: Path) -> None:
    answer = run("theory", "--quick", "--out", str(tmp_path))
    assert answer.returncode == 0, answer.stderr
    assert str(tmp_path) in "".join(answer.stdout.split())
    names = {"figure_2", "looseness", "weak_labeling"}
    tables = {"looseness.csv", "weak_labeling.csv"}
    assert {path.name for path in tmp_path.iterdir()} == tables | {
        f"{n}.{end}" for n in names for end in ("png", "svg")
    }

    with (tmp_path / "looseness.csv").open() as file:
        loose = list(csv.DictReader(file))
    assert [(row["data"], int(row["n_examples"])) for row in loose] == [
        ("wedges", 78),
        ("paper_weak", 30),
        ("paper_weak", 100),
        ("paper_weak", 300),
    ]
    for row in loose:
        weak = float(row["weak"])
        assert float(row["guaranteed_log2"]) == pytest.approx(BOUNDS["5"].claim(n_classes=3, margin=weak).log2)
        assert float(row["guaranteed_log2"]) < float(row["sharper_log2"]) < math.log2(float(row["measured"]))
    assert float(loose[0]["weak"]) == pytest.approx(0.11252667649630912, rel=1e-9)
    assert float(loose[0]["measured"]) == pytest.approx(0.07291187777715309, rel=1e-6)

    with (tmp_path / "weak_labeling.csv").open() as file:
        solved = list(csv.DictReader(file))
    assert [int(row["n_elements"]) for row in solved] == [4] * 5 + [6] * 5 + [8] * 5
    for row in solved:
        splitting = SetSplitting.random(int(row["n_elements"]), int(row["n_subsets"]), size=3, seed=int(row["seed"]))
        assert row["is_splittable"] == str(split_by_enumeration(splitting) is not None)
        assert int(row["n_nodes"]) >= 1
        assert float(row["seconds"]) > 0.0

    for name in names:
        pixels = imread(tmp_path / f"{name}.png")
        assert pixels.shape[1] == round(150 * _WIDTH)
        # A figure is mostly paper, but not only: its corner is white and many colours are on it.
        assert pixels[0, 0, :3].tolist() == [1.0, 1.0, 1.0]
        assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) > 50
        assert 0.01 < (pixels[..., :3].min(axis=2) < 0.95).mean() < 0.9
        assert ElementTree.parse(tmp_path / f"{name}.svg").getroot().tag.endswith("svg")
