"""Sends Ctrl-C at every line of a run, and a second one a little later. Run as a script."""

import json
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from onebit.experiments import Cell, Played, Result, Spec, Store, grid, run

CELLS = grid([Spec("paper_weak")], [Spec("Banditron")], [1, 2], "test")
GAPS = (0, 1, 5, 25)  # lines from the first signal to the second; none for 0
WATCHED = ("/onebit/", "tempfile.py", "shutil.py", "contextlib.py")


def play(cell: Cell) -> Played:
    return Played(cell, Result({"mistakes": cell.seed}))


class Signals:
    """Counts lines, and sends a signal at some."""

    def __init__(self, *at: int) -> None:
        self.at, self.n_lines = at, 0

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if not any(part in frame.f_code.co_filename for part in WATCHED):
            return None
        if event == "line":
            self.n_lines += 1
            if self.n_lines in self.at:
                signal.raise_signal(signal.SIGINT)
        return self.trace

    def run(self, path: Path) -> str:
        try:
            sys.settrace(self.trace)
            run(CELLS, path, play, jobs=1)
        except KeyboardInterrupt:
            return "interrupted"
        finally:
            sys.settrace(None)
        return "done"


def check(path: Path, temporary: Path) -> None:
    assert not list(temporary.iterdir())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if path.exists():
        with Store(path) as store:
            store.finished((cell.key for cell in CELLS), warn=True)


def main() -> None:
    stride = int(sys.argv[1])
    # A process in a shell's background ignores Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        temporary, results = Path(folder) / "temporary", Path(folder) / "results"
        temporary.mkdir()
        tempfile.tempdir = str(temporary)
        lines = Signals()
        results.mkdir()
        assert lines.run(results / "arena.sqlite") == "done"
        outcomes: Counter[str] = Counter()
        for at in range(1, lines.n_lines, stride):
            for gap in GAPS:
                shutil.rmtree(results)
                results.mkdir()
                signals = Signals(at, at + gap)
                outcome = signals.run(results / "arena.sqlite")
                assert outcome == "interrupted" or signals.n_lines < at, f"Ctrl-C at line {at} was swallowed"
                outcomes[outcome] += 1
                check(results / "arena.sqlite", temporary)
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main()
