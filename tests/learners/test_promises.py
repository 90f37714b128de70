"""Learners promise what their theorems say, to the last mistake."""

import math
from typing import Any

import numpy as np
import pytest

import onebit
from onebit.bounds import at_most
from onebit.kernels import Linear
from onebit.learners import Learner


def promised(learner: Learner, about: Any, radius: float, margin: float, n_classes: int = 3) -> float:
    claims = learner.promise(n_classes=n_classes, n_features=2, radius=radius, margin=margin)
    assert all(claim.side == "upper" for claim in claims)
    return at_most(claims, about)


@pytest.mark.parametrize(("radius", "margin", "updates"), [(0.7, 0.07, 400), (0.3, 0.1, 36), (1.0, 0.3, 44)])
def test_floors_are_exact(radius: float, margin: float, updates: int) -> None:
    # In floats, 4(0.7/0.07)² is below 400 and 4(0.3/0.1)² below 36.
    hard = onebit.BanditSVM(None, C=math.inf, exploration="uniform", scale=None)
    told = onebit.FullInformationSVM(None, C=math.inf, scale=None)
    for learner in (onebit.BanditPerceptron(), onebit.BanditPerceptron(Linear())):
        assert promised(learner, "updates", radius, margin) == updates
        assert promised(learner, "mistakes", radius, margin) == math.inf
        assert promised(learner, "expected mistakes", radius, margin) == 2 * updates
    assert promised(hard, "expected mistakes", radius, margin) == 2 * updates
    assert promised(told, "mistakes", radius, margin) == promised(told, "expected mistakes", radius, margin) == updates
    for about in ("updates", "mistakes", "expected mistakes"):
        assert promised(onebit.MulticlassPerceptron(), about, radius, margin) == updates // 2


def test_the_largest_margin_still_costs_a_mistake() -> None:
    # √2 in floats is a little more than √2, and ⌊2(R/γ)²⌋ must not fall to 0 for it.
    assert promised(onebit.MulticlassPerceptron(), "mistakes", 1.0, math.sqrt(2.0), n_classes=2) == 1


def test_a_claim_names_its_theorem() -> None:
    numbers: dict[str, Any] = {"n_classes": 3, "n_features": 2, "radius": 1.0, "margin": 0.1}
    assert [claim.theorem for claim in onebit.BanditPerceptron().promise(**numbers)] == ["2-updates", "2"]
    assert [claim.theorem for claim in onebit.BanditPerceptron(Linear()).promise(**numbers)] == ["2-updates", "4"]


def test_nearest_neighbour_needs_a_reach_below_the_distance_of_classes() -> None:
    near = onebit.NearestNeighbor(radius=0.1)
    assert promised(near, "updates", 1.0, 0.1) == 21**2
    assert promised(near, "expected mistakes", 1.0, 0.0708) == 2 * 21**2
    assert promised(near, "expected mistakes", 1.0, 0.0707) == math.inf


def test_nearest_neighbour_promises_nothing_at_the_distance_of_classes_itself() -> None:
    # The points ±1 have the largest margin there is, √2, and each lies within 2 of the other.
    learner = onebit.NearestNeighbor(radius=2.0)
    assert learner.promise(n_classes=2, n_features=1, radius=1.0, margin=math.sqrt(2.0)) == ()
    X = [[1.0], [-1.0]] * 100
    assert onebit.play(learner, X, ["a", "b"] * 100).mistakes > 90
    safe = onebit.NearestNeighbor(radius=1.99)
    assert promised(safe, "updates", 1.0, math.sqrt(2.0), n_classes=2) > 0
    assert onebit.play(safe, X, ["a", "b"] * 100).mistakes < 20


@pytest.mark.parametrize(
    "learner",
    [
        onebit.UniformGuess(),
        onebit.Banditron(),
        onebit.BanditSVM(exploration="greedy"),
        onebit.BanditSVM(None),
        onebit.FullInformationSVM(),
    ],
    ids=repr,
)
def test_no_theorem_no_promise(learner: Learner) -> None:
    assert learner.promise(n_classes=3, n_features=2, radius=1.0, margin=0.1) == ()


@pytest.mark.parametrize("n_features", [1, 10_000, 10_001])
def test_svm_promises_exactly_where_its_documentation_says_so(n_features: int) -> None:
    numbers = {"n_classes": 3, "n_features": n_features, "radius": 1.0, "margin": 0.1}
    is_bank = n_features <= 10_000
    spoken: dict[str, bool] = {
        "BanditSVM()": is_bank,
        "BanditSVM(C=1e-3, budget=1)": is_bank,
        "BanditSVM(C=inf, scale=None)": True,
        "BanditSVM(C=100.0, scale=None)": True,
        "BanditSVM(None, scale=None)": True,
        "BanditSVM(None, scale=None, exploration='uniform')": False,
        "BanditSVM(None)": False,
        "BanditSVM(None, C=inf)": False,
        "BanditSVM(None, C=inf, scale=None, budget=1)": True,
        "BanditSVM(None, C=inf, scale=None, exploration='uniform', budget=1)": True,
        "BanditSVM(C=inf, scale=None, exploration='uniform')": not is_bank,
        "BanditSVM(Gaussian(), C=inf, scale=None, exploration='uniform')": False,
        "BanditSVM([Gaussian(), None], scale=None)": True,
        "BanditSVM([Gaussian(), Laplace()], scale=None)": False,
        "FullInformationSVM()": False,
        "FullInformationSVM(C=inf)": False,
        "FullInformationSVM(C=inf, scale=None)": not is_bank,
        "FullInformationSVM(None, C=inf, scale=None)": True,
        "FullInformationSVM(None, scale=None)": False,
        "FullInformationSVM(Linear(), C=inf, scale=None)": False,
    }
    names = vars(onebit) | vars(onebit.kernels) | {"inf": math.inf}
    assert {text: bool(eval(text, names).promise(**numbers)) for text in spoken} == spoken


def test_a_class_that_joins_must_be_there_when_it_is_right() -> None:
    """Three orthogonal rows in turn; the third's label joins before its first round, or 150 rounds later."""

    def mistakes(join: int, seed: int) -> int:
        learner = onebit.BanditPerceptron(classes=["a", "b"], seed=seed)
        for t in range(300):
            if t == join:
                learner.add_class("c")
            guess = learner.guess(np.eye(3)[t % 3])
            learner.tell(guess, guess.label == "abc"[t % 3])
        return learner.n_mistakes_

    most = promised(onebit.BanditPerceptron(), "expected mistakes", radius=1.0, margin=2 / 3)
    assert most == 18
    assert np.mean([mistakes(2, seed) for seed in range(5)]) <= most
    assert min(mistakes(152, seed) for seed in range(5)) >= 50 > most, "every guess was wrong until it joined"


def test_impossible_margins_are_refused() -> None:
    with pytest.raises(ValueError, match=r"margin must be at most 2·radius/√n_classes = 1\.1547"):
        promised(onebit.BanditPerceptron(), "updates", 1.0, 1.2)
