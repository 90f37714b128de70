"""A learner of one's own, written as four methods: it plays everywhere, and nothing of it is lost on an error."""

import gc
import pickle
from typing import Any

import numpy as np
import pytest

import onebit
from foundation_checks import FOUNDATION_CHECKS
from onebit.checks import LEARNER_CHECKS
from onebit.checks.problems import noisy_problem, snapshot
from onebit.game import Answer, Guess
from onebit.inputs import Floats, Rows, dense
from onebit.learners import Learner


class EpsPerceptron(Learner):
    """Banditron's exploration with a plain perceptron step, by hand.

    Parameters
    ----------
    rate : float
        How often a label is drawn uniformly.
    classes, seed
        As for every learner.
    """

    def __init__(self, rate: float = 0.1, *, classes: Any = None, seed: int = 0) -> None:
        self.rate = rate
        self.classes = classes
        self.seed = seed

    def _start(self) -> None:
        self._weights = np.zeros((len(self.classes_), self.n_features_in_))
        self._rate = self.rate

    def _scores(self, row: Rows) -> Floats:
        scores: Floats = self._weights @ dense(row)[0]
        return scores

    def _choose(self, row: Rows, round: int) -> tuple[int, bool, float]:
        propensities, number = self._probabilities(row), self._draw(round)
        index = min(int(np.searchsorted(np.cumsum(propensities), number, side="right")), len(propensities) - 1)
        return index, False, float(propensities[index])

    def _probabilities(self, row: Rows) -> Floats:
        scores = self._scores(row)
        propensities = np.full(len(scores), self._rate / len(scores))
        propensities[int(np.argmax(scores))] += 1.0 - self._rate
        return propensities

    def _update(self, guess: Guess, answer: Answer) -> bool:
        if answer.correct:
            self._weights[answer.label] += 0.1 * dense(guess.row)[0]
        else:
            self._weights[answer.label] -= dense(guess.row)[0]
        return True


class Fragile(EpsPerceptron):
    """Fails in the middle of a step, after it has changed something."""

    def _update(self, guess: Guess, answer: Answer) -> bool:
        super()._update(guess, answer)
        if self.n_rounds_ == 30:
            raise RuntimeError("out of luck")
        return True


class Unsure(EpsPerceptron):
    """Says of its chances what is no number."""

    def _choose(self, row: Rows, round: int) -> tuple[int, bool, float]:
        return 0, False, np.nan

    def _probabilities(self, row: Rows) -> Floats:
        return np.full(len(self.classes_), np.nan)


def test_chances_are_numbers() -> None:
    learner = Unsure(classes=3)
    with pytest.raises(ValueError, match="_choose must return the propensity"):
        learner.guess([1.0, 2.0])
    with pytest.raises(ValueError, match="_probabilities must return the propensity of each class"):
        learner.guess([1.0, 2.0], among=[0, 1])
    assert not learner._started, "nothing has begun"


@pytest.mark.parametrize("check", [*LEARNER_CHECKS, *FOUNDATION_CHECKS], ids=lambda check: check.__name__)
def test_it_keeps_the_contract(check: Any) -> None:
    check(EpsPerceptron(0.2))


@pytest.mark.parametrize("engine", ["stream", "rounds"])
@pytest.mark.parametrize("rounds", [1, 10])
def test_an_error_inside_it_loses_nothing(engine: str, rounds: int) -> None:
    problem = noisy_problem(60)
    learner = Fragile(classes=4)
    onebit.play(learner, problem.X[:25], problem.y[:25])
    if rounds == 1:
        for x in problem.X[25:29]:
            learner.guess(x)
    known = snapshot(learner)
    with pytest.raises(RuntimeError, match="out of luck"):
        onebit.play(learner, problem.X[29 : 29 + rounds], problem.y[29 : 29 + rounds], fresh=False, engine=engine)
    assert snapshot(learner) == known


class LastWords:
    """Looks at a learner when it is thrown away itself."""

    def __init__(self, learner: Learner, seen: list[bool]) -> None:
        self._learner, self._scored_round = learner, seen

    def __del__(self) -> None:
        self._scored_round.append("_lock" in vars(self._learner))


class Littering(EpsPerceptron):
    """Adds something to itself before it fails."""

    seen: list[bool]

    def _update(self, guess: Guess, answer: Answer) -> bool:
        if self.n_rounds_ == 30:
            self._litter = LastWords(self, self.seen)
            raise RuntimeError("out of luck")
        return True


def test_an_error_inside_it_never_takes_the_lock_away() -> None:
    """Other threads look for it at any time."""
    problem = noisy_problem(60)
    learner = Littering(classes=4)
    Littering.seen = []
    with pytest.raises(RuntimeError, match="out of luck"):
        onebit.play(learner, problem.X, problem.y)
    gc.collect()
    assert Littering.seen == [True]
    assert not hasattr(learner, "_litter")


def test_it_can_be_saved() -> None:
    problem = noisy_problem(60)
    learner = EpsPerceptron(classes=4)
    onebit.play(learner, problem.X[:30], problem.y[:30])
    twin = pickle.loads(pickle.dumps(learner))
    for player in (learner, twin):
        player.partial_fit(problem.X[30:], problem.y[30:])
    assert snapshot(twin) == snapshot(learner)


def test_a_learner_without_anything_says_what_is_missing() -> None:
    class Empty(Learner):
        """Nothing.

        Parameters
        ----------
        classes, seed
            As for every learner.
        """

        def __init__(self, *, classes: Any = None, seed: int = 0) -> None:
            self.classes = classes
            self.seed = seed

    with pytest.raises(TypeError, match="_new_state"):
        Empty(classes=2).guess([1.0])


def test_a_fresh_start_that_fails_loses_nothing() -> None:
    class Forgetful(Fragile):
        """Changes what it keeps in place when it starts.

        Parameters
        ----------
        rate, classes, seed
            As for its parent.
        """

        def _start(self) -> None:
            if hasattr(self, "_weights"):
                self._weights[:] = 0.0
            else:
                super()._start()

    problem = noisy_problem(60)
    learner = Forgetful(classes=4)
    onebit.play(learner, problem.X[:25], problem.y[:25])
    known = snapshot(learner)
    with pytest.raises(RuntimeError, match="out of luck"):
        onebit.play(learner, problem.X, problem.y)
    assert snapshot(learner) == known


def test_a_position_that_is_none_is_an_error() -> None:
    class Astray(EpsPerceptron):
        """Names a class that is not there.

        Parameters
        ----------
        rate, classes, seed
            As for its parent.
        """

        def _choose(self, row: Rows, round: int) -> tuple[int, bool, float]:
            return -1, False, 1.0

    with pytest.raises(ValueError, match="among the 3 classes; got -1"):
        Astray(classes=3).guess([1.0, 2.0])


def test_what_it_keeps_still_refers_to_it_after_an_error() -> None:
    class Helped(Fragile):
        """Has a helper that knows it.

        Parameters
        ----------
        rate, classes, seed
            As for its parent.
        """

        def _start(self) -> None:
            super()._start()
            self.helper = [self]

    problem = noisy_problem(60)
    learner = Helped(classes=4)
    onebit.play(learner, problem.X[:25], problem.y[:25])
    with pytest.raises(RuntimeError, match="out of luck"):
        onebit.play(learner, problem.X[25:], problem.y[25:], fresh=False)
    assert learner.helper[0] is learner
