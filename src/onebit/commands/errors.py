"""What a user is told when a command cannot go on: one line for what can be mended, a traceback for a bug of ours."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from rich.console import Console
from rich.text import Text

from onebit.reporting.text import printable

_REMEDIES = {
    errno.ENOSPC: "make room and give the same command again",
    errno.EDQUOT: "make room and give the same command again",
    errno.EFBIG: "make room and give the same command again",
    errno.EROFS: "choose another folder with --out",
    errno.EACCES: "ask for the right to it, or choose another",
    errno.EPERM: "ask for the right to it, or choose another",
    errno.ENAMETOOLONG: "use a shorter name",
}


@contextmanager
def errors_in_a_line() -> Iterator[None]:
    """End the program with one line for an error that a user can mend; others are ours, and say so."""
    try:
        yield
    except (ValueError, RuntimeError) as error:
        fail(str(error))
    except OSError as error:
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        reason = os.strerror(error.errno) if error.errno else str(error)
        remedy = _REMEDIES.get(error.errno or 0, "mend it and give the same command again")
        fail(f"{where}{reason}; {remedy}. What was finished is kept")
    except MemoryError as error:
        said = f" ({error})" if str(error) else ""
        fail(f"there is not enough memory{said}; use fewer --rounds, a smaller data set or a smaller number")
    except Exception as error:
        error.add_note("This is a bug of onebit: please report it, with the command and these lines.")
        raise


def fail(message: str, code: int = 1) -> NoReturn:
    """Say what is wrong, and end the program."""
    # As text, not as markup, and nothing that the terminal obeys: what a user typed comes back letter for letter.
    said = Text.assemble(("error: ", "bold red"), printable(message, keep="\n"))
    Console(stderr=True, highlight=False, soft_wrap=True).print(said)
    sys.exit(code)
