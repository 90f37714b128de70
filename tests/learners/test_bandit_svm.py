"""BanditSVM: the guarantee as an oracle, the paper's sets, what it promises and shows, bad settings."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import onebit
from onebit.bounds import at_most
from onebit.checks.problems import noisy_problem, separable_problem
from onebit.kernels import Gaussian, Linear, Rational
from onebit.learners import bandit_svm
from onebit.learners.base import in_linear_space
from onebit.theory import margin as margin_of


def guarded(kernel: Any = "auto", **settings: Any) -> onebit.BanditSVM:
    """Return the learner on rows as they are."""
    return onebit.BanditSVM(kernel, **{"scale": None, **settings})


def state_of(learner: onebit.BanditSVM) -> Any:
    return learner._state


@pytest.mark.parametrize(
    "settings",
    [{}, {"budget": 8}, {"C": math.inf}, {"C": 0.5}, {"kernel": [None]}, {"scale": "online"}],
    ids=str,
)
def test_guarantee(settings: dict[str, Any]) -> None:
    """On rows the linear kernel separates, whatever budget and softness; the mean of ten seeds, without room."""
    problem = separable_problem(600)
    margin = margin_of(problem.X, problem.y)
    numbers = {"n_classes": problem.n_classes, "n_features": problem.X.shape[1]}
    claims = guarded(**settings).promise(**numbers, radius=margin.radius, margin=margin.strong)
    promised = at_most(claims, "expected mistakes")
    runs = [onebit.play(guarded(**settings), problem.X, problem.y, seed=seed).mistakes for seed in range(10)]
    assert np.mean(runs) <= promised < math.inf


def test_what_is_promised() -> None:
    numbers: dict[str, Any] = {"n_classes": 3, "n_features": 2, "radius": 1.0, "margin": 0.1}
    productive = 16 * 100
    assert guarded([None], C=math.inf).promise(**numbers)[0].value == 11 + 62 * productive
    m = len(bandit_svm._DEFAULT_BANK)
    assert guarded(C=math.inf).promise(**numbers)[0].value == 11 + 62 * (m * productive + m - 1)
    assert guarded(C=100.0).promise(**numbers)[0].value == 11 + 62 * (m * 1608 + m - 1)
    by_default = onebit.BanditSVM().promise(**numbers)[0].value
    assert by_default == 11 + 62 * ((m + 1) * 1680 + m), "the guard is one more"
    assert onebit.BanditSVM(Rational(normalize=True)).promise(**numbers)[0].value == 11 + 62 * (2 * 1680 + 1)
    assert onebit.BanditSVM(exploration="greedy").promise(**numbers) == ()
    assert guarded(Rational(normalize=True)).promise(**numbers) == (), "no linear kernel"
    soft = guarded(None).promise(**numbers)[0].value
    assert soft == 11 + 62 * 1680, "weights are kept when old facts are forgotten"
    assert onebit.BanditSVM(None).promise(**numbers) == (), "scaled columns are other rows, and there is no guard"
    uniform = guarded(None, C=math.inf, exploration="uniform").promise(**numbers)[0].value
    assert uniform == 2 * 400
    assert guarded(None, exploration="uniform").promise(**numbers) == (), "a soft margin"


def test_a_banks_promise_is_checked() -> None:
    """It is about rows as they are, so contract checks and duels may ask for it; a kernel's is about its space."""
    assert in_linear_space(guarded())
    assert in_linear_space(guarded([Gaussian(), None]))
    assert not in_linear_space(guarded(Gaussian()))


def test_opinions() -> None:
    problem = noisy_problem(300, n_classes=4)
    learner = guarded(classes=["a", "b", "c", "d"])
    onebit.play(learner, problem.X, np.array(list("abcd"))[problem.y])
    opinions = learner.opinions(problem.X[0])
    assert {opinion.kernel for opinion in opinions} == set(learner.bank_)
    assert sum(opinion.weight for opinion in opinions) == pytest.approx(1.0)
    assert [opinion.weight for opinion in opinions] == sorted((o.weight for o in opinions), reverse=True)
    for opinion in opinions:
        assert opinion.label == learner.classes_[np.argmax(opinion.scores)]
    leader = opinions[0].scores
    others = np.delete(leader, np.argmax(leader))
    if leader.max() >= 0.5 and others.max() <= 0.0:  # it is sure, and guesses alone
        opinions = [opinions[0]._replace(weight=1.0)]
    votes = np.sum([opinion.weight * np.clip(opinion.scores, -2.0, 2.0) for opinion in opinions], axis=0)
    scores = learner.decision_function(problem.X[:1])[0]
    most = 0.1 if votes.max() >= 0.0 else 0.4
    assert np.all((scores - votes > 0.0) & (scores - votes <= most)), "beside the vote, a preference for what is new"


def test_what_is_proved_of_the_stored_examples_is_so() -> None:
    X, y = onebit.streams.paper_weak(rounds=300, seed=1)
    learner = onebit.BanditSVM()
    with pytest.raises(AttributeError, match="has not played yet"):
        _ = learner.proved_
    onebit.play(learner, X, y, seed=1)
    support, proved = learner.support_, learner.proved_
    assert proved.shape == (len(support), 3)
    for row, facts in zip(support, proved.tolist(), strict=True):
        (at,) = np.flatnonzero((row == X).all(axis=1))
        if 1 in facts:
            assert facts == [1 if label == y[at] else -1 for label in range(3)]
        else:
            assert -1 in facts
            assert facts[y[at]] == 0


@pytest.mark.slow
def test_many_features_are_left_to_the_linear_space() -> None:
    X = scipy.sparse.random_array((50, 2**20), density=1e-5, rng=np.random.default_rng(0), format="csr")
    learner = guarded(scale="online", classes=2)
    onebit.play(learner, X, np.arange(50) % 2)
    assert learner.bank_ == (Linear(normalize=True),)
    assert learner.weights_.shape == (2, 2**20 + 1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kernel": []}, "kernel .*empty"),
        ({"kernel": "rbf"}, "kernel .*auto.*rbf"),
        ({"scale": "standard"}, "scale .*online.*standard"),
        ({"exploration": "never"}, "exploration .*guarded.*never"),
    ],
    ids=str,
)
def test_bad_settings(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        onebit.BanditSVM(classes=2, **settings).guess([1.0])


def test_a_list_names_each_kernel_once() -> None:
    """Two linear kernels would keep what was removed in the same weights."""
    with pytest.raises(ValueError, match="once"):
        guarded([None, Linear(normalize=True)], classes=2).guess([1.0])


def test_rows_that_are_scaled_may_be_longer_than_1() -> None:
    with pytest.raises(ValueError, match="normalize=True"):
        guarded(Rational(), scale="online", classes=2).guess([1.0])


def test_opinions_are_those_of_the_bank_that_plays() -> None:
    learner = guarded(classes=2)
    with pytest.raises(ValueError, match="has not played"):
        learner.opinions([1.0, 2.0])
    learner.tell(learner.guess([1.0, 2.0]), False)
    learner.set_params(kernel=[None])
    assert len(learner.opinions([1.0, 2.0])) == len(learner.bank_) == len(bandit_svm._DEFAULT_BANK)


def theorem_3_sequence(n_vectors: int, n_classes: int, seed: int) -> tuple[Any, Any, float]:
    """Return the paper's hard sequence within the unit ball, and its margin, checked on a separator."""
    labels = np.random.default_rng(seed).integers(n_classes, size=n_vectors)
    X = np.hstack([np.eye(n_vectors), np.ones((n_vectors, 1))]) / math.sqrt(2.0)
    size = math.sqrt(4 * n_vectors + n_classes)
    W = np.hstack([2.0 * (labels == np.arange(n_classes)[:, None]), -np.ones((n_classes, 1))]) / size
    signs = np.where(labels[:, None] == np.arange(n_classes), 1.0, -1.0)
    margin = math.sqrt(2.0) / size
    assert np.sum(W**2) <= 1.0 + 1e-12
    assert np.all(signs * (X @ W.T) >= margin / 2.0 - 1e-12)
    return np.repeat(X, n_classes - 1, axis=0), np.repeat(labels, n_classes - 1), margin


@pytest.mark.parametrize("replays", [0, 10])
@pytest.mark.parametrize("chance", ["uniform", 0.5])
@pytest.mark.parametrize("kernel", [None, Linear()], ids=repr)
def test_the_guarantee_on_theorem_3s_sequence(kernel: Any, replays: int, chance: Any) -> None:
    n, K, mistakes = 15, 4, []
    for seed in range(40):
        X, y, margin = theorem_3_sequence(n, K, seed)
        learner = onebit.BanditSVM(kernel, C=math.inf, exploration=chance, scale=None, replays=replays, classes=K)
        mistakes.append(onebit.play(learner, X, y, seed=seed).mistakes)
    linear = onebit.BanditSVM(None, C=math.inf, exploration=chance, scale=None)
    promise = linear.promise(n_classes=K, n_features=n + 1, radius=1.0, margin=margin * (1.0 - 1e-12))
    factor = K - 1.0 if chance == "uniform" else K / 0.5 - 1.0
    assert at_most(promise, "expected mistakes") == factor * 2 * (4 * n + K)
    assert np.mean(mistakes) <= at_most(promise, "expected mistakes")
    assert np.mean(mistakes) >= 0.95 * n * (K - 1) / 2  # Theorem 3: no learner makes fewer on average


@pytest.mark.parametrize("settings", [{}, {"scale": None}, {"kernel": None, "C": math.inf, "scale": None}], ids=str)
def test_the_defaults_guarantee_on_theorem_3s_sequence(settings: dict[str, Any]) -> None:
    n, K, mistakes = 15, 4, []
    for seed in range(40):
        X, y, margin = theorem_3_sequence(n, K, seed)
        learner = onebit.BanditSVM(classes=K, **settings)
        mistakes.append(onebit.play(learner, X, y, seed=seed).mistakes)
    promise = learner.promise(n_classes=K, n_features=n + 1, radius=1.0, margin=margin * (1.0 - 1e-12))
    assert np.mean(mistakes) <= at_most(promise, "expected mistakes") < math.inf
    assert np.mean(mistakes) >= 0.95 * n * (K - 1) / 2  # Theorem 3: no learner makes fewer on average


@pytest.mark.parametrize("margin", [0.3, 0.1])
def test_wrong_side_facts_are_counted_by_the_bound_in_every_run(margin: float) -> None:
    problem = separable_problem(3000, 3, 5, margin)
    limit = math.floor(4.0 / margin**2)
    for seed in range(20):
        learner = onebit.BanditSVM(None, C=math.inf, exploration="uniform", scale=None, classes=3, replays=seed % 3)
        trace = onebit.play(learner, problem.X, problem.y, seed=seed, engine="stream")
        claimed_mistakes = trace.mistakes - trace.uniform_guesses
        assert claimed_mistakes <= limit
        twin = onebit.FullInformationSVM(None, C=math.inf, scale=None, classes=3, replays=seed % 3)
        assert onebit.play(twin, problem.X, problem.y, seed=seed).mistakes <= limit


def test_the_twins_bound_needs_rows_as_they_come() -> None:
    """On ±1 it keeps its 2 mistakes; scaled columns are other rows while the scale changes, and promise nothing."""
    y = np.array([0] * 16 + [1, 0] * 50)
    X = np.where(y == 0, 1.0, -1.0)[:, None]
    numbers: dict[str, Any] = {"n_classes": 2, "n_features": 1, "radius": 1.0, "margin": math.sqrt(2.0)}
    plain, scaled = (onebit.FullInformationSVM(None, C=math.inf, scale=scale) for scale in (None, "online"))
    (claim,) = plain.promise(**numbers)
    assert claim.value == 2
    assert onebit.play(plain, X, y).mistakes <= 2
    assert scaled.promise(**numbers) == ()
    assert onebit.play(scaled, X, y).mistakes > 2


def test_a_budget_keeps_the_linear_guarantee() -> None:
    problem = separable_problem(3000, 3, 5, 0.2)
    learner = onebit.BanditSVM(None, C=math.inf, exploration="uniform", scale=None, budget=3)
    mistakes = [onebit.play(learner, problem.X, problem.y, seed=seed).mistakes for seed in range(20)]
    assert np.mean(mistakes) <= 2 * math.floor(4.0 / 0.2**2)


@pytest.mark.parametrize(
    ("stream", "kernel", "most"),
    [
        (onebit.streams.paper_strong, "auto", 12),
        (onebit.streams.paper_weak, "auto", 16),
        (onebit.streams.paper_strong, None, 14),
        (onebit.streams.paper_weak, Rational(), 14),
    ],
)
def test_few_mistakes_on_the_papers_sets(stream: Any, kernel: Any, most: int) -> None:
    mistakes = []
    for seed in range(6):
        X, y = stream(rounds=50_000, seed=seed)
        learner = onebit.BanditSVM(kernel, scale=None)
        mistakes.append(onebit.play(learner, X, y, seed=seed).mistakes)
        assert state_of(learner).size < 500
    assert np.mean(mistakes) <= most


@pytest.mark.parametrize("kernel", ["auto", None], ids=repr)
@pytest.mark.parametrize("C", [1e-200, 1e-6, 1e-4, 5e-4])
def test_a_soft_margin_still_learns(kernel: Any, C: float) -> None:
    problem = separable_problem(1500)
    learner = onebit.BanditSVM(kernel, C=C, classes=3)
    assert onebit.play(learner, problem.X, problem.y, seed=1).mistakes < 60


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"C": 0}, ["C", "0"]),
        ({"C": -math.inf}, ["C", "-inf"]),
        ({"C": 5e-324}, ["C", "5e-324"]),
        ({"C": "hard"}, ["C", "hard"]),
        ({"exploration": "always"}, ["exploration", "always", "greedy"]),
        ({"exploration": 1.5}, ["exploration", "1.5"]),
        ({"budget": 0}, ["budget", "0"]),
        ({"budget": 2**63}, ["budget", "2147483648"]),
        ({"replays": 2**60}, ["replays", "2147483648"]),
        ({"replays": -1}, ["replays", "-1"]),
        ({"kernel": "rbf"}, ["kernel", "rbf", "auto"]),
    ],
    ids=str,
)
def test_bad_settings_are_named(settings: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ValueError, match="must be") as caught:
        onebit.BanditSVM(classes=2, **settings).guess([1.0])
    assert all(word in str(caught.value) for word in words)


def test_learned_arrays_say_when_they_are_there() -> None:
    with pytest.raises(AttributeError, match="weights_"):
        _ = onebit.BanditSVM(classes=2).fit(np.eye(2), [0, 1]).weights_
    with pytest.raises(AttributeError, match="support_"):
        _ = onebit.BanditSVM(None, classes=2).fit(np.eye(2), [0, 1]).support_
