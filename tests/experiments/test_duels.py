"""Every learner against every adversary: no mean below what is forced, none above what is promised."""

import csv
import io
import math
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import onebit
from onebit.cli.adversary import _write_duel
from onebit.experiments.duels import DuelRow, _contestants, duel, duel_by_dimension, is_ignorant, paper_adversaries
from onebit.experiments.figures import draw_duel, draw_growth
from onebit.learners import all_learners
from onebit.streams.adversaries import one_example_sequence

TOLD_THE_LABEL = ("MulticlassPerceptron", "FullInformation")
# Who learns only from right answers, or not at all. AdaptiveSurrogate too, but it explores less after any.
IGNORANT = {
    "Banditron(exploration=1.0)",
    "Gaptron()",
    "NearestNeighbor(radius=γ)",
    "SOBA()",
    "SOBA(diagonal=True, exploration=0.2)",
    "UniformGuess()",
}


FEW = (
    onebit.BanditPerceptron,
    onebit.Banditron,
    onebit.BanditSVM,
    onebit.Gaptron,
    onebit.MulticlassPerceptron,
    onebit.NearestNeighbor,
    onebit.UniformGuess,
)


def a_few(margin: float) -> list[onebit.Learner]:
    """Return one learner of a few classes, and Banditron that only explores: others would have to be compiled first."""
    first = {type(learner): learner for learner in reversed(_contestants(margin)) if type(learner) in FEW}
    return [*first.values(), onebit.Banditron(1.0)]


@pytest.fixture(
    scope="module", params=[pytest.param("a few", marks=pytest.mark.ci), pytest.param("all", marks=pytest.mark.slow)]
)
def rows(request: pytest.FixtureRequest) -> Iterator[list[DuelRow]]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "a few":
            patch.setattr("onebit.experiments.duels._contestants", a_few)
        yield duel(runs=20)


@pytest.fixture(scope="module")
def growth() -> list[DuelRow]:
    return duel_by_dimension(range(4, 10), learners=[onebit.NearestNeighbor(0.001), onebit.BanditPerceptron()])


def test_everyone_plays_everyone(rows: list[DuelRow]) -> None:
    assert set(Counter((row.challenge.name, row.learner) for row in rows).values()) == {1}
    assert {row.challenge.name for row in rows} == {"Theorem 3", "Remark", "Theorem 11", "Theorem 24"}
    names = {row.learner.partition("(")[0] for row in rows}
    everyone = {cls.__name__ for cls in all_learners()} - {"Wrapped"}
    is_all = len(rows) == 4 * len(_contestants(0.1))
    assert names == (everyone if is_all else {cls.__name__ for cls in FEW})
    assert is_all or len(rows) == 4 * len(a_few(0.1))


def test_nobody_is_better_than_the_bound(rows: list[DuelRow]) -> None:
    for row in rows:
        if row.lower_bound is not None and row.sharp_lower_bound is not None:
            assert row.lower_bound <= row.sharp_lower_bound
            assert row.mean >= row.sharp_lower_bound - 3 * row.standard_error, row


def test_theorem_11_is_exact_for_everyone(rows: list[DuelRow]) -> None:
    for row in rows:
        if row.challenge.name == "Theorem 11":
            assert abs(row.mean - row.challenge.rounds * (1 - 1 / row.challenge.n_classes)) <= 3 * row.standard_error, (
                row
            )


def test_promises_hold(rows: list[DuelRow]) -> None:
    promised = [row for row in rows if row.upper_bound is not None]
    assert {row.learner for row in promised} >= {"BanditPerceptron()", "NearestNeighbor(radius=γ)"}
    for row in promised:
        assert row.upper_bound is not None
        assert row.mean <= row.upper_bound, row


def test_a_theorem_binds_only_whom_it_names(rows: list[DuelRow]) -> None:
    for row in rows:
        hears = row.learner.startswith(TOLD_THE_LABEL)
        is_bound = {
            "bandit learners": not hears,
            "every learner": True,
            "ignorant learners": row.learner in IGNORANT,
        }[row.challenge.stated.binds]
        assert (row.lower_bound is not None) == is_bound, row


def test_full_information_is_cheaper(rows: list[DuelRow]) -> None:
    means = {row.learner: row.mean for row in rows if row.challenge.name == "Theorem 3"}
    # Each of the 25 vectors costs the Multiclass Perceptron at most one mistake.
    assert means["MulticlassPerceptron()"] <= 25
    assert min(mean for name, mean in means.items() if not name.startswith(TOLD_THE_LABEL)) > 35


def test_nearest_neighbour_suffers_exponentially_and_algorithm_1_does_not(growth: list[DuelRow]) -> None:
    suffering = [row for row in growth if row.learner == "NearestNeighbor(radius=γ)"]
    assert [row.challenge.rounds for row in suffering] == [6, 15, 39, 97, 244, 610]
    for row in suffering:
        # It knows nothing about a new direction, so its mistakes are those of a fair coin.
        assert abs(row.mean - row.challenge.rounds / 2) <= 3 * math.sqrt(row.challenge.rounds / 4 / row.runs), row
    slope = np.polyfit([row.challenge.n_features for row in suffering], [math.log(row.mean) for row in suffering], 1)[0]
    assert math.exp(slope) == pytest.approx(math.sqrt(1 / 0.16), rel=0.05)
    others = [row for row in growth if row.learner == "BanditPerceptron()"]
    assert [row.mean for row in others] == [1.0] * 6


@pytest.mark.slow
def test_who_is_ignorant() -> None:
    found = {repr(learner) for learner in _contestants(0.1) if is_ignorant(learner)}
    assert found == IGNORANT - {"NearestNeighbor(radius=γ)"} | {"NearestNeighbor()"}


def test_trying_does_not_touch_the_learner() -> None:
    learner = onebit.BanditPerceptron(classes=["a", "b"])
    learner.tell(learner.guess([1.0, 0.0]), correct=False)
    before = learner.weights_.copy()
    assert not is_ignorant(learner)
    assert np.array_equal(learner.weights_, before)
    assert learner.n_rounds_ == 1


def test_same_games_same_table(rows: list[DuelRow], tmp_path: Path) -> None:
    again = duel([partial(one_example_sequence, 10, 0.5)], [onebit.Banditron()])
    assert again == [row for row in rows if row.challenge.name == "Remark" and row.learner == "Banditron()"]
    _write_duel(rows, tmp_path / "duel.csv")
    text = (tmp_path / "duel.csv").read_text(encoding="utf-8")
    table = list(csv.DictReader(io.StringIO(text)))
    assert len(table) == len(rows)
    first = next(line for line in table if line["learner"] == "BanditPerceptron()")
    assert (first["adversary"], first["lower_bound"]) == ("Theorem 3", "37.5")
    full = next(line for line in table if line["learner"] == "MulticlassPerceptron()")
    assert full["lower_bound"] == full["sharp_lower_bound"] == ""


def saves(figure: Figure) -> bool:
    target = io.BytesIO()
    figure.savefig(target, dpi=40)
    return target.tell() > 1000


def test_figures(rows: list[DuelRow], growth: list[DuelRow]) -> None:
    figure = draw_duel(rows)
    assert [axes.get_title().partition(":")[0] for axes in figure.axes] == [
        "Theorem 3",
        "Remark",
        "Theorem 11",
        "Theorem 24",
    ]
    assert [axes.get_xscale() for axes in figure.axes] == ["linear", "linear", "linear", "log"]
    assert saves(figure)
    by_dimension = draw_growth(growth)
    labels = by_dimension.axes[0].get_legend_handles_labels()[1]
    assert "promised by BanditPerceptron, in any dimension" in labels
    assert len(labels) == 5
    assert saves(by_dimension)


def test_bad_input_is_named(rows: list[DuelRow]) -> None:
    with pytest.raises(ValueError, match="rows must hold at least one game"):
        draw_duel([])
    for none_or_many in ([], rows):
        with pytest.raises(ValueError, match="rows must be of one adversary and one margin"):
            draw_growth(none_or_many)
    with pytest.raises(ValueError, match="runs must be at least 2; got 1"):
        duel(runs=1)


def test_the_table_needs_no_matplotlib() -> None:
    code = "import sys, onebit.experiments.duels; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_example_of_short_name() -> None:
    (row,) = duel(paper_adversaries()[1:2], [onebit.UniformGuess()], runs=2)
    for learner, short in {
        "BanditPerceptron(kernel=Rational(normalize=True), ties='random')": "BanditPerceptron(Rational, ties='random')",
        "Banditron(exploration=0.2)": "Banditron(0.2)",
        "BanditSVM(kernel=None)": "BanditSVM(kernel=None)",
    }.items():
        assert row._replace(learner=learner).short_name == short


def test_example_of_contestants() -> None:
    assert repr([learner for learner in _contestants(0.1) if "Nearest" in repr(learner)]) == "[NearestNeighbor()]"
