"""``onebit margin`` as a user meets it."""

import csv
import json
from pathlib import Path

import pytest

import onebit
from in_process import onebit as run


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
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], words: list[str]) -> None:
    answer = run(*arguments)
    assert answer.returncode == 1
    assert answer.stderr.count("\n") <= 1 + len(answer.stderr) // 80
    for word in words:
        assert word in answer.stderr
