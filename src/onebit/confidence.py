"""How likely a guess is to be right, estimated from the feedback on the guesses before it.

A guess has scores on a scale of the learner's own. What they say about the guess is put into a few bounded numbers: how
far its score is above the next, above the third and above the mean, measured by how far it usually is; how high the
score is, measured likewise; how often guesses, and guesses of this label, were right lately; and what the learner has
to offer beside its scores. The estimate is made in two steps.

1. A logistic regression on these numbers, learned online: the weights have a normal distribution, which every answer
   updates, and which widens a little in every round, so that old answers are forgotten (dynamic logistic regression:
   Penny, Roberts 1999; McCormick, Raftery, Madigan, Burd 2012). How fast to forget is not known beforehand: two
   regressions forget at different rates, and are mixed by how well each has predicted lately.
2. Where the regression has lately been too sure, or not sure enough, its log odds are shifted: what was right is
   compared with what was expected around nodes evenly spaced in log odds, and shifts are interpolated (histogram
   binning: Zadrozny, Elkan 2001, with shrinkage and without jumps).

Only the order of the feedback matters, not when the guesses were made. Nothing is random.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from onebit.engine.jit import jit_internal, jit_no_refcount
from onebit.inputs import Floats, Integers

_ENOUGH = 30  # answers before there is a confidence
_N_OWN = 9  # numbers known of every guess, a constant among them
_TABLE = 1024  # classes that are told apart; with more, some share a rate
_DRIFTS = (1e-4, 1e-3)  # of each regression: what the variances move by in a round, as a share of the way to the first
_FIRST, _VARIANCE = (-0.5, 0.5, 0.2, 0.7, 0.4, 0.0, 0.7, 0.4, 0.5), 0.5  # weights at first, and the variance of each
_FIRST_EXTRA = 0.75  # likewise, of what the learner offers
_SHARE = 0.001  # of the mixture that is dealt out anew in every round (fixed share: Herbster, Warmuth 1998)
_RECENT, _USUAL, _OF_CLASS = 30.0, 200.0, 0.99  # answers that rates and scales are averaged over; what a class keeps
_LEAST_LIKELY = 1e-4  # what a regression held to be less likely counts as this when the mixture is judged
_LEAST_SLOPE = 1e-3  # of the logistic function, so that regressions that are sure still learn
_N_NODES, _LOWEST, _SPACING = 25, -4.0, 0.5  # of the correction: log odds from −4 to 8
_HELD_BACK, _OF_NODE = 40.0, 0.998  # answers without an error that each node starts with; what it keeps at an answer
_LARGEST_SCALE = 600.0  # its logarithm
_FURTHEST, _TOO_OFTEN = 3.0, 20.0  # gaps so far from their scale, in logarithms, so often in a row, have another scale
_SUREST = 16.0  # log odds of a regression
_LARGEST_EXTRA = 3.0
_LARGEST_WEIGHT = 1e6  # in a file
# Of `numbers`; the mixture is all the rest.
_ANSWERS, _LATELY, _MEASURED, _SCALE, _FAR, _TOP, _SPREAD, _MIXTURE = range(8)
_RIGHT, _WRONG = range(2)  # of `classes`
_EXPECTED, _COUNTS = 1, 2  # of `nodes`, behind _RIGHT
_LEAST_BIN = 20  # guesses of which a share is shown
_N_BESIDE = 2  # of evidence, behind the features: half the score and half the gap, from which scales are learned


class _ConfidenceArrays(NamedTuple):
    """Everything that was learned; its size does not depend on the number of classes or answers."""

    regressions: Floats
    """Of each regression the weights, and below them their covariance matrix."""
    classes: Floats
    """How often guesses of each class were right, and wrong, lately."""
    nodes: Floats
    """Of the answers around each node how many were right, how many were expected to be, and how many there were."""
    numbers: Floats
    """Answers, scales, recent rate, and the mixture."""


class Confidence:
    """Estimates the probability that a guess is right; one for each learner.

    The `n_extra` numbers that a learner offers beside its scores should be about as large as 1.

    >>> import numpy as np
    >>> confidence, draw = Confidence(), np.random.default_rng(1)
    >>> for _ in range(3000):
    ...     scores = draw.normal(size=2)
    ...     label = int(np.argmax(scores))
    ...     evidence, _ = confidence.observe(scores, label)
    ...     confidence.learn(evidence, label, correct=bool(draw.random() < 1 / (1 + np.exp(-np.ptp(scores)))))
    >>> [round(confidence.observe(np.array([gap, 0.0]), 0)[1], 1) for gap in (0.0, 2.0)]
    [0.5, 0.9]
    """

    def __init__(self, n_extra: int = 0) -> None:
        self.n_extra, width = n_extra, _N_OWN + n_extra
        first = np.append(_FIRST, np.full(n_extra, _FIRST_EXTRA))
        self._arrays: tuple[Floats, ...] = (  # as `_ConfidenceArrays`, which takes longer to hand over
            np.tile(np.vstack([first, _VARIANCE * np.eye(width)]), (len(_DRIFTS), 1, 1)),
            np.zeros((2, _TABLE)),
            np.zeros((3, _N_NODES)),
            np.array([0.0, 0.5] + [0.0] * (_MIXTURE - 2) + [1.0 / len(_DRIFTS)] * len(_DRIFTS)),
        )
        self._room = np.empty(width)

    @property
    def arrays(self) -> _ConfidenceArrays:
        """Everything that was learned."""
        return _ConfidenceArrays(*self._arrays)

    @property
    def n_evidence(self) -> int:
        """How many numbers the evidence about a guess has."""
        return len(self._room) + _N_BESIDE

    def observe(self, scores: Floats, label: int, extra: Floats | None = None) -> tuple[Floats, float]:
        """Return the evidence about a guess, for `learn`, and the confidence in it; nothing is changed.

        The scores are those that the guess was made from, −∞ for a label that was not allowed, or none; `label` is the
        position of the guessed one. The evidence is finite, and the confidence NaN while there is too little feedback.
        """
        evidence = np.empty(len(self._room) + _N_BESIDE)
        return evidence, _observe(self._arrays, scores, label, _NONE if extra is None else extra, self._room, evidence)

    def learn(self, evidence: Floats, label: int, correct: bool) -> None:
        """Learn whether a guess was right, at once or later, from the evidence that `observe` returned."""
        _learn(self._arrays, evidence, label, correct, self._room)

    def estimate_rows(self, scores: Floats, labels: Integers, extra: Floats | None = None) -> Floats:
        """Return the confidence in many guesses, one a row; nothing is changed."""
        beside = np.zeros((len(labels), self.n_extra)) if extra is None else extra
        return np.array([self.observe(*about)[1] for about in zip(scores, labels.tolist(), beside, strict=True)])

    def put_back(self, packed: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from arrays of a file that is not trusted; raise ValueError unless they could have been learned."""
        if packed.keys() != set(_ConfidenceArrays._fields):
            raise ValueError("another version of onebit saved it, which estimated confidence otherwise")
        arrays = _ConfidenceArrays(**{name: np.array(array, np.float64) for name, array in packed.items()})
        for name, array, own in zip(arrays._fields, arrays, self._arrays, strict=True):
            if packed[name].dtype.newbyteorder("=") != np.float64 or array.shape != own.shape:
                raise ValueError(f"confidence: {name} must be float64 of shape {own.shape}; got {packed[name].dtype}")
            if not np.isfinite(array).all():
                raise ValueError(f"confidence: {name} must be finite")
        regressions, classes, nodes, numbers = arrays
        variances, mixture, slack = regressions[:, 1:], numbers[_MIXTURE:], 1.0 + 1e-6
        for name, holds in {
            "weights": (np.abs(regressions[:, 0]) <= _LARGEST_WEIGHT).all(),
            "variances": (np.abs(variances) <= _VARIANCE * slack).all()
            and (np.diagonal(variances, axis1=1, axis2=2) >= 0.0).all(),
            "classes": ((classes >= 0.0) & (classes <= slack / (1.0 - _OF_CLASS))).all(),
            "nodes": ((nodes >= 0.0) & (nodes <= slack * nodes[_COUNTS])).all()
            and (nodes[_COUNTS] <= slack / (1.0 - _OF_NODE)).all(),
            "answers": 0.0 <= numbers[_MEASURED] <= numbers[_ANSWERS] and numbers[_ANSWERS] == int(numbers[_ANSWERS]),
            "scale": abs(numbers[_SCALE]) <= slack * _LARGEST_SCALE and numbers[_SPREAD] >= 0.0,
            "recent rate": 0.0 <= numbers[_LATELY] <= 1.0,
            "mixture": (mixture > 0.0).all() and abs(mixture.sum() - 1.0) < 1e-6,
        }.items():
            if not holds:
                raise ValueError(f"confidence: {name} cannot have been learned: the file is damaged or was edited")
        self._arrays = tuple(arrays)


def reliability(confidence: Floats, right: npt.ArrayLike, most: int = 10) -> list[tuple[float, int, int]]:
    """Return bins of equal size of guesses by confidence: the mean confidence, how many were right, and how many all.

    >>> reliability(np.array([0.5] * 20 + [0.75] * 20), [True] * 11 + [False] * 9 + [True] * 20)
    [(0.5, 11, 20), (0.75, 20, 20)]
    """
    n_bins, was_right = max(1, min(most, len(confidence) // _LEAST_BIN)), np.asarray(right, bool)
    parts = [part for part in np.array_split(np.argsort(confidence, kind="stable"), n_bins) if len(part)]
    return [(float(confidence[part].mean()), int(was_right[part].sum()), len(part)) for part in parts]


def risk_by_coverage(confidence: Floats, right: npt.ArrayLike) -> Floats:
    """Return the share wrong among the n guesses with the most confidence, for every n from 1.

    >>> risk_by_coverage(np.array([0.5, 0.9, 0.8]), [False, True, True]).round(2).tolist()
    [0.0, 0.0, 0.33]
    """
    wrong = ~np.asarray(right, bool)[np.argsort(-confidence, kind="stable")]
    risk: Floats = np.cumsum(wrong) / np.arange(1, len(wrong) + 1)
    return risk


_NONE = np.empty(0)


@jit_internal
def _within(value: float, limit: float) -> float:
    """Return a value cut off at ±limit; 0 if it is not a number."""
    if value != value:
        return 0.0
    return min(limit, max(-limit, value))


@jit_internal
def _log_odds(rate: float, beside: float) -> float:
    """Return half the logarithm of odds, kept away from 0 and infinity."""
    return 0.5 * math.log((rate + beside) / (1.0 - rate + beside))


@jit_internal
def _describe(classes: Floats, numbers: Floats, scores: Floats, label: int, extra: Floats, evidence: Floats) -> None:
    """Write what is known about a guess."""
    n, second, third, total, n_allowed = scores.shape[0], -math.inf, -math.inf, 0.0, 0
    own = 0.5 * scores[label] if 0 <= label < n else 0.0  # halves: no difference of two overflows
    own = _within(own, 1e308)
    for i in range(n):
        score = 0.5 * scores[i]
        if -math.inf < score < math.inf:
            total += score / n
            n_allowed += 1
            if i != label:
                third = max(third, min(second, score))
                second = max(second, score)
    gap = own - second if second > -math.inf else 0.0
    to_third = own - third if third > -math.inf else gap
    scale = math.exp(numbers[_SCALE]) if numbers[_MEASURED] > 0.0 else math.inf
    mean = total * (n / n_allowed) if n_allowed > 0 else own
    lead, far, above = _within(gap / scale, 1e9), _within(to_third / scale, 1e9), _within((own - mean) / scale, 1e9)
    height = _within((own - numbers[_TOP]) / numbers[_SPREAD], 1e9) if numbers[_SPREAD] > 0.0 else 0.0
    place, lately = label % _TABLE, numbers[_LATELY]
    right, wrong = classes[_RIGHT, place] + 3.0 * lately + 0.05, classes[_WRONG, place] + 3.0 * (1.0 - lately) + 0.05
    evidence[0] = 1.0
    evidence[1] = 2.0 * lead / (1.0 + abs(lead))
    evidence[2] = 0.5 * math.log(abs(lead) + 0.02) if lead >= 0.0 else 0.5 * math.log(0.02) + max(-2.0, lead)
    evidence[2] = min(2.0, evidence[2])
    evidence[3] = _within(0.5 * lead, 2.0)
    evidence[4] = 2.0 * far / (2.0 + abs(far))
    evidence[5] = above * 2.0 / (2.0 + abs(above))
    evidence[6] = 2.0 * height / (2.0 + abs(height))
    evidence[7] = _log_odds(lately, 0.02)
    evidence[8] = 0.5 * math.log(right / wrong) - evidence[7]
    width = evidence.shape[0] - _N_BESIDE
    for j in range(width - _N_OWN):
        evidence[_N_OWN + j] = _within(extra[j], _LARGEST_EXTRA) if j < extra.shape[0] else 0.0
    evidence[width] = own
    evidence[width + 1] = _within(gap, 1e308)


@jit_internal
def _predict(regression: Floats, evidence: Floats, room: Floats) -> tuple[float, float]:
    """Return what one regression holds the probability to be, and the variance of its log odds; `room` gets Vx."""
    n, weights, odds, variance = room.shape[0], regression[0], 0.0, 0.0
    for i in range(n):
        room[i] = 0.0
    for j in range(n):
        entry, line = evidence[j], regression[1 + j]
        for i in range(n):
            room[i] += entry * line[i]
    for i in range(n):
        odds += weights[i] * evidence[i]
        variance += room[i] * evidence[i]
    variance = max(0.0, variance)
    # The mean of a logistic function under a normal distribution (MacKay 1992).
    odds = _within(odds / math.sqrt(1.0 + math.pi / 8.0 * variance), _SUREST)
    return 1.0 / (1.0 + math.exp(-odds)), variance


@jit_internal
def _node_of(odds: float) -> float:
    """Return where log odds lie among the nodes: between which two, and how far from the first."""
    return min(_N_NODES - 1.001, max(0.0, (odds - _LOWEST) / _SPACING))


@jit_internal
def _shift(nodes: Floats, node: int) -> float:
    """Return what log odds near a node are off by, as its answers show."""
    of_node = 1.0 / (1.0 + math.exp(-_LOWEST - _SPACING * node))
    n, beside = nodes[_COUNTS, node] + _HELD_BACK, _HELD_BACK * of_node
    right, expected = nodes[_RIGHT, node] + beside, nodes[_EXPECTED, node] + beside
    return math.log(right * (n - expected) / (expected * (n - right)))


@jit_internal
def _estimate(regressions: Floats, nodes: Floats, numbers: Floats, evidence: Floats, room: Floats) -> float:
    """Return the confidence."""
    if numbers[_ANSWERS] < _ENOUGH:
        return math.nan
    probability = 0.0
    for k in range(regressions.shape[0]):
        probability += numbers[_MIXTURE + k] * _predict(regressions[k], evidence, room)[0]
    odds = math.log(probability / (1.0 - probability))
    place = _node_of(odds)
    low, high = _shift(nodes, int(place)), _shift(nodes, int(place) + 1)
    return 1.0 / (1.0 + math.exp(-odds - low - (place - int(place)) * (high - low)))


@jit_no_refcount
def _observe(arrays: Any, scores: Floats, label: int, extra: Floats, room: Floats, evidence: Floats) -> float:
    regressions, classes, nodes, numbers = arrays
    _describe(classes, numbers, scores, label, extra, evidence)
    return _estimate(regressions, nodes, numbers, evidence, room)


@jit_internal
def _follow(numbers: Floats, own: float, gap: float) -> None:
    """Learn how large scores and gaps usually are; none of them counts for much, however large."""
    further, is_first = 0.0, numbers[_MEASURED] == 0.0
    if is_first and gap == 0.0:
        return
    if gap != 0.0:
        further = _within(math.log(abs(gap)), _LARGEST_SCALE) - numbers[_SCALE]
        side = 1.0 if further > _FURTHEST else -1.0 if further < -_FURTHEST else 0.0
        numbers[_FAR] = numbers[_FAR] + side if numbers[_FAR] * side > 0.0 else side
    if is_first or abs(numbers[_FAR]) >= _TOO_OFTEN:
        numbers[_MEASURED], numbers[_FAR], numbers[_TOP], numbers[_SPREAD] = 1.0, 0.0, own, 0.0
        numbers[_SCALE] += further
        return
    numbers[_MEASURED] += 1.0
    rate, off = 1.0 / min(numbers[_MEASURED], _USUAL), own - numbers[_TOP]
    numbers[_SCALE] += rate * _within(further, _FURTHEST)
    if numbers[_SPREAD] > 0.0:
        off = _within(off, 10.0 * numbers[_SPREAD])
        numbers[_SPREAD] += rate * (abs(off) - numbers[_SPREAD])
    else:
        numbers[_SPREAD] = abs(off)
    numbers[_TOP] += rate * off


@jit_no_refcount
def _learn(arrays: Any, evidence: Floats, label: int, correct: bool, room: Floats) -> None:
    regressions, classes, nodes, numbers = arrays
    n, m, truth, total, mixed = room.shape[0], regressions.shape[0], 1.0 if correct else 0.0, 0.0, 0.0
    for k in range(m):
        probability, variance = _predict(regressions[k], evidence, room)
        mixed += numbers[_MIXTURE + k] * probability
        numbers[_MIXTURE + k] *= max(_LEAST_LIKELY, probability if correct else 1.0 - probability)
        total += numbers[_MIXTURE + k]
        slope = max(_LEAST_SLOPE, probability * (1.0 - probability))
        share, drift = 1.0 / (1.0 + slope * variance), _DRIFTS[k]
        for j in range(n):
            regressions[k, 0, j] += share * (truth - probability) * room[j]
            line, taken = regressions[k, 1 + j], (1.0 - drift) * share * slope * room[j]
            for i in range(n):
                line[i] = (1.0 - drift) * line[i] - taken * room[i]
            line[j] += drift * _VARIANCE
    for k in range(m):
        numbers[_MIXTURE + k] = (1.0 - _SHARE) * numbers[_MIXTURE + k] / total + _SHARE / m
    place = _node_of(math.log(mixed / (1.0 - mixed)))
    for node in (int(place), int(place) + 1):
        part = 1.0 - abs(place - node)
        kept = 1.0 - (1.0 - _OF_NODE) * part
        nodes[_RIGHT, node] = kept * nodes[_RIGHT, node] + part * truth
        nodes[_EXPECTED, node] = kept * nodes[_EXPECTED, node] + part * mixed
        nodes[_COUNTS, node] = kept * nodes[_COUNTS, node] + part
    of_class = label % _TABLE
    classes[_RIGHT, of_class] = _OF_CLASS * classes[_RIGHT, of_class] + truth
    classes[_WRONG, of_class] = _OF_CLASS * classes[_WRONG, of_class] + 1.0 - truth
    numbers[_ANSWERS] += 1.0
    numbers[_LATELY] += (truth - numbers[_LATELY]) / min(numbers[_ANSWERS] + 1.0, _RECENT)
    _follow(numbers, float(evidence[n]), float(evidence[n + 1]))
