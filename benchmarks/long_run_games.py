"""The streams of `long_run`, one game on one of them, and where played games are kept.

The synthetic streams have normal rows, d = 20, and the label with the largest of ten random linear scores; with noise
each label is drawn at random with probability 0.1, with drift the scores are drawn anew at half time. Real sets are
shuffled with a seed, and shuffled again as often as it takes.
"""

import json
import math
import multiprocessing
import pickle
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

import onebit
from onebit.code_version import code_version, reachable
from onebit.experiments.entries import parse_player
from onebit.experiments.players import LearnerPlayer, build
from onebit.files import replace_file
from onebit.reporting.console import progress_bar
from onebit.streams import preprocess, read_table

CLASSES, FEATURES, NOISE = 10, 20, 0.1  # of the synthetic streams
PIECES, WINDOW = 240, 12  # points of a curve; how many of them a sliding window spans
# Microseconds a round, roughly: for the time left. Only slow games report progress, since that costs 0.15 ms a time.
COST = {"BanditSVM": 250.0, "BanditSVM:kernel=none": 15.0, "FullInformationSVM": 250.0}
USUAL_COST, SLOW = 5.0, 100.0
WARM_UP_ROUNDS = 200


class Stream(NamedTuple):
    """Where rounds come from."""

    title: str
    figure: str
    """Which figure it is in."""
    is_noisy: bool = False
    drifts: bool = False
    """At half time."""


SYNTHETIC = {
    "linear": Stream("linear", "synthetic"),
    "linear_noise": Stream("linear, 10 % random labels", "synthetic", is_noisy=True),
    "linear_drift": Stream("linear, drift", "synthetic", drifts=True),
    "linear_noise_drift": Stream("linear, 10 % random labels, drift", "synthetic", is_noisy=True, drifts=True),
}
REAL = {name: Stream(name, "noisy") for name in ("connect4", "sleep", "houses", "krkopt")} | {
    name: Stream(name, "clean") for name in ("shuttle", "letter", "nursery", "pendigits")
}
STREAMS = SYNTHETIC | REAL


class Rounds(NamedTuple):
    """A stream as it is played."""

    X: Any
    y: Any
    n_rows: int
    """How many rounds there are before a row comes again."""


class Game(NamedTuple):
    """One learner on one stream."""

    stream: str
    learner: str
    rounds: int
    seed: int
    data: Path | None


@dataclass(frozen=True)
class Played:
    """What came out."""

    stream: str
    learner: str
    rounds: int
    n_rows: int
    marks: list[int]
    """Rounds at which mistakes were counted: the curve's, and the quarters of all rounds and of the first pass."""
    counts: list[int]
    """Mistakes up to each of them."""
    seconds: float
    memory: int
    """Bytes of the learner in memory."""
    file: int
    """Bytes of the saved learner."""

    def upto(self, rounds: Any) -> Any:
        """Return the mistakes up to these rounds, which must be among the marks."""
        return np.array([0, *self.counts])[np.searchsorted([0, *self.marks], rounds)]

    @property
    def mistakes(self) -> int:
        """All of them."""
        return self.counts[-1]

    def quarters(self, rounds: int) -> Any:
        """Return the share of mistakes in each quarter of the first so many rounds: all of them, or the first pass."""
        ends = quarter_ends(rounds)
        return np.diff(self.upto(ends)) / np.diff(ends)

    def curve(self) -> tuple[Any, Any]:
        """Return rounds, and the share of mistakes in the window before each; the first windows are shorter."""
        ends = curve_ends(self.rounds)
        starts = ends[np.maximum(np.arange(len(ends)) - WINDOW, 0)]
        return ends[1:], (self.upto(ends) - self.upto(starts))[1:] / (ends - starts)[1:]


def quarter_ends(rounds: int) -> Any:
    return np.arange(5) * rounds // 4


def curve_ends(rounds: int) -> Any:
    return np.arange(PIECES + 1) * rounds // PIECES


def linear(rounds: int, seed: int, is_noisy: bool, drifts: bool) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rounds, FEATURES))
    weights = generator.normal(size=(2, CLASSES, FEATURES))
    y = np.argmax(X @ weights[0].T, axis=1)
    if drifts:
        y[rounds // 2 :] = np.argmax(X[rounds // 2 :] @ weights[1].T, axis=1)
    if is_noisy:
        is_random = generator.random(rounds) < NOISE
        y = np.where(is_random, generator.integers(CLASSES, size=rounds), y)
    return X, y


def shuffled(n_rows: int, rounds: int, seed: int) -> Any:
    """Return which row is played in each round: as many fresh shuffles as are needed."""
    generator = np.random.default_rng(seed)
    return np.concatenate([generator.permutation(n_rows) for _ in range(math.ceil(rounds / n_rows))])[:rounds]


@lru_cache(maxsize=1)  # the next game is mostly on the same stream
def make(name: str, rounds: int, seed: int, data: Path | None) -> Rounds:
    stream = STREAMS[name]
    if name in SYNTHETIC:
        return Rounds(*linear(rounds, seed, stream.is_noisy, stream.drifts), n_rows=rounds)
    if data is None:
        raise ValueError(f"--streams {name} is a real set; say with --data in which folder {name}.npz is")
    path = data / f"{name}.npz"
    if not path.is_file():
        raise ValueError(f"--data {data} has no {name}.npz; leave {name} out of --streams, or name another folder")
    read = read_table(path)
    order = shuffled(len(read.y), rounds, seed)
    return Rounds(np.ascontiguousarray(read.X[order], dtype=np.float64), read.y[order], min(len(read.y), rounds))


@lru_cache(maxsize=1)
def standardized(name: str, rounds: int, seed: int, data: Path | None) -> Any:
    return preprocess(make(name, rounds, seed, data).X, "standardize")


def player_of(text: str) -> LearnerPlayer:
    player = parse_player(text)
    if not isinstance(player, LearnerPlayer):
        raise ValueError(f"--learners {text}: must be a learner; this is another kind of player")
    return player


def play(game: Game, tell: Callable[[float], None]) -> Played:
    """Play one game; `tell` is given how many of its expected seconds are done, piece by piece."""
    player = player_of(game.learner)
    where = (game.stream, game.rounds, game.seed, game.data)
    rounds = make(*where)
    rows = rounds.X if player.scales_rows else standardized(*where)
    learner = build(player.spec)
    onebit.play(learner, rows[:WARM_UP_ROUNDS], rounds.y[:WARM_UP_ROUNDS])  # compiles
    marks = np.unique(
        np.concatenate([curve_ends(game.rounds), quarter_ends(game.rounds), quarter_ends(rounds.n_rows)])
    )[1:]
    told = 0.0

    def on_progress(done: int, total: int) -> None:
        nonlocal told
        now = expected(game) * done / total
        tell(now - told)
        told = now

    shown = on_progress if cost(game.learner) >= SLOW else None
    start = time.perf_counter()
    trace = onebit.play(learner, rows, rounds.y, seed=game.seed, checkpoints=marks, on_progress=shown)
    seconds = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        learner.save(Path(folder) / "learner.onebit")
        file = (Path(folder) / "learner.onebit").stat().st_size
    tell(expected(game) - told)
    return Played(
        game.stream,
        game.learner,
        game.rounds,
        rounds.n_rows,
        trace.curve.rounds.tolist(),
        trace.curve.mistakes.tolist(),
        seconds,
        len(pickle.dumps(learner)),
        file,
    )


def cost(learner: str) -> float:
    return COST.get(learner, COST.get(learner.partition(":")[0], USUAL_COST))


def expected(game: Game) -> float:
    """Return roughly how many seconds a game takes."""
    return game.rounds * cost(game.learner) / 1e6


def file_of(game: Game, folder: Path) -> Path:
    """Return where a game is kept: another learner, other rounds or other code have another file."""
    rounds = make(game.stream, game.rounds, game.seed, game.data)
    player = player_of(game.learner)
    digest = sha256()
    for part in (
        np.ascontiguousarray(rounds.X).data,
        np.ascontiguousarray(rounds.y).data,
        f"{player.spec.label} {game.seed} {PIECES}".encode(),
        code_version(player.code() | reachable("onebit.streams.preprocess")).encode(),
    ):
        digest.update(part)
    name = f"{game.stream} {game.learner} {game.rounds} {digest.hexdigest()[:16]}"
    return folder / f"{''.join(letter if letter.isalnum() or letter in '._=' else '-' for letter in name)}.json"


def read(path: Path) -> Played | None:
    return Played(**json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


def keep(path: Path, played: Played) -> None:
    replace_file(path, json.dumps(asdict(played)).encode())


_progress: Any = None  # in a worker: the queue to the parent


def _begin_worker(queue: Any) -> None:
    global _progress
    _progress = queue


def _play_in_worker(game: Game) -> Played:
    return play(game, _progress.put)


def play_all(games: dict[Game, Path], jobs: int, console: Console) -> None:
    """Play games and keep each as it ends; with one job in this process."""
    if not games:
        return
    total, done = sum(map(expected, games)), 0.0
    with progress_bar(console, "expected seconds") as show:

        def tell(seconds: float) -> None:
            nonlocal done
            done += seconds
            show(round(done), round(total))

        if jobs == 1:
            for game, path in games.items():
                keep(path, play(game, tell))
            return
        context = multiprocessing.get_context("spawn")
        queue = context.SimpleQueue()
        with ProcessPoolExecutor(jobs, context, _begin_worker, (queue,)) as pool:
            waiting: dict[Future[Played], Path] = {
                pool.submit(_play_in_worker, game): path for game, path in games.items()
            }
            try:
                while waiting:
                    finished, _ = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                    for future in finished:
                        keep(waiting.pop(future), future.result())
                    while not queue.empty():
                        tell(queue.get())
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
