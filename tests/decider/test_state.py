"""Snapshots of any size: a large one is kept in parts, and nothing but the time to open depends on one."""

from typing import Any

import pytest

import onebit
from live_places import Place
from onebit.decider.decider import Decider
from onebit.decider.log import EventLog, Snapshot
from onebit.decider.sqlite import SQLiteLog

_PART = 1 << 10


@pytest.fixture
def place(log_place: tuple[Any, str | None], monkeypatch: pytest.MonkeyPatch) -> Place:
    """Return a place in which a kilobyte is already large."""
    monkeypatch.setattr("onebit.decider.log._PART", _PART)
    return Place(*log_place)


def begun(place: Place, **settings: Any) -> Decider:
    return place.open(classes=["a", "b"], learner=onebit.BanditPerceptron(), **settings)


def play(desk: Decider, n: int) -> None:
    for i in range(n):
        desk.tell(desk.guess({str(j): float(i * j % 7) for j in range(200)}), i % 2 == 0)


def n_parts(desk: Decider) -> list[int]:
    """Return how many parts each snapshot has."""
    log: Any = desk._log
    return [n for (n,) in log._select("count(*)", "snapshots", "TRUE GROUP BY seq ORDER BY seq")]


def test_a_large_snapshot_is_kept_in_parts(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with begun(place) as desk:
        for _ in range(3):
            play(desk, 2)
            desk.snapshot()
        assert len(n_parts(desk)) == 2, "older ones are gone, with their parts"
        assert min(n_parts(desk)) > 3
        last = desk.status().events
    with place.open() as desk:
        assert desk._state.restored == last
        assert desk.verify()
        log: Any = desk._log
        with log._transaction():  # the last part of the last one is lost
            log._delete("snapshots", "seq = ? AND part = ?", [(last, n_parts(desk)[1] - 1)])
    with place.open() as desk:
        assert desk._state.restored == last - 4
        assert desk.verify()


@pytest.mark.parametrize("size", [0, 1, _PART - 1, _PART, _PART + 1, 3 * _PART])
def test_parts_make_the_whole(place: Place, size: int) -> None:
    with begun(place) as desk:
        content = bytes(i * i % 251 for i in range(size))
        desk._log.save_snapshot(Snapshot(1, content))
        assert next(desk._log.snapshots()).content == content
        assert n_parts(desk) == [max(size - 1, 0) // _PART + 1]


def test_erasing_loads_no_snapshot(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with begun(place) as desk:
        play(desk, 3)
        desk.snapshot()
        ticket = desk.guess({"note": "a word that ann said in secret"})

        def loaded(*_: Any) -> None:
            raise AssertionError

        monkeypatch.setattr(EventLog, "snapshots", loaded)
        assert desk.forget([ticket]) == 2
        assert desk.compact() > 3
        assert len(n_parts(desk)) == 1
        monkeypatch.undo()
    assert b"in secret" not in place.content()


def test_a_snapshot_that_cannot_be_made_is_nobodys_fault(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that no memory can hold: whoever happened to call is answered."""
    monkeypatch.setattr("onebit.decider.state._EVENTS_PER_SNAPSHOT", 5)

    def too_large(*_: Any) -> None:
        raise OverflowError("BLOB longer than INT_MAX bytes")

    monkeypatch.setattr(EventLog, "save_snapshot", too_large)
    with begun(place) as desk:
        with pytest.warns(RuntimeWarning, match="events are safe"):
            play(desk, 4)
        assert desk.status().right + desk.status().wrong == 4


@pytest.mark.slow
def test_a_snapshot_beyond_what_a_database_takes_at_once(tmp_path: Any) -> None:
    size = (1 << 31) + 5
    log = SQLiteLog(tmp_path / "desk.onebit", {"began": 0.0})
    log.save_snapshot(Snapshot(1, b"\1" * size))
    assert log._select("max(part), sum(length(content))", "snapshots") == [(32, size)]
    snapshot = next(log.snapshots())
    assert len(snapshot.content) == size
    log.close()
