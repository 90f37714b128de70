"""Learners are scikit-learn's estimators, by its own checks and in its own tools."""

import warnings
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import onebit
from onebit.checks.problems import separable_problem
from onebit.learners import Learner, all_learners

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
