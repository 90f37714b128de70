"""A comparison from files to tables, in this process and as a command."""

import csv
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from in_process import onebit
from onebit.cli.compare import command
from onebit.cli.options import Games, Workers
from onebit.experiments import vowpal_wabbit
from onebit.experiments.comparison import RUNS, Comparison, run_comparison
from onebit.experiments.entries import enter
from onebit.learners import BanditPerceptron
from onebit.playing import play
from onebit.reporting.looks import looks_of
from onebit.streams import preprocess
from onebit.streams.reading import PLAIN
from onebit.streams.sources import find_sources
from tables import animals

LEARNERS = ("BanditPerceptron", "Banditron:exploration=0.1", "MulticlassPerceptron")
SAME_BYTES = ("comparison.csv", "curves.csv", "runs.csv", "tally.csv")
FAKE_VW = """
import sys
rounds, predictions = sys.argv[sys.argv.index("-d") + 1], sys.argv[sys.argv.index("-p") + 1]
labels = [int(line.split()[0]) for line in open(rounds)]
always = int(float(sys.argv[sys.argv.index("-l") + 1]) * 10) % 3 + 1 if "-l" in sys.argv else 1
open(predictions, "w").write(f"{always}\\n" * len(labels))
print("average loss =", round(sum(label != always for label in labels) / len(labels), 6), file=sys.stderr)
"""


def compare(data: list[str], games: Games, jobs: int = 1, **options: Any) -> None:
    command(tuple(data), games=games, reading=PLAIN, workers=Workers(jobs), **options)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return animals(tmp_path)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def fake_rival(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "fake_vw.py"
    script.write_text(FAKE_VW)
    real = vowpal_wabbit._command
    monkeypatch.setattr(
        vowpal_wabbit, "_command", lambda *given: [sys.executable, "-S", str(script), *real(*given)[3:]]
    )
    monkeypatch.setattr(vowpal_wabbit, "require", lambda: "0.0")


@pytest.mark.usefixtures("fake_rival")
@pytest.mark.slow
def test_command_with_the_rival_writes_everything(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    games = Games(LEARNERS, rival=("vw",), rounds=60)
    compare([str(table), "iris"], games, runs=2, out=out)
    printed = capsys.readouterr().out
    titles = [*LEARNERS, "VW default", "VW best setting", "VW best per run"]
    rows = rows_of(out / "comparison.csv")
    assert [(row["dataset"], row["learner"]) for row in rows] == [(d, t) for d in ("animals", "iris") for t in titles]
    for row in rows:
        runs = [
            int(run["mistakes"])
            for run in rows_of(out / "runs.csv")
            if (run["dataset"], run["learner"]) == (row["dataset"], row["learner"])
        ]
        assert float(row["mean"]) == np.mean(runs)
        assert float(row["standard_error"]) == pytest.approx(np.std(runs, ddof=1) / np.sqrt(2))
    assert {row["verdict"] for row in rows if row["learner"] in ("BanditPerceptron", "MulticlassPerceptron")} == {""}
    assert {row["verdict"] for row in rows} <= {"", "too few runs"}
    assert next(row["ratio_to_full_information"] for row in rows if row["learner"] == "MulticlassPerceptron") == "1"
    # Marked as text: to a spreadsheet a setting that begins with a dash is a formula.
    assert {row["remark"] for row in rows if row["learner"] == "VW best setting"} <= {
        f"'{s}" for s in vowpal_wabbit._GRID
    }
    assert len(rows_of(out / "timing.csv")) == len(rows)
    ends = [row["mean"] for row in rows_of(out / "curves.csv") if row["round"] == "60"]
    assert ends == [row["mean"] for row in rows]
    for word in ("standardised over all rows played", "win/loss: fewer/more mistakes", "VW best per run"):
        assert word in printed.replace("\n", " ")
    for word in (str(out), "told the label"):
        assert word in printed.replace("\n", " ")
    report = (out / "report.html").read_text(encoding="utf-8")
    for word in ("columns standardised over all rows played", "--rival vw", "onebit compare", "VW best per run"):
        assert word in report
    assert report.count("data:image/svg+xml") == 2
    assert "http" not in report.replace("data:image/svg+xml;base64", "")[:2000]

    before = {name: (out / name).read_bytes() for name in SAME_BYTES}
    compare([str(table), "iris"], games, runs=2, out=out)
    assert {name: (out / name).read_bytes() for name in SAME_BYTES} == before


@pytest.mark.slow
def test_same_bytes_with_workers_and_in_this_process(table: Path, tmp_path: Path) -> None:
    for jobs in (1, 2):
        out = tmp_path / str(jobs)
        compare([str(table)], Games(LEARNERS[:1], preprocess="online"), runs=2, jobs=jobs, out=out)
    for name in SAME_BYTES:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--baseline", "Nobody"), r"--baseline must be one of .*BanditPerceptron.*; got 'Nobody'"),
        (("--baseline", "MulticlassPerceptron"), "--baseline must be one of"),
        (("--learners", "Banditron Banditron"), "Banditron: the learner is named twice"),
        (("--rival", "nobody"), "--rival must be vw, or the import path of .*; got .nobody."),
    ],
)
def test_bad_requests_play_nothing(given: tuple[str, str], words: str, tmp_path: Path) -> None:
    learners = () if given[0] == "--learners" else ("--learners", " ".join(LEARNERS))
    run = onebit("compare", "wine", *learners, *given, "--out", str(tmp_path / "out"))
    assert run.returncode == 1
    assert re.search(words, run.stderr), run.stderr
    assert not (tmp_path / "out").exists()


def test_one_run_has_no_standard_error(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compare([str(table)], Games(LEARNERS, rounds=60), runs=1, out=tmp_path)
    printed = capsys.readouterr().out
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Mistakes of a single run, which has no standard error" in printed
    assert "a single run has no standard error and no p" in report
    assert "±" not in printed
    assert "±" not in report
    for name in ("comparison.csv", "curves.csv"):
        assert {row["standard_error"] for row in rows_of(tmp_path / name)} == {""}


def test_times_that_are_lost_are_left_out(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    games = Games(("BanditPerceptron", "Banditron"))
    compare([str(table)], games, runs=2, out=tmp_path)
    with closing(sqlite3.connect(tmp_path / "arena.sqlite")) as connection, connection:
        connection.execute("DELETE FROM timings WHERE rowid IN (1, 2, 4)")  # the second run is played backwards
    capsys.readouterr()
    compare([str(table)], games, runs=2, out=tmp_path)
    assert "nan" not in capsys.readouterr().out
    lost, known = (row["microseconds_per_round"] for row in rows_of(tmp_path / "timing.csv"))
    assert lost == ""
    assert float(known) > 0


def test_a_users_csv_in_one_command(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    learners = ("--learners", "BanditPerceptron Banditron", "--runs", "2", "--jobs", "1")
    run = onebit("compare", str(table), "--label", "animal", *learners, "--out", str(out))
    assert run.returncode == 0, run.stderr
    assert "animals (240)" in run.stdout
    assert len(rows_of(out / "comparison.csv")) == 2
    for name in ("figures/overview.png", "figures/curves_1.svg", "report.html", "timing.csv"):
        assert (out / name).stat().st_size > 50


@pytest.mark.slow
def test_two_commands_into_one_folder_do_not_collide(table: Path, tmp_path: Path) -> None:
    """Both play every cell, and both find the same: only how long it took differs, which is no part of a result."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "onebit", "compare", str(table), "--learners", "Banditron", "--jobs", "1"]
    both = [
        subprocess.Popen([*command, "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in both:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
    entries, sources = tuple(map(enter, LEARNERS)), tuple(find_sources([str(table)]))
    run_comparison(Comparison(sources, entries, rounds=240, runs=RUNS), out, jobs=1)
    assert len(rows_of(out / "runs.csv")) == RUNS


def test_errors_are_one_line(table: Path, tmp_path: Path) -> None:
    table.write_text(table.read_text().replace("red", "", 1))
    out = ("--out", str(tmp_path / "out"))
    run = onebit("compare", str(table), *out)
    assert run.returncode == 1
    assert "Traceback" not in run.stderr
    for word in ("animals.csv", "line", "'colour'", "empty"):
        assert word in run.stderr
    run = onebit("compare", "iris", "--learners", "Banditron:exploration=[0.1]", *out)
    assert run.returncode == 1
    assert "[0.1]" in run.stderr, "brackets are not taken for markup"
    assert not (tmp_path / "out").exists()


def test_who_asks_when_unsure_is_an_entry_of_its_own(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("BanditPerceptron:wrong_at_most=5%", "BanditPerceptron", "BanditPerceptron:ask_at_most=0.1")
    entries = [enter(name) for name in names]
    assert len({entry.spec for entry in entries}) == len(looks_of(entries)) == 3
    assert [(entry.is_ranked, entry.advantage) for entry in entries[:2]] == [(False, "told when unsure"), (True, "")]
    assert enter("BanditPerceptron:wrong_at_most=0.05").spec == entries[0].spec
    assert "wrong_at_most=0.05" in entries[0].spec.label
    compare([str(table)], Games(names), runs=7, out=tmp_path)
    said = capsys.readouterr().out
    assert "than BanditPerceptron in" in said  # the baseline is the first that never asks
    assert "the label was asked for" in said
    rows = {row["learner"]: row for row in rows_of(tmp_path / "comparison.csv")}
    data = find_sources([str(table)])[0].load()
    asked, mistakes = [], []
    for seed in range(7):
        X, y = data.shuffled(seed, 10_000)
        learner = BanditPerceptron(classes=3)
        trace = play(learner, preprocess(X, "standardize"), y, seed=seed, wrong_at_most=0.05)
        asked.append(trace.asked / 240)
        mistakes.append(trace.mistakes)
    row = rows[names[0]]
    assert float(row["asked"]) == pytest.approx(np.mean(asked))
    assert float(row["mean"]) == pytest.approx(np.mean(mistakes))
    assert float(row["wrong_of_rest"]) == pytest.approx(
        np.mean([n / (240 - 240 * share) for n, share in zip(mistakes, asked, strict=True)])
    )
    assert row["p"] == row["verdict"] == rows["BanditPerceptron"]["asked"] == ""


def n_results(path: Path) -> int:
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        is_made = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'results'").fetchone()[0]
        return int(is_made and connection.execute("SELECT count(*) FROM results").fetchone()[0])


@pytest.mark.ci
def test_sigterm_ends_a_comparison_as_ctrl_c_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    words = ["compare", "digits", "--learners", "SOBA", "--runs", "500", "--jobs", "2", "--out", str(tmp_path / "out")]
    start = ("-c", "from onebit.cli import main; main()", *words)
    with subprocess.Popen([sys.executable, *start], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 100
        while not list(tmp_path.glob("out/arena.sqlite")) or not n_results(tmp_path / "out/arena.sqlite"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert list(tmp_path.glob("onebit-run-*"))
        process.terminate()
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said.decode().split(".")[0]) == (130, "Stopped")
    assert not list(tmp_path.glob("onebit-run-*"))
