"""Runs external programs of rivals, with a time limit."""

import subprocess
import sys
from collections.abc import Mapping, Sequence

from onebit.experiments.orphans import ask_kernel


def run_program(
    command: Sequence[str],
    who: str,
    seconds: float,
    remedy: str,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program and return its output; kill it after the time limit, and raise a RuntimeError.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments. It gets no terminal, and ends with this process.
    who : str
        Its name in messages.
    seconds : float
        The time limit.
    remedy : str
        What to do if that is too short, for the message.
    environment : mapping, optional
        Its environment variables; ours by default.
    """
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            env=environment,
            timeout=seconds,
            preexec_fn=ask_kernel if sys.platform == "linux" else None,  # the program must not outlive a killed worker
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"{who} was ended after {seconds:g} s: {remedy}") from error
