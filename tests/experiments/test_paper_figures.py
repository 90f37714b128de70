import base64
import html
import re
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from drawn import Drawn, draw_files
from onebit.cli.reproduce import _CITATION, _write_report
from onebit.experiments import paper_figures
from onebit.experiments.comparison import Outcome
from onebit.experiments.entries import Entry
from onebit.experiments.paper import PAPER_ROUNDS, contestants, summarize
from onebit.experiments.paper_figures import _sample, drawings
from onebit.experiments.players import build
from onebit.inputs import Floats, Integers
from onebit.learners import Learner
from onebit.playing import play
from onebit.reporting.figures import save

ROUNDS, RUNS = 2000, 2
ALL_FIGURES = [f"figure_{name}" for name in ("1", "3", "4a", "4b", "5a", "5b", "6", "7", "8")]
ALL_FIGURES.insert(0, "weak_set_mistakes")


def played(dataset: str, contestant: Entry, rounds: int, runs: int) -> tuple[Outcome, Learner]:
    learner = build(contestant.spec).set_params(classes=3)
    mistakes: list[Integers] = []
    learned: dict[str, Floats] = {}
    for run in reversed(range(runs)):
        trace = play(learner, *_sample(dataset, rounds, run), seed=run)
        mistakes.insert(0, trace.curve.mistakes)
        learned = learner.learned()
    return outcome(dataset, contestant, trace.curve.rounds, np.array(mistakes), learned), learner


def outcome(dataset: str, entry: Entry, rounds: Integers, mistakes: Integers, learned: dict[str, Floats]) -> Outcome:
    return Outcome(dataset, entry, rounds, mistakes, np.zeros(len(mistakes)), learned=learned)


DETAILS = {"Seeds": "0 to 1", "Note": "a < b & c"}


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return [played(dataset, who, ROUNDS, RUNS)[0] for dataset in ("strong", "weak") for who in contestants()]


@pytest.fixture(scope="module")
def figures(outcomes: list[Outcome], tmp_path_factory: pytest.TempPathFactory) -> list[Drawn]:
    return draw_files(drawings(outcomes, seed=0), tmp_path_factory.mktemp("results") / "figures")


@pytest.fixture(scope="module")
def report(outcomes: list[Outcome], figures: list[Drawn]) -> str:
    folder = figures[0].png.parent
    _write_report(folder, summarize(outcomes), drawings(outcomes, seed=0), DETAILS)
    return (folder / "report.html").read_text(encoding="utf-8")


def stretched(outcome: Outcome) -> Outcome:
    """Pretend that a short game was as long as the paper's."""
    rounds = outcome.rounds * (PAPER_ROUNDS // ROUNDS)
    return replace(outcome, rounds=rounds)


def test_every_figure_is_drawn_as_png_and_svg(figures: list[Drawn]) -> None:
    assert [figure.name for figure in figures] == ALL_FIGURES
    for figure in figures:
        assert figure.png.read_bytes().startswith(b"\x89PNG")
        assert "<svg" in figure.svg.read_text(encoding="utf-8")[:500]
        assert figure.svg.stat().st_size < 500_000
        assert figure.caption.endswith(".")
        assert len(re.findall(r"\. [A-Z]", figure.caption)) == 1, "two sentences each"


def test_drawing_again_gives_the_same_bytes(outcomes: list[Outcome], figures: list[Drawn], tmp_path: Path) -> None:
    first = {figure.name: figure for figure in figures}
    mine = [outcome for outcome in outcomes if outcome.entry.key == "algorithm-1"]
    for name, figure in (
        ("figure_3", paper_figures._draw_data_sets(0)),
        ("figure_4b", paper_figures._draw_curves(outcomes, "strong", True)),
        ("figure_7", paper_figures._draw_regions(mine, 0)),
    ):
        png, svg = save(figure, tmp_path, name)
        assert png.read_bytes() == first[name].png.read_bytes()
        assert svg.read_bytes() == first[name].svg.read_bytes()


def test_package_does_not_load_matplotlib() -> None:
    code = "import sys, onebit, onebit.experiments.paper; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("key", ["banditron-0.02", "algorithm-1", "algorithm-2"])
def test_regions_are_what_the_learner_would_guess(key: str) -> None:
    who = next(contestant for contestant in contestants() if contestant.key == key)
    outcome, learner = played("weak", who, 500, 1)
    X, _ = _sample("weak", 5000, seed=9)
    np.testing.assert_allclose(paper_figures._scores(outcome, X), learner.decision_function(X), atol=1e-9)
    guesses = paper_figures._regions(outcome, X)
    for row, guess in zip(X[:300], guesses[:300], strict=True):
        chances = learner.probabilities(row)
        is_uniform = np.allclose(chances, 1 / 3)
        assert guess == (paper_figures._UNCLAIMED if is_uniform else chances.argmax())


def test_only_a_bandit_perceptron_leaves_points_unclaimed() -> None:
    X, _ = _sample("strong", 10, seed=0)
    for key, expected in (("algorithm-1", paper_figures._UNCLAIMED), ("banditron-0.02", 1)):
        who = next(contestant for contestant in contestants() if contestant.key == key)
        weights = np.array([[0.0, 0.0, -2.0], [0.0, 0.0, -1.0], [0.0, 0.0, -3.0]])
        played = outcome("strong", who, np.array([1]), np.array([[0]]), {"weights": weights})
        assert (paper_figures._regions(played, X) == expected).all()


def test_regions_of_a_learner_that_never_learned() -> None:
    who = next(contestant for contestant in contestants() if contestant.key == "algorithm-2")
    learned = {"support": np.zeros((0, 3)), "coefficients": np.zeros((0, 3))}
    played = outcome("weak", who, np.array([1]), np.array([[0]]), learned)
    assert (paper_figures._regions(played, _sample("weak", 10, 0)[0]) == 0).all()


def test_published_curves_are_drawn_only_where_the_paper_has_points(outcomes: list[Outcome]) -> None:
    def greys(drawn: list[Outcome]) -> int:
        upper = paper_figures._draw_curves(drawn, "weak", False).axes[0]
        return sum(
            line.get_color() == paper_figures._PUBLISHED_COLOR and np.size(line.get_xdata()) > 0 for line in upper.lines
        )

    assert greys(outcomes) == 0
    assert greys([stretched(outcome) for outcome in outcomes]) == 8
    assert "grey" not in paper_figures._curves_caption(outcomes, "weak", False)
    assert "grey" in paper_figures._curves_caption([stretched(outcome) for outcome in outcomes], "weak", False)


def test_shortest_game_of_one_data_set_can_be_drawn(tmp_path: Path) -> None:
    few = [played("strong", who, 1, 1)[0] for who in contestants()[:3]]
    drawn = draw_files(drawings(few, seed=3), tmp_path / "figures")
    assert [figure.name for figure in drawn] == [f"figure_{name}" for name in ("1", "3", "4a", "4b", "7", "8")]
    _write_report(tmp_path, summarize(few), drawings(few, seed=3), DETAILS)
    assert (tmp_path / "report.html").read_text("utf-8").count("<figure ") == 6


def test_report_shows_every_figure_and_every_row(report: str, outcomes: list[Outcome], figures: list[Drawn]) -> None:
    for figure in figures:
        assert html.escape(figure.title) in report
        assert html.escape(figure.caption) in report.replace("\N{NO-BREAK SPACE}", " ")
        assert base64.b64encode(figure.svg.read_bytes()).decode() in report
    for outcome, row in zip(outcomes, summarize(outcomes), strict=True):
        line = next(line for line in _lines(report, outcome.dataset) if f"<small>{outcome.entry.key}</small>" in line)
        assert html.escape(outcome.entry.shown) in line.replace("<wbr>", "")
        assert html.escape(row.remark) in line.replace("\N{NO-BREAK SPACE}", " ")
        assert f"{row.outcome.final.min():,} to {row.outcome.final.max():,}".replace(",", " ") in line
    assert html.escape(_CITATION) in report
    assert "cannot be compared" in report
    assert "published</th>" not in report, "a column of dashes is left out"


def _lines(report: str, dataset: str) -> list[str]:
    strong, weak = report.split("<h3>Weakly separable set</h3>")
    return (strong if dataset == "strong" else weak).splitlines()


def test_report_needs_nothing_from_elsewhere(report: str, figures: list[Drawn]) -> None:
    sources = re.findall(r'(?:src|href|url|action)\s*[=(]\s*["\']?([^"\'\s>)]*)', report)
    assert len(sources) == len(figures)
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert "@import" not in report
    assert "<script" not in report
    text = re.sub(r'src="data:[^"]*"', "", report)
    assert "http" not in text
    assert str(figures[0].png.parent) not in text
    assert str(Path.home()) + "/" not in text


def test_report_escapes_what_it_is_given(report: str) -> None:
    assert "<dt>Note</dt><dd>a &lt; b &amp; c</dd>" in report


def test_report_of_a_full_game_shows_published_numbers_and_ratios(
    outcomes: list[Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["onebit", "reproduce"])
    full = [stretched(outcome) for outcome in outcomes]
    rows = summarize(full)
    _write_report(tmp_path, rows, [], {})
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<pre><code>onebit reproduce</code></pre>" in text
    for row in rows:
        if row.published is not None:
            shown = f"{row.published:,.0f}".replace(",", " ")
            ratio = f"{row.outcome.mean / row.published:.2f}"
            assert '<th scope="col">published</th>' in text
            assert f'<td class="number">{shown}</td><td class="number">{ratio}</td>' in text


def test_report_is_written_the_same_twice(report: str, outcomes: list[Outcome], tmp_path: Path) -> None:
    again = tmp_path / "report.html"
    _write_report(tmp_path, summarize(outcomes), drawings(outcomes, seed=0), DETAILS)
    assert again.read_text(encoding="utf-8") == report


def test_figures_have_numbers_of_their_own(figures: list[Drawn]) -> None:
    numbers = [figure.title.partition(":")[0] for figure in figures]
    assert len(set(numbers)) == len(numbers)
    for figure, number in zip(figures, numbers, strict=True):
        if number.startswith("Figure"):
            assert figure.name == f"figure_{number.removeprefix('Figure ')}"


def test_the_figure_at_a_glance_names_our_learner_and_no_two_names_touch(outcomes: list[Outcome]) -> None:
    figure = paper_figures._draw_glance(outcomes, "weak")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts if text.get_text().startswith("BanditSVM (ours)")]
    boxes = sorted((text.get_window_extent() for text in axes.texts), key=lambda box: box.y0)
    assert len(boxes) == 5
    assert all(low.y1 <= high.y0 for low, high in pairwise(boxes))
    assert all(box.x1 <= figure.bbox.x1 for box in boxes)
