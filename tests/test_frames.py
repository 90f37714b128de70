"""Frames of pandas and polars, wherever rows come in."""

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import onebit
from onebit.checks.problems import snapshot
from onebit.inputs import check_rows

COLUMNS = {"age": [1, 2, 3], "paid": [True, False, True], "size": [0.5, 0.25, 1.0]}
VALUES = np.array([[1.0, 1.0, 0.5], [2.0, 0.0, 0.25], [3.0, 1.0, 1.0]])
WORDS = ["a", "b", "a"]
BOTH = pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])


def frames() -> dict[str, Any]:
    plain = pd.DataFrame(COLUMNS)
    return {
        "pandas": plain,
        "nullable": plain.astype({"age": "Int64", "paid": "boolean", "size": "Float32"}),
        "objects": plain.astype(object),
        "one column of objects": plain.assign(size=[Decimal("0.5"), 0.25, 1]),
        "without names": plain.set_axis([2, 1, 0], axis=1),
        "other index": plain.set_axis(["x", "y", "z"], axis=0),
        "polars": pl.DataFrame(COLUMNS),
        "small numbers": pl.DataFrame(COLUMNS, schema_overrides={"age": pl.UInt8, "size": pl.Float32}),
        "polars decimals": pl.DataFrame(COLUMNS).with_columns(pl.col("size").cast(pl.Decimal(10, 2))),
    }


@pytest.mark.parametrize("kind", frames())
def test_a_frame_is_its_numbers(kind: str) -> None:
    frame = frames()[kind]
    rows = check_rows(frame)
    assert isinstance(rows, np.ndarray)
    assert rows.dtype == np.float64
    assert np.array_equal(rows, VALUES)
    learner, plain = onebit.BanditPerceptron(classes=["a", "b"]), onebit.BanditPerceptron(classes=["a", "b"])
    assert snapshot(learner.fit(frame, pd.Series(WORDS))) == snapshot(plain.fit(VALUES, WORDS))
    assert learner.predict(frame).tolist() == plain.predict(VALUES).tolist()
    assert hasattr(learner, "feature_names_in_") == (kind != "without names")


@BOTH
def test_one_row_for_guess_however_it_comes(make: Any) -> None:
    frame = make(COLUMNS)
    learner, plain = onebit.BanditPerceptron(classes=["a", "b"]), onebit.BanditPerceptron(classes=["a", "b"])
    for t in range(3):
        ways = [frame[t : t + 1], VALUES[t : t + 1], VALUES[t : t + 1].tolist(), VALUES[t]]
        for row in [*ways, *([frame.iloc[t]] if make is pd.DataFrame else [])]:
            assert np.array_equal(np.ravel(learner.probabilities(row)), plain.probabilities(VALUES[t]))
            guess, other = learner.guess(row), plain.guess(VALUES[t])
            assert guess.label == other.label
            learner.tell(guess, guess.label == WORDS[t])
            plain.tell(other, guess.label == WORDS[t])
    assert snapshot(learner) == snapshot(plain)
    assert learner.feature_names_in_.tolist() == list(COLUMNS)
    for two in (frame[:2], VALUES[:2], VALUES[:, :1]):
        with pytest.raises(ValueError, match="one round's"):
            learner.guess(two)


@BOTH
def test_the_order_of_columns_is_checked_everywhere(make: Any) -> None:
    frame = make(COLUMNS)
    learner = onebit.BanditPerceptron(classes=["a", "b"]).fit(frame, WORDS)
    known = snapshot(learner)
    shuffled, other = frame[["size", "paid", "age"]], make({**COLUMNS, "new": [1, 2, 3]})[["age", "paid", "new"]]
    for wrong in (shuffled, other):
        actions: list[Callable[[Any], Any]] = [
            learner.predict,
            learner.decision_function,
            lambda X: learner.partial_fit(X, WORDS),
            lambda X: learner.partial_fit(X[:1], WORDS[:1]),
            lambda X: onebit.play(learner, X, WORDS, fresh=False),
            lambda X: onebit.play(learner, X, WORDS, fresh=False, engine="rounds"),
            lambda X: learner.guess(X[:1]),
            lambda X: learner.probabilities(X[:1]),
            learner.probabilities,
            learner.guess_many,
            lambda X: learner.learn_labels(X, WORDS),
            lambda X: learner.learn_from(X, WORDS, True),
            *([lambda X: learner.guess(X.iloc[0])] if make is pd.DataFrame else []),
        ]
        for action in actions:
            with pytest.raises(ValueError, match=r"(?s)X has other columns.*X\[\['age', 'paid', 'size'\]\]"):
                action(wrong)
        assert snapshot(learner) == known
    learner.fit(shuffled, WORDS)
    assert learner.feature_names_in_.tolist() == ["size", "paid", "age"]
    learner.fit(VALUES, WORDS)
    assert not hasattr(learner, "feature_names_in_")
    with pytest.warns(UserWarning, match="fitted without feature names"):
        learner.predict(frame)


@BOTH
def test_whatever_comes_first_brings_the_names(make: Any) -> None:
    frame = make(COLUMNS)
    for begin in (
        lambda learner: learner.guess(frame[:1], among=["a"]),
        lambda learner: learner.guess_many(frame),
        lambda learner: learner.learn_labels(frame, WORDS),
        lambda learner: learner.learn_from(frame, WORDS, True),
        lambda learner: onebit.play(learner, frame, WORDS, engine="rounds"),
        lambda learner: learner.partial_fit(frame, WORDS),
    ):
        learner = onebit.BanditPerceptron(classes=["a", "b"])
        begin(learner)
        assert learner.feature_names_in_.tolist() == list(COLUMNS)
    grown = onebit.BanditPerceptron(classes="grow")
    grown.guess(frame[:1], among=["a", 1])
    assert grown.feature_names_in_.tolist() == list(COLUMNS)
    assert grown.classes_.tolist() == ["a", 1]


@BOTH
def test_a_bad_setting_leaves_the_names_as_they_were(make: Any) -> None:
    frame = make(COLUMNS)
    learner = onebit.Banditron(classes=["a", "b"]).fit(frame, WORDS)
    learner.exploration = 7.0
    with pytest.raises(ValueError, match="exploration"):
        learner.fit(frame[["size", "paid", "age"]], WORDS)
    assert learner.feature_names_in_.tolist() == list(COLUMNS)


@BOTH
def test_what_is_no_number_is_named_by_its_column(make: Any) -> None:
    for bad, words in (
        ({**COLUMNS, "age": [1, None, 3]}, "column 'age' has no number in row 1"),
        ({**COLUMNS, "size": [0.5, 1.0, float("nan")]}, "column 'size' has no number in row 2"),
        ({**COLUMNS, "city": ["Rome", "Oslo", "Bonn"]}, "column 'city' holds String.*OneHotEncoder"),
    ):
        with pytest.raises(ValueError, match=words):
            check_rows(make(bad))
    days = make({"day": [datetime.datetime(2024, 1, day) for day in (1, 2, 3)]})
    with pytest.raises(ValueError, match=r"column 'day' holds Datetime.*for example as days"):
        check_rows(days)


def test_a_dictionary_is_not_a_row() -> None:
    learner = onebit.BanditPerceptron(classes=WORDS[:2])
    with pytest.raises(ValueError, match=r"features must be numbers in order; got a dictionary.*DataFrame"):
        learner.guess({"age": 1.0})  # type: ignore[arg-type]


def test_other_frames_that_cannot_be_read() -> None:
    frame = pd.DataFrame(COLUMNS)
    with pytest.raises(ValueError, match="column 'age' has no number in row 1"):
        check_rows(frame.assign(age=pd.array([1, None, 3], dtype="Int64")))
    with pytest.raises(ValueError, match=r"X\['age'\]\[1\] is None"):
        check_rows(frame.assign(age=np.array([1, None, 3], dtype=object)))
    with pytest.raises(TypeError, match=r"X\['age'\]\[1\] is 'two'"):
        check_rows(frame.assign(age=np.array([1, "two", 3], dtype=object)))
    with pytest.raises(ValueError, match="Categorical"):
        check_rows(frame.assign(age=pd.Categorical([1, 2, 1])))
    with pytest.raises(ValueError, match="no frame that can be read"):
        check_rows(frame.set_axis(["a", "a", "b"], axis=1))
    with pytest.raises(ValueError, match=r"X is lazy and not read yet; give X.collect\(\)"):
        check_rows(pl.DataFrame(COLUMNS).lazy())
    with pytest.raises(ValueError, match="X is empty"):
        check_rows(frame[:0])
