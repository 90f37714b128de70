"""A state or an addition from elsewhere is refused, or works."""

import copy
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoded_records import TICKET, dense, quick, told, written
from onebit.encoding import Encoded, Encoder


def paths(value: Any) -> list[tuple[Any, ...]]:
    """Return the way to everything in a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(), *((key, *rest) for key, item in items for rest in paths(item))]


def changed(value: Any, path: tuple[Any, ...], to: Any) -> Any:
    if not path:
        return to
    value = copy.copy(value)
    value[path[0]] = changed(value[path[0]], path[1:], to)
    return value


JUNK = [
    None,
    -1,
    0,
    3,
    10**9,
    1.5,
    1e300,
    True,
    "",
    "x",
    "nnn",
    [],
    [1],
    [[1]],
    {},
    {"a": 1},
    ["word", 0, []],
    ["number", 0],
]


@quick
@given(st.data(), st.sampled_from(JUNK), st.booleans())
def test_a_strangers_state_is_refused_or_works(data: st.DataObject, junk: Any, scale: bool) -> None:
    encoder = Encoder({"zip": "category"}, scale=scale)
    told(encoder, TICKET, {"zip": 12, "length": None}, {"length": "x", "sent": 3})
    state = encoder.state()
    path = data.draw(st.sampled_from(paths(state)))
    try:
        stranger = Encoder.from_state(changed(state, path, junk))
    except ValueError:
        return
    for record in (TICKET, {"length": "y"}, {"new": 3.0, "zip": None}):
        looked = stranger.look(record)
        stranger.take(looked)
        assert np.isfinite(dense(looked.row)).all()
    json.dumps(stranger.state(), allow_nan=False)


@quick
@given(st.data(), st.sampled_from(JUNK), st.booleans(), st.booleans())
def test_strange_additions_are_refused_and_change_nothing(
    data: st.DataObject, junk: Any, scale: bool, is_first: bool
) -> None:
    encoder = Encoder(scale=scale)
    if not is_first:
        told(encoder, {"length": 1.0}, {"length": 2.0, "channel": "mail"})
    looked = encoder.look(TICKET)
    before = written(encoder)
    path = data.draw(st.sampled_from(paths(looked.additions)))
    try:
        encoder.take(Encoded(looked.row, changed(looked.additions, path, junk)))
    except ValueError:
        assert written(encoder) == before
    else:
        Encoder.from_state(json.loads(written(encoder)))


@pytest.mark.parametrize("row", [None, np.zeros(3), np.zeros((2, 30)), "row", np.full(30, math.nan), [object()]])
def test_a_strange_row_is_refused(row: Any) -> None:
    encoder = Encoder(width=30)
    told(encoder, {"x": 1.0})
    looked = encoder.look({"x": 1.0})
    with pytest.raises(ValueError, match=r"row must be one of|finite numbers"):
        encoder.take(Encoded(row, looked.additions))


@pytest.mark.parametrize(
    ("path", "to", "said"),
    [
        (("version",), 2, "of version 2; this onebit reads version 1"),
        (("settings",), {"what": 1}, "settings are none of an encoder"),
        (("settings", "kinds"), {"x": "what"}, "kinds\\['x'\\] must be one of"),
        (("size",), [1 << 30, 8], "a number of slots must be between"),
        (("size",), None, "the size must be two numbers"),
        (("size",), [0, 0], "column 'length' cannot be added: .*all slots are assigned"),
        (("counts",), [1], "counts must be 2 × 3 numbers"),
        (("counts", 0, 0), -1, "counts must have whole numbers from 0"),
        (("entries",), {}, "must have a list of entries"),
        (("entries", 2, 1), "length", "column 'length' cannot be added: it is there"),
        (("entries", 3, 1), 2, "a column's position must be between 0 and 1"),
        (("entries", 3), ["number", 0], "\\['number', 0\\] cannot be added to column 'length'"),
        (("entries", 3), ["word", 1], "\\['word', 1\\] is no addition"),
        (("settings", "max_categories"), 0, "\\['word', 1, 'mail'\\] cannot be added to column 'channel'"),
        (("statistics", 1), [math.inf], "statistics must be 3 × 1 numbers"),
        (("statistics", 1), [1e101], "no numbers have the statistics"),
        (("statistics", 0), [0.5], "statistics must have whole numbers"),
    ],
)
def test_a_strangers_state_is_told_what_is_wrong(path: tuple[Any, ...], to: Any, said: str) -> None:
    encoder = Encoder()
    told(encoder, {"length": 212.0, "channel": "mail"})
    with pytest.raises(ValueError, match=said):
        Encoder.from_state(changed(encoder.state(), path, to))
