"""Events of a log: what may be in a record, read in pieces, forgotten; in a file and in a database."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onebit
from live_places import Place, begun
from onebit.decider import log
from onebit.decider.log import _of_json


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "desk.onebit"


def test_forgetting_reaches_into_records(log_place: tuple[Any, str | None]) -> None:
    place = Place(*log_place)
    with place.open(classes=["a", "b"], learner=onebit.BanditPerceptron(), kinds={"customer.notes": "ignore"}) as desk:
        for n in (17, 18):
            customer = {"id": n, "notes": [{"said": f"a secret of customer {n}"}]}
            desk.tell(desk.guess({"customer": customer, "tags": ["late", f"t{n}"]}), True)
        desk.shadow({"customer.id": 17, "x": 1.0}, "a", True, propensity=0.5)
        desk.tell(desk.guess([3.0, 1717.25]), True)
        assert desk.forget(where={"customer.id": 19}) == 0
        assert desk.forget(where={"customer": {}}) == 0
        assert b"secret of customer 17" in place.content()
        assert desk.forget(where={"customer.id": np.int64(17)}) == 3
        assert desk.forget(where={"1": 1717.25}) == 2
        for wrong, said in (
            (["customer.id"], "where must be a mapping"),
            ({"x": object()}, "values that records have"),
        ):
            with pytest.raises(ValueError, match=said):
                desk.forget(where=wrong)  # type: ignore[arg-type]
        assert len(list(desk.events())) == 2 + 1, "those of customer 18, and that it was opened"
    content = place.content()
    assert b"secret of customer 17" not in content
    assert b"secret of customer 18" in content
    with place.open() as desk:
        assert desk.forget(where={"customer": {"id": 18}, "tags.0": "late"}) == 2
    assert b"secret" not in place.content()


def nested(kind: str) -> Any:
    value: Any = "w"
    wrap: Any = {"list": lambda x: [x], "tuple": lambda x: (x,), "mapping": lambda x: {"a": x}, "set": lambda x: {x}}
    for _ in range(5000):
        value = frozenset(wrap[kind](value)) if kind == "set" else wrap[kind](value)
    return value


@pytest.mark.parametrize("kind", ["list", "tuple", "mapping", "set"])
def test_what_is_nested_too_deep_is_refused_in_words(path: Path, kind: str) -> None:
    deep = nested(kind)
    with begun(path, kinds={"extra": "ignore"}) as desk:
        ticket = desk.guess({"x": 1.0})
        calls: list[Callable[[], Any]] = [
            lambda: desk.guess({"x": deep}),
            lambda: desk.guess({"x": ["word", deep]}),
            lambda: desk.guess(deep),
            lambda: desk.guess({"x": 1.0}, among=["a", deep]),
            lambda: desk.guess({"x": 1.0}, key=deep),
            lambda: desk.shadow({"x": deep}, "a", True),
            lambda: desk.shadow({"x": 1.0}, deep, True),
            lambda: desk.shadow({"x": 1.0}, "a", True, propensity=deep),
            lambda: desk.tell(deep, True),
            lambda: desk.tell(ticket, deep),
            lambda: desk.change(deadline=deep),
        ]
        for call in calls:
            with pytest.raises(ValueError, match=r"nested too deep|mappings deep"):
                call()
        desk.guess({"x": 1.0, "extra": deep})
        assert desk.verify()


def test_json_that_is_nested_too_deep_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="nested too deep"):
        _of_json("[" * 200_000)


LONG = "word " * 20_000  # 100 kB


def test_events_are_read_in_pieces_of_so_many_bytes(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[list[Any]] = []
    monkeypatch.setattr(log, "_BYTES_AT_ONCE", 250_000)
    with place.open(classes=["a", "b"], learner=onebit.BanditPerceptron()) as desk:
        kind: Any = type(desk._log)
        lines_after = kind._lines_after

        def noted(self: Any, after: int) -> list[Any]:
            pieces.append(lines_after(self, after))
            return pieces[-1]

        monkeypatch.setattr(kind, "_lines_after", noted)
        for i in range(6):
            desk.guess({"subject": LONG * (4 if i == 3 else 1)})
        pieces.clear()
        assert [event.seq for event in desk.events()] == list(range(1, 8))
        sizes = [sum(len(line[4]) for line in piece) for piece in pieces]
        assert max(len(piece) for piece in pieces) == 3, "the opening, and two guesses"
        assert [size for size in sizes if size > 250_000] == [max(sizes)], "one event alone may be larger"
        pieces.clear()
    with place.open():  # a replay reads them the same way
        assert len(pieces) > 3
