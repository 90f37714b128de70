"""All deciders of a service share one budget of memory: what does not fit is refused in words, and the rest goes on."""

import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")

import onebit
from onebit.decider.decider import Decider
from onebit.machine_memory import Budget, MemoryBudgetError
from served import Reply, Served

WIDE = [1.0] * 300  # with room for more: 308 places
FULL: dict[str, Any] = {"classes": ["a", "b", "c", "d"], "learner": "LinUCB"}
BASE_BYTES = Decider.least_bytes()
ONE = BASE_BYTES + 16 * 4 * 400 * 400  # a bit more than such a decider takes


def is_refused(reply: Reply, name: str) -> bool:
    detail = reply.json["detail"]
    assert (reply.status, reply.headers["content-type"]) == (409, "application/problem+json"), detail
    assert f"{name} needs 0.0" in detail
    assert "are left; " in detail
    assert "--memory" in detail
    return True


def guess(served: Served, name: str, record: Any = WIDE) -> Reply:
    return served.ask("POST", f"/v1/shop/{name}/guess", {"record": record})


@pytest.mark.parametrize(
    "learner", [onebit.LinUCB(), onebit.BanditPerceptron(), onebit.SOBA(), onebit.BanditHalving(64)], ids=repr
)
def test_no_learner_begins_beyond_the_budget(learner: onebit.Learner) -> None:
    learner.set_params(classes=50)
    with Budget(20_000.0, "take less").shared_by("it"):
        with pytest.raises(MemoryBudgetError, match=r"it needs .* GiB of memory, and .* are left; take less"):
            learner.guess([1.0] * 100)
        assert not learner._started
    learner.set_params(classes=3).guess([1.0] * 2)


def test_the_decider_that_does_not_fit_is_refused_and_the_others_go_on(tmp_path: Path) -> None:
    names = ["first", "second", "third"]
    with Served(tmp_path, memory=3 * ONE) as served:
        for name in names:
            assert served.ask("PUT", f"/v1/shop/{name}", FULL).status == 201
            if name != "third":
                assert guess(served, name).status == 200
        # The first record decides how wide rows are; one that is refused decides nothing.
        assert guess(served, "third", [1.0] * 900).status == 409
        assert is_refused(guess(served, "third", [1.0] * 900), "shop/third")
        assert guess(served, "third").status == 200
        assert is_refused(served.ask("PUT", "/v1/shop/fourth", FULL | {"classes": 40_000}), "shop/fourth")
        assert not (tmp_path / "shop" / "fourth.onebit").exists()
        listed = served.ask("POST", "/v1/shop/third/guess", [{"record": WIDE}, {"record": WIDE}]).json
        assert [each.get("status") for each in listed] == [None, None]
        assert [guess(served, name).status for name in names] == [200] * 3
    with Served(tmp_path, memory=2 * ONE) as served:
        replies = [guess(served, name) for name in names]
        assert sorted(reply.status for reply in replies) == [200, 200, 409]
        refused = next(name for name, reply in zip(names, replies, strict=True) if reply.status == 409)
        assert is_refused(served.ask("GET", f"/v1/shop/{refused}/status"), f"shop/{refused}")
        assert is_refused(served.ask("PUT", f"/v1/shop/{refused}", FULL), f"shop/{refused}")
    with Served(tmp_path, memory=4 * ONE) as served:
        assert [served.ask("GET", f"/v1/shop/{name}/status").status for name in names] == [200] * 3, "nothing is lost"


def test_a_decider_that_comes_from_a_snapshot_is_refused_the_same_way(tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        assert served.ask("PUT", "/v1/shop/desk", FULL).status == 201
        assert guess(served, "desk").status == 200
        served.service.workers.get("shop", "desk").open_decider().snapshot()
    with Served(tmp_path, memory=BASE_BYTES + 50_000) as served:
        assert is_refused(guess(served, "desk"), "shop/desk")
    with Served(tmp_path) as served:
        assert guess(served, "desk").status == 200


def test_a_class_that_does_not_fit_is_refused_and_a_correction_is_replayed(tmp_path: Path) -> None:
    with Served(tmp_path, memory=BASE_BYTES + 16 * 4 * 340 * 340 + 100_000) as served:
        desk = "/v1/shop/desk"
        assert served.ask("PUT", desk, FULL).status == 201
        ticket = guess(served, "desk").json
        assert is_refused(served.ask("POST", f"{desk}/classes", {"label": "e"}), "shop/desk")
        assert served.ask("GET", f"{desk}/status").json["classes"] == FULL["classes"]
        told = {"id": ticket["id"], "correct": True}
        assert served.ask("POST", f"{desk}/tell", told).json == {"news": True}
        # A replay makes all of it anew, beside what there is.
        assert served.ask("POST", f"{desk}/correct", told | {"correct": False}).json == {"done": True}
        assert served.ask("GET", f"{desk}/status").json["wrong"] == 1
        assert guess(served, "desk").status == 200


def test_guesses_that_are_not_answered_are_counted_and_answers_are_always_taken(tmp_path: Path) -> None:
    with Served(tmp_path, memory=BASE_BYTES + 4_000_000) as served:
        desk = "/v1/shop/desk"
        assert served.ask("PUT", desk, {"classes": ["a", "b"], "learner": "BanditPerceptron"}).status == 201
        records = [{"record": [1.0] * 1_000}] * 100  # 8 kB each, as the learner remembers them
        tickets: list[Any] = []
        while (replies := served.ask("POST", f"{desk}/guess", records).json)[-1].get("status") != 409:
            tickets += replies
            assert len(tickets) < 1_000
        assert len(tickets) >= 300
        answers = [{"id": each["id"], "correct": True} for each in tickets]
        assert served.ask("POST", f"{desk}/tell", answers).json == [{"news": True}] * len(answers)
        assert guess(served, "desk", [1.0] * 1_000).status == 200


@pytest.mark.parametrize(
    ("settings", "record"),
    [({"classes": 1_000}, [1.0]), ({"classes": 2, "exploration_floor": 1.0}, [1.0] * 1_000)],
    ids=["many classes", "labels of chance"],
)
def test_one_list_of_guesses_takes_no_more_than_is_left(tmp_path: Path, settings: Any, record: Any) -> None:
    memory, desk = BASE_BYTES + 3_000_000, "/v1/shop/desk"
    with Served(tmp_path, memory=memory) as served:
        assert served.ask("PUT", desk, settings | {"learner": "BanditPerceptron"}).status == 201
        first = guess(served, "desk", record).json
        replies = served.ask("POST", f"{desk}/guess", [{"record": record}] * 400).json
        tickets = [first, *(each for each in replies if "id" in each)]
        assert replies[-1].get("status") == 409, "each takes 9 kB"
        decider = served.service.workers.get("shop", "desk").open_decider()
        assert BASE_BYTES + 9_000 * len(tickets) < decider.n_bytes() < memory + 10_000
        answers = [{"id": each["id"], "correct": True} for each in tickets]
        assert served.ask("POST", f"{desk}/tell", answers).json == [{"news": True}] * len(answers)
        assert guess(served, "desk", record).status == 200


def test_deciders_are_closed_one_after_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    close, n_closing, most = Decider.close, 0, 0

    def counted(self: Decider) -> None:
        nonlocal n_closing, most
        n_closing += 1
        most = max(most, n_closing)
        time.sleep(0.05)
        close(self)
        n_closing -= 1

    with Served(tmp_path) as served:
        for name in ("first", "second", "third"):
            assert served.ask("PUT", f"/v1/shop/{name}", FULL).status == 201
        monkeypatch.setattr(Decider, "close", counted)
    assert (n_closing, most) == (0, 1), "each may make a copy of all that it knows, for a snapshot"
