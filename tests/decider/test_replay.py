"""Runs of rounds that were answered at once are replayed together, and nothing is different for it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onebit
from live_places import Place
from onebit.checks.problems import noisy_problem
from onebit.decider import replay as replaying
from onebit.decider.decider import Decider
from onebit.decider.replay import replay, same_state
from onebit.decider.settings import Settings
from onebit.decider.state import State
from onebit.decider.tickets import ReplayWarning
from onebit.kernels import Gaussian
from onebit.learners.run import play_again, play_stream

PROBLEM = noisy_problem(300, 3, 4)
NAMES = ["a", "b", "c"]
LEARNERS = [
    pytest.param(onebit.BanditSVM(None), marks=pytest.mark.ci),  # scales columns itself
    onebit.Banditron(exploration=0.2),  # draws
    onebit.BanditPerceptron(Gaussian(0.7)),  # scores rows in blocks
]


@pytest.fixture(autouse=True)
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first run be as short as the others."""
    monkeypatch.setattr(replaying, "_FEWEST_AT_FIRST", replaying._FEWEST)


@pytest.fixture
def file(tmp_path: Path) -> Place:
    """Return a place for a decider."""
    return Place(tmp_path / "desk.onebit")


def play(desk: Decider, start: int, stop: int) -> None:
    for x, label in zip(PROBLEM.X[start:stop], PROBLEM.y[start:stop], strict=True):
        ticket = desk.guess(x)
        desk.tell(ticket.id, ticket.label == NAMES[label])


def a_year(desk: Decider) -> None:
    """Let all that can happen happen between runs, and in the midst of one."""
    play(desk, 0, 40)
    late = desk.guess_many(PROBLEM.X[40:45])
    play(desk, 45, 100)
    for ticket in late[:4]:
        desk.tell(ticket.id, correct=ticket.label == "a")
    ticket = desk.guess(PROBLEM.X[100], among=["a", "c"])
    desk.tell(ticket.id, correct=True)
    play(desk, 101, 130)
    desk.shadow(PROBLEM.X[130], "b", correct=True, propensity=0.5)
    play(desk, 131, 180)
    desk.add_class("d")
    play(desk, 181, 230)
    with_holes = PROBLEM.X[231].copy()
    with_holes[2] = np.nan
    desk.guess(with_holes)
    play(desk, 232, 290)


def both_ways(desk: Decider, patched: pytest.MonkeyPatch) -> tuple[State, State, int]:
    """Return the state of a replay, that of one event by event, and how many runs the first had."""
    played: list[bool] = []
    original = replaying.Run.play

    def counted(self: replaying.Run, state: State) -> bool:
        played.append(original(self, state))
        return played[-1]

    with patched.context() as patch:
        patch.setattr(replaying.Run, "play", counted)
        together = replay(desk._log, desk._settings, from_snapshot=False)
        n_played = sum(played)
        patch.setattr(replaying, "_FEWEST_AT_FIRST", 10**9)
        one_by_one = replay(desk._log, desk._settings, from_snapshot=False)
        assert len(played) >= n_played
    return together, one_by_one, n_played


def everything(state: State) -> Any:
    learner = state.learner
    totals = state.n_guesses, state.n_answered, state.n_wrong, state.n_closed, state.n_shadows
    rounds = learner.n_rounds_, learner.n_mistakes_, learner.n_updates_, learner.n_uniform_guesses_
    said = state.seq, state.differences, state.first_difference, state.is_altered, state.classes
    return rounds, said, state.counts, totals, state.curve, list(state.open), state.encoder.state()


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_a_replay_in_runs_is_the_same(
    file: Place, learner: onebit.Learner, floor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    with file.open(classes=NAMES, learner=learner, exploration_floor=floor) as desk:
        a_year(desk)
        together, one_by_one, n_runs = both_ways(desk, monkeypatch)
        assert n_runs >= (5 if floor == 0.0 else 0)
        assert same_state(together, one_by_one)
        assert everything(together) == everything(one_by_one) == everything(desk._state)
        assert same_state(together, desk._state)


def test_runs_too_short_for_what_is_copied_are_played_one_by_one(file: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with file.open(classes=NAMES, learner=onebit.Banditron()) as desk:
        play(desk, 0, 60)
        n_bytes = sum(array.nbytes for array in desk._state.learner._state.arrays)
        assert both_ways(desk, monkeypatch)[2] == 1
        monkeypatch.setattr(replaying, "_BYTES_A_ROUND", n_bytes / 100)
        assert both_ways(desk, monkeypatch)[2] == 0


@pytest.mark.ci
def test_corrected_answers_are_in_no_run(file: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with file.open(classes=NAMES, learner=onebit.BanditSVM(None)) as desk:
        play(desk, 0, 60)
        ticket = desk.guess(PROBLEM.X[60])
        desk.tell(ticket.id, correct=False)
        play(desk, 61, 120)
        desk.correct_answer(ticket.id, correct=True)
        together, one_by_one, n_runs = both_ways(desk, monkeypatch)
        assert n_runs == 1  # after it the learner is another, and its guesses are not compared
        assert same_state(together, one_by_one)
        assert everything(together) == everything(one_by_one)


def test_a_run_that_is_guessed_otherwise_is_said(file: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with file.open(classes=NAMES, learner=onebit.Banditron(exploration=0.3)) as desk:
        play(desk, 0, 200)

    def another(_settings: Settings, _trusted: Any = ()) -> onebit.Learner:
        return onebit.Banditron(exploration=0.3, classes=NAMES, seed=1)

    monkeypatch.setattr(Settings, "new_learner", another)
    with pytest.warns(ReplayWarning, match="would have guessed otherwise"):
        desk = file.open()
    together, one_by_one, n_runs = both_ways(desk, monkeypatch)
    assert n_runs == 0
    assert together.differences == one_by_one.differences > 10
    assert same_state(together, one_by_one)
    assert everything(together) == everything(one_by_one)
    desk.close()


def test_playing_again_is_all_or_nothing() -> None:
    first = onebit.BanditSVM(None, classes=3)
    record = play_stream(first, PROBLEM.X, PROBLEM.y, keep_guesses=True)
    guessed = record.guesses.astype(np.int64)
    correct = guessed == PROBLEM.y
    again = onebit.BanditSVM(None, classes=3)
    play_stream(again, PROBLEM.X[:50], PROBLEM.y[:50])
    before = again.learned()["weights"]
    other = guessed[50:].copy()
    other[-1] = (other[-1] + 1) % 3
    assert not play_again(again, PROBLEM.X[50:], other, correct[50:])
    spoilt = PROBLEM.X[50:].copy()
    spoilt[-1, 0] = np.nan
    assert not play_again(again, spoilt, guessed[50:], correct[50:])
    assert np.array_equal(again.learned()["weights"], before)
    assert again.n_rounds_ == 50
    assert play_again(again, PROBLEM.X[50:], guessed[50:], correct[50:])
    assert again.n_rounds_ == 300
    assert again.n_mistakes_ == first.n_mistakes_
    for mine, theirs in zip(again._state.arrays, first._state.arrays, strict=True):
        assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_a_decider_that_went_on_from_a_snapshot_is_what_its_log_says(file: Place, learner: onebit.Learner) -> None:
    with file.open(classes=NAMES, learner=learner) as desk:
        play(desk, 0, 100)
        desk.snapshot()
    with file.open() as desk:  # arrays have less room now
        play(desk, 100, 120)
        assert desk.verify()


def test_nothing_is_compiled_for_a_short_run(file: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with file.open(classes=NAMES, learner=onebit.Banditron()) as desk:
        play(desk, 0, 100)
        assert both_ways(desk, monkeypatch)[2] == 1
        monkeypatch.setattr(replaying, "_FEWEST_AT_FIRST", 256)
        assert both_ways(desk, monkeypatch)[2] == 0
