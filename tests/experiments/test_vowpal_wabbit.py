"""Vowpal Wabbit without Vowpal Wabbit: what it is given, how its answers are read, what is said when it is missing."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from onebit.experiments import vowpal_wabbit
from onebit.experiments.comparison import Comparison
from onebit.experiments.players import make_rounds, player_from
from onebit.streams.sources import Source

FAKE = """
import sys
options = sys.argv[1:]
rounds, predictions = options[options.index("-d") + 1], options[options.index("-p") + 1]
labels = [int(line.split()[0]) for line in open(rounds)]
open(predictions, "w").write("1\\n" * len(labels))
print("average loss =", round(sum(label != 1 for label in labels) / len(labels), 6), file=sys.stderr)
"""


def test_grid_is_ten_explorations_at_three_rates() -> None:
    assert len(set(vowpal_wabbit._GRID)) == 30
    assert "--regcbopt --mellowness 0.001 -l 0.5" in vowpal_wabbit._GRID
    assert "--squarecb --gamma_scale 10 --loss0 -1 --loss1 0 -l 2" in vowpal_wabbit._GRID
    assert vowpal_wabbit._DEFAULT == "--epsilon 0.05"


def test_command() -> None:
    words = vowpal_wabbit._command("--epsilon 0.05 -l 2", 7, Path("a.vw"), Path("a.txt"))
    assert words[0] == sys.executable
    expected = "-m vowpalwabbit --cbify 7 --epsilon 0.05 -l 2 --noconstant -d a.vw -p a.txt"
    assert " ".join(words[1:]) == expected


def test_text_has_names_that_are_no_numbers_and_five_digits(tmp_path: Path) -> None:
    X, y = np.array([[1.2345678, 0.0, 1.0], [-1e-7, 123456.0, 1.0]]), np.array([2, 0])
    vowpal_wabbit.write_rounds(tmp_path / "a.vw", X, y)
    assert (tmp_path / "a.vw").read_text().splitlines() == [
        "3 | f0:1.2346 f1:0 f2:1",
        "1 | f0:-1e-07 f1:1.2346e+05 f2:1",
    ]
    vowpal_wabbit.write_rounds(tmp_path / "a.vw", scipy.sparse.csr_array(X), y)
    assert (tmp_path / "a.vw").read_text().splitlines()[0] == "3 | f0:1.2346 f2:1"


def test_rounds_of_the_reference_table(tmp_path: Path) -> None:
    """The rows behind the 35 (default) and 14 (tuned) mistakes on wine with seed 0: 14 features, standardised."""
    source = Source("wine")
    (facts,) = Comparison((source,), ()).facts.values()
    rounds = make_rounds(facts.stream, source, 0)
    X, y, n_classes = rounds.X, rounds.y, rounds.n_classes
    assert (X.shape, n_classes) == ((178, 14), 3)
    vowpal_wabbit.write_rounds(tmp_path / "wine.vw", X, y)
    first = (tmp_path / "wine.vw").read_text().splitlines()[0]
    assert first == (
        "3 | f0:-0.28487 f1:0.048161 f2:-0.31625 f3:0.0015183 f4:-0.96484 f5:-1.4503 f6:-1.5253 f7:0.952 f8:-1.6661 "
        "f9:2.0945 f10:-1.6999 f11:-1.3866 f12:-0.88176 f13:1"
    )


def test_answers_are_counted() -> None:
    said = "number of examples = 1797\naverage loss = 0.376739\ntotal feature number = 3"
    vowpal_wabbit._check_loss(said, 677, 1797)
    for mistakes, words in ((676, "676 mistakes"), (678, "678 mistakes")):
        with pytest.raises(RuntimeError, match=words):
            vowpal_wabbit._check_loss(said, mistakes, 1797)
    for broken in ("", "average loss = nan", "average loss = n.a."):
        with pytest.raises(RuntimeError, match="average loss of nan"):
            vowpal_wabbit._check_loss(broken, 3, 10)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in that always says the first label."""
    script = tmp_path / "fake.py"
    script.write_text(FAKE)
    real = vowpal_wabbit._command

    def command(options: str, n_classes: int, rounds: Path, predictions: Path) -> list[str]:
        return [sys.executable, str(script), *real(options, n_classes, rounds, predictions)[3:]]

    monkeypatch.setattr(vowpal_wabbit, "_command", command)
    monkeypatch.setattr(vowpal_wabbit, "require", lambda: "0.0")
    return script


def test_a_game(fake: Path, tmp_path: Path) -> None:
    y = np.array([0, 1, 0, 2])
    vowpal_wabbit.write_rounds(tmp_path / "rounds.vw", np.eye(4), y)
    guesses, seconds = vowpal_wabbit.play_rounds("--epsilon 0.05", 3, tmp_path / "rounds.vw", y)
    assert guesses.tolist() == [0, 0, 0, 0]
    assert seconds > 0
    fake.write_text(FAKE.replace("len(labels))", "(len(labels) - 1))", 1))
    with pytest.raises(RuntimeError, match="answered 3 of 4 rounds"):
        vowpal_wabbit.play_rounds("--epsilon 0.05", 3, tmp_path / "rounds.vw", y)


def test_the_player_writes_the_rounds_once(fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    y, rounds = np.array([0, 1, 0, 2]), tmp_path / "rounds.vw"
    for player in vowpal_wabbit.players()[:3]:
        assert player_from(player.spec).title == player.title
        game = player_from(player.spec).play(np.eye(4), y, 3, seed=0, scratch=tmp_path)
        assert game.curve.tolist() == [0, 1, 1, 2]
        result = game.result(keep_learned=True)
        assert (result.numbers, list(result.arrays)) == ({"mistakes": 2}, ["curve"])
        assert rounds.exists()
        monkeypatch.setattr(vowpal_wabbit, "write_rounds", None)


def test_its_games_outlive_our_learners(fake: Path) -> None:
    player = vowpal_wabbit.players(whole_grid=False)[0]
    assert player.code() == {"onebit.experiments.vowpal_wabbit"}
    assert player.spec.settings == {"options": "--epsilon 0.05", "version": "0.0"}


def test_a_game_that_fails_says_why(fake: Path, tmp_path: Path) -> None:
    vowpal_wabbit.write_rounds(tmp_path / "rounds.vw", np.eye(2), np.array([0, 1]))
    fake.write_text("import sys; sys.exit('vw: unrecognised option --epsilom')")
    message = r"--epsilon 0\.05 stopped with status 1; its last line: vw: unrecognised option"
    with pytest.raises(RuntimeError, match=message):
        vowpal_wabbit.play_rounds("--epsilon 0.05", 2, tmp_path / "rounds.vw", np.array([0, 1]))


def test_a_game_without_end_is_ended(fake: Path, tmp_path: Path) -> None:
    vowpal_wabbit.write_rounds(tmp_path / "rounds.vw", np.eye(2), np.array([0, 1]))
    fake.write_text("import time; time.sleep(60)")
    with pytest.raises(RuntimeError, match=r"Vowpal Wabbit --epsilon 0\.05 was ended after 0\.3 s: .*--rival-seconds"):
        vowpal_wabbit.play_rounds("--epsilon 0.05", 2, tmp_path / "rounds.vw", np.array([0, 1]), 0.3)


def test_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match=r"vowpalwabbit, which is not installed: pip install 'onebit\[rivals\]'"):
        vowpal_wabbit.players()
