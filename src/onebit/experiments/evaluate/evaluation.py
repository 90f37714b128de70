"""Learners on a log: known and estimated mistakes of each, beside those of the log itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onebit.experiments.evaluate.estimates import Estimate, Estimates, Known, estimate, known
from onebit.experiments.evaluate.expectations import expect
from onebit.experiments.evaluate.logged_rounds import WRONG, LoggedRounds
from onebit.experiments.evaluate.replay import HEARS, Candidate, replay
from onebit.inputs import Integers, check_choice, check_seed

LOGGED = "the log itself"
"""The title of the first row."""
_BY_TRUST = ("DR+", "DR", "SNIPS", "IPS")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One learner on a log.

    Attributes
    ----------
    title : str
        Its name in tables and figures.
    written : str
        What it is, as Python writes it: figures colour by it.
    guesses : array of int
        Its guess in every round, as positions in the log's classes; −1 for a label that the log does not have.
    known : Known
        Its guesses in the answered rounds that are surely right, surely wrong, and unknown.
    estimates : Estimates
        Of its share of mistakes, by method, with intervals; and what to know about them.
    logged_mistakes : int
        What the log itself did in the same rounds.
    is_logged : bool
        Whether it is the log itself.
    """

    title: str
    written: str
    guesses: Integers
    known: Known
    estimates: Estimates
    logged_mistakes: int
    is_logged: bool = False

    @property
    def best(self) -> Estimate | None:
        """The steadiest estimate that there is."""
        return self.estimates.found.get(self._steadiest)

    @property
    def verdict(self) -> str:
        """Whether it makes fewer mistakes than the log did, in the answered rounds.

        "surely fewer" and "surely more" are by the bounds, if no more than one label is right in a round.
        "fewer" and "more" are by the interval of the steadiest estimate, with its assumption. Otherwise it is "open".
        """
        return self._verdict_and_ground[0]

    @property
    def verdict_by(self) -> str:
        """What the verdict rests on: "bounds", the name of an estimate, or nothing if it is open."""
        return self._verdict_and_ground[1]

    @property
    def _steadiest(self) -> str:
        return next((method for method in _BY_TRUST if method in self.estimates.found), "")

    @property
    def _verdict_and_ground(self) -> tuple[str, str]:
        if self.is_logged:
            return "", ""
        made = self.logged_mistakes / self.known.rounds
        if self.known.high < made:
            return "surely fewer", "bounds"
        if self.known.low > made:
            return "surely more", "bounds"
        # An interval with a warning that it may be too narrow decides nothing.
        if self.best is not None and not self.estimates.warnings:
            if self.best.high < made:
                return "fewer", self._steadiest
            if self.best.low > made:
                return "more", self._steadiest
        return "open", ""


def evaluate(
    log: LoggedRounds,
    candidates: Sequence[Candidate],
    *,
    hears: str = "facts",
    preprocessing: str = "online",
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Evaluation]:
    """Replay a log with other learners, and return what is known and estimated of each, after the log itself.

    Parameters
    ----------
    log : LoggedRounds
        From `logged_rounds` or `read_log`.
    candidates : sequence of Candidate
        The learners to evaluate.
    hears, preprocessing, seed
        As for `replay`.
    on_progress : callable, optional
        Called now and then with the number of rounds replayed, and of all rounds.

    Examples
    --------
    >>> import onebit
    >>> from onebit.experiments.evaluate import play_with_floor
    >>> X, y = onebit.streams.paper_strong(rounds=300, seed=1)
    >>> log = play_with_floor(onebit.UniformGuess(classes=9, seed=1), X, y)
    >>> rows = evaluate(log, [Candidate("BanditPerceptron", onebit.BanditPerceptron())])
    >>> [row.title for row in rows]
    ['the log itself', 'BanditPerceptron']
    >>> rows[1].verdict, rows[1].verdict_by
    ('fewer', 'DR+')
    """
    check_choice("hears", hears, HEARS)
    check_seed(seed)
    if not candidates:
        raise ValueError("candidates must have at least one learner; got none")
    n_done, n_all = 0, log.n_rounds * len(candidates)

    def count() -> None:
        nonlocal n_done
        n_done += 1
        if on_progress is not None and (n_done % 100 == 0 or n_done == n_all):
            on_progress(n_done, n_all)

    replayed = [
        replay(log, each, hears=hears, preprocessing=preprocessing, seed=seed, on_round=count) for each in candidates
    ]
    mistakes = int((log.answers == WRONG).sum())
    rows = [Evaluation(LOGGED, LOGGED, log.guesses, known(log, log.guesses), Estimates({}, None, ()), mistakes, True)]
    for candidate, expected in zip(candidates, expect(log, replayed), strict=True):
        facts, found = known(log, expected.guesses), estimate(log, expected)
        rows.append(Evaluation(candidate.title, repr(candidate.learner), expected.guesses, facts, found, mistakes))
    return rows
