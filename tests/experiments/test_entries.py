from pathlib import Path

import pytest

from onebit.experiments import vowpal_wabbit
from onebit.experiments.entries import RIVALS, check_distinct, default_entries, enter, find_rivals, rival_entries
from onebit.experiments.grid import Spec
from onebit.experiments.players import Player, PlayerTrace
from onebit.inputs import Integers
from onebit.learners import Banditron, MulticlassPerceptron


def test_the_defaults_play() -> None:
    entries = [enter(text) for text in default_entries()]
    assert any(entry.full_information for entry in entries)
    assert not entries[0].full_information


def test_an_entry_is_named_by_its_text_or_as_told() -> None:
    told = enter("MulticlassPerceptron")
    assert (told.title, told.key, told.shown) == (
        "MulticlassPerceptron",
        "MulticlassPerceptron",
        "MulticlassPerceptron (told the label)",
    )
    named = enter(Banditron(0.1), "Banditron, ε = 0.1", "banditron-0.1")
    assert (named.title, named.key, named.shown) == ("Banditron, ε = 0.1", "banditron-0.1", "Banditron, ε = 0.1")
    assert enter(MulticlassPerceptron).spec == told.spec
    assert enter(Banditron).title == "Banditron(exploration=0.05, kernel=None)"


class AlwaysFirst(Player):
    """A rival of the user's own: it always says the first label."""

    def __init__(self, size: int = 1) -> None:
        self.size = size
        self.family = "Firsts"

    @property
    def spec(self) -> Spec:
        return Spec("mine:AlwaysFirst", {"size": self.size})

    def play(self, X: object, y: Integers, n_classes: int, seed: int, scratch: Path) -> PlayerTrace:
        return PlayerTrace(y.cumsum())


def test_a_player_of_ones_own() -> None:
    entry = enter(AlwaysFirst(3))
    assert (entry.title, entry.family, entry.full_information) == ("mine:AlwaysFirst(size=3)", "Firsts", False)


def test_names_are_distinct() -> None:
    with pytest.raises(ValueError, match="Banditron: the learner is named twice"):
        check_distinct([enter("Banditron"), enter("Banditron")])


def test_entries_of_the_rival(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vowpal_wabbit, "require", lambda: "0.0")
    assert [entry.title for entry in rival_entries("vw", whole_grid=False)] == ["VW default"]
    assert len(rival_entries("vw")) == 31
    with pytest.raises(
        ValueError, match="--rival must be one of 'vw', 'contextualbandits', 'river', 'coba', 'all'; got 'nobody'"
    ):
        rival_entries("nobody")


def test_absent_rivals_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(whole_grid: bool) -> list[Player]:
        raise RuntimeError("river is not installed")

    for name in RIVALS:
        monkeypatch.setitem(
            RIVALS, name, absent if name == "river" else lambda whole_grid: [AlwaysFirst(1 + whole_grid)]
        )
    found = find_rivals(["all"], whole_grid=False)
    assert [entry.title for entry in found.entries] == ["mine:AlwaysFirst(size=1)"] * 3
    assert found.absent == {"river": "river is not installed"}
    assert find_rivals([]) == ([], {})
    assert len(find_rivals(["vw", "coba", "vw"]).entries) == 2
    with pytest.raises(RuntimeError, match="river is not installed"):
        find_rivals(["vw", "river"])
    with pytest.raises(RuntimeError, match="river is not installed"):
        find_rivals(["all", "river"])
