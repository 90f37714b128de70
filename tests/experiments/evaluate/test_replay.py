"""What a learner hears of a log."""

from typing import Any

import numpy as np
import pytest

import onebit
from onebit.experiments.evaluate import Candidate, logged_rounds, replay
from onebit.game import Answer, Guess
from onebit.inputs import Floats, Rows


class Listener(onebit.Learner):
    """Says one label always, and notes what it hears."""

    heard: list[tuple[Any, ...]] = []  # noqa: RUF012 - of all runs: a replay makes a learner of its own

    def __init__(self, says: int = 0, *, classes: Any = None, seed: int = 0) -> None:
        self.says, self.classes, self.seed = says, classes, seed

    def _start(self) -> None:
        Listener.heard.clear()

    def _choose(self, row: Rows, round: int) -> tuple[int, bool, float]:
        return self.says, False, 1.0

    def _probabilities(self, row: Rows) -> Floats:
        chances = np.zeros(len(self.classes_))
        chances[self.says] = 1.0
        return chances

    def _update(self, guess: Guess, answer: Answer) -> bool:
        Listener.heard.append((guess.round, "own", answer.label, answer.correct))
        return True

    def _learn_from_log(self, row: Rows, answer: Answer, propensity: float | None) -> bool:
        Listener.heard.append((int(np.asarray(row)[0, 0]), "logged", answer.label, answer.correct, propensity))
        return True


X = np.arange(5.0)[:, None]
# It says "a": same and right, other is right, same and wrong, other is wrong, nobody said.
LOG = logged_rounds(
    X, ["a", "b", "a", "b", "a"], [True, True, False, False, None], [0.5, 0.4, 0.3, 0.2, 0.1], classes=["a", "b", "c"]
)


def test_facts_are_heard_whatever_was_said() -> None:
    guesses = replay(LOG, Candidate("", Listener()), hears="facts", preprocessing="none")
    assert guesses.tolist() == [0] * 5
    assert Listener.heard == [
        (0, "logged", 0, True, 0.5),
        (1, "logged", 1, True, 0.4),
        (2, "logged", 0, False, 0.3),
        (3, "logged", 1, False, 0.2),
    ]


def test_its_own_answers_are_heard_where_they_are_known() -> None:
    replay(LOG, Candidate("", Listener()), hears="own", preprocessing="none")
    assert Listener.heard == [(0, "own", 0, True), (1, "own", 0, False), (2, "own", 0, False)]


def test_nothing_is_heard() -> None:
    replay(LOG, Candidate("", Listener()), hears="nothing", preprocessing="none")
    assert Listener.heard == []
    with pytest.raises(ValueError, match="hears must be one of 'facts', 'own', 'nothing'; got 'all'"):
        replay(LOG, Candidate("", Listener()), hears="all")


def test_a_log_of_its_own_game_gives_its_own_game() -> None:
    """Where it always says what was logged, a replay that hears its own answers is the game itself."""
    X, y = onebit.streams.paper_strong(rounds=200, seed=3)
    trace = onebit.play(onebit.BanditPerceptron(classes=9), X, y, seed=5, keep_guesses=True)
    assert trace.guesses is not None
    log = logged_rounds(X, trace.guesses, trace.guesses == y, classes=9)
    again = replay(log, Candidate("", onebit.BanditPerceptron()), hears="own", preprocessing="none", seed=5)
    np.testing.assert_array_equal(again, trace.guesses)


def test_one_that_is_told_labels_hears_those_that_are_known() -> None:
    learner = onebit.MulticlassPerceptron()
    for hears in ("facts", "own"):
        assert len(replay(LOG, Candidate("", learner), hears=hears)) == 5


def test_only_allowed_labels_are_said() -> None:
    log = logged_rounds(
        X,
        ["a", "b", "c", "b", "a"],
        [True, False, False, True, None],
        among=[["a"], ["b", "c"], None, ["b"], ["a", "c"]],
    )
    saved = onebit.BanditPerceptron(classes=["c", "b", "a"]).learn_labels(X, ["a", "b", "c", "a", "b"])
    for candidate in (Candidate("", onebit.UniformGuess()), Candidate("", saved, is_frozen=True)):
        guesses = replay(log, candidate, preprocessing="none")
        assert guesses[0] == 0
        assert guesses[1] in (1, 2)
        assert guesses[3] == 1
        assert guesses[4] in (0, 2)


def test_a_saved_model_stays_what_it_is() -> None:
    learner = onebit.BanditPerceptron(classes=[1, 2, 3]).learn_labels(X, [1, 2, 2, 3, 3])
    before = learner.learned()
    log = logged_rounds(X, ["1", "3", "1", "3", "1"], [True, True, False, False, None])
    guesses = replay(log, Candidate("model", learner, is_frozen=True), hears="facts")
    # The model's 2 is no label of the log; 1 and 3 are "1" and "3" there.
    said = {1: 0, 2: -1, 3: 1}
    assert guesses.tolist() == [said[label] for label in learner.predict(X).tolist()]
    assert learner.n_rounds_ == 0
    for name, array in before.items():
        np.testing.assert_array_equal(array, learner.learned()[name])


def test_a_model_that_lacks_a_label_or_has_other_columns_is_refused() -> None:
    learner = onebit.BanditPerceptron(classes=["a", "b"]).learn_labels(X, ["a", "b", "a", "b", "a"])
    with pytest.raises(ValueError, match=r"model does not know the label 'c' of the log; it knows .*Leave it out"):
        replay(LOG, Candidate("model", learner, is_frozen=True))
    wide = onebit.BanditPerceptron(classes=["a", "b", "c"]).learn_labels(np.ones((3, 2)), ["a", "b", "c"])
    with pytest.raises(ValueError, match="model: X has 1 features, but BanditPerceptron is expecting 2"):
        replay(LOG, Candidate("model", wide, is_frozen=True))


def test_who_needs_chances_says_so() -> None:
    log = logged_rounds(X, ["a", "b", "a", "b", "a"], [True, True, False, False, None])
    with pytest.raises(ValueError, match="Banditron, round 0: propensities are needed"):
        replay(log, Candidate("Banditron", onebit.Banditron()))
