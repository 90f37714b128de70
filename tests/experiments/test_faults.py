"""Faults, kills and interrupts at every point of a run: nothing is lost, nothing is left behind."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="system calls and signals are those of Unix")


def outcomes(script: str, every: int) -> Any:
    done = subprocess.run(
        [sys.executable, str(FOLDER / script), str(every)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize("every", [pytest.param(13, marks=pytest.mark.ci), pytest.param(1, marks=pytest.mark.slow)])
def test_a_fault_or_kill_at_any_call_of_sqlite_loses_nothing(every: int) -> None:
    for begun, counts in outcomes("store_faults.py", every).items():
        assert counts["refused"] > 5, begun
        assert counts["killed"] > 5, begun


@pytest.mark.parametrize("every", [pytest.param(23, marks=pytest.mark.ci), pytest.param(2, marks=pytest.mark.slow)])
def test_a_signal_at_any_line_of_a_run_spoils_nothing(every: int) -> None:
    counts = outcomes("interrupts_everywhere.py", every)
    assert counts["interrupted"] > 50
