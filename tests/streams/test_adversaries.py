"""The lower bounds' constructions: their geometry by the definition, their numbers by the theory's own functions."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.special import betainc

import onebit
from onebit import bounds
from onebit.bounds import most_directions
from onebit.inputs import Floats
from onebit.streams import AdaptiveStream, LearnerView
from onebit.streams.adversaries import (
    HardSequence,
    IgnorantAdversary,
    bandit_sequence,
    full_information_sequence,
    one_example_sequence,
    pack_directions,
    proved_margin,
)
from onebit.theory import margin

SEQUENCES = [
    bandit_sequence(2, 0.1, seed=3),
    bandit_sequence(4, 0.1, seed=1),
    bandit_sequence(9, 0.1, radius=0.3, seed=2),
    bandit_sequence(5, 0.7, radius=3.0, seed=0),
    one_example_sequence(2, 1.0),
    one_example_sequence(16, 0.5, seed=5),
    one_example_sequence(7, 3.0, radius=4.0, seed=1),
    full_information_sequence(2, 0.3, seed=7),
    full_information_sequence(3, 0.1, seed=1),
    full_information_sequence(6, 0.5, radius=3.0, seed=2),
]
BOUNDS: dict[str, Callable[..., float]] = {
    "Theorem 3": bounds.bandit_lower_bound,
    "Remark": bounds.one_example_lower_bound,
    "Theorem 11": bounds.full_information_lower_bound,
}


def title(hard: HardSequence) -> str:
    return f"{hard.challenge.name}, K={hard.challenge.n_classes}, R={hard.challenge.radius}, γ={hard.challenge.margin}"


def satisfies_definition(hard: HardSequence) -> bool:
    """Definition 1 word by word, with room for rounding."""
    W, gamma, slack = hard.separators, hard.challenge.margin, 1e-12 * hard.challenge.radius
    for x, y in zip(hard.X, hard.y, strict=True):
        for i in range(len(W)):
            if hard.challenge.kind == "weak" and i != y and not W[y] @ x >= W[i] @ x + gamma - slack:
                return False
            if hard.challenge.kind == "strong":
                kept = W[i] @ x >= gamma / 2 - slack if i == y else W[i] @ x <= -gamma / 2 + slack
                if not kept:
                    return False
    return float(np.sum(W**2)) <= 1.0 + 1e-12


@pytest.mark.parametrize("hard", SEQUENCES, ids=title)
def test_vectors_prove_the_margin(hard: HardSequence) -> None:
    assert satisfies_definition(hard)
    assert hard.proved_margin() == pytest.approx(hard.challenge.margin, rel=1e-12)
    assert hard.separators.shape == (hard.challenge.n_classes, hard.challenge.n_features)
    assert np.linalg.norm(hard.X, axis=1).max() <= hard.challenge.radius * (1 + 1e-15)
    assert hard.X.shape == (hard.challenge.rounds, hard.challenge.n_features)


@pytest.mark.parametrize("hard", SEQUENCES, ids=title)
def test_the_solver_finds_at_least_that_margin(hard: HardSequence) -> None:
    found = margin(hard.X, hard.y, classes=hard.challenge.n_classes)
    largest = found.weak if hard.challenge.kind == "weak" else found.strong
    assert largest >= hard.challenge.margin * (1 - 1e-9)


@pytest.mark.parametrize("hard", SEQUENCES, ids=title)
def test_numbers_are_the_theorems(hard: HardSequence) -> None:
    stated = BOUNDS[hard.challenge.name](
        n_classes=hard.challenge.n_classes, radius=hard.challenge.radius, margin=hard.challenge.margin
    )
    assert hard.lower_bound == stated
    assert hard.challenge.forced.value is not None
    assert hard.challenge.forced.value >= stated


def test_theorem_3_shows_each_vector_often_enough() -> None:
    hard = bandit_sequence(4, 0.1, seed=1)
    assert hard.X.shape == (75, 26)
    for j in range(25):
        expected = np.zeros(26)
        expected[[j, 25]] = 1 / math.sqrt(2)
        assert np.allclose(hard.X[3 * j : 3 * j + 3], expected, atol=1e-15)
        assert len(set(hard.y[3 * j : 3 * j + 3].tolist())) == 1


def test_labels_are_uniform_and_named_by_the_seed() -> None:
    labels = np.concatenate([full_information_sequence(4, 0.05, seed=seed).y for seed in range(10)])
    assert np.abs(np.bincount(labels) / len(labels) - 0.25).max() < 3.5 * math.sqrt(0.25 * 0.75 / len(labels))
    assert np.array_equal(bandit_sequence(3, 0.1, seed=4).y, bandit_sequence(3, 0.1, seed=4).y)
    assert not np.array_equal(bandit_sequence(3, 0.1, seed=4).y, bandit_sequence(3, 0.1, seed=5).y)


def test_quotients_are_exact() -> None:
    # As floats, (0.3/0.1)² is below 9 and (0.7/0.1)² below 49.
    assert full_information_sequence(2, 0.1, radius=0.3).challenge.rounds == 9
    assert full_information_sequence(2, 0.1, radius=0.7).challenge.rounds == 49
    assert bandit_sequence(9, 0.1, radius=0.3).challenge.rounds == 2 * 8


def test_the_remark_is_attained() -> None:
    # Algorithm 1 tries the labels in order, so it errs as often as the label says; its mean is that of the labels.
    for seed in range(20):
        hard = one_example_sequence(8, 0.5, seed=seed)
        learner = onebit.BanditPerceptron(ties="first", classes=8)
        assert onebit.play(learner, hard.X, hard.y, seed=seed).mistakes == hard.y[0]


def test_the_remark_ends_at_the_largest_strong_margin() -> None:
    hard = one_example_sequence(16, 0.5)
    assert margin(hard.X, hard.y, classes=16).strong == pytest.approx(0.5, rel=1e-9)
    with pytest.raises(ValueError, match=r"margin must be at most 2·radius/√n_classes = 0\.485071.*got 0\.5"):
        one_example_sequence(17, 0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bandit_sequence(101, 0.1), r"n_classes must be at most \(radius/margin\)² = 100 .*got 101"),
        (lambda: bandit_sequence(2, 0.6), r"margin must be at most radius/2 = 0.5.*got 0.6"),
        (lambda: bandit_sequence(1, 0.1), r"n_classes must be at least 2; got 1"),
        (lambda: bandit_sequence(3, -0.1), r"margin must be greater than 0"),
        (lambda: bandit_sequence(3, 0.1, radius=0.0), r"radius must be greater than 0"),
        (lambda: bandit_sequence(3, 0.1, seed=-1), r"seed must be"),
        (lambda: bandit_sequence(3, 1e-4), r"margin is too small to write the examples down"),
        (lambda: full_information_sequence(1, 0.1), r"n_classes must be at least 2; got 1"),
        (lambda: full_information_sequence(2, 1.5), r"margin must be at most radius = 1.0.*got 1.5"),
        (lambda: full_information_sequence(2, 1e-4), r"margin is too small to write the examples down"),
        (lambda: most_directions(1 / 160, 5), r"margin must be below 1/160 = 0.00625.*got 0.00625"),
        (lambda: most_directions(0.001, 1), r"n_features must be at least 2; got 1"),
        (lambda: pack_directions(0.001, 30), r"directions must be given: .*about 10\^11\.1"),
        (lambda: pack_directions(0.001, 5, directions=16), r"directions must be between 1 and 15; got 16"),
        (lambda: IgnorantAdversary(pack_directions(0.001, 4)).played(), r"play the adversary first"),
        (lambda: proved_margin(np.eye(2), np.array([0, 1]), np.eye(2), "weak"), r"separators must have Σ‖w‖² at most"),
    ],
)
def test_errors_name_argument_value_and_remedy(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(("gamma", "d"), [(0.001, 2), (0.001, 3), (0.001, 9), (0.006, 40), (1e-4, 5), (1e-9, 3)])
def test_packing_is_lemma_25(gamma: float, d: int) -> None:
    packing = pack_directions(gamma, d)
    N = len(packing.v)
    assert N == most_directions(gamma, d) == math.floor((1 / (160 * gamma)) ** ((d - 2) / 2) + 1e-9)
    assert packing.u.shape == packing.v.shape == (N, d)
    assert np.linalg.norm(packing.u, axis=1).max() <= 1
    assert np.linalg.norm(packing.v, axis=1).max() <= 1
    products = packing.u @ packing.v.T
    is_same = np.eye(N, dtype=bool)
    assert products[is_same].min() >= gamma - 1e-15
    assert products[~is_same].max(initial=-1.0) <= -gamma
    chords = 2.0 * packing.v[:, :-1]
    assert (chords @ chords.T)[~is_same].max(initial=-1.0) <= math.cos(math.sqrt(40 * gamma)) + 1e-15
    assert packing.is_complete
    assert not packing.v.flags.writeable


def test_fewer_directions_are_the_beginning_of_more() -> None:
    many, few = pack_directions(0.001, 8, seed=3), pack_directions(0.001, 8, directions=200, seed=3)
    assert np.array_equal(few.v, many.v[:200])
    assert not few.is_complete
    assert not np.array_equal(few.v, pack_directions(0.001, 8, directions=200, seed=4).v)
    assert IgnorantAdversary(few).challenge.stated.value == pytest.approx(math.sqrt(200) / 10)


def test_greedy_packing_cannot_fail() -> None:
    """N caps of angle θ cover at most 2^(−(d−1)) of the sphere, by the exact measure of a cap."""
    for d in range(3, 60):
        for gamma in (0.0062, 0.001, 1e-5):
            angle = math.sqrt(40 * gamma)
            cap = 0.5 * betainc((d - 2) / 2, 0.5, math.sin(angle) ** 2)
            assert cap <= 0.5 * math.sin(angle) ** (d - 2) * (1 + 1e-12)
            assert (1 / (2 * angle)) ** (d - 2) * cap <= 2.0 ** -(d - 1)


class Script:
    """A learner's view with a given chance of label 0 in each round."""

    def __init__(self, chances: list[float]) -> None:
        self.chances = chances
        self.asked: list[Floats] = []

    def view(self) -> LearnerView:
        def probabilities(x: Any) -> Floats:
            first = self.chances[len(self.asked)]
            self.asked.append(np.array(x))
            return np.array([first, 1.0 - first])

        return LearnerView(0, probabilities)


def run_script(chances: list[float], d: int = 6, directions: int | None = None) -> tuple[HardSequence, Script]:
    adversary, script = IgnorantAdversary(pack_directions(0.001, d, directions)), Script(chances)
    assert isinstance(adversary, AdaptiveStream)
    rounds = 0
    while adversary.next(script.view()) is not None:
        rounds += 1
    assert rounds == len(adversary.packing.v)
    assert adversary.next(script.view()) is None
    return adversary.played(), script


def test_unsure_learners_see_every_direction_once() -> None:
    hard, script = run_script([0.5] * 39)
    assert hard.y.tolist() == [0] * 39
    assert len(np.unique(hard.X, axis=0)) == 39
    assert np.array_equal(script.asked, hard.X)
    assert np.allclose(hard.separators, np.array([[0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, -1]]) / math.sqrt(2))
    assert hard.proved_margin() == pytest.approx(math.sqrt(0.5))
    assert satisfies_definition(hard)


@pytest.mark.parametrize("turn", [0, 1, 20, 38])
def test_sure_learners_are_contradicted(turn: int) -> None:
    q = 1 / math.sqrt(39)
    hard, script = run_script([1 - q - 1e-9] * turn + [1 - q])
    assert hard.y.tolist() == [0] * turn + [1] * (39 - turn)
    assert (hard.X[turn:] == hard.X[turn]).all()
    assert len(script.asked) == turn + 1, "phase 2 does not look"
    assert hard.proved_margin() == pytest.approx(0.001, rel=1e-9)
    assert satisfies_definition(hard)
    found = margin(hard.X, hard.y, classes=2)
    assert found.strong >= 0.001 * (1 - 1e-9)


@pytest.mark.parametrize(("chance", "label"), [(0.0, 0), (0.3, 0), (0.5, 0), (0.7, 1), (1.0, 1)])
def test_a_single_direction_takes_the_less_likely_label(chance: float, label: int) -> None:
    for d, directions in ((2, None), (6, 1)):
        hard, _ = run_script([chance], d, directions)
        assert hard.y.tolist() == [label]
        assert hard.challenge.forced.value == 0.5
        assert satisfies_definition(hard)


def test_it_plays_two_classes() -> None:
    adversary = IgnorantAdversary(pack_directions(0.001, 5))
    with pytest.raises(ValueError, match="learner must have two classes against this adversary; got 3"):
        onebit.play(onebit.UniformGuess(classes=3), adversary)


def test_theorem_24s_numbers() -> None:
    for gamma in (0.006, 0.001, 1e-4):
        for d in range(2, 9):
            if most_directions(gamma, d) > 5000:
                continue
            challenge = IgnorantAdversary(pack_directions(gamma, d)).challenge
            assert challenge.stated.value is not None
            assert challenge.forced.value is not None
            assert challenge.stated.value == pytest.approx(bounds.ignorant_lower_bound(gamma, d))
            assert challenge.forced.value >= challenge.stated.value
            if challenge.rounds > 4:
                assert challenge.forced.value >= bounds.ignorant_lower_bound_sharp(gamma, d)


def test_the_first_turn_is_the_cheapest() -> None:
    """What the proof of Theorem 24 sums up is concave in the turn, and smallest if phase 2 starts at once."""
    for T in (2, 3, 6, 39, 244, 1525):
        q, turns = 1 / math.sqrt(T), np.arange(1, T + 2)
        forced = q * (turns - 1) + (1 - q) / q * (1 - (1 - q) ** (T - turns + 1))
        assert all(a >= b - 1e-9 for a, b in pairwise(np.diff(forced)))
        assert forced.min() == forced[0] == pytest.approx((math.sqrt(T) - 1) * (1 - (1 - q) ** T))


def test_some_ignorant_learner_makes_no_more_mistakes() -> None:
    """Guess label 1 with chance q₀ everywhere until that proves right, then remember: it meets the sharp bound."""
    packing, counts = pack_directions(0.001, 6), []
    q = 1 / math.sqrt(len(packing.v))
    generator = np.random.default_rng(5)
    for _ in range(2000):
        adversary, knows, mistakes = IgnorantAdversary(packing), False, 0
        view = LearnerView(0, lambda _x, q=q: np.array([1 - q, q]))  # type: ignore[misc]
        while (chosen := adversary.next(view)) is not None:
            assert chosen[1] == 1
            knows = knows or generator.random() < q
            mistakes += not knows
        counts.append(mistakes)
    error = np.std(counts, ddof=1) / math.sqrt(len(counts))
    assert adversary.challenge.forced.value is not None
    assert abs(np.mean(counts) - adversary.challenge.forced.value) <= 3 * error
