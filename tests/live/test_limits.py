"""What one request, one decider and the whole process may take: time, memory, and patience before the first guess."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

import onebit
from live_places import Place
from onebit.live.state import named_among, places_of
from served import Served

LIGHT = {"classes": ["a", "b", "c"], "learner": "BanditPerceptron"}
DESK = "/v1/shop/routing"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with Served(tmp_path) as served:
        assert served.ask("PUT", DESK, LIGHT).status == 201
        yield served


# Time.


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
    n, places = 2_000, places_of(counted(2_000))
    Counted.n_compared = 0
    assert named_among(places, counted(n)[::-1]) == list(range(n))
    assert Counted.n_compared <= 4 * n


def test_a_learner_that_grows_looks_allowed_labels_up_in_linear_time() -> None:
    n, learner = 300, onebit.BanditPerceptron(classes="grow")
    learner.guess([1.0, 2.0], among=counted(n))
    Counted.n_compared = 0
    learner.guess([1.0, 2.0], among=counted(n)[::-1])
    assert Counted.n_compared <= 10 * n


@pytest.mark.parametrize("among", [["a", "b", "a", "b"], ["a"] * 50_000])
def test_more_labels_than_classes_are_refused(served: Served, tmp_path: Path, among: list[str]) -> None:
    learner = onebit.BanditPerceptron(classes=["a", "b", "c"])
    for call in (learner.guess, learner.probabilities):
        with pytest.raises(ValueError, match=rf"among must list some of the 3 classes; got {len(among)} labels"):
            call([1.0, 2.0], among=among)
    with Place(tmp_path / "desk.onebit").open(classes=["a", "b", "c"], learner=learner) as desk:
        with pytest.raises(ValueError, match="some of the 3 classes"):
            desk.guess([1.0, 2.0], among=among)
        assert desk.guess([1.0, 2.0], among=["a", "a"]).label == "a", "repeated, and no more than classes"
    reply = served.ask("POST", f"{DESK}/guess", {"record": {"x": 1.0}, "among": among})
    assert reply.status == 422
    assert "some of the 3 classes" in reply.json["detail"]


@pytest.mark.parametrize("label", [[1], {}, None, 1.5])
def test_what_is_no_label_is_refused_in_words(tmp_path: Path, label: Any) -> None:
    with Place(tmp_path / "desk.onebit").open(classes=["a", "b"], learner=onebit.BanditPerceptron()) as desk:
        with pytest.raises(ValueError, match="among must list some of the classes"):
            desk.guess([1.0], among=[label])
        with pytest.raises(ValueError, match="label must be one of"):
            desk.shadow([1.0], label, True)
