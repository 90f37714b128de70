"""The protocol of every learner, and scikit-learn's own checks of it."""

import copy
import pickle
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import onebit
from onebit.checks.problems import noisy_problem, separable_problem
from onebit.kernels import Gaussian, Polynomial
from onebit.learners import Learner, all_learners
from onebit.learners.run import all_or_nothing, play_stream
from onebit.learners.saving import pack_state


def test_full_information_needs_the_label_and_bandits_refuse_it() -> None:
    told = onebit.MulticlassPerceptron(classes=["a", "b"])
    guess = told.guess([1.0])
    with pytest.raises(ValueError, match="full information"):
        told.tell(guess, False)
    with pytest.raises(ValueError, match="contradicts"):
        told.tell(guess, True, label="b")
    with pytest.raises(ValueError, match="not among the 2 classes"):
        told.tell(guess, False, label="c")
    told.tell(guess, False, label="b")
    bandit = onebit.BanditPerceptron(classes=["a", "b"])
    with pytest.raises(ValueError, match="takes only right or wrong"):
        bandit.tell(bandit.guess([1.0]), False, label="b")


def test_scikit_learns_tools_take_a_learner() -> None:
    problem = separable_problem(400, 3, 4, 0.2)
    learner = onebit.BanditPerceptron(seed=4)
    assert is_classifier(learner)
    assert clone(learner).get_params() == learner.get_params()
    scores = cross_val_score(make_pipeline(StandardScaler(), learner), problem.X, problem.y, cv=3)
    assert scores.min() > 0.6
    # A radius that covers everything makes one label of all; only a search that really plays can tell.
    search = GridSearchCV(onebit.NearestNeighbor(), {"radius": [9.0, 0.3]}, cv=2).fit(problem.X, problem.y)
    assert search.best_params_ == {"radius": 0.3}
    with pytest.raises(NotFittedError, match="has not played yet"):
        onebit.BanditPerceptron().predict(problem.X)
    with pytest.raises(ValueError, match="Invalid parameter 'rate'"):
        learner.set_params(rate=1)


def test_what_was_learned_is_named() -> None:
    learner = onebit.BanditPerceptron(classes=2)
    with pytest.raises(AttributeError, match="weights_ is there once"):
        _ = learner.weights_
    learner.guess([1.0, 2.0])
    assert learner.weights_.shape == (2, 2)
    with pytest.raises(AttributeError, match="a kernel"):
        _ = learner.support_


# Compiled for themselves, and much like others: the slow run has them. What is played in Python is in test_wrapped.py.
ALIKE = (
    onebit.ConservativePassiveAggressive,
    onebit.FullInformationLogistic,
    onebit.FullInformationPassiveAggressive,
    onebit.FullInformationSVM,
    onebit.SOBA,
)


OTHERS = [cls for cls in all_learners() if cls is not onebit.Wrapped and cls not in ALIKE]


@parametrize_with_checks([cls() for cls in OTHERS])  # type: ignore[untyped-decorator]  # no failure expected
def test_scikit_learns_own_checks(estimator: Learner, check: Callable[[Any], None]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some checks ask for warnings, and look for them themselves
        check(estimator)


@pytest.mark.slow
@parametrize_with_checks([cls() for cls in ALIKE])  # type: ignore[untyped-decorator]
def test_scikit_learns_own_checks_of_the_others(estimator: Learner, check: Callable[[Any], None]) -> None:
    test_scikit_learns_own_checks(estimator, check)


def two_classes() -> tuple[Any, Any]:
    problem = separable_problem(300, 2, 2, 0.2)
    return problem.X, np.array(["no", "yes"])[problem.y]


@pytest.mark.parametrize("cls", all_learners(), ids=lambda cls: cls.__name__)
def test_scores_for_two_classes_and_for_more(cls: type[Learner]) -> None:
    X, y = two_classes()
    learner = cls().fit(X, y)
    scores, both = learner.decision_function(X), learner.score_classes(X)
    assert both.shape == (300, 2)
    assert scores.shape == (300,)
    assert np.isfinite(scores).all()
    assert np.array_equal(learner.predict(X), learner.classes_[(scores > 0).astype(int)])
    three = separable_problem(60, 3, 4, 0.2)
    assert cls().fit(three.X, three.y).decision_function(three.X).shape == (60, 3)
    assert cls(classes=["only"]).fit(X, ["only"] * 300).decision_function(X).shape == (300, 1)


def test_scores_of_classes_nobody_has_seen_are_finite() -> None:
    learner = onebit.NearestNeighbor(classes=2)
    learner.guess([1.0])
    assert np.isneginf(learner.score_classes([[1.0]])).all()
    assert learner.decision_function([[1.0]]).tolist() == [0.0]


def test_tools_that_need_scores_or_chances() -> None:
    X, y = two_classes()
    learner = onebit.BanditPerceptron(seed=1)
    assert cross_val_score(learner, X, y == "yes", scoring="roc_auc", cv=3).min() > 0.8
    calibrated = CalibratedClassifierCV(learner, cv=3).fit(X, y)
    propensities = calibrated.predict_proba(X)
    assert np.allclose(propensities.sum(axis=1), 1.0)
    assert np.mean(calibrated.predict(X) == y) > 0.8
    three = separable_problem(300, 3, 4, 0.2)
    assert cross_val_score(
        CalibratedClassifierCV(learner, cv=3), three.X, three.y, scoring="roc_auc_ovr", cv=2
    ).min() > 0.7  # fmt: skip
    assert OneVsRestClassifier(learner).fit(three.X, three.y).score(three.X, three.y) > 0.5


def test_decision_boundaries_are_drawn() -> None:
    X, y = two_classes()
    shown = DecisionBoundaryDisplay.from_estimator(onebit.BanditPerceptron().fit(X, y), X, grid_resolution=8)
    assert shown.response.shape == (8, 8)
    three = separable_problem(100, 3, 3, 0.2)
    learner = onebit.BanditPerceptron().fit(three.X[:, :2], three.y)
    shown = DecisionBoundaryDisplay.from_estimator(learner, three.X[:, :2], grid_resolution=8)
    assert shown.response.shape == (8, 8, 3)
    plt.close("all")


def test_pipelines_hand_frames_on_and_searches_reach_inside() -> None:
    X, y = two_classes()
    frame = pd.DataFrame(X, columns=["left", "right"])
    pipeline = make_pipeline(StandardScaler(), onebit.BanditPerceptron()).set_output(transform="pandas").fit(frame, y)
    assert pipeline[-1].feature_names_in_.tolist() == ["left", "right"]
    assert pipeline.score(frame, y) > 0.8
    pipeline.set_output(transform="polars").fit(frame, y)
    assert pipeline[-1].feature_names_in_.tolist() == ["left", "right"]
    pipeline = make_pipeline(StandardScaler(), onebit.NearestNeighbor())
    search = GridSearchCV(pipeline, {"nearestneighbor__radius": [90.0, 0.5]}, cv=2).fit(frame, y)
    assert search.best_params_ == {"nearestneighbor__radius": 0.5}


def test_metadata_is_routed() -> None:
    X, y = two_classes()
    with sklearn.config_context(enable_metadata_routing=True):
        learner: Any = onebit.BanditPerceptron()
        learner.set_score_request(sample_weight=True)
        weights = np.arange(300.0)
        scores = cross_val_score(learner, X, y, params={"sample_weight": weights}, cv=3)
    assert scores.min() > 0.6
    fitted = onebit.BanditPerceptron().fit(X, y)
    right = fitted.predict(X) == y
    assert fitted.score(X, y, sample_weight=weights) == pytest.approx(np.average(right, weights=weights))


@pytest.mark.parametrize("cls", all_learners(), ids=lambda cls: cls.__name__)
def test_only_who_knows_chances_of_the_classes_has_them(cls: type[Learner]) -> None:
    X, y = two_classes()
    learner: Any = cls().fit(X, y)
    assert hasattr(learner, "predict_proba") == (cls is onebit.UniformGuess)
    if cls is onebit.UniformGuess:
        assert np.array_equal(learner.predict_proba(X), np.full((300, 2), 0.5))


@pytest.mark.parametrize("cls", all_learners(), ids=lambda cls: cls.__name__)
def test_it_is_shown_in_a_notebook(cls: type[Learner]) -> None:
    X, y = two_classes()
    assert cls.__name__ in cls()._repr_html_()
    assert cls.__name__ in cls().fit(X, y)._repr_html_()


PROBLEM = noisy_problem(80)


def test_looking_at_some_labels_leaves_the_open_round_alone() -> None:
    remembered = []
    for looks in (False, True):
        learner = onebit.NearestNeighbor(0.5, classes=2, seed=1)
        learner.tell(learner.guess([0.0, 0.0]), True)
        guess = learner.guess([5.0, 5.0])
        if looks:
            learner.probabilities([0.0, 0.0], among=[0, 1])
        learner.tell(guess, True)
        remembered.append(len(learner.support_))
    assert remembered == [2, 2]


def test_looking_before_a_class_joins_changes_nothing() -> None:
    """A scale may be due when a class joins: whoever looks first puts it in force, and must not matter."""
    packed = []
    for looks in (False, True):
        learner = onebit.BanditSVM(classes=4)
        for x, label in zip(PROBLEM.X[:64], PROBLEM.y[:64], strict=True):
            guess = learner.guess(x)
            learner.tell(guess, bool(guess.label == label))
        if looks:
            learner.probabilities(PROBLEM.X[0])
        learner.add_class("new")
        learner.probabilities(PROBLEM.X[0])
        packed.append({name: array.tobytes() for name, array in pack_state(learner._state).items()})
    assert packed[0] == packed[1]


def test_a_chance_whose_inverse_is_no_float_is_refused() -> None:
    learner = onebit.Banditron(classes=2)
    with pytest.raises(ValueError, match="propensities must be above 0"):
        learner.learn_from([[1.0, 2.0]], [1], True, 5e-324)
    with pytest.raises(ValueError, match=r"at most 1; got 1\.5$"):
        learner.learn_from([[1.0, 2.0]], [1], True, 1.5)


def test_a_refused_round_brings_no_label() -> None:
    learner = onebit.BanditPerceptron(Polynomial(9), classes="grow")
    learner.partial_fit([[1.0]], ["a"])
    with pytest.raises(ValueError, match="scores of"):
        learner.partial_fit([[1e200]], ["b"])
    assert learner.classes_.tolist() == ["a"]


def test_a_first_guess_can_be_broken_off_anywhere() -> None:
    reached = 0

    def break_off(frame: Any, event: str, _: Any) -> Any:
        nonlocal reached
        if "onebit" not in frame.f_code.co_filename:
            return None
        reached += event == "line"
        if reached == at:
            reached += 1
            sys.settrace(before)
            raise KeyboardInterrupt
        return break_off

    at, before = 0, sys.gettrace()
    while reached >= at:
        at, reached = at + 1, 0
        learner = onebit.UniformGuess(classes=3)
        try:
            sys.settrace(break_off)
            learner.guess(np.ones(2))
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        learner.tell(learner.guess(np.ones(2)), True)
    assert at > 50


def test_a_compiled_stream_lets_other_threads_run(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = onebit.BanditPerceptron(classes=3)
    X, y = onebit.streams.paper_strong(2_000_000, seed=1)
    play_stream(learner, X[:10], y[:10])
    run, span = learner._state.run, [0.0, 0.0]

    def timed(*arguments: object) -> None:
        span[0] = time.perf_counter()
        run(*arguments)  # type: ignore[arg-type]
        span[1] = time.perf_counter()

    monkeypatch.setattr(learner._state, "run", timed)
    for _ in range(20):  # on a busy machine this thread may get no turn in so short a time
        worker = threading.Thread(target=play_stream, args=(learner, X, y), kwargs={"fresh": False})
        worker.start()
        ticks = []
        while worker.is_alive():
            ticks.append(time.perf_counter())
            time.sleep(0)
        first, last = span
        inside = np.array(ticks)[(np.array(ticks) > first) & (np.array(ticks) < last)]
        # Where the lock is held, nobody ticks between the beginning and the end of the call.
        if len(inside) and inside[-1] - inside[0] > 0.2 * (last - first):
            return
    raise AssertionError("no other thread ran while a stream was played")


NOISY = noisy_problem(300, 3, 4)
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
        guess = learner.guess(NOISY.X[t])
        if t % ask_every == 0:
            assert learner.label(guess, int(NOISY.y[t])) == (guess.index == NOISY.y[t])
        else:
            learner.tell(guess, bool(guess.index == NOISY.y[t]))
        guesses.append(guess)
    return guesses


@pytest.mark.parametrize("learner", LEARNERS_WITH_SCORES, ids=repr)
def test_guesses_have_a_confidence_that_is_saved_and_copied(learner: onebit.Learner, tmp_path: Path) -> None:
    player = clone(learner).set_params(classes=NOISY.n_classes)
    guesses = play_with_labels(player, 100)
    assert guesses[0].confidence is None
    assert all(guess.confidence is not None and 0.0 < guess.confidence < 1.0 for guess in guesses[50:])
    x, rows = NOISY.X[100], NOISY.X[100:110]
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
    learner = onebit.BanditPerceptron().fit(NOISY.X, NOISY.y)
    assert np.isnan(learner.confidence(NOISY.X[:3])).all(), "streams are played without it"
    uniform = onebit.UniformGuess(classes=3)
    for _ in range(100):
        uniform.tell(uniform.guess([1.0]), True)
    guess = uniform.guess([1.0])
    assert guess.confidence is None or guess.confidence > 0.5


def test_a_ranking_has_the_allowed_labels_by_score() -> None:
    learner = onebit.BanditPerceptron(classes=["a", "b", "c"])
    for x, label in zip(NOISY.X[:50], NOISY.y[:50], strict=True):
        learner.label(learner.guess(x), "abc"[label])
    guess = learner.guess(NOISY.X[0])
    by_score = [label for _, label in sorted(zip(-guess.scores, "abc", strict=True))]
    assert guess.ranking == by_score
    narrow = learner.guess(NOISY.X[0], among=["c", "a"])
    assert narrow.ranking == [label for label in by_score if label != "b"]
    assert onebit.Guess.from_json(guess.to_json()).ranking == []


@pytest.mark.parametrize("learner", LEARNERS_WITH_SCORES, ids=repr)
def test_a_label_is_feedback_first_and_a_known_round_second(learner: onebit.Learner) -> None:
    one, other = (clone(learner).set_params(classes=NOISY.n_classes) for _ in range(2))
    for x, label in zip(NOISY.X[:60], NOISY.y[:60].tolist(), strict=True):
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
    guess = learner.guess(NOISY.X[0])
    learner.label(guess, (guess.index + 1) % 3)
    assert learner.n_mistakes_ == 1


@pytest.mark.parametrize("classes", [NOISY.n_classes, "grow"])
def test_one_known_round_is_learned_without_a_copy_of_the_state(classes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = onebit.BanditSVM(None, classes=classes).fit(NOISY.X, NOISY.y)
    copies: list[Any] = []
    monkeypatch.setattr(type(learner._state), "bookmark", lambda self: copies.append(self))
    learner.learn_labels(NOISY.X[:1], NOISY.y[:1])
    learner.learn_from(NOISY.X[:1], NOISY.y[:1], True, 1.0)
    learner.label(learner.guess(NOISY.X[1]), int(NOISY.y[1]))
    assert not copies


def test_a_label_that_would_join_does_not_if_its_row_is_refused() -> None:
    learner = onebit.BanditSVM(None, classes="grow").fit(NOISY.X, NOISY.y)
    for learn in (learner.learn_labels, learner.partial_fit):
        with pytest.raises(ValueError, match="NaN"):
            learn(np.full((1, NOISY.X.shape[1]), np.nan), [99])
    assert 99 not in learner.classes_.tolist()


@pytest.mark.parametrize("cls", all_learners(), ids=lambda cls: str(cls.__name__))
def test_every_learner_asks_within_its_limit(cls: type[onebit.Learner]) -> None:
    learner = next(iter(cls.examples())).set_params(classes=NOISY.n_classes)
    trace = onebit.play(learner, NOISY.X, NOISY.y, wrong_at_most=0.1, keep_guesses=True)
    assert trace.by_round is not None
    assert trace.wrong_limit is not None
    assert trace.guesses is not None
    right, asked = trace.guesses == NOISY.y, trace.by_round.asked
    assert np.array_equal(right, trace.by_round.right)
    assert trace.mistakes == (~right & ~asked).sum() <= trace.wrong_limit + 1e-9
    assert (trace.asked, trace.suggestions_right) == (asked.sum(), (right & asked).sum())
    assert (trace.mistakes, learner.n_mistakes_) == (trace.curve.mistakes[-1], (~right).sum())
    guess, known = learner.guess(NOISY.X[0]), learner.confidence(NOISY.X[:20])
    assert len(guess.scores) in (0, NOISY.n_classes)
    assert sorted(guess.ranking) == list(range(len(guess.scores)))
    if learner._state.plays_by_hand:
        assert guess.confidence is None
        assert trace.asked == trace.rounds, "nothing is known of how sure it is"
        return
    assert guess.confidence is not None
    assert 0.0 < guess.confidence < 1.0
    assert ((known > 0.0) & (known < 1.0)).all()
    assert np.array_equal(learner.confidence(NOISY.X[:20]), known), "it is not learned from"
    assert (np.diff(guess.scores[guess.ranking]) <= 0.0).all()
    assert np.isnan(trace.by_round.confidence[:30]).all()
    assert not np.isnan(trace.by_round.confidence[30:]).any()
