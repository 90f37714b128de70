"""Tickets: who honours which, what they cost, and what happens to them in a fork."""

import copy
import json
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import onebit
from onebit.checks.problems import noisy_problem
from onebit.game import Answer
from onebit.inputs import Rows

PROBLEM = noisy_problem(60)


def bytes_kept(learner: onebit.Learner) -> int:
    assert learner._tickets is not None
    return sum(page.nbytes for page in learner._tickets._pages.values())


def test_an_index_out_of_range_is_an_error() -> None:
    learner = onebit.BanditPerceptron(classes=4)
    guess = learner.guess(PROBLEM.X[0])
    for edited in (guess._replace(index=10**8), guess._replace(row=np.ones((1, 10**6)))):
        with pytest.raises(ValueError, match="guess of round 0 was edited"):
            learner.tell(edited, True)
    learner.tell(guess, True)
    with pytest.raises(ValueError, match="round 0 is not open here: it was told before"):
        learner.tell(guess, True)
    with pytest.raises(ValueError, match="must be what guess"):
        learner.tell(None, True)  # type: ignore[arg-type]
    onebit.play(learner, PROBLEM.X, PROBLEM.y)
    learner.guess(PROBLEM.X[0])
    with pytest.raises(ValueError, match="foreign"):
        learner.tell(guess, True)


class TwoFaced(onebit.Guess):
    """Could say another thing each time it is read."""


def test_a_late_ticket_is_copied_before_it_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its holder's threads may write to its arrays at any time: after the check a wrong column would be written to."""
    learner = onebit.Banditron(classes=4)
    for features in (PROBLEM.X[0], scipy.sparse.csr_array(PROBLEM.X[:1])):
        late = learner.guess(features)
        learner.guess(PROBLEM.X[1])
        with pytest.raises(ValueError, match="must be what guess"):
            learner.tell(TwoFaced(*late), True)
        heard: list[onebit.Guess] = []
        with monkeypatch.context() as patch:
            patch.setattr(learner._state, "update", lambda guess, *_, heard=heard: heard.append(guess) or False)
            learner.tell(late, True)
        for ours, theirs in zip((*_arrays(heard[0]),), (*_arrays(late),), strict=True):
            assert not np.shares_memory(ours, theirs)


def _arrays(guess: onebit.Guess) -> Any:
    return *(guess.row[:3] if isinstance(guess.row, tuple) else [guess.row]), guess.scores


def test_a_ticket_in_arrays_of_another_layout_is_the_same_ticket() -> None:
    learner = onebit.Banditron(classes=4)
    late = learner.guess(PROBLEM.X[0])
    learner.guess(PROBLEM.X[1])
    assert isinstance(late.row, np.ndarray)
    strided = np.repeat(late.row, 2, axis=1)[:, ::2]
    strided.flags.writeable = False
    learner.tell(late._replace(row=strided), True)
    assert learner.n_mistakes_ == 0


def test_an_expired_ticket_costs_eight_bytes_and_none_when_it_is_told() -> None:
    learner = onebit.UniformGuess(classes=4)
    learner.max_open_tickets = 1
    tickets = [learner.guess(PROBLEM.X[t % 60]) for t in range(3000)]
    assert bytes_kept(learner) <= 9 * 3000
    for ticket in tickets[::-1]:
        learner.tell(ticket, False)
    assert bytes_kept(learner) == 0
    for t in range(600):
        learner.tell(learner.guess(PROBLEM.X[t % 60]), False)
    assert bytes_kept(learner) == 0


def test_the_oldest_open_tickets_expire_first() -> None:
    learner = onebit.Banditron(classes=4)
    assert learner.max_open_tickets == 10_000
    for wrong in (0, -1, 1.5, True, None):
        with pytest.raises(ValueError, match="max_open_tickets must be"):
            learner.max_open_tickets = wrong  # type: ignore[assignment]
    learner.max_open_tickets = 3
    tickets = [learner.guess(x) for x in PROBLEM.X[:5]]
    known = learner.learned()["weights"].tobytes()
    for ticket in tickets[:2]:
        with pytest.raises(ValueError, match="has expired: the learner remembers 3 open tickets"):
            learner.tell(ticket.id, True)
    assert learner.learned()["weights"].tobytes() == known
    learner.tell(onebit.Guess.from_json(tickets[0].to_json()), True)  # the ticket itself says enough
    with pytest.raises(ValueError, match="told before"):
        learner.tell(tickets[0], True)
    for ticket in tickets[2:]:
        learner.tell(ticket.id, False)
        with pytest.raises(ValueError, match="not open here: it was told before"):
            learner.tell(ticket.id, False)
    learner.max_open_tickets = 1  # counts from the next guess on
    first, second = learner.guess(PROBLEM.X[0]), learner.guess(PROBLEM.X[1])
    learner.tell(second.id, True)
    with pytest.raises(ValueError, match="expired"):
        learner.tell(first.id, True)


def test_a_ticket_whose_feedback_was_refused_keeps_its_place(tmp_path: Path) -> None:
    learner = onebit.Banditron(classes=4)
    learner.max_open_tickets = 2
    first, second = learner.guess(PROBLEM.X[0]), learner.guess(PROBLEM.X[1])
    with pytest.raises(ValueError, match="correct must be"):
        learner.tell(first.id, 1)  # type: ignore[arg-type]
    learner.save(tmp_path / "file")
    onebit.load(tmp_path / "file").tell(first.id, True)
    learner.guess(PROBLEM.X[2])
    with pytest.raises(ValueError, match="expired"):
        learner.tell(first.id, True)
    learner.tell(second.id, True)
    with pytest.raises(ValueError, match="correct must be"):
        learner.tell(first, 1)  # type: ignore[arg-type]
    learner.tell(first, True)


def test_forged_ids_are_refused_and_change_nothing() -> None:
    learner, stranger = onebit.Banditron(classes=4), onebit.Banditron(classes=4)
    with pytest.raises(ValueError, match="issued none"):
        learner.tell("0-" + "0" * 16, True)
    late, latest, theirs = learner.guess(PROBLEM.X[0]), learner.guess(PROBLEM.X[1]), stranger.guess(PROBLEM.X[0])
    known = learner.learned()["weights"].tobytes()
    for name in (theirs.id, f"1-{late.id[2:]}", f"0-{latest.id[2:]}"):
        with pytest.raises(ValueError, match=r"not open here: .*foreign"):
            learner.tell(name, True)
    for name in (f"7-{late.id[2:]}", f"{10**17}-{late.id[2:]}"):
        with pytest.raises(ValueError, match="is not open here"):
            learner.tell(name, True)
    for name in ("", "0", "0-", "x-" + "0" * 16, "-1-" + "0" * 16, "0-" + "0" * 15, "0-" + "G" * 16, "٣-" + "0" * 16):
        with pytest.raises(ValueError, match="id is like"):
            learner.tell(name, True)
    with pytest.raises(ValueError, match="correct must be"):
        learner.tell(late.id, 1)  # type: ignore[arg-type]
    assert learner.learned()["weights"].tobytes() == known
    learner.tell(latest.id, True)
    learner.tell(late.id, True)
    assert learner.n_mistakes_ == 0
    assert len({learner.guess(PROBLEM.X[0]).id for _ in range(2000)}) == 2000


def test_json_of_a_ticket_is_read_with_care() -> None:
    learner = onebit.Banditron(classes=["a", "b"])
    guess = learner.guess(scipy.sparse.csr_array([[0.0, 1.5, 0.0]]))
    text = guess.to_json()
    said = json.loads(text)
    assert said["row"] == {"values": [1.5], "columns": [1], "n_columns": 3}
    for field in said:
        strange: tuple[Any, ...] = (None, "x", [], {}, [[]], -1, {"called": ["os:system", ["true"]]})
        for value in strange:
            if value == said[field]:
                continue  # no confidence yet
            edited = json.dumps({**said, field: value})
            with pytest.raises(ValueError, match=r"text must be what|edited|foreign|not open"):
                learner.tell(onebit.Guess.from_json(edited), True)
        with pytest.raises(ValueError, match="text must be what"):
            onebit.Guess.from_json(json.dumps({name: each for name, each in said.items() if name != field}))
    for wrong in ("", "[", "[]", "{}", "NaN", "[" * 100_000, b"\xff", 5):
        with pytest.raises(ValueError, match="text must be what"):
            onebit.Guess.from_json(wrong)  # type: ignore[arg-type]
    learner.tell(onebit.Guess.from_json(text.encode()), True)


def test_restarts_leave_nothing_behind_once_all_is_told() -> None:
    learner: Any = onebit.UniformGuess(classes=4)
    tickets = []
    for _ in range(5):
        tickets.append(learner.guess(PROBLEM.X[0]))
        learner = pickle.loads(pickle.dumps(learner))
    assert len({ticket.id[2:] for ticket in tickets}) == 5
    assert len(learner._tickets._kept) == 5
    for ticket in tickets:
        learner.tell(ticket, True)
    assert not learner._tickets._kept


_FORK = """
import os, sys, onebit
learner = onebit.UniformGuess(classes=2)
opened = learner.guess([1.0])
read, write = os.pipe()
if os.fork() == 0:
    mine = learner.guess([1.0])
    learner.tell(opened, True)
    learner.tell(mine, True)
    os.write(write, mine.id.encode())
    os._exit(0)
os.wait()
theirs = os.read(read, 100).decode()
mine = learner.guess([1.0])
learner.tell(opened, True)
print(theirs != mine.id, mine.round, len(theirs))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_the_child_of_a_fork_issues_its_own() -> None:
    run = subprocess.run([sys.executable, "-c", _FORK], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True", "1", "18"]


class Meddler:
    """Lets another thread play a round whenever it is saved or copied."""

    learner: onebit.Learner | None = None

    def __reduce__(self) -> Any:
        learner = self.learner
        if learner is not None:

            def play_a_round() -> None:
                learner.tell(learner.guess([1.0]), True)

            worker = threading.Thread(target=play_a_round, daemon=True)
            worker.start()
            worker.join(timeout=0.2)  # it has to wait for the lock
        return Meddler, ()


class Meddled(onebit.Learner):
    """Counts the same thing twice, with a meddler in between."""

    def __init__(self, *, classes: Any = None, seed: int = 0) -> None:
        self.classes, self.seed = classes, seed

    def _start(self) -> None:
        self.first, self.meddler, self.last = [0], Meddler(), [0]

    def _choose(self, row: Rows, round: int) -> tuple[int, bool, float]:
        return 0, False, 1.0

    def _update(self, guess: onebit.Guess, answer: Answer) -> bool:
        self.first[0] += 1
        self.last[0] += 1
        return True


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda learner: pickle.loads(pickle.dumps(learner))])
def test_what_is_saved_while_others_play_is_whole(copied: Any) -> None:
    learner = Meddled(classes=2)
    learner.begin(1)
    learner.meddler.learner = learner
    twin = copied(learner)
    assert twin.first == twin.last == [twin.n_updates_]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_form_of_pickle_gives_a_learner_that_plays_on(protocol: int) -> None:
    learner = onebit.UniformGuess(classes=2)
    opened = learner.guess([1.0])
    twin = pickle.loads(pickle.dumps(learner, protocol))
    twin.tell(opened, True)
    twin.tell(twin.guess([1.0]), True)
    assert twin.n_rounds_ == 2


def test_a_ticket_is_told_by_its_json() -> None:
    learner = onebit.BanditPerceptron(classes=4)
    texts = [learner.guess(x).to_json() for x in PROBLEM.X[:3]]
    learner.tell(texts[1], True)
    learner.tell(f"\n {texts[0]}", False)
    assert (learner.n_mistakes_, learner.n_rounds_) == (1, 3)
    with pytest.raises(ValueError, match="round 1 is not open here"):
        learner.tell(texts[1], True)
    with pytest.raises(ValueError, match="was edited"):
        learner.tell(texts[2].replace('"explored":true', '"explored":null').replace('"index":', '"index":1'), True)
    with pytest.raises(ValueError, match=r"text must be what Guess\.to_json"):
        learner.tell("{}", True)


def test_told_twice_and_foreign_are_one_message_before_and_after_loading(tmp_path: Path) -> None:
    learner, stranger = onebit.BanditPerceptron(classes=4), onebit.BanditPerceptron(classes=4)
    told, theirs = learner.guess(PROBLEM.X[0]), stranger.guess(PROBLEM.X[0])
    learner.tell(told, True)
    learner.save(tmp_path / "saved.onebit")
    loaded = onebit.load(tmp_path / "saved.onebit")
    messages = []
    for player in (learner, loaded):
        for ticket in (told, theirs, told.id, theirs.id):
            with pytest.raises(ValueError, match="is not open here") as raised:
                player.tell(ticket, True)
            messages.append(str(raised.value).partition("not open")[2])
    assert len(set(messages)) == 1
