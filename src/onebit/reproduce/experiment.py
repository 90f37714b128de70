"""The paper's experiments, from an empty folder to tables, figures and a report."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onebit.arena import Batch, Cell, Result, Spec, Store, grid, run
from onebit.arena.specs import build, code_version, describe
from onebit.inputs import Integers, check_integer, check_seed
from onebit.loop import default_checkpoints
from onebit.play import play
from onebit.reproduce.contestants import DATASETS, PAPER_ROUNDS, PAPER_RUNS, Outcome, contestants
from onebit.streams import paper_strong, paper_weak

QUICK_ROUNDS, QUICK_RUNS = 100_000, 5
_STREAMS = {"strong": paper_strong, "weak": paper_weak}
_LEARNED = "learned."


@dataclass(frozen=True)
class Experiment:
    """How much is played; the paper's size by default."""

    rounds: int = PAPER_ROUNDS
    runs: int = PAPER_RUNS
    seed: int = 0
    """Run r plays data and random numbers of seed + r."""

    def __post_init__(self) -> None:
        check_integer("rounds", self.rounds, low=1)
        check_integer("runs", self.runs, low=1)
        check_seed(self.seed)

    def cells(self) -> list[Cell]:
        """Return every learner on every data set with every seed."""
        streams = [Spec(dataset, {"rounds": self.rounds}) for dataset in DATASETS]
        learners = [describe(contestant.learner) for contestant in contestants()]
        return grid(streams, learners, range(self.seed, self.seed + self.runs), code_version())


def play_batch(batch: Batch) -> Iterator[tuple[Cell, Result]]:
    """Draw a data set once and let every learner of the batch play it."""
    settings: dict[str, Any] = dict(batch.stream.settings)
    X, y = _STREAMS[batch.stream.name](seed=batch.seed, **settings)
    for cell in batch.cells:
        learner = build(cell.learner)
        trace = play(learner, X, y, seed=cell.seed)
        numbers: dict[str, int | float] = {
            "mistakes": trace.mistakes,
            "updates": trace.updates,
            "uniform_guesses": trace.uniform_guesses,
        }
        learned = {_LEARNED + name: array for name, array in learner.learned().items()}
        yield cell, Result(numbers, {"curve": trace.curve.mistakes, **learned})


def run_experiment(
    experiment: Experiment,
    folder: Path,
    *,
    jobs: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Outcome]:
    """Play what is not stored in the folder yet, and return all outcomes."""
    store = folder / "arena.sqlite"
    cells = experiment.cells()
    run(cells, store, play_batch, jobs=jobs, on_progress=on_progress)
    return _collect(experiment, cells, store)


def _collect(experiment: Experiment, cells: list[Cell], path: Path) -> list[Outcome]:
    rounds: Integers = default_checkpoints(experiment.rounds)
    outcomes = []
    with Store(path) as store:
        for dataset in DATASETS:
            for contestant in contestants():
                learner = describe(contestant.learner)
                results = [store.get(cell) for cell in cells if cell.stream.name == dataset and cell.learner == learner]
                learned = {
                    name.removeprefix(_LEARNED): array
                    for name, array in results[0].arrays.items()
                    if name.startswith(_LEARNED)
                }
                mistakes = np.stack([result.arrays["curve"] for result in results])
                outcomes.append(Outcome(dataset, contestant, rounds, mistakes, learned))
    return outcomes
