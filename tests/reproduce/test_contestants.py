from pathlib import Path

import numpy as np
import pytest

from onebit.compare.comparison import run_comparison
from onebit.kernels import Rational
from onebit.learners import BanditPerceptron
from onebit.playing import play
from onebit.reproduce.contestants import DATASETS, STREAMS, contestants, paper_comparison
from onebit.reproduce.published import published_curves, published_learner
from onebit.streams import paper_weak


@pytest.mark.ci
def test_reproduce_is_a_comparison_on_the_papers_streams(tmp_path: Path) -> None:
    comparison = paper_comparison(rounds=300, runs=2, seed=6)
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
    assert len(run_comparison(paper_comparison(rounds=1, runs=1), tmp_path, jobs=1)) == 24


def test_every_published_curve_belongs_to_somebody() -> None:
    names = {published_learner(entry.key) for entry in contestants()}
    assert names - {None} == {learner for _, learner in published_curves()}
    assert list(STREAMS) == list(DATASETS)
