"""``onebit margin``, ``bound``, ``adversary`` and ``theory`` as a user meets them."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import onebit
from onebit.bounds import BOUNDS
from onebit.cli import app
from onebit.commands.bound import OPTIONS


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "onebit", *arguments], capture_output=True, text=True)


def test_margin_of_a_bundled_set() -> None:
    answer = run("margin", "wedges", "--json")
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert found["weak"] == pytest.approx(0.11252667, rel=1e-6)
    assert found["strong"] == 0.0
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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("margin", "no_such_set"), ["no_such_set"]),
        (("margin", "wedges", "--kernel", "magic"), ["--kernel", "magic", "rational"]),
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
def test_bad_input_is_one_line(arguments: tuple[str, ...], words: list[str]) -> None:
    answer = run(*arguments)
    assert answer.returncode == 1
    assert "Traceback" not in answer.stderr
    for word in words:
        assert word in answer.stderr


def test_bounds_by_number() -> None:
    assert "800" in run("bound", "2", "--k", "3", "--gamma", "0.1", "--radius", "1").stdout
    huge = json.loads(run("bound", "6", "--k", "3", "--gamma", "0.000001", "--json").stdout)
    assert huge["value"] is None or huge["value"] > 1e100
    assert huge["log2"] > 300
    margin = json.loads(run("bound", "5", "--k", "3", "--gamma", "0.1", "--json").stdout)
    assert (margin["side"], round(margin["log2"], 2)) == ("lower", -61.18)
    assert "21-sharp" in run("bound").stdout


VALUES = {"n_classes": 3, "radius": 1.0, "margin": 0.1, "dimension": 4, "reach": 0.1}
VALUES |= {"directions": 9, "exploration": 0.5}


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


def test_adversary_writes_its_table(tmp_path: Path) -> None:
    answer = run("adversary", "remark", "--runs", "20", "--out", str(tmp_path))
    assert answer.returncode == 0, answer.stderr
    with (tmp_path / "adversaries.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["adversary"] for row in rows} == {"Remark"}
    uniform = next(row for row in rows if row["learner"].startswith("UniformGuess"))
    assert float(uniform["mean"]) == pytest.approx(9.0, abs=1.0)
    assert (tmp_path / "adversaries.png").stat().st_size > 5_000
    assert np.all([float(row["mean"]) >= 0 for row in rows])
