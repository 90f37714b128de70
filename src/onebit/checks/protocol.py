"""Contract checks of learners: protocol, labels and classes, known rounds, engines, saving, and promises.

Bounds that hold in every run are asserted in every run, expected ones on average over fixed seeds.
"""

import math
import pickle
import tempfile
from collections.abc import Iterator
from pathlib import Path
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
    scales_rows,
    separable_problem,
    snapshot,
    tell,
    twins,
)
from onebit.inputs import Floats, Integers
from onebit.learners import Learner, all_learners, load
from onebit.learners.base import in_linear_space
from onebit.learners.saving import pack_state
from onebit.playing import play
from onebit.streams import paper_weak

# Classes, features, margin: as large a margin as `separable_problem` has room for, and a smaller one for more classes.
_SETTINGS = ((2, 3, 0.3), (3, 4, 0.2), (5, 5, 0.12))
# About 1e-300, 1e-170, 1e160 and 1e300. Multiplying by a power of two rounds nothing.
_EXTREME_POWERS = (-996, -565, 532, 996)


def _begun(learner: Learner, rounds: int = 60) -> Learner:
    problem = noisy_problem(rounds)
    return play_by_hand(fresh(learner, classes=problem.n_classes), problem.X, problem.y)


def _check_same_seed_same_trace(learner: Learner) -> None:
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


def _check_probabilities_are_pure(learner: Learner) -> None:
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


def _check_probabilities_match_frequencies(learner: Learner, guesses: int = 3000) -> None:
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


def _check_inputs_are_untouched(learner: Learner) -> None:
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


def _check_label_reaches_only_through_correct(learner: Learner) -> None:
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


def _check_settings_survive(learner: Learner) -> None:
    """Settings survive clone, pickle and print, and playing does not change them."""
    problem = noisy_problem(40)
    player, blank = twins(learner, classes=None)
    play(player, problem.X, problem.y)
    for original, copies in ((learner, [clone(learner)]), (blank, [player])):
        for copy in (*copies, *(pickle.loads(pickle.dumps(each)) for each in (original, *copies))):
            assert copy.get_params(deep=False) == original.get_params(deep=False), f"settings changed: {copy!r}"
            assert repr(copy) == repr(original)
    assert repr(learner).startswith(type(learner).__name__ + "(")


def _check_settings_count_from_the_next_fresh_start(learner: Learner) -> None:
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


def _check_only_allowed_labels_are_guessed(learner: Learner) -> None:
    """`among` restricts the labels that may be guessed; propensities are exact, and nothing else changes."""
    player, problem = _begun(learner), noisy_problem(90)
    for x, label in zip(problem.X[60:], problem.y[60:].tolist(), strict=True):
        known, other = snapshot(player), (label + 1) % problem.n_classes
        propensities = player.probabilities(x, among=[other, label])
        assert set(np.flatnonzero(propensities)) <= {other, label}, "a label that is not allowed has a chance"
        assert abs(propensities.sum() - 1.0) < 1e-12
        assert player.probabilities(x, among=[other]).tolist() == np.eye(problem.n_classes)[other].tolist()
        assert snapshot(player) == known, "looking changed the learner"
        guess = player.guess(x, among=[other, label])
        assert guess.label in (other, label)
        assert guess.propensity == propensities[guess.index], "the ticket's propensity is not the label's"
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


def _check_a_class_may_join(learner: Learner) -> None:
    """A class added before the first round is like one given at the start; later ones keep the state."""
    problem = noisy_problem(80)
    K = problem.n_classes
    born, late = fresh(learner, classes=K + 1), fresh(learner, classes=K)
    for player in (born, late):
        player.begin(problem.X.shape[1])
    _joined(late, K)
    for player in (born, late):
        play_by_hand(player, problem.X, problem.y)
    assert snapshot(late) == snapshot(born), "a class that joined before the first round is not like the others"
    player = _begun(learner)
    open_ticket = player.guess(problem.X[0])
    counts = snapshot(player)["counts"]
    _joined(player, "new")
    assert player.classes_.tolist() == [*range(K), "new"]
    assert snapshot(player)["counts"] == counts
    for bad in ("new", 0, [1, 2], float("nan")):
        assert raises_value_error(player.add_class, bad), f"add_class accepted {bad!r}"
    assert player.guess(problem.X[1], among=["new"]).label == "new"
    tell(player, open_ticket, int(problem.y[0]))
    play(player, problem.X[:21], np.array([*problem.y[:20].tolist(), "new"], dtype=object), fresh=False)
    assert player.decision_function(problem.X).shape == (len(problem.X), K + 1)


def _check_known_rounds_teach(learner: Learner) -> None:
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


def _same_game(learner: Learner, X: Any, y: Integers, *, rows: Any = None) -> None:
    whole, by_round = twins(learner, classes=None)
    first = guesses_of(whole, X if rows is None else rows, y, seed=8)
    second = guesses_of(by_round, X, y, seed=8, engine="rounds")
    if not np.array_equal(first, second):
        at = int(np.argmax(first != second))
        raise AssertionError(f"the engines part in round {at}: {first[at]} and {second[at]}")
    assert snapshot(whole) == snapshot(by_round), "the engines learned different things"


def _check_engines_agree(learner: Learner) -> None:
    """Round for round the same guesses and the same state: over blocks, in few and many dimensions, and on ties."""
    blocks, wide, generator = noisy_problem(900), noisy_problem(700, 5, 60), np.random.default_rng(0)
    points, picks = generator.integers(-1, 2, size=(7, 3)) / 2.0, generator.integers(7, size=600)
    for X, y in (
        (blocks.X, blocks.y),  # blocks have 256 rows: several of them, the last one short
        paper_weak(rounds=2500, seed=3),  # three features: the rational kernel has a screen here
        (points[picks], generator.integers(3, size=600)),  # sums of halves are exact: ties stay ties
        (wide.X, wide.y),  # a block is scored by a matrix product
    ):
        _same_game(learner, X, y)


def _check_sparse_rows_are_the_same_game(learner: Learner) -> None:
    """Sparse and dense rows of the same numbers give the same game, unless they are scaled, each in its own way."""
    problem = noisy_problem(300, n_features=12)
    X = np.where(np.abs(problem.X) > 0.1, problem.X, 0.0)  # some entries missing, no row empty
    rows = scipy.sparse.csr_array(X)
    others: Any = rows if scales_rows(learner) else X
    _same_game(learner, others, problem.y, rows=rows)
    one, two = twins(learner, classes=None)
    trace = play(one, rows, problem.y, seed=8, engine="rounds")
    assert trace.mistakes == play(two, others, problem.y, seed=8).mistakes


def _check_playing_in_pieces_is_the_same_game(learner: Learner) -> None:
    """Several calls with ``fresh=False`` equal one call."""
    problem = noisy_problem(400)
    whole, pieces = twins(learner)
    play(whole, problem.X, problem.y, seed=9)
    play(pieces, problem.X[:150], problem.y[:150], seed=9)
    play(pieces, problem.X[150:160], problem.y[150:160], fresh=False, engine="rounds")
    pieces.partial_fit(problem.X[160:], problem.y[160:])
    assert snapshot(whole) == snapshot(pieces)


def _check_engines_agree_at_extreme_scale(learner: Learner) -> None:
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


def _check_scale_does_not_matter(learner: Learner) -> None:
    """Features times a power of two give the same guesses to learners that are blind to scale, however large or small.

    These are learners with a kernel that divides rows by their length, and without a kernel: rules only compare.
    """
    settings = learner.get_params(deep=False)
    kernel = settings.get("kernel")
    is_blind = kernel is None or scales_rows(learner) or getattr(kernel, "normalize", False)
    if "kernel" not in settings or not is_blind:
        raise SkipTest("scale may matter to it")
    problem = noisy_problem(300)
    expected = guesses_of(fresh(learner), problem.X, problem.y, seed=8)
    for power in _EXTREME_POWERS:
        with np.errstate(over="ignore", invalid="ignore"):  # without compilation NumPy warns
            guesses = guesses_of(fresh(learner), np.ldexp(problem.X, power), problem.y, seed=8)
        assert np.array_equal(guesses, expected), (
            f"features times 2**{power} gave other guesses: without a kernel a rule may only compare scores, with each "
            "other and with 0 (see `onebit.spaces.Rule`); one that uses their size is a `State` of its own"
        )


def _check_feedback_may_come_late_or_never(learner: Learner) -> None:
    """Answers may come in any order, or not at all; nothing breaks and what comes counts."""
    problem = noisy_problem(60)
    player = fresh(learner, classes=problem.n_classes)
    tickets = [player.guess(x) for x in problem.X]
    order = np.random.default_rng(0).permutation(60)  # the last twenty get no feedback
    for t in order[:40]:
        tell(player, tickets[t], problem.y[t])
    wrong = sum(tickets[t].label != problem.y[t] for t in order[:40])
    assert player.n_rounds_ == 60
    assert player.n_mistakes_ == wrong


def _check_a_saved_learner_plays_on(learner: Learner) -> None:
    """A learner that is pickled, or saved and loaded, with tickets open, plays on exactly as the original."""
    problem = noisy_problem(160)
    rows: list[Any] = [*problem.X[:120], *(scipy.sparse.csr_array(x[None]) for x in problem.X[120:])]
    player = fresh(learner, classes=problem.n_classes)
    play(player, problem.X[:80], problem.y[:80], seed=4)
    for t in (80, 81, 120, 121):
        tell(player, player.guess(rows[t]), problem.y[t])
    opened = [(player.guess(rows[t]), problem.y[t]) for t in (82, 122, 83)]
    for through in (_through_pickle, _through_a_file, _through_a_file):  # each time what came back is saved
        loaded = through(player)
        assert _all_of(loaded) == _all_of(player), "a loaded learner knows something else (by hand it needs _keep)"
        for k, (ticket, label) in enumerate(opened):
            answer = (ticket.label == label, label) if loaded.full_information else (ticket.label == label,)
            forged = ticket._replace(id=f"{ticket.round}-{bytes(8).hex()}")
            assert raises_value_error(tell, loaded, forged, label), "honoured a forged ticket"
            loaded.tell(ticket.id, *answer)
            assert raises_value_error(loaded.tell, ticket.id, *answer), "told twice"
            tell(player, ticket, label)
            assert _all_of(loaded) == _all_of(player), f"open ticket {k} taught a loaded learner something else"
        for each in (player, loaded):
            for t in (*range(84, 100), *range(123, 140)):
                tell(each, each.guess(rows[t]), problem.y[t])
            play(each, problem.X[140:], problem.y[140:], fresh=False)
        assert _all_of(loaded) == _all_of(player), "a loaded learner played on differently"
        player, opened = loaded, [(loaded.guess(rows[t]), problem.y[t]) for t in (101, 102)]
    blank = fresh(learner, classes=3)
    assert repr(_through_a_file(blank)) == repr(blank), "settings alone are not saved"


def _all_of(learner: Learner) -> Any:
    packed = {name: (array.shape, array.tobytes()) for name, array in pack_state(learner._state).items()}
    return snapshot(learner), packed


def _through_pickle(learner: Learner) -> Learner:
    copied: Learner = pickle.loads(pickle.dumps(learner))
    return copied


def _through_a_file(learner: Learner) -> Learner:
    settings = [value for value in learner.get_params(deep=False).values() if callable(value)]
    trusted = [type(learner), *(getattr(each, "function", each) for each in settings)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learner.onebit"
        try:
            learner.save(path)
        except ValueError as error:
            if type(learner) in all_learners():
                raise
            raise SkipTest(f"it cannot be saved: {error}") from error
        return load(path, trusted=[each for each in trusted if hasattr(each, "__qualname__")])


def _promises(learner: Learner, *kinds: About) -> Iterator[tuple[tuple[int, int, float], list[float]]]:
    """Yield settings of `separable_problem` with what a learner promises there; skip the check if that is nothing."""

    def promised(n_classes: int, n_features: int, margin: float) -> list[float]:
        claims = learner.promise(n_classes=n_classes, n_features=n_features, radius=1.0, margin=margin)
        return [at_most(claims, about) for about in kinds]

    # The margin is known in R^d only.
    found = [(setting, promised(*setting)) for setting in _SETTINGS] if in_linear_space(learner) else []
    found = [(setting, bounds) for setting, bounds in found if min(bounds) < math.inf]
    if not found:
        raise SkipTest(f"it promises nothing about {' or '.join(kinds)} in R^d")
    yield from found


def _check_promises_that_hold_always(learner: Learner) -> None:
    """Updates and mistakes never exceed what the theorem promises on separable data of known margin."""
    for setting, (updates, mistakes) in _promises(learner, "updates", "mistakes"):
        for seed in range(5):
            problem = separable_problem(1500, *setting, seed)
            trace = play(fresh(learner), problem.X, problem.y, seed=seed)
            assert trace.updates <= updates, f"{trace.updates} updates; promised at most {updates}"
            assert trace.mistakes <= mistakes, f"{trace.mistakes} mistakes; promised at most {mistakes}"


def _check_promises_that_hold_late(learner: Learner) -> None:
    """The bound on updates holds however late feedback comes."""
    for setting, (updates,) in _promises(learner, "updates"):
        problem = separable_problem(2000, *setting)
        for late in (100, 2000):
            player = fresh(learner, classes=problem.n_classes)
            for start in range(0, 2000, late):
                tickets = [player.guess(x) for x in problem.X[start : start + late]]
                labels = problem.y[start : start + late].tolist()
                # The last guess is answered first: as late and as much out of order as can be.
                for ticket, label in zip(reversed(tickets), reversed(labels), strict=True):
                    tell(player, ticket, label)
            assert player.n_updates_ <= updates, f"{player.n_updates_} updates; promised at most {updates}"


def _check_promises_that_hold_on_average(learner: Learner, runs: int = 20) -> None:
    """Mean mistakes over fixed seeds stay under the expected bound, within three standard errors."""
    for setting, (expected,) in _promises(learner, "expected mistakes"):
        problem = separable_problem(1500, *setting)
        counts = [play(fresh(learner), problem.X, problem.y, seed=seed).mistakes for seed in range(runs)]
        # Three standard errors: a right promise fails one time in 700, and the seeds are fixed.
        allowed = expected + 3.0 * np.std(counts, ddof=1) / math.sqrt(runs)
        assert np.mean(counts) <= allowed, f"{np.mean(counts)} mistakes on average; promised {expected}"
