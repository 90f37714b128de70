"""Ridge regressions beside a bank's members: their targets are "right" (1) and "wrong" (0).

Separators win early and on clean data. On long noisy streams their store is full of noise, while a regression has no
store that could be full. There are two. They learn from every answer, except to guesses that the leading separator made
alone, and forget only at a drift alarm. They only propose labels, so the guarantee needs nothing of them.

- One on the row itself, for each class a regression of its own. It learns class i from the rounds in which i was
  guessed, as LinUCB does: where the chance of being right is linear in the row, its estimates are consistent however
  guesses are chosen. It is left out where rows are wide or classes many (`sees_rows`).
- One on the row's similarities with landmarks: the first examples that were stored. All classes share one inverse. It
  learns what an answer proves: a wrong guess says something of one class, a right one of all. Up to 200 features it has
  the row too.

Whom to follow is a regression too. Of a label that may be guessed seven numbers are known: the score that the vote of
the separators, the first and the second regression give it, each with its lead over the best other label, and a
constant. The mixture estimates from them the chance that the label is right, learns from the same answers as the
regressions, and forgets slowly. A label is judged without being tried: where guesses are right less often when a
regression disagrees with them, that regression gains weight. So no rounds are spent on exploring who is right. The
vote's label is guessed unless another is better by more than the mixture's own uncertainty.

An inverse is kept as what was taken off its start, A⁻¹ = I/λ − N. So a new class, or a new landmark, begins with zeros.

References
----------
Li, Chu, Langford, Schapire (2010). A contextual-bandit approach to personalized news article recommendation. WWW.
Williams, Seeger (2001). Using the Nyström method to speed up kernel machines. NIPS.
Wolpert (1992). Stacked generalization. Neural Networks 5.
"""

import math
from typing import Any

import numpy as np

from onebit.engine.jit import jit_internal
from onebit.inputs import Floats, Integers
from onebit.learners.bandit_svm.separators import exponentiate

MOST_LANDMARKS = 300
"""A round costs two passes over a matrix of this size."""
_LANDMARK_RATE = 3.0  # of the Laplace kernel, divided by the number of features
# The first regression is left out where a round would cost more than this (classes × features²).
_MOST_OF_ROWS = 1 << 18
# The second one has the row beside the similarities up to this many features; beyond, a constant.
_MOST_BESIDE = 200
# 1/λ of the two regressions: rows are standardised by default, and similarities are at most 1.
_ROW_START, _LANDMARK_START = 1.0, 10.0
# A row whose entries have a root mean square above this would outweigh all others: it is shortened to that.
_LONGEST = 10.0
# How many widths are added to an estimate of the first regression, so that classes with few rounds are tried.
_HOPE = 0.3

LINEAR, NEAR, WIDTHS, VOTE = range(4)
"""Rows of `estimates`: of the first regression, of the second, the widths of the first, and the vote."""
MIXED = (
    "constant",
    "vote",
    "lead in the vote",
    "regression on rows",
    "lead in the regression on rows",
    "regression on landmarks",
    "lead in the regression on landmarks",
)
"""What the mixture knows of a label: scores, and by how much each is above the best other label's."""
_N = len(MIXED)
WEIGHTS, NUMBERS = _N, _N + 1
"""Rows of `mixture`, behind its covariance."""
HEARD, NOISE, SURE, SURE_WRONG = range(4)
"""What the last row of the mixture counts: answers; the mean squared error; rounds in which the leading separator was
sure; the share of them of late in which it was wrong."""
# Before anything is known the vote decides.
_FIRST_WEIGHTS = (0.3, 0.3, 0.2, 0.0, 0.0, 0.0, 0.0)
_FIRST_VARIANCE = 0.005
# The mixture's memory: this share of the rounds, and at least so many.
_SHARE, _SHORTEST = 0.5, 1000.0
# By how many standard deviations another label must be ahead of the vote's; less and less as answers come.
_CAUTION, _CAUTIOUS_ROUNDS = 1.5, 2000.0
# Where no class claims a row the vote tries labels of which little is known. Nothing is proposed there in the first
# 100·K rounds, unless every class was right five times already.
TRIAL_ROUNDS, ENOUGH_RIGHT = 100, 5
# A label that was passed over, as proved wrong of this very row, has a score far below this.
_PASSED_OVER = -4.0
# The leading separator guesses alone where it is sure, while it is wrong there in less than this share of rounds.
_SELDOM, _RECENT_SURE = 0.02, 256.0
# Processors are slow with numbers that become ever smaller: averages stop there.
NEXT_TO_NOTHING = 1e-12


def new_arrays(n_features: int, n_classes: int, capacity: int, take_part: bool) -> dict[str, Floats]:
    """Return the arrays of regressions that have learned nothing; all empty if they take no part.

    Returns
    -------
    dict of arrays
        landmarks : (n_features × landmarks)
            Rows, as the kernels saw them when they were stored.
        landmark_changes, landmark_weights : (n × n), (n × K)
            N of the second regression, and its weights; n counts the landmarks and what is beside the similarities.
        row_changes, row_weights : (K × n_features × n_features), (n_features × K)
            N of every class of the first regression, and its weights; empty if it takes no part.
        mixture : (9 × 7)
            The covariance of its weights, the weights, and what is counted.
    """
    n_landmarks = min(capacity, MOST_LANDMARKS) if take_part else 0
    n_beside = beside(n_features) if take_part else 0
    n_rows = n_features if take_part and sees_rows(n_features, n_classes) else 0
    n = n_beside + n_landmarks
    return {
        "landmarks": np.zeros((n_features if take_part else 0, n_landmarks)),
        "landmark_changes": np.zeros((n, n)),
        "landmark_weights": np.zeros((n, n_classes)),
        "row_changes": np.zeros((n_classes, n_rows, n_rows)),
        "row_weights": np.zeros((n_rows, n_classes)),
        "mixture": new_mixture() if take_part else np.zeros((0, _N)),
    }


def check_arrays(arrays: Any, n_features: int, n_classes: int, capacity: int, take_part: bool) -> None:
    """Raise ValueError unless arrays from a file have the shapes of `new_arrays`, and hold numbers."""
    for name, blank in new_arrays(n_features, n_classes, capacity, take_part).items():
        array = getattr(arrays, name)
        if array.shape != blank.shape:
            raise ValueError(f"{name} has shape {array.shape}, not {blank.shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} is NaN or infinite")
    if (arrays.mixture[NUMBERS:] < 0.0).any():
        raise ValueError("the mixture counts a negative number")


def sees_rows(n_features: int, n_classes: int) -> bool:
    """Say whether the first regression takes part."""
    return n_features <= _MOST_BESIDE and n_classes * n_features**2 <= _MOST_OF_ROWS


def beside(n_features: int) -> int:
    """Return how many numbers the second regression has beside the similarities."""
    return n_features if n_features <= _MOST_BESIDE else 1


def new_mixture() -> Floats:
    """Return a mixture that has learned nothing, and follows the vote."""
    mixture = np.zeros((_N + 2, _N))
    mixture[:_N] = _FIRST_VARIANCE * np.eye(_N)
    mixture[WEIGHTS], mixture[NUMBERS, NOISE] = _FIRST_WEIGHTS, 0.25
    return mixture


@jit_internal
def estimate(
    unit: Floats,
    length: float,
    landmarks: Floats,
    n_landmarks: int,
    landmark_weights: Floats,
    row_changes: Floats,
    row_weights: Floats,
    features: Floats,
    image: Floats,
    estimates: Floats,
) -> None:
    """Write what the regressions see of the row to `features`, and what they say of every class to `estimates`.

    The row is given by its direction and its length.
    """
    width, n_classes, length = unit.shape[0], estimates.shape[1], shortened(length, unit.shape[0])
    n_beside = landmark_weights.shape[0] - landmarks.shape[1]
    for j in range(n_beside):
        features[j] = length * unit[j] if n_beside == width else 1.0
    near = features[n_beside : n_beside + n_landmarks]
    for s in range(n_landmarks):
        near[s] = 0.0
    for j in range(width):
        entry, column = length * unit[j], landmarks[j]
        for s in range(n_landmarks):
            near[s] += abs(entry - column[s])
    for s in range(n_landmarks):
        near[s] *= -_LANDMARK_RATE / width
    exponentiate(near, n_landmarks, image)
    _multiply(landmark_weights, features, n_beside + n_landmarks, estimates[NEAR])
    _multiply(row_weights, features, row_weights.shape[0], estimates[LINEAR])
    for i in range(n_classes):
        square = 0.0
        if row_changes.shape[1] > 0:
            square = _apply_inverse(row_changes[i], _ROW_START, features, row_changes.shape[1], image)
        estimates[WIDTHS, i] = math.sqrt(square)


@jit_internal
def shortened(length: float, width: int) -> float:
    """Return the length of a row as the regressions see it."""
    return min(length, _LONGEST * math.sqrt(float(width)))


@jit_internal
def _multiply(weights: Floats, features: Floats, n: int, out: Floats) -> None:
    """Write every class's estimate."""
    for i in range(out.shape[0]):
        out[i] = 0.0
    for j in range(n):
        entry = features[j]
        for i in range(out.shape[0]):
            out[i] += entry * weights[j, i]


@jit_internal
def _apply_inverse(changes: Floats, start: float, features: Floats, n: int, image: Floats) -> Any:
    """Write A⁻¹x to `image`, and return xᵀA⁻¹x."""
    for k in range(n):
        image[k] = start * features[k]
    for j in range(n):
        entry, line = features[j], changes[j]
        if entry != 0.0:
            for k in range(n):
                image[k] -= entry * line[k]
    total = 0.0
    for k in range(n):
        total += features[k] * image[k]
    return max(0.0, total)


@jit_internal
def _take_in(changes: Floats, rate: float, n: int, image: Floats) -> None:
    """Take a row into an inverse (Sherman and Morrison's formula)."""
    for j in range(n):
        share, line = rate * image[j], changes[j]
        for k in range(n):
            line[k] += share * image[k]


@jit_internal
def _describe(j: int, estimates: Floats, out: Floats) -> None:
    """Write what the mixture knows of label j."""
    out[0] = 1.0
    for k in range(3):
        source = VOTE if k == 0 else LINEAR if k == 1 else NEAR
        low, other = -1.0 if k == 0 else 0.0, -math.inf
        for i in range(estimates.shape[1]):
            if i != j:
                other = max(other, estimates[source, i])
        out[1 + 2 * k] = min(1.0, max(low, estimates[source, j]))
        out[2 + 2 * k] = min(1.0, max(-1.0, estimates[source, j] - other))


@jit_internal
def _value(j: int, estimates: Floats, mixture: Floats, known: Floats) -> Any:
    """Return the hoped-for chance that label j is right."""
    total = 0.0
    for k in range(_N):
        total += mixture[WEIGHTS, k] * known[k]
    weight = min(1.0, max(0.0, mixture[WEIGHTS, 3] + mixture[WEIGHTS, 4]))  # of the first regression
    return total + _HOPE * weight * estimates[WIDTHS, j]


@jit_internal
def propose(estimates: Floats, guesses: Integers, mixture: Floats, room: Floats, scores: Floats) -> None:
    """Lift the label of a regression to the top of the scores, if the mixture holds it to be better than the vote's.

    `guesses` says how often each class was guessed and was right, and how often wrong (2 × K).
    """
    n_classes = scores.shape[0]
    voted, linear, near, n_heard, fewest, top = 0, 0, 0, 0, guesses[0, 0], estimates[VOTE, 0]
    for i in range(n_classes):
        if scores[i] > scores[voted]:
            voted = i
        if hoped(estimates, i) > hoped(estimates, linear):
            linear = i
        if estimates[NEAR, i] > estimates[NEAR, near]:
            near = i
        n_heard += guesses[0, i] + guesses[1, i]
        fewest, top = min(fewest, guesses[0, i]), max(top, estimates[VOTE, i])
    if top < 0.0 and fewest < ENOUGH_RIGHT and n_heard < TRIAL_ROUNDS * n_classes:
        return
    own, other, difference = room[0], room[1], room[2]
    _describe(voted, estimates, own)
    standard, ahead, best = _value(voted, estimates, mixture, own), 0.0, voted
    caution = _CAUTION * _CAUTIOUS_ROUNDS / (_CAUTIOUS_ROUNDS + n_heard)
    for label in (linear, near):
        if label != voted and scores[label] > _PASSED_OVER:
            _describe(label, estimates, other)
            gained = _value(label, estimates, mixture, other) - standard
            square = 0.0
            for k in range(_N):
                difference[k] = other[k] - own[k]
            for k in range(_N):
                for j in range(_N):
                    square += difference[k] * mixture[k, j] * difference[j]
            if gained > max(ahead, caution * math.sqrt(max(0.0, square * mixture[NUMBERS, NOISE]))):
                ahead, best = gained, label
    if best != voted:
        scores[best] = scores[voted] + ahead


@jit_internal
def hoped(estimates: Floats, i: int) -> Any:
    """Return what the first regression hopes for class i."""
    return estimates[LINEAR, i] + _HOPE * estimates[WIDTHS, i]


@jit_internal
def learn(
    label: int,
    correct: bool,
    known: int,
    is_told: bool,
    n: int,
    landmark_changes: Floats,
    landmark_weights: Floats,
    row_changes: Floats,
    row_weights: Floats,
    mixture: Floats,
    features: Floats,
    image: Floats,
    estimates: Floats,
    room: Floats,
) -> None:
    """Learn from the answer to a guess; `estimate` has written what was known of the row.

    Parameters
    ----------
    label, correct : int, bool
        The guess, and whether it was right.
    known : int
        The right label, or −1 if it is not known.
    is_told : bool
        Whether it would be known whatever was guessed; then the first regression learns all classes from it. Where
        only right guesses make it known, a class would seem rarer than it is.
    n : int
        How many features there are.
    """
    _learn_mixture(label, correct, estimates, mixture, room[0], room[1])
    n_classes = estimates.shape[1]
    for i in range(n_classes if row_changes.shape[1] > 0 else 0):
        if i == label or is_told:
            changes, width = row_changes[i], row_changes.shape[1]
            rate = 1.0 / (1.0 + _apply_inverse(changes, _ROW_START, features, width, image))
            gain = rate * ((1.0 if i == known else 0.0) - estimates[LINEAR, i])
            for j in range(width):
                row_weights[j, i] += gain * image[j]
            _take_in(changes, rate, width, image)
    rate = 1.0 / (1.0 + _apply_inverse(landmark_changes, _LANDMARK_START, features, n, image))
    for i in range(n_classes):
        # From here on `estimates` says how far the weights of each class move.
        off = (1.0 if i == known else 0.0) - estimates[NEAR, i]
        estimates[NEAR, i] = rate * off if known >= 0 or i == label else 0.0
    for j in range(n):
        for i in range(n_classes):
            landmark_weights[j, i] += estimates[NEAR, i] * image[j]
    _take_in(landmark_changes, rate, n, image)


@jit_internal
def _learn_mixture(label: int, correct: bool, estimates: Floats, mixture: Floats, known: Floats, image: Floats) -> None:
    """Let the mixture learn whether a label was right: recursive least squares that forget."""
    _describe(label, estimates, known)
    mixture[NUMBERS, HEARD] += 1.0
    forgotten = 1.0 - 1.0 / max(_SHORTEST, _SHARE * mixture[NUMBERS, HEARD])
    off = 1.0 if correct else 0.0
    total = 1.0
    for k in range(_N):
        off -= mixture[WEIGHTS, k] * known[k]
        image[k] = 0.0
        for j in range(_N):
            image[k] += mixture[k, j] * known[j] / forgotten
        total += image[k] * known[k]
    mixture[NUMBERS, NOISE] += (off * off - mixture[NUMBERS, NOISE]) / min(mixture[NUMBERS, HEARD] + 10.0, 500.0)
    for k in range(_N):
        mixture[WEIGHTS, k] += off * image[k] / total
        for j in range(_N):
            mixture[k, j] = mixture[k, j] / forgotten - image[k] * image[j] / total
    for k in range(_N):
        # What was not seen for long is never less certain than at first.
        if mixture[k, k] > _FIRST_VARIANCE:
            shrink = math.sqrt(_FIRST_VARIANCE / mixture[k, k])
            for j in range(_N):
                mixture[k, j] *= shrink
                mixture[j, k] *= shrink


@jit_internal
def count_sure(mixture: Floats, is_wrong: bool) -> None:
    """Count a round in which the leading separator was sure."""
    numbers = mixture[NUMBERS]
    numbers[SURE] += 1.0
    if is_wrong or numbers[SURE_WRONG] > NEXT_TO_NOTHING:
        numbers[SURE_WRONG] += ((1.0 if is_wrong else 0.0) - numbers[SURE_WRONG]) / min(numbers[SURE], _RECENT_SURE)


@jit_internal
def may_guess_alone(mixture: Floats) -> bool:
    """Say whether the leading separator is so seldom wrong where it is sure that no other member need be asked."""
    return bool(mixture.shape[0] == 0 or mixture[NUMBERS, SURE_WRONG] < _SELDOM)
