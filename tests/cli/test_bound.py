"""``onebit bound`` as a user meets it."""

import json

import pytest
from typer.testing import CliRunner

from in_process import onebit as run
from onebit.bounds import BOUNDS
from onebit.cli import app
from onebit.cli.bound import _OPTIONS


def test_bounds_by_number() -> None:
    assert "800" in run("bound", "2", "--k", "3", "--gamma", "0.1", "--radius", "1").stdout
    assert ".: " not in run("bound", "2", "--k", "3", "--gamma", "0.1", "--radius", "1").stdout
    huge = json.loads(run("bound", "6", "--k", "3", "--gamma", "0.000001", "--json").stdout)
    assert huge["value"] is None or huge["value"] > 1e100
    assert huge["log2"] > 300
    margin = json.loads(run("bound", "5", "--k", "3", "--gamma", "0.1", "--json").stdout)
    assert (margin["side"], round(margin["log2"], 2)) == ("lower", -61.18)


def test_all_bounds_are_listed_in_order_and_in_full() -> None:
    listed = run("bound").stdout
    assert "…" not in listed.partition("THEOREM …")[2]
    names = [line.split()[0] for line in listed.splitlines() if " upper " in line or " lower " in line]
    assert set(names) == set(BOUNDS)
    assert [name for name in names if name.isdigit()] == ["2", "3", "4", "5", "6", "10", "11", "21", "24"]
    assert names.index("21") + 1 == names.index("21-memory")


VALUES = {"n_classes": 3, "radius": 1.0, "margin": 0.1, "dimension": 4, "reach": 0.1}
VALUES |= {"directions": 9, "exploration": 0.5, "n_kernels": 5, "softness": 0.005, "n_hypotheses": 100}


@pytest.mark.parametrize("theorem", BOUNDS)
def test_every_bound_can_be_asked_for(theorem: str) -> None:
    entry = BOUNDS[theorem]
    numbers = {name: VALUES[name] for name in entry.parameters}
    options = [part for name, value in numbers.items() for part in (_OPTIONS[name], str(value))]
    answer = CliRunner().invoke(app, ["bound", theorem, *options, "--json"])
    assert answer.exit_code == 0, answer.exception
    found = json.loads(answer.stdout)
    assert found["value"] == pytest.approx(entry(**numbers), rel=1e-12)
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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("bound", "99"), ["99", "21-sharp"]),
        (("bound", "2", "--k", "3"), ["--radius", "--gamma"]),
        (("bound", "10", "--radius", "1", "--gamma", "0.1", "--k", "3"), ["does not take --k"]),
        (("bound", "2", "--k", "3", "--gamma", "-1", "--radius", "1"), ["margin", "-1"]),
        (("bound", "2", "--k", "3", "--gamma", "5", "--radius", "1"), ["margin must be at most"]),
        (("bound", "6", "--k", "10", "--gamma", "1.4"), ["margin must be at most", "1.05409", "give margin/R"]),
        (("bound", "21-reach", "--k", "3", "--radius", "1", "--gamma", "1"), ["--reach", "--dimension"]),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], words: list[str]) -> None:
    answer = run(*arguments)
    assert answer.returncode == 1
    assert answer.stderr.count("\n") <= 1 + len(answer.stderr) // 80
    for word in words:
        assert word in answer.stderr
