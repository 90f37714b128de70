"""What is known of a learner's mistakes on a log, and what can be estimated; docs/evaluate.md explains both.

Symbols, in a round: a is the logged label, p its propensity, g the learner's guess, y the right label, m = 1 if g ≠ y,
h(k) what was expected of label k before the round, w = 1/p if a = g and 0 otherwise, b = 1 − h(g).

- inverse propensity (IPS): the mean of w·m; self-normalised (SNIPS): Σw·m / Σw;
- doubly robust (DR): the mean of b + w·(m − b);
- DR+ is (1 − B)·DR + B·F with F = b + 1[a ≠ g]·(1[a = y] − h(a))/p, which has the mean m too if the right label is
  among those allowed and each of them had a positive propensity. B in [0, 1] is the weight that would have been best so
  far; it is 0 in rounds where the right label may not have been allowed, whatever the answer was.

All are sums of terms whose mean, given the past and the round, is m; they are then cut to the sure bounds. The variance
is that of the logged draws alone, the larger of two estimates: one from the actual draws, and one from the
propensities, which assumes that the rest of the probability is shared equally by the other labels. Rounds whose label
was certain (p = 1) involve no randomness: there the known m is used, and where it is unknown there is no estimate.

References
----------
Dudík, Erhan, Langford, Li (2014). Doubly robust policy evaluation and optimization. Statistical Science 29.
Swaminathan, Joachims (2015). The self-normalized estimator for counterfactual learning. NIPS 28.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from onebit.experiments.evaluate.answer_rates import ASSUMPTION, uneven_answers
from onebit.experiments.evaluate.log import RIGHT, LoggedRounds
from onebit.inputs import Floats, Integers
from onebit.learners import EpsilonGreedy
from onebit.reporting.text import grouped
from onebit.streams.preprocess import preprocess

LEVEL = 0.95  # of the intervals
METHODS = ("IPS", "SNIPS", "DR", "DR+")  # the estimates, as they are shown: the steadiest last
_FEW_ROUNDS = 5  # estimates from fewer informative rounds than this (an unlikely label was tried) are not reliable
_QUANTILE = float(norm.ppf(0.5 + LEVEL / 2))
_STANDARD_ERRORS = 3.0  # by which a mean may miss what it must be
_ROUNDED = 1e-9  # relative
_LARGEST_SHARE = 1.0 / 3.0  # that one round may have in a standard error, where the normal law is to hold
_FIRST_BLOCK, _GROWTH = 50, 0.1  # rounds; later blocks are a tenth of the rounds so far
_MOST_NUMBERS = 1 << 22  # in the matrices of a regression; beyond, their diagonals
_LEAST = 1e-3  # least probability before normalising
Booleans = npt.NDArray[np.bool_]


class Known(NamedTuple):
    """What a log proves about guesses in its answered rounds."""

    right: int
    wrong: int
    unknown: int

    @property
    def rounds(self) -> int:
        """All answered rounds."""
        return self.right + self.wrong + self.unknown

    @property
    def low(self) -> float:
        """The least share of mistakes."""
        return self.wrong / self.rounds

    @property
    def high(self) -> float:
        """The greatest share of mistakes."""
        return (self.wrong + self.unknown) / self.rounds


class Estimate(NamedTuple):
    """A share of mistakes, with its interval."""

    rate: float
    low: float
    high: float


class Weights(NamedTuple):
    """How much the estimates rest on."""

    effective: float
    """The effective number of rounds: (Σw)²/Σw²."""
    largest: float
    telling: int
    """Rounds in which a label with a propensity of at most ½ was tried and was informative about this learner."""


class Estimates(NamedTuple):
    """All that was estimated of a learner, or why nothing could be."""

    found: dict[str, Estimate]
    weights: Weights | None
    warnings: tuple[str, ...]
    """Why the estimates, if there are any, decide nothing."""
    notes: tuple[str, ...] = ()
    """Which estimates are not offered, or not in all rounds, and why."""

    @property
    def assumption(self) -> str:
        """What the estimates assume that the log does not prove; nothing where there are none."""
        return ASSUMPTION if self.found else ""


class Expected(NamedTuple):
    """What was expected of guesses, round by round, given the rounds before."""

    guesses: Integers
    of_guess: Floats  # how likely the guess was to be right
    of_logged: Floats  # how likely the logged label was to be right
    squares: Floats  # the sum of the squared probabilities of all labels

    def at(self, rounds: npt.NDArray[np.bool_]) -> "Expected":
        """Return the same of some rounds only."""
        return Expected(self.guesses[rounds], self.of_guess[rounds], self.of_logged[rounds], self.squares[rounds])


def expect(log: LoggedRounds, asked: Sequence[Integers]) -> list[Expected]:
    """Return how likely guesses, several for every round, were to be right, given the rounds before.

    A ridge regression per class learns the log block by block and predicts each block before learning from it. So its
    predictions depend on earlier rounds alone: however wrong they are, they do not bias a doubly robust estimate. Over
    the labels that were allowed in a round they sum to 1; a label that is not in the log (−1) has probability 0.
    """
    rows, n_classes = preprocess(log.X, "online"), len(log.classes)
    model = EpsilonGreedy(
        exploration=0.0, diagonal=n_classes * rows.shape[1] ** 2 > _MOST_NUMBERS, classes=log.classes.tolist()
    )
    answers, labels = log.is_answered, log.classes[log.guesses]
    wanted = [log.guesses, *asked]
    chances, squares = [np.empty(log.n_rounds) for _ in wanted], np.empty(log.n_rounds)
    for start, stop in _blocks(log.n_rounds):
        if start == 0:
            expected = np.ones((stop, n_classes))
        else:
            expected = np.clip(model.score_classes(rows[start:stop]), _LEAST, 1.0)
        for row, allowed in enumerate(() if log.among is None else log.among[start:stop]):
            if allowed is not None:
                expected[row, np.setdiff1d(np.arange(n_classes), allowed)] = 0.0
        expected /= expected.sum(axis=1, keepdims=True)
        squares[start:stop] = np.sum(expected**2, axis=1)
        for found, guesses in zip(chances, wanted, strict=True):
            places = guesses[start:stop]
            found[start:stop] = np.where(places >= 0, expected[np.arange(stop - start), places], 0.0)
        # Even without answers so far: the model must be started before it predicts.
        answered = np.flatnonzero(answers[start:stop]) + start
        if len(answered):
            model.learn_from(rows[answered], labels[answered], log.answers[answered] == RIGHT)
        elif start == 0:
            model.begin(rows.shape[1])
    of_logged, *of_guesses = chances
    return [Expected(guesses, own, of_logged, squares) for guesses, own in zip(asked, of_guesses, strict=True)]


def _blocks(n_rounds: int) -> Iterator[tuple[int, int]]:
    start = 0
    while start < n_rounds:
        stop = min(n_rounds, start + max(_FIRST_BLOCK, int(_GROWTH * start)))
        yield start, stop
        start = stop


def settle(log: LoggedRounds, guesses: Integers) -> tuple[Booleans, Booleans]:
    """Return in which rounds guesses, as positions, are known to be right, and in which known to be wrong."""
    truths, answered = log.truths(), log.is_answered
    right = (truths >= 0) & (guesses == truths)
    wrong = ((truths >= 0) & (guesses != truths)) | (answered & (log.answers != RIGHT) & (guesses == log.guesses))
    return right, wrong


def known(log: LoggedRounds, guesses: Integers) -> Known:
    """Return how many guesses are known to be right or wrong, among the rounds with an answer."""
    right, wrong = settle(log, guesses)
    n_right, n_wrong = int(right.sum()), int(wrong.sum())
    return Known(n_right, n_wrong, int(log.is_answered.sum()) - n_right - n_wrong)


def estimate(log: LoggedRounds, expected: Expected) -> Estimates:
    """Estimate the share of mistakes of guesses in the answered rounds whose propensity is known."""
    guesses = expected.guesses
    used = log.is_answered & ~np.isnan(log.propensities)
    n_answered, n_used = int(log.is_answered.sum()), int(used.sum())
    if not n_used:
        return Estimates({}, None, ("the log has no propensities, so there are bounds and no estimates",))
    right, wrong = settle(log, guesses)
    certain = used & (log.propensities >= 1.0)
    hidden = int((certain & ~right & ~wrong).sum())
    if hidden:
        message = (
            f"in {grouped(hidden)} rounds the logged label was certain (propensity 1), was wrong, and this learner "
            "guesses another: no estimate, only bounds. A log that now and then guesses at random (an exploration "
            "floor) allows estimates"
        )
        return Estimates({}, None, (message,))
    drawn = used & ~certain
    rounds = _Drawn(
        agrees=(guesses == log.guesses)[drawn],
        correct=(log.answers == RIGHT)[drawn].astype(np.float64),
        chances=log.propensities[drawn],
        expected=expected.at(drawn),
        n_allowed=log.n_allowed[drawn],
        has_right=(log.is_complete & (log.n_allowed == len(log.classes)))[drawn],
    )
    n_low, n_high = int((wrong & used).sum()), int((used & ~right).sum())
    found: dict[str, Estimate] = {}
    has_dr_plus, notes = _about_dr_plus(rounds, log.is_complete)
    for method, (total, variance) in _sums(rounds, has_dr_plus).items():
        mistakes, spread = total + int((wrong & certain).sum()), _QUANTILE * np.sqrt(max(variance, 0.0))
        ends = np.array([mistakes, mistakes - spread, mistakes + spread])
        found[method] = Estimate(*(np.clip(ends, n_low, n_high) / n_used).tolist())
    if "SNIPS" not in found:
        notes += ("SNIPS is not offered: the learner guesses no label that was drawn",)
    weights = _weights(rounds, int((certain & (guesses == log.guesses)).sum()))
    warnings = _warnings(rounds, weights) + uneven_answers(log)
    if n_used < n_answered:
        without = n_answered - n_used
        warnings += (f"{grouped(without)} answered rounds have no propensity: the estimates are of the others",)
    return Estimates(found, weights, warnings, notes)


class _Drawn(NamedTuple):
    """The rounds in which the label was drawn at random."""

    agrees: Booleans
    correct: Floats
    chances: Floats
    expected: Expected
    n_allowed: Integers
    has_right: Booleans  # whether the right label is known to be among those allowed, without the answer

    @property
    def weights(self) -> Floats:
        """w: one over the propensity where the learner guesses the logged label."""
        weights: Floats = np.where(self.agrees, 1.0 / self.chances, 0.0)
        return weights

    @property
    def others(self) -> Floats:
        """The chance of a label that was not tried: what the tried one left, shared by all others."""
        chances: Floats = (1.0 - self.chances) / np.maximum(self.n_allowed - 1, 1)
        return chances

    def planned(self, variances: Floats) -> float:
        """Return the sum of variances that hold in the rounds in which the likely label was tried.

        Where it was not, another label's propensity is unknown. Such rounds are accounted for by weighting the others:
        a label with a propensity above ½ is tried with that frequency.
        """
        stand_for = np.where(self.chances > 0.5, 1.0 / self.chances, self.chances >= (1.0 - _ROUNDED) * self.others)
        return float(np.sum(stand_for * variances))


def _about_dr_plus(rounds: _Drawn, is_complete: bool) -> tuple[bool, tuple[str, ...]]:
    """Return whether DR+ is offered, and remarks on where it is not used."""
    n, n_whole = len(rounds.chances), int(rounds.has_right.sum())
    if not is_complete:
        why = "the right label need not be one of the log's (--classes lists all that there are)"
    elif n and not n_whole:
        why = "no round allowed all labels, and the right one may be among those left out"
    elif _tries_too_little(rounds):
        why = "inverse propensities average too little: some labels had no chance, or hardly any, or fewer answers"
    elif n_whole < n:
        message = f"in {grouped(n - n_whole)} of {grouped(n)} rounds not all labels were allowed: there DR+ is as DR"
        return True, (message,)
    else:
        return True, ()
    return False, (f"DR+ is not offered: {why}",)


def _tries_too_little(rounds: _Drawn) -> bool:
    """Return whether 1/p, whose mean is the number of labels with a chance, averages less than there are labels."""
    n_labels = rounds.has_right * rounds.n_allowed
    variances = np.maximum(1.0 / rounds.chances + (rounds.n_allowed - 1) / rounds.others - rounds.n_allowed**2, 0.0)
    missing = float(np.sum(n_labels - rounds.has_right / rounds.chances))
    spread = np.sqrt(rounds.planned(variances * rounds.has_right))
    return bool(missing > _STANDARD_ERRORS * spread + _ROUNDED * n_labels.sum())


def _sums(rounds: _Drawn, has_dr_plus: bool) -> dict[str, tuple[float, float]]:
    """Return the estimated number of mistakes, and the variance of that number, by method."""
    n, weights = len(rounds.chances), rounds.weights
    found = {"IPS": _on_agreement(rounds, np.zeros(n))}
    mistakes, total = float(np.sum(weights * (1.0 - rounds.correct))), float(np.sum(weights))
    if total > 0.0:
        share = np.full(n, mistakes / total)
        found["SNIPS"] = n * mistakes / total, _on_agreement(rounds, share)[1] * (n / total) ** 2
    elif n == 0:
        found["SNIPS"] = 0.0, 0.0
    found["DR"] = _on_agreement(rounds, 1.0 - rounds.expected.of_guess)
    if has_dr_plus:
        found["DR+"] = _on_both(rounds)
    return found


def _on_agreement(rounds: _Drawn, base: Floats) -> tuple[float, float]:
    """Return Σ b + w·(m − b), and its variance: the sum of (m − b)²·(1/p(g) − 1)."""
    missed = 1.0 - rounds.correct - base
    terms = base + rounds.weights * missed
    observed = rounds.weights * missed**2 * (1.0 / rounds.chances - 1.0)
    squares, chances = _squares(rounds, base)
    return float(terms.sum()), max(float(observed.sum()), rounds.planned(squares * (1.0 / chances - 1.0)))


def _squares(rounds: _Drawn, base: Floats) -> tuple[Floats, Floats]:
    """Return (m − b)², or the mean of b² and (1 − b)² where m is not known, and the chance of the guess."""
    is_unknown = ~rounds.agrees & (rounds.correct == 0.0)
    mistaken = np.where(rounds.agrees, 1.0 - rounds.correct, 1.0)
    squares = np.where(is_unknown, (base**2 + (1.0 - base) ** 2) / 2.0, (mistaken - base) ** 2)
    return squares, np.where(rounds.agrees, rounds.chances, rounds.others)


def _on_both(rounds: _Drawn) -> tuple[float, float]:
    """Return the DR+ estimate and its variance."""
    base, of_logged = 1.0 - rounds.expected.of_guess, rounds.expected.of_logged
    on_agreement = rounds.weights * (1.0 - rounds.correct - base)
    on_others = np.where(rounds.agrees, 0.0, (rounds.correct - of_logged) / rounds.chances)
    squares, chances = _squares(rounds, base)
    of_agreement, of_others = squares / chances, _squares_of_others(rounds)
    # Both have the same mean in every round, so that any B that knows only the past leaves it as it is. Never both are
    # there at once, so the best B is the share of the squares.
    past = np.cumsum([rounds.has_right * of_agreement, rounds.has_right * of_others], axis=1)
    both = past.sum(axis=0)
    best = np.divide(past[0], both, out=np.full(len(base), 0.5), where=both > 0.0)
    shares = rounds.has_right * np.concatenate([[0.5], best[:-1]])[: len(base)]
    moved = (1.0 - shares) * on_agreement + shares * on_others
    planned = (1.0 - shares) ** 2 * of_agreement + shares**2 * of_others - squares
    # E[moved²] − (m − b)², the latter linear in m since m is 0 or 1.
    observed = moved**2 - base**2 - (1.0 - 2.0 * base) * (base + moved)
    return float(np.sum(base + moved)), max(float(observed.sum()), rounds.planned(planned))


def _squares_of_others(rounds: _Drawn) -> Floats:
    """Return Σ (1[k = y] − h(k))²/p(k) over the labels k ≠ g, no less than it is where y is not known."""
    _, of_guess, of_logged, squares = rounds.expected
    left = np.maximum(squares - of_guess**2 - np.where(rounds.agrees, 0.0, of_logged**2), 0.0)
    tried = np.where(rounds.agrees, 0.0, (rounds.correct - of_logged) ** 2 / rounds.chances)
    right_elsewhere = rounds.correct == 0.0
    return np.asarray(tried + (left + right_elsewhere) / rounds.others)


def _weights(rounds: _Drawn, n_certain: int) -> Weights:
    weights = np.concatenate([rounds.weights, np.ones(n_certain)])
    squares = float(np.sum(weights**2))
    effective = float(weights.sum()) ** 2 / squares if squares else 0.0
    unlikely = rounds.chances <= 0.5
    telling = int((unlikely & (rounds.agrees | (rounds.correct > 0.0))).sum())
    return Weights(effective, float(weights.max(initial=0.0)), telling)


def _warnings(rounds: _Drawn, weights: Weights) -> tuple[str, ...]:
    messages: list[str] = []
    if not len(rounds.chances):
        return ()
    # The mean weight is 1 if every label that the learner guesses had a chance.
    _, chances = _squares(rounds, np.zeros(len(rounds.chances)))
    spread = np.sqrt(rounds.planned(1.0 / chances - 1.0))
    if len(rounds.chances) - rounds.weights.sum() > _STANDARD_ERRORS * spread:
        messages.append(
            f"weights average {rounds.weights.mean():.2f}, not 1: it guesses labels that the log never, or hardly "
            "ever, tries; the estimates do not hold, the bounds do"
        )
    messages.extend(_right_too_often(rounds))
    if weights.telling < _FEW_ROUNDS:
        messages.append(
            f"only {weights.telling} rounds in which an unlikely label was tried inform about it (largest "
            f"weight {weights.largest:.3g}, effective sample size {grouped(weights.effective)}): too few for the "
            "estimates to say more than the bounds"
        )
    return tuple(messages)


def _right_too_often(rounds: _Drawn) -> tuple[str, ...]:
    """Return a warning if right answers are more or fewer than the chances allow.

    Where the right label is among those allowed, 1[a = y]/p has the mean 1, whatever the row is. It is more if wrong
    guesses are answered less often than right ones, which nothing else in a log shows.
    """
    of_right = np.where(rounds.correct > 0.0, rounds.chances, rounds.others)
    variances = rounds.has_right * (1.0 / of_right - 1.0)
    observed = float(np.sum(rounds.correct / rounds.chances * variances))
    spread = np.sqrt(max(observed, rounds.planned(variances)))
    n, total = int(rounds.has_right.sum()), float(np.sum(rounds.has_right * rounds.correct / rounds.chances))
    largest = float(np.max(rounds.has_right / of_right, initial=0.0))
    if largest > _LARGEST_SHARE * spread or abs(total - n) <= _STANDARD_ERRORS * spread:
        return ()
    why = "wrong guesses were answered less often than right ones"
    if total < n:
        why = "right guesses were answered less often than wrong ones, or the right label had no chance"
    message = f"inverse propensities of right guesses average {total / n:.2f}, not 1: {why}"
    return (f"{message}; the estimates do not hold, the bounds do",)
