"""Contract checks: the protocol of every learner."""

import pickle
from unittest import SkipTest

import numpy as np
from sklearn.base import clone

from onebit.checks.problems import fresh, guesses_of, noisy_problem, raises_value_error, snapshot, tell
from onebit.inputs import Floats
from onebit.learners import Learner
from onebit.playing import play


def _trained(learner: Learner, rounds: int = 120) -> tuple[Learner, Floats]:
    problem = noisy_problem(rounds + 20)
    player = fresh(learner, classes=problem.n_classes)
    play(player, problem.X[:rounds], problem.y[:rounds], seed=3)
    return player, problem.X[rounds:]


def check_same_seed_same_trace(learner: Learner) -> None:
    """Two runs with the same seed are identical, and share no state."""
    problem = noisy_problem(300)
    one, two = fresh(learner), fresh(learner)
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
    watched, left_alone = (fresh(learner, classes=problem.n_classes) for _ in range(2))
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
    """How often each label is guessed agrees with `probabilities`, within five standard errors."""
    player, rest = _trained(learner)
    for x in rest[:4]:
        expected = player.probabilities(x)
        drawn = np.bincount([player.guess(x).index for _ in range(guesses)], minlength=len(expected)) / guesses
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
    kept, spoiled = (fresh(learner, classes=problem.n_classes) for _ in range(2))
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
    player, problem = fresh(learner), noisy_problem(40)
    blank = fresh(learner)
    play(player, problem.X, problem.y)
    for original, copies in ((learner, [clone(learner)]), (blank, [player])):
        for copy in (*copies, *(pickle.loads(pickle.dumps(each)) for each in (original, *copies))):
            assert copy.get_params(deep=False) == original.get_params(deep=False), f"settings changed: {copy!r}"
            assert repr(copy) == repr(original)
    assert repr(learner).startswith(type(learner).__name__ + "(")


def check_settings_count_from_the_next_fresh_start(learner: Learner) -> None:
    """`set_params` does not affect the current run, and applies from the next fresh start."""
    problem, half = noisy_problem(120), 60

    def go_on(player: Learner, way: str) -> None:
        if way == "guess":
            for x, label in zip(problem.X[half:], problem.y[half:], strict=True):
                tell(player, player.guess(x), label)
        else:
            play(player, problem.X[half:], problem.y[half:], fresh=False, engine=way)

    others = (each.get_params(deep=False) for each in type(learner).examples())
    new = next((each for each in others if each != learner.get_params(deep=False)), {})
    new = {**new, "classes": problem.n_classes, "seed": 99}
    for way in ("guess", "stream", "rounds"):
        untouched, changed = fresh(learner, classes=problem.n_classes), fresh(learner, classes=problem.n_classes)
        for player in (untouched, changed):
            play(player, problem.X[:half], problem.y[:half])
        changed.set_params(**new)
        for player in (untouched, changed):
            go_on(player, way)
        assert snapshot(changed) == snapshot(untouched), f"set_params changed a run that {way!r} went on with"
        restarted = fresh(learner, **new)
        for player in (restarted, changed):
            play(player, problem.X, problem.y)
        assert snapshot(changed) == snapshot(restarted), "a fresh start did not take the new settings"


def check_bad_features_change_nothing(learner: Learner) -> None:
    """NaN, infinities, wrong lengths, shapes and types are errors with a message, without side effects."""
    player, rest = _trained(learner)
    known, good = snapshot(player), rest[0]
    poisoned = [np.where(np.arange(len(good)) == 2, bad, good) for bad in (np.nan, np.inf, -np.inf)]
    for bad in (*poisoned, good[:-1], np.tile(good, (2, 1)), good.astype(complex), np.array(["a"] * len(good)), []):
        are_many = isinstance(bad, np.ndarray) and bad.ndim == 2
        for action in (player.guess,) if are_many else (player.guess, player.probabilities):
            assert raises_value_error(action, bad), f"{action.__name__} accepted {bad!r}"
    rows = np.stack([good, poisoned[0]])
    for engine in ("stream", "rounds"):
        assert raises_value_error(play, player, rows, [0, 1], fresh=False, engine=engine)
        assert raises_value_error(play, player, rest[:2], [0, 99], fresh=False, engine=engine)
        assert raises_value_error(play, player, rest[:0], [], engine=engine)
        assert raises_value_error(play, player, rest[:2], [0], engine=engine)
    assert snapshot(player) == known, "a refused input changed the learner"


def check_labels_may_be_anything(learner: Learner) -> None:
    """Labels may be strings; without classes interactive use is an error with a clear message."""
    problem = noisy_problem(120)
    names = np.array(["delta", "alpha", "gamma", "beta"])[problem.y]
    player = fresh(learner)
    guesses = guesses_of(player, problem.X, names, seed=6)
    assert set(guesses.tolist()) <= set(names.tolist())
    assert player.n_mistakes_ == int(np.sum(guesses != names))
    assert player.guess(problem.X[0]).label in names.tolist()
    assert set(player.predict(problem.X).tolist()) <= set(names.tolist())
    assert raises_value_error(fresh(learner, classes=None).guess, problem.X[0]), "guessed without knowing the classes"
    for bad in (0, -3, [], ["a", "a"], "abc"):
        assert raises_value_error(fresh(learner, classes=bad).guess, problem.X[0]), f"accepted classes={bad!r}"
    only = fresh(learner, classes=["just one"])
    assert only.guess(problem.X[0]).label == "just one"
