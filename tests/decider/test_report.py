"""The report: intervals, the rival that always says one label, and alarms that ring when they should, and only then."""

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import onebit
from onebit.decider.decider import Decider
from onebit.decider.report import _confidences, _share_at_any_time, costs_of_limits, how_sure, report, share_of
from onebit.decider.tickets import Event


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Decider]:
    learner = onebit.UniformGuess()
    with Decider.open(tmp_path / "desk.onebit", classes=["a", "b", "c"], learner=learner, durability="batch") as desk:
        yield desk


def play(desk: Decider, n: int, is_right: str = "", among: list[str] | None = None) -> None:
    """Play rounds in which these labels are right."""
    for _ in range(n):
        ticket = desk.guess({"x": 1.0}, among)
        desk.tell(ticket, ticket.label in is_right)


def alarms(desk: Decider) -> list[str]:
    return [alarm.kind for alarm in report(desk).alarms]


def test_a_new_decider_has_nothing_to_say(desk: Decider) -> None:
    told = report(desk)
    assert (told.guesses, told.answered, told.constant, told.alarms) == (0, 0, None, [])
    assert told.mistakes.share is None


def test_the_numbers(desk: Decider) -> None:
    play(desk, 6, "a", ["a"])
    play(desk, 3, "", ["b"])
    play(desk, 1, "", ["a"])
    told = report(desk)
    assert told.mistakes[:3] == (4, 10, 0.4)
    assert told.mistakes.low < 0.4 < told.mistakes.high
    assert [(each.label, each.guessed, each.mistakes.number) for each in told.by_class] == [
        ("a", 7, 1),
        ("b", 3, 3),
        ("c", 0, 0),
    ]
    assert told.constant == ("a", 6, 9), "where b was wrong, a may have been right"


def test_drift(desk: Decider) -> None:
    play(desk, 200, "ab")
    assert "drift" not in alarms(desk)
    play(desk, 200, "a")
    assert "drift" in alarms(desk)


def test_all_wrong_and_one_label(desk: Decider) -> None:
    play(desk, 120, "", ["b"])
    assert set(alarms(desk)) == {"all wrong", "one label"}


def test_one_label_that_is_right_is_no_alarm(desk: Decider) -> None:
    play(desk, 150, "b", ["b"])
    assert alarms(desk) == []


def test_one_label_needs_mistakes_of_that_label(desk: Decider) -> None:
    late = [desk.guess({"x": 1.0}, ["a"]) for _ in range(100)]
    for _ in range(100):
        desk.guess({"x": 1.0}, ["b"])
    for ticket in late:
        desk.tell(ticket, False)
    assert "one label" not in alarms(desk), "b was never wrong"
    late = [desk.guess({"x": 1.0}, ["c"]) for _ in range(30)]
    for _ in range(100):
        desk.guess({"x": 1.0}, ["c"])
    for ticket in late:
        desk.tell(ticket, False)
    assert "one label" in alarms(desk), "however late the answers are"


def test_among_many_labels_chance_alone_is_often_wrong(tmp_path: Path) -> None:
    learner = onebit.UniformGuess()
    with Decider.open(
        tmp_path / "many.onebit", [f"label {i}" for i in range(100)], learner, durability="batch"
    ) as desk:
        play(desk, 600)
        assert "all wrong" not in alarms(desk), "0.99^600 = 0.002"
        play(desk, 100)
        assert "all wrong" in alarms(desk)


def test_silence_that_says_wrong_is_a_mistake(tmp_path: Path) -> None:
    with Decider.open(
        tmp_path / "desk.onebit", ["a", "b"], onebit.UniformGuess(), silence="wrong", max_open=1, durability="batch"
    ) as desk:
        for _ in range(160):
            desk.guess({"x": 1.0})
        told = report(desk)
        assert told.recent_mistakes[:2] == told.mistakes[:2] == (159, 159)
        assert [alarm.kind for alarm in told.alarms] == ["all wrong"], "nobody waits for answers"


def test_the_same_mistake(desk: Decider) -> None:
    play(desk, 150, "ab")
    assert alarms(desk) == ["same mistake"]
    (alarm,) = report(desk).alarms
    assert "'c'" in alarm.says


def test_no_answers(desk: Decider) -> None:
    play(desk, 10, "ab")
    for _ in range(99):
        desk.guess({"x": 1.0})
    assert alarms(desk) == []
    desk.guess({"x": 1.0})
    assert alarms(desk) == ["no answers"]


def test_where_answers_are_rare_waiting_for_them_is_no_alarm(desk: Decider) -> None:
    for _ in range(2):
        tickets = [desk.guess({"x": 1.0}) for _ in range(150)]
        desk.tell(tickets[0], True)
    for _ in range(300):
        desk.guess({"x": 1.0})
    assert alarms(desk) == []
    desk.guess({"x": 1.0})
    assert alarms(desk) == ["no answers"]


def test_answers_that_were_compacted_are_not_missed(desk: Decider) -> None:
    for _ in range(120):
        desk.guess({"x": 1.0})
    play(desk, 10, "abc")
    assert alarms(desk) == []
    desk.compact()
    assert alarms(desk) == []
    for _ in range(60):
        desk.guess({"x": 1.0})
    assert alarms(desk) == [], "180 are open, and ten were answered between"


def test_withdrawn_answers_do_not_count(desk: Decider) -> None:
    ticket = desk.guess({"x": 1.0})
    desk.tell(ticket, False)
    play(desk, 5, "abc")
    desk.withdraw(ticket)
    assert report(desk).recent_mistakes[:2] == (0, 5)
    desk.correct_answer(ticket, False)
    told = report(desk)
    assert told.recent_mistakes[:2] == told.mistakes[:2] == (1, 6), "until somebody knows better"


def test_intervals_are_those_of_scipy() -> None:
    for count, of in [(0, 1), (1, 1), (0, 40), (40, 40), (3, 7), (1_000, 3_000), (1, 10**6), (10**6, 10**6)]:
        between = binomtest(count, of).proportion_ci(0.95, "wilson")
        share = share_of(count, of)
        assert share[3:] == pytest.approx((between.low, between.high), rel=1e-9, abs=1e-15)
        assert share.low <= count / of <= share.high


def test_reports_again_and_again_read_every_event_once(desk: Decider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.decider.report._RECENT_EVENTS", 250)
    n_read, events = 0, desk.events
    recent: deque[Any] = deque()

    def counted(after: int = 0) -> Iterator[Event]:
        nonlocal n_read
        for event in events(after):
            n_read += 1
            yield event

    monkeypatch.setattr(desk, "events", counted)
    for step in range(6):
        play(desk, 40, "ab" if step < 3 else "")
        if step % 2:
            again = desk.tell(desk.guess({"x": 1.0}), True)
            assert again
        told = report(desk, recent)
        n_read, before = 0, n_read
        assert told == report(desk)
        assert before <= 82, "only what is new"
        n_read = 0
    tickets = [event.ticket for event in events() if event.kind == "feedback"]
    desk.correct_answer(str(tickets[-1]), False)
    assert report(desk, recent) == report(desk)


def test_an_interval_at_any_time_holds_at_all_times() -> None:
    generator, n_missed = np.random.default_rng(0), 0
    for run in range(60):
        times = np.arange(2000)
        probabilities = 0.08 + 0.07 * np.sin(times / 200 + run)  # which change while one looks
        wrong = np.cumsum(generator.random(2000) < probabilities)
        means = np.cumsum(probabilities) / (times + 1)
        looked = [(_share_at_any_time(int(wrong[t]), t + 1), means[t]) for t in range(0, 2000, 7)]
        n_missed += any(not share.low <= mean <= share.high for share, mean in looked)
    assert n_missed <= 3, "of 60 runs 5 % may be missed"
    assert _share_at_any_time(20, 10_000).high < 0.01
    assert _share_at_any_time(0, 0)[2:] == (None, 0.0, 1.0)


def asked_rounds(desk: Decider, n: int) -> int:
    """Play rounds of a rule that is easy where x is large, and none where it is 0; return how many were asked about."""
    generator, n_asked = np.random.default_rng(1), 0
    for _ in range(n):
        right = str(generator.choice(["a", "b"]))
        is_hard = generator.random() < 0.3
        ticket = desk.guess({"x": 0.0 if is_hard else {"a": 1.0, "b": -1.0}[right]})
        n_asked += ticket.ask
        if ticket.ask:
            desk.label(ticket, right)
        else:
            desk.tell(ticket, ticket.label == right)
    return n_asked


def test_what_is_asked_is_counted_apart(tmp_path: Path) -> None:
    path = tmp_path / "desk.onebit"
    with Decider.open(path, classes=["a", "b"], durability="batch", wrong_at_most=0.05) as desk:
        n_asked = asked_rounds(desk, 800)
        told, status = report(desk), desk.status()
        assert told.asked[:2] == (n_asked, 800)
        assert told.suggestions_right[:2] == (status.suggestions_right, n_asked)
        assert told.answered == told.mistakes.of == 800 - n_asked
        assert told.mistakes_at_any_time.low <= told.mistakes.low
        assert told.mistakes.high <= told.mistakes_at_any_time.high
        assert 0.1 < told.recent_asked.share < 0.4  # type: ignore[operator]
        assert told.recent_asked.of == 500
        costs = {cost.wrong_at_most: cost.asked for cost in costs_of_limits(desk)}
        shares = [share.share or 0.0 for share in costs.values()]
        assert shares == sorted(shares, reverse=True), "a wider limit asks less"
        assert 0.1 < costs[0.05].share < 0.4  # type: ignore[operator]
        assert costs[0.05].of == 400
        for cost in costs.values():
            assert 0.0 <= cost.low < cost.share < cost.high <= 1.0 or cost.share in (0.0, 1.0)  # type: ignore[operator]
            assert cost.high - cost.low > 0.005, "nothing is certain after 400 rounds, also where it is 0 or 1"
        groups, risk = how_sure(desk)
        assert sum(group.right.of for group in groups) == 800 - 30, "of all with a confidence"
        assert [group.confidence for group in groups] == sorted(group.confidence for group in groups)
        assert all(group.right.low - 0.1 < group.confidence < group.right.high + 0.1 for group in groups)
        assert risk[-1][0] == 1.0
        assert risk[-1][1] == pytest.approx(1.0 - sum(group.right.number for group in groups) / 770)
        assert risk[len(risk) // 2][1] < risk[-1][1], "the surest are wrong less often"


@pytest.mark.parametrize("silence", ["wrong", "nothing"])
def test_suggestions_are_no_mistakes_of_decisions_made_alone(
    desk: Decider, monkeypatch: pytest.MonkeyPatch, silence: str
) -> None:
    """Neither those that nobody answered nor those whose answers come after their guess has left the recent events."""
    monkeypatch.setattr("onebit.decider.report._RECENT_EVENTS", 300)
    desk.change(ask_at_most=0.5, silence=silence, max_open=100)
    kept: deque[Any] = deque()
    for i in range(400):
        ticket = desk.guess({"x": 1.0}, ["ab"[i % 2]])
        if not ticket.ask:
            desk.tell(ticket, True)
        report(desk, kept)
    assert desk.status().silent > 100
    assert all(right for _, right in _confidences(desk))
    for ticket in desk.open_tickets(asked=True):
        desk.label(ticket, "c")
    for told in (report(desk), report(desk, kept)):
        assert told.recent_mistakes.number == told.mistakes.number == 0
        assert told.alarms == []


def test_it_says_that_it_asks_always(desk: Decider) -> None:
    desk.change(wrong_at_most=0.01)
    assert costs_of_limits(desk) == [], "nothing is known yet"
    assert how_sure(desk) == ([], [])
    generator = np.random.default_rng(0)
    for n_rounds in range(1, 501):
        ticket = desk.guess({"x": 1.0})
        desk.tell(ticket, ticket.label == generator.choice(["a", "b", "c"]))
        assert n_rounds not in (499, 500) or ("asks always" in alarms(desk)) == (n_rounds == 500)
