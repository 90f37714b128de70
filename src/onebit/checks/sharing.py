"""Contract checks: threads that share a learner."""

import copy
import pickle
import sys
import threading
from collections.abc import Callable

from onebit.bounds import at_most
from onebit.checks.problems import fresh, separable_problem, tell
from onebit.learners import Learner
from onebit.learners.base import in_linear_space
from onebit.playing import play

# Seconds after which a thread must let another run: as often as Python can, so that few rounds show what many would.
_SWITCH_INTERVAL = 1e-6


def check_threads_may_share_it(learner: Learner, threads: int = 4, rounds: int = 24) -> None:
    """With many threads each round is played once and counted once, and the promise is kept.

    Some threads guess and tell, at once or late; others read, predict, play streams, save and copy it meanwhile.
    """
    problem = separable_problem(threads * rounds, 3, 4, 0.2)
    player = fresh(learner, classes=problem.n_classes)
    play(player, problem.X[:3], problem.y[:3], seed=1)
    tickets: list[int] = []
    streamed: list[int] = []
    mistakes: list[int] = []

    def work(number: int) -> None:
        waiting = []
        for t in range(number, len(problem.y), threads):
            x, label, turn = problem.X[t], int(problem.y[t]), t // threads % 6
            guess = player.guess(x)
            waiting.append((guess, label))
            tickets.append(guess.round)
            if turn == 0:
                player.probabilities(x)
                player.predict(problem.X[:5])
            elif turn == 1:
                trace = play(player, problem.X[t : t + 3], problem.y[t : t + 3], fresh=False)
                streamed.append(trace.rounds)
                mistakes.append(trace.mistakes)
            elif turn == 2:
                _plays_on(pickle.loads(pickle.dumps(player)), tell_first=(guess, label))
            elif turn == 3:
                _plays_on(copy.deepcopy(player))
            if turn != 4:  # then the answer comes a round late
                for ticket, truth in reversed(waiting):
                    tell(player, ticket, truth)
                    mistakes.append(ticket.label != truth)
                waiting.clear()
        for ticket, truth in waiting:
            tell(player, ticket, truth)
            mistakes.append(ticket.label != truth)

    def _plays_on(twin: Learner, tell_first: tuple[object, int] | None = None) -> None:
        before = twin.n_rounds_
        if tell_first is not None:
            tell(twin, *tell_first)
        play(twin, problem.X[:4], problem.y[:4], fresh=False)
        assert twin.n_rounds_ == before + 4

    start, start_mistakes = player.n_rounds_, player.n_mistakes_
    _at_once([lambda number=number: work(number) for number in range(threads)])  # type: ignore[misc]
    played = len(tickets) + sum(streamed)
    assert len(set(tickets)) == len(problem.y), "a round was issued twice"
    assert player.n_rounds_ == start + played, f"{played} rounds were played, {player.n_rounds_ - start} counted"
    assert player.n_mistakes_ == start_mistakes + sum(mistakes), "mistakes were lost, or counted twice"
    promise = learner.promise(n_classes=3, n_features=4, radius=1.0, margin=0.2) if in_linear_space(learner) else ()
    assert player.n_updates_ <= at_most(promise, "updates"), "threads broke its promise"


def _at_once(actions: list[Callable[[], None]]) -> None:
    """Run every action in its own thread; raise the first error."""
    failures: list[BaseException] = []

    def run(action: Callable[[], None]) -> None:
        try:
            action()
        except BaseException as error:
            failures.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    try:
        workers = [threading.Thread(target=run, args=(action,)) for action in actions]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(before)
    if failures:
        raise AssertionError(f"a thread failed: {failures[0]!r}") from failures[0]
