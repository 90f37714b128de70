"""Classifiers of scikit-learn as learners: what they are taught, and that nothing is lost."""

import copy
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import onebit
from foundation_checks import FOUNDATION_CHECKS
from onebit.checks import LEARNER_CHECKS
from onebit.checks.problems import guesses_of, noisy_problem, snapshot
from onebit.engine.randomness import Draw, uniform
from onebit.experiments.entries import parse_player

QUICK = (
    "check_a_class_may_join",
    "check_a_saved_learner_plays_on",
    "check_classes_may_grow",
    "check_known_rounds_teach",
    "check_many_rows_are_as_many_guesses",
    "check_playing_in_pieces_is_the_same_game",
    "check_probabilities_are_pure",
    "check_settings_survive",
)


@pytest.mark.parametrize(
    "check", [each for each in LEARNER_CHECKS + FOUNDATION_CHECKS if each.__name__.endswith(QUICK)]
)
def test_it_keeps_the_contract_where_that_is_quick(check: Callable[[Any], None]) -> None:
    check(onebit.Wrapped(GaussianNB() if check.__name__.endswith("probabilities_are_pure") else None))


@pytest.mark.slow
@parametrize_with_checks([onebit.Wrapped()])  # type: ignore[untyped-decorator]
def test_scikit_learns_own_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.parametrize("refit", ["partial", "geometric"])
def test_against_a_plain_program(refit: str) -> None:
    problem, rate, seed, K = noisy_problem(150), 0.2, 3, 4
    facts: list[list[tuple[Any, int]]] = [[] for _ in range(K)]
    models: list[Any] = [None] * K
    learned, told, guesses = 0, [0] * K, []
    for t, (x, label) in enumerate(zip(problem.X, problem.y, strict=True)):
        scores = []
        for i in range(K):
            said = [is_right for _, is_right in facts[i]]
            share = (sum(said) + 1) / (len(said) + 2)
            scores.append(share if models[i] is None else models[i].predict_proba([x])[0, 1])
        u = uniform(Draw(seed, t))
        guess = int(u / rate * K) if u < rate else int(np.argmax(scores))
        for i in range(K):
            if guess == label or i == guess:
                facts[i].append((x, int(i == label)))
        if t + 1 >= learned + max(1, learned // 10 if refit == "partial" else learned // 4):
            learned = t + 1
            for i in range(K):
                if {is_right for _, is_right in facts[i]} == {0, 1} and len(facts[i]) > told[i]:
                    begin = told[i] if refit == "partial" and models[i] is not None else 0
                    rows, says = zip(*facts[i][begin:], strict=True)
                    if refit == "partial":
                        models[i] = (models[i] or GaussianNB()).partial_fit(rows, says, classes=[0, 1])
                    else:
                        models[i] = GaussianNB().fit(rows, says)
                    told[i] = len(facts[i])
        guesses.append(guess)
    learner = onebit.Wrapped(GaussianNB(), rate, refit)
    assert guesses_of(learner, problem.X, problem.y, seed=seed).tolist() == guesses


@pytest.mark.parametrize(
    ("estimator", "refit"),
    [
        (None, "partial"),
        (SGDClassifier(), "partial"),
        (LogisticRegression(), "geometric"),
        (DecisionTreeClassifier(max_features=1), "geometric"),
        (RandomForestClassifier(n_estimators=3), "geometric"),
    ],
    ids=str,
)
def test_classifiers_learn_and_are_saved(estimator: Any, refit: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 2))
    y = (X[:, 0] > 0).astype(int) + 2 * (X[:, 1] > 0)
    learner = onebit.Wrapped(estimator, 0.1, refit, classes=4)
    trace = onebit.play(learner, X[:120], y[:120], seed=2)
    assert trace.mistakes < 80
    assert onebit.play(clone(learner), X[:120], y[:120], seed=2).mistakes == trace.mistakes
    learner.save(tmp_path / "wrapped.onebit")
    if estimator is not None:
        with pytest.raises(ValueError, match=f"{type(estimator).__name__}', which is not onebit's own"):
            onebit.load(tmp_path / "wrapped.onebit")
    # A forest holds a tree.
    trusted = [] if estimator is None else [type(estimator), DecisionTreeClassifier]
    loaded = onebit.load(tmp_path / "wrapped.onebit", trusted=trusted)
    assert snapshot(loaded) == snapshot(learner)
    for each in (learner, loaded):
        onebit.play(each, X[120:], y[120:], fresh=False)
    assert snapshot(loaded) == snapshot(learner)


def test_the_users_classifier_is_left_alone_and_may_be_changed_for_the_next_run(tmp_path: Path) -> None:
    problem, tree = noisy_problem(60), DecisionTreeClassifier()
    learner = onebit.Wrapped(tree, refit="geometric", classes=4)
    onebit.play(learner, problem.X, problem.y)
    assert not hasattr(tree, "tree_")
    assert tree.random_state is None
    other = copy.copy(learner)
    learner.set_params(estimator__max_depth=1)
    learner.save(tmp_path / "wrapped.onebit")
    loaded: Any = onebit.load(tmp_path / "wrapped.onebit", trusted=[DecisionTreeClassifier])
    assert loaded.estimator.max_depth == 1
    for each in (learner, loaded, other):
        onebit.play(each, problem.X, problem.y, fresh=False)
    assert snapshot(learner) == snapshot(loaded) == snapshot(other)


class Failing(GaussianNB):  # type: ignore[misc]
    """Fails once it has seen enough."""

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        if getattr(self, "class_count_", np.zeros(1)).sum() > 8:
            raise RuntimeError("out of luck")
        return super().partial_fit(X, y, classes, sample_weight)


def test_an_error_inside_the_classifier_loses_nothing() -> None:
    problem = noisy_problem(200)
    learner = onebit.Wrapped(Failing(), 0.3, classes=4)
    failed = ""
    for x, label in zip(problem.X, problem.y, strict=True):
        guess = learner.guess(x)
        before = snapshot(learner)
        try:
            learner.tell(guess, guess.label == label)
        except RuntimeError as error:
            failed = str(error)
            break
    assert failed == "out of luck"
    assert snapshot(learner) == before
    assert len(learner._tickets._kept) == 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"estimator": LinearRegression()}, "estimator must be a classifier"),
        ({"estimator": GaussianNB}, "estimator must be a classifier"),
        ({"estimator": 3}, "estimator must be a classifier"),
        ({"estimator": "os:system"}, "one of scikit-learn's"),
        ({"estimator": "sklearn.utils.tests.test_estimator_checks:BaseBadClassifier"}, "one of scikit-learn's"),
        ({"estimator": "sklearn.ensemble:VotingClassifier"}, "must be given itself, with its settings"),
        ({"estimator": "sklearn.tree:NoSuchTree"}, "has no 'NoSuchTree'"),
        ({"estimator": "sklearn.linear_model:LinearRegression"}, "estimator must be a classifier"),
        ({"estimator": DecisionTreeClassifier()}, 'say refit="geometric"'),
        ({"refit": "never"}, "refit must be one of"),
        ({"exploration": -0.1}, "exploration must be"),
    ],
    ids=str,
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        onebit.Wrapped(**settings, classes=2).guess([1.0])


def test_nothing_but_a_classifier_of_scikit_learn_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    import sklearn.ensemble

    called = []

    class Stranger(GaussianNB):  # type: ignore[misc]
        def __init__(self) -> None:
            called.append(1)

    # A module shows what it has imported, too; a file from a stranger could name that.
    monkeypatch.setattr(sklearn.ensemble, "Shown", Stranger, raising=False)
    with pytest.raises(ValueError, match="one of scikit-learn's"):
        onebit.Wrapped("sklearn.ensemble:Shown", classes=2).begin(1)
    assert not called


def test_scores_that_are_no_numbers_are_refused() -> None:
    class Broken(DummyClassifier):  # type: ignore[misc]
        def predict_proba(self, X: Any) -> Any:
            return np.full((len(X), 2), math.nan)

    learner = onebit.Wrapped(Broken(), 0.0, "geometric", classes=2)
    for correct in (True, False, True, False):
        learner.tell(learner.guess([1.0]), correct)
        if learner._models[0] is not None:
            break
    with pytest.raises(ValueError, match="NaN or infinite"):
        learner.guess([1.0])


def test_it_is_written_on_the_command_line() -> None:
    player = parse_player("Wrapped:estimator=sklearn.tree:DecisionTreeClassifier,refit=geometric")
    assert player.spec.settings == {
        "estimator": "sklearn.tree:DecisionTreeClassifier",
        "exploration": 0.05,
        "refit": "geometric",
    }
