"""Compiled code is kept on disk: found by the next process, never wrong, never in the way."""

import importlib
import os
import pkgutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
import scipy
from numba.core.registry import CPUDispatcher

import onebit
from onebit.encoding.encoder import _all_within
from onebit.engine import randomness
from onebit.engine.algorithm import Algorithm
from onebit.engine.code_cache import (
    NOT_KEPT,
    CodeCache,
    _ForeignCodeError,
    _keep,
    _made_of,
    _path,
    _read_trusted,
    _remove_unused,
    _types_in,
    is_ours,
)
from onebit.engine.jit import jit_inline, jit_no_refcount
from onebit.engine.state import compile_algorithm
from onebit.learners.bandit_svm import bank, rounds, separators
from onebit.learners.perceptrons import _BANDITRON, _HIGHEST
from onebit.spaces.linear import _score_dense as score
from onebit.spaces.linear import step_dense as step
from onebit.spaces.rule import rule_algorithm

GAME = """
import onebit
learner = onebit.Banditron(classes=3, seed=1)
said = []
for t in range(20):
    guess = learner.guess([0.2, -0.4, t % 3])
    learner.tell(guess, guess.index == t % 3)
    said.append(guess.index)
ready = learner._state._compiled[False]
print(said, sum(ready.guess.stats.cache_hits.values()) if hasattr(ready.guess, "stats") else "plain")
"""


def identity(function: Any) -> str | None:
    """Return what a function is made of, or None if something in it is not onebit's."""
    try:
        return _made_of(function)
    except _ForeignCodeError:
        return None


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


@pytest.mark.ci
def test_the_next_process_does_not_compile_again(tmp_path: Path) -> None:
    first, hits = play(tmp_path)
    assert hits == "0"
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")}
    assert files
    assert play(tmp_path) == (first, "1")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")} == files


def damaged(content: bytes, how: str) -> bytes:
    """Return a file's content cut short, or with one bit in its middle turned."""
    if how == "cut":
        return content[:100]
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize(
    "how", [pytest.param("cut", marks=pytest.mark.slow), pytest.param("bit", marks=pytest.mark.ci)]
)
def test_a_damaged_file_is_as_good_as_none_and_is_replaced(tmp_path: Path, how: str) -> None:
    first, _ = play(tmp_path)
    for path in tmp_path.rglob("*.nbc"):
        path.write_bytes(damaged(path.read_bytes(), how))
    assert play(tmp_path) == (first, "0")
    assert play(tmp_path) == (first, "1")


def kept(folder: Path, key: str = "key") -> Path:
    _keep(folder, key, b"compiled")
    return _path(folder, key)


def test_an_entry_is_for_this_user_only(tmp_path: Path) -> None:
    folder = tmp_path / "onebit-here"
    path = kept(folder)
    assert _read_trusted(folder, "key") == b"compiled"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600
    assert _read_trusted(folder, "another key") is None
    path.rename(_path(folder, "another key"))
    assert _read_trusted(folder, "another key") is None, "a file under another name was loaded"


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_what_another_user_may_write_is_not_loaded(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "onebit-here"
    path = kept(folder)
    path.chmod(mode)
    assert _read_trusted(folder, "key") is None
    path.chmod(0o600)
    folder.chmod(mode | 0o100)
    assert _read_trusted(folder, "key") is None
    with pytest.raises(PermissionError, match="can be written to by others"):
        kept(folder)


def test_links_are_not_followed(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "onebit-here", tmp_path / "onebit-there"
    path = kept(elsewhere)
    folder.symlink_to(elsewhere)
    assert _read_trusted(folder, "key") is None
    folder.unlink()
    folder.mkdir(mode=0o700)
    (folder / path.name).symlink_to(path)
    assert _read_trusted(folder, "key") is None


def test_a_folder_that_cannot_be_written_to_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    function: Any = _all_within
    NOT_KEPT.clear()
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path))
    values, hits = np.array([1.0, -2.0]), []

    def refuse(_locator: Any) -> None:
        raise PermissionError("read-only file system")

    for _ in range(2):
        again: Any = jit_no_refcount(function.py_func)
        assert again(values, 2.0)
        hits.append(sum(again.stats.cache_hits.values()))
        monkeypatch.setattr(numba.core.caching._CacheLocator, "ensure_cache_path", refuse)
    assert hits == [0, 1]
    assert again(values.astype(np.float32), 2.0)
    assert list(NOT_KEPT) == ["_all_within"], "another signature is compiled, and cannot be kept"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_another_users_files_are_not_loaded(tmp_path: Path) -> None:
    folder = tmp_path / "onebit-here"
    path = kept(folder)
    os.chown(path, 65534, 65534)
    assert _read_trusted(folder, "key") is None
    os.chown(path, 0, 0)
    assert _read_trusted(folder, "key") == b"compiled"
    os.chown(folder, 65534, 65534)
    assert _read_trusted(folder, "key") is None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there are no such users")
def test_a_process_that_becomes_another_user_trusts_that_ones_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(tmp_path / "onebit-here")
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    assert _read_trusted(tmp_path / "onebit-here", "key") is None


def test_entries_go_by_age(tmp_path: Path) -> None:
    folder = tmp_path / "onebit-here"
    old, used = kept(folder, "old"), kept(folder, "used")
    for path in (old, used):
        os.utime(path, (0, 0))
    assert _read_trusted(folder, "used") == b"compiled"
    _remove_unused.cache_clear()
    kept(folder, "new")
    assert not old.exists()
    assert used.exists()


def test_every_compiled_function_of_onebit_can_be_kept() -> None:
    names = [module.name for module in pkgutil.walk_packages(onebit.__path__, "onebit.")]
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    ours = {
        id(value): value for module in modules for value in vars(module).values() if isinstance(value, CPUDispatcher)
    }
    assert len(ours) > 100
    assert [each.py_func.__qualname__ for each in ours.values() if identity(each) is None] == []


def test_defaults_and_inner_functions_are_part_of_a_function() -> None:
    def make(default: int, limit: int) -> Any:
        made: dict[str, Any] = {"__name__": "onebit.made_up", "LIMIT": limit}
        exec(f"def function(x, rate={default}): return [y for y in x if y < LIMIT]", made)
        return made["function"]

    assert identity(make(1, 2)) == identity(make(1, 2))
    assert len({identity(make(*each)) for each in ((1, 2), (3, 2), (1, 4))}) == 3


def made_up(source: str, **found: object) -> Any:
    """Return a function of a module of onebit's that finds those things there."""
    made: dict[str, Any] = {"__name__": "onebit.made_up", **found}
    exec(f"def function(): return {source}", made)
    return made["function"]


def test_the_same_values_in_other_places_are_another_function() -> None:
    def pair(first: str, second: str) -> Any:
        make: Any = namedtuple
        kind = make("pair", [first, second])
        kind.__module__ = "onebit.made_up"
        return kind(1, 2)

    def closed(value: int) -> Any:
        def inner() -> int:
            return value

        inner.__module__ = "onebit.made_up"
        return inner

    one, two = closed(1), closed(2)
    for source, before, after in (
        ("C[0]", {"C": ((1, 2), 3)}, {"C": (1, (2, 3))}),
        ("C.a", {"C": pair("a", "b")}, {"C": pair("b", "a")}),
        ("C[2]()", {"C": (one, two, one)}, {"C": (one, two, two)}),
        ("max(min(1, 2), 3)", {"max": one}, {"min": one}),
    ):
        known = identity(made_up(source, **before))
        assert known is not None
        assert known == identity(made_up(source, **before))
        assert known != identity(made_up(source, **after)), source


def test_another_numpy_has_other_code(monkeypatch: pytest.MonkeyPatch) -> None:
    class Machine:
        def magic_tuple(self) -> tuple[str, ...]:
            return ("a machine",)

    cache = CodeCache(separators.replay_all)
    before = cache._key((), Machine())
    monkeypatch.setattr("numpy.__version__", "0.0")
    assert cache._key((), Machine()) != before


def test_an_intrinsic_is_part_of_the_functions_that_call_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = identity(randomness.uniform)
    assert before is not None
    function: Any = randomness._multiplied._defn
    changed = function.__code__.replace(co_consts=(*function.__code__.co_consts, "changed"))
    monkeypatch.setattr(function, "__code__", changed)
    assert identity(randomness.uniform) not in (before, None)


def test_a_module_or_class_cannot_be_told_by_its_name() -> None:
    for value in (scipy, randomness, randomness.Draw.__mro__[0], type("Mode", (), {"__module__": "onebit.made_up"})):
        assert (identity(made_up("value", value=value)) is None) == (value is not randomness.Draw)


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
    @jit_inline
    def strange(scores: object, draw: object, settings: object) -> tuple[int, bool]:
        return 0, False

    ours = rule_algorithm(_BANDITRON, score, step)
    theirs = rule_algorithm(_BANDITRON._replace(guess=strange), score, step)
    assert isinstance(ours, Algorithm)
    assert isinstance(getattr(compile_algorithm(ours).guess, "_cache", None), CodeCache)
    assert is_ours(compile_algorithm(ours).guess)
    assert not is_ours(compile_algorithm(theirs).guess), "a stranger's code would be kept"
    assert identity(compile_algorithm(ours).guess) != identity(
        compile_algorithm(rule_algorithm(_HIGHEST, score, step)).guess
    )
    assert identity(ours.choose) != identity(rule_algorithm(_HIGHEST, score, step).choose)
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
    known = identity(separators.replay_all), identity(rounds.run)
    assert None not in known
    # Its own, and one that it names through its module.
    for module, constant in ((separators, "_LEAST_SHARE"), (bank, "TRUST")):
        with monkeypatch.context() as patched:
            patched.setattr(module, constant, 7)
            changed = identity(separators.replay_all), identity(rounds.run)
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
    ours, theirs = (typeof(kind(1, 2)) for kind in (randomness.Draw, Draw))
    assert str(ours) == str(theirs)
    assert next(iter(_types_in([ours]))) == "onebit.engine.randomness.Draw('seed', 'round')"
    with pytest.raises(_ForeignCodeError):
        list(_types_in([theirs]))
