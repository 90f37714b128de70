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
Mantel (1963). Chi-square tests with one degree of freedom. Journal of the American Statistical Association 58.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2, norm

from onebit.experiments.evaluate.log import RIGHT, LoggedRounds
from onebit.inputs import Floats, Integers
from onebit.learners import EpsilonGreedy
from onebit.reporting.text import grouped
from onebit.streams.preprocess import preprocess

ASSUMPTION = "estimates assume that whether an answer came did not depend on the label that was guessed"
"""The assumption beside every estimate. Bounds do not need it."""
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
_UNEVEN = 0.05  # the approximate rate of false warnings of uneven answers
_EDGES = (0.1, 0.5, 0.9)  # between groups of propensities
_RANGES = ["below 0.1", "0.1 to 0.5", "0.5 to 0.9", "0.9 and above"]
_BLOCK = 50  # consecutive rounds between which answers are compared: they may still be to come, or lack for a while
_FEWEST = 5.0  # rounds of a group expected to be answered, and as many not
_Booleans = npt.NDArray[np.bool_]


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


class Estimates(NamedTuple):
    """All that was estimated of a learner, or why nothing could be."""

    found: dict[str, Estimate]
    warnings: tuple[str, ...]
    """Why the estimates, if there are any, decide nothing."""
    notes: tuple[str, ...] = ()
    """Which estimates are not offered, or not in all rounds, and why."""
    effective: float | None = None
    """The effective number of rounds: (Σw)²/Σw². None, as the next two, where there are no estimates."""
    largest: float | None = None
    """The largest weight."""
    telling: int | None = None
    """Rounds in which a label with a propensity of at most ½ was tried and was informative about this learner."""

    @property
    def assumption(self) -> str:
        """What the estimates assume that the log does not prove; nothing where there are none."""
        return ASSUMPTION if self.found else ""


class _Expected(NamedTuple):
    """What was expected of guesses, round by round, given the rounds before."""

    guesses: Integers
    of_guess: Floats  # how likely the guess was to be right
    of_logged: Floats  # how likely the logged label was to be right
    squares: Floats  # the sum of the squared probabilities of all labels


def expect(log: LoggedRounds, asked: Sequence[Integers]) -> list[_Expected]:
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
    propensities, squares = [np.empty(log.n_rounds) for _ in wanted], np.empty(log.n_rounds)
    stop = 0
    while stop < log.n_rounds:
        start, stop = stop, min(log.n_rounds, stop + max(_FIRST_BLOCK, int(_GROWTH * stop)))
        if start == 0:
            expected = np.ones((stop, n_classes))
        else:
            expected = np.clip(model.score_classes(rows[start:stop]), _LEAST, 1.0)
        for row, allowed in enumerate(() if log.among is None else log.among[start:stop]):
            if allowed is not None:
                expected[row, np.setdiff1d(np.arange(n_classes), allowed)] = 0.0
        expected /= expected.sum(axis=1, keepdims=True)
        squares[start:stop] = np.sum(expected**2, axis=1)
        for found, guesses in zip(propensities, wanted, strict=True):
            places = guesses[start:stop]
            found[start:stop] = np.where(places >= 0, expected[np.arange(stop - start), places], 0.0)
        # Even without answers so far: the model must be started before it predicts.
        answered = np.flatnonzero(answers[start:stop]) + start
        if len(answered):
            model.learn_from(rows[answered], labels[answered], log.answers[answered] == RIGHT)
        elif start == 0:
            model.begin(rows.shape[1])
    of_logged, *of_guesses = propensities
    return [_Expected(guesses, own, of_logged, squares) for guesses, own in zip(asked, of_guesses, strict=True)]


def _settle(log: LoggedRounds, guesses: Integers) -> tuple[_Booleans, _Booleans]:
    """Return in which rounds guesses, as positions, are known to be right, and in which known to be wrong."""
    truths, answered = log.truths(), log.is_answered
    right = (truths >= 0) & (guesses == truths)
    wrong = ((truths >= 0) & (guesses != truths)) | (answered & (log.answers != RIGHT) & (guesses == log.guesses))
    return right, wrong


def known(log: LoggedRounds, guesses: Integers) -> Known:
    """Return how many guesses are known to be right or wrong, among the rounds with an answer."""
    right, wrong = _settle(log, guesses)
    n_right, n_wrong = int(right.sum()), int(wrong.sum())
    return Known(n_right, n_wrong, int(log.is_answered.sum()) - n_right - n_wrong)


def estimate(log: LoggedRounds, expected: _Expected) -> Estimates:
    """Estimate the share of mistakes of guesses in the answered rounds whose propensity is known."""
    guesses = expected.guesses
    used = log.is_answered & ~np.isnan(log.propensities)
    n_answered, n_used = int(log.is_answered.sum()), int(used.sum())
    if not n_used:
        return Estimates({}, ("the log has no propensities, so there are bounds and no estimates",))
    right, wrong = _settle(log, guesses)
    certain = used & (log.propensities >= 1.0)
    if hidden := int((certain & ~right & ~wrong).sum()):
        message = (
            f"in {grouped(hidden)} rounds the logged label was certain (propensity 1), was wrong, and this learner "
            "guesses another: no estimate, only bounds. A log that now and then guesses at random (an exploration "
            "floor) allows estimates"
        )
        return Estimates({}, (message,))
    drawn = used & ~certain
    rounds = _Drawn(
        agrees=(guesses == log.guesses)[drawn],
        correct=(log.answers == RIGHT)[drawn].astype(np.float64),
        propensities=log.propensities[drawn],
        expected=_Expected._make(part[drawn] for part in expected),
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
    of_all = np.concatenate([rounds.weights, np.ones(int((certain & (guesses == log.guesses)).sum()))])
    squares = float(np.sum(of_all**2))
    telling = int(((rounds.propensities <= 0.5) & (rounds.agrees | (rounds.correct > 0.0))).sum())
    effective = float(of_all.sum()) ** 2 / squares if squares else 0.0
    largest = float(of_all.max(initial=0.0))
    warnings = _warnings(rounds)
    if len(rounds.propensities) and telling < _FEW_ROUNDS:
        warnings.append(
            f"only {telling} rounds in which an unlikely label was tried inform about it (largest "
            f"weight {largest:.3g}, effective sample size {grouped(effective)}): too few for the "
            "estimates to say more than the bounds"
        )
    warnings += [rates.warning for rates in answer_rates(log) if rates.is_uneven]
    if n_used < n_answered:
        without = n_answered - n_used
        warnings.append(f"{grouped(without)} answered rounds have no propensity: the estimates are of the others")
    return Estimates(found, tuple(warnings), notes, effective, largest, telling)


class _Drawn(NamedTuple):
    """The rounds in which the label was drawn at random."""

    agrees: _Booleans
    correct: Floats
    propensities: Floats
    expected: _Expected
    n_allowed: Integers
    has_right: _Booleans  # whether the right label is known to be among those allowed, without the answer

    @property
    def weights(self) -> Floats:
        """w: one over the propensity where the learner guesses the logged label."""
        weights: Floats = np.where(self.agrees, 1.0 / self.propensities, 0.0)
        return weights

    @property
    def others(self) -> Floats:
        """The chance of a label that was not tried: what the tried one left, shared by all others."""
        propensities: Floats = (1.0 - self.propensities) / np.maximum(self.n_allowed - 1, 1)
        return propensities

    def planned(self, variances: Floats) -> float:
        """Return the sum of variances that hold in the rounds in which the likely label was tried.

        Where it was not, another label's propensity is unknown. Such rounds are accounted for by weighting the others:
        a label with a propensity above ½ is tried with that frequency.
        """
        stand_for = np.where(
            self.propensities > 0.5, 1.0 / self.propensities, self.propensities >= (1.0 - _ROUNDED) * self.others
        )
        return float(np.sum(stand_for * variances))


def _about_dr_plus(rounds: _Drawn, is_complete: bool) -> tuple[bool, tuple[str, ...]]:
    """Return whether DR+ is offered, and remarks on where it is not used."""
    n, n_whole = len(rounds.propensities), int(rounds.has_right.sum())
    # The mean of 1/p is the number of labels with a chance: whether it is less than there are labels.
    n_labels = rounds.has_right * rounds.n_allowed
    variances = np.maximum(
        1.0 / rounds.propensities + (rounds.n_allowed - 1) / rounds.others - rounds.n_allowed**2, 0.0
    )
    missing = float(np.sum(n_labels - rounds.has_right / rounds.propensities))
    spread = np.sqrt(rounds.planned(variances * rounds.has_right))
    if not is_complete:
        why = "the right label need not be one of the log's (--classes lists all that there are)"
    elif n and not n_whole:
        why = "no round allowed all labels, and the right one may be among those left out"
    elif missing > _STANDARD_ERRORS * spread + _ROUNDED * n_labels.sum():
        why = "inverse propensities average too little: some labels had no chance, or hardly any, or fewer answers"
    elif n_whole < n:
        message = f"in {grouped(n - n_whole)} of {grouped(n)} rounds not all labels were allowed: there DR+ is as DR"
        return True, (message,)
    else:
        return True, ()
    return False, (f"DR+ is not offered: {why}",)


def _sums(rounds: _Drawn, has_dr_plus: bool) -> dict[str, tuple[float, float]]:
    """Return the estimated number of mistakes, and the variance of that number, by method."""
    n, total = len(rounds.propensities), float(np.sum(rounds.weights))
    found = {"IPS": _on_agreement(rounds, np.zeros(n))}
    if total > 0.0:
        mistakes = float(np.sum(rounds.weights * (1.0 - rounds.correct)))
        found["SNIPS"] = n * mistakes / total, _on_agreement(rounds, np.full(n, mistakes / total))[1] * (n / total) ** 2
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
    observed = rounds.weights * missed**2 * (1.0 / rounds.propensities - 1.0)
    squares, propensities = _squares(rounds, base)
    return float(terms.sum()), max(float(observed.sum()), rounds.planned(squares * (1.0 / propensities - 1.0)))


def _squares(rounds: _Drawn, base: Floats) -> tuple[Floats, Floats]:
    """Return (m − b)², or the mean of b² and (1 − b)² where m is not known, and the chance of the guess."""
    is_unknown = ~rounds.agrees & (rounds.correct == 0.0)
    mistaken = np.where(rounds.agrees, 1.0 - rounds.correct, 1.0)
    squares = np.where(is_unknown, (base**2 + (1.0 - base) ** 2) / 2.0, (mistaken - base) ** 2)
    return squares, np.where(rounds.agrees, rounds.propensities, rounds.others)


def _on_both(rounds: _Drawn) -> tuple[float, float]:
    """Return the DR+ estimate and its variance."""
    _, of_guess, of_logged, all_squares = rounds.expected
    base, tried = 1.0 - of_guess, ~rounds.agrees * (rounds.correct - of_logged)
    on_agreement = rounds.weights * (1.0 - rounds.correct - base)
    squares, propensities = _squares(rounds, base)
    of_agreement = squares / propensities
    # Σ (1[k = y] − h(k))²/p(k) over the labels k ≠ g, no less than it is where y is not known.
    left = np.maximum(all_squares - of_guess**2 - ~rounds.agrees * of_logged**2, 0.0)
    of_others = tried**2 / rounds.propensities + (left + (rounds.correct == 0.0)) / rounds.others
    # Both have the same mean in every round, so that any B that knows only the past leaves it as it is. Never both are
    # there at once, so the best B is the share of the squares.
    past = np.cumsum([rounds.has_right * of_agreement, rounds.has_right * of_others], axis=1)
    both = past.sum(axis=0)
    best = np.divide(past[0], both, out=np.full(len(base), 0.5), where=both > 0.0)
    shares = rounds.has_right * np.concatenate([[0.5], best[:-1]])[: len(base)]
    moved = (1.0 - shares) * on_agreement + shares * (tried / rounds.propensities)
    planned = (1.0 - shares) ** 2 * of_agreement + shares**2 * of_others - squares
    # E[moved²] − (m − b)², the latter linear in m since m is 0 or 1.
    observed = moved**2 - base**2 - (1.0 - 2.0 * base) * (base + moved)
    return float(np.sum(base + moved)), max(float(observed.sum()), rounds.planned(planned))


def _warnings(rounds: _Drawn) -> list[str]:
    messages: list[str] = []
    if not len(rounds.propensities):
        return messages
    # The mean weight is 1 if every label that the learner guesses had a chance.
    _, propensities = _squares(rounds, np.zeros(len(rounds.propensities)))
    spread = np.sqrt(rounds.planned(1.0 / propensities - 1.0))
    if len(rounds.propensities) - rounds.weights.sum() > _STANDARD_ERRORS * spread:
        messages.append(
            f"weights average {rounds.weights.mean():.2f}, not 1: it guesses labels that the log never, or hardly "
            "ever, tries; the estimates do not hold, the bounds do"
        )
    # Where the right label is among those allowed, 1[a = y]/p has the mean 1, whatever the row is. It is more if wrong
    # guesses are answered less often than right ones, which nothing else in a log shows.
    of_right = np.where(rounds.correct > 0.0, rounds.propensities, rounds.others)
    variances = rounds.has_right * (1.0 / of_right - 1.0)
    observed = float(np.sum(rounds.correct / rounds.propensities * variances))
    spread = np.sqrt(max(observed, rounds.planned(variances)))
    n, total = int(rounds.has_right.sum()), float(np.sum(rounds.has_right * rounds.correct / rounds.propensities))
    largest = float(np.max(rounds.has_right / of_right, initial=0.0))
    if largest <= _LARGEST_SHARE * spread and abs(total - n) > _STANDARD_ERRORS * spread:
        why = "wrong guesses were answered less often than right ones"
        if total < n:
            why = "right guesses were answered less often than wrong ones, or the right label had no chance"
        mean = f"inverse propensities of right guesses average {total / n:.2f}, not 1"
        messages.append(f"{mean}: {why}; the estimates do not hold, the bounds do")
    return messages


class AnswerRates(NamedTuple):
    """How often rounds of some groups were answered; only those with a randomly drawn label are counted."""

    by: str
    """What the groups have in common: "label" or "propensity"."""
    names: list[str]
    n_rounds: list[int]
    n_answered: list[int]
    p_value: float | None
    """p of the hypothesis that all groups are answered equally often; None where there are too few rounds."""

    @property
    def is_uneven(self) -> bool:
        """Whether the test finds that answers do not come equally often."""
        return self.p_value is not None and self.p_value < _UNEVEN / 2

    @property
    def warning(self) -> str:
        """What it means for estimates that answers do not come equally often."""
        return (
            f"answers do not come equally often for every {self.by}: {self.extremes}, p = {self.p_value:.1g}. If it is "
            "what was guessed that matters, and not the row, the estimates do not hold; the bounds do"
        )

    @property
    def extremes(self) -> str:
        """The groups that were answered the least and the most often, in words."""
        rates = np.array(self.n_answered) / np.array(self.n_rounds)
        return " to ".join(f"{100 * rates[at]:.0f} % ({self.names[at]})" for at in (rates.argmin(), rates.argmax()))


def answer_rates(log: LoggedRounds) -> list[AnswerRates]:
    """Return how often guesses of each label, and of each range of propensities, were answered.

    Rounds with an unknown propensity, or a certain label, do not count: estimates do not use the former, and need no
    assumption for the latter. There is one by label and one by propensity, each where there are at least two groups to
    compare; none where all such rounds are answered.

    Examples
    --------
    >>> from onebit.experiments.evaluate import logged_rounds
    >>> guesses, answers = ["tea", "milk"] * 100, [True, None, True, False] * 50
    >>> (rates,) = answer_rates(logged_rounds([[0.0]] * 200, guesses, answers, 0.5))
    >>> rates.extremes, rates.is_uneven
    ('50 % (milk) to 100 % (tea)', True)
    """
    drawn = log.propensities < 1.0  # and not NaN
    answered, labels, propensities = log.is_answered[drawn], log.guesses[drawn], log.propensities[drawn]
    if answered.all():
        return []
    by_propensity = np.searchsorted(_EDGES, propensities, side="right")
    found = []
    for by, names, groups in (
        ("label", [str(label) for label in log.classes.tolist()], labels),
        ("propensity", _RANGES, by_propensity),
    ):
        n_rounds = np.bincount(groups, minlength=len(names))
        n_answered = np.bincount(groups[answered], minlength=len(names))
        met = np.flatnonzero(n_rounds)
        if len(met) > 1:
            p_value = _p_value(_pooled(groups, float(answered.mean())), answered)
            counts = n_rounds[met].tolist(), n_answered[met].tolist()
            found.append(AnswerRates(by, [names[at] for at in met], *counts, p_value))
    return found


def _pooled(groups: Integers, rate: float) -> Integers:
    """Return groups, numbered from 0, that are each large enough: small ones are merged, the smallest first."""
    _, groups, n_rounds = np.unique(groups, return_inverse=True, return_counts=True)
    enough = _FEWEST / min(rate, 1.0 - rate) if 0.0 < rate < 1.0 else np.inf
    order = np.argsort(n_rounds, kind="stable")
    to, n_here, at = np.empty(len(order), dtype=np.int64), 0.0, 0
    for group in order.tolist():
        to[group] = at
        n_here += n_rounds[group]
        if n_here >= enough:
            at, n_here = at + 1, 0.0
    pooled: Integers = np.minimum(to, max(at - 1, 0))[groups]
    return pooled


def _p_value(groups: Integers, answered: _Booleans) -> float | None:
    """Return the p-value of the generalised Mantel-Haenszel test, with blocks of consecutive rounds as strata."""
    n_groups, blocks = int(groups.max()) + 1, np.arange(len(groups)) // _BLOCK
    cells, shape = blocks * n_groups + groups, (int(blocks[-1]) + 1, n_groups)
    counts = np.bincount(cells, minlength=math.prod(shape)).reshape(shape)
    answered_counts = np.bincount(cells, answered, math.prod(shape)).reshape(shape)
    n, n_answered = counts.sum(axis=1), answered_counts.sum(axis=1)
    excess = (answered_counts - counts * (n_answered / n)[:, None]).sum(axis=0)
    # Of answers drawn without replacement within a block.
    scale = n_answered * (n - n_answered) / (n**2 * np.maximum(n - 1.0, 1.0))
    variance = np.diag((scale * n) @ counts) - (counts * scale[:, None]).T @ counts
    freedom = int(np.linalg.matrix_rank(variance))
    if freedom == 0:
        return None
    return float(chi2.sf(excess @ np.linalg.pinv(variance) @ excess, freedom))
