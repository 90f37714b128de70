"""A decider's file as the log that `onebit evaluate` reads."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import onebit
from onebit.checks.problems import noisy_problem
from onebit.cli import app
from onebit.commands.decider_log import is_decider, read_decider
from onebit.evaluate.estimates import known
from onebit.live.log import LogError, OwnedError


@pytest.mark.parametrize("text", [None, "a text of several words"])
def test_a_deciders_guesses_are_a_log(tmp_path: Path, text: str | None) -> None:
    path, problem = tmp_path / "desk.onebit", noisy_problem(40, 3, 4)
    with onebit.Decider.open(path, classes=["a", "b", "c"], learner=onebit.BanditPerceptron()) as desk:
        tickets = []
        for x, label in zip(problem.X, problem.y, strict=True):
            ticket = desk.guess({str(i): value for i, value in enumerate(x)} | ({"text": text} if text else {}))
            tickets.append(ticket)
            if len(tickets) % 2:
                desk.tell(ticket, ticket.label == "abc"[label])
        desk.correct_answer(tickets[0], not desk._answers[tickets[0].id])
        with pytest.raises(OwnedError):
            read_decider(str(path))
    assert is_decider(str(path))
    assert not is_decider(str(tmp_path / "nowhere"))
    log = read_decider(str(path))
    assert log.classes[log.guesses].tolist() == [ticket.label for ticket in tickets]
    assert np.array_equal(log.probabilities, [ticket.probability for ticket in tickets])
    assert (log.answers == -1).sum() == 20
    if text is None:
        command = ["evaluate", str(path), "--learners", "BanditPerceptron UniformGuess", "--out", str(tmp_path / "out")]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        assert (tmp_path / "out" / "report.html").exists()


def test_a_decider_without_guesses(tmp_path: Path) -> None:
    path = tmp_path / "desk.onebit"
    onebit.Decider.open(path, classes=2).close()
    with pytest.raises(LogError, match="nothing to evaluate"):
        read_decider(str(path))


def test_what_a_decider_cannot_know_is_not_sure(tmp_path: Path) -> None:
    """After "wrong" the other of two labels need not be right, unless somebody says that there are no others."""
    path = str(tmp_path / "desk.onebit")
    with onebit.Decider.open(path, classes=["a", "b"], learner=onebit.BanditPerceptron()) as desk:
        for _ in range(3):
            desk.tell(desk.guess({"x": 1.0}, among=["a"]), False)
    assert known(read_decider(path), np.array([1, 1, 1])) == (0, 0, 3)
    assert known(read_decider(path, ["b", "a"]), np.array([1, 1, 1])) == (3, 0, 0)
    with pytest.raises(ValueError, match="--classes must list the decider's"):
        read_decider(path, ["a", "b", "c"])


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_label_is_allowed_once_it_has_joined(tmp_path: Path, is_compacted: bool) -> None:
    path = str(tmp_path / "desk.onebit")
    with onebit.Decider.open(path, classes=["a", "b"], learner=onebit.BanditPerceptron()) as desk:
        before = desk.guess({"x": 1.0})
        desk.add_class("c")
        after = desk.guess({"x": 1.0}, among=["c"])
        if is_compacted:
            desk.compact()
        for ticket in (before, after):
            desk.tell(ticket, True)
    log = read_decider(path)
    assert log.classes.tolist() == ["a", "b", "c"]
    assert log.n_allowed.tolist() == ([3, 1] if is_compacted else [2, 1])
