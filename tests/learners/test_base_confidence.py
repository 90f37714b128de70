"""Confidence and labels in the protocol of every learner."""

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import onebit
from onebit.checks.problems import noisy_problem
from onebit.kernels import Gaussian
from onebit.learners import all_learners
from onebit.learners.run import all_or_nothing

PROBLEM = noisy_problem(300, 3, 4)

LEARNERS_WITH_SCORES = [
    onebit.BanditPerceptron(),
    onebit.BanditPerceptron(Gaussian(0.7)),
    onebit.Banditron(),
    onebit.EpsilonGreedy(),
    onebit.BanditSVM(None),
]


def play_with_labels(learner: onebit.Learner, n: int, ask_every: int = 3) -> list[onebit.Guess]:
    """Play rounds in which every so many is answered by its label."""
    guesses = []
    for t in range(n):
        guess = learner.guess(PROBLEM.X[t])
        if t % ask_every == 0:
            assert learner.label(guess, int(PROBLEM.y[t])) == (guess.index == PROBLEM.y[t])
        else:
            learner.tell(guess, bool(guess.index == PROBLEM.y[t]))
        guesses.append(guess)
    return guesses


@pytest.mark.parametrize("learner", LEARNERS_WITH_SCORES, ids=repr)
def test_guesses_have_a_confidence_that_is_saved_and_copied(learner: onebit.Learner, tmp_path: Path) -> None:
    player = clone(learner).set_params(classes=PROBLEM.n_classes)
    guesses = play_with_labels(player, 100)
    assert guesses[0].confidence is None
    assert all(guess.confidence is not None and 0.0 < guess.confidence < 1.0 for guess in guesses[50:])
    x, rows = PROBLEM.X[100], PROBLEM.X[100:110]
    player.save(tmp_path / "model.onebit")
    twins = onebit.load(tmp_path / "model.onebit"), copy.deepcopy(player), pickle.loads(pickle.dumps(player))
    known = player.confidence(rows)
    assert ((known > 0.0) & (known < 1.0)).all()
    guess = player.guess(x)
    for twin in twins:
        assert np.array_equal(twin.confidence(rows), known)
        assert twin.guess(x).confidence == guess.confidence

    def played_in_vain() -> None:
        with all_or_nothing(player, fresh=False):
            play_with_labels(player, 20)
            raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        played_in_vain()
    assert np.array_equal(player.confidence(rows), known), "what was rolled back is forgotten"


def test_confidence_is_unknown_without_feedback_or_scores() -> None:
    learner = onebit.BanditPerceptron().fit(PROBLEM.X, PROBLEM.y)
    assert np.isnan(learner.confidence(PROBLEM.X[:3])).all(), "streams are played without it"
    uniform = onebit.UniformGuess(classes=3)
    for _ in range(100):
        uniform.tell(uniform.guess([1.0]), True)
    guess = uniform.guess([1.0])
    assert guess.confidence is None or guess.confidence > 0.5


def test_a_ranking_has_the_allowed_labels_by_score() -> None:
    learner = onebit.BanditPerceptron(classes=["a", "b", "c"])
    for x, label in zip(PROBLEM.X[:50], PROBLEM.y[:50], strict=True):
        learner.label(learner.guess(x), "abc"[label])
    guess = learner.guess(PROBLEM.X[0])
    by_score = [label for _, label in sorted(zip(-guess.scores, "abc", strict=True))]
    assert guess.ranking == by_score
    narrow = learner.guess(PROBLEM.X[0], among=["c", "a"])
    assert narrow.ranking == [label for label in by_score if label != "b"]
    assert onebit.Guess.from_json(guess.to_json()).ranking == []


@pytest.mark.parametrize("learner", LEARNERS_WITH_SCORES, ids=repr)
def test_a_label_is_feedback_first_and_a_known_round_second(learner: onebit.Learner) -> None:
    one, other = (clone(learner).set_params(classes=PROBLEM.n_classes) for _ in range(2))
    for x, label in zip(PROBLEM.X[:60], PROBLEM.y[:60].tolist(), strict=True):
        mine, theirs = one.guess(x), other.guess(x)
        assert one.label(mine.id, label) == (theirs.index == label)
        other.tell(theirs, theirs.index == label)
        if theirs.index != label:
            other.learn_labels([x], [label])
    for mine, theirs in zip(one._state.arrays, other._state.arrays, strict=True):
        assert np.array_equal(mine, theirs, equal_nan=True)
    assert one.n_mistakes_ == other.n_mistakes_


def test_a_label_of_no_class_is_refused_and_the_ticket_stays_open() -> None:
    learner = onebit.BanditPerceptron(classes=["a", "b"])
    guess = learner.guess([1.0])
    with pytest.raises(ValueError, match="label"):
        learner.label(guess, "c")
    learner.label(guess, "a")
    with pytest.raises(ValueError, match="not open"):
        learner.label(guess, "a")
    growing = onebit.BanditPerceptron(classes="grow")
    growing.label(growing.guess([1.0], among=["a", "b"]), "c")
    assert growing.classes_.tolist() == ["a", "b", "c"]


def test_a_learner_that_learns_from_labels_takes_one() -> None:
    learner = onebit.MulticlassPerceptron(classes=3)
    guess = learner.guess(PROBLEM.X[0])
    learner.label(guess, (guess.index + 1) % 3)
    assert learner.n_mistakes_ == 1


@pytest.mark.parametrize("classes", [PROBLEM.n_classes, "grow"])
def test_one_known_round_is_learned_without_a_copy_of_the_state(classes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = onebit.BanditSVM(None, classes=classes).fit(PROBLEM.X, PROBLEM.y)
    copies: list[Any] = []
    monkeypatch.setattr(type(learner._state), "bookmark", lambda self: copies.append(self))
    learner.learn_labels(PROBLEM.X[:1], PROBLEM.y[:1])
    learner.learn_from(PROBLEM.X[:1], PROBLEM.y[:1], True, 1.0)
    learner.label(learner.guess(PROBLEM.X[1]), int(PROBLEM.y[1]))
    assert not copies


def test_a_label_that_would_join_does_not_if_its_row_is_refused() -> None:
    learner = onebit.BanditSVM(None, classes="grow").fit(PROBLEM.X, PROBLEM.y)
    for learn in (learner.learn_labels, learner.partial_fit):
        with pytest.raises(ValueError, match="NaN"):
            learn(np.full((1, PROBLEM.X.shape[1]), np.nan), [99])
    assert 99 not in learner.classes_.tolist()


@pytest.mark.parametrize("cls", all_learners(), ids=lambda cls: str(cls.__name__))
def test_every_learner_asks_within_its_limit(cls: type[onebit.Learner]) -> None:
    learner = next(iter(cls.examples())).set_params(classes=PROBLEM.n_classes)
    trace = onebit.play(learner, PROBLEM.X, PROBLEM.y, wrong_at_most=0.1, keep_guesses=True)
    assert trace.by_round is not None
    assert trace.wrong_limit is not None
    assert trace.guesses is not None
    right, asked = trace.guesses == PROBLEM.y, trace.by_round.asked
    assert np.array_equal(right, trace.by_round.right)
    assert trace.mistakes == (~right & ~asked).sum() <= trace.wrong_limit + 1e-9
    assert (trace.asked, trace.suggestions_right) == (asked.sum(), (right & asked).sum())
    assert (trace.mistakes, learner.n_mistakes_) == (trace.curve.mistakes[-1], (~right).sum())
    guess, known = learner.guess(PROBLEM.X[0]), learner.confidence(PROBLEM.X[:20])
    assert len(guess.scores) in (0, PROBLEM.n_classes)
    assert sorted(guess.ranking) == list(range(len(guess.scores)))
    if learner._state.plays_by_hand:
        assert guess.confidence is None
        assert trace.asked == trace.rounds, "nothing is known of how sure it is"
        return
    assert guess.confidence is not None
    assert 0.0 < guess.confidence < 1.0
    assert ((known > 0.0) & (known < 1.0)).all()
    assert np.array_equal(learner.confidence(PROBLEM.X[:20]), known), "it is not learned from"
    assert (np.diff(guess.scores[guess.ranking]) <= 0.0).all()
    assert np.isnan(trace.by_round.confidence[:30]).all()
    assert not np.isnan(trace.by_round.confidence[30:]).any()
