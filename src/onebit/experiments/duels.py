"""Every learner against every adversary: the mistakes they make beside those they cannot avoid.

`duel` plays the constructions of `onebit.streams.adversaries` and returns a table; `duel_by_dimension` plays Theorem
24's in more and more dimensions. The pictures are in `onebit.experiments.figures`.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from onebit.bounds import at_most
from onebit.engine.randomness import STREAM, random_numbers
from onebit.inputs import check_integer
from onebit.learners import BanditPerceptron, Learner, NearestNeighbor, all_learners
from onebit.learners.base import in_linear_space
from onebit.playing import play
from onebit.streams.adversaries import (
    Challenge,
    HardSequence,
    IgnorantAdversary,
    bandit_sequence,
    full_information_sequence,
    one_example_sequence,
    pack_directions,
)

_Maker = Callable[..., HardSequence | IgnorantAdversary]  # has an argument `seed`, of the labels
# Points at which guesses are compared. In three features a few change with nearly every update, wherever it happens;
# with half as many, two in twenty streams left none that ε-greedy ridge regression changed after a mistake.
_N_PROBES, _N_FEATURES = 32, 3


class DuelRow(NamedTuple):
    """One learner against one adversary, over all runs."""

    challenge: Challenge  # the adversary's game, with the theorem that it comes from
    learner: str  # its settings; "γ" stands for a radius that equals the margin
    runs: int
    mean: float  # mistakes
    standard_error: float
    lower_bound: float | None  # expected mistakes that the theorem forces on this learner; None if it does not cover it
    sharp_lower_bound: float | None  # the same with the construction's best constant
    upper_bound: float | None
    """Expected mistakes that the learner's own theorem promises for this margin; None if it promises nothing."""
    full_information: bool = False

    @property
    def short_name(self) -> str:
        """The learner's name without the names of settings whose values are clear by themselves."""
        short = re.sub(r",? ?normalize=(True|False)", "", self.learner)
        short = re.sub(r"kernel=(?!None)|(degree|width)=|(?<=Banditron\()exploration=", "", short)
        return short.replace("()", "")


def paper_adversaries() -> list[_Maker]:
    """Return one adversary of each theorem, of a size at which a game takes milliseconds."""
    # R/γ = 10 where the margin counts; for the packing 0.001, below the lemma's 1/160, and 244 directions.
    packing = pack_directions(margin=0.001, n_features=8)
    return [
        partial(bandit_sequence, 4, 0.1),
        partial(one_example_sequence, 10, 0.5),
        partial(full_information_sequence, 3, 0.1),
        lambda seed: IgnorantAdversary(packing),  # noqa: ARG005  (draws nothing: in every game the same directions)
    ]


def _contestants(margin: float) -> list[Learner]:
    """Return every learner of the package with all its examples, but those played in Python; radii are the margin."""
    found: dict[str, Learner] = {}
    for cls in all_learners():
        if cls._new_state is Learner._new_state:
            continue
        for learner in cls.examples():
            if isinstance(learner, NearestNeighbor):
                learner.set_params(radius=margin)
            found.setdefault(repr(learner), learner)
    return list(found.values())


def duel(
    makers: Sequence[_Maker] | None = None, learners: Sequence[Learner] | None = None, runs: int = 20
) -> list[DuelRow]:
    """Play every learner (all of the package) against every adversary (`paper_adversaries`); return a row for each.

    Of the runs, two or more, the seed of each determines both the labels and the learner's random numbers.

    >>> (row,) = duel([partial(one_example_sequence, 5, 0.5)], [BanditPerceptron()])
    >>> row.challenge.name, row.mean, round(row.standard_error, 2), row.lower_bound, row.upper_bound
    ('Remark', 1.95, 0.31, 2.0, 64)
    """
    n = check_integer("runs", runs, low=2)
    rows = []
    for make in paper_adversaries() if makers is None else makers:
        challenge = make(seed=0).challenge
        for learner in _contestants(challenge.margin) if learners is None else learners:
            # A label may never occur, so the number of classes cannot be inferred from the stream.
            player, counts = clone(learner).set_params(classes=challenge.n_classes), []
            for seed in range(n):
                adversary = make(seed=seed)
                stream = (adversary,) if isinstance(adversary, IgnorantAdversary) else (adversary.X, adversary.y)
                # Games are short: round by round saves compiling every learner's whole-stream loop.
                counts.append(play(player, *stream, seed=seed, engine="rounds").mistakes)
            rows.append(_row(challenge, learner, counts))
    return rows


def duel_by_dimension(
    dimensions: Iterable[int] = range(2, 13),
    margin: float = 0.001,
    learners: Sequence[Learner] | None = None,
    runs: int = 20,
) -> list[DuelRow]:
    """Play Theorem 24's adversary, with all of Lemma 25's directions, in several dimensions.

    They go up to about 13 for a margin of 0.001, below 1/160, where there are 23 841 directions. By default nearest
    neighbour plays, which is ignorant, and Algorithm 1 in two versions, which is not.

    >>> rows = duel_by_dimension((4, 6, 8), learners=[BanditPerceptron()], runs=2)
    >>> [(row.challenge.n_features, row.challenge.rounds, row.mean) for row in rows]
    [(4, 6, 1.0), (6, 39, 1.0), (8, 244, 1.0)]
    """
    if learners is None:
        learners = [NearestNeighbor(margin), BanditPerceptron(), BanditPerceptron(ties="random")]
    rows = []
    for d in dimensions:
        # Built once for all learners and runs: its time grows with the square of the directions.
        packing = pack_directions(margin, d)
        rows += duel([lambda seed, packing=packing: IgnorantAdversary(packing)], learners, runs)  # noqa: ARG005
    return rows


def _row(challenge: Challenge, learner: Learner, counts: list[int]) -> DuelRow:
    is_margin = isinstance(learner, NearestNeighbor) and learner.radius == challenge.margin
    binds = challenge.stated.binds
    is_bound = binds == "every learner" or not learner.full_information
    if binds == "ignorant learners":
        is_bound = is_ignorant(learner)
    expected = math.inf
    # A promise is about strongly separable examples, with a kernel in its space; the challenge gives neither.
    if challenge.kind != "weak" and in_linear_space(learner):
        size = {"n_classes": challenge.n_classes, "n_features": challenge.n_features}
        promise = learner.promise(**size, radius=challenge.radius, margin=challenge.margin)
        expected = at_most(promise, "expected mistakes")
    return DuelRow(
        challenge,
        # scikit-learn breaks long settings into lines; a name in a table is one.
        f"{type(learner).__name__}(radius=γ)" if is_margin else " ".join(repr(learner).split()),
        len(counts),
        float(np.mean(counts)),
        float(np.std(counts, ddof=1)) / math.sqrt(len(counts)),
        challenge.stated.value if is_bound else None,
        challenge.forced.value if is_bound else None,
        expected if expected < math.inf else None,
        learner.full_information,
    )


def is_ignorant(learner: Learner, rounds: int = 200) -> bool:
    """Return whether a learner seems ignorant (Definition 23): what it would guess never changed after a mistake.

    It is tried on random points with random labels, and its probabilities are compared at a few of them before and
    after every mistake. A change proves that it is not ignorant; no change is strong evidence, but no proof, that it
    is.

    The learner is not changed: a copy with two classes plays.

    >>> import onebit
    >>> is_ignorant(onebit.NearestNeighbor()), is_ignorant(onebit.BanditPerceptron())
    (True, False)
    """
    copy: Learner = clone(learner).set_params(classes=2)
    generator = random_numbers(0, STREAM)
    X, labels = generator.uniform(-0.5, 0.5, (rounds, _N_FEATURES)), generator.random(rounds) < 0.5
    for t, label in enumerate(labels.astype(int)):
        probes = [*X[:_N_PROBES], X[t]]
        guess = copy.guess(X[t])
        correct = bool(guess.label == label)
        before = [copy.probabilities(x) for x in probes]
        copy.tell(guess, correct, **({"label": label} if copy.full_information else {}))
        if not correct and not np.array_equal(before, [copy.probabilities(x) for x in probes]):
            return False
    return True
