"""The league: every learner on all data that comes with onebit, and on the user's own.

A game that would take too long is not begun. This is decided by a learner's `effort`, not by the clock, so that the
same games are played on every machine.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from onebit.experiments.comparison import Comparison, Failure, Outcome, run_comparison, settle_in_hindsight
from onebit.experiments.entries import Entry, enter
from onebit.experiments.grid import Spec
from onebit.experiments.players import player_from
from onebit.experiments.run import Executor
from onebit.inputs import check_integer, check_number
from onebit.learners import all_learners
from onebit.reporting.text import grouped
from onebit.streams.sources import Source, has_several_right

RUNS = 20  # enough for a significant difference among 26 000 pairs on single sets, after the correction for all of them
SECONDS = 600.0  # the limit of a game, in seconds of 10⁹ numbers each
_NUMBERS_PER_SECOND = 1e9  # what one core does, roughly: products of a few million numbers, from memory


@dataclass(frozen=True)
class League(Comparison):
    """A comparison in which a learner may be entered differently on every source, and may be left out of one."""

    field: Callable[[int], Sequence[Entry]] | None = None
    """The entries for a game of so many rounds, always the same titles in the same order; the same everywhere by
    default."""
    seconds_per_game: float = SECONDS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("runs", self.runs, low=2)  # one run has no spread to test a difference by
        check_number("seconds_per_game", self.seconds_per_game, above=0.0)

    @property
    def longest_game(self) -> str:
        """How long a game may be, in words."""
        return f"{_in_seconds(self.seconds_per_game)} at 10⁹ numbers a second, by what a learner says of its effort"

    def entries_on(self, source: Source) -> tuple[Entry, ...]:
        """Return the entries that play a source: all but those of `left_out`."""
        return tuple(entry for entry, reason in self._with_reasons(source) if not reason)

    def left_out(self) -> list[Failure]:
        """Return which entries do not play which source: they would take too long, or are for longer games."""
        listed = ((source, self._with_reasons(source)) for source in self.sources)
        return [Failure(source.name, entry, reason) for source, all_of in listed for entry, reason in all_of if reason]

    def _with_reasons(self, source: Source) -> list[tuple[Entry, str]]:
        facts = self.facts[source]
        entries = self.entries if self.field is None else self.field(facts.rounds)
        found = []
        for entry in entries:
            player, reason = player_from(entry.spec), ""
            effort = player.effort(rounds=facts.rounds, n_features=facts.n_features, n_classes=facts.n_classes)
            if has_several_right(source) and not player.takes_several_right:
                reason = "several labels may be right in a round, and it needs the right one"
            elif effort / _NUMBERS_PER_SECOND > self.seconds_per_game:
                takes, may_take = _in_seconds(effort / _NUMBERS_PER_SECOND), _in_seconds(self.seconds_per_game)
                reason = f"too long: {takes} at 10⁹ numbers a second, where a game may take {may_take}"
                reason += " (--seconds-per-game)"
            found.append((entry, reason))
        too_short = f"it cannot be entered for a game of {grouped(facts.rounds)} rounds"
        titles = {entry.title for entry in entries}
        return found + [(entry, too_short) for entry in self.entries if entry.title not in titles]


def _in_seconds(seconds: float) -> str:
    """Return seconds as readable text, also below one."""
    return f"{grouped(seconds)} s" if seconds >= 10 else f"{seconds:.2g} s"


def play_league(
    league: League,
    folder: Path,
    *,
    jobs: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    executor: Executor | None = None,
) -> tuple[list[Outcome], list[Failure]]:
    """Play what is not stored yet, as `run_comparison` does; return outcomes, and games that failed or were not begun.

    Tuned families are chosen in hindsight.
    """
    failures = league.left_out()
    outcomes = run_comparison(
        league, folder, jobs=jobs, on_progress=on_progress, executor=executor, on_failure=failures.append
    )
    for source in league.sources:
        # A set without ranked entries has no standings.
        if not any(outcome.dataset == source.name and outcome.entry.is_ranked for outcome in outcomes):
            hopeless = [failure for failure in failures if failure.dataset == source.name and failure.entry.is_ranked]
            reason = f"; {hopeless[0].entry.title} failed with: {hopeless[0].reason}" if hopeless else ""
            raise ValueError(f"{source.name}: no ranked learner could play it{reason}")
    return settle_in_hindsight(outcomes), failures


def every_learner(rounds: int, *, diagonal: bool = False) -> tuple[list[Entry], dict[str, str]]:
    """Return the entries of every class of `onebit.learners` for so many rounds, and the reasons of those left out."""
    entries: list[Entry] = []
    absent: dict[str, str] = {}
    for cls in all_learners():
        try:
            contenders = cls.contenders(rounds)
            entries += [enter(learner, f"{cls.__name__} {form}".strip()) for form, learner in contenders.items()]
            if not contenders:
                absent[cls.__name__] = "needs settings that cannot be chosen for it"
        except (ValueError, TypeError) as error:
            absent[cls.__name__] = str(error)
    return with_diagonals(entries) if diagonal else entries, absent


def with_diagonals(entries: Sequence[Entry]) -> list[Entry]:
    """Return entries, each that keeps whole matrices followed by its diagonal form, if that does not play already."""
    specs = {entry.spec for entry in entries}
    found: list[Entry] = []
    for entry in entries:
        found.append(entry)
        spec = Spec(entry.spec.name, {**entry.spec.settings, "diagonal": True})
        if entry.spec.settings.get("diagonal") is False and spec not in specs:
            found.append(enter(player_from(spec), f"{entry.title} diagonal"))
    return found
