"""Names from outside, through whole commands: of files, folders, labels and learners."""

import csv
import io
import json
import os
import sys
from pathlib import Path

import pytest

from onebit.cli import main

FILES = (
    "cost_$5_to_$10.csv",
    "[red][bold.csv",
    "\x1b[2J\x1b]0;gone\x07.csv",
    "two\nlines.csv",
    "\u202egnp.csv",
    "caf\udce9.csv",
    "=1+1.csv",
    "-2+3.csv",
    "<script>&.csv",
    "x" * 250 + ".csv",
    "日本語😀.csv",
    "twice.csv",
    "twice.tsv",
)
LABELS = ("[/red]", "\x1b[31mred")
OWN_LEARNER = """
import onebit

class _Mine(onebit.BanditPerceptron):
    pass
"""


def write_rows(path: Path, labels: tuple[str, str] = ("a", "b")) -> Path:
    tab = "\t" if path.suffix == ".tsv" else ","
    lines = [f"{x}{tab}{(7 * x) % 5}{tab}{labels[x % 2]}" for x in range(12)]
    path.write_text("\n".join([tab.join(("height", "width", "class")), *lines]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> "Say":
    return Say(monkeypatch, capfd)


class Say:
    """Calls `onebit` in this process, as the script does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capfd = monkeypatch, capfd

    def __call__(self, *words: str) -> tuple[int, str, str]:
        self.monkeypatch.setattr(sys, "argv", ["onebit", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self.capfd.readouterr()
        code = ended.value.code
        return code if isinstance(code, int) else int(code is not None), out, err


def is_clean(text: str) -> bool:
    return all(letter.isprintable() or letter in "\n\N{NO-BREAK SPACE}" for letter in text)


@pytest.mark.ci
def test_compare_shows_every_name_and_obeys_none(tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "sets"
    folder.mkdir()
    for name in FILES:
        write_rows(folder / name, LABELS)
    (tmp_path / "_own_names.py").write_text(OWN_LEARNER)
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "o[/]\x1b[2J"
    learners = ("--learners", "_own_names:_Mine BanditPerceptron")
    code, printed, wrong = say("compare", "sets", *learners, "--runs", "1", "--jobs", "1", "--out", str(out))
    assert code == 0, wrong
    assert wrong == ""
    assert is_clean(printed)
    for seen in (
        "cost_$5_to_$10",
        "[red][bold",
        r"\x1b[2J",
        r"two\nlines",
        r"\u202egnp",
        r"caf\xe9",
        "=1+1",
        "日本語",
        "o[/]",
    ):
        assert seen in printed
    assert "twice.csv" in printed
    assert "twice.tsv" in printed
    with (out / "comparison.csv").open(newline="", encoding="utf-8") as file:
        names = [row["dataset"] for row in csv.DictReader(file)]
    assert len(set(names)) == len(FILES)
    assert not any(name.startswith(("=", "+", "-", "@")) for name in names)
    assert {"'=1+1", "'-2+3", "x" * 250, r"caf\xe9"} <= set(names)
    report = (out / "report.html").read_text(encoding="utf-8")
    assert "<script>" not in report
    assert "&lt;script&gt;&amp;" in report
    assert is_clean(report)
    assert (out / "figures" / "curves_4.svg").stat().st_size > 5000


def test_the_command_in_the_report_can_be_typed(tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    write_rows(tmp_path / "-2+3.csv")
    monkeypatch.chdir(tmp_path)
    code, _, wrong = say(
        "compare", "--learners", "BanditPerceptron", "--runs", "1", "--jobs", "1", "--out", "o", "--", "-2+3.csv"
    )
    assert code == 0, wrong
    assert "--jobs 1 --out o -- -2+3.csv" in (tmp_path / "o" / "report.html").read_text(encoding="utf-8")


def test_margin_shows_names_and_labels(tmp_path: Path, say: Say) -> None:
    path = write_rows(tmp_path / "[red]\x1b[2J.csv", LABELS)
    code, printed, wrong = say("margin", str(path))
    assert code == 0, wrong
    assert is_clean(printed)
    assert r"[red]\x1b[2J: 12 examples" in printed
    code, printed, wrong = say("margin", str(path), "--json")
    assert json.loads(printed)["data"] == path.stem


def test_classes_that_no_hyperplane_tells_apart_are_named(tmp_path: Path, say: Say) -> None:
    path = tmp_path / "same.csv"
    path.write_text("a,class\n" + "".join(f"1,{label}\n" for label in LABELS * 2))
    code, printed, wrong = say("margin", str(path))
    assert code == 0, wrong
    assert is_clean(printed)
    assert r"from all the rest: " in printed
    for label in ("[/red]", r"\x1b[31mred"):
        assert label in printed


@pytest.mark.slow
def test_reproduce_into_any_folder(tmp_path: Path, say: Say) -> None:
    out = tmp_path / "o[/][bold]\x1b[2J$x$ caf\udce9\nb"
    code, printed, wrong = say("reproduce", "--rounds", "20", "--runs", "1", "--jobs", "1", "--out", str(out))
    assert code == 0, wrong
    assert is_clean(printed)
    assert (out / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    "words", [("margin", "\x1b[2J.csv"), ("compare", "caf\udce9"), ("bound", "[/red]\x1b[2J"), ("margin", "[/red]")]
)
def test_errors_show_names_too(words: tuple[str, ...], say: Say) -> None:
    code, _, wrong = say(*words)
    assert code == 1
    assert is_clean(wrong)
    assert wrong.startswith("error: ")


def test_a_terminal_that_knows_few_letters(tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_rows(tmp_path / "naïve.csv")
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", narrow)
    code, _, wrong = say(
        "compare", str(path), "--learners", "BanditPerceptron", "--runs", "1", "--jobs", "1", "--out", str(tmp_path)
    )
    assert code == 0, wrong
    narrow.seek(0)
    assert r"na\xefve" in narrow.read()


def test_names_that_are_no_text_can_be_written_here(tmp_path: Path) -> None:
    """Otherwise the tests above say less than they seem to."""
    (tmp_path / "caf\udce9").touch()
    assert os.fsencode(tmp_path) + b"/caf\xe9" in [os.fsencode(path) for path in tmp_path.iterdir()]
