"""Compiled code does not look before it reads: here it does, and no learner reads beyond an array."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from onebit.learners import all_learners

HERE = Path(__file__).parent
BEYOND = """
import numpy as np
from onebit.engine.jit import jit, jit_inline, jit_no_refcount

@jit_inline
def read(values, i):
    return values[i]

@jit
def read_compiled(values, i):
    return read(values, i)

@jit_no_refcount
def write_frugal(values, i):
    values[i] = 1.0
    return 0.0

for function in (read_compiled, write_frugal):
    function(np.zeros(3), 2)
    try:
        function(np.zeros(3), 3)
    except IndexError:
        print("found")
"""


def run(*arguments: str, **environment: str) -> str:
    """Return what a process with an environment of its own prints."""
    done = subprocess.run(
        [sys.executable, *arguments], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.ci
@pytest.mark.parametrize("how", ["NUMBA_BOUNDSCHECK", "NUMBA_DISABLE_JIT"])
def test_reading_beyond_an_array_is_found(how: str) -> None:
    assert run("-c", BEYOND, **{how: "1"}).split() == ["found", "found"]


@pytest.mark.ci
def test_no_learner_reads_beyond_an_array() -> None:
    """Without the compiler NumPy checks every index of the same code, and nothing has to be compiled first."""
    n_examples = sum(len(list(cls.examples())) for cls in all_learners())
    assert int(run(str(HERE / "play_everything.py"), NUMBA_DISABLE_JIT="1")) == n_examples


@pytest.mark.slow
def test_no_compiled_learner_does_either() -> None:
    assert int(run(str(HERE / "play_everything.py"), NUMBA_BOUNDSCHECK="1")) > len(all_learners())


@pytest.mark.slow
@pytest.mark.parametrize("which", ["learners", "spaces", "test_contracts.py"])
def test_the_learners_tests_pass_with_bounds_checked(which: str) -> None:
    options = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-m", "not slow"]
    seen = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if not hides_pandas(path)]
    run("-m", "pytest", str(HERE / which), *options, NUMBA_BOUNDSCHECK="1", PYTHONPATH=os.pathsep.join(seen))


def hides_pandas(path: str) -> bool:
    """Return whether `conftest` lets processes of a worker look there, which do without; these do not."""
    return Path(path).name.startswith("onebit-tests-")
