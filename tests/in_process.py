"""The command line without a process of its own: importing everything anew takes longer than most commands."""

import contextlib
import io
import subprocess
import sys
from pathlib import Path

from onebit.cli import main


def onebit(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Call `onebit` as its script does, and return what a process would have."""
    out, error, before = io.StringIO(), io.StringIO(), sys.argv
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error), contextlib.chdir(cwd or Path()):
        sys.argv = ["onebit", *arguments]
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        finally:
            sys.argv = before
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), error.getvalue())
