"""kill -9 at any moment: no acknowledged event is lost, none is counted twice, and the state is what the log says."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onebit.decider.decider import Decider
from onebit.decider.tickets import Kind

PROGRAM = Path(__file__).with_name("kill_decider.py")


def kill_and_check(folder: Path, kills: int, threads: int, durability: str = "full") -> None:
    log, record = folder / "desk.onebit", folder / "record"
    chance = random.Random(kills)
    for _ in range(kills):
        command = [sys.executable, str(PROGRAM), str(log), str(record), str(threads), durability]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"playing\n"
            time.sleep(chance.uniform(0.02, 0.6))
            process.send_signal(signal.SIGKILL)
    with Decider.open(log) as desk:
        assert desk.verify()
        guesses = {event.ticket: desk.classes[event.body["label"]] for event in desk._log.find(kind=Kind.GUESSED)}
        answers = [(event.ticket, event.body["correct"]) for event in desk._log.find(kind=Kind.FEEDBACK)]
        assert len(dict(answers)) == len(answers), "an answer was counted twice"
        status = desk.status()
        assert (status.guesses, status.right + status.wrong) == (len(guesses), len(answers))
    told = [line.split() for line in record.read_text().splitlines()]
    assert len(told) > 10 * kills
    if durability == "full":
        known = dict(answers)
        for verb, ticket, said in told:
            if verb == "guess":
                assert guesses[ticket] == said
            else:
                assert known[ticket] == (said == "True")
        # What was not acknowledged may be there: one event for every thread and kill.
        assert len(guesses) + len(answers) - len(told) <= kills * threads
    print(f"{len(told)} events, {kills} processes killed")


@pytest.mark.ci
def test_kill_at_any_moment(tmp_path: Path) -> None:
    kill_and_check(tmp_path, kills=2, threads=4)


@pytest.mark.slow
def test_kill_at_200_moments(tmp_path: Path) -> None:
    kill_and_check(tmp_path, kills=200, threads=4)


@pytest.mark.ci
def test_kill_in_batches(tmp_path: Path) -> None:
    kill_and_check(tmp_path, kills=20, threads=4, durability="batch")
