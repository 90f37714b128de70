"""How records come, what is refused, and records as JSON."""

import json
import math
from collections import UserDict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given

from encoded_records import dense, encoders, kinds_of, quick, records, row_of, same, told, written
from onebit.encoding import Encoder, record_from_json, record_to_json
from onebit.encoding.fields import _MOST_LETTERS, MOST_VALUES


@pytest.mark.parametrize(
    "record",
    [
        UserDict({"a": 1, "b.c": "x", "b.d.e": True}),
        {"a": Fraction(1), "b": {"c": "x", "d": {"e": np.True_}}},
        {"a": Decimal(1), "b": UserDict({"c": np.str_("x"), "d.e": 1})},
        pd.DataFrame({"a": [1], "b.c": ["x"], "b.d.e": [True]}),
        pd.DataFrame({"a": [1], "b.c": ["x"], "b.d.e": [True]}).iloc[0],
        pd.DataFrame({"a": [1], "b.c": pd.Categorical(["x"]), "b.d.e": pd.array([True], dtype="boolean")}),
        pl.DataFrame({"a": [1], "b.c": ["x"], "b.d.e": [True]}),
        pl.DataFrame({"a": [1], "b": [{"c": "x", "d": {"e": True}}]}),
        pl.DataFrame({"a": [1], "b.c": ["x"], "b.d.e": [True]}).row(0, named=True),
    ],
)
def test_a_record_comes_in_many_ways(record: Any) -> None:
    assert told(Encoder(), record) == {"a": 1.0, "b.c=x": 1.0, "b.d.e": 1.0}


@pytest.mark.parametrize(
    "record", [[0.5, 2], (0.5, 2), np.array([0.5, 2.0]), np.array([[0.5, 2.0]]), np.array([0.5, 2], object)]
)
def test_plain_numbers_are_columns_by_position(record: Any) -> None:
    encoder = Encoder()
    assert told(encoder, record) == {"0": 0.5, "1": 2.0}
    assert encoder.width < 30, "there will hardly be more of them"
    assert told(encoder, [0.5, None]) == {"0": 0.5, "1": 2.0, "1 is missing": 1.0}
    assert (
        row_of(encoder, np.ma.array([0.5, 9.0], mask=[False, True])).tolist() == row_of(encoder, [0.5, None]).tolist()
    )


def test_lists_of_numbers_are_columns_and_sets_are_tags() -> None:
    encoder = Encoder()
    row = told(
        encoder,
        {"vector": [0.5, 2, None], "ids": {3, 1}, "few": ["a", None, math.nan, "a"], "none": [], "flag": [True]},
    )
    assert row["vector.0"] == 0.5
    assert row["vector.1"] == 2.0
    assert row["vector.2 is missing"] == row["ids=1"] == row["ids=3"] == row["few=a"] == row["flag.0"] == 1.0
    assert kinds_of(encoder)["none"] == "tags"
    wide = Encoder()
    wide.take(wide.look({"embedding": np.linspace(0.0, 1.0, 384), "channel": "mail"}))
    assert wide.width < 450


class Moment(datetime):
    """As libraries that stop the clock, or know more of time zones, have their own."""


class Channel(StrEnum):
    MAIL = "mail"


def test_subclasses_of_words_and_numbers_are_what_they_are() -> None:
    assert told(Encoder(), {"channel": Channel.MAIL, Channel.MAIL: np.float32(0.5), 3: np.array(7)}) == {
        "channel=mail": 1.0,
        "mail": 0.5,
        "3": 7.0,
    }


DEEP: Any = {}


for _ in range(50):
    DEEP = {"a": DEEP}


LOOP: dict[str, Any] = {}


LOOP["again"] = LOOP


AGAIN: dict[str, Any] = {}


for _ in range(9):
    AGAIN = {f"{i}": AGAIN for i in range(100)}


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"x": math.inf}, "column 'x' holds inf; .* at most 1e\\+100 .*Give None"),
        ({"x": -1e101}, "column 'x' holds -1e\\+101"),
        ({"x": 10**5000}, "column 'x' holds a whole number of 16610 bits"),
        ({"x": Fraction(10**400)}, "column 'x' holds inf"),
        ({"x": np.datetime64("9999999-01-01")}, "column 'x' holds inf"),
        (
            {"a": {"x": object()}},
            "column 'a.x' holds <object .*, of type object; give a number.*kinds={'a.x': 'ignore'}",
        ),
        ({"x": 1j}, "column 'x' holds 1j, of type complex"),
        ({"x": b"bytes"}, "column 'x' holds b'bytes', of type bytes"),
        ({"x": timedelta(1)}, "column 'x' holds .*timedelta"),
        ({"x": [{"a": 1}]}, "column 'x' holds {'a': 1}, of type dict"),
        ({"x": np.zeros((2, 2))}, "x must have one dimension; got shape"),
        ({None: 1}, "names of columns must be texts; got None"),
        ({("a", "b"): 1}, "names of columns must be texts"),
        ({"a.b": 1, "a": {"b": 2}}, "two values for column 'a.b'"),
        ({1: 1, "1": 2}, "two values for column '1'"),
        ({"n" * 201: 1}, "at most 200 letters"),
        (DEEP, "more than 10 mappings deep"),
        (LOOP, "more than 10 mappings deep"),
        (AGAIN, "at most 10000 values"),
        ({str(i): i for i in range(MOST_VALUES + 1)}, "at most 10000 values"),
        ({"x": list(range(MOST_VALUES + 1))}, "'x' holds 10001 values"),
        ({"x": "y" * (_MOST_LETTERS + 1)}, "column 'x' holds 1000001 letters"),
        ("hello", "a record is a mapping.*Give {'text': record}"),
        (7, "a record is a mapping"),
        (None, "a record is a mapping"),
        (np.zeros((2, 2)), "must have one dimension"),
        (pd.DataFrame({"x": [1, 2]}), "one row; got a frame of 2"),
        (pl.DataFrame({"x": [1, 2]}), "one row; got a frame of 2"),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), "no frame that can be read"),
        (pd.Series([1, 2], index=["x", "x"]), "two values for column 'x'"),
        (pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])), "names of columns must be texts"),
        ({}, "the first record decides how wide rows are"),
    ],
)
def test_what_cannot_be_a_record_is_refused(record: Any, said: str) -> None:
    encoder = Encoder()
    before = written(encoder)
    with pytest.raises(ValueError, match=said):
        encoder.look(record)
    assert written(encoder) == before


def test_odd_names_are_names() -> None:
    names = ["", ".", "a\nb", "\ud800", "x=1", "$date", "<b>", "é" * 200]
    assert told(Encoder(), dict.fromkeys(names, 1.0)) == dict.fromkeys(names, 1.0)
    row = told(Encoder(), {"a=b": 2.0, "a": "b", "(shared 0)": 3.0})
    assert sorted(row.values()) == [1.0, 2.0, 3.0], "no name stands for two places"


@quick
@given(encoders, records)
def test_a_record_comes_back_from_json(encoder: Encoder, record: Any) -> None:
    described = json.loads(json.dumps(record_to_json(record), allow_nan=False))
    back = record_from_json(described)
    assert same(back, record)
    try:
        looked = encoder.look(record)
    except ValueError:
        return
    assert dense(encoder.look(back).row).tobytes() == dense(looked.row).tobytes()


def frames_and_strange_things() -> list[Any]:
    return [
        pd.DataFrame({"x": [1.5], "at": pd.to_datetime(["2026-11-18"]), "w": ["a"], "none": [None]}),
        pl.DataFrame({"x": [1.5], "at": [date(2026, 11, 18)], "w": ["a"]}),
        {"x": np.float32(1.5), "d": Decimal("1.5"), "t": ("a", "b"), "v": np.arange(3.0), "e": Channel.MAIL},
        {"$date": 1, "plain": {"$set": "a"}, 7: {8: 9}},
        {"$date": "2026-11-18"},
        {
            "at": Moment(2026, 11, 18, 10, tzinfo=UTC),
            "wall": datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")),
        },
        np.array([[1.0, math.nan]]),
    ]


@pytest.mark.parametrize("record", frames_and_strange_things())
def test_what_comes_back_from_json_makes_the_same_row(record: Any) -> None:
    back = record_from_json(json.loads(json.dumps(record_to_json(record), allow_nan=False)))
    assert dense(Encoder().look(back).row).tobytes() == dense(Encoder().look(record).row).tobytes()


def test_json_of_what_is_ignored_is_bounded() -> None:
    encoder = Encoder({"raw": "ignore"})
    for raw in (
        object(),
        DEEP,
        LOOP,
        AGAIN,
        "y" * (_MOST_LETTERS + 1),
        list(range(10**5)),
        np.zeros((3, 3)),
        {None: 1},
        10**5000,
    ):
        assert told(encoder, {"x": 1.0, "raw": raw}) == {"x": 1.0}
        text = json.dumps(record_to_json({"x": 1.0, "raw": raw}))
        assert len(text) < (200_000 if raw is AGAIN else 1000)
        assert record_from_json(json.loads(text))["x"] == 1.0


@pytest.mark.parametrize(
    "described",
    [
        {"$date": "soon"},
        {"$date": 3},
        {"$set": [[1]]},
        {"$mapping": 3},
        {"$mapping": [[1]]},
        {"$what": 1},
        {"$float": "1"},
    ],
)
def test_what_no_record_became_is_refused(described: Any) -> None:
    with pytest.raises(ValueError, match="is no value of a record"):
        record_from_json({"x": described})
