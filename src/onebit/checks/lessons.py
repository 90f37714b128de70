"""Contract checks: added classes, allowed labels, and known rounds."""

from typing import Any
from unittest import SkipTest

import numpy as np
import scipy.sparse

from onebit.checks.problems import fresh, noisy_problem, raises_value_error, snapshot, tell
from onebit.learners import Learner
from onebit.playing import play


def _begun(learner: Learner, rounds: int = 60, **settings: Any) -> Learner:
    problem = noisy_problem(rounds)
    player = fresh(learner, **{"classes": problem.n_classes, **settings})
    for x, label in zip(problem.X, problem.y, strict=True):
        tell(player, player.guess(x), label)
    return player


def _joined(player: Learner, label: Any) -> Learner:
    """Add a class, or skip the check if the learner refuses new classes."""
    before = snapshot(player)
    try:
        player.add_class(label)
    except ValueError as error:
        assert "cannot take a new class" in str(error), f"add_class was refused: {error}"
        assert snapshot(player) == before, "a refused class changed the learner"
        raise SkipTest("it cannot take a new class") from error
    return player


def check_only_allowed_labels_are_guessed(learner: Learner) -> None:
    """`among` restricts the labels that may be guessed; propensities are exact, and nothing else changes."""
    player, problem = _begun(learner), noisy_problem(90)
    known = snapshot(player)
    for x, label in zip(problem.X[60:], problem.y[60:], strict=True):
        other = (int(label) + 1) % problem.n_classes
        chances = player.probabilities(x, among=[other, int(label)])
        assert set(np.flatnonzero(chances)) <= {other, int(label)}, "a label that is not allowed has a chance"
        assert abs(chances.sum() - 1.0) < 1e-12
        assert player.probabilities(x, among=[other]).tolist() == np.eye(problem.n_classes)[other].tolist()
        assert snapshot(player) == known, "looking changed the learner"
        guess = player.guess(x, among=[other, int(label)])
        assert guess.label in (other, label)
        assert guess.propensity == chances[guess.index], "the ticket's propensity is not the label's"
        tell(player, guess, int(label))
        known = snapshot(player)
    many = player.guess_many(problem.X[:3], among=(label for label in (0, 1)))
    assert {guess.label for guess in many} <= {0, 1}, "labels that can be read only once are allowed in one round only"
    known = snapshot(player)
    for bad in ([], ["no label"], 1, "01", [[0, 1]]):
        assert raises_value_error(player.guess, problem.X[0], among=bad), f"accepted among={bad!r}"
        assert raises_value_error(player.probabilities, problem.X[0], among=bad), f"accepted among={bad!r}"
    assert snapshot(player) == known, "a refused list of labels changed the learner"


def check_chances_among_match_frequencies(learner: Learner, guesses: int = 2000) -> None:
    """How often each allowed label is guessed agrees with `probabilities`, within five standard errors."""
    player, x, among = _begun(learner), noisy_problem(61).X[60], [0, 2]
    expected = player.probabilities(x, among)
    drawn = np.bincount([player.guess(x, among).index for _ in range(guesses)], minlength=len(expected)) / guesses
    tolerance = 5.0 * np.sqrt(expected * (1.0 - expected) / guesses) + 1e-12
    assert np.all(np.abs(drawn - expected) <= tolerance), f"guessed {drawn}, but probabilities are {expected}"


def check_many_rows_are_as_many_guesses(learner: Learner) -> None:
    """`guess_many` and `probabilities` of many rows equal one call for each row."""
    rows = noisy_problem(70).X[60:]
    one_by_one, at_once = _begun(learner), _begun(learner)
    chances = np.stack([one_by_one.probabilities(x) for x in rows])
    assert np.array_equal(at_once.probabilities(rows), chances)
    assert np.array_equal(at_once.probabilities(rows[:1]), chances[:1])
    singly = [one_by_one.guess(x) for x in rows]
    together = at_once.guess_many(rows)
    assert [guess[:5] for guess in together] == [guess[:5] for guess in singly]
    known = snapshot(at_once)
    assert raises_value_error(at_once.guess_many, np.vstack([rows, rows[:1] * np.nan]))
    assert snapshot(at_once) == known, "a refused batch changed the learner"
    for player, tickets in ((one_by_one, singly), (at_once, together)):
        for guess in reversed(tickets):
            tell(player, guess, 0)
    assert snapshot(at_once) == snapshot(one_by_one)


def check_a_class_may_join(learner: Learner) -> None:
    """A class added before the first round is like one given at the start; later ones keep the state."""
    problem = noisy_problem(80)
    born, late = fresh(learner, classes=problem.n_classes + 1), fresh(learner, classes=problem.n_classes)
    late.begin(problem.X.shape[1])
    _joined(late, problem.n_classes)
    born.begin(problem.X.shape[1])
    for player in (born, late):
        for x, label in zip(problem.X, problem.y, strict=True):
            tell(player, player.guess(x), label)
    assert snapshot(late) == snapshot(born), "a class that joined before the first round is not like the others"
    player = _begun(learner)
    open_ticket = player.guess(problem.X[0])
    counts = snapshot(player)["counts"]
    _joined(player, "new")
    assert player.classes_.tolist()[-1] == "new"
    assert len(player.classes_) == problem.n_classes + 1
    assert snapshot(player)["counts"] == counts
    for bad in ("new", 0, [1, 2], float("nan")):
        assert raises_value_error(player.add_class, bad), f"add_class accepted {bad!r}"
    assert player.guess(problem.X[1], among=["new"]).label == "new"
    tell(player, open_ticket, int(problem.y[0]))
    more = np.array([*problem.y[:20].tolist(), "new"], dtype=object)
    play(player, problem.X[:21], more, fresh=False)
    assert player.decision_function(problem.X).shape == (len(problem.X), problem.n_classes + 1)


def check_classes_may_grow(learner: Learner) -> None:
    """With classes="grow" labels are added when the application proposes them or gives them as feedback."""
    problem = noisy_problem(30)
    player = fresh(learner, classes="grow")
    assert raises_value_error(player.guess, problem.X[0]), "guessed without knowing any label"
    guess = player.guess(problem.X[0], among=["a"])
    assert (guess.label, player.classes_.tolist()) == ("a", ["a"])
    tell(player, guess, "a")  # type: ignore[arg-type]
    _joined(player, "b")
    assert player.guess(problem.X[1], among=iter(["c", "b"])).label in ("b", "c")
    assert player.classes_.tolist() == ["a", "b", "c"]
    known = snapshot(player)
    assert raises_value_error(player.guess, problem.X[1] * np.nan, among=["d"])
    assert player.classes_.tolist() == ["a", "b", "c"], "a refused round brought a label"
    assert snapshot(player) == known
    play(player, problem.X, np.array(list("abcde"))[np.arange(30) % 5], fresh=False)
    assert player.classes_.tolist() == list("abcde")


def check_known_rounds_teach(learner: Learner) -> None:
    """`learn_from` and `learn_labels` count no rounds, are the same for dense and sparse rows, and all or nothing."""
    problem = noisy_problem(80)
    taught, other = (fresh(learner, classes=problem.n_classes) for _ in range(2))
    try:
        taught.learn_labels(problem.X, problem.y)
    except ValueError as error:
        assert "cannot learn from rounds that others played" in str(error), f"learn_labels was refused: {error}"
        raise SkipTest("it cannot learn from rounds that others played") from error
    assert taught.n_rounds_ == taught.n_mistakes_ == taught.n_uniform_guesses_ == 0
    other.learn_from(problem.X, problem.y, np.ones(80, dtype=bool), np.ones(80))
    assert snapshot(taught) == snapshot(other), "a label that is known is not what was tried for sure, and right"
    if getattr(learner, "scale", None) is None:
        sparse = fresh(learner, classes=problem.n_classes).learn_labels(scipy.sparse.csr_array(problem.X), problem.y)
        assert snapshot(sparse) == snapshot(taught)
    known = snapshot(taught)
    wrong = (problem.y + 1) % problem.n_classes
    for bad in (
        (problem.X, wrong, np.zeros(79, dtype=bool), 0.5),
        (problem.X, wrong, 1, 0.5),
        (problem.X, wrong, False, 0.0),
        (problem.X, [*wrong[:-1], 99], False, 0.5),
        (np.vstack([problem.X[:-1], problem.X[:1] * np.nan]), wrong, False, 0.5),
        (problem.X[:, 1:], wrong, False, 0.5),
    ):
        assert raises_value_error(taught.learn_from, *bad), f"learn_from accepted {bad[1:]!r:.80}"
    assert snapshot(taught) == known, "refused rounds changed the learner"
    taught.learn_from(problem.X, wrong, False, 0.5)
    tell(taught, taught.guess(problem.X[0]), int(problem.y[0]))
    assert taught.n_rounds_ == 1
