"""Contract checks: the protocol of every learner, its labels and classes, known rounds, and its promises.

Bounds that hold in every run are asserted in every run, expected ones on average over fixed seeds.
"""

import math
import pickle
from collections.abc import Iterator
from typing import Any
from unittest import SkipTest

import numpy as np
import scipy.sparse
from sklearn.base import clone

from onebit.bounds import at_most
from onebit.bounds.claims import About
from onebit.checks.problems import (
    fresh,
    guesses_of,
    noisy_problem,
    play_by_hand,
    raises_value_error,
    separable_problem,
    snapshot,
    tell,
    twins,
)
from onebit.learners import Learner
from onebit.learners.base import in_linear_space
from onebit.playing import play

# Classes, features, margin: as large a margin as `separable_problem` has room for, and a smaller one for more classes.
_SETTINGS = ((2, 3, 0.3), (3, 4, 0.2), (5, 5, 0.12))


def _begun(learner: Learner, rounds: int = 60) -> Learner:
    problem = noisy_problem(rounds)
    return play_by_hand(fresh(learner, classes=problem.n_classes), problem.X, problem.y)


def check_same_seed_same_trace(learner: Learner) -> None:
    """Two runs with the same seed are identical, and share no state."""
    problem = noisy_problem(300)
    one, two = twins(learner, classes=None)
    first = guesses_of(one, problem.X, problem.y, seed=5)
    known = snapshot(one)
    second = guesses_of(two, problem.X, problem.y, seed=5)
    assert np.array_equal(first, second), "the same seed gave other guesses"
    assert snapshot(one) == known == snapshot(two), "two learners with the same game differ, or share memory"
    again = guesses_of(one, problem.X, problem.y, seed=5)
    assert np.array_equal(first, again), "playing again did not start afresh"


def check_probabilities_are_pure(learner: Learner) -> None:
    """`probabilities` changes nothing, before or during a run, and sums to one."""
    problem = noisy_problem(60)
    watched, left_alone = twins(learner)
    for x, label in zip(problem.X, problem.y, strict=True):
        before = watched.probabilities(x)
        assert before.shape == (problem.n_classes,)
        assert np.all(before >= 0.0)
        assert abs(before.sum() - 1.0) < 1e-12, f"probabilities sum to {before.sum()}"
        assert np.array_equal(before, watched.probabilities(x)), "looking twice gave two answers"
        guess, blind = watched.guess(x), left_alone.guess(x)
        assert guess.label == blind.label, "looking at probabilities changed a guess"
        assert guess.propensity == before[guess.index], "the ticket's propensity is not the label's"
        tell(watched, guess, label)
        tell(left_alone, blind, label)
    assert snapshot(watched) == snapshot(left_alone)


def check_probabilities_match_frequencies(learner: Learner, guesses: int = 3000) -> None:
    """How often each label is guessed agrees with `probabilities`, within five standard errors; also `among` some."""
    problem = noisy_problem(124)
    player = fresh(learner, classes=problem.n_classes)
    play(player, problem.X[:120], problem.y[:120], seed=3)
    for x, among in [*((x, None) for x in problem.X[120:]), (problem.X[123], [0, 2])]:
        expected = player.probabilities(x, among)
        drawn = np.bincount([player.guess(x, among).index for _ in range(guesses)], minlength=4) / guesses
        # Five standard errors, a few labels and rows: a false alarm in a million.
        tolerance = 5.0 * np.sqrt(expected * (1.0 - expected) / guesses) + 1e-12
        assert np.all(np.abs(drawn - expected) <= tolerance), f"guessed {drawn}, but probabilities are {expected}"


def check_inputs_are_untouched(learner: Learner) -> None:
    """Features and labels are never written to, and later changes to them do not reach the learner."""
    problem = noisy_problem(80)
    X, y = problem.X.copy(), problem.y.copy()
    X.flags.writeable = y.flags.writeable = False  # a write would be an error, not a silent change
    play(fresh(learner), X, y, seed=1)
    play(fresh(learner), X, y, seed=1, engine="rounds")
    assert np.array_equal(X, problem.X)
    assert np.array_equal(y, problem.y)
    kept, spoiled = twins(learner)
    for x, label in zip(problem.X, problem.y, strict=True):
        features = x.copy()
        guess, other = spoiled.guess(features), kept.guess(x)
        features[:] = 1e3
        tell(spoiled, guess, label)
        tell(kept, other, label)
    assert snapshot(spoiled) == snapshot(kept), "the learner kept the caller's array instead of a copy"


def check_label_reaches_only_through_correct(learner: Learner) -> None:
    """With bandit feedback, which label was right after a wrong guess makes no difference."""
    if learner.full_information:
        raise SkipTest("it is told the label")
    problem = noisy_problem(300, n_classes=4)
    first = guesses_of(fresh(learner, classes=4), problem.X, problem.y, seed=2)
    others = (problem.y + 1) % 4
    others = np.where(others == first, (others + 1) % 4, others)
    altered = np.where(first != problem.y, others, problem.y)
    for engine in ("stream", "rounds"):
        second = guesses_of(fresh(learner, classes=4), problem.X, altered, seed=2, engine=engine)
        assert np.array_equal(first, second), f"engine {engine!r} lets the label through"


def check_settings_survive(learner: Learner) -> None:
    """Settings survive clone, pickle and print, and playing does not change them."""
    problem = noisy_problem(40)
    player, blank = twins(learner, classes=None)
    play(player, problem.X, problem.y)
    for original, copies in ((learner, [clone(learner)]), (blank, [player])):
        for copy in (*copies, *(pickle.loads(pickle.dumps(each)) for each in (original, *copies))):
            assert copy.get_params(deep=False) == original.get_params(deep=False), f"settings changed: {copy!r}"
            assert repr(copy) == repr(original)
    assert repr(learner).startswith(type(learner).__name__ + "(")


def check_settings_count_from_the_next_fresh_start(learner: Learner) -> None:
    """`set_params` does not affect the current run, and applies from the next fresh start."""
    problem, half = noisy_problem(120), 60
    others = (each.get_params(deep=False) for each in type(learner).examples())
    new = next((each for each in others if each != learner.get_params(deep=False)), {})
    new = {**new, "classes": problem.n_classes, "seed": 99}
    for way in ("guess", "stream", "rounds"):
        untouched, changed = twins(learner)
        for player in (untouched, changed):
            play(player, problem.X[:half], problem.y[:half])
        changed.set_params(**new)
        for player in (untouched, changed):
            if way == "guess":
                play_by_hand(player, problem.X[half:], problem.y[half:])
            else:
                play(player, problem.X[half:], problem.y[half:], fresh=False, engine=way)
        assert snapshot(changed) == snapshot(untouched), f"set_params changed a run that {way!r} went on with"
        restarted = fresh(learner, **new)
        for player in (restarted, changed):
            play(player, problem.X, problem.y)
        assert snapshot(changed) == snapshot(restarted), "a fresh start did not take the new settings"


def check_estimator_face(learner: Learner) -> None:
    """`fit`, `predict`, `decision_function` and `score` are consistent, and `fit` resets the learner."""
    problem = noisy_problem(200)
    player = fresh(learner).fit(problem.X, problem.y)
    known = snapshot(player)
    scores = player.decision_function(problem.X)
    assert scores.shape == (200, problem.n_classes)
    assert np.array_equal(player.predict(problem.X), player.classes_[np.argmax(scores, axis=1)])
    assert 0.0 <= player.score(problem.X, problem.y) <= 1.0
    assert snapshot(player) == known, "predicting changed the learner"
    assert snapshot(player.fit(problem.X, problem.y)) == known, "fit did not start afresh"
    assert player.n_features_in_ == problem.X.shape[1]


def check_only_allowed_labels_are_guessed(learner: Learner) -> None:
    """`among` restricts the labels that may be guessed; propensities are exact, and nothing else changes."""
    player, problem = _begun(learner), noisy_problem(90)
    for x, label in zip(problem.X[60:], problem.y[60:].tolist(), strict=True):
        known, other = snapshot(player), (label + 1) % problem.n_classes
        chances = player.probabilities(x, among=[other, label])
        assert set(np.flatnonzero(chances)) <= {other, label}, "a label that is not allowed has a chance"
        assert abs(chances.sum() - 1.0) < 1e-12
        assert player.probabilities(x, among=[other]).tolist() == np.eye(problem.n_classes)[other].tolist()
        assert snapshot(player) == known, "looking changed the learner"
        guess = player.guess(x, among=[other, label])
        assert guess.label in (other, label)
        assert guess.propensity == chances[guess.index], "the ticket's propensity is not the label's"
        tell(player, guess, label)
    many = player.guess_many(problem.X[:3], among=(label for label in (0, 1)))
    assert {guess.label for guess in many} <= {0, 1}, "labels that can be read only once are allowed in one round only"
    known = snapshot(player)
    for bad in ([], ["no label"], 1, "01", [[0, 1]]):
        assert raises_value_error(player.guess, problem.X[0], among=bad), f"accepted among={bad!r}"
        assert raises_value_error(player.probabilities, problem.X[0], among=bad), f"accepted among={bad!r}"
    assert snapshot(player) == known, "a refused list of labels changed the learner"


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


def check_a_class_may_join(learner: Learner) -> None:
    """A class added before the first round is like one given at the start; later ones keep the state."""
    problem = noisy_problem(80)
    K = problem.n_classes
    born, late = fresh(learner, classes=K + 1), fresh(learner, classes=K)
    for player in (born, late):
        player.begin(problem.X.shape[1])
    for player in (born, _joined(late, K)):
        play_by_hand(player, problem.X, problem.y)
    assert snapshot(late) == snapshot(born), "a class that joined before the first round is not like the others"
    player = _begun(learner)
    open_ticket = player.guess(problem.X[0])
    counts = snapshot(player)["counts"]
    _joined(player, "new")
    assert player.classes_.tolist()[-1] == "new"
    assert len(player.classes_) == K + 1
    assert snapshot(player)["counts"] == counts
    for bad in ("new", 0, [1, 2], float("nan")):
        assert raises_value_error(player.add_class, bad), f"add_class accepted {bad!r}"
    assert player.guess(problem.X[1], among=["new"]).label == "new"
    tell(player, open_ticket, int(problem.y[0]))
    more = np.array([*problem.y[:20].tolist(), "new"], dtype=object)
    play(player, problem.X[:21], more, fresh=False)
    assert player.decision_function(problem.X).shape == (len(problem.X), K + 1)


def check_classes_may_grow(learner: Learner) -> None:
    """With classes="grow" labels are added when the application proposes them or gives them as feedback."""
    problem = noisy_problem(30)
    player = fresh(learner, classes="grow")
    assert raises_value_error(player.guess, problem.X[0]), "guessed without knowing any label"
    guess = player.guess(problem.X[0], among=["a"])
    assert (guess.label, player.classes_.tolist()) == ("a", ["a"])
    tell(player, guess, "a")
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
    X, y = problem.X, problem.y
    taught, other = twins(learner)
    try:
        taught.learn_labels(X, y)
    except ValueError as error:
        assert "cannot learn from rounds that others played" in str(error), f"learn_labels was refused: {error}"
        raise SkipTest("it cannot learn from rounds that others played") from error
    assert taught.n_rounds_ == taught.n_mistakes_ == taught.n_uniform_guesses_ == 0
    other.learn_from(X, y, np.ones(80, dtype=bool), np.ones(80))
    assert snapshot(taught) == snapshot(other), "a label that is known is not what was tried for sure, and right"
    if getattr(learner, "scale", None) is None:
        sparse = fresh(learner, classes=problem.n_classes).learn_labels(scipy.sparse.csr_array(X), y)
        assert snapshot(sparse) == snapshot(taught)
    known, wrong = snapshot(taught), (y + 1) % problem.n_classes
    for bad in (
        (X, wrong, np.zeros(79, dtype=bool), 0.5),
        (X, wrong, 1, 0.5),
        (X, wrong, False, 0.0),
        (X, [*wrong[:-1], 99], False, 0.5),
        (np.vstack([X[:-1], X[:1] * np.nan]), wrong, False, 0.5),
        (X[:, 1:], wrong, False, 0.5),
    ):
        assert raises_value_error(taught.learn_from, *bad), f"learn_from accepted {bad[1:]!r:.80}"
    assert snapshot(taught) == known, "refused rounds changed the learner"
    taught.learn_from(X, wrong, False, 0.5)
    tell(taught, taught.guess(X[0]), int(y[0]))
    assert taught.n_rounds_ == 1


def _promised(learner: Learner, about: About, n_classes: int, n_features: int, margin: float) -> float:
    """Return a learner's promise on `separable_problem`; infinity if it has none."""
    # Its margin is known in R^d only.
    if not in_linear_space(learner):
        return math.inf
    return at_most(learner.promise(n_classes=n_classes, n_features=n_features, radius=1.0, margin=margin), about)


def _settings_with_a_promise(learner: Learner, *kinds: About) -> Iterator[tuple[int, int, float]]:
    """Yield the settings for which a learner promises something; skip the check if there is none."""
    found = [each for each in _SETTINGS if min(_promised(learner, about, *each) for about in kinds) < math.inf]
    if not found:
        raise SkipTest(f"it promises nothing about {' or '.join(kinds)} in R^d")
    yield from found


def check_promises_that_hold_always(learner: Learner) -> None:
    """Updates and mistakes never exceed what the theorem promises on separable data of known margin."""
    for setting in _settings_with_a_promise(learner, "updates", "mistakes"):
        updates, mistakes = _promised(learner, "updates", *setting), _promised(learner, "mistakes", *setting)
        for seed in range(5):
            problem = separable_problem(1500, *setting, seed)
            trace = play(fresh(learner), problem.X, problem.y, seed=seed)
            assert trace.updates <= updates, f"{trace.updates} updates; promised at most {updates}"
            assert trace.mistakes <= mistakes, f"{trace.mistakes} mistakes; promised at most {mistakes}"


def check_promises_that_hold_late(learner: Learner) -> None:
    """The bound on updates holds however late feedback comes."""
    updates = _promised(learner, "updates", 3, 4, 0.2)
    if updates == math.inf:
        raise SkipTest("it promises nothing about updates in R^d")
    problem = separable_problem(2000, 3, 4, 0.2)
    for late in (100, 2000):
        player = fresh(learner, classes=3)
        for start in range(0, 2000, late):
            tickets = [player.guess(x) for x in problem.X[start : start + late]]
            labels = problem.y[start : start + late].tolist()
            # The last guess is answered first: as late and as much out of order as can be.
            for ticket, label in zip(reversed(tickets), reversed(labels), strict=True):
                tell(player, ticket, label)
        assert player.n_updates_ <= updates, f"{player.n_updates_} updates; promised at most {updates}"


def check_promises_that_hold_on_average(learner: Learner, runs: int = 20) -> None:
    """Mean mistakes over fixed seeds stay under the expected bound, within three standard errors."""
    for setting in _settings_with_a_promise(learner, "expected mistakes"):
        expected, problem = _promised(learner, "expected mistakes", *setting), separable_problem(1500, *setting)
        counts = [play(fresh(learner), problem.X, problem.y, seed=seed).mistakes for seed in range(runs)]
        # Three standard errors: a right promise fails one time in 700, and the seeds are fixed.
        allowed = expected + 3.0 * np.std(counts, ddof=1) / math.sqrt(runs)
        assert np.mean(counts) <= allowed, f"{np.mean(counts)} mistakes on average; promised {expected}"
