"""Options that several commands have, each written once, and what the commands do with them."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from rich.console import Console

from onebit.experiments.players import PATIENCE, ROUNDS
from onebit.experiments.run import Executor, check_jobs
from onebit.learners import all_learners
from onebit.reporting.console import prepare_report, print_facts, print_line, progress_bar
from onebit.reporting.text import grouped
from onebit.streams.data_set import in_lines
from onebit.streams.preprocess import describe_preprocessing
from onebit.streams.sources import known_names

if TYPE_CHECKING:
    from onebit.experiments.comparison import Comparison

_Played = TypeVar("_Played")
_OTHERS = ["a stream of your own, mypackage.streams:mine", "or any of them made harder, noise:0.05:digits"]
NAMES = ", ".join([*known_names(), *_OTHERS])
LEARNERS = ", ".join(sorted(cls.__name__ for cls in all_learners()))
FILES = "CSV, TSV, Parquet, ARFF, svmlight, npz; text also as .gz"

OneSource = Annotated[str, f"A file ({FILES}), or a name: {NAMES}."]
Preprocess = Annotated[
    str,
    "standardize (over the rows played), online (over the rows so far) or none; not for learners that scale columns "
    "themselves.",
]
Out = Annotated[Path, "Folder for results; what is there already is not played again."]


class Games(NamedTuple):
    """Which players a comparison has, and how they play."""

    learners: Annotated[
        tuple[str, ...],
        'Such as "BanditPerceptron Banditron:exploration=0.02"; repeat it or put spaces between. '
        f"There are {LEARNERS}; one of your own is mypackage.mine:Mine.",
    ] = ()
    rival: Annotated[
        tuple[str, ...],
        "vw adds Vowpal Wabbit: its default, and its grid tuned in hindsight. Others are named by import path, such as "
        "rivals:river. Repeat it or put spaces between.",
    ] = ()
    grid: Annotated[bool, "Play the rivals' whole grids too: thirty settings of vw."] = True
    rival_seconds: Annotated[float, "Seconds of a game, by the clock, after which a rival's program is ended."] = (
        PATIENCE
    )
    rounds: Annotated[int, "Rounds per run, at most; every row is played once."] = ROUNDS
    seed: Annotated[int, "Seed of the first shuffle; run r uses seed + r."] = 0
    preprocess: Preprocess = "standardize"
    unit_length: Annotated[bool, "Then divide every row by its length."] = False

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a `Comparison` that are options."""
        same = {name: getattr(self, name) for name in ("rounds", "seed", "unit_length", "rival_seconds")}
        return {**same, "preprocessing": self.preprocess}


class Workers(NamedTuple):
    """Where games are played."""

    jobs: Annotated[int | None, "Worker processes; all cores by default."] = None
    dask: Annotated[
        str | None,
        "Play on a Dask cluster instead: its scheduler's address, such as tcp://10.0.0.1:8786, or scheduler file.",
    ] = None

    def executor(self, console: Console) -> AbstractContextManager[Executor | None]:
        """Return the cluster, or None for this machine, in a context that connects and disconnects."""
        check_jobs(self.jobs, "--jobs")
        if self.dask is None:
            return nullcontext(None)
        if self.jobs is not None:
            raise ValueError(
                f"--jobs {self.jobs} is for this machine, and --dask {self.dask} for others, whose workers bring their "
                "own number of threads; give one of the two"
            )
        from onebit.experiments.dask_cluster import DaskCluster

        return DaskCluster(self.dask, lambda text: print_line(console, text, "note: "))


def several(given: Sequence[str], between: str | None = None) -> list[str]:
    """Return the names that were given, each time one or several with spaces or another sign between.

    >>> several(["a b", "c"]), several(["a,b c"], ",")
    (['a', 'b', 'c'], ['a', 'b c'])
    """
    return [name.strip() for part in given for name in part.split(between)]


def play_and_show(
    console: Console,
    comparison: "Comparison",
    workers: Workers,
    out: Path,
    play: Callable[..., _Played],
) -> tuple[_Played, dict[str, str], bool]:
    """Say what is played, and play it; return what came of it, the facts for its page, and whether to draw figures."""
    place, read = workers.executor(console), {}
    for source, facts in comparison.facts.items():
        method = describe_preprocessing(comparison.preprocessing, comparison.unit_length, facts.is_sparse)
        read[source.name] = {**facts.about, "preprocessing": f"{method}; for learners that do not scale columns"}
    # After everything that can be wrong with the request, before anything is played.
    is_drawn = prepare_report(console, out)
    for name, about in read.items():
        print_facts(console, name, about)
    n_sets, n_runs = len(comparison.sources), comparison.runs
    size = f"{n_sets} data set{'s' * (n_sets > 1)}, {n_runs} run{'s' * (n_runs > 1)}"
    with progress_bar(console, size) as show, place as executor:
        played = play(comparison, out, jobs=workers.jobs, on_progress=show, executor=executor)
    details = {
        "Data sets": ", ".join(read),
        **{f"Read: {name}": in_lines(about) for name, about in read.items()},
        "Rounds": f"at most {grouped(comparison.rounds)}, each row once",
        "Runs": f"{n_runs}, each on a shuffle of its own, the same for all learners",
        "Seeds": f"{comparison.seed} to {comparison.seed + n_runs - 1}",
    }
    return played, details, is_drawn
