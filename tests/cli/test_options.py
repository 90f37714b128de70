"""Options that several commands share."""

import pytest
from rich.console import Console

from onebit.cli.options import Games, Workers, several


def test_games_are_the_settings_of_a_comparison() -> None:
    assert Games(rounds=7, seed=3, preprocess="none", unit_length=True).settings == {
        "rounds": 7,
        "seed": 3,
        "unit_length": True,
        "rival_seconds": Games().rival_seconds,
        "preprocessing": "none",
    }


def test_a_cluster_brings_its_own_jobs() -> None:
    with Workers(jobs=2).executor(Console()) as executor:
        assert executor is None
    with pytest.raises(ValueError, match=r"--jobs must be .*; got 0"):
        Workers(jobs=0).executor(Console())
    with pytest.raises(ValueError, match=r"--jobs 2 is for this machine, and --dask tcp://a:1 for others"):
        Workers(jobs=2, dask="tcp://a:1").executor(Console())


def test_several_names_or_none() -> None:
    assert several([]) == []
