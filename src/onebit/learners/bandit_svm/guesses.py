"""How a label is chosen from scores, and how guesses are watched: what the bank and the linear form share."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from onebit.compiled import inlined
from onebit.draws import Draw, uniform, uniform_label
from onebit.inputs import Floats, Integers, Rows, unlocked
from onebit.learners.bandit_svm.separators import (
    DISPUTED,
    DUE,
    FOLLOWED,
    IT_IS,
    IT_IS_ANOTHER,
    NEXT_TO_NOTHING,
    PRODUCTIVE,
    RIGHT,
    SEEN,
    SIZE,
    TO_FORGET,
    WRONG,
    Settings,
)
from onebit.loop import Record, highest
from onebit.memory import Memory, grown

ROW_KIND, REFERENCE, FOLLOW, DENIED, ASK_ALL, MULTIPLIED, ASKED = range(7)
"""`flags`: the row's kind; the reference; whether it is followed where it disputes the guess; whether the vote holds
every label to be wrong; whether all members must be asked; whether products are written; and then of each member
whether it was asked, and of each base whether its values are written."""

# Disputed mistakes that are made before the reference is followed for the first time, and for each of its own.
PATIENCE, PATIENCE_PER_MISTAKE = 10, 30
# What a class that was never tried is preferred by: a tenth of a margin decides among classes that all look alike.
_CURIOSITY = 0.1
# What a class that was never right is preferred by besides, where no class claims the row.
_NEVER_RIGHT = 0.3

# Old facts that no longer hold: guesses have become too bad for chance (Gama, Medas, Castillo, Rodrigues 2004).

ROUNDS, LATELY, USUALLY, BEST = range(4)
"""`watch`: how many rounds were played, the rate of mistakes of late and usually, and the best usual rate."""
# Mistakes of late are averaged over about this many rounds; fewer say nothing about a rate.
_MEMORY = 64.0
# What is usual is averaged over about this share of the stream, so that the rounds in which all was new are forgotten.
_SHARE = 0.25
# Gama et al. take three standard deviations; over a long stream that is exceeded by chance.
_DEVIATIONS = 7.0


def new_watch() -> Floats:
    """Return an empty record of how the guesses went."""
    return np.array([0.0, 0.0, 0.0, math.inf])


@inlined
def is_outdated(watch: Floats, correct: bool, n_classes: int, softness: float) -> bool:
    """Say whether the guesses have become too bad for chance, so that old facts no longer hold; start counting again.

    The rate of mistakes over some 64 rounds is compared with the best rate so far over a quarter of the stream. It must
    be seven standard deviations above it, and nearer to blind guessing than to it. With a hard margin facts never go
    out of date.
    """
    watch[ROUNDS] += 1.0
    n, wrong = watch[ROUNDS], 0.0 if correct else 1.0
    if wrong > 0.0 or watch[LATELY] > NEXT_TO_NOTHING:
        watch[LATELY] += (wrong - watch[LATELY]) / min(n, _MEMORY)
    memory = max(min(n, _MEMORY), _SHARE * n)
    watch[USUALLY] += (wrong - watch[USUALLY]) / memory
    if softness == 0.0 or n < _MEMORY:
        return False
    # Laplace's rule keeps the rate away from 0, where its spread would vanish. An average that forgets at rate 1/m
    # varies like one over 2m rounds.
    usual = (2.0 * memory * watch[USUALLY] + 1.0) / (2.0 * memory + 2.0)
    watch[BEST] = min(watch[BEST], usual + math.sqrt(usual * (1.0 - usual) / (2.0 * memory)))
    best, blind = watch[BEST], 1.0 - 1.0 / n_classes
    if (
        watch[LATELY] > 0.5 * (best + blind)
        and watch[LATELY] > best + _DEVIATIONS * math.sqrt(best * (1.0 - best) / (2.0 * _MEMORY))
        and best < blind
    ):
        watch[ROUNDS], watch[LATELY], watch[USUALLY], watch[BEST] = 0.0, 0.0, 0.0, math.inf
        return True
    return False


# The guess, given the scores: what the linear form and the bank share.


@inlined
def preference(right: Any, wrong: Any, n_classes: int, softness: float, unclaimed: Any) -> Any:
    """Return what a class is preferred by; one guess in K is right by chance, so many wrong ones say as much as it.

    Where no class claims a row, `unclaimed` is the rate of mistakes of late: where few guesses are wrong, the classes
    that were never right are rare.
    """
    # With a small C all scores are small: no step is longer than what its fact lacks, divided by the softness.
    curious = _CURIOSITY / (1.0 + right + 2.0 * wrong / n_classes)
    never_right = _NEVER_RIGHT * (right == 0) * unclaimed / (1.0 + wrong / n_classes) ** 2
    return (curious + never_right) / max(1.0, softness)


@inlined
def prefer(guesses: Integers, softness: float, unclaimed: float, scores: Floats) -> None:
    """Let scores lean to classes of which little is known."""
    n_classes = scores.shape[0]
    for i in range(n_classes):
        scores[i] += preference(guesses[RIGHT, i], guesses[WRONG, i], n_classes, softness, unclaimed)


@inlined
def is_to_follow(counts: Integers, guarded: bool) -> bool:
    """Say whether the reference is to be followed where it disputes a label."""
    return guarded and counts[DISPUTED] > PATIENCE + PATIENCE_PER_MISTAKE * counts[FOLLOWED]


@inlined
def is_denied(score: Any) -> Any:
    """Say whether a label with that score is held to be wrong: a mistake on it would not be productive."""
    return score <= PRODUCTIVE - 1.0


@inlined
def choose(scratch: Any, draw: Draw, settings: Settings) -> tuple[int, bool]:
    """Return the highest score's label, or what the guard or exploration says instead."""
    scores = scratch.scores
    best, explored = highest(scores), False
    if settings.guarded:
        opinion = scratch.opinions[scratch.flags[REFERENCE]]
        if scratch.flags[FOLLOW] and is_denied(opinion[best]):
            best, explored = highest(opinion), True
            if is_denied(opinion[best]):
                best = uniform_label(uniform(draw), scores.shape[0])
    elif settings.mix > 0.0 and scores[best] < 0.0:
        number = uniform(draw)
        # One number serves both choices: below the chance it is, once stretched, uniform again.
        if number < settings.mix:
            best, explored = uniform_label(number / settings.mix, scores.shape[0]), True
    return best, explored


@inlined
def write_chances(scratch: Any, settings: Settings) -> None:
    """Write the chance that `choose` gives to each label."""
    best, spread, out = highest(scratch.scores), 0.0, scratch.chances
    if settings.guarded:
        opinion = scratch.opinions[scratch.flags[REFERENCE]]
        if scratch.flags[FOLLOW] and is_denied(opinion[best]):
            best = highest(opinion)
            spread = 1.0 if is_denied(opinion[best]) else 0.0
    elif scratch.scores[best] < 0.0:
        spread = settings.mix
    for i in range(out.shape[0]):
        out[i] = spread / out.shape[0]
    out[best] += 1.0 - spread


@inlined
def keep_account(
    counts: Integers, guesses: Integers, reference: Floats, label: int, explored: bool, correct: bool
) -> None:
    """Count right and wrong guesses of each class, and disputed and followed mistakes."""
    guesses[RIGHT if correct else WRONG, label] += 1
    if not correct and explored:
        counts[FOLLOWED] += 1
    elif not correct and is_denied(reference[label]):
        counts[DISPUTED] += 1


# Columns scaled by the rows so far: the scale in force is that of the first 1, 2, 4, 8, … rows heard. Dense rows are
# standardised; sparse rows are not centred, which would fill them, but divided by the root mean square of each column.


@inlined
def count_row(counts: Integers, kind: int, scales: bool, outdated: bool) -> int:
    """Return which row of its kind it is, and write what is due: a new scale after 1, 2, 4, 8, … rows, to forget."""
    counts[SEEN + kind] += 1
    n: int = counts[SEEN + kind]
    if scales and n & (n - 1) == 0:
        counts[DUE] += 1 + kind
    if outdated:
        counts[DUE] += TO_FORGET
    return n


class BankState(NamedTuple):
    """What was learned: one place per stored example, m members, K classes, D features (with the constant)."""

    rows: Floats
    """The examples as they came, one column each (d × capacity)."""
    units: Floats
    """The examples scaled, with the constant, and divided by their length (D × capacity)."""
    examples: Floats
    """Their lengths, kinds and importance (3 × capacity)."""
    grams: Floats
    """The kernel values of the stored examples, for every base (bases × capacity × capacity)."""
    targets: Floats
    """What is proved, as the scores that are due (K × capacity)."""
    alphas: Floats
    """The dual coefficients, never negative (m × K × capacity)."""
    coefficients: Floats
    """What each class gained of each example: sign times alpha, and what was projected (m × capacity × K)."""
    scores: Floats
    """Every class's score of each example (m × K × capacity)."""
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
    """What is counted, and what is due; positions are named in `separators`."""
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


class Scratch(NamedTuple):
    """What is known about one round; positions are named in `separators`, `vote`, `regressions` and here (flags)."""

    scores: Floats
    """What the guess is made from: the vote, with what is preferred, passed over and proposed."""
    opinions: Floats
    """Every member's scores, then the guard's if there is one (m or m + 1 × K), as far as it was asked."""
    targets: Floats
    """What the answer proves."""
    chances: Floats
    row: Floats
    """The row in three forms (3 × D)."""
    lines: Floats
    """One number per stored example, for several purposes (3 + bases × capacity)."""
    numbers: Floats
    flags: Integers
    features: Floats
    """What the second regression sees of the row, and room for as much."""
    estimates: Floats
    """What the regressions and the vote say of every class (4 × K)."""
    known: Floats
    """What the mixture knows of three labels."""


class FactMemory(Memory):
    """What the bank and the linear form share."""

    per_class: ClassVar[tuple[str, ...]] = "scores", "opinions", "targets", "chances"

    @property
    def size(self) -> int:
        """How many examples are stored."""
        return int(self.arrays.counts[SIZE])

    def hear_logged(self, row: Rows, label: int, correct: bool, truth: int, propensity: float | None) -> bool:
        """Learn what is proved, whoever tried it; another's mistakes are no sign of drift, and no dispute."""
        prepared = self.prepare(row)
        self.measure(prepared, row)
        moves, state, scratch, settings = self._at_hand[type(prepared)]
        tally, watch = self.arrays.counts[DISPUTED : FOLLOWED + 1], self.arrays.watch
        kept = tally.copy(), watch.copy()
        self._seen = -1
        try:
            watch[:] = new_watch()
            return moves.hear(state, unlocked(prepared), scratch, label, False, correct, truth, settings)
        finally:
            tally[:], watch[:] = kept

    # What an answer made due, and is Python's work, since it is rare: to forget, and a new scale. Not while that answer
    # is heard: if this is interrupted the answer must not be heard twice.

    def run(self, rows: Rows, y: Integers, start: int, seed: int, first_round: int, record: Record) -> None:
        """Play prepared rows; the loop stops where something is due."""
        super().run(rows, y, start, seed, first_round, record)
        self.do_what_is_due()

    def make_room(self, rows: Rows, t: int) -> None:
        """Grow, or do what is due, if that is what play was stopped for."""
        if self.arrays.counts[DUE]:
            self.do_what_is_due()
        else:
            self.grow(rows)

    def do_what_is_due(self) -> None:
        """Forget, and put a new scale in force, each at once: an interrupt leaves it done, or still due."""
        if self.arrays.counts[DUE]:
            self.renew()  # arrays are replaced, and Ctrl-C may have left scratch arrays of another size
        if self.arrays.counts[DUE] >= TO_FORGET:
            self.arrays = self.forgetful()
        if self.arrays.counts[DUE]:
            self.scale_again(int(self.arrays.counts[DUE]) - 1)

    @abstractmethod
    def grow(self, rows: Rows) -> None:
        """Make room for more examples."""

    @abstractmethod
    def forgetful(self) -> Any:
        """Return arrays in which all facts are forgotten, but not how rows are scaled."""

    @abstractmethod
    def scale_again(self, kind: int) -> None:
        """Put the scale of the rows of a kind so far in force, and take in what that changes, all at once."""

    def copies(self, *names: str) -> Any:
        """Return the arrays, with copies of some."""
        return self.arrays._replace(**{name: getattr(self.arrays, name).copy() for name in names})

    def larger(self, **sizes: int) -> Any:
        """Return the arrays with room for more, by the names of their axes."""
        found = {}
        for name, axes in self.rooms.items():
            array = getattr(self.arrays, name)
            shape = [sizes.get(axis, size) for axis, size in zip(axes, array.shape, strict=True)]
            found[name] = grown(array, tuple(shape))
        return self.arrays._replace(**found)

    def add_class(self) -> None:
        """Make room for one more class: it is not the right one where another is."""
        self.do_what_is_due()  # as it would be in another call meanwhile
        super().add_class()
        targets = self.arrays.targets
        targets[-1, (targets == IT_IS).any(axis=0)] = IT_IS_ANOTHER

    def blank_regressions(self, n_examples: int) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of regressions that have learned nothing, with room for as many landmarks as examples."""
        return {}

    def upgraded(self, packed: Mapping[str, npt.NDArray[Any]]) -> Mapping[str, npt.NDArray[Any]]:
        """Return arrays from a file of an earlier version, which had more of them, as they are called now."""
        if "tally" not in packed:
            return packed
        old, is_bank = dict(packed), "lengths" in packed and "grams" in self.arrays._fields
        found = {name: array for name, array in old.items() if name in self.arrays._fields}
        due = old["counts"][2:] if is_bank else [0]
        counts = [*old["counts"][:2], *due, *old["tally"], 0, *old["seen"]]  # there were no landmarks
        found["counts"] = np.array(counts, np.int64)
        found["guesses"] = np.stack([old["right"], old["wrong"]])
        found["scaling"] = np.stack([old["statistics"], old["scales"]], axis=1)
        sums = np.stack([old["totals"], old["supports"]], axis=-2).astype(np.float64)
        if not is_bank:
            return found | {"sums": sums, "examples": np.stack([old["squares"], old["kinds"], old["lengths"]])}
        m, blank, (n_classes, n) = len(self.arrays.sums), self.arrays.members.copy(), old["targets"].shape
        found |= self.blank_regressions(n)
        found["examples"] = np.stack([old["lengths"], old["kinds"], old["weight"]]).astype(np.float64)
        found["rows"] = old["rows"] if len(old["rows"]) else old["features"]
        produced = old["productive"].astype(np.float64)
        if len(old["losses"]) == m:
            blank[:m] = np.column_stack([old["losses"], old["trust"], produced[:m]])
            blank[m:, -1] = produced[m:]
            return found | {"members": blank, "sums": sums}
        # The default bank has other members now: they learn from the stored examples what was proved.
        blank[:, -1] = produced.max()
        blank[0, -1], blank[m:, -1] = produced[0], produced[len(old["losses"]) :]
        shapes = {"alphas": (m, n_classes, n), "scores": (m, n_classes, n), "coefficients": (m, n, n_classes)}
        found.pop("grams", None)
        found |= {name: np.zeros(shape) for name, shape in shapes.items()}
        return found | {"members": blank, "sums": np.zeros((m, 2, n_classes))}
