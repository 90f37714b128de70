"""Contract checks that anyone can run on a learner, kernel or stream of their own.

``check_learner(MyLearner(classes=3))`` raises an AssertionError that says what is broken. Every function of the modules
here whose name starts with ``check_`` is a check; a new one needs no list.
"""

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from onebit.checks import engines, game, guarantees, inputs, kernel_contract, stream_contract
from onebit.kernels import Kernel
from onebit.learners import Learner

Check = Callable[[Any], None]


def _checks(*modules: ModuleType) -> list[Check]:
    found: list[Check] = []
    for module in modules:
        members = inspect.getmembers(module, inspect.isfunction)
        found += [f for name, f in members if name.startswith("check_") and f.__module__ == module.__name__]
    return found


LEARNER_CHECKS = _checks(game, engines, guarantees, inputs)
KERNEL_CHECKS = _checks(kernel_contract)
STREAM_CHECKS = _checks(stream_contract)


def check_learner(learner: Learner) -> None:
    """Run every learner check; the learner itself is cloned, not played."""
    for check in LEARNER_CHECKS:
        check(learner)


def check_kernel(kernel: Kernel) -> None:
    """Run every kernel check."""
    for check in KERNEL_CHECKS:
        check(kernel)


def check_stream(stream: Callable[..., Any]) -> None:
    """Run every check on a function ``stream(rounds, seed) → X, y``."""
    for check in STREAM_CHECKS:
        check(stream)


__all__ = ["KERNEL_CHECKS", "LEARNER_CHECKS", "STREAM_CHECKS", "check_kernel", "check_learner", "check_stream"]
