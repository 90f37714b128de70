from pathlib import Path

import pytest

from onebit.experiments import vowpal_wabbit
from onebit.experiments.entries import (
    DEFAULT_ENTRIES,
    check_distinct,
    enter,
    kernel_names,
    parse_kernel,
    parse_player,
    rival_entries,
)
from onebit.experiments.grid import Spec
from onebit.experiments.players import Player, PlayerTrace
from onebit.inputs import Integers
from onebit.learners import Banditron, MulticlassPerceptron


def test_the_defaults_play() -> None:
    entries = [enter(text) for text in DEFAULT_ENTRIES]
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


def test_entries_of_a_rival(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vowpal_wabbit, "require", lambda: "0.0")
    assert [entry.title for entry in rival_entries(["vw"], whole_grid=False)] == ["VW default"]
    assert len(rival_entries(["vw", "vw"])) == 31
    assert rival_entries([]) == []
    with pytest.raises(ValueError, match=r"--rival must be vw, or the import path of .*; got 'nobody'"):
        rival_entries(["nobody"])


def test_a_rival_is_named_by_import_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "others.py").write_text(
        "from rivals import Coba\n"
        "def two(whole_grid):\n    return [Coba(version='1'), Coba(exploration=0.5, version='1')][: 1 + whole_grid]\n"
        "def absent(whole_grid):\n    raise RuntimeError('it is not installed; install it')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    titles = ["coba default", "coba LinUCBLearner exploration=0.5"]
    assert [entry.title for entry in rival_entries(["others:two"])] == titles
    assert [entry.title for entry in rival_entries(["others:two"], whole_grid=False)] == titles[:1]
    with pytest.raises(RuntimeError, match="it is not installed"):
        rival_entries(["others:two", "others:absent"])
    with pytest.raises(ValueError, match="rival others:three: the module others has no 'three'"):
        rival_entries(["others:three"])


def test_example_of_parse_player() -> None:
    assert parse_player("Banditron:exploration=0.1").spec.label == "Banditron(exploration=0.1, kernel=None)"
    with pytest.raises(ValueError, match="Banditron\\ has\\ no\\ setting\\ 'rate';\\ it\\ has\\ exploration,\\ kernel"):
        parse_player("Banditron:rate=0.1")


def test_example_of_parse_kernel() -> None:
    assert (
        repr((parse_kernel("gaussian:0.5"), parse_kernel("Polynomial:degree=3,normalize=true")))
        == "(Gaussian(width=0.5), Polynomial(degree=3, normalize=True))"
    )


def test_example_of_kernel_names() -> None:
    assert kernel_names()[:2] == ["gaussian:WIDTH", "laplace:SHARPNESS"]
