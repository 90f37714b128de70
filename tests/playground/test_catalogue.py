"""The learners of the playground, and what the theorems promise of them."""

import numpy as np

import onebit
from onebit.kernels import Gaussian
from onebit.playground.catalogue import CATALOGUE, LOOKS, measure, new_learner, promised


def test_promises_are_those_of_the_theorems() -> None:
    X, y = onebit.streams.paper_strong(400, seed=1)
    strong = measure(X, y, 3)
    assert strong is not None
    perceptron = onebit.BanditPerceptron()
    promise = promised(perceptron, strong)
    (claim,) = [each for each in strong.promises if each.theorem == "2"]
    assert promise.mistakes == claim.value
    assert "Theorem 2" in promise.text
    weak = measure(*onebit.streams.wedges(), 3)
    assert weak is not None
    assert promised(perceptron, weak).text == "nothing: these rows are not strongly separable"
    assert "Theorem 10" in promised(onebit.MulticlassPerceptron(), weak).text
    assert promised(onebit.UniformGuess(), strong).text == "no theorem speaks of it"
    assert promised(onebit.BanditPerceptron(Gaussian()), strong).text == "no theorem speaks of it"
    assert "Corollary 6" in promised(CATALOGUE["rational"].learner, weak).text
    assert measure(X, y, 3, patience=-1.0) is None
    found = measure(np.eye(3), np.arange(3), 3)
    assert found is not None
    assert promised(perceptron, found).text == "at most 18 on average (Theorem 2)"


def test_everyone_in_the_catalogue_has_a_look_of_their_own() -> None:
    assert len({(look.color, look.dashes[1]) for look in LOOKS.values()}) == len(CATALOGUE)
    for key in CATALOGUE:
        new_learner(key, ["a", "b"], seed=0).begin(3, ["a", "b"])
