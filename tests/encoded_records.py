"""Records for tests of the encoder, and what becomes of them."""

import json
import math
from datetime import UTC, date, timedelta, timezone
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from onebit.encoding import Encoder
from onebit.inputs import SparseRows

TICKET = {"channel": "mail", "length": 212, "urgent": True, "sent": date(2026, 11, 16), "tags": ["late", "angry"]}


def dense(row: Any) -> Any:
    if not isinstance(row, SparseRows):
        return row
    values = np.zeros(row.n_columns)
    values[row.columns] = row.values
    return values


def told(encoder: Encoder, *records: Any) -> dict[str, float]:
    """Take records; return what the last of them became, by name."""
    for record in records:
        looked = encoder.look(record)
        encoder.take(looked)
    return encoder.explain(looked.row)


def kinds_of(encoder: Encoder) -> dict[str, str]:
    return {column.name: column.kind for column in encoder.columns()}


def written(encoder: Encoder) -> str:
    return json.dumps(encoder.state(), allow_nan=False)


words = st.sampled_from(
    ["a", "b", "mail", "where is my parcel", "2026-11-18", "2026-11-18T10:30:00+02:00", "", "\ud800"]
)


finite = st.floats(-1e100, 1e100)


values = st.one_of(
    finite,
    st.integers(-(10**30), 10**30),
    st.booleans(),
    words,
    st.text(max_size=8),
    st.none(),
    st.just(math.nan),
    st.dates(),
    st.datetimes(timezones=st.sampled_from([None, UTC, timezone(timedelta(hours=-5))])),
    st.lists(words, max_size=3),
    st.lists(st.one_of(finite, st.none()), max_size=3),
    st.sets(st.one_of(words, st.integers(0, 9)), max_size=3),
)


names = st.sampled_from(["x", "y", "z", "subject", "$odd", "a b"])


nested = st.dictionaries(st.sampled_from(["p", "q"]), values, max_size=2)


records = st.one_of(
    st.dictionaries(names, st.one_of(values, nested), min_size=1, max_size=6), st.lists(finite, min_size=1, max_size=4)
)


encoders = st.builds(
    Encoder,
    st.sampled_from([{}, {"x": "category", "y": "number"}, {"z": "text", "x": "tags"}, {"y": "date", "z": "ignore"}]),
    width=st.sampled_from([None, 4, 16, 40, 3000]),
    max_categories=st.sampled_from([0, 2, 32]),
    text_width=st.sampled_from([1, 64, 2048]),
    scale=st.booleans(),
)


quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    return type(one) is type(other) and (one == other or (one != one and other != other))


def row_of(encoder: Encoder, record: Any) -> Any:
    return dense(encoder.look(record).row)
