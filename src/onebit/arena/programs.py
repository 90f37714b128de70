"""Programs that rivals are: run to their end, or ended by the clock."""

import subprocess
import sys
from collections.abc import Mapping, Sequence

from onebit.arena.orphans import ask_kernel


def run_program(
    command: Sequence[str],
    who: str,
    seconds: float,
    remedy: str,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program and return what it said; one that takes longer is killed, and a RuntimeError says so.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments. It gets no terminal, and ends with this process.
    who : str
        What people call it.
    seconds : float
        What it may take.
    remedy : str
        What to do where that is too little.
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
            preexec_fn=ask_kernel if sys.platform == "linux" else None,  # a worker may be killed while this plays
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"{who} was ended after {seconds:g} s: {remedy}") from error
