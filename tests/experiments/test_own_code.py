"""A learner, a kernel, a stream and a rival of the user's own, entered by import path and played in workers."""

import csv
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from onebit.code_version import code_version
from onebit.experiments import comparison as compared
from onebit.experiments.comparison import Comparison, run_comparison
from onebit.experiments.entries import enter
from onebit.experiments.vowpal_wabbit import VowpalWabbit
from onebit.learners.run import default_checkpoints
from onebit.streams.sources import Source, find_sources

MINE = """
from dataclasses import dataclass

import numpy as np

from onebit.experiments import PlayerTrace, Player, Spec
from onebit.learners import Banditron
from onebit.learners.run import default_checkpoints

RATE = 0.25


class EpsPerceptron(Banditron):
    def __init__(self, rate=RATE, kernel=None, *, classes=None, seed=0):
        super().__init__(rate, kernel, classes=classes, seed=seed)
        self.rate = rate

    def get_params(self, deep=True):
        return {"rate": self.rate, "kernel": self.kernel, "classes": self.classes, "seed": self.seed}


def shifted(X, Y):
    return 1.0 + X @ Y.T


def coin(rounds, seed):
    y = np.random.default_rng(seed).integers(2, size=rounds)
    return np.column_stack([2.0 * y - 1.0, np.ones(rounds)]), y


@dataclass(frozen=True)
class AlwaysFirst(Player):
    title = "First"

    @property
    def spec(self):
        return Spec("mypackage.mine:AlwaysFirst")

    def play(self, X, y, n_classes, seed, scratch):
        return PlayerTrace(np.cumsum(y != 0)[default_checkpoints(len(y)) - 1])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mypackage").mkdir()
    (tmp_path / "mypackage" / "__init__.py").write_text("")
    (tmp_path / "mypackage" / "mine.py").write_text(MINE)
    return tmp_path


def compare(folder: Path, *learners: str) -> str:
    """Run the installed script, whose sys.path does not have the current folder; 80 rounds are not worth compiling."""
    command = [str(Path(sys.executable).parent / "onebit"), "compare", "mypackage.mine:coin", "--rounds", "80"]
    options = [
        "--runs",
        "2",
        "--jobs",
        "2",
        "--out",
        "out",
        *(word for text in learners for word in ("--learners", text)),
    ]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, check=False, env=environment)
    assert "Traceback" not in run.stderr, run.stderr
    return run.stderr


def stored(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "out" / "arena.sqlite")) as connection:
        return int(connection.execute("SELECT count(*) FROM results").fetchone()[0])


@pytest.mark.slow
def test_own_code_plays_in_workers_and_its_code_is_in_the_key(folder: Path) -> None:
    learners = (
        "mypackage.mine:EpsPerceptron",
        "mypackage.mine:EpsPerceptron:rate=0.5",
        "BanditPerceptron:kernel=mypackage.mine:shifted",
        "mypackage.mine:AlwaysFirst",
    )
    assert compare(folder, *learners) == ""
    with (folder / "out" / "comparison.csv").open() as file:
        rows = {row["learner"]: row for row in csv.DictReader(file)}
    assert list(rows) == list(learners)
    assert float(rows["mypackage.mine:AlwaysFirst"]["mean"]) > 20
    assert {row["dataset"] for row in rows.values()} == {"mypackage.mine:coin"}
    assert stored(folder) == 8

    path = folder / "mypackage" / "mine.py"
    path.write_text(MINE.replace("RATE = 0.25", "RATE = 0.25  # a quarter"))
    assert compare(folder, *learners) == ""
    assert stored(folder) == 8, "a comment changes nothing"
    path.write_text(MINE.replace("1.0 + X @ Y.T", "2.0 + X @ Y.T"))
    assert compare(folder, *learners) == ""
    assert stored(folder) == 16, "other code is other games"


@pytest.mark.slow
def test_errors_of_own_code_name_it(folder: Path) -> None:
    assert "has no 'Eps'" in compare(folder, "mypackage.mine:Eps")
    assert "EpsPerceptron has no setting 'speed'; it has rate, kernel" in compare(
        folder, "mypackage.mine:EpsPerceptron:speed=2"
    )
    assert "there is no module 'mypackages'" in compare(folder, "mypackages.mine:EpsPerceptron")


@pytest.mark.slow
def test_computing_a_key_runs_nothing_that_is_not_named(folder: Path) -> None:
    imports = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from gui import Window\n"
    later = "\n\ndef build():\n    import setup\n    import broken.deep\n"
    (folder / "mypackage" / "mine.py").write_text(imports + MINE + later)
    for name in ("gui.py", "setup.py"):
        (folder / name).write_text("import sys\nsys.exit(0)\n")
    (folder / "broken").mkdir()
    (folder / "broken" / "__init__.py").write_text("this is not Python\n")
    assert compare(folder, "mypackage.mine:EpsPerceptron") == ""
    assert stored(folder) == 2


ROWS = "".join(f"{7 * k % 40},{k % 3 - 1},{'ab'[k % 2]}\n" for k in range(40))
ENTRIES = (enter("Banditron"), enter("BanditPerceptron"))


def keys(*sources: Source) -> list[str]:
    return [cell.key for cell in Comparison(sources, ENTRIES, rounds=30, runs=2).cells()]


def test_another_name_of_a_file_is_the_same_games(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(ROWS)
    first = keys(*find_sources([str(tmp_path / "a.csv")]))
    shutil.move(tmp_path / "a.csv", tmp_path / "b.csv")
    assert keys(*find_sources([str(tmp_path / "b.csv")])) == first


def test_two_files_with_the_same_rows(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv", "c.csv"):
        (tmp_path / name).write_text(ROWS if name < "c" else ROWS.replace("7,", "8,"))
    sources = tuple(find_sources([str(tmp_path)]))
    wanted = Comparison(sources, ENTRIES, rounds=30, runs=2)
    assert len(wanted.cells()) == 8, "what is the same is played once"
    assert [(source.name, facts.is_sparse) for source, facts in wanted.facts.items()] == [
        (name, False) for name in "abc"
    ]
    outcomes = run_comparison(wanted, tmp_path, jobs=1)
    assert [outcome.dataset for outcome in outcomes] == ["a", "a", "b", "b", "c", "c"]
    assert {outcome.mistakes.shape for outcome in outcomes} == {(2, 30)}
    for one, other in zip(outcomes[:2], outcomes[2:4], strict=True):
        assert np.array_equal(one.mistakes, other.mistakes)


@pytest.fixture
def versioned(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """The modules that the keys of two sources are made of."""
    found: dict[str, set[str]] = {}
    for name in ("iris", "paper_weak"):
        seen: set[str] = set()

        def note(modules: set[str], seen: set[str] = seen) -> str:
            seen |= modules
            return code_version(modules)

        monkeypatch.setattr(compared, "code_version", note)
        keys(*find_sources([name]))
        found[name] = seen
    return found


def test_what_decides_the_rounds_is_in_the_key(versioned: dict[str, set[str]]) -> None:
    decides = {"onebit.experiments.players", "onebit.streams.preprocess"}
    assert versioned["iris"] >= {*decides, "onebit.streams.data_set"}
    assert versioned["paper_weak"] >= {*decides, "onebit.streams.sources", "onebit.streams.paper"}


def test_what_shows_or_stores_is_in_no_key(versioned: dict[str, set[str]]) -> None:
    beside = (
        "onebit.reporting",
        "onebit.cli",
        "onebit.experiments.store",
        "onebit.experiments.run",
        "onebit.bounds",
    )
    others = (
        "onebit.experiments.run",
        "onebit.experiments.comparison",
        "onebit.experiments.compare",
        "onebit.experiments.statistics",
        "onebit.streams.files",
        "onebit.streams.table",
    )
    assert not [name for code in versioned.values() for name in code if name.startswith((*beside, *others))]


def test_other_checkpoints_are_other_games_of_everyone(monkeypatch: pytest.MonkeyPatch) -> None:
    rival = VowpalWabbit("--epsilon 0.05", version="0.0")
    assert not [
        name
        for name in rival.code()
        if name.startswith(("onebit.learners", "onebit.engine.algorithm", "onebit.engine.state"))
    ]
    entries = (*ENTRIES, enter(rival))
    wanted = Comparison((Source("iris"),), entries, rounds=30, runs=1)
    first = {cell.key for cell in wanted.cells()}
    monkeypatch.setattr(compared, "default_checkpoints", lambda n: default_checkpoints(n)[1:])
    assert not first & {cell.key for cell in wanted.cells()}


@pytest.mark.slow
def test_the_player_of_the_manual_plays(tmp_path: Path) -> None:
    """The recipe is taken out of the page, as a reader would."""
    page = (Path(__file__).parents[2] / "docs" / "compare.md").read_text(encoding="utf-8")
    recipe = next(code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "class Often(Player)" in code)
    (tmp_path / "often.py").write_text(recipe, encoding="utf-8")
    command = re.findall(r"`onebit (compare [^`]*often:Often[^`]*)`", page)[0]
    words = [*shlex.split(command), "--runs", "2", "--jobs", "2", "--out", "out"]
    script = str(Path(sys.executable).parent / "onebit")
    run = subprocess.run([script, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    with (tmp_path / "out" / "comparison.csv").open(newline="", encoding="utf-8") as file:
        mistakes = {row["learner"]: float(row["mean"]) for row in csv.DictReader(file)}
    assert list(mistakes) == ["often:Often", "often:Often:exploration=0.3", "BanditPerceptron"]
    assert mistakes["BanditPerceptron"] < mistakes["often:Often"] < 150
