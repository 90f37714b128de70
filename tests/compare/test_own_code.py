"""A learner, a kernel, a stream and a rival of the user's own, entered by import path and played in workers."""

import csv
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

MINE = """
import numpy as np

from onebit.arena import PlayerTrace, Player, Spec
from onebit.learners import Banditron
from onebit.loop import default_checkpoints

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
    """Run the installed script, whose sys.path does not have the current folder."""
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
    run = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, check=False)
    assert "Traceback" not in run.stderr, run.stderr
    return run.stderr


def stored(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "out" / "arena.sqlite")) as connection:
        return int(connection.execute("SELECT count(*) FROM results").fetchone()[0])


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


def test_errors_of_own_code_name_it(folder: Path) -> None:
    assert "has no 'Eps'" in compare(folder, "mypackage.mine:Eps")
    assert "EpsPerceptron has no setting 'speed'; it has rate, kernel" in compare(
        folder, "mypackage.mine:EpsPerceptron:speed=2"
    )
    assert "there is no module 'mypackages'" in compare(folder, "mypackages.mine:EpsPerceptron")
