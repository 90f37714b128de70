"""What is used of Numba's private parts is there, and without it the games are the same."""

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import numba
import numpy as np
import pytest
from numba.core import caching, event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import DefaultPassBuilder, Flags, StateDict
from numba.core.types import BaseFunction
from numba.extending import overload

import onebit
from onebit.engine.code_cache import NOT_KEPT, CodeCache
from onebit.engine.jit import jit, jit_internal
from onebit.engine.numba_private import _NEEDLESS_PASSES, KNOWN, _FewPasses
from onebit.engine.randomness import uniform

_WITH_ANOTHER_NUMBA = """
import numba
numba.__version__ = "9.9.9"
import onebit
from onebit.engine import numba_private
assert not numba_private._USES_PRIVATE_PARTS
X, y = onebit.streams.paper_strong(rounds=300, seed=1)
print(*(onebit.play(learner, X, y, seed=7).mistakes for learner in (onebit.BanditPerceptron(), onebit.BanditSVM())))
"""


def test_the_version_of_numba_is_known() -> None:
    """Fails on purpose when the pin of Numba is raised: the module's docstring has what to do then."""
    assert numba.__version__.startswith(KNOWN)


@pytest.mark.ci
def test_another_version_of_numba_plays_the_same_games(tmp_path: Path) -> None:
    X, y = onebit.streams.paper_strong(rounds=300, seed=1)
    learners = onebit.BanditPerceptron(), onebit.BanditSVM()
    expected = [onebit.play(learner, X, y, seed=7).mistakes for learner in learners]
    command, environment = [sys.executable, "-c", _WITH_ANOTHER_NUMBA], os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    played = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    assert [int(word) for word in played.stdout.split()] == expected


def test_where_numbas_cache_has_changed_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(caching, "CompileResultCacheImpl")

    def plus_seven(x: float) -> float:
        return x + 7.0

    assert jit(plus_seven)(1.0) == 8.0
    assert "in another way" in NOT_KEPT[plus_seven.__qualname__]


def test_garbage_is_collected_again_after_compiling() -> None:
    assert gc.isenabled()
    assert jit(lambda x: x + 1)(1) == 2
    assert gc.isenabled()


def test_another_version_of_numba_compiles_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.engine.numba_private._USES_PRIVATE_PARTS", False)
    monkeypatch.setattr("onebit.engine.numba_private.NotFromPython._makes", JITCodeLibrary)

    @jit_internal
    def twice(x: float) -> float:
        return 2.0 * x

    @jit
    def four_times(x: float) -> float:
        return twice(twice(x))

    assert four_times(3.0) == 12.0


def test_types_are_remembered_while_something_is_compiled_and_no_longer() -> None:
    functions: Any = BaseFunction
    before = functions.get_call_type
    seen = []

    def once(x: float) -> float:
        return x + x + x

    class _Listener(event.Listener):
        def on_start(self, _event: Any) -> None:
            seen.append(functions.get_call_type)

        def on_end(self, _event: Any) -> None:
            seen.append(functions.get_call_type)

    listener = _Listener()
    with event.install_listener("numba:run_pass", listener):
        assert jit(once)(2.0) == 6.0
    assert before not in seen
    assert functions.get_call_type is before


def test_numba_has_the_passes_that_are_left_out() -> None:
    state, flags, builder = cast(tuple[Any, Any, Any], (StateDict(), Flags, DefaultPassBuilder))
    state.flags, state.func_ir = flags(), None
    passes = {made.__name__ for made, _ in builder.define_nopython_pipeline(state).passes}
    assert passes >= _NEEDLESS_PASSES


def ratio(a: float, b: float) -> float:
    return a / b


@overload(ratio, strict=False)
def _ratio(a: Any, b: Any) -> Any:
    return lambda a, b: a / b


def test_remembered_types_keep_the_implementation_of_each_function() -> None:
    """Numba's own error model raises; ours does not, though both call the same overload in one compilation."""

    @numba.njit(error_model="python")
    def theirs(a: float, b: float) -> float:
        return ratio(a, b)

    @jit
    def ours(a: float, b: float) -> float:
        x = ratio(a, b)
        return x if b == 0.0 else theirs(a, b)

    assert ours(1.0, 0.0) == np.inf
    assert ours(1.0, 4.0) == 0.25


def test_code_on_disk_depends_on_the_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Machine:
        def magic_tuple(self) -> tuple[()]:
            return ()

    cache: Any = CodeCache(uniform)
    before = cache._key((), Machine())
    monkeypatch.setattr(_FewPasses, "left_out", ())
    assert cache._key((), Machine()) != before
