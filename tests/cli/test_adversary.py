"""``onebit adversary`` as a user meets it."""

import csv
from pathlib import Path

import pytest

import onebit
from in_process import onebit as run


@pytest.mark.parametrize("plays", ["a few", pytest.param("everyone", marks=pytest.mark.slow)])
def test_adversary_writes_its_table(tmp_path: Path, plays: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if plays == "a few":  # others would have to be compiled first
        few = [onebit.UniformGuess(), onebit.BanditPerceptron(), onebit.MulticlassPerceptron()]
        monkeypatch.setattr("onebit.experiments.duels._contestants", lambda _margin: few)
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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("adversary", "17"), ["17", "remark"]),
        (("adversary", "--runs", "0"), ["--runs", "0"]),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], words: list[str]) -> None:
    answer = run(*arguments)
    assert answer.returncode == 1
    assert answer.stderr.count("\n") <= 1 + len(answer.stderr) // 80
    for word in words:
        assert word in answer.stderr
