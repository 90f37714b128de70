"""Every learner against every adversary: the mistakes they make beside those they cannot avoid.

`duel` plays the constructions of `onebit.streams.adversaries` and returns a table; `duel_by_dimension` plays Theorem
24's in more and more dimensions. The pictures are in `onebit.duels.figures`.
"""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator, Philox

from onebit.draws import STREAM
from onebit.inputs import check_integer
from onebit.kernels import Linear
from onebit.learners import BanditPerceptron, Learner, NearestNeighbor, all_learners
from onebit.play import play
from onebit.streams.adversaries import (
    Claim,
    HardSequence,
    IgnorantAdversary,
    Packing,
    bandit_sequence,
    full_information_sequence,
    one_example_sequence,
    pack_directions,
)

Adversary = HardSequence | IgnorantAdversary


class Maker(Protocol):
    """Makes an adversary, which plays one game; any function with an argument `seed`."""

    def __call__(self, *, seed: int) -> Adversary:
        """Return the adversary whose labels that seed names."""
        ...


_N_PROBES = 16
_TRIED_FEATURES = 3


@dataclass(frozen=True)
class DuelRow:
    """One learner against one adversary, over all runs."""

    adversary: str
    """The theorem it comes from."""
    binds: str
    """Of whose mistakes the theorem speaks."""
    n_classes: int
    n_features: int
    radius: float
    margin: float
    rounds: int
    learner: str
    """Its settings; "γ" stands for a radius that equals the margin."""
    runs: int
    mean: float
    """Mistakes."""
    standard_error: float
    lower_bound: float | None
    """Expected mistakes that the theorem forces on this learner; None if it does not speak of such learners."""
    sharp_lower_bound: float | None
    """The same with the construction's best constant."""
    upper_bound: float | None
    """Expected mistakes that the learner's own theorem promises for this margin; None if it promises nothing."""


def paper_adversaries() -> list[Maker]:
    """Return one adversary of each theorem, of a size at which a game takes milliseconds."""
    packing = pack_directions(margin=0.001, n_features=8)
    return [
        partial(bandit_sequence, 4, 0.1),
        partial(one_example_sequence, 10, 0.5),
        partial(full_information_sequence, 3, 0.1),
        partial(_unseeded, packing),
    ]


def _unseeded(packing: Packing, seed: int) -> IgnorantAdversary:  # noqa: ARG001
    """Return Theorem 24's adversary, which draws nothing: in every game it has the same directions."""
    return IgnorantAdversary(packing)


def contestants(margin: float) -> list[Learner]:
    """Return every learner of the package, with all the settings it offers for checking.

    A learner with a radius (nearest neighbour) gets the margin for it, as in the paper.

    >>> [learner for learner in contestants(0.1) if "Nearest" in repr(learner)]
    [NearestNeighbor()]
    """
    found: dict[str, Learner] = {}
    for cls in all_learners():
        for learner in cls.examples():
            if "radius" in learner.get_params():
                learner.set_params(radius=margin)
            found.setdefault(repr(learner), learner)
    return list(found.values())


def duel(
    makers: Sequence[Maker] | None = None, learners: Sequence[Learner] | None = None, runs: int = 20
) -> list[DuelRow]:
    """Play every learner against every adversary and return one row for each pair.

    Parameters
    ----------
    makers : sequence of Maker, optional
        Functions from a seed to an adversary; by default `paper_adversaries`.
    learners : sequence of Learner, optional
        By default `contestants`.
    runs : int
        How many games, at least 2; the seed of each names both the labels and the learner's random numbers.

    Examples
    --------
    >>> (row,) = duel([partial(one_example_sequence, 5, 0.5)], [BanditPerceptron()])
    >>> row.adversary, row.mean, round(row.standard_error, 2), row.lower_bound, row.upper_bound
    ('Remark', 1.95, 0.31, 2.0, 64)
    """
    n = check_integer("runs", runs, low=2)
    rows = []
    for make in paper_adversaries() if makers is None else makers:
        claim = make(seed=0).claim
        for learner in contestants(claim.margin) if learners is None else learners:
            counts = [_mistakes(learner, make(seed=seed), seed) for seed in range(n)]
            rows.append(_row(claim, learner, counts))
    return rows


def duel_by_dimension(
    dimensions: Iterable[int] = range(2, 13),
    margin: float = 0.001,
    learners: Sequence[Learner] | None = None,
    runs: int = 20,
) -> list[DuelRow]:
    """Play Theorem 24's adversary, with all of Lemma 25's directions, in several dimensions.

    Parameters
    ----------
    dimensions : iterable of int
        The numbers of features; at most about 13 for a margin of 0.001, where there are 23 841 directions.
    margin : float
        γ, below 1/160.
    learners : sequence of Learner, optional
        By default nearest neighbour, which is ignorant, and Algorithm 1 in two versions, which is not.
    runs : int
        How many games.

    Examples
    --------
    >>> rows = duel_by_dimension((4, 6, 8), learners=[BanditPerceptron()], runs=2)
    >>> [(row.n_features, row.rounds, row.mean) for row in rows]
    [(4, 6, 1.0), (6, 39, 1.0), (8, 244, 1.0)]
    """
    if learners is None:
        learners = [NearestNeighbor(margin), BanditPerceptron(), BanditPerceptron(ties="random")]
    rows = []
    for d in dimensions:
        packing = pack_directions(margin, d)
        rows += duel([partial(_unseeded, packing)], learners, runs)
    return rows


def is_ignorant(learner: Learner, rounds: int = 200) -> bool:
    """Return whether a learner seems to ignore its mistakes: what it would guess never changed after one.

    It is tried on random points with random labels, and its probabilities are compared at a few of them before and
    after every mistake. A change proves that it is not ignorant; no change proves nothing, but is hard to come by.

    Parameters
    ----------
    learner : Learner
        Not changed: a copy with two classes plays.
    rounds : int
        How many examples to try.

    Examples
    --------
    >>> is_ignorant(NearestNeighbor()), is_ignorant(BanditPerceptron())
    (True, False)

    References
    ----------
    Beygelzimer et al. (2019). ICML. Definition 23 (ignorant algorithm).
    """
    copy = _fresh(learner, 2)
    generator = Generator(Philox(key=[0, STREAM]))
    X, labels = generator.uniform(-0.5, 0.5, (rounds, _TRIED_FEATURES)), generator.random(rounds) < 0.5
    for t, label in enumerate(labels.astype(int)):
        probes = [*X[:_N_PROBES], X[t]]
        guess = copy.guess(X[t])
        correct = bool(guess.label == label)
        before = [copy.probabilities(x) for x in probes]
        copy.tell(guess, correct, **({"label": label} if copy.hears_label else {}))
        if not correct and not np.array_equal(before, [copy.probabilities(x) for x in probes]):
            return False
    return True


def write_duel(rows: Iterable[DuelRow], path: Path) -> None:
    """Write a table as CSV, one line per row; what no theorem speaks of is left empty."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in fields(DuelRow)])
    for row in rows:
        writer.writerow([f"{value:.10g}" if isinstance(value, float) else value for value in astuple(row)])
    path.write_text(text.getvalue(), encoding="utf-8")


def _fresh(learner: Learner, n_classes: int) -> Learner:
    settings: dict[str, Any] = {**learner.get_params(deep=False), "classes": n_classes}
    return type(learner)(**settings)


def _mistakes(learner: Learner, adversary: Adversary, seed: int) -> int:
    player = _fresh(learner, adversary.claim.n_classes)
    # Games are short: round by round saves compiling every learner's whole-stream loop.
    if isinstance(adversary, IgnorantAdversary):
        return play(player, adversary, seed=seed, max_rounds=adversary.claim.rounds).mistakes
    return play(player, adversary.X, adversary.y, seed=seed, engine="rounds").mistakes


def _row(claim: Claim, learner: Learner, counts: list[int]) -> DuelRow:
    is_bound = _is_bound(claim, learner)
    return DuelRow(
        adversary=claim.theorem,
        binds=claim.binds,
        n_classes=claim.n_classes,
        n_features=claim.n_features,
        radius=claim.radius,
        margin=claim.margin,
        rounds=claim.rounds,
        learner=_name(learner, claim.margin),
        runs=len(counts),
        mean=float(np.mean(counts)),
        standard_error=float(np.std(counts, ddof=1)) / math.sqrt(len(counts)),
        lower_bound=claim.lower_bound if is_bound else None,
        sharp_lower_bound=claim.sharp_lower_bound if is_bound else None,
        upper_bound=_upper_bound(claim, learner),
    )


def _name(learner: Learner, margin: float) -> str:
    is_margin = learner.get_params().get("radius") == margin
    return f"{type(learner).__name__}(radius=γ)" if is_margin else repr(learner)


def _is_bound(claim: Claim, learner: Learner) -> bool:
    if claim.binds == "bandit learners":
        return not learner.hears_label
    return claim.binds == "every learner" or is_ignorant(learner)


def _upper_bound(claim: Claim, learner: Learner) -> float | None:
    kernel = getattr(learner, "kernel", None)
    # A promise is about strongly separable examples, in the kernel's space if there is one; those are not claimed.
    if claim.kind == "weak" or not (kernel is None or isinstance(kernel, Linear)):
        return None
    promise = learner.promise(
        n_classes=claim.n_classes, n_features=claim.n_features, radius=claim.radius, margin=claim.margin
    )
    return promise.expected_mistakes if math.isfinite(promise.expected_mistakes) else None
