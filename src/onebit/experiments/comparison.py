"""Players on the same rounds of the same data sets: the comparison and its outcomes.

Run r plays the rows ``np.random.default_rng(seed + r).permutation(n)[:rounds]`` of a data set; streams are drawn anew
with seed + r instead. All players get the same rows in the same order, preprocessed in the same way; learners that
scale columns themselves get them unprocessed. A cell is keyed by the content of the data set or the code of the stream,
the preprocessing, the rounds, the player's settings and the player's code.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onebit.code_version import code_version, reachable
from onebit.experiments.entries import Entry
from onebit.experiments.players import PATIENCE, ROUNDS, learned_arrays, make_rounds, play_cell, player_from
from onebit.experiments.run import Executor, check_jobs, run
from onebit.experiments.store import JSON, Cell, Spec, Store
from onebit.inputs import MAX_SEED, Floats, Integers, check_choice, check_integer, check_number, check_seed
from onebit.learners.run import default_checkpoints
from onebit.reporting.text import fixed, grouped, write_csv
from onebit.streams import describe
from onebit.streams.preprocess import METHODS
from onebit.streams.sources import Source

# Enough for significance in a hundred comparisons where one learner is better in every run, and in seven where it is in
# all but one (`onebit.experiments.statistics`).
RUNS = 12
_NUMBERS_PER_SECOND = 1e9  # what one core does, roughly: products of a few million numbers, from memory
_MOST_PATIENCE = 1e6  # eleven days. The longest possible timeout is about twice that: milliseconds in 31 bits
# More is a typing error: the list of games alone would fill the memory.
_MAX_ROUNDS, _MAX_RUNS = 10**12, 100_000


@dataclass(frozen=True)
class Comparison:
    """What is played."""

    sources: tuple[Source, ...]
    entries: tuple[Entry, ...]
    rounds: int = ROUNDS  # at most this many rounds; fewer where a data set has fewer rows
    runs: int = RUNS
    seed: int = 0  # run r plays data and random numbers of seed + r
    preprocessing: str = "standardize"
    unit_length: bool = False
    rival_seconds: float = PATIENCE  # time limit of a rival's program for a game, in seconds
    keep_learned: bool = False  # whether to store the learned arrays at the end
    seconds_per_game: float | None = None
    """In a league: the longest game, in seconds of 10⁹ numbers each. Who would take longer is left out, by a learner's
    `effort` and not by the clock, so that the same games are played on every machine."""
    field_for: Callable[[int], Sequence[Entry]] | None = None
    """In a league: the entries for a game of so many rounds, always the same titles in the same order; the same
    everywhere by default."""

    def __post_init__(self) -> None:
        check_integer("rounds", self.rounds, low=1, high=_MAX_ROUNDS)
        is_league = self.seconds_per_game is not None
        if is_league:
            check_number("seconds_per_game", self.seconds_per_game, above=0.0)
            check_integer("runs", self.runs, low=2)  # one run has no spread to test a difference by
        check_integer("runs", self.runs, low=1, high=_MAX_RUNS)
        check_seed(self.seed)
        check_integer("seed + runs", self.seed + self.runs, low=1, high=MAX_SEED)
        check_choice("preprocessing", self.preprocessing, METHODS)
        check_number("rival_seconds", self.rival_seconds, above=0.0, at_most=_MOST_PATIENCE)
        titles = [entry.title for entry in self.entries]
        for title in titles:
            if titles.count(title) > 1:
                raise ValueError(f"{title}: the learner is named twice")

    def entries_on(self, source: Source) -> tuple[Entry, ...]:
        """Return the entries that play a source."""
        return tuple(entry for entry, reason in self._with_reasons(source) if not reason)

    def left_out(self) -> "list[_Failure]":
        """Return which entries do not play which source: they would take too long, or are for longer games."""
        listed = ((source.name, *each) for source in self.sources for each in self._with_reasons(source))
        return [_Failure(dataset, entry, reason) for dataset, entry, reason in listed if reason]

    def _with_reasons(self, source: Source) -> list[tuple[Entry, str]]:
        """Return all entries, each with the reason why it does not play a source, if there is one."""
        if self.seconds_per_game is None:
            return [(entry, "") for entry in self.entries]
        facts = self.facts[source]
        entries = self.entries if self.field_for is None else self.field_for(facts.rounds)
        found = []
        for entry in entries:
            player, reason = player_from(entry.spec), ""
            effort = player.effort(rounds=facts.rounds, n_features=facts.n_features, n_classes=facts.n_classes)
            seconds = effort / _NUMBERS_PER_SECOND
            if source.has_several_right and not player.takes_several_right:
                reason = "several labels may be right in a round, and it needs the right one"
            elif seconds > self.seconds_per_game:
                reason = f"too long: {_in_seconds(seconds)} at 10⁹ numbers a second, where a game may take "
                reason += f"{_in_seconds(self.seconds_per_game)} (--seconds-per-game)"
            found.append((entry, reason))
        too_short = f"it cannot be entered for a game of {grouped(facts.rounds)} rounds"
        titles = {entry.title for entry in entries}
        return found + [(entry, too_short) for entry in self.entries if entry.title not in titles]

    @cached_property
    def facts(self) -> "dict[Source, _SourceFacts]":
        """What is known of every source; a data set is read once here, and once more by the workers that play it."""
        return {source: self._facts_of(source) for source in self.sources}

    def _facts_of(self, source: Source) -> "_SourceFacts":
        settings: dict[str, JSON] = {"preprocessing": self.preprocessing, "unit_length": self.unit_length}
        if source.changes:
            settings["changes"] = [change.written for change in source.changes]
        if source.stream is not None:
            stream = Spec(source.stream, {"rounds": self.rounds, **settings})
            about = {"rows": "drawn anew for every run"} | source.about
            X, _, n_classes = source.unchanged(1, self.seed)
            return _SourceFacts(stream, not isinstance(X, np.ndarray), about, X.shape[1], n_classes)
        data = source.load()
        # By its content, whatever its file is called.
        content: dict[str, JSON] = {"content": data.content, "rounds": min(self.rounds, len(data.y))}
        stream, about = Spec("data set", {**content, **settings}, source.name), describe(data) | source.about
        return _SourceFacts(stream, data.is_sparse, about, data.X.shape[1], data.n_classes)

    def cells(self) -> list[Cell]:
        """Return every entry on every source in every run; once, where two data sets have the same content."""
        code_of = cache(lambda player: player_from(player).code())
        # Games stored without learned arrays must be played again where these are needed.
        kept = ", with what was learned" if self.keep_learned else ""
        cells = []
        for source, facts in self.facts.items():
            # The checkpoints themselves, not the code that names them: that is in the module of our learners' loop, and
            # other players' games outlive changes there.
            at = sha256(str(default_checkpoints(facts.rounds).tolist()).encode()).hexdigest()[:8]
            of_rounds, rest = _code_of_rounds(source), f", curve at {at}{kept}"
            players = dict.fromkeys(entry.spec for entry in self.entries_on(source))
            versions = {player: code_version(code_of(player) | of_rounds) + rest for player in players}
            for seed in range(self.seed, self.seed + self.runs):
                # Every other run backwards: two workers that start together then compile different learners, and each
                # finds on disk what the other has compiled meanwhile.
                order = list(versions.items())[:: 1 if (seed - self.seed) % 2 == 0 else -1]
                cells += [Cell(facts.stream, player, seed, version, source) for player, version in order]
        return list(dict.fromkeys(cells))


def _in_seconds(seconds: float) -> str:
    """Return seconds as readable text, also below one."""
    return f"{grouped(seconds)} s" if seconds >= 10 else f"{seconds:.2g} s"


class _SourceFacts(NamedTuple):
    """What is known of a source once it has been read."""

    stream: Spec  # all that its rounds depend on, except code
    is_sparse: bool
    about: dict[str, str]  # its summary by `onebit.streams.describe`
    n_features: int  # before preprocessing
    n_classes: int

    @property
    def rounds(self) -> int:
        """How many rounds a game on it has."""
        return int(str(self.stream.settings["rounds"]))


def _code_of_rounds(source: Source) -> set[str]:
    """Return the modules that decide the rounds. A data set is identified by its content, not by its reader."""
    # Alone: it names the rows and their order. What else it imports stores or plays, and players bring the code that
    # they play with.
    of_all = ["onebit.streams.preprocess", *(["onebit.streams.changes"] if source.changes else [])]
    if source.stream is None:
        return {play_cell.__module__} | reachable("onebit.streams.data_set", *of_all)
    module, path, _ = source.stream.partition(":")
    drawn = reachable(module if path else source.function.__module__, *of_all)
    # Alone too: it counts the classes of a stream, and imports the readers of all files.
    return {play_cell.__module__, "onebit.streams.sources"} | drawn


@dataclass(frozen=True)
class Outcome:
    """All runs of one entry on one data set."""

    dataset: str
    entry: Entry
    rounds: Integers  # the checkpoints, increasing; the last is the number of rounds
    mistakes: Integers  # cumulative mistakes, one row per run, one column per checkpoint
    seconds: Floats  # how long each run took; NaN where that is not known
    remark: str = ""
    explored: Floats = field(default_factory=lambda: np.empty(0))
    """The share of its guesses that each run drew to explore; empty, or NaN, where that is not known."""
    asked: Floats = field(default_factory=lambda: np.full(1, np.nan))
    """The share of rounds in which each run asked for the label; NaN for one that never asks."""
    learned: dict[str, Floats] = field(default_factory=dict)
    """What the first run had learned at the end, by name, if that was kept."""

    @property
    def exploration(self) -> float:
        """The mean share of guesses drawn to explore; NaN if that is not known."""
        return float(self.explored.mean()) if len(self.explored) else math.nan

    @property
    def wrong_of_rest(self) -> float:
        """The mean share of mistakes among the rounds that were not asked about; NaN if it never asks."""
        return float((self.final / np.maximum(1.0, self.rounds[-1] * (1.0 - self.asked))).mean())

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
        """Standard error of the mean; NaN if there was one run, which has none."""
        return float(self.errors[-1])

    @property
    def means(self) -> Floats:
        """The mean curve."""
        curve: Floats = self.mistakes.mean(axis=0)
        return curve

    @property
    def errors(self) -> Floats:
        """The standard error of the mean curve; NaN if there was one run, which has none."""
        n_runs = len(self.mistakes)
        if n_runs == 1:
            return np.full(len(self.rounds), np.nan)
        spread: Floats = self.mistakes.std(axis=0, ddof=1) / np.sqrt(n_runs)
        return spread

    @property
    def microseconds_per_round(self) -> float:
        """Time per round, the mean over the runs whose time is known; NaN if none is."""
        known = self.seconds[~np.isnan(self.seconds)]
        return float(known.mean() / self.rounds[-1] * 1e6) if len(known) else math.nan


class _Failure(NamedTuple):
    """An entry without an outcome on a source, and why."""

    dataset: str
    entry: Entry
    reason: str


def run_comparison(
    comparison: Comparison,
    folder: Path,
    *,
    jobs: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    executor: Executor | None = None,
    on_failure: Callable[[_Failure], None] | None = None,
) -> list[Outcome]:
    """Play what is not stored in the folder's ``arena.sqlite`` yet; return all outcomes, by source, then by entry.

    The settings of a family are replaced, data set by data set, by the two ways of choosing among them in hindsight.
    "… best setting" is the one with the fewest mistakes over all runs; "… best per run" takes the best setting of every
    single run, which cannot be chosen in advance and which no setting of the grid beats.

    Jobs, progress and executor are as for `onebit.experiments.run`. `on_failure` is called with every entry that failed
    on a source: it has no outcome there, and the others play on. Without it the first failure stops all.
    """
    check_jobs(jobs)  # before any file is read
    cells, path = comparison.cells(), folder / "arena.sqlite"
    play = partial(play_cell, comparison.keep_learned, comparison.rival_seconds)
    failed: dict[tuple[Spec, Spec], str] = {}

    def note(cell: Cell, reason: str) -> None:
        failed.setdefault((cell.stream, cell.player), f"{reason} (seed {cell.seed})")

    try:
        run(cells, path, play, jobs, on_progress, executor, on_failure=None if on_failure is None else note)
    finally:
        make_rounds.cache_clear()
    games: dict[tuple[Spec, Spec], list[Cell]] = {}
    for cell in cells:
        games.setdefault((cell.stream, cell.player), []).append(cell)
    outcomes = []
    with Store(path) as store:
        for source, facts in comparison.facts.items():
            for entry in comparison.entries_on(source):
                of = facts.stream, entry.spec
                if on_failure is not None and of in failed:
                    on_failure(_Failure(source.name, entry, failed[of]))
                    continue
                results = [store.get(cell) for cell in games[of]]
                curves = np.stack([result.arrays["curve"] for result in results])
                seconds = np.array([store.seconds(cell) for cell in games[of]], dtype=float)  # None is NaN
                explored, asked = (
                    np.array([result.numbers.get(name, np.nan) for result in results]) / facts.rounds
                    for name in ("uniform_guesses", "asked")
                )
                played = default_checkpoints(facts.rounds), curves, seconds, "", explored, asked
                outcomes.append(Outcome(source.name, entry, *played, learned=learned_arrays(results[0])))
    return _settled(outcomes)


def play_league(
    league: Comparison,
    folder: Path,
    *,
    jobs: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    executor: Executor | None = None,
) -> tuple[list[Outcome], list[_Failure]]:
    """Do as `run_comparison`; return outcomes, and games that failed or were not begun."""
    failures = league.left_out()
    where: dict[str, Any] = {"jobs": jobs, "on_progress": on_progress, "executor": executor}
    outcomes = run_comparison(league, folder, **where, on_failure=failures.append)
    with_ranks = {outcome.dataset for outcome in outcomes if outcome.entry.is_ranked}
    for source in league.sources:
        # A set without ranked entries has no standings.
        if source.name not in with_ranks:
            hopeless = [failure for failure in failures if failure.dataset == source.name and failure.entry.is_ranked]
            reason = f"; {hopeless[0].entry.title} failed with: {hopeless[0].reason}" if hopeless else ""
            raise ValueError(f"{source.name}: no ranked learner could play it{reason}")
    return outcomes, failures


def by_dataset(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """Return the outcomes on every data set."""
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.dataset, []).append(outcome)
    return found


def _settled(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Replace the settings of families by those chosen in hindsight."""
    settled = []
    for on_set in by_dataset(outcomes).values():
        settled += [outcome for outcome in on_set if outcome.entry.family is None]
        for family in dict.fromkeys(outcome.entry.family for outcome in on_set if outcome.entry.family is not None):
            tuned = [outcome for outcome in on_set if outcome.entry.family == family]
            finals = np.stack([outcome.final for outcome in tuned])
            best = [tuned[int(finals.mean(axis=1).argmin())]] * finals.shape[1]
            settled.append(_chosen(family, "best setting", best))
            settled.append(_chosen(family, "best per run", [tuned[int(k)] for k in finals.argmin(axis=0)]))
    return settled


def _chosen(family: str, how: str, chosen: list[Outcome]) -> Outcome:
    """Return the outcome of an entry that played run r as the r-th of the chosen did."""
    title = f"{family} {how}"
    first = chosen[0].entry
    return replace(
        chosen[0],
        entry=replace(first, title=title, key=title, written=title, family=None, hindsight=True),
        mistakes=np.stack([outcome.mistakes[run] for run, outcome in enumerate(chosen)]),
        seconds=np.array([outcome.seconds[run] for run, outcome in enumerate(chosen)]),
        explored=np.concatenate([outcome.explored[run : run + 1] for run, outcome in enumerate(chosen)]),
        remark="; ".join(dict.fromkeys(outcome.entry.title.removeprefix(f"{family} ") for outcome in chosen)),
    )


def write_outcomes(folder: Path, outcomes: Sequence[Outcome], first_seed: int) -> None:
    """Write curves, mistakes run by run, and time per round as CSV."""
    write_curves(outcomes, folder / "curves.csv")
    runs = [
        (outcome.dataset, outcome.entry.title, first_seed + run, mistakes)
        for outcome in outcomes
        for run, mistakes in enumerate(outcome.final.tolist())
    ]
    write_csv(folder / "runs.csv", ("dataset", "learner", "run", "mistakes"), runs)
    # In a separate file: the only numbers that depend on the machine and the day.
    times = [(each.dataset, each.entry.title, fixed(each.microseconds_per_round, ".4g")) for each in outcomes]
    write_csv(folder / "timing.csv", ("dataset", "learner", "microseconds_per_round"), times)


def write_curves(outcomes: Iterable[Outcome], path: Path, *, with_ends: bool = False) -> None:
    """Write every learning curve as CSV, with the least and the most mistakes of any run if asked for."""
    lines: list[tuple[object, ...]] = []
    for each in outcomes:
        ends = (each.mistakes.min(axis=0), each.mistakes.max(axis=0)) if with_ends else ()
        curve = zip(each.rounds, each.means, each.errors, *ends, strict=True)
        lines += [(each.dataset, each.entry.key, *values) for values in curve]
    columns = ("dataset", "learner", "round", "mean", "standard_error", *(("min", "max") if with_ends else ()))
    write_csv(path, columns, lines)
