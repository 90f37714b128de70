"""One suite that finds every learner, kernel and stream by itself and holds it to the public contract."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import everything
import onebit
from foundation_checks import FOUNDATION_CHECKS, check_threads_may_share_it
from onebit import kernels
from onebit.checks import KERNEL_CHECKS, LEARNER_CHECKS, STREAM_CHECKS
from onebit.kernels import Kernel
from onebit.learners import Learner, all_learners

LEARNERS, KERNELS, STREAMS = everything.learner_examples(), everything.kernel_examples(), everything.stream_functions()


def laplace(X: Any, Y: Any) -> Any:
    return np.exp(-np.sqrt(np.maximum(((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2), 0.0)))


# Half of what the suite takes is compiling. Of learners that differ little from one, or share the compiled game of one,
# that is checked always, the slow run alone checks these.
_ALIKE: list[Learner] = [
    onebit.BanditPerceptron(ties="first"),
    onebit.BanditPerceptron(ties="random"),
    onebit.FullInformationSVM(None, C=math.inf, scale=None, budget=40),
    onebit.BanditPerceptron(kernels.Rational(normalize=True), update="authors"),
    onebit.Banditron(0.2, kernels.Polynomial(2)),
    onebit.Banditron(1.0),
    onebit.BanditPerceptron(kernels.Linear()),
    onebit.BanditPerceptron(laplace),
    onebit.BanditPerceptron(kernels.Multinomial(3), ties="first"),
    onebit.MulticlassPerceptron(kernels.Rational(normalize=True)),
    onebit.Banditron(0.3, kernels.Gaussian(0.5)),
    onebit.LinUCB(0.3, diagonal=True),
    onebit.ThompsonSampling(1.0, diagonal=True),
    onebit.Confidit(alpha=0.2, eta=0.01, diagonal=True),
    onebit.EpsilonGreedy(0.2, "logistic"),
    onebit.ExploreFirst(20, "logistic", learning_rate=1.0),
    onebit.SquareCB(10.0, diagonal=True),
    onebit.RegCB(0.1, "elimination", diagonal=True),
    onebit.FullInformationSVM(budget=40),
    onebit.SOBA(),
    onebit.SOBA(0.2, diagonal=True),
    onebit.PNewtron(0.2, diagonal=True),
    onebit.AdaptiveSurrogate(),
    onebit.ConservativePassiveAggressive(),
    onebit.FullInformationPassiveAggressive(),
    onebit.FullInformationLogistic(),
    onebit.Confidit(),
    onebit.ExploreFirst(40),
    onebit.SquareCB(),
    onebit.PNewtron(),
    onebit.BanditPerceptron(kernels.Gaussian(0.7), ties="random"),
    onebit.MulticlassPerceptron(kernels.Multinomial(3, normalize=True)),
    onebit.BanditSVM(budget=60, scale=None),
    onebit.BanditSVM(None, C=math.inf, exploration="uniform", scale=None),
    onebit.BanditSVM(kernels.Rational(normalize=True), C=math.inf, exploration="uniform", scale=None, budget=50),
    onebit.BanditSVM([kernels.Linear(), kernels.Gaussian()], budget=30, exploration="greedy"),
]
# Played in Python, a thousand times slower: test_wrapped.py holds it to what is quick, the slow run to all.
_BY_HAND = [onebit.Wrapped(), onebit.Wrapped("sklearn.tree:DecisionTreeClassifier", refit="geometric")]
_ALIKE += _BY_HAND
LEARNERS = [each for each in LEARNERS if repr(each) not in map(repr, _ALIKE)]
ALL_LEARNERS = [*LEARNERS, *(pytest.param(learner, marks=pytest.mark.slow) for learner in _ALIKE)]
KERNELS += [
    kernels.Custom(laplace),
    kernels.Gaussian(0.2),
    kernels.Polynomial(5),
    kernels.Multinomial(7, normalize=True),
]


def name(thing: Any) -> str:
    return re.sub(r" at 0x\w+", "", getattr(thing, "__name__", repr(thing)))


def test_discovery_finds_everything() -> None:
    # Discovery walks through the modules, `all_learners` through what is exported: a forgotten export parts them.
    assert set(everything.learner_classes()) == set(all_learners())
    found = {type(learner) for learner in [*LEARNERS, *_ALIKE]}
    assert found == set(all_learners()), "examples() of a learner yields nothing"
    names = [cls.__name__ for cls in all_learners()]
    assert names == sorted(names)
    assert {"BanditPerceptron", "BanditSVM", "UniformGuess"} <= set(names)
    assert {"Linear", "Rational", "Gaussian"} <= {type(kernel).__name__ for kernel in KERNELS}
    assert {stream.__name__ for stream in STREAMS} >= {"paper_strong", "paper_weak"}
    assert len(LEARNER_CHECKS) >= 20
    assert len(KERNEL_CHECKS) >= 7
    assert len(STREAM_CHECKS) >= 3


@pytest.mark.parametrize("check", [*LEARNER_CHECKS, *FOUNDATION_CHECKS], ids=name)
@pytest.mark.parametrize("learner", ALL_LEARNERS, ids=name)
def test_learner(learner: Learner, check: Callable[[Any], None]) -> None:
    check(learner)


@pytest.mark.parametrize("check", KERNEL_CHECKS, ids=name)
@pytest.mark.parametrize("kernel", KERNELS, ids=name)
def test_kernel(kernel: Kernel, check: Callable[[Any], None]) -> None:
    check(kernel)


@pytest.mark.parametrize("check", STREAM_CHECKS, ids=name)
@pytest.mark.parametrize("stream", STREAMS, ids=name)
def test_stream(stream: Callable[..., Any], check: Callable[[Any], None]) -> None:
    check(stream)


@pytest.mark.slow
@pytest.mark.parametrize("learner", ALL_LEARNERS, ids=name)
def test_many_threads_for_long(learner: Learner) -> None:
    check_threads_may_share_it(learner, threads=8, rounds=600)


@pytest.mark.parametrize("stream", STREAMS, ids=name)
def test_our_streams_refuse_bad_arguments(stream: Callable[..., Any]) -> None:
    for bad, named in (({"rounds": 0}, "rounds"), ({"rounds": 2.5}, "rounds"), ({"rounds": 5, "seed": -1}, "seed")):
        with pytest.raises(ValueError, match=named):
            stream(**bad)
