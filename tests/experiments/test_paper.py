import csv
from pathlib import Path

import numpy as np
import pytest

from onebit.cli.reproduce import _comparison, _write_summary
from onebit.experiments import paper
from onebit.experiments.comparison import Outcome, run_comparison, write_curves
from onebit.experiments.paper import (
    DATASETS,
    PAPER_ROUNDS,
    SummaryRow,
    _parameters,
    _published_curves,
    contestants,
    published_curve,
    summarize,
)
from onebit.kernels import Custom, Polynomial, Rational
from onebit.learners import BanditPerceptron, Banditron, Learner
from onebit.playing import play
from onebit.streams import paper_weak


@pytest.mark.ci
def test_reproduce_is_a_comparison_on_the_papers_streams(tmp_path: Path) -> None:
    comparison = _comparison(300, 2, 6)
    outcomes = run_comparison(comparison, tmp_path, jobs=1)
    assert [(o.dataset, o.entry.key) for o in outcomes] == [(d, e.key) for d in DATASETS for e in contestants()]
    learner = BanditPerceptron(Rational(), classes=3)
    outcome = next(o for o in outcomes if (o.dataset, o.entry.key) == ("weak", "algorithm-2"))
    for run in (1, 0):
        trace = play(learner, *paper_weak(300, 6 + run), seed=6 + run)
        assert np.array_equal(outcome.mistakes[run], trace.curve.mistakes)
    learned = learner.learned()
    assert outcome.learned.keys() == learned.keys()
    for name, array in learned.items():
        assert np.array_equal(outcome.learned[name], array), "what the first run had learned"


def test_the_shortest_game_knows_all_three_classes(tmp_path: Path) -> None:
    assert len(run_comparison(_comparison(1, 1, 0), tmp_path, jobs=1)) == 24


def test_every_published_curve_belongs_to_somebody() -> None:
    for dataset in DATASETS:
        found = [published_curve(dataset, entry.key) for entry in contestants()]
        published = {id(curve) for (name, _), curve in _published_curves().items() if name == dataset}
        assert {id(each) for each in found if each} == published


CONTESTANTS = {contestant.key: contestant for contestant in contestants()}


def outcome(dataset: str, key: str, finals: list[float], rounds: int = PAPER_ROUNDS) -> Outcome:
    last = np.array(finals).round().astype(np.int64)
    mistakes = np.column_stack([last // 3, last // 2, last])
    checkpoints = np.array([rounds // 10, rounds // 2, rounds])
    return Outcome(dataset, CONTESTANTS[key], checkpoints, mistakes, np.zeros(len(finals)))


def row_of(dataset: str, key: str, finals: list[float], rounds: int = PAPER_ROUNDS) -> SummaryRow:
    (row,) = summarize([outcome(dataset, key, finals, rounds)])
    return row


def published(dataset: str, key: str) -> float:
    curve = published_curve(dataset, key)
    assert curve is not None
    return float(curve[1][-1])


def test_row_holds_the_numbers_of_the_last_round() -> None:
    row = row_of("weak", "banditron-0.01", [40_000, 40_100, 40_500])
    played = row.outcome
    assert (played.mean, played.final.min(), played.final.max()) == (40_200, 40_000, 40_500)
    assert played.standard_error == pytest.approx(np.std([40_000, 40_100, 40_500], ddof=1) / np.sqrt(3))
    assert row.published == published("weak", "banditron-0.01")


def test_every_contestant_of_a_full_run_has_the_papers_number() -> None:
    for key in CONTESTANTS:
        row = row_of("strong", key, [100.0])
        assert row.published == (published("strong", key) if published_curve("strong", key) else None)
        assert (row.published is None) == (row.remark == "not in the paper")


def test_within_five_percent_but_beyond_the_spread_is_said_plainly() -> None:
    target = published("strong", "banditron-0.02")
    row = row_of("strong", "banditron-0.02", [1.04 * target, 1.04 * target + 1])
    assert row.remark.startswith("agrees to within 5 %, not to within the spread of the runs: unexplained (+4.0 %, ")


@pytest.mark.parametrize(("away", "agrees"), [(2.9, True), (3.1, False)])
def test_three_standard_errors_of_the_difference_decide(away: float, agrees: bool) -> None:
    target, n_runs = published("strong", "banditron-0.001"), 20
    deviations = np.tile([-2000.0, 2000.0], n_runs // 2)
    spread = deviations.std(ddof=1)
    combined = np.sqrt(spread**2 / n_runs + spread**2 / 20)
    row = row_of("strong", "banditron-0.001", list(target + away * combined + deviations))
    assert away * combined > 0.05 * target
    assert row.remark.startswith("agrees within the spread of the runs (" if agrees else "unexplained (")
    assert f"{away:.1f} standard errors" in row.remark


def test_one_run_has_no_standard_errors() -> None:
    assert row_of("weak", "banditron-0.02", [80_000]).remark == "unexplained (+9.5 %)"


def test_explanation_is_given_only_for_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(paper._EXPLANATIONS, ("weak", "banditron-0.02"), "explained: by the moon")
    target = published("weak", "banditron-0.02")
    assert row_of("weak", "banditron-0.02", [0.5 * target]).remark == "explained: by the moon (−50.0 %)"
    assert row_of("weak", "banditron-0.02", [target]).remark == "agrees (+0.0 %)"
    assert row_of("strong", "banditron-0.02", [0.5 * target]).remark.startswith("unexplained (")


def test_known_cause_is_named_even_where_wide_spread_hides_the_difference() -> None:
    row = row_of("weak", "algorithm-1", [2_000, 200_000, 210_000])
    assert row.remark.startswith("explained: the authors' program")


def test_explanations_are_about_contestants_and_say_what_they_are() -> None:
    for (dataset, key), text in paper._EXPLANATIONS.items():
        assert published_curve(dataset, key) is not None
        assert dataset in ("strong", "weak")
        assert text.startswith(("explained: ", "unexplained: "))


def test_shorter_games_are_not_compared() -> None:
    row = row_of("weak", "algorithm-2", [1000, 1200], rounds=200_000)
    assert row.published is None
    assert row.remark == "not comparable: 200 000 rounds instead of 5 000 000"


@pytest.mark.parametrize(
    ("learner", "text"),
    [
        (BanditPerceptron(classes=3, seed=4), ""),
        (BanditPerceptron(Rational(), update="authors"), "kernel=Rational, update=authors"),
        (BanditPerceptron(Polynomial(3)), "kernel=Polynomial(degree=3)"),
        (Banditron(0.0005), "exploration=0.0005"),
    ],
)
def test_parameters_are_the_settings_that_were_changed(learner: Learner, text: str) -> None:
    assert _parameters(learner) == text


def test_parameters_of_a_users_own_kernel_name_it() -> None:
    assert _parameters(BanditPerceptron(Custom(np.dot))).startswith("kernel=Custom(function=")


def test_summary_file_has_the_agreed_columns_and_stable_bytes(tmp_path: Path) -> None:
    rows = [row_of("strong", "algorithm-2", [70, 80, 93]), row_of("weak", "multiclass-perceptron", [79])]
    _write_summary(rows, tmp_path / "a.csv")
    _write_summary(rows, tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file))
    header = (tmp_path / "a.csv").read_text(encoding="utf-8").partition("\n")[0]
    assert header == "dataset,learner,parameters,mean,standard_error,min,max,published,remark"
    assert [line["published"] for line in read] == [f"{published('strong', 'algorithm-2'):g}", ""]
    assert [line["remark"] for line in read] == [row.remark for row in rows]
    assert float(read[0]["mean"]) == 81.0


def test_curves_file_matches_numpy(tmp_path: Path) -> None:
    played = outcome("strong", "algorithm-1", [100, 150, 211])
    write_curves([played], tmp_path / "mistakes.csv", with_ends=True)
    with (tmp_path / "mistakes.csv").open(encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file))
    assert [int(line["round"]) for line in read] == played.rounds.tolist()
    for line, column in zip(read, played.mistakes.T, strict=True):
        assert (line["dataset"], line["learner"]) == ("strong", "algorithm-1")
        assert float(line["mean"]) == pytest.approx(sum(column) / 3)
        assert float(line["standard_error"]) == pytest.approx(np.std(column, ddof=1) / 3**0.5)
        assert (int(line["min"]), int(line["max"])) == (min(column), max(column))


def test_example_of_published_curve() -> None:
    curve = published_curve("strong", "algorithm-1")
    assert curve is not None
    assert float(curve[1][-1]) == 336.8
    assert published_curve("strong", "multiclass-perceptron") is None


def test_example_of_parameters() -> None:
    from onebit.learners import Banditron

    assert _parameters(Banditron(0.02, classes=3, seed=7)) == "exploration=0.02"
