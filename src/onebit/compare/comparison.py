"""Learners on the same shuffles of the same data sets: what is played, and what came out.

Run r plays the rows ``np.random.default_rng(seed + r).permutation(n)[:rounds]``; the streams of the paper are drawn
anew with seed + r instead. Everyone gets the same preprocessed rows in the same order. A cell is keyed by the content
of the data set, the preprocessing, the rounds, the learner's settings and the code.
"""

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from onebit.arena import vowpal_wabbit
from onebit.arena.executors import OnProgress, run
from onebit.arena.grid import JSON, Batch, Cell, Spec, grid
from onebit.arena.specs import PLAYED, build, code_version
from onebit.arena.store import Result, Store
from onebit.compare.entries import Entry
from onebit.compare.sources import DRAWN, Source, load, make_rounds
from onebit.inputs import Floats, Integers, check_choice, check_integer, check_seed
from onebit.loop import default_checkpoints
from onebit.play import play
from onebit.streams.preprocess import METHODS

ROUNDS, RUNS = 10_000, 5
# A rival's results outlive changes of our learners: its grid is slow to play. The content of a data set is in its key.
_ROUNDS_CODE = ("draws.py", "streams/paper.py", "streams/preprocess.py", "compare/sources.py")
_WARM_UP_ROUNDS = 1000
_WARMED_UP: set[tuple[Spec, bool]] = set()


@dataclass(frozen=True)
class Comparison:
    """What is played."""

    sources: tuple[Source, ...]
    entries: tuple[Entry, ...]
    rounds: int = ROUNDS
    """At most this many rounds; fewer where a data set has fewer rows."""
    runs: int = RUNS
    seed: int = 0
    preprocessing: str = "standardize"
    unit_length: bool = False

    def __post_init__(self) -> None:
        check_integer("rounds", self.rounds, low=1)
        check_integer("runs", self.runs, low=1)
        check_seed(self.seed)
        check_choice("preprocessing", self.preprocessing, METHODS)

    @property
    def streams(self) -> dict[Source, Spec]:
        """Every data set with all that its rounds depend on."""
        return {source: stream for source, (stream, _) in self._read.items()}

    @property
    def sparse(self) -> dict[str, bool]:
        """Whether the rows of each data set are sparse, by its name."""
        return {source.name: is_sparse for source, (_, is_sparse) in self._read.items()}

    @cached_property
    def _read(self) -> dict[Source, tuple[Spec, bool]]:
        """Every data set is read once here, and once more by the workers that play it."""
        settings: dict[str, JSON] = {"preprocessing": self.preprocessing, "unit_length": self.unit_length}
        specs = {}
        for source in self.sources:
            if source.name in DRAWN and source.path is None:
                specs[source] = Spec(source.name, {"rounds": self.rounds, **settings}), False
            else:
                data = load(source)
                n_rounds = min(self.rounds, len(data.y))
                content: dict[str, JSON] = {"content": data.content, "rounds": n_rounds}
                specs[source] = Spec(source.name, {**content, **settings}), data.is_sparse
        return specs

    def cells(self) -> list[Cell]:
        """Return every entry on every data set in every run."""
        learners = [entry.spec for entry in self.entries if entry.spec.name != vowpal_wabbit.NAME]
        rivals = [entry.spec for entry in self.entries if entry.spec.name == vowpal_wabbit.NAME]
        streams, seeds = self.streams.values(), range(self.seed, self.seed + self.runs)
        return grid(streams, learners, seeds, code_version((*PLAYED, *_ROUNDS_CODE))) + grid(
            streams, rivals, seeds, code_version((*_ROUNDS_CODE, "arena/vowpal_wabbit.py"))
        )


@dataclass(frozen=True)
class Outcome:
    """All runs of one entry on one data set."""

    dataset: str
    entry: Entry
    rounds: Integers
    """The checkpoints, increasing; the last is the number of rounds."""
    mistakes: Integers
    """Cumulative mistakes, one row per run, one column per checkpoint."""
    seconds: Floats
    """How long each run took."""
    remark: str = ""

    @property
    def final(self) -> Integers:
        """Mistakes of each run after the last round."""
        last: Integers = self.mistakes[:, -1]
        return last

    @property
    def mean(self) -> float:
        """Mean number of mistakes."""
        return float(self.final.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean; zero if there was one run."""
        return float(self.final.std(ddof=1) / np.sqrt(len(self.final))) if len(self.final) > 1 else 0.0

    @property
    def microseconds_per_round(self) -> float:
        """Time per round, the mean over the runs."""
        return float(self.seconds.mean() / self.rounds[-1] * 1e6)


def play_batch(sources: dict[str, Source], batch: Batch) -> Iterator[tuple[Cell, Result]]:
    """Make the rounds once and let every entry of the batch play them."""
    X, y, n_classes = make_rounds(batch.stream, sources[batch.stream.canonical], batch.seed)
    with tempfile.TemporaryDirectory(prefix="onebit-") as folder:
        rounds = Path(folder) / "rounds.vw"
        for cell in batch.cells:
            if cell.learner.name != vowpal_wabbit.NAME:
                yield cell, _play_learner(cell, X, y, n_classes)
                continue
            if not rounds.exists():
                vowpal_wabbit.write_rounds(rounds, X, y)
            played = vowpal_wabbit.play_rounds(str(cell.learner.settings["options"]), n_classes, rounds, y)
            curve = np.cumsum(played.guesses != y)[default_checkpoints(len(y)) - 1]
            yield cell, Result({"mistakes": int(curve[-1]), "seconds": played.seconds}, {"curve": curve})


def _play_learner(cell: Cell, X: Any, y: Integers, n_classes: int) -> Result:
    _warm_up(cell.learner, X, y, n_classes)
    learner = build(cell.learner).set_params(classes=n_classes)
    start = time.perf_counter()
    trace = play(learner, X, y, seed=cell.seed)
    seconds = time.perf_counter() - start
    return Result({"mistakes": trace.mistakes, "seconds": seconds}, {"curve": trace.curve.mistakes})


def _warm_up(learner: Spec, X: Any, y: Integers, n_classes: int) -> None:
    """Play a little once per process, so that compiling is not taken for playing."""
    kind = learner, isinstance(X, np.ndarray)
    if kind not in _WARMED_UP:
        _WARMED_UP.add(kind)
        n = min(len(y), _WARM_UP_ROUNDS)
        play(build(learner).set_params(classes=n_classes), X[:n], y[:n], seed=0)


def run_comparison(
    comparison: Comparison, folder: Path, *, jobs: int | None = None, on_progress: OnProgress | None = None
) -> list[Outcome]:
    """Play what is not stored in the folder yet, and return all outcomes: by data set, then by entry."""
    cells, path = comparison.cells(), folder / "arena.sqlite"
    sources = {stream.canonical: source for source, stream in comparison.streams.items()}
    run(cells, path, partial(play_batch, sources), jobs=jobs, on_progress=on_progress)
    stored: dict[tuple[Spec, Spec], list[Result]] = {}
    with Store(path) as store:
        for cell in cells:
            stored.setdefault((cell.stream, cell.learner), []).append(store.get(cell))
    return [
        _outcome(source.name, entry, int(str(stream.settings["rounds"])), stored[stream, entry.spec])
        for source, stream in comparison.streams.items()
        for entry in comparison.entries
    ]


def _outcome(dataset: str, entry: Entry, n_rounds: int, results: list[Result]) -> Outcome:
    return Outcome(
        dataset,
        entry,
        default_checkpoints(n_rounds),
        np.stack([result.arrays["curve"] for result in results]),
        np.array([result.numbers["seconds"] for result in results]),
    )
