"""The arrays of a bank, the vote of its members, the guard, and the alarm that says when old facts no longer hold.

The guess is a vote of the members, weighted by how often each was wrong. Where the vote holds every label to be wrong,
those that were proved wrong of this very row are passed over. The guard limits mistakes that the reference, the member
with the fewest productive examples, would not have made. Any rule may say which label is about to be guessed: the
guarantee comes from the guard alone (docs/theory/bandit-svm.md).
"""

import math
from typing import NamedTuple

import numpy as np

from onebit.engine.jit import jit_internal
from onebit.engine.loop import highest
from onebit.engine.randomness import Draw, uniform, uniform_label
from onebit.engine.state import in_python
from onebit.inputs import Floats, Integers
from onebit.learners.bandit_svm.regressions import ENOUGH_RIGHT, NEXT_TO_NOTHING, TRIAL_ROUNDS
from onebit.learners.bandit_svm.separators import IT_IS, IT_IS_ANOTHER, IT_IS_NOT, PRODUCTIVE, lack, stepped

DENSE, SPARSE = range(2)
"""Kinds of rows: each has statistics and a scale of its own, and a count of rows."""
SIZE, REMOVED, DUE, DISPUTED, FOLLOWED, LANDMARKS, SEEN = range(7)
"""`counts`: stored examples; removals; what Python must do before the next round (1 + the kind of rows that get a new
scale, and TO_FORGET, if old facts no longer hold); mistakes in disputed rounds; mistakes made by following the
reference; landmarks of the regressions; rows learned from, dense and then sparse."""
N_COUNTS = SEEN + 2
TO_FORGET = 4
RIGHT, WRONG = range(2)
"""`guesses`: how often each class was guessed, and it was right or wrong."""
BASE, SQUARINGS, IS_LINEAR = range(3)
"""`plan`: of each member, whose kernel values it uses, how often they are squared, and whether weights are kept."""
LOSS, TRUST, PRODUCED = range(3)
"""`members`: how often each was wrong (less than 1 is added where it may have been), and a little for each productive
example; what it counts in the vote, exp(−loss), the best one's being 1; how many stored examples had a productive fact
for it. The guard is the last."""
STATISTICS, SCALE = range(2)
"""`scaling`: of each kind of rows, statistics of the columns, and the scale in force (`onebit.engine.scaling`)."""
ROUNDS, LATELY, USUALLY, BEST = range(4)
"""`watch`: how many rounds were played, the rate of mistakes of late and usually, and the best usual rate."""
RAW, UNIT, RAW_UNIT = range(3)
"""`entries`: of the row as it came; scaled and divided by its length; as it came, divided by its length."""
ROW_LENGTH, ITSELF = range(2)
"""`numbers`: the length of the scaled row, and then k(x, x) of each base."""
ROW_ENTRIES, ROW_KIND, REFERENCE, FOLLOW, DENIED, ASK_ALL, MULTIPLIED, ASKED = range(8)
"""`flags`: how many entries the row has; its kind; the reference; whether it is followed where it disputes the guess;
whether the vote holds every label to be wrong; whether all members must be asked; whether products are written; and
then of each member whether it was asked, and of each base whether its values are written."""

# A vote counts a score beyond two margins as two: one member's certainty must not drown the others.
_LOUDEST = 2.0
# What a label that is passed over loses at least: more than scores in a vote can differ by.
_PASSED_OVER = 8.0
# Disputed mistakes that are made before the reference is followed for the first time, and for each of its own.
PATIENCE, PATIENCE_PER_MISTAKE = 10, 30
# A run of mistakes with probability below the first number is not chance. The probability uses the recent rate of
# mistakes, but at least the second number.
_BY_CHANCE, _LEAST_RATE = 1e-4, 0.1
# What a class that was never tried is preferred by: a tenth of a margin decides among classes that all look alike.
_CURIOSITY = 0.1
# What a class that was never right is preferred by besides, where no class claims the row.
_NEVER_RIGHT = 0.3
# Mistakes of late are averaged over about this many rounds; fewer say nothing about a rate.
_RECENT = 64.0
# What is usual is averaged over about this share of the stream, so that the rounds in which all was new are forgotten.
_SHARE = 0.25
# Gama et al. take three standard deviations; over a long stream that is exceeded by chance.
_DEVIATIONS = 7.0

# Called here, where they would be copied into each caller elsewhere.
highest_of, _uniform = jit_internal(in_python(highest)), jit_internal(in_python(uniform))


class Settings(NamedTuple):
    """The numbers that compiled code needs."""

    plan: Integers
    """Of each member (m × 3)."""
    bases: Floats
    """Of each kernel with values of its own (bases × 3)."""
    softness: float
    """1/(2C): what a unit of coefficient may leave of the margin; 0 for a hard margin."""
    replays: int
    """The most further facts of a class that get a step after a violated one, with a full store."""
    budget: int
    """The most examples stored."""
    guarded: bool
    """Whether disputed rounds are limited, and classes of which little is known preferred."""
    mix: float
    """The chance of a uniform guess when no class claims x, if not guarded."""
    scales: bool
    """Whether columns are scaled as they come, and a constant is added."""
    is_closed: bool
    """Whether one of the classes is always right: of two, the one that was not wrong."""
    is_bounded: bool
    """Whether no kernel value can overflow or needs Python: then not every member must be asked in every round."""
    full_information: bool
    """Whether every answer is the right label itself."""


class BankArrays(NamedTuple):
    """What was learned: places for examples, m members, K classes, d features, D with the constant."""

    columns: Integers
    """Where each example has entries (places × width)."""
    raws: Floats
    """These entries as they came (places × width)."""
    values: Floats
    """The same scaled and divided by the row's length (places × width), if all members are linear; otherwise `units`
    has them, and this is empty."""
    units: Floats
    """The examples scaled and divided by their length, one column each (D × places); empty if all are linear."""
    examples: Floats
    """Their lengths, kinds and numbers of entries (3 × places)."""
    grams: Floats
    """The kernel values of the stored examples, for every base (bases × places × places)."""
    targets: Floats
    """What is proved, as the scores that are due (K × places)."""
    alphas: Floats
    """The dual coefficients, never negative (m × K × places)."""
    coefficients: Floats
    """What each class gained of each example: sign times alpha, and what was projected (m × places × K)."""
    importance: Floats
    """The sum of the squares of each example's coefficients (m × places)."""
    scores: Floats
    """Every class's score of each example (m × K × places)."""
    sums: Floats
    """The sum of each class's alphas, and how many are above 0 (m × 2 × K)."""
    weights: Floats
    """The linear member's separators, with what removed examples left in them (D × K); empty without that member."""
    guard: Floats
    """The weights of linear separators on rows as they came, which have no vote but can be the reference (d × K): a
    scale that changes cannot touch their guarantee. Empty unless columns are scaled and guesses guarded."""
    members: Floats
    """Loss, trust and productive examples of each member, and of the guard if there is one (m or m + 1 × 3)."""
    guesses: Integers
    """How often each class was guessed and it was right, and wrong (2 × K)."""
    counts: Integers
    watch: Floats
    """How the guesses went, for `is_outdated`."""
    scaling: Floats
    """Statistics and scale of the columns, for dense and for sparse rows (2 × 2 × 4 × d), or empty."""
    landmarks: Floats
    """This and what follows: see `regressions.new_arrays`."""
    landmark_changes: Floats
    landmark_weights: Floats
    row_changes: Floats
    row_weights: Floats
    mixture: Floats


class BankScratch(NamedTuple):
    """What is known about one round."""

    scores: Floats
    """What the guess is made from: the vote, with what is preferred, passed over and proposed."""
    opinions: Floats
    """Every member's scores, then the guard's if there is one (m or m + 1 × K), as far as it was asked."""
    targets: Floats
    """What the answer proves."""
    propensities: Floats
    """The propensity of each label."""
    columns: Integers
    """Where the row has entries."""
    entries: Floats
    """These entries, in three forms (3 × width)."""
    unit: Floats
    """The whole row, scaled and divided by its length (D)."""
    lines: Floats
    """One number per stored example, for several purposes (3 + bases × places)."""
    nearest: Integers
    """Which other stored example is most like each, 1 + its place, or 0 where that is not known (bases × places)."""
    numbers: Floats
    flags: Integers
    features: Floats
    """What the second regression sees of the row, and room for as much."""
    estimates: Floats
    """What the regressions and the vote say of every class (4 × K)."""
    known: Floats
    """What the mixture knows of three labels."""


def new_watch() -> Floats:
    """Return an empty record of how the guesses went."""
    return np.array([0.0, 0.0, 0.0, math.inf])


# The guess.


@jit_internal
def is_sure(opinion: Floats) -> bool:
    """Return whether nothing productive is left to learn if an opinion is right."""
    best, sure = highest_of(opinion), True
    for i in range(opinion.shape[0]):
        sure = sure and lack(IT_IS if i == best else IT_IS_ANOTHER, opinion[i]) <= PRODUCTIVE
    return sure


@jit_internal
def write_vote(members: Floats, opinions: Floats, m: int, flags: Integers, scores: Floats) -> None:
    """Write the weighted mean of the members that were asked."""
    total = 0.0
    for i in range(scores.shape[0]):
        scores[i] = 0.0
    for k in range(m):
        if flags[ASKED + k]:
            trust = members[k, TRUST]
            total += trust
            for i in range(scores.shape[0]):
                score = opinions[k, i]
                scores[i] += trust * (min(_LOUDEST, max(-_LOUDEST, score)) if m > 1 else score)
    for i in range(scores.shape[0]):
        scores[i] /= total


@jit_internal
def is_denied(score: float) -> bool:
    """Return whether a label with that score is held to be wrong: a mistake on it would not be productive."""
    return score <= PRODUCTIVE - 1.0


@jit_internal
def is_to_follow(counts: Integers, guarded: bool) -> bool:
    """Return whether the reference is to be followed where it disputes a label."""
    return bool(guarded and counts[DISPUTED] > PATIENCE + PATIENCE_PER_MISTAKE * counts[FOLLOWED])


@jit_internal
def pass_over(
    size: int,
    store_columns: Integers,
    raws: Floats,
    n_entries: Floats,
    targets: Floats,
    columns: Integers,
    entries: Floats,
    n: int,
    room: Floats,
    scores: Floats,
) -> None:
    """Lower the scores of labels that were proved wrong of this very row, so that no mistake on it is repeated."""
    # One member's scores are not clipped: where rows are long they may differ by any amount.
    lowest, top = scores[0], scores[0]
    for i in range(scores.shape[0]):
        room[i] = 0.0
        lowest, top = min(lowest, scores[i]), max(top, scores[i])
    for s in range(size):
        is_same, e = n_entries[s] == n, 0
        while is_same and e < n:
            is_same = raws[s, e] == entries[e] and store_columns[s, e] == columns[e]
            e += 1
        for i in range(scores.shape[0] if is_same else 0):
            if targets[i, s] == IT_IS_NOT:
                room[i] = 1.0
    for i in range(scores.shape[0]):
        scores[i] -= max(_PASSED_OVER, 2.0 * (top - lowest)) * room[i]


@jit_internal
def newcomer(
    size: int, similarities: Floats, targets: Floats, right: Integers, lately: float, room: Floats, scores: Floats
) -> int:
    """Return a class to try where the stored rows nearest to the row are all mistakes, or −1.

    A class that first appears late is held down by thousands of answers in favour of others. It is tried if it was
    hardly ever right, and not wrong of one of those rows, as soon as chance does not explain so many mistakes side by
    side. `lately` is the rate of mistakes of late.
    """
    n_right, last, before, chance = 0, math.inf, -1, 1.0
    for i in range(scores.shape[0]):
        room[i] = scores[i] if right[i] < ENOUGH_RIGHT else -math.inf
        n_right += right[i]
    is_open = n_right >= TRIAL_ROUNDS * scores.shape[0]
    while chance > _BY_CHANCE:
        is_open = is_open and room[highest_of(room)] > -math.inf
        nearest = -1  # but for those looked at before
        for s in range(size if is_open else 0):
            is_next = similarities[s] < last or (similarities[s] == last and s > before)
            if is_next and (nearest < 0 or similarities[s] > similarities[nearest]):
                nearest = s
        if nearest < 0:
            return -1
        for i in range(scores.shape[0]):
            if targets[i, nearest] == IT_IS:
                return -1
            if targets[i, nearest] == IT_IS_NOT:
                room[i] = -math.inf
        last, before, chance = similarities[nearest], nearest, chance * min(max(lately, _LEAST_RATE), 0.5)
    best = highest_of(room)
    return best if room[best] > -math.inf else -1


@jit_internal
def prefer(guesses: Integers, softness: float, unclaimed: float, scores: Floats) -> None:
    """Let scores lean to classes of which little is known.

    Where no class claims a row, `unclaimed` is the rate of mistakes of late: where few guesses are wrong, the classes
    that were never right are rare.
    """
    n_classes = scores.shape[0]
    for i in range(n_classes):
        # By chance one guess in K is right, so K wrong guesses weigh as much as one right one.
        right, wrong = guesses[RIGHT, i], guesses[WRONG, i] / n_classes
        curious = _CURIOSITY / (1.0 + right + 2.0 * guesses[WRONG, i] / n_classes)
        never_right = _NEVER_RIGHT * (right == 0) * unclaimed / (1.0 + wrong) ** 2
        # With a small C all scores are small: no step is longer than what its fact lacks, divided by the softness.
        scores[i] += (curious + never_right) / max(1.0, softness)


@jit_internal
def choose(
    scores: Floats,
    reference: Floats,
    follow: int,
    guarded: bool,
    mix: float,
    seed: int,
    round: int,
    propensities: Floats,
) -> tuple[int, bool]:
    """Return the highest score's label, or what the guard or exploration says instead; write all propensities."""
    best, explored, spread = highest_of(scores), False, 0.0
    if guarded:
        if follow and is_denied(reference[best]):
            best, explored = highest_of(reference), True
            spread = 1.0 if is_denied(reference[best]) else 0.0
    elif scores[best] < 0.0:
        spread = mix
    for i in range(propensities.shape[0]):
        propensities[i] = spread / propensities.shape[0]
    propensities[best] += 1.0 - spread
    if spread > 0.0:
        number = _uniform(Draw(seed, round))
        # One number serves both choices: below the chance it is, once stretched, uniform again.
        if number < spread:
            best, explored = uniform_label(number / spread, scores.shape[0]), True
    return best, explored


# What an answer says about members and rounds.


@jit_internal
def is_outdated(watch: Floats, correct: bool, n_classes: int, softness: float) -> bool:
    """Return whether the guesses have become too bad for chance, so that old facts no longer hold; then count anew.

    The rate of mistakes over some 64 rounds is compared with the best rate so far over a quarter of the stream. It must
    be seven standard deviations above it, and nearer to blind guessing than to it (Gama, Medas, Castillo, Rodrigues
    2004). With a hard margin facts never go out of date.
    """
    watch[ROUNDS] += 1.0
    n, wrong = watch[ROUNDS], 0.0 if correct else 1.0
    if wrong > 0.0 or watch[LATELY] > NEXT_TO_NOTHING:
        watch[LATELY] += (wrong - watch[LATELY]) / min(n, _RECENT)
    state = max(min(n, _RECENT), _SHARE * n)
    watch[USUALLY] += (wrong - watch[USUALLY]) / state
    if softness == 0.0 or n < _RECENT:
        return False
    # Laplace's rule keeps the rate away from 0, where its spread would vanish. An average that forgets at rate 1/m
    # varies like one over 2m rounds.
    usual = (2.0 * state * watch[USUALLY] + 1.0) / (2.0 * state + 2.0)
    watch[BEST] = min(watch[BEST], usual + math.sqrt(usual * (1.0 - usual) / (2.0 * state)))
    best, blind = watch[BEST], 1.0 - 1.0 / n_classes
    if (
        watch[LATELY] > 0.5 * (best + blind)
        and watch[LATELY] > best + _DEVIATIONS * math.sqrt(best * (1.0 - best) / (2.0 * _RECENT))
        and best < blind
    ):
        watch[ROUNDS], watch[LATELY], watch[USUALLY], watch[BEST] = 0.0, 0.0, 0.0, math.inf
        return True
    return False


@jit_internal
def judge_members(members: Floats, m: int, opinions: Floats, label: int, known: int, lately: float) -> None:
    """Charge the members that were wrong, and write what each counts in the vote."""
    fewest = math.inf
    for k in range(m):
        guessed = highest_of(opinions[k])
        # What is not known to be right may be wrong: it is charged the more, the oftener guesses are wrong.
        doubt = 1.0 if guessed == label else lately**4
        members[k, LOSS] += doubt if known < 0 else (1.0 if guessed != known else 0.0)
        fewest = min(fewest, members[k, LOSS])
    for k in range(m):
        members[k, TRUST] = math.exp(fewest - members[k, LOSS])


@jit_internal
def teach_guard(
    guard: Floats, columns: Integers, unit: Floats, n: int, targets: Floats, opinion: Floats, softness: float
) -> None:
    """Let the guard take its step on every fact that it violates; it keeps no examples, and replays nothing."""
    square = 0.0
    for e in range(n):
        square += unit[e] * unit[e]
    for i in range(targets.shape[0]):
        size = stepped(0.0, targets[i], opinion[i], square, softness)
        step = size if targets[i] > 0.0 else -size
        for e in range(n if step != 0.0 else 0):
            guard[columns[e], i] += step * unit[e]
