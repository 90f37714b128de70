"""Whatever an application does, in whatever order: counts are right, tickets are told once, refusals change nothing.

`ARGS="-m slow" make test-slow` plays 10 000 steps; the quick form plays some hundreds.
"""

import copy
import pickle
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import onebit
from onebit.checks.problems import raises_value_error, snapshot

MAKERS = {
    "linear": lambda: onebit.BanditSVM(None, classes=["a", "b", "c"], budget=20),
    "bank": lambda: onebit.BanditSVM(classes=["a", "b", "c"], budget=20),
    "perceptron": lambda: onebit.BanditPerceptron(onebit.kernels.Gaussian(), classes=["a", "b", "c"]),
    "banditron": lambda: onebit.Banditron(0.3, classes=["a", "b", "c"]),
    "neighbors": lambda: onebit.NearestNeighbor(0.7, classes=["a", "b", "c"]),
}
NUMBERS = st.integers(0, 2**32 - 1)


def row_of(number: int) -> Any:
    return np.random.default_rng(number).normal(size=3)


class Application(RuleBasedStateMachine):
    """An application that holds a learner, and keeps its own account of everything."""

    learner: onebit.Learner

    @initialize(name=st.sampled_from(sorted(MAKERS)))
    def begin(self, name: str) -> None:
        self.learner = MAKERS[name]()  # type: ignore[no-untyped-call]
        self.open: list[onebit.Guess] = []
        self.told: list[onebit.Guess] = []
        self.labels = ["a", "b", "c"]
        self.rounds = self.mistakes = 0
        self.learner.begin(3)

    @rule(number=NUMBERS, some=st.integers(0, 3))
    def guess(self, number: int, some: int) -> None:
        among = None if some == 0 else self.labels[:some]
        chances = self.learner.probabilities(row_of(number), among)
        ticket = self.learner.guess(row_of(number), among)
        assert ticket.round == self.rounds
        assert ticket.label in (among or self.labels)
        assert chances[ticket.index] == ticket.propensity
        self.rounds += 1
        self.open.append(ticket)

    @rule(number=NUMBERS, n=st.integers(1, 4))
    def guess_many(self, number: int, n: int) -> None:
        tickets = self.learner.guess_many([row_of(number + t) for t in range(n)])
        assert [ticket.round for ticket in tickets] == list(range(self.rounds, self.rounds + n))
        self.rounds += n
        self.open += tickets

    @precondition(lambda self: self.open)
    @rule(place=NUMBERS, correct=st.booleans())
    def tell(self, place: int, correct: bool) -> None:
        ticket = self.open.pop(place % len(self.open))
        self.learner.tell(ticket, correct)
        self.told.append(ticket)
        self.mistakes += not correct

    @precondition(lambda self: self.told)
    @rule(place=NUMBERS, correct=st.booleans())
    def tell_again(self, place: int, correct: bool) -> None:
        assert self.refuses(self.learner.tell, self.told[place % len(self.told)], correct)

    @precondition(lambda self: self.open)
    @rule(place=NUMBERS)
    def forge(self, place: int) -> None:
        ticket = self.open[place % len(self.open)]
        other = next(label for label in self.labels if label != ticket.label)
        for forged in (
            ticket._replace(label=other),
            ticket._replace(index=(ticket.index + 1) % 3),
            ticket._replace(round=self.rounds + 5),
            ticket._replace(row=np.zeros((1, 3))),
        ):
            assert self.refuses(self.learner.tell, forged, True)

    @rule(
        bad=st.sampled_from(
            [[np.nan, 0.0, 0.0], [1.0, 2.0], [[1.0, 2.0, 3.0]] * 2, ["x", "y", "z"], None, [np.inf] * 3]
        )
    )
    def guess_nonsense(self, bad: Any) -> None:
        assert self.refuses(self.learner.guess, bad)
        assert self.refuses(self.learner.learn_labels, [bad], ["a"])
        assert self.refuses(self.learner.guess, [1.0, 2.0, 3.0], among=["a", "nobody"])

    @precondition(lambda self: len(self.labels) < 6)
    @rule()
    def add_class(self) -> None:
        assert self.refuses(self.learner.add_class, "a")
        self.labels.append(f"new {len(self.labels)}")
        self.learner.add_class(self.labels[-1])

    @rule(number=NUMBERS, n=st.integers(1, 5), correct=st.booleans())
    def learn_from(self, number: int, n: int, correct: bool) -> None:
        rows = [row_of(number + t) for t in range(n)]
        self.learner.learn_from(rows, [self.labels[(number + t) % len(self.labels)] for t in range(n)], correct, 0.5)

    @rule(number=NUMBERS, n=st.integers(1, 5))
    def play(self, number: int, n: int) -> None:
        rows = np.stack([row_of(number + t) for t in range(n)])
        trace = onebit.play(self.learner, rows, [self.labels[number % len(self.labels)]] * n, fresh=False)
        self.rounds += n
        self.mistakes += trace.mistakes

    @rule()
    def pickle(self) -> None:
        self.learner = pickle.loads(pickle.dumps(self.learner))

    @rule()
    def save(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onebit"
            self.learner.save(path)
            self.learner = onebit.load(path)

    @rule()
    def copy(self) -> None:
        twin = copy.deepcopy(self.learner)
        assert snapshot(twin) == snapshot(self.learner)
        for ticket in self.open[:1]:
            assert raises_value_error(twin.tell, ticket, True), "a copy took a ticket of the original"

    @rule(number=NUMBERS)
    def share(self, number: int) -> None:
        tickets: list[onebit.Guess] = []
        threads = [
            threading.Thread(target=lambda t=t: tickets.append(self.learner.guess(row_of(number + t))))
            for t in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(ticket.round for ticket in tickets) == list(range(self.rounds, self.rounds + 3))
        self.rounds += 3
        self.open += tickets

    def refuses(self, action: Any, *arguments: Any, **named: Any) -> bool:
        before = snapshot(self.learner)
        refused = raises_value_error(action, *arguments, **named)
        assert snapshot(self.learner) == before, "a refused call changed the learner"
        return refused

    @invariant()
    def account_is_right(self) -> None:
        if hasattr(self, "learner"):
            assert self.learner.n_rounds_ == self.rounds
            assert self.learner.n_mistakes_ == self.mistakes
            assert self.learner.classes_.tolist() == self.labels


def run(examples: int, steps: int) -> None:
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Application, settings=chosen)


def test_some_hundred_steps() -> None:
    run(examples=6, steps=30)


@pytest.mark.slow
def test_ten_thousand_steps() -> None:
    run(examples=100, steps=100)
