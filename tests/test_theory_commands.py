"""``onebit margin``, ``bound``, ``adversary`` and ``theory`` as a user meets them."""

import csv
import json
import math
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

import onebit
from in_process import onebit as run
from onebit.bounds import BOUNDS
from onebit.cli import app, main
from onebit.commands.bound import OPTIONS
from onebit.reporting.figures import WIDTH
from onebit.theory.weak_labeling import random_set_splitting


def test_margin_of_a_bundled_set() -> None:
    answer = run("margin", "wedges", "--json")
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert found["weak"] == pytest.approx(0.11252667, rel=1e-6)
    assert (found["strong"], found["strong_limit"]) == (0.0, 0.0)
    assert found["classes_not_told_from_the_rest"] == ["0", "1", "2"]
    assert {promise["theorem"] for promise in found["promises"]} == {"2", "5", "6", "10", "21"}


def test_margin_of_a_file_in_a_kernels_space(tmp_path: Path) -> None:
    X, y = onebit.streams.wedges()
    path = tmp_path / "wedges.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "colour", "b"])
        writer.writerows([x[0], ["white", "grey", "black"][label], x[1]] for x, label in zip(X, y, strict=True))
    answer = run("margin", str(path), "--label", "colour", "--kernel", "rational", "--json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["strong"] == pytest.approx(0.0729, rel=1e-3)
    shown = run("margin", str(path), "--label", "colour")
    assert "not strongly separable" in shown.stdout
    assert "0.112527" in shown.stdout


def test_margin_of_columns_with_an_offset(tmp_path: Path) -> None:
    path = tmp_path / "clock.csv"
    path.write_text(
        "time,switch,label\n" + "".join(f"{1_700_000_000 + i},{2 * (i % 2) - 1},{i % 2}\n" for i in range(40))
    )
    shown = run("margin", str(path), "--label", "label", "--kernel", "none")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.count("1.41421") == 2
    assert "no hyperplane" not in shown.stdout
    # In a kernel's space it is lost to rounding, which is no proof.
    shown = run("margin", str(path), "--label", "label", "--kernel", "linear")
    assert shown.stdout.count("none found; it is at most") == 2
    assert "ly separable" not in shown.stdout


def test_margin_speaks_of_hyperplanes_through_the_origin(tmp_path: Path) -> None:
    # A hyperplane elsewhere, between 1 and 2, tells these apart.
    path = tmp_path / "ray.csv"
    path.write_text("a,label\n1,low\n2,high\n")
    shown = run("margin", str(path), "--label", "label")
    assert "not weakly separable" in shown.stdout
    words = " ".join(shown.stdout.split())
    assert "no hyperplane through the origin tells these classes from all the rest: high, low" in words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("margin", "no_such_set"), ["no_such_set"]),
        (("margin", "wedges", "--kernel", "magic"), ["--kernel", "magic", "rational"]),
        (("margin", "no_such_file.csv", "--kernel", "magic"), ["--kernel", "magic", "Gaussian, Laplace"]),
        (("margin", "wedges", "--kernel", "gaussian:-1"), ["--kernel gaussian:-1", "width"]),
        (("bound", "99"), ["99", "21-sharp"]),
        (("bound", "2", "--k", "3"), ["--radius", "--gamma"]),
        (("bound", "10", "--radius", "1", "--gamma", "0.1", "--k", "3"), ["does not take --k"]),
        (("bound", "2", "--k", "3", "--gamma", "-1", "--radius", "1"), ["margin", "-1"]),
        (("bound", "2", "--k", "3", "--gamma", "5", "--radius", "1"), ["margin must be at most"]),
        (("bound", "6", "--k", "10", "--gamma", "1.4"), ["margin must be at most", "1.05409", "give margin/R"]),
        (("bound", "21-reach", "--k", "3", "--radius", "1", "--gamma", "1"), ["--reach", "--dimension"]),
        (("adversary", "17"), ["17", "remark"]),
        (("adversary", "--runs", "0"), ["--runs", "0"]),
    ],
)
def test_bad_input_is_one_line(
    arguments: tuple[str, ...], words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["onebit", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert said.count("\n") <= 1 + len(said) // 80
    for word in words:
        assert word in said


def test_bounds_by_number() -> None:
    assert "800" in run("bound", "2", "--k", "3", "--gamma", "0.1", "--radius", "1").stdout
    huge = json.loads(run("bound", "6", "--k", "3", "--gamma", "0.000001", "--json").stdout)
    assert huge["value"] is None or huge["value"] > 1e100
    assert huge["log2"] > 300
    margin = json.loads(run("bound", "5", "--k", "3", "--gamma", "0.1", "--json").stdout)
    assert (margin["side"], round(margin["log2"], 2)) == ("lower", -61.18)
    assert "21-sharp" in run("bound").stdout


VALUES = {"n_classes": 3, "radius": 1.0, "margin": 0.1, "dimension": 4, "reach": 0.1}
VALUES |= {"directions": 9, "exploration": 0.5, "n_kernels": 5, "softness": 0.005, "n_hypotheses": 100}


@pytest.mark.parametrize("theorem", BOUNDS)
def test_every_bound_can_be_asked_for(theorem: str) -> None:
    entry = BOUNDS[theorem]
    numbers = {name: VALUES[name] for name in entry.parameters}
    options = [part for name, value in numbers.items() for part in (OPTIONS[name], str(value))]
    answer = CliRunner().invoke(app, ["bound", theorem, *options, "--json"])
    assert answer.exit_code == 0, answer.exception
    found = json.loads(answer.stdout)
    assert found["value"] == pytest.approx(entry.function(**numbers), rel=1e-12)
    assert {name: found[name] for name in numbers} == numbers
    assert theorem in CliRunner().invoke(app, ["bound"]).stdout
    shown = CliRunner().invoke(app, ["bound", theorem, *options])
    assert shown.exit_code == 0
    missing = CliRunner().invoke(app, ["bound", theorem, *options[2:]])
    assert isinstance(missing.exception, ValueError)
    assert f"needs {options[0]} as well" in str(missing.exception)


def test_a_bound_beyond_a_float_is_a_power_of_two() -> None:
    answer = run("bound", "3", "--k", "3", "--radius", "1", "--gamma", "1e-200")
    assert answer.returncode == 0, answer.stderr
    assert "2^1327" in answer.stdout


@pytest.mark.parametrize("plays", ["a few", pytest.param("everyone", marks=pytest.mark.slow)])
def test_adversary_writes_its_table(tmp_path: Path, plays: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if plays == "a few":  # others would have to be compiled first
        few = [onebit.UniformGuess(), onebit.BanditPerceptron(), onebit.MulticlassPerceptron()]
        monkeypatch.setattr("onebit.experiments.duels.contestants", lambda _margin: few)
    answer = run("adversary", "remark", "--runs", "20", "--out", str(tmp_path))
    assert answer.returncode == 0, answer.stderr
    with (tmp_path / "adversaries.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["adversary"] for row in rows} == {"Remark"}
    uniform = next(row for row in rows if row["learner"].startswith("UniformGuess"))
    assert float(uniform["mean"]) == pytest.approx(9.0, abs=1.0)
    assert (tmp_path / "adversaries.png").stat().st_size > 5_000
    # The bound is on the mean: within three standard errors of 20 runs.
    for row in rows:
        mean, slack = float(row["mean"]), 3.0 * float(row["standard_error"])
        assert float(row["lower_bound"] or 1.0) - slack <= mean <= float(row["upper_bound"] or row["rounds"]) + slack
    # Whoever is told the label makes one mistake; the Remark binds the others.
    assert {row["mean"] for row in rows if not row["lower_bound"]} == {"1"}
    assert {float(row["lower_bound"]) for row in rows if row["lower_bound"]} == {4.5}


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
        splitting = random_set_splitting(int(row["n_elements"]), int(row["n_subsets"]), size=3, seed=int(row["seed"]))
        assert row["is_splittable"] == str(splitting.solve_by_enumeration() is not None)
        assert int(row["n_nodes"]) >= 1
        assert float(row["seconds"]) > 0.0

    for name in names:
        pixels = imread(tmp_path / f"{name}.png")
        assert pixels.shape[1] == round(150 * WIDTH)
        # A figure is mostly paper, but not only: its corner is white and many colours are on it.
        assert pixels[0, 0, :3].tolist() == [1.0, 1.0, 1.0]
        assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) > 50
        assert 0.01 < (pixels[..., :3].min(axis=2) < 0.95).mean() < 0.9
        assert ElementTree.parse(tmp_path / f"{name}.svg").getroot().tag.endswith("svg")
