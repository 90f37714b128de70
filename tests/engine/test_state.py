"""A state's arrays, scratch and bookmarks: an answer is learned from its own round, whatever came between."""

import copy
import pickle
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import onebit
from onebit.checks.problems import noisy_problem, snapshot
from onebit.inputs import Floats
from onebit.kernels import Gaussian, Linear, Polynomial
from onebit.learners import Learner

PROBLEM = noisy_problem(120)


def laplace(X: Floats, Y: Floats) -> Floats:
    values: Floats = np.exp(-np.abs(X[:, None, :] - Y[None, :, :]).sum(axis=2))
    return values


LEARNERS = [
    onebit.BanditPerceptron(update="authors", classes=4),
    onebit.BanditPerceptron(Gaussian(1.0), update="authors", classes=4),
    onebit.BanditPerceptron(laplace, update="authors", classes=4),
    onebit.Banditron(0.3, Gaussian(1.0), classes=4),
    onebit.BanditSVM(classes=4),
    onebit.BanditSVM(laplace, classes=4),
    onebit.BanditSVM(None, classes=4),
    onebit.NearestNeighbor(0.3, classes=4),
]


def between_nothing(learner: Learner) -> None:
    pass


def between_a_stream(learner: Learner) -> None:
    learner.partial_fit(PROBLEM.X[1:60], PROBLEM.y[1:60])


def between_a_row(learner: Learner) -> None:
    learner.partial_fit(PROBLEM.X[1:2], PROBLEM.y[1:2])


def between_a_look(learner: Learner) -> None:
    learner.probabilities(PROBLEM.X[1])


def between_a_bad_guess(learner: Learner) -> None:
    with pytest.raises(ValueError, match="finite"):
        learner.guess(np.full(5, np.nan))


def between_a_bad_stream(learner: Learner) -> None:
    spoiled = PROBLEM.X[:50].copy()
    spoiled[40] = 1e300  # finite, and too large to be scored
    with np.errstate(all="ignore"), suppress(ValueError):
        learner.partial_fit(spoiled, PROBLEM.y[:50])


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: repr(learner).split(" at ")[0])
@pytest.mark.parametrize(
    "between",
    [between_nothing, between_a_stream, between_a_row, between_a_look, between_a_bad_guess, between_a_bad_stream],
)
def test_an_answer_is_learned_from_its_own_round(learner: Learner, between: Any) -> None:
    """Told at once from scratch paper, or told by a copy that has to look again: the same memory."""
    for start in (0, 13, 14, 15, 16, 17):  # around the first doubling of a store
        player = copy.deepcopy(learner)
        player.begin(5, seed=1)
        for x, label in zip(PROBLEM.X[60 : 60 + start], PROBLEM.y[60 : 60 + start], strict=True):
            earlier = player.guess(x)
            player.tell(earlier, bool(earlier.label == label))
        guess = player.guess(PROBLEM.X[0])
        between(player)
        again, ticket = pickle.loads(pickle.dumps((player, guess)))
        player.tell(guess, bool(guess.label == PROBLEM.y[0]))
        again.tell(ticket, bool(guess.label == PROBLEM.y[0]))
        assert snapshot(player) == snapshot(again)


def test_a_guess_that_fails_in_the_users_kernel_leaves_no_trace() -> None:
    is_broken = False

    def kernel(X: Floats, Y: Floats) -> Floats:
        if is_broken:
            raise RuntimeError("no values today")
        return laplace(X, Y)

    learner = onebit.BanditPerceptron(kernel, update="authors", classes=4, seed=1)
    onebit.play(learner, PROBLEM.X[:40], PROBLEM.y[:40])
    twin = copy.deepcopy(learner)
    guess, same = learner.guess(PROBLEM.X[50]), twin.guess(PROBLEM.X[50])
    is_broken = True
    with pytest.raises(RuntimeError, match="today"):
        learner.guess(PROBLEM.X[51])
    is_broken = False
    learner.tell(guess, True)
    twin.tell(same, True)
    assert snapshot(learner) == snapshot(twin)


def test_a_copy_is_a_learner_of_its_own() -> None:
    learner = onebit.BanditSVM(classes=4).fit(PROBLEM.X[:50], PROBLEM.y[:50])
    known = snapshot(learner)
    copy.copy(learner).partial_fit(PROBLEM.X[50:], PROBLEM.y[50:])
    assert snapshot(learner) == known


def test_a_bad_row_of_a_stream_is_named() -> None:
    X = PROBLEM.X[:30].copy()
    X[16:19] = 1e200  # two of them have an infinite inner product
    for learner in (
        onebit.BanditPerceptron(Polynomial(3), update="authors"),
        onebit.Banditron(kernel=Linear()),
        onebit.BanditSVM(Linear(), scale=None),
    ):
        for engine in ("stream", "rounds"):
            with np.errstate(all="ignore"), pytest.raises(ValueError, match="NaN or infinite") as caught:
                onebit.play(learner, X, PROBLEM.y[:30], engine=engine)
            assert engine == "rounds" or "X[1" in str(caught.value)


def test_an_adaptive_stream_may_have_any_limit() -> None:
    class Short:
        classes, n_features = 2, 1

        def next(self, learner: Any) -> Any:
            return (np.ones(1), 1) if learner.round < 5 else None

    assert onebit.play(onebit.BanditPerceptron(), Short(), max_rounds=10**6).rounds == 5


def test_ctrl_c_while_memory_grows_leaves_no_short_scratch_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code would write beyond its end."""
    learner, twin = (onebit.BanditSVM(Gaussian(0.1), classes=4) for _ in range(2))
    onebit.play(learner, PROBLEM.X[:1], PROBLEM.y[:1])
    state: Any = learner._state
    renew = state.renew

    def interrupted() -> None:
        if state.scratch.lines.shape[1] < state.arrays.examples.shape[1]:
            raise KeyboardInterrupt
        renew()

    def play_on(t: int) -> None:
        learner.partial_fit(PROBLEM.X[t : t + 1], PROBLEM.y[t : t + 1])

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(state, "renew", interrupted)
        for t in range(1, 60):
            play_on(t)
    assert state.scratch.lines.shape[1] < state.arrays.examples.shape[1]
    for t in range(learner.n_rounds_, 60):
        play_on(t)
        assert state.scratch.lines.shape[1] == state.arrays.examples.shape[1]
    onebit.play(twin, PROBLEM.X[:60], PROBLEM.y[:60])
    assert snapshot(learner) == snapshot(twin)
