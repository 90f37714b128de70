"""Contract checks: saving a learner to a file."""

import tempfile
from pathlib import Path
from typing import Any
from unittest import SkipTest

import scipy.sparse

from onebit.checks.problems import fresh, noisy_problem, raises_value_error, snapshot, tell
from onebit.learners import Learner, all_learners, load
from onebit.learners.saving import pack_state
from onebit.playing import play


def check_a_learner_from_a_file_plays_on(learner: Learner) -> None:
    """A learner that is saved and loaded, with tickets open, plays on exactly as the original."""
    problem = noisy_problem(160)
    rows: list[Any] = [*problem.X[:120], *(scipy.sparse.csr_array(x[None]) for x in problem.X[120:])]
    player = fresh(learner, classes=problem.n_classes)
    play(player, problem.X[:80], problem.y[:80], seed=4)
    for t in (80, 81, 120, 121):
        tell(player, player.guess(rows[t]), problem.y[t])
    opened = [(player.guess(rows[t]), problem.y[t]) for t in (82, 122, 83)]
    for _ in range(2):  # the second time the loaded learner is saved
        loaded = _through_a_file(player)
        assert _all_of(loaded) == _all_of(player), "a loaded learner knows something else"
        for k, (ticket, label) in enumerate(opened):
            assert raises_value_error(tell, loaded, ticket._replace(token=bytes(8)), label), "honoured a forged ticket"
            loaded.tell(ticket.id, *_answer(loaded, ticket, label))
            assert raises_value_error(loaded.tell, ticket.id, *_answer(loaded, ticket, label)), "told twice"
            tell(player, ticket, label)
            assert _all_of(loaded) == _all_of(player), f"open ticket {k} taught a loaded learner something else"
        for t in (*range(84, 100), *range(123, 140)):
            for each in (player, loaded):
                tell(each, each.guess(rows[t]), problem.y[t])
        for each in (player, loaded):
            play(each, problem.X[140:], problem.y[140:], fresh=False)
        assert _all_of(loaded) == _all_of(player), "a loaded learner played on differently"
        player, opened = loaded, [(loaded.guess(rows[t]), problem.y[t]) for t in (101, 102)]


def check_a_learner_that_has_not_played_can_be_saved(learner: Learner) -> None:
    """Settings alone are saved too."""
    player = fresh(learner, classes=3)
    loaded = _through_a_file(player)
    assert repr(loaded) == repr(player), f"{player!r} came back as {loaded!r}"
    assert [each.guess([0.5, 0.1]).label for each in (player, loaded)]


def _answer(learner: Learner, guess: Any, label: int) -> tuple[Any, ...]:
    return (guess.label == label, label) if learner.full_information else (guess.label == label,)


def _all_of(learner: Learner) -> Any:
    packed = {name: (array.shape, array.tobytes()) for name, array in pack_state(learner._state).items()}
    return snapshot(learner), packed


def _through_a_file(learner: Learner) -> Learner:
    settings = [value for value in learner.get_params(deep=False).values() if callable(value)]
    trusted = [type(learner), *(getattr(each, "function", each) for each in settings)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learner.onebit"
        try:
            learner.save(path)
        except ValueError as error:
            if type(learner) in all_learners():
                raise
            raise SkipTest(f"it cannot be saved: {error}") from error
        return load(path, trusted=[each for each in trusted if _has_a_home(each)])


def _has_a_home(thing: Any) -> bool:
    return isinstance(thing, type) or hasattr(thing, "__qualname__")
