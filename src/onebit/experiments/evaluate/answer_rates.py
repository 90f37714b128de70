"""Whether answers came equally often, whatever was guessed: the part of the estimates' assumption that a log can show.

The check compares the share of answered rounds between labels, and between propensities: two generalised
Mantel-Haenszel tests at half of `LEVEL` each, with blocks of `_BLOCK` consecutive rounds as strata, so that answers
that are still to come, or came less often for a while, raise no warning. Groups are merged until each has at least
`_FEWEST` rounds expected to be answered, and as many not. docs/evaluate.md has what it cannot see.

References
----------
Mantel (1963). Chi-square tests with one degree of freedom; extensions of the Mantel-Haenszel procedure. Journal of the
American Statistical Association 58.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from onebit.experiments.evaluate.log import RIGHT, LoggedRounds
from onebit.inputs import Floats, Integers
from onebit.reporting.text import grouped

ASSUMPTION = "estimates assume that whether an answer came did not depend on the label that was guessed"
"""The assumption beside every estimate. Bounds do not need it."""
LEVEL = 0.05  # the approximate rate of false warnings
_EDGES = (0.1, 0.5, 0.9)  # between groups of propensities
_BLOCK = 50
_FEWEST = 5.0


class AnswerRates(NamedTuple):
    """How often rounds of some groups were answered; only rounds with a randomly drawn label are counted."""

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
        return self.p_value is not None and self.p_value < LEVEL / 2

    @property
    def extremes(self) -> str:
        """The groups that were answered the least and the most often, in words."""
        rates = [answered / n for answered, n in zip(self.n_answered, self.n_rounds, strict=True)]
        low, high = min(range(len(rates)), key=rates.__getitem__), max(range(len(rates)), key=rates.__getitem__)
        return " to ".join(f"{100 * rates[at]:.0f} % ({self.names[at]})" for at in (low, high))


def answer_rates(log: LoggedRounds) -> list[AnswerRates]:
    """Return how often guesses of each label, and of each range of propensities, were answered.

    Parameters
    ----------
    log : LoggedRounds
        The rounds. Those with an unknown propensity, or a certain label, do not count: estimates do not use the former,
        and need no assumption for the latter.

    Returns
    -------
    list of AnswerRates
        By label and by propensity, each where there are at least two groups to compare; none where all such rounds are
        answered.

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
    ranges = ["below 0.1", "0.1 to 0.5", "0.5 to 0.9", "0.9 and above"]
    by_label = _compared("label", [str(label) for label in log.classes.tolist()], labels, answered)
    by_propensity = _compared("propensity", ranges, np.searchsorted(_EDGES, propensities, side="right"), answered)
    return [rates for rates in (by_label, by_propensity) if rates is not None]


def uneven_answers(log: LoggedRounds) -> tuple[str, ...]:
    """Return warnings where answers do not come equally often."""
    return tuple(
        f"answers do not come equally often for every {rates.by}: {rates.extremes}, p = {rates.p_value:.1g}. If it is "
        "what was guessed that matters, and not the row, the estimates do not hold; the bounds do"
        for rates in answer_rates(log)
        if rates.is_uneven
    )


def describe_answers(log: LoggedRounds) -> str:
    """Return in words how often rounds were answered, and whether equally often."""
    n_answered = int(log.is_answered.sum())
    if n_answered == log.n_rounds:
        return "all rounds; if others were left out of the log, that cannot be seen"
    parts = [f"{grouped(n_answered)} of {grouped(log.n_rounds)} rounds"]
    for rates in answer_rates(log):
        tested = "too few to test" if rates.p_value is None else f"p = {rates.p_value:.2g}"
        parts.append(f"by {rates.by} {rates.extremes}, {tested}")
    known = log.answers[log.is_answered]
    if (known == known[0]).all():
        only, favoured = ("right", "the log") if known[0] == RIGHT else ("wrong", "the others")
        parts.append(f"all of them {only}: if only {only} guesses are answered, every comparison favours {favoured}")
    return "; ".join(parts)


def _compared(by: str, names: list[str], groups: Integers, answered: npt.NDArray[np.bool_]) -> AnswerRates | None:
    n_rounds = np.bincount(groups, minlength=len(names))
    n_answered = np.bincount(groups, weights=answered, minlength=len(names)).astype(np.int64)
    met = np.flatnonzero(n_rounds)
    if len(met) < 2:
        return None
    p_value = _p_value(_pooled(groups, float(answered.mean())), answered)
    return AnswerRates(by, [names[at] for at in met], n_rounds[met].tolist(), n_answered[met].tolist(), p_value)


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


def _p_value(groups: Integers, answered: npt.NDArray[np.bool_]) -> float | None:
    """Return the p-value of the generalised Mantel-Haenszel test, with blocks of consecutive rounds as strata."""
    n_groups = int(groups.max()) + 1
    blocks = np.arange(len(groups)) // _BLOCK
    shape = int(blocks[-1]) + 1, n_groups
    counts: Floats = np.zeros(shape)
    answered_counts: Floats = np.zeros(shape)
    np.add.at(counts, (blocks, groups), 1.0)
    np.add.at(answered_counts, (blocks, groups), answered)
    n, n_answered = counts.sum(axis=1), answered_counts.sum(axis=1)
    excess = (answered_counts - counts * (n_answered / n)[:, None]).sum(axis=0)
    # Of answers drawn without replacement within a block.
    scale = n_answered * (n - n_answered) / (n**2 * np.maximum(n - 1.0, 1.0))
    variance = np.diag((scale * n) @ counts) - (counts * scale[:, None]).T @ counts
    freedom = int(np.linalg.matrix_rank(variance))
    if freedom == 0:
        return None
    return float(chi2.sf(excess @ np.linalg.pinv(variance) @ excess, freedom))
