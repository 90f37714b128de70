"""A comparison from files to tables, in this process and as a command."""

import csv
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from drawn import draw_files
from in_process import onebit
from onebit.cli.compare import command
from onebit.cli.options import Games, Workers
from onebit.experiments import CellError, Spec, vowpal_wabbit
from onebit.experiments.comparison import RUNS, Comparison, Outcome, run_comparison
from onebit.experiments.entries import enter
from onebit.experiments.figures import comparison_drawings
from onebit.experiments.players import build, make_rounds
from onebit.learners import BanditPerceptron, Banditron
from onebit.playing import play
from onebit.reporting.looks import looks_of
from onebit.streams import paper_weak, preprocess
from onebit.streams.reading import PLAIN
from onebit.streams.sources import Source, find_sources, load

LEARNERS = ("BanditPerceptron", "Banditron:exploration=0.1", "MulticlassPerceptron")
ENTRIES = tuple(enter(text) for text in LEARNERS)
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
    """A user's file: a header, numbers, words, labels that are words."""
    generator = np.random.default_rng(0)
    lines = ["height,width,colour,animal"]
    for k in generator.integers(3, size=240).tolist():
        height, width = generator.normal([0.0, 4.0, 8.0][k], 1.0), generator.normal([5.0, -5.0, 0.0][k], 1.0)
        lines.append(f"{height:.4f},{width:.4f},{('red', 'blue')[k % 2]},{('cat', 'dog', 'emu')[k]}")
    path = tmp_path / "animals.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def comparison(*sources: Source, **settings: Any) -> Comparison:
    return Comparison(tuple(sources), ENTRIES, **{"rounds": 150, "runs": 3, **settings})


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_everyone_plays_the_rows_that_the_seed_names(table: Path, tmp_path: Path) -> None:
    (source,) = find_sources([str(table)])
    outcomes = run_comparison(comparison(source, seed=4), tmp_path, jobs=1)
    data = load(source)
    for run in range(3):
        order = np.random.default_rng(4 + run).permutation(240)[:150]
        X = preprocess(data.X[order], "standardize")
        for outcome, learner in zip(outcomes, (BanditPerceptron(classes=3), Banditron(0.1, classes=3)), strict=False):
            trace = play(learner, X, data.y[order], seed=4 + run)
            assert outcome.final[run] == trace.mistakes
            assert np.array_equal(outcome.mistakes[run], trace.curve.mistakes)
            assert np.array_equal(outcome.rounds, trace.curve.rounds)
    assert [outcome.dataset for outcome in outcomes] == ["animals"] * 3
    assert all((outcome.seconds > 0).all() for outcome in outcomes)


def test_streams_of_the_paper_are_drawn_anew(tmp_path: Path) -> None:
    source = Source("paper_weak", stream="paper_weak")
    wanted = comparison(source, preprocessing="none")
    stream = wanted.facts[source].stream
    rounds = make_rounds(stream, source, 7)
    assert np.array_equal(rounds.X, paper_weak(150, 7)[0])
    assert np.array_equal(rounds.y, paper_weak(150, 7)[1])
    assert rounds.n_classes == 3
    assert make_rounds(Spec("paper_weak", {**stream.settings, "rounds": 1}), source, 7).n_classes == 3


def test_key_knows_data_preprocessing_and_rounds(table: Path) -> None:
    (source,) = find_sources([str(table)])

    def keys(wanted: Comparison) -> set[str]:
        return {cell.key for cell in wanted.cells()}

    first = keys(comparison(source))
    assert len(first) == 9
    assert keys(comparison(source)) == first
    assert keys(comparison(source, rounds=240)) == keys(comparison(source, rounds=9999)), "all rows are all rows"
    for other in ({"preprocessing": "online"}, {"unit_length": True}, {"rounds": 151}, {"seed": 10}):
        assert not keys(comparison(source, **other)) & first
    text = table.read_text()
    table.write_text(text.replace("emu", "elk"))
    load.cache_clear()
    assert keys(comparison(source)) == first, "another name of a label is the same game"
    table.write_text(text[: text.rindex("\n", 0, -1)] + "\n0.1,0.2,red,cat\n")
    load.cache_clear()
    assert not keys(comparison(source)) & first


def test_a_file_that_changes_while_it_is_played(table: Path) -> None:
    (source,) = find_sources([str(table)])
    stream = comparison(source).facts[source].stream
    table.write_text(table.read_text() + "0.1,0.2,red,cat\n")
    load.cache_clear()
    with pytest.raises(ValueError, match="has changed while it was being played"):
        make_rounds(stream, source, 0)


def test_a_learner_that_cannot_play_is_named(table: Path, tmp_path: Path) -> None:
    entry = enter("BanditPerceptron:kernel=Rational")
    wanted = replace(comparison(*find_sources([str(table)])), entries=(entry,))
    with pytest.raises(CellError, match=r"animals.*BanditPerceptron.*unit ball"):
        run_comparison(wanted, tmp_path, jobs=1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rounds": 0}, "rounds"),
        ({"runs": 0}, "runs"),
        ({"seed": -1}, "seed"),
        ({"preprocessing": "pca"}, "preprocessing must be one of 'standardize', 'online', 'none'"),
    ],
)
def test_bad_settings(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        comparison(Source("wine"), **settings)


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


def outcome(dataset: str, title: str, n_runs: int, n_rounds: int) -> Outcome:
    mistakes = np.cumsum(np.ones((n_runs, n_rounds), dtype=np.int64), axis=1) // 2
    entry = replace(ENTRIES[2] if title == "told" else ENTRIES[0], title=title, key=title)
    return Outcome(dataset, entry, np.arange(1, n_rounds + 1), mistakes, np.ones(n_runs))


def test_figures_of_many_sets_many_learners_one_run(tmp_path: Path) -> None:
    outcomes = [outcome(f"set {s}", t, 1, 20) for s in range(5) for t in (*"abcdefghij", "told")]
    drawn = draw_files(comparison_drawings(outcomes), tmp_path / "figures")
    assert [figure.name for figure in drawn] == ["overview", "curves_1", "curves_2"]
    assert all(figure.png.read_bytes().startswith(b"\x89PNG") for figure in drawn)
    assert "a single run" in drawn[1].caption
    again = draw_files(comparison_drawings(outcomes), tmp_path / "again")
    assert [a.svg.read_bytes() == b.svg.read_bytes() for a, b in zip(drawn, again, strict=True)] == [True] * 3
    found = looks_of(outcome.entry for outcome in outcomes)
    assert len({(look.color, look.dashes) for look in found.values()}) == 11, "everyone can be told apart"


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


def test_figures_of_the_shortest_game(tmp_path: Path) -> None:
    assert draw_files(comparison_drawings([outcome("one", "a", 2, 1)]), tmp_path)[0].png.stat().st_size > 1000


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
    run_comparison(replace(comparison(*find_sources([str(table)])), rounds=240, runs=RUNS), out, jobs=1)
    assert len(rows_of(out / "runs.csv")) == RUNS


def test_the_key_of_a_cell_counts_code_that_plays() -> None:
    of_three_modules = tuple(map(enter, ("BanditPerceptron", "NearestNeighbor", "SOBA")))
    wanted = replace(comparison(Source("paper_weak", stream="paper_weak")), entries=of_three_modules)
    versions = {cell.player.name: cell.version for cell in wanted.cells()}
    assert len(set(versions.values())) == 3, "every module of learners has code of its own"
    assert all(version.startswith("code ") and "numpy" in version for version in versions.values())
    kept = {cell.key for cell in replace(wanted, keep_learned=True).cells()}
    assert not kept & {cell.key for cell in wanted.cells()}, "a game stored without what was learned is another"


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


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"runs": 2**63}, "runs must be between 1 and 100000; got 9223372036854775808"),
        ({"runs": 0}, "runs must be between 1 and 100000; got 0"),
        ({"rounds": 2**63}, "rounds must be between 1 and 1000000000000; got 9223372036854775808"),
        ({"seed": 2**63 - 2, "runs": 3}, r"seed \+ runs must be between 1 and 9223372036854775807"),
    ],
)
def test_sizes_that_are_a_slip_are_refused_at_once(settings: dict[str, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        comparison(Source("iris"), **settings)


@pytest.mark.parametrize("jobs", [0, -3, 10**6])
def test_jobs_are_checked_before_a_file_is_read(tmp_path: Path, jobs: int) -> None:
    missing = Source("missing", path=tmp_path / "missing.csv")
    with pytest.raises(ValueError, match=f"jobs must be .*got {jobs}$"):
        run_comparison(comparison(missing), tmp_path, jobs=jobs)
    assert list(tmp_path.iterdir()) == []


def test_changes_are_made_to_the_rounds_of_each_run_and_are_in_the_key() -> None:
    plain, noisy, thinned = find_sources(["iris", "noise:0.2:iris", "imbalance:10:iris"])
    wanted = comparison(plain, noisy, thinned, rounds=150)
    assert wanted.facts[noisy].about["changed"] == "20 % of the labels replaced by another, at random"
    specs = {source: facts.stream for source, facts in wanted.facts.items()}
    keys = [{cell.key for cell in wanted.cells() if cell.stream == specs[source]} for source in specs]
    assert [len(each) for each in keys] == [9, 9, 9]
    assert len(set.union(*keys)) == 27
    wrong = []
    for seed in (0, 1):
        same, other = (make_rounds(specs[each], each, seed) for each in (plain, noisy))
        assert other.n_classes == 3
        assert np.array_equal(same.X, other.X)
        wrong.append(np.flatnonzero(same.y != other.y).tolist())
    assert wrong[0] != wrong[1]
    assert all(15 < len(each) < 45 for each in wrong)
    n_left = len(make_rounds(specs[thinned], thinned, 0).y)
    assert n_left == specs[thinned].settings["rounds"]
    assert n_left < 100


def test_a_stream_of_sparse_rows_is_said_to_be_sparse() -> None:
    facts = comparison(*find_sources(["syn_sep", "paper_weak"])).facts.values()
    assert [each.is_sparse for each in facts] == [True, False]


def test_several_labels_may_be_right(tmp_path: Path) -> None:
    entries = tuple(enter(name) for name in ("BanditPerceptron", "Banditron:exploration=0.1"))
    sources = tuple(find_sources(["several:2:iris", "iris", "several_right"]))
    outcomes = run_comparison(Comparison(sources, entries, rounds=150, runs=2), tmp_path, jobs=1)
    means = {(outcome.dataset, outcome.entry.title): outcome.mean for outcome in outcomes}
    assert len(means) == 6
    assert means["several:2:iris", "BanditPerceptron"] < means["iris", "BanditPerceptron"]
    told = Comparison(sources[:1], (enter("MulticlassPerceptron"),), rounds=150, runs=2)
    with pytest.raises(CellError, match="needs one right label in every round; leave it out of several:2:iris"):
        run_comparison(told, tmp_path, jobs=1)


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
    data = load(find_sources([str(table)])[0])
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
