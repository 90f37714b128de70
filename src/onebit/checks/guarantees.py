"""Contract checks: sure bounds are asserted in every run, expected ones on average over fixed seeds."""

import math
from unittest import SkipTest

import numpy as np

from onebit.bounds import at_most
from onebit.bounds.claims import About
from onebit.checks.problems import fresh, separable_problem, tell
from onebit.learners import Learner
from onebit.learners.base import in_linear_space
from onebit.playing import play

# Classes, features, margin: as large a margin as `separable_problem` has room for, and a smaller one for more classes.
_SETTINGS = ((2, 3, 0.3), (3, 4, 0.2), (5, 5, 0.12))


def _promised(learner: Learner, about: About, n_classes: int, n_features: int, margin: float) -> float:
    """Return a learner's promise on `separable_problem`; infinity if it has none."""
    # Its margin is known in R^d only.
    if not in_linear_space(learner):
        return math.inf
    return at_most(learner.promise(n_classes=n_classes, n_features=n_features, radius=1.0, margin=margin), about)


def check_promises_that_hold_always(learner: Learner) -> None:
    """Updates and mistakes never exceed what the theorem promises on separable data of known margin."""
    is_promised = False
    for n_classes, n_features, margin in _SETTINGS:
        updates = _promised(learner, "updates", n_classes, n_features, margin)
        mistakes = _promised(learner, "mistakes", n_classes, n_features, margin)
        if min(updates, mistakes) < math.inf:
            is_promised = True
            for seed in range(5):
                problem = separable_problem(1500, n_classes, n_features, margin, seed)
                trace = play(fresh(learner), problem.X, problem.y, seed=seed)
                assert trace.updates <= updates, f"{trace.updates} updates; promised at most {updates}"
                assert trace.mistakes <= mistakes, f"{trace.mistakes} mistakes; promised at most {mistakes}"
    if not is_promised:
        raise SkipTest("it promises nothing that holds always in R^d")


def check_promises_that_hold_late(learner: Learner) -> None:
    """The bound on updates holds however late feedback comes."""
    updates = _promised(learner, "updates", 3, 4, 0.2)
    if updates == math.inf:
        raise SkipTest("it promises nothing about updates in R^d")
    problem = separable_problem(2000, 3, 4, 0.2)
    for late in (100, 2000):
        player = fresh(learner, classes=3)
        for start in range(0, 2000, late):
            tickets = [player.guess(x) for x in problem.X[start : start + late]]
            # The last guess is answered first: as late and as much out of order as can be.
            for ticket, label in zip(
                reversed(tickets), reversed(problem.y[start : start + late].tolist()), strict=True
            ):
                tell(player, ticket, label)
        assert player.n_updates_ <= updates, f"{player.n_updates_} updates; promised at most {updates}"


def check_promises_that_hold_on_average(learner: Learner, runs: int = 20) -> None:
    """Mean mistakes over fixed seeds stay under the expected bound, within three standard errors."""
    is_promised = False
    for n_classes, n_features, margin in _SETTINGS:
        expected = _promised(learner, "expected mistakes", n_classes, n_features, margin)
        if expected < math.inf:
            is_promised = True
            problem = separable_problem(1500, n_classes, n_features, margin)
            counts = [play(fresh(learner), problem.X, problem.y, seed=seed).mistakes for seed in range(runs)]
            # Three standard errors: a right promise fails one time in 700, and the seeds are fixed.
            allowed = expected + 3.0 * np.std(counts, ddof=1) / math.sqrt(runs)
            assert np.mean(counts) <= allowed, f"{np.mean(counts)} mistakes on average; promised {expected}"
    if not is_promised:
        raise SkipTest("it promises nothing about expected mistakes in R^d")
