"""The decider: the log is the truth, answers come late, twice or never, and nothing acknowledged is lost."""

import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import polars
import pytest
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

import onebit
from live_places import Place
from onebit.checks.problems import noisy_problem
from onebit.decider.decider import Decider
from onebit.decider.replay import _same_state
from onebit.decider.tickets import (
    Kind,
    LogError,
    LogWriteError,
    OwnedError,
    ReplayWarning,
    TicketConflictError,
)
from onebit.encoding import Encoder

PROBLEM = noisy_problem(120, 3, 4)


def unwritable(patched: pytest.MonkeyPatch, desk: Decider) -> None:
    """Let events of a decider go to a table that is not there."""
    home = sys.modules[type(desk._log).__module__]
    patched.setattr(home, "_INSERT", home._INSERT.replace("events", "nowhere"))


def play(desk: Decider, n: int, start: int = 0) -> list[Any]:
    """Play rounds of the problem, each answered at once."""
    tickets = []
    for x, label in zip(PROBLEM.X[start : start + n], PROBLEM.y[start : start + n], strict=True):
        ticket = desk.guess(x)
        desk.tell(ticket.id, ticket.label == "abc"[label])
        tickets.append(ticket)
    return tickets


@pytest.mark.parametrize("learner", [onebit.Banditron(), onebit.LinUCB()], ids=repr)
def test_a_decider_plays_as_its_learner(file: Place, learner: onebit.Learner) -> None:
    alone, encoder = clone(learner).set_params(classes=["a", "b", "c"]), Encoder(scale=True)
    with file.begun(learner) as desk:
        for x, label in zip(PROBLEM.X, PROBLEM.y, strict=True):
            looked = encoder.look(x)
            encoder.take(looked)
            ticket, guess = desk.guess(x), alone.guess(looked.row)
            assert (ticket.label, ticket.propensity) == (guess.label, guess.propensity)
            desk.tell(ticket.id, ticket.label == "abc"[label])
            alone.tell(guess, guess.label == "abc"[label])
        assert desk.status().wrong == alone.n_mistakes_
        assert desk.verify()


def test_it_goes_on_where_it_was(place: Place) -> None:
    with place.begun() as desk:
        play(desk, 30)
        waiting = desk.guess(PROBLEM.X[30])
    with place.other("whole").begun() as whole:
        play(whole, 30)
        late = whole.guess(PROBLEM.X[30])
        whole.tell(late, True)
        play(whole, 40, 31)
        with place.open() as desk:
            desk.tell(waiting.id, True)
            play(desk, 40, 31)
            assert _same_state(desk._state, whole._state)
            assert desk.status().events == whole.status().events + 1, "it was opened twice"


@pytest.mark.parametrize("n", [0, 25])
def test_snapshots_change_nothing(place: Place, n: int) -> None:
    with place.begun() as desk:
        play(desk, n)
        waiting = desk.guess(PROBLEM.X[n])
        desk.snapshot()
        play(desk, 20, n + 1)
    with place.open() as desk:
        assert desk.verify()
        desk.tell(waiting, False)
        assert desk.verify()


def test_answers_twice_and_opposite(place: Place) -> None:
    with place.begun() as desk:
        (ticket,) = play(desk, 1)
        said = desk.status().right == 1
        before = desk.status().events
        assert not desk.tell(ticket.id, said), "no news"
        assert desk.status().events == before
        with pytest.raises(ValueError, match="correct_answer"):
            desk.tell(ticket.id, not said)
        desk._state.feedback.clear()  # as after a restart
        assert not desk.tell(ticket, said)
        with pytest.raises(ValueError, match="none of this decider's"):
            desk.tell("7-0123456789abcdef", True)
        with pytest.raises(ValueError, match="correct must be True or False"):
            desk.tell(ticket.id, 1)  # type: ignore[arg-type]


def test_a_request_is_made_once(place: Place) -> None:
    with place.begun() as desk:
        first = desk.guess(PROBLEM.X[0], key="k1")
        assert desk.guess(PROBLEM.X[0], key="k1") == first
        desk._state.requests.clear()  # as after a restart
        assert desk.guess(PROBLEM.X[0], key="k1") == first
        assert desk.status().guesses == 1
        with pytest.raises(ValueError, match="key must be a text"):
            desk.guess(PROBLEM.X[0], key="")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("silence", ["nothing", "wrong"])
def test_deadlines(file: Place, silence: str) -> None:
    clock = Clock()
    with file.begun(deadline=10.0, silence=silence, clock=clock) as desk:
        ticket = desk.guess(PROBLEM.X[0])
        clock.now += 9.0
        assert desk.status().open == 1
        clock.now -= 500.0  # a clock that is set back opens nothing, and closes nothing
        assert desk.status().open == 1
        clock.now = 1011.0
        assert (
            desk.status()._asdict() | {"open": 0, "silent": 1, "wrong": int(silence == "wrong")}
            == desk.status()._asdict()
        )
        with pytest.raises(ValueError, match="closed without an answer"):
            desk.tell(ticket.id, True)
        assert desk.verify()


def test_deadlines_after_a_clock_that_was_a_year_ahead(file: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, seconds = Clock(), 50.0
    monkeypatch.setattr("onebit.decider.state.time.monotonic", lambda: seconds)
    with file.begun(deadline=10.0, clock=clock) as desk:
        clock.now += 3e7
        desk.guess(PROBLEM.X[0])
        clock.now -= 3e7
        for waited, n_open in ((0.0, 1), (9.0, 1), (2.0, 0)):
            seconds += waited
            assert desk.status().open == n_open
        assert [event.time for event in desk.events()] == [1000.0, 3e7 + 1000.0, 3e7 + 1011.0]
    seconds += 100.0
    with file.open(clock=clock) as desk:
        desk.guess(PROBLEM.X[0])
        seconds += 11.0
        assert desk.status().open == 0
        clock.now = 4e7
        assert desk.guess(PROBLEM.X[0]).time.timestamp() == 4e7


def test_too_many_open_tickets(file: Place) -> None:
    with file.begun(max_open=5) as desk:
        tickets = [desk.guess(x) for x in PROBLEM.X[:8]]
        assert desk.status().open == 5
        with pytest.raises(ValueError, match="closed without an answer"):
            desk.tell(tickets[2], True)
        assert desk.tell(tickets[3], True)
        assert desk.verify()


def test_a_corrected_answer_was_never_wrong(place: Place) -> None:
    """The learner is what it would be had the right answer come at once, with the guesses that were made."""
    with place.begun(onebit.Banditron()) as desk:
        tickets = play(desk, 10)
        answers = [event.body["correct"] for event in desk._log.find(kind=Kind.FEEDBACK)]
        desk.correct_answer(tickets[3], not answers[3])
        assert desk.verify()
        told = dict(zip((ticket.id for ticket in tickets), answers, strict=True)) | {tickets[3].id: not answers[3]}
        assert desk.status().right == sum(told.values())
        desk.withdraw(tickets[4])
        assert desk.status().right + desk.status().wrong == 9
        play(desk, 20, 10)
        assert desk.verify()
        assert desk.status().differences == 0
    with place.open() as desk:
        assert desk.verify()
        with pytest.raises(ValueError, match="correct_answer"):
            desk.tell(tickets[3], answers[3])
        with pytest.raises(
            ValueError, match="was withdrawn, and is closed; if True is known now, say so: correct_answer"
        ):
            desk.tell(tickets[4], True)


def test_a_correction_reaches_behind_a_snapshot(place: Place) -> None:
    with place.begun() as desk:
        tickets = play(desk, 10)
        desk.snapshot()
        play(desk, 10, 10)
        desk.withdraw(tickets[2])
        assert desk.verify()
        desk.compact()
        with pytest.raises(ValueError, match="compacted"):
            desk.withdraw(tickets[5])


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_a_correction_after_compacting_needs_no_more_than_is_kept(place: Place, is_forgotten: bool) -> None:
    twin = place.other("twin.onebit")

    def played(place: Place, is_compacted: bool) -> tuple[Decider, list[Any]]:
        desk = place.begun()
        tickets = play(desk, 10)
        if is_compacted:
            assert desk.forget([tickets[0]]) == 2 if is_forgotten else desk.compact() == 21
        tickets = play(desk, 10, 10)
        for _ in range(4):  # older ones are dropped
            play(desk, 1)
            desk.snapshot()
        return desk, tickets

    desk, tickets = played(place, True)
    other, others = played(twin, False)
    with desk, other:
        desk.withdraw(tickets[0])
        other.withdraw(others[0])
        play(desk, 1), play(other, 1)
        assert _same_state(desk._state, other._state)
        assert len(list(desk._log.snapshots())) == 3, "those of the last events, and that of the compacted ones"
    with place.open() as desk:
        assert _same_state(desk._state, other._state)
        desk.snapshot()
        before = desk.status()
        place.change(f"DELETE FROM snapshots WHERE seq = {desk._log.compacted}")  # as earlier versions did
        with pytest.raises(ValueError, match=r"cannot be corrected: events up to \d+ were compacted"):
            desk.withdraw(tickets[1])
        assert desk.status() == before
    place.open().close()


def test_compacting(place: Place) -> None:
    with place.begun() as desk:
        play(desk, 40)
        answered = desk.guess({"0": 1.0, "1": 2.0, "2": 3.0, "3": 98765.4321})
        desk.tell(answered, True)
        waiting = desk.guess({"0": 1.0, "1": 2.0, "2": 3.0, "3": 12345.678})
        assert desk.compact() > 80
        assert not desk.tell(answered, True), "again, by a caller that lost the reply"
        with pytest.raises(TicketConflictError, match="told True before, and False now"):
            desk.tell(answered, False)
        with pytest.raises(TicketConflictError, match="its guess was compacted away"):
            desk.label(answered, answered.label)
        play(desk, 5, 40)
        kept = desk.status()
        with pytest.raises(ValueError, match="no beginning"):
            desk.verify()
    with place.open() as desk:
        assert desk.status()._replace(events=kept.events, last=kept.last) == kept  # opening is an event too
        assert desk.tell(waiting, True)
    content = place.content()
    assert b"12345.678" in content, "the ticket was open"
    assert b"98765.4321" not in content


def test_forgetting_a_person(place: Place) -> None:
    with place.begun() as desk:
        for person in ("ann", "bob", "ann"):
            ticket = desk.guess({"who": person, "age": 17.25 if person == "ann" else 99.125})
            desk.tell(ticket, True)
        desk.shadow({"who": "ann", "age": 17.25}, "a", True, propensity=0.5)
        waiting = desk.guess({"who": "ann", "age": 17.25})
        other = desk.guess({"who": "bob", "age": 99.125})
        before = desk.status()
        assert desk.forget(where={"who": "ann"}) == 7, (
            "two guesses with answers, one that is closed for it, one watched"
        )
        after = before._replace(open=1, silent=1, oldest_open=other.time)
        assert desk.status()._replace(events=before.events, last=before.last) == after
        with pytest.raises(ValueError, match="none of this decider's"):
            desk.tell(waiting, True)
        assert desk.tell(other, True)
    content = place.content()
    assert content.count(b"17.25") == 0
    assert content.count(b"99.125") > 1
    with place.open() as desk:
        assert desk.forget([other]) == 2
        assert desk.forget() == 0
    if place.name is None:
        assert not place.path.with_name(place.path.name + "-wal").exists()


def test_forgetting_says_nothing_even_where_silence_says_wrong(file: Place) -> None:
    with file.begun(silence="wrong") as desk:
        ticket = desk.guess({"who": "ann"})
        desk.forget([ticket])
        status = desk.status()
        assert (status.open, status.silent, status.wrong) == (0, 1, 0)


def test_a_batch_that_is_lost_is_told_to_the_next_caller(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with place.begun(durability="batch") as desk:
        play(desk, 5)
        desk._log.flush()
        with monkeypatch.context() as patched:
            unwritable(patched, desk)
            lost = desk.guess(PROBLEM.X[5])
            while desk._log.unreported is None:
                time.sleep(0.001)
        with pytest.raises(LogWriteError, match="nothing of this happened"):
            desk.tell(lost, True)
        assert desk.status().guesses == 5
        with pytest.raises(ValueError, match="none of this decider's"):
            desk.tell(lost, True)
        assert desk.verify()


def test_what_cannot_be_written_as_json_spoils_nobody_elses_event(file: Place) -> None:
    with file.begun(onebit.BanditPerceptron()) as desk:
        for bad in (np.nan, 0.0, 2.0, "often"):
            with pytest.raises(ValueError, match="propensity must be"):
                desk.shadow(PROBLEM.X[0], "a", None, propensity=bad)  # type: ignore[arg-type]
        play(desk, 3)
        assert desk.verify()


class Own(onebit.Banditron):
    """A learner of one's own."""


def test_a_learner_of_ones_own(file: Place) -> None:
    with file.begun(Own(), trusted=[Own]) as desk:
        play(desk, 5)
    with file.open(trusted=[Own]) as desk:
        assert desk.verify()
    with pytest.raises(ValueError, match="trusted"):
        file.open()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_export(file: Place, suffix: str) -> None:
    with file.begun() as desk:
        tickets = play(desk, 5)
        desk.guess({"0": 1.0})
        assert desk.export(file.path.with_suffix(suffix)) == 6
        with pytest.raises(ValueError, match=r"\.csv or \.parquet"):
            desk.export(file.path.with_suffix(".txt"))
    read = polars.read_csv if suffix == ".csv" else polars.read_parquet
    frame = read(file.path.with_suffix(suffix))
    assert frame["ticket"].to_list()[:5] == [ticket.id for ticket in tickets]
    assert frame["correct"].null_count() == 1


def test_shadow_mode(file: Place) -> None:
    with file.begun(onebit.BanditPerceptron()) as desk:
        agreed = 0
        for x, label in zip(PROBLEM.X, PROBLEM.y, strict=True):
            shadow = desk.shadow(x, "abc"[label], True)
            assert shadow.agrees == (shadow.label == "abc"[label])
            agreed += shadow.agrees
        assert agreed > 60
        assert desk.shadow(PROBLEM.X[0], "a", None).label in "abc"
        assert desk.status().watched == 121
        assert desk.verify()
        with pytest.raises(ValueError, match="one of"):
            desk.shadow(PROBLEM.X[0], "z", True)


def test_a_shadow_with_a_key_counts_once(file: Place) -> None:
    with file.begun(onebit.BanditPerceptron()) as desk:
        told = desk.shadow(PROBLEM.X[0], "b", True, key="k")
        assert desk.shadow(PROBLEM.X[1], "a", False, key="k") == told
        ticket = desk.guess(PROBLEM.X[0], key="g")
        with pytest.raises(ValueError, match="another kind, a shadow"):
            desk.guess(PROBLEM.X[0], key="k")
    with file.open() as desk:
        assert desk.shadow(PROBLEM.X[1], "a", False, key="k") == told, "after a restart too"
        with pytest.raises(ValueError, match="another kind, a ticket"):
            desk.shadow(PROBLEM.X[0], "b", True, key="g")
        desk.forget([ticket.id])
        assert desk.shadow(PROBLEM.X[1], "a", False, key="k") == told
        assert (desk.status().watched, desk.status().guesses) == (1, 1)


def test_what_a_learner_refuses_is_not_in_the_log(file: Place) -> None:
    with file.begun(onebit.Banditron()) as desk:
        play(desk, 5)
        before = desk.status()
        with pytest.raises(ValueError, match="propensities are needed"):
            desk.shadow({"0": 1.0, "new": 2.0}, "a", True)
        assert not desk._recorder.is_stale, "what is refused costs no replay"
        with pytest.raises(ValueError, match="inf"):
            desk.guess({"0": np.inf})
        assert desk.status() == before
        assert desk.verify()


@pytest.mark.parametrize("n", [0, 5])
def test_a_class_joins(place: Place, n: int) -> None:
    with place.begun() as desk:
        play(desk, n)
        desk.add_class("d")
        ticket = desk.guess(PROBLEM.X[n], among=["d"])
        assert ticket.label == "d"
        desk.tell(ticket, True)
        assert desk.classes == ["a", "b", "c", "d"]
        with pytest.raises(ValueError, match="repeat"):
            desk.add_class("d")
        assert desk.verify()
        with pytest.raises(ValueError, match="add_class"):
            desk.guess(PROBLEM.X[0], among=["e"])
    with place.open() as desk:
        assert desk.classes == ["a", "b", "c", "d"]


def test_an_exploration_floor(file: Place) -> None:
    with file.begun(onebit.BanditPerceptron(), exploration_floor=0.3, durability="batch") as desk:
        tickets = [ticket for start in range(0, 120, 40) for ticket in play(desk, 40, start)]
        chances = np.array([ticket.propensity for ticket in tickets])
        assert chances.min() == pytest.approx(0.1)
        drawn = [event.body["label"] != event.body["wanted"] for event in desk._log.find(kind=Kind.GUESSED)]
        assert 0.1 < np.mean(drawn) < 0.3, "two thirds of 0.3 are other labels"
        assert desk.verify()


def test_one_owner(place: Place) -> None:
    with place.begun() as desk:
        with pytest.raises(OwnedError, match=r"is open in this process on .* since"):
            place.open()
        if place.name is None:
            code = "import sys, onebit; onebit.Decider.open(sys.argv[1])"
            other = subprocess.run([sys.executable, "-c", code, place.path], capture_output=True, text=True, timeout=60)
            assert "is open in process" in other.stderr
        desk.guess(PROBLEM.X[0])
    place.open().close()
    if place.name is None:
        assert not place.path.with_name(place.path.name + ".owner").exists()


def test_threads_share_it(place: Place) -> None:
    tickets: list[Any] = []
    with place.begun() as desk:

        def work(start: int) -> None:
            tickets.extend(play(desk, 20, start))

        threads = [threading.Thread(target=work, args=(start,)) for start in range(0, 120, 20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({ticket.id for ticket in tickets}) == 120
        assert desk.status().right + desk.status().wrong == 120
        assert desk.verify()


def test_what_cannot_be_written_did_not_happen(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with place.begun() as desk:
        play(desk, 10)
        before = desk._history.to_bytes(desk._state)[:200]
        with monkeypatch.context() as patched:
            unwritable(patched, desk)
            with pytest.raises(LogWriteError, match="nothing of this happened"):
                desk.guess(PROBLEM.X[10])
            with pytest.raises(LogWriteError):
                desk.guess(PROBLEM.X[10])
        assert desk.status().guesses == 10
        assert desk._history.to_bytes(desk._state)[:200] == before
        play(desk, 10, 10)
        assert desk.verify()


def test_a_request_that_could_not_be_written_is_tried_anew(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with place.begun() as desk:
        waiting = desk.guess(PROBLEM.X[0])
        with monkeypatch.context() as patched:
            unwritable(patched, desk)
            with pytest.raises(LogWriteError):
                desk.guess(PROBLEM.X[1], key="k")
            with pytest.raises(LogWriteError):
                desk.tell(waiting, True)
        again = desk.guess(PROBLEM.X[1], key="k")
        assert desk.tell(again, True)
        assert desk.tell(waiting, False)
        assert desk.verify()


def test_calls_together_wait_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with place.begun() as desk:
        with desk.batch() as batches:
            tickets = [desk.guess(x) for x in PROBLEM.X[:5]]
            assert [desk.tell(ticket, True) for ticket in tickets] == [True] * 5
            assert not batches[-1].is_done
        assert [batch.is_done for batch in batches] == [True]
        assert sum(1 for _ in desk.events(1)) == 10
        assert sum(right for _, right, _ in desk.by_class().values()) == 5
        with monkeypatch.context() as patched:
            unwritable(patched, desk)
            with pytest.raises(LogWriteError), desk.batch() as batches:
                desk.guess(PROBLEM.X[5])
            assert batches[-1].error is not None
        assert desk.status().guesses == 5


def test_no_file_is_left_of_what_cannot_be(file: Place) -> None:
    with pytest.raises(ValueError, match="colour"):
        file.begun(kinds={"x": "colour"})
    assert list(file.path.parent.iterdir()) == []


def test_a_damaged_event_is_noticed(place: Place) -> None:
    with place.begun() as desk:
        play(desk, 10)
    place.change("UPDATE events SET body = replace(body, 'true', 'false') WHERE kind = 'feedback'")
    with pytest.raises(LogError, match=r"event \d+ is damaged"):
        place.open()
    if place.name is not None:
        return
    place.path.write_bytes(b"no database at all, but long enough to be looked at" * 100)
    with pytest.raises(LogError, match="cannot be used as a log"):
        place.open()


def test_a_missing_event_is_noticed(place: Place) -> None:
    with place.begun() as desk:
        play(desk, 10)
    place.change("DELETE FROM events WHERE seq = 7")
    with pytest.raises(LogError, match="event 7 is missing"):
        place.open()


def test_a_damaged_snapshot_is_passed_over(place: Place) -> None:
    with place.begun() as desk:
        play(desk, 10)
        desk.snapshot()
    place.change("UPDATE snapshots SET content = zeroblob(100) WHERE TRUE")
    with place.open() as desk:
        assert desk.verify()


def test_a_onebit_that_guesses_otherwise_says_so(file: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with file.begun(onebit.LinUCB()) as desk:
        play(desk, 30)
    original = onebit.LinUCB.guess

    def other(self: Any, features: Any, among: Any = None) -> Any:
        return original(self, 0.0 * np.asarray(features), among)

    monkeypatch.setattr(onebit.LinUCB, "guess", other)
    with pytest.warns(ReplayWarning, match="would have guessed otherwise"):
        desk = file.open()
    assert desk.status().differences > 0
    assert desk.status().guesses == 30
    desk.close()


def test_closed(file: Place) -> None:
    desk = file.begun()
    desk.close()
    desk.close()
    with pytest.raises(ValueError, match="is closed"):
        desk.guess(PROBLEM.X[0])


def test_warming_up_changes_nothing(file: Place) -> None:
    with file.begun() as desk:
        desk.warm_up()
        assert desk.status().guesses == 0
        assert not desk._state.learner._started
        play(desk, 5)
        before = desk.status()
        desk.warm_up()
        assert desk.status() == before
        assert desk.verify()


def test_a_learner_by_hand_is_verified_too(file: Place) -> None:
    wrapped = onebit.Wrapped(GaussianNB())
    with file.open(classes=["a", "b", "c"], learner=wrapped, trusted=[GaussianNB]) as desk:
        play(desk, 20)
        assert desk.verify()
        desk._state.learner.n_mistakes_ += 1
        assert not desk.verify()


def test_an_asked_ticket_may_be_told_labelled_corrected_or_never_answered(file: Place) -> None:
    with file.begun(wrong_at_most=0.1, silence="wrong", max_open=20) as desk:
        tickets = [desk.guess(x) for x in PROBLEM.X[:5]]
        assert [ticket.ask for ticket in tickets] == [True] * 5, "nothing is known yet"
        assert all(sorted(ticket.ranking) == ["a", "b", "c"] for ticket in tickets)
        others = [next(label for label in "abc" if label != ticket.label) for ticket in tickets]
        assert desk.tell(tickets[0].id, correct=True)
        assert desk.tell(tickets[1].id, correct=False)
        assert desk.label(tickets[2].id, others[2])
        assert desk.label(tickets[3].id, tickets[3].label)
        assert not desk.label(tickets[2].id, others[2]), "as safe to repeat as tell"
        with pytest.raises(ValueError, match=f"was told the label '{others[2]}' before"):
            desk.label(tickets[2].id, tickets[2].label)
        with pytest.raises(ValueError, match="was told that its label is wrong, and not which is right"):
            desk.label(tickets[1].id, others[1])
        status = desk.status()
        assert (status.asked, status.asked_answered, status.suggestions_right) == (5, 4, 2)
        assert (status.right, status.wrong) == (0, 0), "nothing was decided alone"
        desk.correct_answer(tickets[1].id, label=others[1])
        desk.correct_answer(tickets[3].id, correct=False)
        desk.withdraw(tickets[0].id)
        status = desk.status()
        assert (status.asked, status.asked_answered, status.suggestions_right) == (5, 3, 0)
        right, wrong = desk.status().right, desk.status().wrong
        desk.guess_many(PROBLEM.X[60:85])  # the last asked ticket is closed meanwhile, and its silence is no mistake
        assert (desk.status().right, desk.status().wrong) == (right, wrong)
        play(desk, 60)
        assert tickets[4].id not in {each.id for each in desk.open_tickets(limit=100)}
        assert desk.status().asked_answered < desk.status().asked
        ledger = desk._state.asking
        assert ledger is not None
        assert ledger.n_wrong <= ledger.limit()
        assert desk.verify()
