"""A replay of the log gives the state, whatever happened, and says where it guesses otherwise."""

from typing import Any

import numpy as np
import pytest

import onebit
from live_places import Place
from onebit.checks.problems import noisy_problem
from onebit.decider.decider import Decider
from onebit.decider.replay import _same_state
from onebit.decider.settings import Settings
from onebit.decider.state import State
from onebit.decider.tickets import ReplayWarning
from onebit.kernels import Gaussian

PROBLEM = noisy_problem(300, 3, 4)
NAMES = ["a", "b", "c"]
LEARNERS = [
    pytest.param(onebit.BanditSVM(None), marks=pytest.mark.ci),  # scales columns itself
    onebit.Banditron(exploration=0.2),  # draws
    onebit.BanditPerceptron(Gaussian(0.7)),  # scores rows in blocks
]


def play(desk: Decider, start: int, stop: int) -> None:
    for x, label in zip(PROBLEM.X[start:stop], PROBLEM.y[start:stop], strict=True):
        ticket = desk.guess(x)
        if ticket.ask and label:
            desk.label(ticket.id, NAMES[label])
        else:
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


def everything(state: State) -> Any:
    learner = state.learner
    totals = state.n_guesses, state.n_answered, state.n_wrong, state.n_closed, state.n_shadows
    asked = state.n_asked, state.n_asked_answered, state.n_suggestions_right
    rounds = learner.n_rounds_, learner.n_mistakes_, learner.n_updates_, learner.n_uniform_guesses_
    said = state.seq, state.differences, state.first_difference, state.is_altered, state.classes
    return rounds, said, state.counts, totals, asked, state.curve, list(state.open), state.encoder.state()


LIMITS = [{}, {"exploration_floor": 0.3}, {"wrong_at_most": 0.2}, {"ask_at_most": 0.3, "exploration_floor": 0.1}]


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_a_replay_gives_the_state(file: Place, learner: onebit.Learner, limits: dict[str, float]) -> None:
    with file.open(classes=NAMES, learner=learner, **limits) as desk:
        a_year(desk)
        again = desk._history.replay(from_snapshot=False)
        assert everything(again) == everything(desk._state)
        assert _same_state(again, desk._state)
        assert (desk.status().asked > 0) == bool({"wrong_at_most", "ask_at_most"} & limits.keys())
        desk.snapshot()
        restored = desk._history.replay()
        assert restored.restored == desk._log.last_seq
        assert everything(restored) == everything(desk._state)
        plain = [[each._replace(row=None) for each in found.open.values()] for found in (restored, desk._state)]
        assert plain[0] == plain[1]
        assert _same_state(restored, desk._state)


@pytest.mark.ci
def test_corrected_answers_count_where_they_were_given(file: Place) -> None:
    with (
        file.open(classes=NAMES, learner=onebit.BanditSVM(None)) as desk,
        file.other("other.onebit").open(classes=NAMES, learner=onebit.BanditSVM(None)) as other,
    ):
        for each in (desk, other):
            play(each, 0, 60)
        ticket, same = desk.guess(PROBLEM.X[60]), other.guess(PROBLEM.X[60])
        desk.tell(ticket.id, correct=False)
        other.label(same.id, "b")
        desk.correct_answer(ticket.id, label="b")
        assert desk.status().wrong == other.status().wrong
        mine, theirs = (each._state.learner.learned()["weights"] for each in (desk, other))
        assert np.array_equal(mine, theirs)
        assert desk.verify()


def test_guesses_that_are_made_otherwise_are_counted(file: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with file.open(classes=NAMES, learner=onebit.Banditron(exploration=0.3), wrong_at_most=0.3) as desk:
        play(desk, 0, 200)
        status, ledger = desk.status(), desk._state.asking.state()  # type: ignore[union-attr]

    def another(_settings: Settings) -> onebit.Learner:
        return onebit.Banditron(exploration=0.3, classes=NAMES, seed=1)

    monkeypatch.setattr(Settings, "new_learner", another)
    with pytest.warns(ReplayWarning, match="would have guessed otherwise"):
        desk = file.open()
    assert desk.status().differences > 10
    assert desk.status()[3:9] == status[3:9], "guesses and answers of the log stand"
    assert desk._state.asking.state() == ledger, "and so does what was asked"  # type: ignore[union-attr]
    desk.close()


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_a_decider_that_went_on_from_a_snapshot_is_what_its_log_says(file: Place, learner: onebit.Learner) -> None:
    with file.open(classes=NAMES, learner=learner) as desk:
        play(desk, 0, 100)
        desk.snapshot()
    with file.open() as desk:  # arrays have less room now
        play(desk, 100, 120)
        assert desk.verify()
