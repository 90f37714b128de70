"""The process that plays: started by a Dask worker's `host`, it plays one batch after the other and ends with it."""

import pickle
import signal
import sys
import threading
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from onebit.experiments.cluster.environment import Needs, describe_environment, difference
from onebit.experiments.cluster.luggage import unpack
from onebit.experiments.orphans import ask_kernel, exit_after
from onebit.experiments.run import CellError, Played, in_order
from onebit.experiments.scratch import enter_folder

# The first word of an answer; the rest has plain types, since another version may read it.
READY, PLAYED, FAILED, REFUSED = "ready", "played", "failed", "refused"
FILES, SCRATCH = "files", "scratch"
"""The folders of a run on a worker."""


def main() -> None:
    """Play what comes through the pipe until it closes."""
    # Ctrl-C may reach the whole process group; only the process that writes the store handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not ask_kernel():
        threading.Thread(target=exit_after, args=(sys.stdin.buffer.read,), daemon=True).start()
    pipe = Connection(int(sys.argv[1]))
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        folder, needs = pipe.recv()
        enter_folder(Path(folder) / SCRATCH)
        refusal = why_not(Needs(*needs))
        pipe.send((READY,) if refusal is None else (REFUSED, refusal))
        while refusal is None:
            _play(pipe, pipe.recv_bytes(), Path(folder) / FILES)


def why_not(needs: Needs) -> str | None:
    """Return why this process may not play, or None if it may."""
    try:
        described = describe_environment(needs.modules, needs.rivals)
    except (Exception, SystemExit) as error:
        return f"{type(error).__name__}: {error}"
    return None if described == needs.described else difference(described, needs.described)


def _play(pipe: Connection, job: bytes, files: Path) -> None:
    try:
        play_batch, batch = unpack(job, files)
        results = in_order(play_batch, batch)
        for _ in batch.cells[1:]:
            pipe.send((PLAYED, _packed(next(results))))
        # Only when there is no more: with the last cell the batch is done.
        (last,) = results
        pipe.send((PLAYED, _packed(last)))
    except CellError as error:
        pipe.send((FAILED, str(error), traceback.format_exc()))


def _packed(played: Played) -> bytes:
    try:
        return pickle.dumps(played)
    except Exception as error:
        raise CellError(f"{played.cell.label} gave something that cannot be sent back: {error}") from error


if __name__ == "__main__":
    main()
