"""A decider's verbs as JSON."""

import pytest

from onebit.decider import calls
from onebit.decider.requests import checked


def test_requests_name_onebits_own_learners_only() -> None:
    assert repr(calls.own_learner("Banditron:exploration=0.1")) == "Banditron(exploration=0.1)"
    message = "learner must be one of onebit's own, such as BanditSVM or Banditron:exploration=0.02; got 'os:system'"
    with pytest.raises(ValueError, match=message):
        calls.own_learner("os:system")


def test_settings_that_are_left_out_are_not_passed_on() -> None:
    given = checked(calls.NewDecider, {"classes": 3, "deadline": None}).arguments()
    assert given == {"classes": 3, "learner": None, "kinds": None, "deadline": None}
