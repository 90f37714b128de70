"""The theorems as oracles: what holds always is asserted always, what holds on average over fixed seeds."""

import math

import numpy as np

from onebit.bounds import at_most
from onebit.checks.problems import fresh, separable_problem
from onebit.learners import Learner
from onebit.learners.space_learner import in_linear_space
from onebit.play import play

# Classes, features, margin: as large a margin as `separable_problem` has room for, and a smaller one for more classes.
_SETTINGS = ((2, 3, 0.3), (3, 4, 0.2), (5, 5, 0.12))


def check_promises_that_hold_always(learner: Learner) -> None:
    """Updates and mistakes never exceed what the theorem promises on separable data of known margin."""
    if not in_linear_space(learner):
        return
    for n_classes, n_features, margin in _SETTINGS:
        for seed in range(5):
            problem = separable_problem(1500, n_classes, n_features, margin, seed)
            promise = learner.promise(n_classes=n_classes, n_features=n_features, radius=1.0, margin=margin)
            updates, mistakes = at_most(promise, "updates"), at_most(promise, "mistakes")
            trace = play(fresh(learner), problem.X, problem.y, seed=seed)
            assert trace.updates <= updates, f"{trace.updates} updates; promised at most {updates}"
            assert trace.mistakes <= mistakes, f"{trace.mistakes} mistakes; promised at most {mistakes}"


def check_promises_that_hold_late(learner: Learner) -> None:
    """The bound on updates holds however late feedback comes."""
    updates = at_most(learner.promise(n_classes=3, n_features=4, radius=1.0, margin=0.2), "updates")
    if not in_linear_space(learner) or updates == math.inf or learner.hears_label:
        return
    problem = separable_problem(2000, 3, 4, 0.2)
    player = fresh(learner, classes=3)
    for start in range(0, 2000, 100):
        tickets = [player.guess(x) for x in problem.X[start : start + 100]]
        # The last guess is answered first: as late and as much out of order as a block allows.
        for ticket, label in zip(reversed(tickets), reversed(problem.y[start : start + 100].tolist()), strict=True):
            player.tell(ticket, ticket.label == label)
    assert player.n_updates_ <= updates, f"{player.n_updates_} updates; promised at most {updates}"


def check_promises_that_hold_on_average(learner: Learner, runs: int = 20) -> None:
    """Mean mistakes over fixed seeds stay under the expected bound, within three standard errors."""
    if not in_linear_space(learner):
        return
    for n_classes, n_features, margin in _SETTINGS:
        promise = learner.promise(n_classes=n_classes, n_features=n_features, radius=1.0, margin=margin)
        problem = separable_problem(1500, n_classes, n_features, margin)
        counts = [play(fresh(learner), problem.X, problem.y, seed=seed).mistakes for seed in range(runs)]
        expected = at_most(promise, "expected mistakes")
        # Three standard errors: a right promise fails one time in 700, and the seeds are fixed.
        allowed = expected + 3.0 * np.std(counts, ddof=1) / math.sqrt(runs)
        assert np.mean(counts) <= allowed, f"{np.mean(counts)} mistakes on average; promised {expected}"
