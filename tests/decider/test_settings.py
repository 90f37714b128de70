"""Settings of a decider: kept as it was begun, changed by name, refused before anything is written."""

from typing import Any

import pytest

import onebit
from live_places import Place
from onebit.checks.problems import noisy_problem
from onebit.decider.tickets import LogError

PROBLEM = noisy_problem(120, 3, 4)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_settings_are_those_it_was_begun_with(place: Place) -> None:
    place.begun(deadline=5.0).close()
    place.begun().close()
    with pytest.raises(LogError, match=r"deadline=5\.0, and is opened with 6\.0"):
        place.open(deadline=6.0)
    with pytest.raises(LogError, match="learner=Banditron"):
        place.open(learner=onebit.LinUCB())
    with pytest.raises(LogError, match="classes="):
        place.open(classes=["a", "b"])
    with place.open() as desk:
        desk.add_class("d")
    place.open(classes=["a", "b", "c", "d"]).close()
    place.open(classes=["a", "b", "c"]).close()
    with pytest.raises(LogError, match="classes="):
        place.open(classes=["a", "b", "d"])
    with pytest.raises(LogError, match="there is no decider"):
        place.other("nowhere").open()
    with pytest.raises(ValueError, match="must be told the right label"):
        place.other("x").open(classes=2, learner=onebit.MulticlassPerceptron())


def test_settings_may_be_changed(place: Place) -> None:
    clock = Clock()
    with place.begun(clock=clock) as desk:
        tickets = [desk.guess(x) for x in PROBLEM.X[:4]]
        desk.change(deadline=10.0, silence="wrong")
        clock.now += 11.0
        assert (desk.status().silent, desk.status().wrong) == (4, 4)
        desk.change(silence="nothing", max_open=2)
        tickets = [desk.guess(x) for x in PROBLEM.X[4:9]]
        assert [ticket.id for ticket in tickets[3:]] == list(desk._state.open)
        assert (desk.status().silent, desk.status().wrong) == (7, 4)
        desk.change(max_open=1)
        assert [ticket.id for ticket in tickets[4:]] == list(desk._state.open)
        for wrong, words in (({}, "name what to change"), ({"seed": 1}, "'seed' cannot be changed")):
            with pytest.raises(ValueError, match=words):
                desk.change(**wrong)
        with pytest.raises(ValueError, match="deadline"):
            desk.change(max_open=5, deadline=-1.0)
        assert desk.settings.changeable() == {
            "deadline": 10.0,
            "silence": "nothing",
            "exploration_floor": 0.0,
            "max_open": 1,
            "wrong_at_most": None,
            "ask_at_most": None,
        }
        assert desk.verify()
    with pytest.raises(LogError, match=r"has deadline=10\.0, and is opened with 5\.0; leave it out, or call change"):
        place.open(deadline=5.0, clock=clock)
    with place.open(deadline=10.0, max_open=1, clock=clock) as desk:
        assert desk.verify()
        desk.change(deadline=None)
        desk.compact()  # the events that said so are gone, and the snapshot knows
    with place.open(clock=clock) as desk:
        assert desk.settings.deadline is None
        assert desk.settings.max_open == 1
        clock.now += 1e6
        assert desk.status().open == 1


@pytest.mark.parametrize("told", [{"classes": ["a", "b"]}, {"deadline": 7.0}, {"max_open": 3}])
def test_an_opening_that_is_refused_writes_nothing(file: Place, told: dict[str, Any]) -> None:
    with file.begun(deadline=5.0) as desk:
        last = desk._log.last_seq
    with pytest.raises(LogError, match="leave it out"):
        file.open(**told)
    with file.open() as desk:
        assert desk._log.last_seq == last + 1  # that it was opened now
