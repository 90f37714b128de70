import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from onebit.experiments.workers import end_with_parent

SCRIPT = """
import subprocess
from onebit.experiments.workers import ask_kernel
with subprocess.Popen(["sh", "-c", "echo begun; exec sleep 60"], preexec_fn=ask_kernel):
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
    monkeypatch.setattr("onebit.experiments.workers.ask_kernel", lambda: True)
    monkeypatch.setattr(os, "_exit", end)
    with pytest.raises(EndedError):
        end_with_parent()


def test_elsewhere_a_thread_waits_for_the_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    died, ended = threading.Event(), threading.Event()

    class Parent:
        join = died.wait

    monkeypatch.setattr("multiprocessing.parent_process", Parent)
    monkeypatch.setattr("onebit.experiments.workers.ask_kernel", lambda: False)
    monkeypatch.setattr(os, "_exit", lambda status: ended.set())
    end_with_parent()
    assert not ended.wait(0.1)
    died.set()
    assert ended.wait(10)
