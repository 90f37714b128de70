"""river, coba and contextualbandits: what each hears, how their process is run, and games where they are installed."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import rivals
from onebit.experiments.comparison import Comparison, play_league, run_comparison
from onebit.experiments.entries import enter
from onebit.experiments.players import player_from
from onebit.experiments.run import CellError
from onebit.streams import bundled, preprocess
from onebit.streams.sources import find_sources
from rivals import ENVIRONMENT, Coba, ContextualBandits, PythonRival, River, players, program

RIVALS = (River, Coba, ContextualBandits)
# Guesses the label that is written in the first column, and prints something of its own.
FAKE_COBA = """
print("a word of its own")
class LinUCBLearner:
    def __init__(self, seed, features, alpha=1.0):
        self.shift = int(alpha)
    def predict(self, row, actions):
        return actions[(int(row[0]) + self.shift) % len(actions)], 1.0
    def learn(self, row, action, reward, chance):
        assert reward in (0.0, 1.0) and chance == 1.0
"""


@pytest.fixture
def fake_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment in which only a stand-in for coba is installed."""
    site, folder = tmp_path / "site", tmp_path / "rivals"
    (site / "coba-9.9.dist-info").mkdir(parents=True)
    (site / "coba-9.9.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: coba\nVersion: 9.9\n")
    (site / "coba").mkdir()
    (site / "coba" / "__init__.py").write_text("")
    (site / "coba" / "learners.py").write_text(FAKE_COBA)
    (folder / "bin").mkdir(parents=True)
    python = folder / "bin" / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{site}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv(ENVIRONMENT, str(folder))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "must not be seen"))
    return site


def test_a_game_in_another_environment(fake_environment: Path, tmp_path: Path) -> None:
    player = Coba()
    assert (player.title, player.family) == ("coba default", None)
    assert player.spec.settings["version"] == player.version
    assert player.version.startswith("coba 9.9, numpy ")
    y = np.array([0, 1, 2, 1])
    X = np.column_stack([y, np.ones(4)]).astype(float)
    (tmp_path / "scratch").mkdir()
    trace = player_from(player.spec).play(X, y, 3, seed=0, scratch=tmp_path / "scratch")
    assert trace.curve.tolist() == [1, 2, 3, 4]
    assert trace.seconds is not None
    assert 0 < trace.seconds < 5
    assert (tmp_path / "scratch" / "rounds.npz").exists()
    with pytest.raises(RuntimeError, match=r"contextualbandits is not installed in .*rivals; .*make rivals"):
        ContextualBandits()
    changed = player.version.replace("9.9", "9.8")
    with pytest.raises(RuntimeError, match=r"was to play with coba 9\.8.* and has played with coba 9\.9"):
        Coba(version=changed).play(X, y, 3, seed=0, scratch=tmp_path / "scratch")
    (fake_environment / "coba" / "learners.py").write_text("raise ValueError('too old')")
    with pytest.raises(RuntimeError, match="coba default stopped with status 1; it said: ValueError: too old"):
        player.play(X, y, 3, seed=0, scratch=tmp_path / "scratch")


def test_what_comes_back_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "guesses.npy"
    np.save(path, np.array([0, 2, 1]))
    assert rivals.read_guesses(path, 3, 3, "coba").tolist() == [0, 2, 1]
    with pytest.raises(RuntimeError, match="coba answered 3 of 4 rounds"):
        rivals.read_guesses(path, 4, 3, "coba")
    with pytest.raises(RuntimeError, match="coba named a label beyond the 2"):
        rivals.read_guesses(path, 3, 2, "coba")
    np.save(path, np.array([0.0, np.nan, 1.0]))
    with pytest.raises(RuntimeError, match="coba wrote guesses that are no whole numbers"):
        rivals.read_guesses(path, 3, 3, "coba")
    np.save(path, np.array(7))
    with pytest.raises(RuntimeError, match=r"coba wrote an array of shape \(\)"):
        rivals.read_guesses(path, 3, 3, "coba")
    np.save(path, np.array([Path()] * 3), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        rivals.read_guesses(path, 3, 3, "coba")


@pytest.mark.parametrize("says", ["exit 0", "printf 'ok\\377\\n'", "read -r line || exit 0; echo '{}'"])
def test_what_cannot_be_read_is_told(says: str, tmp_path: Path) -> None:
    """Nothing, no JSON, and nothing again since it waited for somebody to type."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{says}\n")
    python.chmod(0o755)
    with pytest.raises(RuntimeError, match=r"coba ended without saying what it did; its last words: "):
        rivals._run(["play", "nothing"], "coba", 60.0, "", str(python))


def test_a_program_that_does_not_say_its_versions_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\nexec sleep 20\n")
    python.chmod(0o755)
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))
    monkeypatch.setattr(rivals, "_STARTING", 0.2)
    with pytest.raises(
        RuntimeError, match=r"coba was ended after 0\.2 s: it did not say its versions; try .*bin/python by hand"
    ):
        Coba()


HANGING = FAKE_COBA.replace(
    "        return actions", "        __import__('time').sleep(60 if len(actions) == 3 else 0)\n        return actions"
)


@pytest.mark.slow
def test_a_hanging_rival_is_ended_and_the_league_goes_on(fake_environment: Path, tmp_path: Path) -> None:
    """It hangs on iris, which has three classes, and plays digits."""
    (fake_environment / "coba" / "learners.py").write_text(HANGING)
    learners = enter("UniformGuess"), enter(Coba(), "coba")
    sources = tuple(find_sources(["digits", "iris"]))
    league = Comparison(sources, learners, rounds=10, runs=2, rival_seconds=3.0, seconds_per_game=600.0)
    outcomes, failures = play_league(league, tmp_path, jobs=1)
    assert [(outcome.dataset, outcome.entry.title) for outcome in outcomes] == [
        ("digits", "UniformGuess"),
        ("digits", "coba"),
        ("iris", "UniformGuess"),
    ]
    assert [(failure.dataset, failure.entry.title) for failure in failures] == [("iris", "coba")]
    assert "coba default was ended after 3 s: give it more with --rival-seconds" in failures[0].reason
    with pytest.raises(CellError, match=r"iris.*coba default was ended after 0\.3 s: .*leave it out"):
        run_comparison(Comparison(sources, learners, rounds=10, runs=1, rival_seconds=0.3), tmp_path, jobs=1)


def test_an_environment_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))
    with pytest.raises(RuntimeError, match=r"has no bin/python; build it with: make rivals RIVALS="):
        River()


@pytest.mark.parametrize("rival", RIVALS)
def test_settings(rival: Any) -> None:
    player = rival(version="1.0")
    assert player.code() == {"rivals", "rivals.program"}
    tuned = [rival(**each, version="1.0") for each in rival.grid]
    titles = [each.title for each in (player, *tuned)]
    assert len(set(titles)) == len(titles)
    assert len({each.spec for each in (player, *tuned)}) == len(titles)
    assert [player_from(each.spec).title for each in tuned] == titles[1:]
    with pytest.raises(ValueError, match="model must be one of"):
        rival("Forest", version="1.0")
    with pytest.raises(ValueError, match="exploration must be greater than 0; got -1"):
        rival(exploration=-1, version="1.0")


def test_effort_is_that_of_the_matrices() -> None:
    """At a billion numbers a second: a round of coba's LinUCB on SynSep took 0.18 s, contextualbandits' 4 ms."""
    size = {"rounds": 1000, "n_features": 401, "n_classes": 9}
    seconds = [rival(version="1.0").effort(**size) / 1e9 / 1000 for rival in RIVALS]
    assert 1e-4 < seconds[0] < 1e-3
    assert 0.1 < seconds[1] < 0.3
    assert 1e-3 < seconds[2] < 1e-2
    assert Coba("BanditEpsilonLearner", version="1.0").effort(**size) < 1e9


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_rows_as_rivals_take_them(form: Any, tmp_path: Path) -> None:
    X = np.array([[0.0, 2.5], [1.0, 0.0]])
    rivals.write_rounds(tmp_path / "rounds.npz", form(X), np.array([1, 0]))
    rounds = program.Rounds(str(tmp_path / "rounds.npz"))
    assert [rounds.row(t) for t in range(len(rounds))] == X.tolist()
    is_sparse = form is not np.asarray
    assert rounds.named(0) == ({"f1": 2.5} if is_sparse else {"f0": 0.0, "f1": 2.5})
    matrix = rounds.matrix()
    assert np.array_equal(matrix.toarray() if is_sparse else matrix, X)


class Model:
    """Stands for a binary model, and writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[float, bool]] = []

    def clone(self) -> "Model":
        return Model()

    def learn_one(self, row: dict[str, float], is_label: bool) -> None:
        self.told.append((row["f0"], is_label))


class OneVsRest:
    """Stands for river's: the chances are in the row."""

    def __init__(self, model: Model) -> None:
        self.classifiers: dict[int, Model] = {}

    def predict_proba_one(self, row: dict[str, float]) -> dict[int, float]:
        return {label: float(label == row["f0"]) for label in self.classifiers}

    def learn_one(self, row: dict[str, float], label: int) -> None:
        for each, model in self.classifiers.items():
            model.learn_one(row, each == label)


def test_river_hears_right_or_wrong_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[OneVsRest] = []

    def make(model: Model) -> OneVsRest:
        made.append(OneVsRest(model))
        return made[-1]

    fake: Any = ModuleType("river")
    fake.linear_model = SimpleNamespace(Perceptron=Model)
    fake.multiclass = SimpleNamespace(OneVsRestClassifier=make)
    fake.optim = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "river", fake)
    rivals.write_rounds(tmp_path / "rounds.npz", np.array([[0.0], [1.0], [2.0]]), np.array([0, 2, 2]))
    rounds = program.Rounds(str(tmp_path / "rounds.npz"))
    labels = rounds.y.tolist()
    request = {"model": "Perceptron", "rate": None, "exploration": 0.0, "n_classes": 3, "seed": 0}
    guesses = program.prepare_river(rounds, request)(lambda t, guess: bool(labels[t] == guess))
    assert guesses == [0, 1, 2]
    told = {label: model.told for label, model in made[0].classifiers.items()}
    # Round 0 was right: all learn. Round 1 was wrong: the one that was named. Nobody learns that it was label 2.
    assert told == {
        0: [(0.0, True), (2.0, False)],
        1: [(0.0, False), (1.0, False), (2.0, False)],
        2: [(0.0, False), (2.0, True)],
    }
    exploring = program.prepare_river(rounds, {**request, "exploration": 1.0})
    draws = [program.prepare_river(rounds, {**request, "exploration": 1.0, "seed": s}) for s in range(20)]
    assert len({tuple(play(lambda t, guess: False)) for play in (exploring, *draws)}) > 5


def installed(rival: type[PythonRival]) -> None:
    try:
        rivals.require(rival.package, rival.computes_with)
    except RuntimeError as absent:
        pytest.skip(str(absent))


@pytest.mark.parametrize("rival", RIVALS)
def test_the_real_one_plays(rival: Any, tmp_path: Path) -> None:
    """The same game twice, dense and sparse; far fewer mistakes than by chance (100)."""
    installed(rival)
    X, y = bundled("iris").shuffled(0, 150)
    rows = preprocess(X, "standardize")
    curves = []
    for form in (np.asarray, scipy.sparse.csr_array):
        (tmp_path / form.__name__).mkdir()
        curves.append(players(rival, whole_grid=False)[0].play(form(rows), y, 3, 0, tmp_path / form.__name__).curve)
    assert np.array_equal(curves[0], curves[1])
    assert curves[0][-1] < 65


def test_two_who_wrote_the_same_algorithm_play_alike(tmp_path: Path) -> None:
    """LinUCB by coba and by contextualbandits: as many mistakes, but for ties in the first rounds."""
    X, y = bundled("iris").shuffled(1, 150)
    rows = preprocess(X, "standardize")
    mistakes = []
    for rival in (Coba, ContextualBandits):
        installed(rival)
        (tmp_path / rival.package).mkdir()
        mistakes.append(rival(exploration=0.1).play(rows, y, 3, 0, tmp_path / rival.package).curve[-1])
    assert abs(int(mistakes[0]) - int(mistakes[1])) <= 5
