"""Compiled code is kept on disk: found by the next process, never wrong, never in the way."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numba
import pytest

from onebit import draws
from onebit.code_cache import CodeCache, _StrangerError, _types_in, identity, is_ours
from onebit.compiled import inlined
from onebit.learners.bandit_perceptron import HIGHEST
from onebit.learners.bandit_svm import linear_facts
from onebit.learners.banditron import RULE
from onebit.loop import Game, moves
from onebit.spaces.base import rule_game
from onebit.spaces.linear import score, step

GAME = """
import onebit
from onebit.learners.banditron import RULE
from onebit.loop import moves
learner = onebit.Banditron(classes=3, seed=1)
said = []
for t in range(20):
    guess = learner.guess([0.2, -0.4, t % 3])
    learner.tell(guess, guess.index == t % 3)
    said.append(guess.index)
ready = learner._memory._ready_moves[False]
print(said, sum(ready.look.stats.cache_hits.values()) if hasattr(ready.look, "stats") else "plain")
"""


def play(folder: Path, **environment: str) -> tuple[str, str]:
    """Return what a new process guesses, and how often it found compiled code."""
    run = subprocess.run(
        [sys.executable, "-c", GAME],
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    said, _, hits = run.stdout.strip().rpartition(" ")
    return said, hits


def test_the_next_process_does_not_compile_again(tmp_path: Path) -> None:
    first, hits = play(tmp_path)
    assert hits == "0"
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")}
    assert files
    assert play(tmp_path) == (first, "1")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")} == files


@pytest.mark.slow
def test_a_torn_file_is_as_good_as_none_and_is_replaced(tmp_path: Path) -> None:
    first, _ = play(tmp_path)
    for path in tmp_path.rglob("*.nbc"):
        path.write_bytes(path.read_bytes()[:100])
    assert play(tmp_path) == (first, "0")
    assert play(tmp_path) == (first, "1")


@pytest.mark.slow
def test_code_that_checks_bounds_is_kept_apart(tmp_path: Path) -> None:
    plain, _ = play(tmp_path)
    assert play(tmp_path, NUMBA_BOUNDSCHECK="1") == (plain, "0")
    assert play(tmp_path, NUMBA_BOUNDSCHECK="1") == (plain, "1")
    assert play(tmp_path) == (plain, "1")


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert play(blocked)[0] == play(tmp_path / "other")[0]


def test_what_a_function_is_made_of() -> None:
    @inlined
    def strange(scores: object, draw: object, settings: object) -> tuple[int, bool]:
        return 0, False

    ours = rule_game(RULE, score, step)
    theirs = rule_game(RULE._replace(guess=strange), score, step)
    assert isinstance(ours, Game)
    assert isinstance(getattr(moves(ours).look, "_cache", None), CodeCache)
    assert is_ours(moves(ours).look)
    assert not is_ours(moves(theirs).look), "a stranger's code would be kept"
    assert identity(moves(ours).look) != identity(moves(rule_game(HIGHEST, score, step)).look)
    assert identity(ours.decide) != identity(rule_game(HIGHEST, score, step).decide)
    assert identity(object()) is None


@pytest.mark.parametrize("constant", [1, 2.5, "word", None, True])
def test_constants_tell_functions_apart(constant: object) -> None:
    def make(value: object) -> object:
        def function() -> object:
            return value

        function.__module__ = "onebit.made_up"
        return function

    assert identity(make(constant)) != identity(make(7))


def test_a_constant_of_the_module_is_part_of_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba freezes it: code compiled under another value must not be found again."""
    known = identity(linear_facts.replay), identity(linear_facts.linear_game(False, False).hear)
    monkeypatch.setattr(linear_facts, "_VISITS_PER_REPLAY", 0)
    changed = identity(linear_facts.replay), identity(linear_facts.linear_game(False, False).hear)
    assert None not in known
    assert all(before != after for before, after in zip(known, changed, strict=True))


def test_functions_without_a_home_are_strangers() -> None:
    made: dict[str, Any] = {}
    exec("def function(): return 1", {"__name__": None}, made)
    assert identity(made["function"]) is None


def test_named_tuples_are_known_by_their_home_and_fields() -> None:
    class Draw(NamedTuple):
        round: int
        seed: int

    typeof: Any = numba.typeof
    ours, theirs = (typeof(kind(1, 2)) for kind in (draws.Draw, Draw))
    assert str(ours) == str(theirs)
    assert next(iter(_types_in([ours]))) == "onebit.draws.Draw('seed', 'round')"
    with pytest.raises(_StrangerError):
        list(_types_in([theirs]))
