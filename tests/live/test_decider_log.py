"""A decider's file as the log that `onebit evaluate` reads."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import onebit
from onebit.checks.problems import noisy_problem
from onebit.cli import app
from onebit.commands.decider_log import is_decider, read_decider
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
