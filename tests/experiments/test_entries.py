import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from onebit.experiments import vowpal_wabbit
from onebit.experiments.comparison import Comparison
from onebit.experiments.entries import (
    DEFAULT_ENTRIES,
    Entry,
    enter,
    every_learner,
    kernel_names,
    parse_kernel,
    parse_player,
    rival_entries,
    with_diagonals,
)
from onebit.experiments.players import Player, PlayerTrace, build, player_from
from onebit.experiments.store import Spec
from onebit.inputs import Integers
from onebit.kernels import Custom, Gaussian, Kernel, Multinomial, Polynomial, Rational
from onebit.learners import (
    BanditPerceptron,
    Banditron,
    BanditSVM,
    MulticlassPerceptron,
    NearestNeighbor,
    UniformGuess,
    all_learners,
)
from onebit.streams.sources import find_sources


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
        Comparison((), (enter("Banditron"), enter("Banditron")))


def test_entries_of_a_rival(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vowpal_wabbit, "require", lambda: "0.0")
    assert [entry.title for entry in rival_entries(["vw"], whole_grid=False)] == ["VW default"]
    assert len(rival_entries(["vw", "vw"])) == 31
    assert rival_entries([]) == []
    with pytest.raises(ValueError, match=r"--rival must be vw, or the import path of .*; got 'nobody'"):
        rival_entries(["nobody"])


def test_a_rival_is_named_by_import_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "two_rivals.py").write_text(
        "from rivals import Coba\n"
        "def two(whole_grid):\n    return [Coba(version='1'), Coba(exploration=0.5, version='1')][: 1 + whole_grid]\n"
        "def absent(whole_grid):\n    raise RuntimeError('it is not installed; install it')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    titles = ["coba default", "coba LinUCBLearner exploration=0.5"]
    assert [entry.title for entry in rival_entries(["two_rivals:two"])] == titles
    assert [entry.title for entry in rival_entries(["two_rivals:two"], whole_grid=False)] == titles[:1]
    with pytest.raises(RuntimeError, match="it is not installed"):
        rival_entries(["two_rivals:two", "two_rivals:absent"])
    with pytest.raises(ValueError, match="rival two_rivals:three: the module two_rivals has no 'three'"):
        rival_entries(["two_rivals:three"])


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
    assert not [name for name in kernel_names() if name.startswith("_")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BanditPerceptron", BanditPerceptron()),
        ("Banditron:exploration=0.02", Banditron(0.02)),
        ("BanditPerceptron:kernel=Rational,normalize=true", BanditPerceptron(Rational(normalize=True))),
        ("BanditPerceptron:kernel=Polynomial,kernel.degree=3", BanditPerceptron(Polynomial(3))),
        ("MulticlassPerceptron:kernel=Gaussian,width=0.5", MulticlassPerceptron(Gaussian(0.5))),
        ("BanditPerceptron:ties=first,kernel=none", BanditPerceptron(ties="first")),
        ("BanditPerceptron:kernel=gaussian:0.5,normalize=true", BanditPerceptron(Gaussian(0.5, normalize=True))),
        ("BanditPerceptron:kernel=Gaussian:width=0.5", BanditPerceptron(Gaussian(0.5))),
        ("BanditSVM:C=inf,kernel=auto", BanditSVM(C=math.inf)),
        ("BanditSVM:C=inf,kernel=None", BanditSVM(None, C=math.inf)),
    ],
)
def test_text_names_a_learner(text: str, expected: object) -> None:
    player = parse_player(text)
    assert repr(build(player.spec)) == repr(expected)
    assert player.full_information == isinstance(expected, MulticlassPerceptron)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Perceptron", ["no learner 'Perceptron'", "Banditron", "MulticlassPerceptron", "mypackage.mine:"]),
        ("nowhere.mine:Learner", ["learner nowhere.mine:Learner", "no module 'nowhere'", "start in the folder"]),
        ("fractions:Nothing:a=1", ["fractions:Nothing", "has no 'Nothing'"]),
        ("fractions:Fraction", ["must be a subclass of onebit.Learner"]),
        ("Banditron:kernel=auto", ["Banditron:kernel=auto", "kernel must be None"]),
        ("Banditron:kernel=fractions:nothing", ["kernel fractions:nothing", "has no 'nothing'"]),
        ("BanditSVM:C=nan", ["C"]),
        ("Learner", ["no learner 'Learner'"]),
        ("Banditron:rate=0.1", ["Banditron has no setting 'rate'", "exploration, kernel"]),
        ("Banditron:seed=1", ["no setting 'seed'"]),
        ("Banditron:exploration", ["setting=value", "'exploration'"]),
        ("Banditron:exploration=7", ["Banditron:exploration=7", "exploration must be"]),
        ("Banditron:kernel=RBF", ["no kernel 'RBF'", "Gaussian", "Rational"]),
        ("Banditron:kernel=Custom", ["no kernel 'Custom'"]),
        ("Banditron:kernel=Gaussian,kernel.degree=2", ["Gaussian of Banditron", "no setting 'degree'", "width"]),
        ("Banditron:kernel=Gaussian,width=-2", ["width"]),
        ("BanditPerceptron:ties=best", ["ties must be one of"]),
    ],
)
def test_errors_say_what_there_is(text: str, words: list[str]) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse_player(text)
    for word in words:
        assert word in str(caught.value)


def test_every_learner_can_be_named() -> None:
    for cls in all_learners():
        assert parse_player(cls.__name__).spec.name == cls.__name__


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rational", Rational()),
        ("Rational", Rational()),
        ("gaussian:0.5", Gaussian(0.5)),
        ("Gaussian:width=0.5,normalize=true", Gaussian(0.5, normalize=True)),
        ("polynomial:3", Polynomial(3)),
        ("multinomial:4,normalize=true", Multinomial(4, normalize=True)),
        ("onebit.kernels:Rational:normalize=true", Rational(normalize=True)),
    ],
)
def test_kernels(text: str, expected: Kernel) -> None:
    assert parse_kernel(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("magic", ["no kernel 'magic'", "Rational", "rational", "mypackage.kernels:Mine"]),
        ("kernel", ["no kernel 'kernel'"]),
        ("custom", ["no kernel 'custom'"]),
        ("gaussian:-1", ["gaussian:-1", "width"]),
        ("gaussian:wide", ["gaussian:wide", "width"]),
        ("gaussian:degree=2", ["degree"]),
        ("math:pi", ["math:pi", "must be a function(X, Y)", "dataclass"]),
        ("collections:OrderedDict", ["OrderedDict", "must be a function(X, Y)", "dataclass"]),
        ("polynomial:degree=2,degree=3", ["degree", "twice"]),
        ("math:hypot:width=3", ["math:hypot", "no settings", "width"]),
    ],
)
def test_bad_kernels_say_what_there_is(text: str, words: list[str]) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse_kernel(text)
    for word in words:
        assert word in str(caught.value)


def test_a_function_is_a_kernel_by_import_path() -> None:
    """A function that returns the matrix of values is a kernel; NumPy's own will do to show it."""
    player = parse_player("BanditPerceptron:kernel=sklearn.metrics.pairwise:rbf_kernel")
    from sklearn.metrics.pairwise import rbf_kernel

    kernel: Any = build(player.spec).get_params()["kernel"]
    assert kernel is rbf_kernel
    assert "sklearn.metrics.pairwise" in player.code()
    custom = BanditPerceptron(Custom(rbf_kernel, normalize=True))
    from onebit.experiments.players import _describe

    assert repr(build(_describe(custom))) == repr(custom)


League = partial(Comparison, seconds_per_game=600.0)


def _everyone(rounds: int) -> list[Entry]:
    return every_learner(rounds)[0]


def test_every_learner_is_entered_as_it_comes() -> None:
    entries, absent = every_learner(1000)
    assert absent == {}
    named = {entry.title.split(" ")[0] for entry in entries}
    assert named == {cls.__name__ for cls in all_learners()}


def test_learners_say_how_they_are_entered(monkeypatch: pytest.MonkeyPatch) -> None:
    def two_forms(cls: Any, rounds: int) -> dict[str, Any]:
        return {"": cls(), "hurried": cls(exploration=1 / rounds)}

    monkeypatch.setattr(Banditron, "contenders", classmethod(two_forms))
    monkeypatch.setattr(UniformGuess, "contenders", classmethod(lambda cls, rounds: {}))
    monkeypatch.setattr(NearestNeighbor, "contenders", classmethod(lambda cls, rounds: {"": cls(radius=-1.0)}))
    entries, absent = every_learner(1000)
    assert {"Banditron", "Banditron hurried"} <= {entry.title for entry in entries}
    assert list(absent) == ["NearestNeighbor", "UniformGuess"]
    assert "radius" in absent["NearestNeighbor"]
    # Every source asks with its own number of rounds.
    sources = tuple(find_sources(["iris", "wine"]))
    league = League(sources, (), rounds=160, runs=2, field_for=_everyone)
    rates = [
        entry.spec.settings["exploration"]
        for source in sources
        for entry in league.entries_on(source)
        if entry.title == "Banditron hurried"
    ]
    assert rates == [1 / 150, 1 / 160]
    hurried = [cell for cell in league.cells() if cell.player.settings.get("exploration") == 1 / 150]
    assert len(hurried) == 2, "one for each run on iris"


@pytest.mark.parametrize("name", ["LinUCB", "EpsilonGreedy", "SOBA", "PNewtron"])
def test_matrices_of_wide_rows_are_too_long(name: str) -> None:
    wide = {"rounds": 10_000, "n_features": 5000, "n_classes": 10}
    assert player_from(enter(name).spec).effort(**wide) > 600e9
    assert player_from(enter(f"{name}:diagonal=true").spec).effort(**wide) == 0.0
    assert player_from(enter(name).spec).effort(**{**wide, "n_features": 20}) < 600e9


def test_example_of_every_learner() -> None:
    entries, absent = every_learner(1000)
    assert ([entry.title for entry in entries if entry.full_information][-2:], absent) == (
        ["FullInformationSVM", "MulticlassPerceptron"],
        {},
    )


def test_example_of_with_diagonals() -> None:
    assert [entry.title for entry in with_diagonals([enter("SOBA"), enter("Banditron")])] == [
        "SOBA",
        "SOBA diagonal",
        "Banditron",
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Banditron:wrong_at_most=5", "wrong_at_most must be a share between 0 and 1, such as 5% or 0.05; got '5'"),
        ("Banditron:wrong_at_most=5%,ask_at_most=5%", "give exactly one of wrong_at_most and ask_at_most"),
    ],
)
def test_limits_on_asking_are_checked(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        enter(name)


def test_a_learner_that_asks_is_no_learner_elsewhere() -> None:
    with pytest.raises(ValueError, match="wrong_at_most is for learners in a comparison"):
        build(enter("Banditron:wrong_at_most=5%").spec)
