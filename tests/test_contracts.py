"""One suite that finds every learner, kernel and stream by itself and holds it to the public contract."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import onebit
from onebit import kernels, streams
from onebit.checks import KERNEL_CHECKS, LEARNER_CHECKS, STREAM_CHECKS
from onebit.kernels import Custom, Kernel
from onebit.learners import Learner, all_learners

LEARNERS = [learner for cls in all_learners() for learner in cls.examples()]
KERNELS = [
    cls(**settings)
    for _, cls in inspect.getmembers(kernels, inspect.isclass)
    if issubclass(cls, Kernel) and cls not in (Kernel, Custom)
    for settings in ({}, {"normalize": True})
]
STREAMS = [
    stream
    for _, stream in inspect.getmembers(streams, inspect.isfunction)
    if list(inspect.signature(stream).parameters) == ["rounds", "seed"]
]


def laplace(X: Any, Y: Any) -> Any:
    return np.exp(-np.sqrt(np.maximum(((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2), 0.0)))


LEARNERS += [
    onebit.BanditPerceptron(kernels.Linear()),
    onebit.BanditPerceptron(laplace),
    onebit.BanditPerceptron(kernels.Multinomial(3), ties="first"),
    onebit.MulticlassPerceptron(kernels.Rational(normalize=True)),
    onebit.Banditron(0.3, kernels.Gaussian(0.5)),
]
KERNELS += [
    kernels.Custom(laplace),
    kernels.Gaussian(0.2),
    kernels.Polynomial(5),
    kernels.Multinomial(7, normalize=True),
]


def name(thing: Any) -> str:
    return re.sub(r" at 0x\w+", "", getattr(thing, "__name__", repr(thing)))


def test_discovery_finds_everything() -> None:
    assert {type(learner).__name__ for learner in LEARNERS} == {cls.__name__ for cls in all_learners()}
    assert {type(kernel).__name__ for kernel in KERNELS} >= {
        "Linear",
        "Rational",
        "Polynomial",
        "Multinomial",
        "Gaussian",
    }
    assert {stream.__name__ for stream in STREAMS} >= {"paper_strong", "paper_weak"}
    assert len(LEARNER_CHECKS) >= 20
    assert len(KERNEL_CHECKS) >= 7
    assert len(STREAM_CHECKS) >= 4


@pytest.mark.parametrize("check", LEARNER_CHECKS, ids=name)
@pytest.mark.parametrize("learner", LEARNERS, ids=name)
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
