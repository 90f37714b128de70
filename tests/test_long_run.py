"""The benchmark of long streams, on short ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import long_run
import long_run_games
import onebit
from long_run_games import Game, Played
from onebit.streams import preprocess

ROUNDS, ROWS = 480, 200


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with a set of fewer rows than rounds."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(ROWS, 4)).astype(np.float32)
    np.savez(tmp_path / "nursery.npz", X=X, y=np.argmax(X[:, :3], axis=1))
    return tmp_path


def game(stream: str, learner: str, data: Path | None = None) -> Game:
    return Game(stream, learner, ROUNDS, 0, data)


def played(stream: str, learner: str, quarters: list[int], rounds: int = ROUNDS) -> Played:
    """Return a game with so many mistakes in each quarter."""
    marks = sorted({*long_run_games.curve_ends(rounds)[1:].tolist(), *long_run_games.quarter_ends(rounds)[1:].tolist()})
    counts = np.interp(marks, long_run_games.quarter_ends(rounds), np.cumsum([0, *quarters])).round().astype(int)
    return Played(stream, learner, rounds, rounds, marks, counts.tolist(), 1.0, 1000, 100)


def test_a_set_is_played_again_in_fresh_shuffles() -> None:
    order = long_run_games.shuffled(50, 120, seed=3)
    passes = [order[:50], order[50:100]]
    assert all(sorted(one) == list(range(50)) for one in passes)
    assert not np.array_equal(*passes)
    assert len(order) == 120
    np.testing.assert_array_equal(order[:70], long_run_games.shuffled(50, 70, seed=3))


def test_noise_and_drift() -> None:
    X, plain = long_run_games.linear(4000, 0, is_noisy=False, drifts=False)
    _, noisy = long_run_games.linear(4000, 0, is_noisy=True, drifts=False)
    same, drifted = long_run_games.linear(4000, 0, is_noisy=False, drifts=True)
    np.testing.assert_array_equal(X, same)
    assert 0.07 < np.mean(plain != noisy) < 0.11  # of the random labels a tenth are right by chance
    np.testing.assert_array_equal(plain[:2000], drifted[:2000])
    assert np.mean(plain[2000:] != drifted[2000:]) > 0.7


def test_a_game_is_the_one_that_onebit_plays(data: Path) -> None:
    one = long_run_games.play(game("nursery", "BanditPerceptron", data), lambda seconds: None)
    X, y, n_rows = long_run_games.make("nursery", ROUNDS, 0, data)
    trace = onebit.play(onebit.BanditPerceptron(), preprocess(X, "standardize"), y, seed=0, keep_guesses=True)
    wrong = trace.guesses != y
    assert (n_rows, one.n_rows, one.mistakes) == (ROWS, ROWS, trace.mistakes)
    np.testing.assert_allclose(one.quarters(ROUNDS), wrong.reshape(4, -1).mean(axis=1))
    np.testing.assert_allclose(one.quarters(ROWS), wrong[:ROWS].reshape(4, -1).mean(axis=1))
    rounds, share = one.curve()
    window = ROUNDS * long_run_games.WINDOW // long_run_games.PIECES
    assert share[-1] == pytest.approx(wrong[-window:].mean())
    assert share[0] == wrong[: rounds[0]].mean()
    assert one.file > 0
    assert one.memory > 0


def test_who_scales_columns_gets_raw_rows(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {}
    real = onebit.play

    def watched(learner: onebit.Learner, X: Any, y: Any, **options: Any) -> Any:
        seen[type(learner).__name__] = X
        cheap = onebit.Majority() if isinstance(learner, onebit.BanditSVM) else learner  # nothing is compiled
        return real(cheap, X, y, **options)

    monkeypatch.setattr(onebit, "play", watched)
    for learner in ("BanditSVM", "Majority"):
        long_run_games.play(game("nursery", learner, data), lambda seconds: None)
    np.testing.assert_array_equal(seen["BanditSVM"], long_run_games.make("nursery", ROUNDS, 0, data).X)
    np.testing.assert_array_equal(seen["Majority"], preprocess(seen["BanditSVM"], "standardize"))


def test_games_are_kept_and_not_played_again(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["--data", str(data), "--rounds", str(ROUNDS), "--out", str(tmp_path / "out"), "--markdown"]
    arguments += ["--streams", "linear", "nursery", "--learners", "BanditPerceptron", "LinUCB"]
    long_run.main([*arguments, "--no-play"])
    assert "| linear | BanditPerceptron | not played |" in capsys.readouterr().out
    long_run.main(arguments)
    shown = capsys.readouterr().out
    assert "| nursery (200 rows, 2.4 times) |" in shown
    assert "| nursery, 200 rows | BanditPerceptron |" in shown
    assert "| last quarter ≤ 1.02 × the best rival's |" in shown
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"long_run_synthetic.png", "long_run_clean.png", "results.csv"} <= names
    monkeypatch.setattr(long_run_games, "play", None)
    long_run.main(arguments)
    assert capsys.readouterr().out == shown


def test_a_break_off_loses_only_the_game_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = long_run_games.play

    def until_the_last(game: Game, tell: Any) -> Played:
        if game.learner == "UniformGuess":
            raise KeyboardInterrupt
        return real(game, tell)

    monkeypatch.setattr(long_run_games, "play", until_the_last)
    files = {
        game("linear", learner): tmp_path / learner for learner in ("BanditPerceptron", "Majority", "UniformGuess")
    }
    with pytest.raises(KeyboardInterrupt):
        long_run_games.play_all(files, 1, Console(quiet=True))
    first = long_run_games.read(tmp_path / "BanditPerceptron")
    assert first is not None
    assert first.rounds == ROUNDS
    assert [path.exists() for path in files.values()] == [True, True, False]


@pytest.mark.ci
def test_two_processes_play_what_one_does(tmp_path: Path) -> None:
    games = [game("linear", learner) for learner in ("BanditPerceptron", "Majority")]
    long_run_games.play_all({one: tmp_path / one.learner for one in games}, 2, Console(quiet=True))
    for one in games:
        kept = long_run_games.read(tmp_path / one.learner)
        assert kept is not None
        assert kept.counts == long_run_games.play(one, lambda seconds: None).counts


def test_a_file_is_of_one_learner_on_one_stream_by_one_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def names() -> list[str]:
        others = [game("linear", "LinUCB"), game("linear", "LinUCB:alpha=0.1"), game("linear_noise", "LinUCB")]
        others += [game("linear", "LinUCB")._replace(seed=1), game("linear", "LinUCB")._replace(rounds=ROUNDS + 4)]
        return [long_run_games.file_of(one, tmp_path).name for one in others]

    before = names()
    monkeypatch.setattr(long_run_games, "code_version", lambda modules: "another")
    after = names()
    assert len({*before, *after}) == 2 * len(before)


def test_goals() -> None:
    stream = "linear"
    found: long_run.Found = {
        (stream, "BanditSVM"): played(stream, "BanditSVM", [40, 20, 20, 21]),
        (stream, "LinUCB"): played(stream, "LinUCB", [40, 20, 20, 20]),
        (stream, "Confidit"): played(stream, "Confidit", [90, 90, 90, 90]),
    }
    lines = long_run.check_lines(found)
    assert [line[-1] for line in lines] == ["MISSED", "MISSED", "PASS"]
    assert "(LinUCB): 1.050×" in lines[0][3]
    assert "standard errors more" in lines[1][3]
    found[stream, "BanditSVM"] = played(stream, "BanditSVM", [60, 20, 20, 20])
    assert [line[-1] for line in long_run.check_lines(found)] == ["PASS", "PASS", "MISSED"]
    drift = {("linear_drift", "BanditSVM"): played("linear_drift", "BanditSVM", [9, 9, 90, 90])}
    assert long_run.check_lines({**drift}) == []  # no rival, and after a drift no second quarter to compare with


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--streams", "nursery"], "--streams nursery is a real set; say with --data"),
        (["--streams", "nursery", "--data", "nowhere"], "--data nowhere has no nursery.npz"),
        (["--rounds", "100"], "--rounds must be at least 240; got 100"),
        (["--jobs", "0"], "--jobs must be at least 1; got 0"),
        (["--learners", "LinUCBB"], "Did you mean LinUCB?"),
    ],
)
def test_bad_arguments(arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        long_run.main([*arguments, "--out", str(tmp_path)])
    assert words in capsys.readouterr().err
