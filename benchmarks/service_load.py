"""What durability and tickets cost a service: rounds a second, and how long requests take.

    python benchmarks/service_load.py [--seconds 10] [--clients 32] [--batch 500] [--turns 2] [--only disk]

Three services run in processes of their own and are asked in turns, with the same load (d = 16, K = 26, a round is a
guess and its answer): onebit's with SQLite's log, every event on the disk before its answer; the same with a log that
keeps nothing; and the same HTTP with Vowpal Wabbit's Python learner in memory, which keeps nothing either. The load
comes from one more process, with so many connections, each with one request at a time. On a busy machine only the
ratios say something. Vowpal Wabbit is left out where it is not installed (`make rivals`).
"""

import argparse
import json
import multiprocessing
import secrets
import selectors
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from onebit.decider.client import Client
from onebit.decider.decider import Decider
from onebit.decider.log import Batch, EventLog
from onebit.decider.settings import Settings
from onebit.decider.tickets import Event, Ticket
from onebit.reporting.text import grouped

DIMENSION, CLASSES = 16, 26
NAME = "bench/load"
TITLES = {
    "disk": "onebit, every event on the disk",
    "nothing": "onebit, nothing kept",
    "vw": "Vowpal Wabbit in memory, nothing kept",
}


class NoLog(EventLog):
    """A log that keeps nothing."""

    errors, event_bytes, remedy = OSError, "0", ""

    def __init__(self, about: dict[str, Any]) -> None:
        super().__init__("nowhere")
        self._about = about

    def about(self) -> dict[str, Any]:
        """Return the settings."""
        return self._about

    def append(self, event: Event) -> None:
        """Forget an event."""
        self.last_seq, self.last_time = event.seq, event.time

    def check_owned(self) -> None:
        """Do nothing."""

    def _fetch(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        return [(0,)] if "coalesce" in statement else []

    def _change(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        pass

    def _transaction(self) -> AbstractContextManager[None]:
        return nullcontext()

    def _commit(self, lines: list[tuple[Any, ...]]) -> None:
        pass

    def _wipe(self) -> None:
        pass

    def _release(self) -> None:
        pass


def open_without_log(_path: Path, classes: Any = None, learner: Any = None, **told: Any) -> Decider:
    """Return a decider that keeps nothing."""
    settings = Settings.new(classes, learner, **told)
    return Decider(NoLog(settings.described() | {"began": time.time()}), (), time.time)


class VowpalWabbitDesk:
    """As much of a decider as the load asks for, around Vowpal Wabbit's learner: no log, tickets in a dictionary."""

    refusal = None

    def __init__(self, _path: Path, classes: Any = None, **_told: Any) -> None:
        import vowpalwabbit

        self._workspace = vowpalwabbit.Workspace(f"--cb_explore {classes} --epsilon 0.05 --quiet")
        self._open: dict[str, tuple[str, int, float]] = {}
        self._chance = np.random.default_rng(0)

    @contextmanager
    def batch(self) -> Iterator[list[Batch]]:
        """Yield no batch: nothing is written."""
        yield []

    def guess(self, record: Any, _among: Any = None, *, key: str | None = None) -> Ticket:
        """Draw a label from what Vowpal Wabbit says."""
        features = "| " + " ".join(f"{i}:{value}" for i, value in enumerate(record))
        chances = np.array(self._workspace.predict(features))
        label = int(np.searchsorted(np.cumsum(chances / chances.sum()), self._chance.random()))
        label = min(label, len(chances) - 1)
        name = key or secrets.token_hex(8)
        self._open[name] = features, label, float(chances[label])
        return Ticket(name, label, float(chances[label]), datetime.now(UTC))

    def tell(self, name: str, correct: bool) -> bool:
        """Let it learn."""
        features, label, chance = self._open.pop(name)
        self._workspace.learn(f"{label + 1}:{0.0 if correct else 1.0}:{chance} {features}")
        return True

    def status(self) -> Any:
        """Return nothing that is asked for."""
        return Ticket("", 0, 0.0, datetime.now(UTC))

    def close(self) -> None:
        """Let go."""
        self._workspace.finish()


OPENERS: dict[str, Any] = {"nothing": open_without_log, "vw": VowpalWabbitDesk}


def serve(folder: str, port: int, which: str, learner: str) -> None:
    """Run a service that has one decider."""
    import uvicorn

    from onebit.decider.calls import own_learner
    from onebit.service.app import Service
    from onebit.service.server import set_up_process

    set_up_process()
    app = Service(Path(folder), rate=0.0)
    if which != "disk":
        app.workers.open = lambda title, settings: OPENERS[which](Path(title), **settings)  # type: ignore[method-assign]
    namespace, _, name = NAME.partition("/")
    app.workers.create(namespace, name, {"classes": CLASSES, "learner": own_learner(learner)})
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False, proxy_headers=False, ws="none")


class Connection:
    """One caller: a guess, its answer, the next guess; or as many at once as a batch has."""

    def __init__(self, port: int, rounds: Iterator[tuple[bytes, list[int]]]) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = f"HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: "
        self._rounds, self._read = rounds, b""
        self._truths: list[int] | None = None
        self.taken: list[float] = []
        self.n_rounds = 0

    def send_guess(self) -> None:
        """Ask for the next guess."""
        body, self._truths = next(self._rounds)
        self._send("guess", body)

    def _send(self, verb: str, body: bytes) -> None:
        self._began = time.perf_counter()
        self.socket.sendall(f"POST /v1/{NAME}/{verb} {self._head}{len(body)}\r\n\r\n".encode() + body)

    def receive(self) -> None:
        """Read what has come; if it is a whole answer, go on."""
        self._read += self.socket.recv(1 << 20)
        head, _, body = self._read.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if not length or len(body) < int(length):
            return
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"the service says {self._read[:500]!r}")
        self._read = b""
        self.taken.append(time.perf_counter() - self._began)
        if self._truths is None:
            self.send_guess()
            return
        said = msgspec.json.decode(body)
        truths, self._truths = self._truths, None
        tickets = said if isinstance(said, list) else [said]
        answers = [{"id": t["id"], "correct": t["label"] == y} for t, y in zip(tickets, truths, strict=True)]
        self.n_rounds += len(answers)
        self._send("tell", msgspec.json.encode(answers if isinstance(said, list) else answers[0]))


def load(port: int, clients: int, batch: int, seconds: float, results: Any) -> None:
    """Play rounds; put how many a second, and the quantiles of what requests took, into a queue."""
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(CLASSES, DIMENSION))
    made = []
    for _ in range(max(20, 4_000 // batch)):
        truths = generator.integers(CLASSES, size=batch).tolist()
        rows = (centres[truths] + 0.3 * generator.normal(size=(batch, DIMENSION))).tolist()
        asked = [{"record": row} for row in rows]
        made.append((msgspec.json.encode(asked if batch > 1 else asked[0]), truths))
    rounds = cycle(made)
    connections = [Connection(port, rounds) for _ in range(clients)]
    with selectors.DefaultSelector() as waiting:
        for each in connections:
            waiting.register(each.socket, selectors.EVENT_READ, each)
            each.send_guess()
        began = time.perf_counter()
        while time.perf_counter() < began + seconds:
            for key, _ in waiting.select(1.0):
                key.data.receive()
        spent = time.perf_counter() - began
    taken = np.concatenate([each.taken for each in connections])
    speed = sum(each.n_rounds for each in connections) / spent
    results.put((speed, [1000.0 * float(each) for each in np.quantile(taken, [0.5, 0.99, 1.0])]))


def megabytes(pid: int) -> float:
    """Return how much memory a process has."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--learner", default="BanditSVM:kernel=none")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--batch", type=int, default=500, help="rounds in a request, in the second half; 0 for none")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--only", choices=[*TITLES], help="one of the services")
    asked, console = parser.parse_args(), Console()
    names = [asked.only] if asked.only else [name for name in TITLES if name != "vw" or find_spec("vowpalwabbit")]
    context = multiprocessing.get_context("spawn")
    found: dict[tuple[int, str], list[Any]] = {}
    memory: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        services = {}
        for name in names:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            process = context.Process(target=serve, args=(f"{folder}/{name}", port, name, asked.learner))
            process.start()
            services[name] = port, process
        for port, _ in services.values():
            with Client(f"http://127.0.0.1:{port}", timeout=300.0, retries=100) as client:
                desk = client.decider(NAME)
                desk.tell(desk.guess([0.0] * DIMENSION), correct=False)
        for turn in range(asked.turns):
            for batch, clients in ((1, asked.clients), *([(asked.batch, 4)] if asked.batch else [])):
                for name in names if turn % 2 == 0 else names[::-1]:
                    port, process = services[name]
                    results = context.Queue()
                    player = context.Process(target=load, args=(port, clients, batch, asked.seconds, results))
                    player.start()
                    found.setdefault((batch, name), []).append(results.get())
                    player.join()
                    memory.setdefault(name, []).append(megabytes(process.pid or 0))
        for _, process in services.values():
            process.terminate()
            process.join()
    table = Table("service", "batch", "rounds/s", "p50 ms", "p99 ms", "longest ms", "MB, first and last turn")
    for (batch, name), turns in sorted(found.items(), key=lambda each: (each[0][0], names.index(each[0][1]))):
        best = max(turns)
        shown = [f"{each:.1f}" for each in best[1]]
        table.add_row(
            TITLES[name], str(batch), grouped(best[0]), *shown, f"{memory[name][0]:.0f} → {memory[name][-1]:.0f}"
        )
    console.print(table)
    said = {f"{name}, batch {batch}": [round(speed) for speed, _ in turns] for (batch, name), turns in found.items()}
    console.print(f"rounds a second, by turns: {json.dumps(said)}")


if __name__ == "__main__":
    main()
