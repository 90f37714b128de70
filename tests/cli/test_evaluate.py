"""``onebit evaluate``, as a user meets it."""

import csv
from pathlib import Path

import numpy as np
import pytest

import onebit
from in_process import onebit as run
from onebit.experiments.evaluate import play_with_floor


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder with a log, and with a model that was saved."""
    X, y = onebit.streams.paper_strong(rounds=150, seed=1)
    log = play_with_floor(onebit.BanditPerceptron(classes=9), X, y, floor=0.3, seed=2)
    with (tmp_path / "desk.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow([*(f"x{j}" for j in range(X.shape[1])), "guess", "correct", "propensity"])
        for t, row in enumerate(X.tolist()):
            said = "" if t % 50 == 0 else ["wrong", "right"][log.answers[t]]
            lines.writerow([*row, f"team {log.guesses[t]}", said, float(log.propensities[t])])
    names = np.array([f"team {k}" for k in range(9)])
    onebit.BanditPerceptron(classes=names).learn_labels(X, names[y]).save(tmp_path / "my model.onebit")
    return tmp_path


def table(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "out" / "evaluate.csv").read_text(encoding="utf-8").splitlines()))


def test_learners_and_a_saved_model_on_a_users_log(desk: Path) -> None:
    classes = ",".join(f"team {k}" for k in range(9))
    words = ("--learners", "BanditPerceptron UniformGuess", "--learners", "my model.onebit", "--classes", classes)
    done = run("evaluate", "desk.csv", *words, "--out", "out", cwd=desk)
    assert done.returncode == 0, done.stderr
    for part in (
        "3 without an answer are shown to learners",
        "the log itself",
        "my model.onebit",
        "DR+ %",
        "147 answered",
        "estimates assume that whether an answer came did not depend on the label that was guessed; bounds do not",
        "sure if answers are true, and no more than one label is right in a round",
        "answered 147 of 150 rounds; by label",
    ):
        assert part in " ".join(done.stdout.split())
    rows = table(desk)
    assert [row["learner"] for row in rows] == ["the log itself", "BanditPerceptron", "UniformGuess", "my model.onebit"]
    for row in rows:
        counts = [int(row[name]) for name in ("known_right", "known_wrong", "unknown")]
        assert sum(counts) == int(row["rounds"]) == 147
        assert int(row["most_mistakes"]) == counts[1] + counts[2]
    for row in rows[1:]:
        low, rate, high = (float(row[f"dr_plus{end}"]) for end in ("_low", "", "_high"))
        assert int(row["known_wrong"]) / 147 - 1e-9 <= low <= rate <= high
        assert row["estimates_assume"].startswith("estimates assume that whether an answer came")
    assert (desk / "out" / "evaluate.png").stat().st_size > 5_000
    page = (desk / "out" / "report.html").read_text(encoding="utf-8")
    for part in (
        "What is known",
        "What is estimated",
        "my model.onebit",
        "onebit evaluate ",
    ):
        assert part in page
    # Beside the table, and beside the figure.
    assert page.lower().count("estimates assume that whether an answer came did not depend on the label") == 2


def test_what_speaks_against_estimates_is_everywhere(desk: Path) -> None:
    """Half of the wrong answers are missing, and nobody says that the labels are all there are."""
    with (desk / "desk.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    for t, line in enumerate(lines):
        if line["correct"] == "wrong" and t % 4 < 3:
            line["correct"] = ""
    with (desk / "half.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows(lines * 3)
    done = run("evaluate", "half.csv", "--learners", "BanditPerceptron", "--out", "out", cwd=desk)
    assert done.returncode == 0, done.stderr
    said, page = " ".join(done.stdout.split()), (desk / "out" / "report.html").read_text(encoding="utf-8")
    (_, row) = table(desk)
    uneven, missing = "answers do not come equally often for every propensity", "DR+ is not offered: the right label"
    for text in (said, page, row["warnings"]):
        assert uneven in text
    for text in (said, page, row["notes"]):
        assert missing in text
    assert "note: BanditPerceptron: DR+" in said
    assert row["against_the_log_by"] in ("", "bounds")


def test_a_log_without_probabilities_gives_bounds_and_says_why_no_more(desk: Path) -> None:
    words = ("--drop", "p", "--learners", "BanditPerceptron", "--hears", "own", "--out", "out")
    path = desk / "plain.csv"
    path.write_text((desk / "desk.csv").read_text().replace("propensity", "p", 1))
    done = run("evaluate", "plain.csv", *words, cwd=desk)
    assert done.returncode == 0, done.stderr
    assert "the log has no propensities, so there are bounds and no estimates" in " ".join(done.stdout.split())
    assert "What is estimated" not in done.stdout
    (_, row) = table(desk)
    assert row["ips"] == ""
    assert row["warnings"] != ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("desk.csv", "--guess", "label"), "has no column 'label'"),
        (("desk.csv", "--hears", "all"), "--hears must be one of 'facts', 'own', 'nothing'; got 'all'"),
        (("desk.csv", "--preprocess", "maybe"), "--preprocess must be one of"),
        (("desk.csv", "--classes", "team 1"), "which is not among the 1 classes"),
        (("desk.csv", "--learners", "Nobody"), "there is no learner 'Nobody'"),
        (("desk.csv", "--learners", "lost.onebit"), "--learners lost.onebit: there is no such file"),
        (
            ("desk.csv", "--learners", "UniformGuess UniformGuess"),
            "--learners UniformGuess: the learner is named twice",
        ),
        (("desk.csv", "--learners", "desk.csv"), "desk.csv: cannot be loaded"),
        (("lost.csv",), "lost.csv: there is no such file"),
    ],
)
def test_what_is_wrong_is_one_line(desk: Path, words: tuple[str, ...], said: str) -> None:
    done = run("evaluate", *words, cwd=desk)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (desk / "results").exists()
