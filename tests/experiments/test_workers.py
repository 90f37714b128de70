import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import wait
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

from onebit.experiments import Cell, Spec, vowpal_wabbit
from onebit.experiments.players import play_cell
from onebit.experiments.run import EnvironmentMismatchError, _check_environment, _described, _needs_of
from onebit.experiments.workers import LocalProcesses, _end_with_parent

SCRIPT = """
import subprocess
from onebit.experiments.workers import _ask_kernel
with subprocess.Popen(["sh", "-c", "echo begun; exec sleep 60"], preexec_fn=_ask_kernel):
    pass
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels cannot")
def test_a_program_ends_with_the_killed_worker_that_started_it() -> None:
    command = [sys.executable, "-c", SCRIPT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        process.kill()
        start = time.monotonic()
        try:
            # The program holds the other end of this pipe.
            process.communicate(timeout=30)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        assert time.monotonic() - start < 2


def test_a_worker_whose_parent_died_before_it_asked_ends_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    class EndedError(Exception):
        pass

    def end(status: int) -> None:
        raise EndedError(status)

    class Parent:
        pid = os.getppid() + 1

    monkeypatch.setattr("multiprocessing.parent_process", Parent)
    monkeypatch.setattr("onebit.experiments.workers._ask_kernel", lambda: True)
    monkeypatch.setattr(os, "_exit", end)
    with pytest.raises(EndedError):
        _end_with_parent()


def test_elsewhere_a_thread_waits_for_the_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    died, ended = threading.Event(), threading.Event()

    class Parent:
        join = died.wait

    monkeypatch.setattr("multiprocessing.parent_process", Parent)
    monkeypatch.setattr("onebit.experiments.workers._ask_kernel", lambda: False)
    monkeypatch.setattr(os, "_exit", lambda status: ended.set())
    _end_with_parent()
    assert not ended.wait(0.1)
    died.set()
    assert ended.wait(10)


STREAM = Spec("paper_weak", {"rounds": 10})


def test_a_worker_needs_the_code_that_plays_and_that_users_name() -> None:
    strange = Cell(Spec("a", {"kernel": {"function": "fractions:Fraction"}}), Spec("json:loads"), 1, "test")
    needs = _needs_of(partial(play_cell), strange, _described)
    assert needs.modules == ("fractions", "json", "onebit.experiments.players")
    assert f"python {sys.version_info.major}.{sys.version_info.minor}" in needs.described
    assert f"numpy {np.__version__}" in needs.described
    _check_environment(needs)
    other = needs._replace(described=(*needs.described[:-1], "scikit-learn 0.9"))
    with pytest.raises(EnvironmentMismatchError, match=r"^it has scikit-learn .*, this run needs scikit-learn 0.9$"):
        _check_environment(other)


def test_a_worker_needs_the_version_of_a_rival_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vowpal_wabbit, "require", lambda: "9.11")
    rival = vowpal_wabbit.VowpalWabbit(vowpal_wabbit._DEFAULT)
    needs = _needs_of(play_cell, Cell(STREAM, rival.spec, 1, "test"), _described)
    assert needs.described[-1].endswith("VowpalWabbit 9.11")
    monkeypatch.setattr(vowpal_wabbit, "require", lambda: "9.12")
    with pytest.raises(EnvironmentMismatchError, match=r"VowpalWabbit 9\.12, this run needs"):
        _check_environment(needs)


def test_code_that_is_not_there_is_a_mismatch() -> None:
    needs = _needs_of(play_cell, Cell(STREAM, Spec("Banditron"), 1, "test"), _described)
    with pytest.raises(EnvironmentMismatchError, match="ModuleNotFoundError: No module named 'nowhere'"):
        _check_environment(needs._replace(modules=("nowhere",)))


def test_a_worker_that_dies_while_it_is_idle_is_replaced() -> None:
    with LocalProcesses(1) as executor:
        first = executor.submit(os.getpid).result(60)
        os.kill(first, signal.SIGKILL)
        time.sleep(1.0)  # until the pool has noticed
        second = executor.submit(os.getpid).result(60)
        assert second != first
        assert executor.submit(os.getpid).result(60) == second


def test_what_follows_goes_to_the_worker_that_was_last_done() -> None:
    with LocalProcesses(2) as executor:
        both = [executor.submit(time.sleep, 0.2), executor.submit(time.sleep, 0.2)]
        wait(both)
        workers = [executor.submit(os.getpid).result(60) for _ in range(3)]
        assert len(set(workers)) == 1
