import copy
import json
import math
from collections import UserDict
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from onebit.encoding import Encoded, Encoder, record_from_json, record_to_json
from onebit.encoding.fields import MOST_LETTERS, MOST_VALUES, text_tokens
from onebit.inputs import SparseRows, check_sparse_row

TICKET = {"channel": "mail", "length": 212, "urgent": True, "sent": date(2026, 11, 16), "tags": ["late", "angry"]}


def dense(row: Any) -> Any:
    if not isinstance(row, SparseRows):
        return row
    values = np.zeros(row.n_columns)
    values[row.columns] = row.values
    return values


def row_of(encoder: Encoder, record: Any) -> Any:
    return dense(encoder.look(record).row)


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


# What values become.


def test_every_kind_of_value_has_its_places() -> None:
    encoder = Encoder()
    row = told(encoder, TICKET)
    assert row.pop("sent: days") == (date(2026, 11, 16) - date(1970, 1, 1)).days
    circles = {name: row.pop(name) for name in list(row) if name.startswith("sent: time")}
    assert len(circles) == 3, "a Monday: the sine of the week is 0, and there is no time of day"
    assert row == {"channel=mail": 1.0, "length": 212.0, "urgent": 1.0, "tags=late": 1.0, "tags=angry": 1.0}
    assert kinds_of(encoder) == {
        "channel": "category",
        "length": "number",
        "urgent": "number",
        "sent": "date",
        "tags": "tags",
    }
    taken = [place for column in encoder.columns() for place in column.slots]
    assert sorted(taken) == list(range(len(taken)))


def test_missing_says_so_and_the_number_is_the_mean_so_far() -> None:
    encoder = Encoder()
    told(encoder, {"x": 1.0, "word": "a"}, {"x": 4.0, "word": "b"}, {})
    for nothing in (None, math.nan, np.float64("nan"), np.datetime64("NaT"), pd.NA, pd.NaT, Decimal("sNaN"), "", " \n"):
        row = encoder.explain(encoder.look({"x": nothing, "word": nothing}).row)
        assert row == {"x": 2.5, "x is missing": 1.0, "word is missing": 1.0}
    assert encoder.explain(encoder.look({}).row) == row, "what is absent is missing"
    told(encoder, {"x": None}, {"x": 4.0, "word": "a"})
    assert told(encoder, {"word": "a"}) == {"x": 3.0, "x is missing": 1.0, "word=a": 1.0}
    x = encoder.columns()[0]
    assert (x.seen, x.missing) == (3, 3)


def test_a_word_among_numbers_is_a_category_of_that_column() -> None:
    encoder = Encoder()
    assert told(encoder, {"x": 2.0}, {"x": "many"}) == {"x": 2.0, "x=many": 1.0}
    assert kinds_of(encoder) == {"x": "number+category"}
    assert told(encoder, {"x": 4.0}) == {"x": 4.0}


def test_columns_met_later_join() -> None:
    encoder = Encoder()
    told(encoder, {"x": 1.0})
    width = encoder.width
    assert told(encoder, {"x": 2.0, "later": "yes"}) == {"x": 2.0, "later=yes": 1.0}
    assert told(encoder, {"x": 2.0}) == {"x": 2.0, "later is missing": 1.0}
    assert encoder.width == width


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2026, 11, 18, 18, 0),
        "2026-11-18T18:00:00",
        "2026-11-18 18:00",
        np.datetime64("2026-11-18T18:00:00.000000000"),
        pd.Timestamp("2026-11-18 18:00:00.000000001"),
    ],
)
def test_dates_are_days_and_circles(moment: Any) -> None:
    row = told(Encoder(), {"at": moment})
    days = (date(2026, 11, 18) - date(1970, 1, 1)).days
    assert row["at: days"] == days + 0.75
    assert row["at: time of day (sin)"] == pytest.approx(-1.0)
    turn = 2 * math.pi * 2.75 / 7  # a Wednesday
    assert row["at: time of week (sin)"] == pytest.approx(math.sin(turn))
    assert row["at: time of week (cos)"] == pytest.approx(math.cos(turn))
    for circle in ("day", "week", "year"):
        sine, cosine = (row.get(f"at: time of {circle} ({part})", 0.0) for part in ("sin", "cos"))
        assert math.hypot(sine, cosine) == pytest.approx(1.0)


def test_days_are_of_utc_and_circles_of_the_clock_on_the_wall() -> None:
    here = told(Encoder(), {"at": "2026-11-18T06:00:00+06:00"})
    there = told(Encoder(), {"at": datetime(2026, 11, 18, tzinfo=UTC)})
    assert here["at: days"] == there["at: days"]
    assert here["at: time of day (sin)"] == pytest.approx(1.0)
    edge = told(Encoder(), {"at": datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))})
    assert edge["at: days"] == (date.min - date(1970, 1, 1)).days - 14 / 24


@pytest.mark.parametrize("word", ["2026-13-45", "2026-11-18 to 2026-11-19", "20261118", "2026-W47-3"])
def test_what_only_looks_like_a_date_is_a_word(word: str) -> None:
    assert told(Encoder(), {"at": word}) == {f"at={word}": 1.0}


def test_words_become_text_where_they_are_sentences() -> None:
    encoder = Encoder()
    told(encoder, {"subject": "where is my parcel", "channel": "mail"})
    assert kinds_of(encoder) == {"subject": "text", "channel": "category"}
    told(encoder, {"subject": "parcel?", "channel": "mail"})
    assert encoder.columns()[0].categories == (), "a single word in a column of text is text"
    assert isinstance(encoder.look({"subject": "hello"}).row, SparseRows)


def test_kinds_override_the_guess() -> None:
    kinds = {"zip": "category", "subject": "text", "ids": "tags", "n": "number", "on": "date", "key": "ignore"}
    encoder = Encoder(kinds)
    record = {"zip": 1234, "subject": "hello", "ids": [7, 8], "n": "2.5", "on": "2026-11-18", "key": object()}
    row = told(encoder, record)
    assert kinds_of(encoder) == {
        "zip": "category",
        "subject": "text",
        "ids": "tags",
        "n": "number",
        "on": "date",
    }
    assert row["zip=1234"] == row["ids=7"] == row["ids=8"] == 1.0
    assert row["n"] == 2.5
    # pandas makes 1234.0 of 1234 where a column has holes.
    row = told(encoder, {"zip": 1234.0, "ids": 7, "n": "many", "on": "soon"})
    assert row["zip=1234"] == row["ids=7"] == row["n=many"] == row["on=soon"] == row["subject is missing"] == 1.0
    row = told(encoder, {"zip": math.nan, "ids": {8, 9}, "n": True, "on": 3, "subject": ["a", "b"]})
    assert row["zip is missing"] == row["ids=8"] == row["ids=9"] == row["n"] == 1.0
    assert row["on"] == 3.0


# How records come.


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


# What is refused.

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
        ({"a": {"x": object()}}, "column 'a.x' holds <object .*, a object; give a number.*kinds={'a.x': 'ignore'}"),
        ({"x": 1j}, "column 'x' holds 1j, a complex"),
        ({"x": b"bytes"}, "column 'x' holds b'bytes', a bytes"),
        ({"x": timedelta(1)}, "column 'x' holds .*timedelta"),
        ({"x": [{"a": 1}]}, "column 'x' holds {'a': 1}, a dict"),
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
        ({"x": "y" * (MOST_LETTERS + 1)}, "column 'x' holds 1000001 letters"),
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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"kinds": {"x": "words"}}, "kinds\\['x'\\] must be one of"),
        ({"kinds": ["x"]}, "kinds must be a mapping"),
        ({"kinds": {1: "text"}}, "names of columns are texts"),
        ({"width": 0}, "width must be between"),
        ({"max_categories": -1}, "max_categories must be between"),
        ({"text_width": 0}, "text_width must be between"),
        ({"scale": 1}, "scale must be True or False"),
    ],
)
def test_settings_are_checked(arguments: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Encoder(**arguments)


def test_odd_names_are_names() -> None:
    names = ["", ".", "a\nb", "\ud800", "x=1", "$date", "<b>", "é" * 200]
    assert told(Encoder(), dict.fromkeys(names, 1.0)) == dict.fromkeys(names, 1.0)
    row = told(Encoder(), {"a=b": 2.0, "a": "b", "(shared 0)": 3.0})
    assert sorted(row.values()) == [1.0, 2.0, 3.0], "no name stands for two places"


# Room.


def test_records_without_anything() -> None:
    encoder = Encoder(width=20)
    for _ in range(3):
        looked = encoder.look({})
        encoder.take(looked)
        assert not looked.row.any()  # type: ignore[union-attr]


def test_when_all_places_are_given_away_the_rest_share_some() -> None:
    encoder = Encoder(width=20, max_categories=4)
    for i in range(300):
        record = {
            "id": f"user {i}",
            f"column {i}": float(i),
            f"at {i}": datetime(2026, 1, 1),
            "n": i,
            f"none {i}": None,
        }
        row = encoder.look(record).row
        assert row.shape == (20,)
        assert np.isfinite(row).all()
        assert abs(row[15:]).max() < 40.0, "numbers that share a place with words are made small"
        encoder.take(encoder.look(record))
    columns = encoder.columns()
    assert columns[0].categories == tuple(f"user {i}" for i in range(len(columns[0].categories)))
    assert columns[0].shared >= 290
    assert columns[-1].name == "(others)"
    assert columns[-1].seen > 500
    assert len(columns) <= 16
    assert len(written(encoder)) < 5000
    assert row_of(encoder, {"id": "user 299"}).any()


def test_words_leave_room_for_columns() -> None:
    encoder = Encoder(width=40, max_categories=1000)
    for i in range(100):
        encoder.take(encoder.look({"id": f"user {i}"}))
    assert told(encoder, {"id": "user 0", "late": 3.0}) == {"id=user 0": 1.0, "late": 3.0}


def test_an_absurdly_long_word_is_not_kept() -> None:
    encoder = Encoder({"key": "category"})
    told(encoder, {"key": "k" * 5000})
    assert encoder.columns()[0].categories == ()
    assert encoder.columns()[0].shared == 1
    assert len(written(encoder)) < 1000


def test_thousands_of_columns_make_a_sparse_row() -> None:
    encoder = Encoder()
    record = {f"c{i}": float(i) for i in range(3000)}
    looked = encoder.look(record)
    encoder.take(looked)
    row = check_sparse_row(looked.row, "row")
    assert row.n_columns == encoder.width
    assert encoder.explain(looked.row) == {name: value for name, value in record.items() if value}
    encoder.take(encoder.look({}))
    assert encoder.columns()[2].missing == 1


def test_names_of_features_say_what_each_place_means() -> None:
    encoder = Encoder()
    told(encoder, TICKET, {})
    names = encoder.feature_names()
    assert len(names) == len(set(names)) == encoder.width
    assert names[0] == "channel=mail"
    assert {"(free 30)", "(shared 0)", "length is missing"} <= set(names)
    with pytest.raises(ValueError, match="the row must be one of"):
        encoder.explain(np.zeros(3))
    assert "5 columns" in repr(encoder)


# Oracles.


def test_words_are_one_hot_as_scikit_learn_does_it() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.choice(list("xyz"), 60), "b": rng.choice(list("uvwxy"), 60)})
    oracle = OneHotEncoder(sparse_output=False).fit(frame)
    encoder = Encoder()
    rows = []
    for i in range(60):
        rows.append(encoder.look(frame.iloc[i]).row)
        encoder.take(encoder.look(frame.iloc[i]))
    names = [f"{column}={word}" for column, words in zip("ab", oracle.categories_, strict=True) for word in words]
    places = [encoder.feature_names().index(name) for name in names]
    assert np.array_equal(np.array(rows)[:, places], oracle.transform(frame))
    assert np.array(rows).sum() == 120.0


def test_texts_are_hashed_as_scikit_learn_does_it() -> None:
    texts = ["Where is my parcel?", "the parcel the PARCEL", "é \ud800 odd", "?!", "x"]
    encoder = Encoder({"subject": "text"}, text_width=512)

    def tokens(text: str) -> list[str]:
        return [token.encode("utf-8", "surrogatepass") for token in text_tokens("subject", text)]  # type: ignore[misc]

    oracle = HashingVectorizer(n_features=512, analyzer=tokens).transform(texts).toarray()
    words, pieces = HashingVectorizer(), HashingVectorizer(analyzer="char_wb", ngram_range=(3, 4))
    assert [token.removeprefix("subject:") for token in text_tokens("subject", texts[1])] == [
        *words.build_analyzer()(texts[1]),
        *pieces.build_analyzer()(texts[1]),
    ]
    for text, expected in zip(texts, oracle, strict=True):
        looked = encoder.look({"subject": text})
        encoder.take(looked)
        row = dense(looked.row)
        assert row[-512:] == pytest.approx(expected, abs=1e-15)
        assert np.linalg.norm(row) == pytest.approx(float(expected.any()))


def test_what_shares_places_is_hashed_as_scikit_learn_does_it() -> None:
    encoder = Encoder({"id": "category"}, max_categories=0, width=400)
    words = [f"user {i}" for i in range(50)]
    oracle = FeatureHasher(n_features=8, input_type="string").transform([[f"id={word}"] for word in words]).toarray()
    for word, expected in zip(words, oracle, strict=True):
        looked = encoder.look({"id": word})
        encoder.take(looked)
        assert np.array_equal(dense(looked.row)[-8:], expected)


def test_hashes_are_the_same_on_every_machine() -> None:
    encoder = Encoder({"subject": "text"}, text_width=1 << 16)
    row = encoder.look({"subject": "my parcel"}).row
    assert isinstance(row, SparseRows)
    assert row.columns[:3].tolist() == [782, 1352, 7148]
    assert row.values.tolist()[:5] == [-0.25, 0.25, -0.25, -0.25, 0.25]


def test_scaling_is_by_what_came_before() -> None:
    rng = np.random.default_rng(2)
    values = rng.normal(50.0, 7.0, 200)
    encoder, oracle = Encoder(scale=True), StandardScaler()
    for i, value in enumerate(values):
        looked = encoder.look({"x": value, "same": 3.0})
        row = encoder.explain(looked.row) if i else {}
        encoder.take(looked)
        if i > 1:
            expected = float(oracle.transform([[value]])[0, 0])
            assert row["x"] == pytest.approx(min(max(expected, -math.sqrt(i)), math.sqrt(i)), rel=1e-9)
        assert "same" not in row, "what does not vary is 0"
        oracle.partial_fit([[value]])
    assert told(encoder, {"x": 1e100})["x"] == pytest.approx(math.sqrt(200))
    assert told(encoder, {"same": 3.0}) == {"x is missing": 1.0}


# Pure and replayable.

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


def logged(looked: Encoded) -> Encoded:
    """Return what comes back from a log."""
    row = looked.row
    if isinstance(row, SparseRows):
        row = SparseRows(row.values.copy(), row.columns.copy(), row.starts.copy(), row.n_columns)
    else:
        row = np.frombuffer(row.tobytes())[None]
    return Encoded(row, json.loads(json.dumps(looked.additions, allow_nan=False)))


@quick
@given(encoders, st.lists(records, min_size=1, max_size=8))
def test_looking_changes_nothing_and_replay_gives_the_same_encoder(encoder: Encoder, records: list[Any]) -> None:
    replayed = Encoder.from_state(encoder.state())
    for record in records:
        given_before, before = copy.deepcopy(record), written(encoder)
        try:
            looked = encoder.look(record)
        except ValueError as error:
            assert "two values for column" in str(error) or "first record" in str(error)  # noqa: PT017
            continue
        assert written(encoder) == before
        assert same(record, given_before)
        again = encoder.look(record)
        assert again.additions == looked.additions
        assert dense(again.row).tobytes() == dense(looked.row).tobytes()
        assert np.isfinite(dense(looked.row)).all()
        encoder.take(looked)
        replayed.take(logged(looked))
        assert encoder.width == len(dense(looked.row))
        assert written(replayed) == written(encoder)
        restored = Encoder.from_state(json.loads(written(encoder)))
        assert written(restored) == written(encoder)
        for other in (replayed, restored):
            assert dense(other.look(record).row).tobytes() == dense(encoder.look(record).row).tobytes()


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


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    return type(one) is type(other) and (one == other or (one != one and other != other))


def test_a_looked_record_is_taken_in_its_turn() -> None:
    encoder = Encoder()
    first = encoder.look({"x": 1.0})
    encoder.take(first)
    with pytest.raises(ValueError, match="this is record 0, and record 1 is next; look again"):
        encoder.take(first)


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
        "y" * (MOST_LETTERS + 1),
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


# Strangers.


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
