"""Allowed labels are looked up once for each, whatever the number of classes."""

import onebit
from onebit.decider.state import State


class Counted:
    """A label that counts how often labels are compared."""

    n_compared = 0

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        return hash(self.number)

    def __eq__(self, other: object) -> bool:
        Counted.n_compared += 1
        return isinstance(other, Counted) and self.number == other.number


def counted(n: int) -> list[Counted]:
    return [Counted(i) for i in range(n)]


def test_naming_allowed_labels_takes_linear_time() -> None:
    n, state = 2_000, State.__new__(State)
    state.classes = counted(n)
    state.indices = {label: i for i, label in enumerate(state.classes)}
    Counted.n_compared = 0
    assert state.indices_of(counted(n)[::-1]) == list(range(n))
    assert Counted.n_compared <= 4 * n


def test_a_learner_that_grows_looks_allowed_labels_up_in_linear_time() -> None:
    n, learner = 300, onebit.BanditPerceptron(classes="grow")
    learner.guess([1.0, 2.0], among=counted(n))
    Counted.n_compared = 0
    learner.guess([1.0, 2.0], among=counted(n)[::-1])
    assert Counted.n_compared <= 10 * n
