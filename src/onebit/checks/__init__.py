"""Contract checks for learners, kernels and streams, also for users' own.

``check_learner(MyLearner(classes=3))`` raises an AssertionError with what is broken. Every function of the modules here
whose name starts with ``_check_`` is a check; a new one needs no list. A check that does not apply raises
``unittest.SkipTest``, so that test runners show it.
"""

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any
from unittest import SkipTest

from onebit.checks import kernels_and_streams, protocol
from onebit.kernels import Kernel, as_kernel
from onebit.learners import Learner

_Check = Callable[[Any], None]


def _checks(subject: str, module: ModuleType) -> list[_Check]:
    """Return the checks that have a parameter of this name."""
    functions = inspect.getmembers(module, inspect.isfunction)
    found = [function for name, function in functions if name.startswith("_check_")]
    return [each for each in found if subject in inspect.signature(each).parameters]


LEARNER_CHECKS = _checks("learner", protocol)
"""The checks of every learner."""

KERNEL_CHECKS = _checks("kernel", kernels_and_streams)
"""The checks of every kernel."""

STREAM_CHECKS = _checks("stream", kernels_and_streams)
"""The checks of every stream."""


def _run(checks: list[_Check], subject: Any) -> dict[str, str]:
    left_out = {}
    for check in checks:
        name = check.__name__.removeprefix("_")
        try:
            check(subject)
        except SkipTest as reason:
            left_out[name] = str(reason)
        except AssertionError as error:
            if str(error):
                raise
            promise = inspect.cleandoc(check.__doc__ or "").partition("\n")[0]
            raise AssertionError(f"{name} fails for {subject!r:.80}. It checks: {promise}") from error
    return left_out


def check_learner(learner: Learner) -> dict[str, str]:
    """Run every check on clones of a learner, with classes of the checks; return those that do not apply, and why."""
    return _run(LEARNER_CHECKS, learner)


def check_kernel(kernel: Kernel | Callable[..., Any]) -> dict[str, str]:
    """Run every check on a kernel or a function ``kernel(X, Y)``; return those that do not apply, and why."""
    return _run(KERNEL_CHECKS, as_kernel(kernel))


def check_stream(stream: Callable[..., Any]) -> dict[str, str]:
    """Run every check on a function ``stream(rounds, seed) → X, y``; return those that do not apply, and why."""
    return _run(STREAM_CHECKS, stream)


__all__ = ["KERNEL_CHECKS", "LEARNER_CHECKS", "STREAM_CHECKS", "check_kernel", "check_learner", "check_stream"]
