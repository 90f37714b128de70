"""What every learner owes its player, whatever it learns."""

import pickle
import threading
from typing import Any

import numpy as np

from onebit.checks.problems import fresh, guesses_of, noisy_problem, snapshot
from onebit.inputs import Floats
from onebit.learners import Learner
from onebit.play import play


def _raises_value_error(action: Any, *arguments: Any, **named: Any) -> bool:
    try:
        action(*arguments, **named)
    except ValueError as error:
        return bool(str(error))
    return False


def _tell(learner: Learner, guess: Any, label: int) -> None:
    if learner.hears_label:
        learner.tell(guess, guess.label == label, label=label)
    else:
        learner.tell(guess, guess.label == label)


def _trained(learner: Learner, rounds: int = 120) -> tuple[Learner, Floats]:
    problem = noisy_problem(rounds + 20)
    player = fresh(learner, classes=problem.n_classes)
    play(player, problem.X[:rounds], problem.y[:rounds], seed=3)
    return player, problem.X[rounds:]


def check_same_seed_same_trace(learner: Learner) -> None:
    """Two games with the same seed are the same game, and share nothing."""
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
    """`probabilities` changes nothing, before or during a game, and sums to one."""
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
        assert guess.probability == before[guess.index], "the ticket's probability is not the label's"
        _tell(watched, guess, label)
        _tell(left_alone, blind, label)
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
        _tell(spoiled, guess, label)
        _tell(kept, other, label)
    assert snapshot(spoiled) == snapshot(kept), "the learner kept the caller's array instead of a copy"


def check_label_reaches_only_through_correct(learner: Learner) -> None:
    """In the bandit game, which label was right after a wrong guess makes no difference."""
    if learner.hears_label:
        return
    problem = noisy_problem(300, n_classes=4)
    first = guesses_of(fresh(learner, classes=4), problem.X, problem.y, seed=2)
    others = (problem.y + 1) % 4
    others = np.where(others == first, (others + 1) % 4, others)
    altered = np.where(first != problem.y, others, problem.y)
    for engine in ("stream", "rounds"):
        second = guesses_of(fresh(learner, classes=4), problem.X, altered, seed=2, engine=engine)
        assert np.array_equal(first, second), f"engine {engine!r} lets the label through"


def check_a_guess_is_told_once(learner: Learner) -> None:
    """Telling twice, telling a stranger's guess or something else is an error that changes nothing."""
    problem = noisy_problem(30)
    player, stranger = (fresh(learner, classes=problem.n_classes) for _ in range(2))
    for x, label in zip(problem.X, problem.y, strict=True):
        guess = player.guess(x)
        _tell(player, guess, label)
    foreign = stranger.guess(problem.X[0])
    known = snapshot(player)
    assert _raises_value_error(_tell, player, guess, problem.y[-1]), "a guess was told twice"
    assert _raises_value_error(_tell, player, foreign, 0), "a foreign guess was accepted"
    assert _raises_value_error(player.tell, "refund", True), "something that is no guess was accepted"
    open_guess = player.guess(problem.X[0])
    assert _raises_value_error(player.tell, open_guess, "yes"), "correct='yes' was accepted"
    assert snapshot(player)["counts"][1:3] == known["counts"][1:3]
    assert {k: v for k, v in snapshot(player).items() if k != "counts"} == {
        k: v for k, v in known.items() if k != "counts"
    }, "a refused tell changed the learner"
    _tell(player, open_guess, 0)


def check_feedback_may_come_late_or_never(learner: Learner) -> None:
    """Answers may come in any order, or not at all; nothing breaks and what comes counts."""
    problem = noisy_problem(60)
    player = fresh(learner, classes=problem.n_classes)
    tickets = [player.guess(x) for x in problem.X]
    order = np.random.default_rng(0).permutation(60)  # the last twenty are never told
    for t in order[:40]:
        _tell(player, tickets[t], problem.y[t])
    wrong = sum(tickets[t].label != problem.y[t] for t in order[:40])
    assert player.n_rounds_ == 60
    assert player.n_mistakes_ == wrong


def check_threads_may_share_it(learner: Learner, threads: int = 4) -> None:
    """Rounds of many threads are each played once and counted once, while its memory grows."""
    problem = noisy_problem(40 * threads)
    player = fresh(learner, classes=problem.n_classes)
    failures: list[BaseException] = []
    played: list[tuple[int, bool]] = []

    def play_some(start: int) -> None:
        try:
            for t in range(start, len(problem.y), threads):
                guess = player.guess(problem.X[t])
                player.probabilities(problem.X[t - 1])
                _tell(player, guess, problem.y[t])
                played.append((guess.round, bool(guess.label == problem.y[t])))
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=play_some, args=(start,)) for start in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures, f"a thread failed: {failures[0]!r}"
    assert sorted(round for round, _ in played) == list(range(len(problem.y))), "a round was issued twice, or never"
    assert player.n_mistakes_ == sum(not correct for _, correct in played)


def check_settings_survive(learner: Learner) -> None:
    """Settings survive clone, pickle and print, and playing does not change them."""
    settings = learner.get_params(deep=False)
    player = fresh(learner)
    problem = noisy_problem(40)
    play(player, problem.X, problem.y)
    for copy in (fresh(learner), player, pickle.loads(pickle.dumps(learner)), pickle.loads(pickle.dumps(player))):
        assert copy.get_params(deep=False) == settings, f"settings changed: {copy.get_params(deep=False)}"
        assert repr(copy) == repr(learner)
    assert repr(learner).startswith(type(learner).__name__ + "(")


def check_a_saved_learner_plays_on(learner: Learner) -> None:
    """A learner that is pickled in the middle of a game ends it exactly as one that is not."""
    problem = noisy_problem(200)
    unbroken = fresh(learner, classes=problem.n_classes)
    play(unbroken, problem.X, problem.y, seed=4)
    saved = fresh(learner, classes=problem.n_classes)
    play(saved, problem.X[:90], problem.y[:90], seed=4)
    ticket = saved.guess(problem.X[90])
    reloaded, ticket = pickle.loads(pickle.dumps((saved, ticket)))
    _tell(reloaded, ticket, problem.y[90])
    play(reloaded, problem.X[91:], problem.y[91:], fresh=False)
    assert snapshot(reloaded) == snapshot(unbroken)


def check_bad_features_change_nothing(learner: Learner) -> None:
    """NaN, infinities, wrong lengths, shapes and types are errors with a message, and leave no trace."""
    player, rest = _trained(learner)
    known, good = snapshot(player), rest[0]
    poisoned = [np.where(np.arange(len(good)) == 2, bad, good) for bad in (np.nan, np.inf, -np.inf)]
    for bad in (*poisoned, good[:-1], np.tile(good, (2, 1)), good.astype(complex), np.array(["a"] * len(good)), []):
        for action in (player.guess, player.probabilities):
            assert _raises_value_error(action, bad), f"{action.__name__} accepted {bad!r}"
    rows = np.stack([good, poisoned[0]])
    for engine in ("stream", "rounds"):
        assert _raises_value_error(play, player, rows, [0, 1], fresh=False, engine=engine)
        assert _raises_value_error(play, player, rest[:2], [0, 99], fresh=False, engine=engine)
        assert _raises_value_error(play, player, rest[:0], [], engine=engine)
        assert _raises_value_error(play, player, rest[:2], [0], engine=engine)
    assert snapshot(player) == known, "a refused input changed the learner"


def check_labels_may_be_anything(learner: Learner) -> None:
    """Labels may be strings; without classes interactive use is an error that says so."""
    problem = noisy_problem(120)
    names = np.array(["delta", "alpha", "gamma", "beta"])[problem.y]
    player = fresh(learner)
    guesses = guesses_of(player, problem.X, names, seed=6)
    assert set(guesses.tolist()) <= set(names.tolist())
    assert player.n_mistakes_ == int(np.sum(guesses != names))
    assert player.guess(problem.X[0]).label in names.tolist()
    assert set(player.predict(problem.X).tolist()) <= set(names.tolist())
    assert _raises_value_error(fresh(learner, classes=None).guess, problem.X[0]), "guessed without knowing the classes"
    for bad in (0, -3, [], ["a", "a"], "abc"):
        assert _raises_value_error(fresh(learner, classes=bad).guess, problem.X[0]), f"accepted classes={bad!r}"
    only = fresh(learner, classes=["just one"])
    assert only.guess(problem.X[0]).label == "just one"
