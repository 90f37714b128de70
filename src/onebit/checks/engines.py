"""Contract checks: compiled, blocked and interactive play give the same guesses."""

from typing import Any
from unittest import SkipTest

import numpy as np
import scipy.sparse

from onebit.checks.problems import fresh, guesses_of, noisy_problem, scales_rows, snapshot
from onebit.inputs import Floats, Integers
from onebit.learners import Learner
from onebit.playing import play
from onebit.streams import paper_weak

# About 1e-300, 1e-170, 1e160 and 1e300. Multiplying by a power of two rounds nothing.
_EXTREME_POWERS = (-996, -565, 532, 996)


def _same_game(learner: Learner, X: Floats, y: Integers, *, rows: object = None) -> None:
    whole, by_round = fresh(learner), fresh(learner)
    first = guesses_of(whole, X if rows is None else rows, y, seed=8)
    second = guesses_of(by_round, X, y, seed=8, engine="rounds")
    if not np.array_equal(first, second):
        at = int(np.argmax(first != second))
        raise AssertionError(f"the engines part in round {at}: {first[at]} and {second[at]}")
    assert snapshot(whole) == snapshot(by_round), "the engines learned different things"


def check_engines_agree_on_noisy_data(learner: Learner) -> None:
    """Round for round the same guesses and the same state, over several blocks."""
    problem = noisy_problem(900)  # blocks have 256 rows: several of them, the last one short
    _same_game(learner, problem.X, problem.y)


def check_engines_agree_in_few_dimensions(learner: Learner) -> None:
    """The same where a polynomial may approximate a support set."""
    X, y = paper_weak(rounds=2500, seed=3)  # three features: the rational kernel has a screen here
    _same_game(learner, X, y)


def check_engines_agree_on_ties(learner: Learner) -> None:
    """The same on a handful of repeated points, where scores cancel and tie exactly."""
    generator = np.random.default_rng(0)
    points = generator.integers(-1, 2, size=(7, 3)) / 2.0  # sums of halves are exact: ties stay ties
    picks = generator.integers(7, size=600)
    _same_game(learner, points[picks], generator.integers(3, size=600))


def check_engines_agree_on_many_features(learner: Learner) -> None:
    """The same where a block is scored by a matrix product."""
    problem = noisy_problem(700, n_classes=5, n_features=60)
    _same_game(learner, problem.X, problem.y)


def check_sparse_rows_are_the_same_game(learner: Learner) -> None:
    """Sparse and dense rows of the same numbers give the same game, unless they are scaled, each in its own way."""
    problem = noisy_problem(300, n_features=12)
    X = np.where(np.abs(problem.X) > 0.1, problem.X, 0.0)  # some entries missing, no row empty
    rows = scipy.sparse.csr_array(X)
    others: Any = rows if scales_rows(learner) else X
    _same_game(learner, others, problem.y, rows=rows)
    by_round = fresh(learner)
    trace = play(by_round, rows, problem.y, seed=8, engine="rounds")
    assert trace.mistakes == play(fresh(learner), others, problem.y, seed=8).mistakes


def check_playing_in_pieces_is_the_same_game(learner: Learner) -> None:
    """Several calls with ``fresh=False`` equal one call."""
    problem = noisy_problem(400)
    whole, pieces = fresh(learner, classes=problem.n_classes), fresh(learner, classes=problem.n_classes)
    play(whole, problem.X, problem.y, seed=9)
    play(pieces, problem.X[:150], problem.y[:150], seed=9)
    play(pieces, problem.X[150:160], problem.y[150:160], fresh=False, engine="rounds")
    pieces.partial_fit(problem.X[160:], problem.y[160:])
    assert snapshot(whole) == snapshot(pieces)


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


def check_engines_agree_at_extreme_scale(learner: Learner) -> None:
    """The same where squares of features overflow or vanish: the same game, or the same kind of error."""
    problem = noisy_problem(300)
    for power in _EXTREME_POWERS:
        X = np.ldexp(problem.X, power)
        whole, by_round = (_outcome(learner, X, problem.y, engine) for engine in ("stream", "rounds"))
        assert whole == by_round, f"the engines part on features times 2**{power}: {whole[0]} and {by_round[0]}"


def _outcome(learner: Learner, X: Floats, y: Integers, engine: str) -> tuple[Any, ...]:
    """Return the guesses and what was learned, or that the features were refused."""
    player = fresh(learner)
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # a user's kernel may compute with such values
            guesses = guesses_of(player, X, y, seed=8, engine=engine)
    except ValueError as error:
        has_kernel = "kernel" in learner.get_params(deep=False)
        assert has_kernel or "kernel" not in str(error), f"it has no kernel to speak of: {error}"
        return ("refused", bool(str(error)))
    return guesses.tolist(), snapshot(player)


def check_scale_does_not_matter(learner: Learner) -> None:
    """Features times a power of two give the same guesses to learners that are blind to scale, however large or small.

    These are learners with a kernel that divides rows by their length, and without a kernel: rules only compare.
    """
    if not _is_blind_to_scale(learner):
        raise SkipTest("scale may matter to it")
    problem = noisy_problem(300)
    expected = guesses_of(fresh(learner), problem.X, problem.y, seed=8)
    for power in _EXTREME_POWERS:
        with np.errstate(over="ignore", invalid="ignore"):  # without compilation NumPy warns
            guesses = guesses_of(fresh(learner), np.ldexp(problem.X, power), problem.y, seed=8)
        assert np.array_equal(guesses, expected), f"features times 2**{power} gave other guesses"


def _is_blind_to_scale(learner: Learner) -> bool:
    settings = learner.get_params(deep=False)
    if "kernel" not in settings:
        return False
    kernel: Any = settings["kernel"]
    return kernel is None or scales_rows(learner) or getattr(kernel, "normalize", False)
