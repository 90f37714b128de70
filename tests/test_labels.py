import enum
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning

import onebit
from onebit.labels import check_classes, check_labels, encode_labels, infer_classes, positions


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 0
    HIGH = 1


@pytest.mark.parametrize(
    "classes",
    [
        *(0, -1, 2**40, [], ["a", "a"], "abc", b"abc", 2.5, True, [[1, 2]], [[1], 2], [1j, 2j], {1, "a"}, {"a": 1}),
        *(np.eye(2), np.array([1j, 2j]), pd.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [1, 2]}), iter([1, 2])),
    ],
)
def test_bad_classes(classes: object) -> None:
    with pytest.raises(ValueError, match="classes"):
        check_classes(classes)


def test_classes_of_a_count_a_list_and_a_set() -> None:
    assert check_classes(3).tolist() == [0, 1, 2]
    assert check_classes(["b", "a"]).tolist() == ["b", "a"]
    assert check_classes({"b", "a"}).tolist() == ["a", "b"]


LISTS: list[list[Any]] = [
    [1, "x"],
    [True, "x"],
    [("a", 1), ("b", 2)],
    [Colour.RED, Colour.BLUE],
    [Level.HIGH, Level.LOW],
    [frozenset({1}), "x"],
    ["a", "a\0"],
    [b"a", b"a\0"],
    [2**70, 1],
    [-1, 2**63],
    [False, True],
    ["", "long" * 100],
]


@pytest.mark.parametrize("labels", LISTS, ids=repr)
def test_every_label_keeps_its_type(labels: list[Any]) -> None:
    learner = onebit.UniformGuess(classes=labels)
    guesses = [learner.guess([1.0]) for _ in range(40)]
    assert {(type(guess.label), guess.label) for guess in guesses} == {(type(label), label) for label in labels}
    for guess in guesses[::-1]:
        learner.tell(guess, guess.label == labels[0])
    shown = [labels[at % 2] for at in range(30)]
    for player in (onebit.MulticlassPerceptron(classes=labels), clone(learner), onebit.BanditPerceptron()):
        trace = onebit.play(player, np.eye(2)[np.arange(30) % 2], shown, keep_guesses=True)
        assert trace.guesses is not None
        assert trace.mistakes == sum(guess != label for guess, label in zip(trace.guesses.tolist(), shown, strict=True))
        assert {(type(label), label) for label in player.classes_.tolist()} == {(type(each), each) for each in labels}
        by_round = onebit.play(clone(player), np.eye(2)[np.arange(30) % 2], shown, engine="rounds")
        assert by_round.mistakes == trace.mistakes
    learned = onebit.MulticlassPerceptron().fit(np.eye(2)[np.arange(30) % 2], shown)
    assert learned.predict(np.eye(2)).tolist() == labels
    assert learned.score(np.eye(2), labels) == 1.0
    assert learned.score(np.eye(2), [labels[0], "never seen"]) == 0.5


def as_they_come(labels: list[Any]) -> list[Any]:
    keys = dict.fromkeys(labels).keys()
    arrays = [np.array(labels), np.array(labels, dtype=object), np.ma.MaskedArray(labels, mask=[False, False])]
    pandas = [pd.Series(labels), pd.Index(labels), pd.Categorical(labels), pd.Series(labels, dtype="category")]
    return [tuple(labels), keys, *arrays, *pandas, pl.Series(labels)]


@pytest.mark.parametrize("labels", [["b", "a"], [7, 3], [True, False]], ids=repr)
def test_lists_of_labels_are_lists_however_they_come(labels: list[Any]) -> None:
    for given in [*as_they_come(labels), pd.array(labels, dtype={str: "string", int: "Int64"}.get(type(labels[0])))]:
        found = check_classes(given)
        assert found.tolist() == labels
        assert found.dtype == check_classes(labels).dtype
        stream = check_labels(given, 2)
        assert encode_labels(stream, found).tolist() == [0, 1]
        assert infer_classes(stream).tolist() == sorted(labels)


def test_keys_of_a_dictionary_survive_clone_and_pickle() -> None:
    names = {"yes": 1, "no": 2}
    learner = onebit.BanditPerceptron(classes=names.keys())
    assert clone(learner).guess([1.0]).label == "yes"
    assert repr(learner) == "BanditPerceptron(classes=['yes', 'no'])"


@pytest.mark.parametrize("nothing", [None, float("nan"), np.float64("nan"), pd.NA, pd.NaT], ids=repr)
def test_what_is_missing_is_no_label(nothing: Any) -> None:
    with pytest.raises(ValueError, match=r"classes\[1\] is .*, which is no label"):
        check_classes(["a", nothing])
    for y in (["a", nothing], pd.Series(["a", nothing], dtype=object), np.array([0, nothing], dtype=object)):
        with pytest.raises(ValueError, match=r"y\[1\] is .*, which is no label"):
            check_labels(y, 2)


def test_missing_labels_in_columns_are_named() -> None:
    for y in (
        pd.Series([1, None], dtype="Int64"),
        pd.Series(["a", None]),
        pl.Series([1, None]),
        pl.Series(["a", None]),
    ):
        with pytest.raises(ValueError, match=r"y\[1\] is .*, which is no label"):
            check_labels(y, 2)


def test_labels_that_python_takes_for_one_are_refused() -> None:
    for labels in ([1, True], [1, 1.0, "x"], ["a", 0, False]):
        with pytest.raises(ValueError, match="are one label to Python"):
            check_classes(labels)
    with pytest.raises(ValueError, match="1 and True are one label to Python"):
        infer_classes(check_labels([1, "x", True], 3))


def test_labels_that_cannot_be_hashed_are_refused() -> None:
    with pytest.raises(ValueError, match="told apart"):
        check_classes(["a", {}])
    with pytest.raises(ValueError, match="told apart"):
        check_labels(["a", {}], 2)


def test_classes_are_inferred_sorted_or_as_they_appear() -> None:
    for y in (np.array([5, 2, 2, 9]), np.array([-1, 4]), np.array(["x", "a"]), np.array([2**40, 3])):
        assert infer_classes(y).tolist() == sorted(set(y.tolist()))
    assert infer_classes(np.array([2, 0], dtype=">i4")).tolist() == [0, 2]
    assert infer_classes(check_labels(["x", 2, "x", 1], 4)).tolist() == ["x", 2, 1]
    assert infer_classes(check_labels([("b", 1), ("a", 2)], 2)).tolist() == [("a", 2), ("b", 1)]


def test_labels_are_encoded_by_their_place() -> None:
    classes = np.array(["refund", "billing", "delivery"])
    assert encode_labels(np.array(["billing", "refund"]), classes).tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"y\[1\] is 'chat', which is not among the 3 classes"):
        encode_labels(np.array(["billing", "chat"]), classes)
    with pytest.raises(ValueError, match=r"y\[2\] is 3, which is not among the 3 classes \[0, 1, 2\]"):
        encode_labels(np.array([0, 2, 3]), np.arange(3))
    with pytest.raises(ValueError, match=r"y\[0\] is 0, which is not among"):
        encode_labels(np.array([0, 2, 3]), classes)
    with pytest.raises(ValueError, match=rf"y\[0\] is {2**70}, which is not among"):
        encode_labels(np.array([2**70]), np.arange(3))
    assert positions(np.array([2**64 - 1, 1], dtype=np.uint64), np.arange(3)).tolist() == [-1, 1]
    assert positions(check_classes([1, "1"]), check_classes(["1", 1])).tolist() == [1, 0]


def test_labels_must_fit_the_rounds() -> None:
    with pytest.raises(ValueError, match="one label for each of the 3 rounds"):
        check_labels([0, 1], 3)
    with pytest.raises(ValueError, match=r"y\[1\] is nan"):
        check_labels([0.0, np.nan], 2)
    for whole in ([1.0, 2.0], [1, 2.0], np.array([1.0, 2.0]), np.array([1, 2.0], dtype=object)):
        assert check_labels(whole, 2).dtype == np.int64
    for bad in (np.ma.MaskedArray([0, 1], mask=[False, True]), np.array([0, 1j]), [[0], [1, 2]], "ab"):
        with pytest.raises(ValueError, match="y must"):
            check_labels(bad, 2)


def test_real_numbers_are_labels_only_if_they_are_listed() -> None:
    for y in ([0.5, 1.0], [0.5, 1], [0, 1e300], np.array([0.5, 1.0])):
        with pytest.raises(ValueError, match=r"labels, not real numbers; got (0\.5|1e\+300|0.0|0).*classes=\[…\]"):
            infer_classes(check_labels(y, 2))
    learner = onebit.BanditPerceptron(classes=[0.5, 1]).fit(np.eye(2), [0.5, 1.0])
    assert learner.classes_.tolist() == [0.5, 1]
    with pytest.raises(ValueError, match=r"y\[1\] is 1.5, which is not among"):
        learner.partial_fit(np.eye(2), [0.5, 1.5])


def test_a_column_of_labels_is_taken_with_scikit_learns_warning() -> None:
    for column in (np.array([[0], [1]]), [[0], [1]], pd.DataFrame({"label": [0, 1]})):
        with pytest.warns(DataConversionWarning, match="column-vector"):
            assert check_labels(column, 2).tolist() == [0, 1]


def test_errors_about_a_label_name_the_remedy() -> None:
    learner = onebit.BanditPerceptron(classes=["a", "b"])
    learner.guess([1.0])
    for teach in (
        lambda: learner.guess([1.0], among=["c"]),
        lambda: learner.learn_labels([[1.0]], ["c"]),
        lambda: onebit.play(learner, [[1.0]], ["c"], fresh=False),
    ):
        with pytest.raises(ValueError, match=r"'c', which is not among .*; list it in classes=.*add_class"):
            teach()
    with pytest.raises(ValueError, match="label 'a' is one of the classes already"):
        learner.add_class("a")
    with pytest.raises(ValueError, match=r"kernel must be 'auto', None, a kernel such as .*; got 'gaussian'"):
        onebit.BanditSVM("gaussian", classes=2).guess([1.0])
