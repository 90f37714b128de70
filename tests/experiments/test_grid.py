import json
import math
from typing import Any

import numpy as np
import pytest

from onebit.experiments import JSON, Cell, Spec, grid

STREAM = Spec("paper_weak", {"rounds": 5_000_000})
BANDITRON = Spec("Banditron", {"exploration": 0.02})
PERCEPTRON = Spec("BanditPerceptron")


def test_labels_read_like_python() -> None:
    assert Cell(STREAM, BANDITRON, 3, "1").label == "paper_weak(rounds=5000000) × Banditron(exploration=0.02), seed 3"
    assert Spec("Tuned", {"kernel": "rational", "bias": None}).label == "Tuned(bias=None, kernel='rational')"
    assert PERCEPTRON.label == "BanditPerceptron"


def test_key_is_the_same_on_every_machine_and_day() -> None:
    key = Cell(Spec("paper_weak", {"rounds": 5, "margins": [0.1, 1e-300]}), Spec("Größe"), 3, "1").key
    assert key == "010e7653c4970132d8ae0bda6b6d07c3a9ed09e35bcef9048858b27d15c6860d"


def test_key_does_not_depend_on_the_order_of_settings() -> None:
    one, other = Spec("A", {"a": 1, "b": {"c": 2, "d": 3}}), Spec("A", {"b": {"d": 3, "c": 2}, "a": 1})
    assert one == other
    assert hash(one) == hash(other)
    assert one.label == other.label
    assert Cell(STREAM, one, 1, "1").key == Cell(STREAM, other, 1, "1").key


def test_any_change_is_another_key() -> None:
    values: list[JSON] = [1, 1.0, True, "1", None, -1, 0.1, 0.1 + 2**-56, 0.0, -0.0, [1], []]
    learners = [
        Spec("A"),
        Spec("B"),
        *(Spec("A", {"a": value}) for value in values),
        Spec("A", {"b": 1}),
        Spec("A", {"a": 1, "b": 1}),
        Spec("A", {"a": {"b": 1}}),
    ]
    streams = [STREAM, Spec("paper_weak", {"rounds": 5_000_001}), Spec("paper_strong", {"rounds": 5_000_000})]
    cells = [*grid(streams, learners, [1, 2], "1"), *grid(streams, learners, [1, 2], "2")]
    assert len({cell.key for cell in cells}) == len(cells) == len(set(cells)) == 2 * 2 * len(learners) * len(streams)


def test_settings_are_a_copy() -> None:
    given: dict[str, Any] = {"margins": [0.1, 0.2]}
    spec = Spec("A", given)
    given["margins"].append(0.3)
    assert spec == Spec("A", {"margins": [0.1, 0.2]})


@pytest.mark.parametrize(
    "value",
    [(1, 2), np.int64(3), np.bool_(True), np.arange(2), {1: "a"}, {1}, b"a", object(), float("nan")],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [0, {"deep": value}]], ids=["plain", "nested"])
def test_settings_that_json_would_change_are_refused(value: Any, wrap: Any) -> None:
    with pytest.raises(ValueError, match="settings of Banditron must survive JSON exactly: None, bool") as caught:
        Spec("Banditron", {"rounds": 1, "margin": wrap(value)})
    assert repr(value) in str(caught.value)


def test_infinity_has_one_exact_text() -> None:
    spec = Spec("BanditSVM", {"C": math.inf, "low": [-math.inf], "word": "1e999"})
    assert spec.settings == {"C": math.inf, "low": [-math.inf], "word": "1e999"}
    assert spec.canonical == '{"name":"BanditSVM","settings":{"C":Infinity,"low":[-Infinity],"word":"1e999"}}'
    assert Spec("BanditSVM", json.loads(spec.canonical)["settings"]) == spec
    assert spec.label == "BanditSVM(C=inf, low=[-inf], word='1e999')"
    keys = {Cell(STREAM, Spec("A", {"C": value}), 1, "1").key for value in (math.inf, -math.inf, "1e999", None, 1e308)}
    assert len(keys) == 5


def test_grid_is_everything_against_everything() -> None:
    cells = grid(iter([STREAM]), iter([BANDITRON, PERCEPTRON]), iter([1, 2]), "1")
    assert cells == [Cell(STREAM, learner, seed, "1") for seed in (1, 2) for learner in (BANDITRON, PERCEPTRON)]
