"""What goes wrong in a year: Ctrl-C, a full disk, damaged pages. All of it is noticed, and nothing of it stays."""

from pathlib import Path
from typing import Any

import pytest

import onebit
from onebit.live.decider import Decider
from onebit.live.log import LogWriteError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "desk.onebit"


def begun(path: Path, **settings: Any) -> Decider:
    told: dict[str, Any] = {"classes": ["a", "b", "c"], "learner": onebit.BanditPerceptron()}
    return Decider.open(path, **told | settings)


def play(desk: Decider, n: int, start: int = 0) -> list[Any]:
    tickets = [desk.guess({"x": float(i % 7), "word": "uvw"[i % 3]}) for i in range(start, start + n)]
    for i, ticket in enumerate(tickets):
        desk.tell(ticket, i % 2 == 0)
    return tickets


class Interrupted:
    """Something that is used as before, but for one Ctrl-C which comes after a call whose first argument begins so."""

    def __init__(self, used: Any, after: str) -> None:
        self.used, self.after = used, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self.used, name)

    def execute(self, statement: str, *values: Any) -> Any:
        result = self.used.execute(statement, *values)
        self.interrupt_after(statement)
        return result

    def executemany(self, statement: str, lines: Any) -> Any:
        result = self.used.executemany(statement, lines)
        self.interrupt_after(statement)
        return result

    def __enter__(self) -> Any:
        return self.used.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.used.__exit__(*error)
        self.interrupt_after("exit")

    def interrupt_after(self, what: str) -> None:
        if self.after and what.startswith(self.after):
            self.after = ""
            raise KeyboardInterrupt


@pytest.mark.parametrize(("moment", "n_guesses"), [("INSERT", 1), ("BEGIN", 65), ("INSERT", 65), ("COMMIT", 65)])
def test_ctrl_c_while_it_writes(path: Path, moment: str, n_guesses: int) -> None:
    """Few events are one statement, which is a transaction by itself; many are several in one."""
    with begun(path) as desk:
        play(desk, 3)
        log: Any = desk._log
        log._connection = Interrupted(log._connection, moment)
        with pytest.raises(KeyboardInterrupt):
            desk.guess_many([{"x": 1.0}] * n_guesses)
        is_there = n_guesses == 1 or moment == "COMMIT"
        assert desk.status().guesses == 3 + n_guesses * is_there
        desk.tell(desk.guess({"x": 1.0}), True)
        assert desk.status().guesses == 4 + n_guesses * is_there
        assert desk.verify()


def test_what_is_written_is_not_said_to_be_lost(path: Path) -> None:
    """Another thread waits for the same batch when Ctrl-C comes just after it was written."""
    with begun(path) as desk:
        log: Any = desk._log
        log._connection = Interrupted(log._connection, "INSERT")
        with pytest.raises(KeyboardInterrupt), desk.together() as batches:
            desk.guess({"x": 1.0})
        assert [batch.is_done and batch.error is None for batch in batches] == [True]


def test_ctrl_c_before_anything_is_written_leaves_no_gap(path: Path) -> None:
    with begun(path) as desk:
        play(desk, 3)
        log: Any = desk._log
        with pytest.raises(LogWriteError), desk.together() as batches:  # noqa: PT012 -- it is raised at the end
            desk.guess({"x": 1.0})
            log._lining = Interrupted(log._lining, "exit")
            with pytest.raises(KeyboardInterrupt):
                log.wait(batches[-1])
        play(desk, 3)
        assert desk.verify()
    with Decider.open(path) as desk:
        assert desk.verify()
