"""The pool of workers: deciders are found and made without waiting for others."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
from onebit.decider.calls import own_learner
from onebit.decider.decider import Decider
from onebit.decider.tickets import UnreachableError
from onebit.service.gate import Problem
from onebit.service.pool import Folder, WorkerPool

MADE = {"classes": ["a", "b"], "learner": own_learner("UniformGuess")}


def test_one_that_is_being_opened_keeps_no_other_from_being_made(tmp_path: Path) -> None:
    is_free = threading.Event()

    def opener(path: Path, *given: Any, **told: Any) -> Decider:
        assert path.stem != "slow" or is_free.wait(10)
        return Decider.open(path, *given, **told)

    Folder(tmp_path).open("shop/slow", MADE).close()
    desks = WorkerPool(Folder(tmp_path, opener))
    desks.open_all()
    with ThreadPoolExecutor(2) as threads:
        try:
            again = threads.submit(desks.create, "shop", "slow", MADE)
            time.sleep(0.05)
            assert threads.submit(desks.create, "shop", "quick", MADE).result(5.0)
        finally:
            is_free.set()
        assert not again.result(5.0)
    desks.close()
    with pytest.raises(Problem, match="is stopping"):
        desks.create("shop", "late", MADE)
    assert sorted(path.stem for path in tmp_path.glob("shop/*.onebit")) == ["quick", "slow"]


class Elsewhere(Folder):
    """A database that others may have made deciders in."""

    is_shared = True

    def __init__(self, *faults: Exception) -> None:
        self.n_looks, self._faults = 0, list(faults)

    def deciders(self) -> dict[str, str | None]:
        self.n_looks += 1
        if self._faults:
            raise self._faults.pop()
        return {}

    def open(self, title: str, told: dict[str, Any]) -> Decider:
        raise AssertionError("there is none")


@pytest.mark.parametrize("is_away", [False, True])
def test_many_who_ask_for_what_is_not_there_look_together(is_away: bool) -> None:
    store = Elsewhere(*[UnreachableError("it is away")] * 9 * is_away)
    desks = WorkerPool(store)

    async def ask() -> list[Any]:
        return await asyncio.gather(*(desks.find("shop", f"none-{i}") for i in range(50)), return_exceptions=True)

    assert {each.status for each in asyncio.run(ask())} == {503 if is_away else 404}
    assert store.n_looks == 2, "one for the first, and one for all who came meanwhile"


def test_a_standby_goes_on_looking_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.pool.LOOK_SECONDS", 0.01)
    desks = WorkerPool(Elsewhere(RuntimeError("can't start new thread")))
    desks.open_all()
    end = time.monotonic() + 5.0
    while desks.awaited and time.monotonic() < end:
        time.sleep(0.01)
    is_ready = not desks.awaited
    desks.close()
    assert is_ready
