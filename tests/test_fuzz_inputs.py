"""Whatever is done to a sparse matrix, it is played as its dense twin or refused; nothing crashes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("fuzz_inputs.py")


def fuzz(seed: int, cases: int, examples: int, **environment: str) -> dict[str, int]:
    """Return how often each outcome was seen in a process of its own."""
    run = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", str(PROGRAM), str(seed), str(cases), str(examples)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, f"status {run.returncode}: {run.stderr[-3000:]}"
    seen: dict[str, int] = json.loads(run.stdout)
    assert sum(seen.values()) == cases
    return seen


@pytest.mark.ci
def test_damaged_matrices_are_refused_and_whole_ones_are_played() -> None:
    """Without the compiler, which would take longer than the fuzz: what is let through shows all the same."""
    seen = fuzz(seed=0, cases=600, examples=9, NUMBA_DISABLE_JIT="1")
    assert seen["refused: damaged"] > 200
    assert seen["the same game"] > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_many_damaged_matrices_with_the_compiler(seed: int) -> None:
    seen = fuzz(seed, cases=10_000, examples=9)
    assert seen["refused: damaged"] > 3000
    assert seen["the same game"] > 2000
