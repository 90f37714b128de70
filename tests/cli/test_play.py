"""``onebit play``, as a user meets it."""

import errno
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import onebit
from onebit.cli import main
from onebit.reporting.text import grouped
from onebit.streams import bundled

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def flowers(tmp_path: Path) -> Path:
    data = bundled("iris")
    order = np.random.default_rng(0).permutation(150)
    lines = [f"{i};" + ";".join(map(str, data.X[k])) + f";{data.label_names[data.y[k]]}" for i, k in enumerate(order)]
    path = tmp_path / "flowers.csv"
    path.write_text("\n".join(["id;a;b;c;d;species", *(line.replace(".", ",") for line in lines)]) + "\n")
    return path


def say(monkeypatch: pytest.MonkeyPatch, capture: Capture, *words: str) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["onebit", *words])
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capture.readouterr()
    return int(ended.value.code or 0), out + err


def test_one_learner_on_a_users_file(
    flowers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    out = tmp_path / "out"
    words = ("play", str(flowers), "--label", "species", "--drop", "id", "--learner", "BanditPerceptron", "--seed", "4")
    code, said = say(monkeypatch, capsys, *words, "--out", str(out))
    assert code == 0, said
    data = onebit.streams.read_table(flowers, "species", drop=["id"])
    trace = onebit.play(onebit.BanditPerceptron(), data, seed=4)
    for part in (
        *("semicolons between cells", "'species' (as asked for)", "setosa 50, versicolor 50, virginica 50"),
        *("4 of numbers with decimal commas: 'a', 'b', 'c', 'd'", "'id'", "takes columns as they are"),
        *("150/150", "time left", "Mistakes by tenths of the stream", f"all            150        {trace.mistakes}"),
    ):
        assert part in said
    assert (out / "mistakes.png").stat().st_size > 5_000
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "white-space: pre-wrap" in page  # a long command is read whole
    for part in (
        *("virginica", "4 of numbers with decimal commas", "in the order of the file", "--drop id"),
        *("<dt>Columns</dt>", "<dt>Missing</dt>", "onebit 0."),
    ):
        assert part in page


def test_rounds_shuffles_and_streams(
    flowers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    out = ("--learner", "UniformGuess", "--out", str(tmp_path / "out"))
    for words, rounds in (
        (("iris", "--rounds", "4"), "4 rounds"),
        (("iris", "--shuffle"), "150 rounds"),
        (("paper_weak", "--rounds", "30"), "30 rounds"),
    ):
        code, said = say(monkeypatch, capsys, "play", *words, *out)
        assert code == 0, said
        assert rounds in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("flowers.csv",), "column 'id' counts the rows (0, 1, …)"),
        (("flowers.csv", "--label", "lost"), "has no column 'lost'"),
        (("flowers.csv", "--drop", "id", "--missing", "guess"), "missing must be one of 'refuse', 'indicator'"),
        (("iris", "--learner", "Nobody"), "there is no learner 'Nobody'"),
        (("iris", "--rounds", "0"), "--rounds must be at least 1"),
        (("iris", "--label", "species"), "iris: only tables (CSV, Parquet, ARFF) have columns to choose"),
        (("paper_weak", "--drop", "x", "--missing", "indicator"), "leave out drop, missing"),
        (("iris", "--preprocess", "maybe"), "--preprocess must be one of"),
        (("flowers.csv", "--drop", "id", "--save", "flowers.csv"), "--save flowers.csv: is the file with the data"),
        (("iris", "--save", "/dev/null"), "--save /dev/null: is a folder or a device"),
        (
            ("iris", "--learner", "BanditPerceptron", "--preprocess", "online", "--save", "m.onebit"),
            "--save with --preprocess online",
        ),
        (
            ("iris", "--wrong-at-most", "5"),
            "--wrong-at-most must be a share between 0 and 1, such as 5% or 0.05; got '5'",
        ),
        (("iris", "--ask-at-most", "ten%"), "--ask-at-most must be a share between 0 and 1, such as 5% or 0.05"),
        (("iris", "--ask-at-most", "5%", "--wrong-at-most", "5%"), "two ways to limit questions; give one of them"),
        (
            ("iris", "--ask-at-most", "5%", "--no-confidence"),
            "--no-confidence with --ask-at-most: leave one of them out",
        ),
        (("iris", "--save", "."), "--save .: is a folder or a device; name a file, such as model.onebit"),
    ],
)
def test_what_is_wrong_is_one_line(
    flowers: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(flowers.parent)
    code, printed = say(monkeypatch, capsys, "play", *words)
    assert code == 1
    assert said in printed
    assert "Traceback" not in printed
    assert not (flowers.parent / "results").exists()


def test_a_folder_that_cannot_be_written_is_found_before_playing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(errno.EACCES, "no")

    monkeypatch.setattr("onebit.reporting.console.tempfile.TemporaryFile", refuse)
    code, said = say(monkeypatch, capsys, "play", "iris", "--save", str(tmp_path / "m.onebit"))
    assert code == 1
    assert "m.onebit: cannot be written (Permission denied); choose another folder" in said


def test_rows_are_made_ready_as_a_comparison_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    words = ("play", "iris", "--learner", "BanditPerceptron", "--preprocess", "online", "--out", str(tmp_path))
    code, said = say(monkeypatch, capsys, *words)
    assert code == 0, said
    data = bundled("iris")
    labels = np.array(data.label_names)[data.y]
    trace = onebit.play(onebit.BanditPerceptron(), onebit.streams.preprocess(data.X, "online"), labels, seed=0)
    assert re.search(rf"all +150 +{trace.mistakes} ", said)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "--preprocess online" in page
    assert page.count("BanditPerceptron on iris</") == 2  # the title of the page, and its heading


def test_a_stream_of_a_few_rounds_has_all_its_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    words = ("play", "paper_weak", "--rounds", "1", "--learner", "UniformGuess", "--out", str(tmp_path))
    code, said = say(monkeypatch, capsys, *words)
    assert code == 0, said
    assert "3: 0 " in said


def test_ctrl_c_promises_only_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("onebit.cli.play.play", interrupted)
    code, said = say(monkeypatch, capsys, "play", "iris", "--learner", "UniformGuess", "--out", str(tmp_path))
    assert code == 130
    assert "Stopped." in said
    assert "goes on" not in said


def test_the_learner_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    path = tmp_path / "model.onebit"
    words = ("play", "iris", "--learner", "BanditPerceptron", "--save", str(path), "--out", str(tmp_path / "out"))
    code, said = say(monkeypatch, capsys, *words)
    assert code == 0, said
    learner = onebit.load(path)
    assert learner.n_rounds_ == 150
    assert learner.guess(bundled("iris").X[0]).label in bundled("iris").label_names


def test_other_commands_say_what_they_read(
    flowers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    out = tmp_path / "out"
    code, said = say(monkeypatch, capsys, "margin", str(flowers), "--columns", "a,b")
    assert code == 0, said
    assert "'species' (the last column; --label chooses another)" in said
    assert "2 of numbers with decimal commas: 'a', 'b'" in said
    words = ("--drop", "id", "--learners", "UniformGuess", "--runs", "1", "--jobs", "1", "--out", str(out))
    code, said = say(monkeypatch, capsys, "compare", str(flowers), *words)
    assert code == 0, said
    page = (out / "report.html").read_text(encoding="utf-8")
    for part in ("(the last column; --label chooses another)", "setosa 50", "4 of numbers with decimal commas"):
        assert part in said
        assert part in page
    assert "--drop id" in page


def test_it_asks_when_it_is_unsure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    words = ("play", "digits", "--learner", "BanditPerceptron", "--out", str(tmp_path))
    code, said = say(monkeypatch, capsys, *words, "--wrong-at-most", "5%")
    assert code == 0, said
    trace = onebit.play(onebit.BanditPerceptron(), bundled("digits"), seed=0, wrong_at_most=0.05)
    alone = trace.rounds - trace.asked
    assert re.search(rf"all +1 797 +{grouped(trace.asked)} +{trace.mistakes} +{trace.mistakes / alone:.1%} ", said)
    page = (tmp_path / "report.html").read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
    for part in (
        f"Asked: {grouped(trace.asked)} of 1 797 rounds ({trace.asked / 1797:.1%}; ",
        f"; {trace.suggestions_right} of the suggestions were right ({trace.suggestions_right / trace.asked:.1%}).",
        f"Decided alone: {alone} rounds, {trace.mistakes} of them wrong ({trace.mistakes / alone:.1%}); ",
        f"the theorem allows {int(trace.wrong_limit or 0)}, which is 5% of them and the debt.",
    ):
        assert part in said
        assert part in page
    assert "mistakes.png, confidence.png and report.html are" in said
    assert 'id="confidence"' in page
    assert "nearly always" not in said
    code, said = say(monkeypatch, capsys, *words, "--wrong-at-most", "0.1%")
    assert "It asks nearly always (100%): the columns do not say enough for this limit." in said
    code, said = say(monkeypatch, capsys, *words, "--ask-at-most", "0.1")
    assert code == 0, said
    assert "at most 199 rounds may be asked about." in said


def test_confidence_is_drawn_unless_it_is_not_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    words = ("play", "paper_strong", "--rounds", "400", "--learner", "BanditPerceptron", "--out", str(tmp_path))
    for more, is_drawn in ((), True), (("--no-confidence",), False):
        code, said = say(monkeypatch, capsys, *words, *more)
        assert code == 0, said
        assert ("confidence.png" in said) == is_drawn
        assert "Asked" not in said
    monkeypatch.setattr("onebit.cli.play._SURE_ROUNDS", 399)
    code, said = say(monkeypatch, capsys, *words)
    assert (code, "confidence.png" in said) == (0, False)
