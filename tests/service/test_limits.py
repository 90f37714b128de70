"""What one request, one decider and the whole process may take: time, memory, and patience before the first guess."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")

import onebit
from live_places import Place
from onebit.decider import calls, state
from served import DESK, Served

# Time.


@pytest.mark.parametrize("among", [["a", "b", "a", "b"], ["a"] * 50_000])
def test_more_labels_than_classes_are_refused(served: Served, tmp_path: Path, among: list[str]) -> None:
    learner = onebit.BanditPerceptron(classes=["a", "b", "c"])
    for call in (learner.guess, learner.probabilities):
        with pytest.raises(ValueError, match=rf"among must list some of the 3 classes; got {len(among)} labels"):
            call([1.0, 2.0], among=among)
    with Place(tmp_path / "desk.onebit").open(classes=["a", "b", "c"], learner=learner) as desk:
        with pytest.raises(ValueError, match="some of the 3 classes"):
            desk.guess([1.0, 2.0], among=among)
        assert desk.guess([1.0, 2.0], among=["a", "a"]).label == "a", "repeated, and no more than classes"
    reply = served.ask("POST", f"{DESK}/guess", {"record": {"x": 1.0}, "among": among})
    assert reply.status == 422
    assert "some of the 3 classes" in reply.json["detail"]


@pytest.mark.parametrize("label", [[1], {}, None, 1.5])
def test_what_is_no_label_is_refused_in_words(tmp_path: Path, label: Any) -> None:
    with Place(tmp_path / "desk.onebit").open(classes=["a", "b"], learner=onebit.BanditPerceptron()) as desk:
        with pytest.raises(ValueError, match="among must list some of the classes"):
            desk.guess([1.0], among=[label])
        with pytest.raises(ValueError, match="label must be one of"):
            desk.shadow([1.0], label, True)


class Shown:
    """A label that counts how often labels are written."""

    n_shown = 0

    def __repr__(self) -> str:
        Shown.n_shown += 1
        return "shown"


def test_an_error_does_not_write_all_classes(tmp_path: Path) -> None:
    labels = [Shown() for _ in range(5_000)]
    with Place(tmp_path / "desk.onebit").open(classes=5_000, learner=onebit.BanditPerceptron()) as desk:
        desk._state.classes, desk._state.indices = labels, {label: i for i, label in enumerate(labels)}
        with pytest.raises(ValueError, match=r"among must list some of the classes, \[shown, shown, "):
            desk.guess([1.0], among=["other"])
        assert 10 < Shown.n_shown <= 100
        with pytest.raises(ValueError, match=r"label must be one of \[shown, "):
            desk.shadow([1.0], "other", True)
    assert Shown.n_shown <= 200


# Memory: what is read and written.


LONG = "word " * 20_000  # 100 kB


def test_pages_are_bounded_in_bytes_and_hold_every_event_once(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_MOST_BYTES_A_PAGE", 250_000)
    for i in range(6):
        assert served.ask("POST", f"{DESK}/guess", {"record": {"subject": LONG * (4 if i == 3 else 1)}}).status == 200
    after, seen, sizes = 0, [], []
    while (reply := served.ask("GET", f"{DESK}/log?after={after}")).json["events"]:
        seen += [event["seq"] for event in reply.json["events"]]
        sizes.append((len(reply.json["events"]), len(reply.body)))
        after = reply.json["next"]
    assert seen == list(range(1, 8))
    assert all(size < 260_000 or n == 1 for n, size in sizes), sizes
    assert max(n for n, _ in sizes) > 1


def test_a_snapshot_is_due_after_so_many_bytes_too(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def n_snapshots() -> int:
        return len(list(desk._log.snapshots()))

    with place.open(classes=2, learner=onebit.BanditPerceptron()) as desk:
        desk.guess({"subject": LONG})
    with place.open() as desk:
        assert not n_snapshots(), "that is replayed in no time"
        monkeypatch.setattr(state, "_BYTES_WORTH_A_SNAPSHOT", 150_000)
        desk.guess({"subject": LONG})  # with the one that was there before
    with place.open() as desk:
        assert n_snapshots() == 1
        monkeypatch.setattr(state, "_BYTES_PER_SNAPSHOT", 150_000)
        desk.guess({"subject": LONG})
        desk.guess({"subject": LONG})
        assert n_snapshots() == 1
        desk.status()
        assert n_snapshots() == 2
        desk.status()
        assert desk._recorder._snapshot_seq == desk.status().events


_MEASURED = """
import os, sys
from onebit import BanditPerceptron
from onebit.decider.decider import Decider
from onebit.decider.calls import VERBS

def peak():
    (line,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return int(line.split()[1]) // 1024

def write(desk):
    for _ in range(40):
        desk.guess(record)

def read(desk):
    after, page = 0, {"events": True}
    while page["events"]:
        page = VERBS["log"].call(desk, after)
        after = page["next"]

record = {f"text {i}": "some words " * 80_000 for i in range(4)}  # 3.5 MB
path, what = sys.argv[1:]
with Decider.open(path + ".first", classes=2, learner=BanditPerceptron()) as first:  # all is imported, and met once
    first.guess(record)
    read(first)
before = peak()
desk = Decider.open(path, classes=2, learner=BanditPerceptron())
{"write": write, "read": read, "replay": lambda _desk: None}[what](desk)
print(peak() - before)
sys.stdout.flush()
os._exit(0)  # as a crash does: no snapshot
"""


@pytest.mark.ci
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_reading_and_replaying_large_records_takes_the_memory_of_a_few(tmp_path: Path) -> None:
    def grown(what: str) -> int:
        command = [sys.executable, "-c", _MEASURED, str(tmp_path / "desk.onebit"), what]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    grown("write")
    assert (tmp_path / "desk.onebit-wal").stat().st_size + (tmp_path / "desk.onebit").stat().st_size > 140e6
    assert grown("replay") < 50, "140 MB are read"
    assert grown("read") < 50
