import copy
import json
import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from encoded_records import TICKET, dense, encoders, kinds_of, quick, records, row_of, same, told, written
from onebit.encoding import Encoded, Encoder, TableColumn
from onebit.encoding.state import _text_tokens
from onebit.inputs import SparseRows, check_sparse

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
    row = check_sparse(looked.row, "row", one_round=True)
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
        return [token.encode("utf-8", "surrogatepass") for token in _text_tokens("subject", text)]  # type: ignore[misc]

    oracle = HashingVectorizer(n_features=512, analyzer=tokens).transform(texts).toarray()
    words, pieces = HashingVectorizer(), HashingVectorizer(analyzer="char_wb", ngram_range=(3, 4))
    assert [token.removeprefix("subject:") for token in _text_tokens("subject", texts[1])] == [
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


def test_a_looked_record_is_taken_in_its_turn() -> None:
    encoder = Encoder()
    first = encoder.look({"x": 1.0})
    encoder.take(first)
    with pytest.raises(ValueError, match="this is record 0, and record 1 is next; look again"):
        encoder.take(first)


def table(n_rows: int, seed: int) -> list[TableColumn]:
    """Return columns of numbers, days and words, each with and without missing values."""
    generator = np.random.default_rng(seed)
    columns: list[TableColumn] = []
    for kind in ("number", "days", "category"):
        for is_whole in (True, False):
            is_missing = (generator.random(n_rows) < 0.3) & (not is_whole)
            is_missing[0] = False
            if kind == "category":
                codes = np.where(is_missing, 3, generator.integers(3, size=n_rows))
                columns.append(TableColumn(f"{kind} {is_whole}", kind, codes, ("a", "b", "c=d")))
            else:
                numbers = np.where(is_missing, np.nan, generator.integers(0, 9000, size=n_rows) / 2.0)
                columns.append(TableColumn(f"{kind} {is_whole}", kind, numbers))
    return columns


@pytest.mark.parametrize("seed", range(3))
def test_a_table_is_encoded_as_its_records_are(seed: int) -> None:
    columns = table(50, seed)
    encoder, X = Encoder.of_table(columns)
    restored = Encoder.from_state(json.loads(written(encoder)))
    assert written(restored) == written(encoder)
    assert X.shape == (50, encoder.width)
    for t in range(50):
        record: dict[str, Any] = {}
        for column in columns:
            value = column.values[t]
            if column.words is not None:
                record[column.name] = (*column.words, None)[value]
            elif column.kind == "days" and value == value:
                record[column.name] = datetime(1970, 1, 1) + timedelta(days=value)
            else:
                record[column.name] = str(value) if value == value else None
        for each in (encoder, restored):
            assert row_of(each, record).tobytes() == X[t].tobytes()
    assert [(info.name, info.seen, info.missing) for info in encoder.columns()] == [
        (column.name, 50 - column.is_missing().sum(), column.is_missing().sum()) for column in columns
    ]


def test_a_tables_encoder_passes_over_what_is_new_and_fills_in_the_means() -> None:
    encoder, _ = Encoder.of_table(table(50, seed=1)[1::2])
    assert encoder.feature_names() == [
        "number False",
        "number False is missing",
        "days False",
        "days False is missing",
        "category False=a",
        "category False=b",
        "category False=c=d",
        "category False is missing",
    ]
    row = told(encoder, {"category False": "new", "another": 3.0, "text": "where is my parcel now"})
    assert row.keys() == {"number False", "number False is missing", "days False", "days False is missing"}
    assert (encoder.columns()[-1].name, encoder.columns()[-1].seen) == ("(others)", 2)


def test_numbers_beyond_what_a_record_may_hold_are_in_a_table() -> None:
    numbers = np.array([1.7e308, 1.6e308, 1.5e308, np.nan])
    encoder, X = Encoder.of_table([TableColumn("x", "number", numbers)])
    assert X[:, 0].tolist() == [1.7e308, 1.6e308, 1.5e308, 1.6e308], "the mean overflows; the median does not"
    Encoder.from_state(json.loads(written(encoder)))
