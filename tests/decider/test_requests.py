"""Requests are checked: what is wrong names the field, the value and the remedy."""

from typing import Any

import pytest

from onebit.decider import calls
from onebit.decider.requests import checked, request_of


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("guess", [1], "a JSON object with record is needed; got list"),
        ("guess", {}, "record is missing; needed: record"),
        ("guess", {"record": {}, "color": 1}, "there is no field 'color'; there are record, among, key"),
        ("guess", {"record": {}, "among": "a"}, "among must be a list of .* labels .*; got 'a'"),
        ("add_class", {"labels": "a"}, "label is missing; needed: label"),
        ("add_class", {"label": ""}, "label must be a text of 1 to 200 letters .*; got ''"),
        ("add_class", {"label": 2**53}, "label must be .* a whole number below 2.53; got 9007199254740992"),
        (
            "shadow",
            {"record": {}, "label": "a", "correct": True, "propensity": 0},
            "propensity must be above 0 and at most 1, .*; got 0",
        ),
        (calls.NewDecider, {"classes": True}, "classes must be a count or a list of labels, .*; got True"),
    ],
)
def test_what_is_wrong_is_named(kind: Any, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        checked(request_of(calls.VERBS[kind].call) if isinstance(kind, str) else kind, value)
