"""Which label is guessed: the vote of a bank's members, the guard, two regressions, and the alarm for old facts.

The vote is weighted by how often each member was wrong. The guard limits mistakes that the reference, the member with
the fewest productive examples, would not have made: the guarantee comes from it alone (docs/theory/bandit-svm.md), so
any rule may propose labels.

Two ridge regressions on "right" (1) and "wrong" (0) do: one on the row, for each class on the rounds in which it was
guessed (Li et al. 2010), and one on similarities with landmarks (Williams, Seeger 2001), which learns what an answer
proves. The mixture, a third (stacking: Wolpert 1992), estimates the chance that a label is right from the scores of the
vote and of both, each with its lead over the best other label. The vote's label is guessed unless another is better by
more than the mixture's own uncertainty. An inverse is kept as what was taken off its start, A⁻¹ = I/λ − N: a new class,
or a new landmark, begins with zeros.
"""

import math
from typing import Any

from onebit.engine.algorithm import highest
from onebit.engine.jit import in_python, jit_internal, jit_no_refcount
from onebit.engine.randomness import Draw, uniform, uniform_label
from onebit.inputs import Floats
from onebit.learners.bandit_svm import bank
from onebit.learners.bandit_svm.bank import BankArrays, BankScratch, Settings

_RECENT, _RECENT_SURE = 64.0, 256.0  # rates of late are averages over about so many rounds; fewer are no rate
_USUAL_SHARE = 0.25  # what is usual, over about this share of the stream: the rounds in which all was new are forgotten
_DEVIATIONS = 7.0  # Gama et al. take three standard deviations; over a long stream that is exceeded by chance
_NEXT_TO_NOTHING = 1e-12  # processors are slow with numbers that become ever smaller: averages stop there
_LOUDEST = 2.0  # margins that a score counts at most in a vote: one member's certainty must not drown the others
# What a label that is passed over loses at least: more than scores in a vote can differ by. Having lost half of that, a
# label is not proposed.
_PASSED_OVER = 8.0
# A run of mistakes with probability below the first number is not chance. The probability uses the recent rate of
# mistakes, but at least the second number.
_BY_CHANCE, _LEAST_RATE = 1e-4, 0.1
_CURIOSITY = 0.1  # what a class that was never tried is preferred by: it decides among classes that all look alike
_NEVER_RIGHT = 0.3  # what one that was never right is preferred by besides, where no class claims the row
# Where no class claims a row the vote tries labels of which little is known. Nothing is proposed there in the first
# 100·K rounds, unless every class was right five times already.
_TRIAL_ROUNDS, _ENOUGH_RIGHT = 100, 5
_ROW_START, _LANDMARK_START = 1.0, 10.0  # 1/λ: rows are standardised by default, and similarities are at most 1
_LANDMARK_RATE = 3.0  # of the Laplace kernel, divided by the number of features
_LONGEST = 10.0  # rows whose entries have a larger root mean square would outweigh all others: they are shortened
_HOPE = 0.3  # widths that are added to an estimate of the first regression, so that classes with few rounds are tried
_SHARE, _SHORTEST = 0.5, 1000.0  # the mixture's memory: this share of the rounds, and at least so many
# By how many standard deviations another label must be ahead of the vote's; less and less as answers come.
_CAUTION, _CAUTIOUS_ROUNDS = 1.5, 2000.0

N_EXTRA = 5
"""How many numbers `write_extra` writes."""
_UNANIMOUS = 3.0  # log odds that stand for the mixture's where the leading separator guesses alone

# Called here, where they would be copied into each caller elsewhere.
highest_of, _uniform = jit_internal(in_python(highest)), jit_internal(in_python(uniform))


@jit_internal
def _write_vote(state: BankArrays, scratch: BankScratch, m: int) -> None:
    """Write the weighted mean of the members that were asked."""
    scores, opinions, total = scratch.scores, scratch.opinions, 0.0
    scores[:] = 0.0
    for k in range(m):
        if scratch.flags[bank.ASKED + k]:
            trust = state.members[k, bank.TRUST]
            total += trust
            for i in range(scores.shape[0]):
                score = opinions[k, i]
                scores[i] += trust * (min(_LOUDEST, max(-_LOUDEST, score)) if m > 1 else score)
    for i in range(scores.shape[0]):
        scores[i] /= total
        scratch.estimates[bank.VOTE, i] = scores[i]


@jit_internal
def _pass_over(state: BankArrays, scratch: BankScratch) -> None:
    """Lower the scores of labels that were proved wrong of this very row, so that no mistake on it is repeated."""
    scores, room, n = scratch.scores, scratch.propensities, scratch.flags[bank.ROW_ENTRIES]
    # One member's scores are not clipped: where rows are long they may differ by any amount.
    lowest, top = scores[0], scores[0]
    for i in range(scores.shape[0]):
        room[i], lowest, top = 0.0, min(lowest, scores[i]), max(top, scores[i])
    for s in range(state.counts[bank.SIZE]):
        is_same, e = state.examples[bank.N_ENTRIES, s] == n, 0
        while is_same and e < n:
            is_same = state.raws[s, e] == scratch.entries[bank.RAW, e] and state.columns[s, e] == scratch.columns[e]
            e += 1
        for i in range(scores.shape[0] if is_same else 0):
            if state.targets[i, s] == bank.IT_IS_NOT:
                room[i] = 1.0
    for i in range(scores.shape[0]):
        scores[i] -= max(_PASSED_OVER, 2.0 * (top - lowest)) * room[i]


@jit_internal
def _prefer(state: BankArrays, scratch: BankScratch, settings: Settings, unclaimed: float) -> None:
    """Raise the scores of little-known classes; `unclaimed` is the rate of mistakes, if no class claims the row."""
    guesses, n_classes = state.guesses, scratch.scores.shape[0]
    for i in range(n_classes):
        # By chance one guess in K is right, so K wrong guesses weigh as much as one right one.
        right, wrong = guesses[bank.RIGHT, i], guesses[bank.WRONG, i] / n_classes
        curious = _CURIOSITY / (1.0 + right + 2.0 * guesses[bank.WRONG, i] / n_classes)
        never_right = _NEVER_RIGHT * (right == 0) * unclaimed / (1.0 + wrong) ** 2
        # With a small C all scores are small: no step is longer than what its fact lacks, divided by the softness.
        scratch.scores[i] += (curious + never_right) / max(1.0, settings.softness)


@jit_internal
def _newcomer(state: BankArrays, scratch: BankScratch) -> int:
    """Return a class to try where the stored rows nearest to the row are all mistakes, or −1.

    It is one that was hardly ever right, and not wrong of those rows, as soon as chance does not explain the mistakes.
    """
    scores, room, right, targets = scratch.scores, scratch.propensities, state.guesses[bank.RIGHT], state.targets
    similarities = scratch.lines[scratch.lines.shape[0] - 1]  # of the default bank's last kernel, Laplace's
    n_right, last, before, chance = 0, math.inf, -1, 1.0
    for i in range(scores.shape[0]):
        room[i] = scores[i] if right[i] < _ENOUGH_RIGHT else -math.inf
        n_right += right[i]
    is_open = n_right >= _TRIAL_ROUNDS * scores.shape[0]
    while chance > _BY_CHANCE:
        is_open = is_open and room[highest_of(room)] > -math.inf
        nearest = -1  # but for those looked at before
        for s in range(state.counts[bank.SIZE] if is_open else 0):
            is_next = similarities[s] < last or (similarities[s] == last and s > before)
            if is_next and (nearest < 0 or similarities[s] > similarities[nearest]):
                nearest = s
        if nearest < 0:
            return -1
        for i in range(scores.shape[0]):
            if targets[i, nearest] == bank.IT_IS:
                return -1
            if targets[i, nearest] == bank.IT_IS_NOT:
                room[i] = -math.inf
        last, before = similarities[nearest], nearest
        chance *= min(max(state.watch[bank.LATELY], _LEAST_RATE), 0.5)
    best = highest_of(room)
    return best if room[best] > -math.inf else -1


@jit_internal
def write_scores(state: BankArrays, scratch: BankScratch, settings: Settings, is_alone: bool) -> None:
    """Write the scores that the guess is made from, from the opinions of the members that were asked."""
    scores, flags = scratch.scores, scratch.flags
    _write_vote(state, scratch, settings.plan.shape[0])
    if settings.guarded:
        top = scores[highest_of(scores)]
        if top <= bank.HELD_WRONG:
            flags[bank.DENIED] = 1
            _pass_over(state, scratch)
        _prefer(state, scratch, settings, state.watch[bank.LATELY] if top < 0.0 else 0.0)
    if state.mixture.shape[0] > 0 and not is_alone:
        estimate(state, scratch)
        tried = _newcomer(state, scratch) if settings.guarded else -1
        if tried >= 0:
            flags[bank.DENIED] = 1  # so that a mistake is stored
            scores[tried] = scores[highest_of(scores)] + 1.0
        elif not flags[bank.ASK_ALL]:
            propose(state, scratch)


@jit_internal
def choose(scratch: BankScratch, settings: Settings, seed: int, round: int) -> tuple[int, bool]:
    """Return the highest score's label, or what the guard or exploration puts in its place; write all propensities."""
    scores, propensities, flags = scratch.scores, scratch.propensities, scratch.flags
    reference, best, explored, spread = scratch.opinions[flags[bank.REFERENCE]], highest_of(scores), False, 0.0
    if settings.guarded:
        if flags[bank.FOLLOW] and reference[best] <= bank.HELD_WRONG:
            best, explored = highest_of(reference), True
            spread = 1.0 if reference[best] <= bank.HELD_WRONG else 0.0
    elif scores[best] < 0.0:
        spread = settings.mix
    propensities[:] = spread / propensities.shape[0]
    propensities[best] += 1.0 - spread
    if spread > 0.0:
        number = _uniform(Draw(seed, round))
        # One number serves both choices: below the chance it is, once stretched, uniform again.
        if number < spread:
            best, explored = uniform_label(number / spread, scores.shape[0]), True
    return best, explored


@jit_internal
def count_sure(mixture: Floats, is_wrong: bool) -> None:
    """Count a round in which the leading separator was sure."""
    if mixture.shape[0] == 0:
        return
    numbers = mixture[bank.NUMBERS]
    numbers[bank.SURE] += 1.0
    if is_wrong or numbers[bank.SURE_WRONG] > _NEXT_TO_NOTHING:
        off = (1.0 if is_wrong else 0.0) - numbers[bank.SURE_WRONG]
        numbers[bank.SURE_WRONG] += off / min(numbers[bank.SURE], _RECENT_SURE)


@jit_internal
def is_outdated(watch: Floats, correct: bool, n_classes: int, softness: float) -> bool:
    """Return whether the guesses have become too bad for chance, so that old facts no longer hold; then count anew.

    The rate of mistakes over some 64 rounds must be seven standard deviations above the best rate so far over a quarter
    of the stream, and nearer to blind guessing than to it (Gama et al. 2004). Hard margins never go out of date.
    """
    watch[bank.ROUNDS] += 1.0
    n, wrong = watch[bank.ROUNDS], 0.0 if correct else 1.0
    if wrong > 0.0 or watch[bank.LATELY] > _NEXT_TO_NOTHING:
        watch[bank.LATELY] += (wrong - watch[bank.LATELY]) / min(n, _RECENT)
    span = max(min(n, _RECENT), _USUAL_SHARE * n)
    watch[bank.USUALLY] += (wrong - watch[bank.USUALLY]) / span
    if softness == 0.0 or n < _RECENT:
        return False
    # Laplace's rule keeps the rate away from 0, where its spread would vanish. An average that forgets at rate 1/m
    # varies like one over 2m rounds.
    usual = (2.0 * span * watch[bank.USUALLY] + 1.0) / (2.0 * span + 2.0)
    watch[bank.BEST] = min(watch[bank.BEST], usual + math.sqrt(usual * (1.0 - usual) / (2.0 * span)))
    best, blind = watch[bank.BEST], 1.0 - 1.0 / n_classes
    is_bad = best < blind and watch[bank.LATELY] > 0.5 * (best + blind)
    if is_bad and watch[bank.LATELY] > best + _DEVIATIONS * math.sqrt(best * (1.0 - best) / (2.0 * _RECENT)):
        watch[:] = 0.0
        watch[bank.BEST] = math.inf
        return True
    return False


@jit_internal
def judge_members(
    state: BankArrays, scratch: BankScratch, m: int, label: int, known: int, exclusive: bool, lately: float
) -> None:
    """Charge the members that were wrong, and write what each counts in the vote."""
    members, fewest = state.members, math.inf
    for k in range(m):
        guessed = highest_of(scratch.opinions[k])
        # What is not known to be right may be wrong: it is charged the more, the oftener guesses are wrong.
        doubt = 1.0 if guessed == label else lately**4
        is_known = known >= 0 and (exclusive or guessed == known)
        members[k, bank.LOSS] += (1.0 if guessed != known else 0.0) if is_known else doubt
        fewest = min(fewest, members[k, bank.LOSS])
    for k in range(m):
        members[k, bank.TRUST] = math.exp(fewest - members[k, bank.LOSS])


@jit_internal
def _length(scratch: BankScratch) -> float:
    """Return the length of the row as the regressions see it."""
    return float(min(scratch.numbers[bank.ROW_LENGTH], _LONGEST * math.sqrt(float(scratch.unit.shape[0]))))


@jit_internal
def keep_landmark(state: BankArrays, scratch: BankScratch) -> None:
    """Make the row a landmark, if there is room for one."""
    n, length = state.counts[bank.LANDMARKS], _length(scratch)
    if n < state.landmarks.shape[1]:
        for j in range(state.landmarks.shape[0]):
            state.landmarks[j, n] = length * scratch.unit[j]
        state.counts[bank.LANDMARKS] = n + 1


@jit_internal
def estimate(state: BankArrays, scratch: BankScratch) -> None:
    """Write what the regressions see of the row to `features`, and their estimates of every class to `estimates`."""
    unit, features, image, estimates = scratch.unit, scratch.features[0], scratch.features[1], scratch.estimates
    n_landmarks, n_rows, width = state.counts[bank.LANDMARKS], state.row_weights.shape[0], unit.shape[0]
    n_beside = state.landmark_weights.shape[0] - state.landmarks.shape[1]
    length = _length(scratch)
    for j in range(n_beside):
        features[j] = length * unit[j] if n_beside == width else 1.0
    near = features[n_beside : n_beside + n_landmarks]
    near[:] = 0.0
    for j in range(width):
        entry, column = length * unit[j], state.landmarks[j]
        for s in range(n_landmarks):
            near[s] += abs(entry - column[s])
    for s in range(n_landmarks):
        near[s] *= -_LANDMARK_RATE / width
    bank.exponentiate(near, n_landmarks, image)
    bank.add_up(state.landmark_weights, features, n_beside + n_landmarks, estimates[bank.NEAR])
    bank.add_up(state.row_weights, features, n_rows, estimates[bank.LINEAR])
    for i in range(estimates.shape[1]):
        square = _apply_inverse(state.row_changes[i], _ROW_START, features, n_rows, image)
        estimates[bank.WIDTHS, i] = math.sqrt(square)


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
        source = bank.VOTE if k == 0 else bank.LINEAR if k == 1 else bank.NEAR
        low, other = -1.0 if k == 0 else 0.0, -math.inf
        for i in range(estimates.shape[1]):
            if i != j:
                other = max(other, estimates[source, i])
        out[1 + 2 * k] = min(1.0, max(low, estimates[source, j]))
        out[2 + 2 * k] = min(1.0, max(-1.0, estimates[source, j] - other))


@jit_internal
def _value(j: int, estimates: Floats, weights: Floats, known: Floats) -> Any:
    """Return the hoped-for chance that label j is right."""
    total = 0.0
    for k in range(bank.N_MIXED):
        total += weights[k] * known[k]
    weight = min(1.0, max(0.0, weights[3] + weights[4]))  # of the first regression
    return total + _HOPE * weight * estimates[bank.WIDTHS, j]


@jit_no_refcount
def write_extra(learned: Any, seen: Any, known: Floats, m: int, label: int, out: Floats) -> None:
    """Write what speaks for a label beside its score: five numbers, of which those that are not known are 0.

    The log odds of the mixture's estimate; the share of the m members that would guess it; what is known of it at the
    stored example most like the row; how alike they are; and the estimate of the regression on landmarks.
    """
    (mixture, targets, counts), (opinions, estimates, lines, flags) = learned, seen
    agree, best, similarities = 0, 0, lines[lines.shape[0] - 1]
    out[0], out[1], out[2], out[3], out[4] = _UNANIMOUS, 1.0, 0.0, 0.0, 0.0
    for k in range(m):
        if flags[bank.ASKED + k] == 0:
            return
        agree += highest_of(opinions[k]) == label
    out[1] = agree / m
    if mixture.shape[0] > 0:
        _describe(label, estimates, known)
        chance = 0.0
        for k in range(bank.N_MIXED):
            chance += mixture[bank.WEIGHTS, k] * known[k]
        chance = min(1.0, max(0.0, chance))
        out[0], out[4] = math.log((chance + 0.05) / (1.05 - chance)), known[5]
    if flags[flags.shape[0] - 1] and counts[bank.SIZE] > 0:  # the similarities are written
        for s in range(1, counts[bank.SIZE]):
            if similarities[s] > similarities[best]:
                best = s
        out[2], out[3] = 0.5 * targets[label, best], similarities[best]


@jit_internal
def propose(state: BankArrays, scratch: BankScratch) -> None:
    """Lift the label of a regression to the top of the scores, if the mixture holds it to be better than the vote's."""
    estimates, scores, own, other = scratch.estimates, scratch.scores, scratch.known[0], scratch.known[1]
    right, wrong, mixture = state.guesses[bank.RIGHT], state.guesses[bank.WRONG], state.mixture
    vote, linear, near = estimates[bank.VOTE], estimates[bank.LINEAR], estimates[bank.NEAR]
    widths, weights = estimates[bank.WIDTHS], mixture[bank.WEIGHTS]
    voted, first, second, n_answers, fewest, top = 0, 0, 0, 0, right[0], vote[0]
    for i in range(scores.shape[0]):
        if scores[i] > scores[voted]:
            voted = i
        if linear[i] + _HOPE * widths[i] > linear[first] + _HOPE * widths[first]:
            first = i
        if near[i] > near[second]:
            second = i
        n_answers += right[i] + wrong[i]
        fewest, top = min(fewest, right[i]), max(top, vote[i])
    if top < 0.0 and fewest < _ENOUGH_RIGHT and n_answers < _TRIAL_ROUNDS * scores.shape[0]:
        return
    _describe(voted, estimates, own)
    standard, ahead, best = _value(voted, estimates, weights, own), 0.0, voted
    caution = _CAUTION * _CAUTIOUS_ROUNDS / (_CAUTIOUS_ROUNDS + n_answers)
    for label in (first, second):
        if label != voted and scores[label] > -0.5 * _PASSED_OVER:
            _describe(label, estimates, other)
            gained, square = _value(label, estimates, weights, other) - standard, 0.0
            for k in range(bank.N_MIXED):
                for j in range(bank.N_MIXED):
                    square += (other[k] - own[k]) * mixture[k, j] * (other[j] - own[j])
            if gained > max(ahead, caution * math.sqrt(max(0.0, square * mixture[bank.NUMBERS, bank.NOISE]))):
                ahead, best = gained, label
    if best != voted:
        scores[best] = scores[voted] + ahead


@jit_internal
def learn(
    state: BankArrays, scratch: BankScratch, label: int, correct: bool, known: int, is_given: bool, exclusive: bool
) -> None:
    """Learn from the answer to a guess; `estimate` has written what was known of the row.

    `known` is the right label, or −1; `is_given` is whether it would be known whatever was guessed. Only then does the
    first regression learn all classes: from right guesses alone, a class would seem rarer than it is.
    """
    features, image, estimates = scratch.features[0], scratch.features[1], scratch.estimates
    n = state.landmark_weights.shape[0] - state.landmarks.shape[1] + state.counts[bank.LANDMARKS]
    _learn_mixture(label, correct, estimates, state.mixture, scratch.known[0], scratch.known[1])
    near, n_rows, n_classes = estimates[bank.NEAR], state.row_weights.shape[0], estimates.shape[1]
    for i in range(n_classes if n_rows > 0 else 0):
        if i == label or is_given:
            rate = 1.0 / (1.0 + _apply_inverse(state.row_changes[i], _ROW_START, features, n_rows, image))
            gain = rate * ((1.0 if i == known else 0.0) - estimates[bank.LINEAR, i])
            for j in range(n_rows):
                state.row_weights[j, i] += gain * image[j]
            _take_in(state.row_changes[i], rate, n_rows, image)
    rate = 1.0 / (1.0 + _apply_inverse(state.landmark_changes, _LANDMARK_START, features, n, image))
    for i in range(n_classes):
        # From here on `near` is how far the weights of each class move.
        is_known = i in (label, known) or (known >= 0 and exclusive)
        near[i] = rate * ((1.0 if i == known else 0.0) - near[i]) if is_known else 0.0
    for j in range(n):
        line = state.landmark_weights[j]
        for i in range(n_classes):
            line[i] += near[i] * image[j]
    _take_in(state.landmark_changes, rate, n, image)


@jit_internal
def _learn_mixture(label: int, correct: bool, estimates: Floats, mixture: Floats, known: Floats, image: Floats) -> None:
    """Update the mixture with whether a label was right: recursive least squares that forget."""
    _describe(label, estimates, known)
    weights, numbers, off, total = mixture[bank.WEIGHTS], mixture[bank.NUMBERS], 1.0 if correct else 0.0, 1.0
    numbers[bank.ANSWERS] += 1.0
    forgotten = 1.0 - 1.0 / max(_SHORTEST, _SHARE * numbers[bank.ANSWERS])
    for k in range(bank.N_MIXED):
        off -= weights[k] * known[k]
        image[k] = 0.0
        for j in range(bank.N_MIXED):
            image[k] += mixture[k, j] * known[j] / forgotten
        total += image[k] * known[k]
    numbers[bank.NOISE] += (off * off - numbers[bank.NOISE]) / min(numbers[bank.ANSWERS] + 10.0, 500.0)
    for k in range(bank.N_MIXED):
        weights[k] += off * image[k] / total
        for j in range(bank.N_MIXED):
            mixture[k, j] = mixture[k, j] / forgotten - image[k] * image[j] / total
    for k in range(bank.N_MIXED):
        # What was not seen for long is never less certain than at first.
        if mixture[k, k] > bank.FIRST_VARIANCE:
            shrink = math.sqrt(bank.FIRST_VARIANCE / mixture[k, k])
            for j in range(bank.N_MIXED):
                mixture[k, j] *= shrink
                mixture[j, k] *= shrink
