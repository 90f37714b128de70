"""The entries and sources of a league: every learner on all data that comes with onebit, and on the user's own.

A game that would take too long is not begun. This is decided by a learner's `effort`, not by the clock, so that the
same games are played on every machine.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from onebit.experiments.comparison import Comparison, Failure, Outcome, run_comparison, settle_in_hindsight
from onebit.experiments.entries import Entry, enter
from onebit.experiments.grid import Spec
from onebit.experiments.players import player_from
from onebit.experiments.run import Executor, OnProgress
from onebit.inputs import check_integer, check_number
from onebit.learners import all_learners
from onebit.reporting.text import grouped
from onebit.streams.reading import PLAIN, Reading
from onebit.streams.sources import Source, find_sources, known_names

RUNS = 20
"""Enough for a significant difference among 26 000 pairs on single sets, after the correction for all of them."""
SECONDS = 600.0
"""The limit of a game, in seconds of 10⁹ numbers each."""
_NUMBERS_PER_SECOND = 1e9  # what one core does, roughly: products of a few million numbers, from memory

Field = Callable[[int], Sequence[Entry]]
"""The entries for a game of so many rounds: always the same titles, in the same order."""


@dataclass(frozen=True)
class League(Comparison):
    """A comparison in which a learner may be entered differently on every source, and may be left out of one."""

    field: Field | None = None
    """The entries; the same everywhere by default."""
    seconds_per_game: float = SECONDS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("runs", self.runs, low=2)  # one run has no spread to test a difference by
        check_number("seconds_per_game", self.seconds_per_game, above=0.0)

    def entries_on(self, source: Source) -> tuple[Entry, ...]:
        """Return the entries that play a source: all but those of `left_out`."""
        return tuple(entry for entry, reason in self._with_reasons(source) if not reason)

    def left_out(self) -> list[Failure]:
        """Return which entries do not play which source: they would take too long, or are for longer games."""
        listed = ((source, self._with_reasons(source)) for source in self.sources)
        return [Failure(source.name, entry, reason) for source, all_of in listed for entry, reason in all_of if reason]

    def _with_reasons(self, source: Source) -> list[tuple[Entry, str]]:
        facts = self.facts[source]
        size = {"rounds": facts.rounds, "n_features": facts.n_features, "n_classes": facts.n_classes}
        entries = self.entries if self.field is None else self.field(facts.rounds)
        titles = {entry.title for entry in entries}
        too_short = f"it cannot be entered for a game of {grouped(facts.rounds)} rounds"
        return [
            *((entry, self._too_long(player_from(entry.spec).effort(**size))) for entry in entries),
            *((entry, too_short) for entry in self.entries if entry.title not in titles),
        ]

    def _too_long(self, effort: float) -> str:
        seconds = effort / _NUMBERS_PER_SECOND
        if seconds <= self.seconds_per_game:
            return ""
        return (
            f"too long: {in_seconds(seconds)} at 10⁹ numbers a second, where a game may take "
            f"{in_seconds(self.seconds_per_game)} (--seconds-per-game)"
        )


def in_seconds(seconds: float) -> str:
    """Return seconds as readable text, also below one.

    >>> in_seconds(12345.6), in_seconds(0.0123)
    ('12 346 s', '0.012 s')
    """
    return f"{grouped(seconds)} s" if seconds >= 10 else f"{seconds:.2g} s"


def play_league(
    league: League,
    folder: Path,
    *,
    jobs: int | None = None,
    on_progress: OnProgress | None = None,
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
            reason = f"; {hopeless[0].entry.title} said: {hopeless[0].reason}" if hopeless else ""
            raise ValueError(f"{source.name}: no ranked learner could play it{reason}")
    return settle_in_hindsight(outcomes), failures


def every_learner(rounds: int, *, diagonal: bool = False) -> tuple[list[Entry], dict[str, str]]:
    """Return the entries of every class of `onebit.learners`, and those that could not be entered, with the reason.

    The number of rounds is for learners that must know it in advance; with `diagonal`, diagonal forms play too.

    >>> entries, absent = every_learner(1000)
    >>> [entry.title for entry in entries if entry.full_information][-2:], absent
    (['FullInformationSVM', 'MulticlassPerceptron'], {})
    """
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
    """Return entries, each that keeps whole matrices followed by its diagonal form; forms that play already come once.

    >>> [entry.title for entry in with_diagonals([enter("SOBA"), enter("Banditron")])]
    ['SOBA', 'SOBA diagonal', 'Banditron']
    """
    specs = {entry.spec for entry in entries}
    found: list[Entry] = []
    for entry in entries:
        found.append(entry)
        if entry.spec.settings.get("diagonal") is False:
            spec = Spec(entry.spec.name, {**entry.spec.settings, "diagonal": True})
            form = enter(player_from(spec), f"{entry.title} diagonal")
            found += [] if form.spec in specs else [form]
    return found


def whole_field(*more: Entry, diagonal: bool = False) -> Field:
    """Return the field of every learner and of those named, for `League`."""

    @cache  # a learner is built, and begins, to be entered
    def field(rounds: int) -> tuple[Entry, ...]:
        return (*every_learner(rounds, diagonal=diagonal)[0], *more)

    return field


def league_sources(given: Sequence[str], reading: Reading = PLAIN, *, bundled: bool = True) -> list[Source]:
    """Return the sources that are named and, unless those are enough, all that come with onebit and scikit-learn."""
    ours = [name for name in known_names() if name not in given] if bundled else []
    if not ours and not given:
        raise ValueError("there is nothing to play: name data sets, or leave out --no-bundled")
    return find_sources([*ours, *given], reading)
