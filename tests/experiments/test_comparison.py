import numpy as np
import pytest

from onebit.experiments import vowpal_wabbit
from onebit.experiments.comparison import Outcome, _settled
from onebit.experiments.entries import Entry, rival_entries
from onebit.experiments.store import Spec


def test_hindsight_takes_the_best_of_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vowpal_wabbit, "require", lambda: "0.0")
    entries = rival_entries(["vw"])[:4]
    finals = ([9, 9], [5, 8], [8, 4], [7, 7])
    outcomes = [
        Outcome(name, entry, np.array([1, 50]), np.array([[1, last] for last in final]), np.full(2, k + 1.0))
        for name in ("a", "b")
        for k, (entry, final) in enumerate(zip(entries, finals, strict=True))
    ]
    outcomes.insert(0, Outcome("a", Entry("Ours", Spec("Ours")), np.array([1, 50]), np.array([[0, 3]] * 2), np.ones(2)))
    settled = _settled(outcomes)
    assert [(o.dataset, o.entry.title, o.mean) for o in settled] == [
        ("a", "Ours", 3.0),
        ("a", "VW default", 9.0),
        ("a", "VW best setting", 6.0),
        ("a", "VW best per run", 4.5),
        ("b", "VW default", 9.0),
        ("b", "VW best setting", 6.0),
        ("b", "VW best per run", 4.5),
    ]
    best, oracle = settled[2:4]
    assert best.remark == vowpal_wabbit._GRID[1]
    assert oracle.remark == f"{vowpal_wabbit._GRID[0]}; {vowpal_wabbit._GRID[1]}"
    assert oracle.final.tolist() == [5, 4]
    assert oracle.seconds.tolist() == [2.0, 3.0]


def test_every_family_is_settled_by_itself() -> None:
    outcomes = [
        Outcome("a", Entry(f"{family} {k}", Spec("x"), family=family), np.array([9]), np.array([[k]]), np.ones(1))
        for family in ("One", "Two")
        for k in (4, 3)
    ]
    titles = [(outcome.entry.title, outcome.remark, outcome.mean) for outcome in _settled(outcomes)]
    assert titles == [
        (f"{family} {how}", "3", 3.0) for family in ("One", "Two") for how in ("best setting", "best per run")
    ]
