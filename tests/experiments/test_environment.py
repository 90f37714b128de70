"""What a worker must have, so that its games are as good as those that are played here."""

import sys
from functools import partial

import numpy as np
import pytest

from onebit.experiments import Cell, Spec, batches, grid, vowpal_wabbit
from onebit.experiments.environment import EnvironmentMismatchError, check_environment, needs_of
from onebit.experiments.games import play_batch

STREAM = Spec("paper_weak", {"rounds": 10})


def test_a_worker_needs_the_code_that_plays_and_that_users_name() -> None:
    strange = Cell(Spec("a", {"kernel": {"function": "fractions:Fraction"}}), Spec("json:loads"), 1, "test")
    (batch,) = batches([strange])
    needs = needs_of(partial(play_batch), batch)
    assert needs.modules == ("fractions", "json", "onebit.experiments.games")
    assert f"python {sys.version_info.major}.{sys.version_info.minor}" in needs.described
    assert f"numpy {np.__version__}" in needs.described
    check_environment(needs)
    other = needs._replace(described=(*needs.described[:-1], "scikit-learn 0.9"))
    with pytest.raises(EnvironmentMismatchError, match=r"^it has scikit-learn .*, this run needs scikit-learn 0.9$"):
        check_environment(other)


def test_a_worker_needs_the_version_of_a_rival_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vowpal_wabbit, "require", lambda: "9.11")
    rival = vowpal_wabbit.VowpalWabbit(vowpal_wabbit.DEFAULT)
    (batch,) = batches(grid([STREAM], [Spec("Banditron"), rival.spec], [1], "test"))
    needs = needs_of(play_batch, batch)
    assert needs.described[-1].endswith("VowpalWabbit 9.11")
    monkeypatch.setattr(vowpal_wabbit, "require", lambda: "9.12")
    with pytest.raises(EnvironmentMismatchError, match=r"VowpalWabbit 9\.12, this run needs"):
        check_environment(needs)


def test_code_that_is_not_there_is_a_mismatch() -> None:
    (batch,) = batches(grid([STREAM], [Spec("Banditron")], [1], "test"))
    needs = needs_of(play_batch, batch)
    with pytest.raises(EnvironmentMismatchError, match="ModuleNotFoundError: No module named 'nowhere'"):
        check_environment(needs._replace(modules=("nowhere",)))
