"""`onebit warm-up`: what is compiled is on disk afterwards, and what cannot be kept is said."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from numba.core import config

from in_process import onebit
from onebit.cli import warm_up
from onebit.engine import code_cache
from onebit.engine.code_cache import NOT_KEPT
from onebit.engine.compile_notice import CompileNotice
from onebit.experiments.entries import DEFAULT_ENTRIES
from onebit.learners import all_learners

LATER = """
import numpy as np, scipy.sparse, tempfile
import onebit
from onebit.engine.compile_notice import NOTICE
X = np.random.default_rng(1).normal(size=(80, 5)) * np.geomspace(1, 1e4, 80)[:, None]
y = X[:, :3].argmax(axis=1)
for rows in (X, scipy.sparse.csr_array(X)):
    onebit.play(onebit.BanditPerceptron(), rows, y, keep_guesses=True)
    learner = onebit.BanditPerceptron(classes=3)
    for t in range(40):
        guess = learner.guess(rows[t : t + 1] if rows is not X else X[t])
        learner.tell(guess, guess.index == y[t])
with tempfile.TemporaryDirectory() as folder:
    for _ in range(2):
        with onebit.Decider.open(f"{folder}/desk.onebit", 3, onebit.BanditPerceptron()) as desk:
            for t in range(40):
                ticket = desk.guess({"x": X[t, 0], "y": X[t, 1], "subject": "blue" if t % 2 else "red"})
                desk.tell(ticket, ticket.label == y[t])
print(NOTICE.n_compiled)
"""


@pytest.fixture(autouse=True)
def notice(monkeypatch: pytest.MonkeyPatch) -> CompileNotice:
    """Let nothing be counted of what other tests compiled, and nothing be silenced for them."""
    NOT_KEPT.clear()
    fresh = CompileNotice()
    monkeypatch.setattr(warm_up, "NOTICE", fresh)
    return fresh


def run_process(cache: Path, *arguments: str) -> str:
    run = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.ci
def test_what_it_compiled_is_there_for_other_processes(tmp_path: Path) -> None:
    """Rounds, streams and deciders, with dense and sparse rows: nothing is left to compile."""
    cache = tmp_path / "cache"
    first = run_process(cache, "-m", "onebit", "warm-up", "BanditPerceptron")
    assert re.search(r"Ready after \d+\.\d seconds: [1-9]\d* functions were compiled\.", first)
    assert str(cache) in first.replace("\n", "")
    assert run_process(cache, "-c", LATER).strip() == "0"
    again = run_process(cache, "-m", "onebit", "warm-up", "BanditPerceptron")
    assert "everything was there already" in again


def test_it_says_what_it_did(monkeypatch: pytest.MonkeyPatch, notice: CompileNotice) -> None:
    monkeypatch.setattr(warm_up, "play", lambda *_arguments, **_named: None)
    monkeypatch.setattr(warm_up, "_decide", lambda *_arguments: setattr(notice, "n_compiled", 7))
    run = onebit("warm-up", "Majority")
    assert run.returncode == 0, run.stderr
    assert re.search(r"Compiling 1 learner .*3/3", run.stdout)
    assert re.search(r"Ready after \d+\.\d seconds: 7 functions were compiled\. The code is kept in \S", run.stdout)


def test_who_is_compiled() -> None:
    assert warm_up._named(()) == list(DEFAULT_ENTRIES)
    assert warm_up._named(["BanditSVM Banditron:exploration=0.1", "BanditSVM"]) == [
        "BanditSVM",
        "Banditron:exploration=0.1",
    ]
    assert set(warm_up._named(["all"])) == {cls.__name__ for cls in all_learners()}


@pytest.mark.parametrize(
    ("name", "says"), [("BanditSWM", "Did you mean BanditSVM?"), ("Banditron:rate=1", "has no setting 'rate'")]
)
def test_names_that_are_none(name: str, says: str) -> None:
    run = onebit("warm-up", name)
    assert run.returncode == 1
    assert says in run.stderr


def nowhere(_function: Any) -> Any:
    raise RuntimeError("cannot cache function: no locator available")


@pytest.mark.parametrize("named", ["", "/compiled"])
def test_where_no_folder_can_be_written_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setattr(code_cache, "_numba_cache", nowhere)
    monkeypatch.setattr(config, "CACHE_DIR", named)
    run = onebit("warm-up", "Majority")
    assert run.returncode == 1
    assert "compiled code cannot be kept" in run.stderr
    assert named in run.stderr
    assert "let the variable NUMBA_CACHE_DIR name a folder of yours" in run.stderr
    assert "Compiling" not in run.stdout


def test_a_folder_that_was_named_and_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "file"))
    run = onebit("warm-up", "Majority")
    assert run.returncode == 1
    assert "cannot be written to: name another folder, or unset it" in run.stderr


def test_what_could_not_be_kept_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(*_arguments: Any, **_named: Any) -> None:
        NOT_KEPT["loop"] = "No space left on device"

    monkeypatch.setattr(warm_up, "play", play)
    run = onebit("warm-up", "Majority")
    assert run.returncode == 1
    assert "could not be kept (No space left on device): let the variable NUMBA_CACHE_DIR" in run.stderr
    assert "Ready" not in run.stdout


def test_without_the_compiler_there_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "DISABLE_JIT", 1)
    run = onebit("warm-up", "Majority")
    assert run.returncode == 1
    assert "NUMBA_DISABLE_JIT" in run.stderr
