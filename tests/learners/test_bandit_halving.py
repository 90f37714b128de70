"""Halving a finite class: against a plain program, and below its bound in every game."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import onebit
from onebit.bounds import BOUNDS
from onebit.checks.problems import guesses_of


@pytest.mark.parametrize("as_functions", [False, True])
def test_against_a_plain_program(as_functions: bool) -> None:
    rng = np.random.default_rng(2)
    weights, X, y = rng.normal(size=(40, 3, 4)), rng.normal(size=(200, 4)), rng.integers(3, size=200)
    alive, guesses, restarts = np.ones(40, dtype=bool), [], 0
    for x, label in zip(X, y, strict=True):
        votes = np.argmax(weights @ x, axis=1)
        guess = int(np.argmax(np.bincount(votes[alive], minlength=3)))
        alive &= (votes == guess) == (guess == label)
        if not alive.any():
            alive[:] = True
            restarts += 1
        guesses.append(guess)
    class_: Any = [lambda x, w=w: np.argmax(w @ x) for w in weights] if as_functions else weights
    learner = onebit.BanditHalving(class_)
    assert guesses_of(learner, X, y).tolist() == guesses
    assert learner.survivors_.tolist() == np.flatnonzero(alive).tolist()
    assert learner.n_restarts_ == restarts > 5


@pytest.mark.parametrize(("K", "H"), [(2, 1), (2, 50), (3, 300), (5, 40), (7, 1000)])
def test_it_keeps_its_bound_always(K: int, H: int) -> None:
    promised = BOUNDS["halving"].claim(n_classes=K, n_hypotheses=H)
    assert promised.about == "mistakes"
    for seed in range(4):
        rng = np.random.default_rng([seed, K, H])
        weights, X = rng.normal(size=(H, K, 3)), rng.normal(size=(400, 3))
        y = np.argmax(X @ weights[rng.integers(H)].T, axis=1)
        learner = onebit.BanditHalving(weights, classes=K)
        trace = onebit.play(learner, X, y)
        assert promised.value is not None
        assert trace.mistakes <= promised.value
        assert learner.n_restarts_ == 0


def test_an_adversary_that_follows_the_plurality_comes_near_the_bound() -> None:
    # All labellings of 6 points with 3 labels: always wrong, as long as somebody still says so.
    labellings = list(itertools.product(range(3), repeat=6))
    learner = onebit.BanditHalving([lambda x, row=row: row[int(x[0])] for row in labellings], classes=3)
    mistakes = 0
    for point in range(6):
        for _ in range(2):
            learner.tell(learner.guess([float(point)]), correct=False)
            mistakes += 1
    assert len(learner.survivors_) == 1
    assert mistakes == 12 <= onebit.bounds.bandit_halving_mistakes(3, 3**6)


def test_hypotheses_by_number_are_drawn_by_the_seed() -> None:
    first, again, other = (onebit.BanditHalving(5, classes=2, seed=seed) for seed in (1, 1, 2))
    for learner in (first, again, other):
        learner.guess([1.0, 2.0])
    assert np.array_equal(first.learned()["hypotheses"], again.learned()["hypotheses"])
    assert not np.array_equal(first.learned()["hypotheses"], other.learned()["hypotheses"])


@pytest.mark.parametrize(
    ("hypotheses", "message"),
    [
        (0, "hypotheses must be"),
        (2.5, "hypotheses must be"),
        ([], "hypotheses must be"),
        pytest.param(10**400, "hypotheses must be", id="beyond floats"),
        (10**15, "hypotheses must be fewer"),
        ([[1.0], [1.0, 2.0]], "hypotheses"),
        (np.zeros((3, 2, 2)), r"of shape \(H, 2, 1\)"),
        (np.full((3, 2, 1), math.nan), "hypotheses must be finite"),
        ([lambda x: "other"], r"hypotheses\[0\] says 'other', which is not among the 2 classes"),
    ],
)
def test_bad_hypotheses(hypotheses: Any, message: str) -> None:
    learner = onebit.BanditHalving(hypotheses, classes=["a", "b"])
    with pytest.raises(ValueError, match=message):
        learner.guess([1.0])


def test_functions_with_allowed_labels_late_answers_and_copies() -> None:
    learner = onebit.BanditHalving([lambda x, i=i: "abc"[i] for i in (0, 0, 0, 1, 1, 2)], classes=["a", "b", "c"])
    first, allowed = learner.guess([1.0]), learner.guess([1.0], among=["b", "c"])
    assert (first.label, allowed.label) == ("a", "b")
    learner.tell(allowed, correct=False)
    learner.tell(first, correct=False)
    assert learner.survivors_.tolist() == [5]
    with pytest.raises(ValueError, match="cannot take a new class"):
        learner.add_class("d")
    assert learner.learn_from([[1.0]], ["c"], False).n_restarts_ == 1
