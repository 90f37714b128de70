"""Finds all learners, kernels and streams to check; there is no list to maintain."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any

import onebit.kernels
import onebit.learners
import onebit.streams
from onebit.kernels import Custom, Kernel
from onebit.learners import Learner


def learner_classes() -> list[type[Learner]]:
    """Return every learner class that a module of `onebit.learners` defines, exported or not."""
    found = set()
    for module in pkgutil.walk_packages(onebit.learners.__path__, f"{onebit.learners.__name__}."):
        for _, cls in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            # What several learners share is no learner: Learner, RegressionLearner.
            if issubclass(cls, Learner) and not cls.__name__.endswith("Learner"):
                found.add(cls)
    return sorted(found, key=lambda cls: cls.__name__)


def learner_examples() -> list[Learner]:
    """Return every learner, with the settings of its `examples`."""
    return [learner for cls in learner_classes() for learner in cls.examples()]


def kernel_examples() -> list[Kernel]:
    """Return every kernel of onebit, on rows as they are and on rows of length 1."""
    classes = (cls for _, cls in inspect.getmembers(onebit.kernels, inspect.isclass) if issubclass(cls, Kernel))
    return [
        cls(**how)
        for cls in classes
        if not inspect.isabstract(cls) and cls is not Custom
        for how in ({}, {"normalize": True})
    ]


def stream_functions() -> list[Callable[..., Any]]:
    """Return every function ``stream(rounds, seed)`` that `onebit.streams` exports."""
    functions = (function for _, function in inspect.getmembers(onebit.streams, inspect.isfunction))
    return [each for each in functions if list(inspect.signature(each).parameters) == ["rounds", "seed"]]
