"""How many source files a call walks through, and how often it changes from one to another.

    python benchmarks/walks.py [-v]

Every walk runs once before it is counted, so that nothing is compiled or imported while it is. A switch is a step of
the control, by a call or a return, from one of onebit's files into another.
"""

import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console
from rich.table import Table

import onebit

_HOME = str(Path(onebit.__file__).parent)
_RECORD = {"channel": "mail", "length": 212, "subject": "where is my parcel"}


class Walk:
    """Counts the files and switches of one call."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.switches = 0
        self._here: dict[int, str] = {}

    def profile(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Note where a call begins, and where a return leads to."""
        at: FrameType | None = frame if event == "call" else frame.f_back if event == "return" else None
        if at is None or not at.f_code.co_filename.startswith(_HOME):
            return
        file, thread = at.f_code.co_filename, threading.get_ident()
        self.files.add(file)
        self.switches += self._here.get(thread, file) != file
        self._here[thread] = file

    def count(self, call: Callable[[], object]) -> "Walk":
        """Make a call twice, and count the second."""
        call()
        threading.setprofile(self.profile)
        sys.setprofile(self.profile)
        try:
            call()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        return self


def play() -> Walk:
    """Count a game of Algorithm 1."""
    X, y = onebit.streams.wedges()
    return Walk().count(lambda: onebit.play(onebit.BanditPerceptron(), X, y))


def decide(folder: Path) -> tuple[Walk, Walk]:
    """Count a guess of a decider, and its feedback."""
    with onebit.Decider.open(folder / "walk.onebit", classes=3, learner=onebit.BanditPerceptron()) as decider:
        names: list[str] = []
        guessing = Walk().count(lambda: names.append(decider.guess(_RECORD).id))
        return guessing, Walk().count(lambda: decider.tell(names.pop(), True))


def serve(folder: Path) -> tuple[Walk, Walk]:
    """Count a guess over HTTP, from the request to the response: in the server's thread, and in the decider's."""
    import uvicorn

    from onebit.decider.calls import own_learner
    from onebit.decider.client import Client
    from onebit.service.app import Service

    serving, deciding, is_counting = Walk(), Walk(), threading.Event()

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if is_counting.is_set():
            deciding.profile(frame, event, argument)

    class Counted(Service):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            sys.setprofile(serving.profile if is_counting.is_set() else None)
            try:
                await super().__call__(scope, receive, send)
            finally:
                sys.setprofile(None)

    service = Counted(folder)
    threading.setprofile(profile)
    service.workers.create("walk", "walk", {"classes": 3, "learner": own_learner("BanditPerceptron")})
    threading.setprofile(None)
    server = uvicorn.Server(uvicorn.Config(service, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    with Client(f"http://127.0.0.1:{port}") as client:
        decider = client.decider("walk/walk")
        decider.guess(_RECORD)
        is_counting.set()
        decider.guess(_RECORD)
        is_counting.clear()
    server.should_exit = True
    thread.join()
    return serving, deciding


def compare(folder: Path) -> Walk:
    """Count the games and statistics of two learners on one data set, played in this process."""
    from onebit.experiments.comparison import Comparison, run_comparison
    from onebit.experiments.entries import enter
    from onebit.experiments.statistics import compare, tally
    from onebit.streams.sources import find_sources

    new_folders = iter([folder / "first", folder / "second"])  # nothing is looked up

    def call() -> None:
        new = next(new_folders)
        new.mkdir()
        entries = (enter("BanditPerceptron"), enter("Banditron"))
        comparison = Comparison(tuple(find_sources(["wine"])), entries, rounds=100, runs=2)
        outcomes = run_comparison(comparison, new, jobs=1)
        tally(compare(outcomes, "BanditPerceptron"), "BanditPerceptron")

    return Walk().count(call)


def evaluate() -> Walk:
    """Count the evaluation of one learner on a log of 200 rounds."""
    from onebit.experiments.evaluate import Candidate, evaluate, play_with_floor

    X, y = onebit.streams.paper_strong(rounds=200, seed=1)
    log = play_with_floor(onebit.BanditPerceptron(classes=9), X, y, floor=0.2)
    return Walk().count(lambda: evaluate(log, [Candidate("BanditPerceptron", onebit.BanditPerceptron())]))


def main_() -> None:
    """Print the table."""
    table = Table("walk", "files", "switches")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        guessing, telling = decide(folder)
        serving, deciding = serve(folder)
        comparing = compare(folder)
    walks = {
        "play(BanditPerceptron)": play(),
        "Decider.guess": guessing,
        "Decider.tell": telling,
        "one HTTP guess, the server's thread": serving,
        "one HTTP guess, the decider's thread": deciding,
        "compare wine, two learners": comparing,
        "evaluate, 200 rounds": evaluate(),
    }
    for walk, counted in walks.items():
        table.add_row(walk, str(len(counted.files)), str(counted.switches))
    Console().print(table)
    if "-v" in sys.argv:
        for walk, counted in walks.items():
            print(walk, *sorted(file[len(_HOME) + 1 :] for file in counted.files))


if __name__ == "__main__":
    main_()
