import math
from pathlib import Path

import numpy as np
import pytest

from onebit import learners
from onebit.experiments.players import LearnerPlayer, PlayerTrace, _describe, build, learned_arrays, player_from
from onebit.experiments.store import Result, Spec
from onebit.kernels import Rational
from onebit.learners import BanditPerceptron, Banditron, BanditSVM, MulticlassPerceptron, all_learners
from onebit.playing import play
from onebit.streams import paper_weak


def test_every_learner_of_the_contract_survives_its_spec() -> None:
    for learner in (learner for cls in all_learners() for learner in cls.examples()):
        spec = _describe(learner)
        assert _describe(build(spec)) == spec
        assert build(spec).get_params().keys() == learner.get_params().keys()


def test_a_learner_plays_as_it_would_alone(tmp_path: Path) -> None:
    X, y = paper_weak(400, 3)
    learner = BanditPerceptron(Rational(), classes=3)
    trace = play(learner, X, y, seed=5)
    game = LearnerPlayer(BanditPerceptron(Rational())).play(X, y, 3, 5, tmp_path)
    assert np.array_equal(game.curve, trace.curve.mistakes)
    assert (game.updates, game.uniform_guesses) == (trace.updates, trace.uniform_guesses)
    assert game.seconds is not None
    kept = game.result(keep_learned=True)
    assert kept.numbers == {
        "mistakes": trace.mistakes,
        "updates": trace.updates,
        "uniform_guesses": trace.uniform_guesses,
    }
    assert {name: array.shape for name, array in learned_arrays(kept).items()} == {
        name: array.shape for name, array in learner.learned().items()
    }
    assert learned_arrays(game.result(keep_learned=False)) == {}


def test_no_clock_in_a_result() -> None:
    curve = np.array([1, 2])
    assert (
        PlayerTrace(curve, seconds=1.0).result(False)
        == PlayerTrace(curve, seconds=2.0).result(False)
        == Result({"mistakes": 2}, {"curve": curve})
    )


def test_a_hard_margin_can_be_stored() -> None:
    spec = _describe(BanditSVM(C=math.inf))
    assert "C=inf" in spec.label
    assert build(spec).get_params()["C"] == math.inf
    assert spec != _describe(BanditSVM(C=1e308))


def test_players_know_who_hears_the_label_and_refuse_bad_settings() -> None:
    assert LearnerPlayer(MulticlassPerceptron()).full_information
    assert not LearnerPlayer(Banditron()).full_information
    with pytest.raises(ValueError, match="exploration"):
        player_from(Spec("Banditron", {"exploration": 7}))
    with pytest.raises(ValueError, match="other processes cannot find it"):
        LearnerPlayer(Banditron(kernel=lambda X, Y: X @ Y.T))


def test_example_of_describe() -> None:
    assert _describe(learners.Banditron(0.02)).label == "Banditron(exploration=0.02, kernel=None)"


def test_example_of_build() -> None:
    assert repr(build(_describe(learners.Banditron(0.02)))) == "Banditron(exploration=0.02)"
