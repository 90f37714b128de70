"""``onebit margin``, ``bound``, ``adversary`` and ``theory`` as a user meets them."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onebit


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "onebit", *arguments], capture_output=True, text=True)


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
    assert "not separable" not in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("margin", "no_such_set"), ["no_such_set"]),
        (("margin", "wedges", "--kernel", "magic"), ["--kernel", "magic", "rational"]),
        (("margin", "no_such_file.csv", "--kernel", "magic"), ["--kernel", "magic", "Gaussian, Linear"]),
        (("margin", "wedges", "--kernel", "gaussian:-1"), ["--kernel gaussian:-1", "width"]),
        (("bound", "99"), ["99", "21-sharp"]),
        (("bound", "2", "--k", "3"), ["--radius", "--gamma"]),
        (("bound", "10", "--radius", "1", "--gamma", "0.1", "--k", "3"), ["does not take --k"]),
        (("bound", "2", "--k", "3", "--gamma", "-1", "--radius", "1"), ["margin", "-1"]),
        (("bound", "2", "--k", "3", "--gamma", "5", "--radius", "1"), ["margin must be at most"]),
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
