"""Contract checks for learners, kernels and streams, also for users' own.

``check_learner(MyLearner(classes=3))`` raises an AssertionError with what is broken. Every function of the modules here
whose name starts with ``check_`` is a check; a new one needs no list. A check that does not apply raises
``unittest.SkipTest``, so that test runners show it.
"""

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any
from unittest import SkipTest

from onebit.checks import (
    engines,
    game,
    guarantees,
    inputs,
    kernel_contract,
    lessons,
    saving_contract,
    sharing,
    stream_contract,
    ticket_contract,
)
from onebit.kernels import Kernel, as_kernel
from onebit.learners import Learner

Check = Callable[[Any], None]


def _checks(*modules: ModuleType) -> list[Check]:
    found: list[Check] = []
    for module in modules:
        members = inspect.getmembers(module, inspect.isfunction)
        found += [f for name, f in members if name.startswith("check_") and f.__module__ == module.__name__]
    return found


LEARNER_CHECKS = _checks(game, engines, lessons, ticket_contract, saving_contract, sharing, guarantees, inputs)
"""The checks of every learner."""

KERNEL_CHECKS = _checks(kernel_contract)
"""The checks of every kernel."""

STREAM_CHECKS = _checks(stream_contract)
"""The checks of every stream."""


def _run(checks: list[Check], thing: Any) -> dict[str, str]:
    left_out = {}
    for check in checks:
        try:
            check(thing)
        except SkipTest as reason:
            left_out[check.__name__] = str(reason)
    return left_out


def check_learner(learner: Learner) -> dict[str, str]:
    """Run every learner check; the learner itself is cloned, not played.

    Its classes do not matter: the checks play problems of their own.

    Returns
    -------
    dict
        The checks that do not apply, and why: a learner without a promise cannot break one.
    """
    return _run(LEARNER_CHECKS, learner)


def check_kernel(kernel: Kernel | Callable[..., Any]) -> dict[str, str]:
    """Run every check on a kernel or a function ``kernel(X, Y)``; return those that do not apply, and why."""
    return _run(KERNEL_CHECKS, as_kernel(kernel))


def check_stream(stream: Callable[..., Any]) -> dict[str, str]:
    """Run every check on a function ``stream(rounds, seed) → X, y``; return those that do not apply, and why."""
    return _run(STREAM_CHECKS, stream)


__all__ = ["KERNEL_CHECKS", "LEARNER_CHECKS", "STREAM_CHECKS", "check_kernel", "check_learner", "check_stream"]
