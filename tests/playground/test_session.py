"""A session of the playground: the same game as play, within bounds, in any number of threads."""

import json
import threading

import numpy as np
import pytest

import onebit
from onebit.kernels import Gaussian
from onebit.playground.scenes import (
    _MOST_POINTS,
    DRAWN_LABELS,
    MOST_ROUNDS,
    make_scene,
    scene_from_table,
)
from onebit.playground.session import _LOOKS, CATALOGUE, FINISHED, READY, Session, _Point, _promised, new_learner
from onebit.theory import margin

LIGHT = ["perceptron", "chance"]


def wedges_session(*, seed: int = 3) -> Session:
    return Session(make_scene("wedges", seed), LIGHT, seed)


def test_a_session_plays_the_game_that_play_does() -> None:
    session = wedges_session()
    for rounds in (1, 7, 100):
        while rounds:
            rounds -= session.advance(rounds)
    X, y = make_scene("wedges", 3).take(0, 108)
    frame = session.frame()
    for key, shown in zip(LIGHT, frame["learners"], strict=True):
        trace = onebit.play(new_learner(key, [0, 1, 2], seed=3), X, y, keep_guesses=True)
        assert shown["mistakes"] == trace.mistakes
        assert trace.guesses is not None
        assert shown["lately"] == int((trace.guesses != y)[-100:].sum())
    assert frame["round"] == 108
    assert frame["curve"]["rounds"][-1] == 108
    assert [line[-1] for line in frame["curve"]["mistakes"]] == [each["mistakes"] for each in frame["learners"]]


def test_a_frame_is_json_and_stays_small_and_ends() -> None:
    session = wedges_session()
    while session.frame()["state"] == READY:
        session.advance(500)
    frame = session.frame()
    assert frame["state"] == FINISHED
    assert frame["round"] == frame["most_rounds"] == MOST_ROUNDS
    assert session.advance(1) == 0
    assert len(json.dumps(frame, allow_nan=False)) < 60_000
    assert len(frame["curve"]["rounds"]) <= 302
    assert frame["curve"]["rounds"] == sorted(set(frame["curve"]["rounds"]))


def test_regions_are_what_the_learner_scores() -> None:
    session = wedges_session()
    session.advance(60)
    regions = session.regions(0, 12)
    X, y = make_scene("wedges", 3).take(0, session.frame()["round"])
    learner = new_learner("perceptron", [0, 1, 2], seed=3)
    onebit.play(learner, X, y)
    wanted = np.argmax(learner.score_classes(make_scene("wedges", 3).picture.grid(12)), axis=1)
    assert np.argmax(regions["scores"], axis=0).tolist() == wanted.tolist()
    assert regions["facts"] is None
    json.dumps(regions, allow_nan=False)


def test_opinions_are_chances_where_there_is_no_bank() -> None:
    session = wedges_session()
    said = session.opinions(1, 0.5, 0.5)
    assert said["chances"] == pytest.approx([1 / 3] * 3, abs=1e-4)
    assert said["voices"] == []


def test_drawn_points_are_played_and_kept_within_bounds() -> None:
    session = Session(make_scene("drawn", 0), LIGHT, seed=0)
    assert session.advance(5) == 0
    session.add_points([_Point(-0.5, 0.5, "blue"), _Point(0.5, -0.5, "green")])
    assert session.advance(2) == 2
    frame = session.frame()
    assert [each["truth"] for each in frame["rounds"]] == [0, 2]  # new points come first, in their order
    assert frame["stream"]["points"] == [[-0.5, 0.5, 0], [0.5, -0.5, 2]]
    for bad in (_Point(2.0, 0.0, "blue"), _Point(0.0, 0.0, "<b>"), _Point(float("nan"), 0.0, "blue")):
        with pytest.raises(ValueError, match=r"x must|label must"):
            session.add_points([_Point(0.0, 0.0, "blue"), bad])
    assert len(session.frame()["stream"]["points"]) == 2  # all or none
    with pytest.raises(ValueError, match="at most"):
        session.add_points([_Point(0.0, 0.0, DRAWN_LABELS[0])] * (_MOST_POINTS - 1))
    with pytest.raises(ValueError, match="drawn"):
        wedges_session().add_points([_Point(0.0, 0.0, "blue")])


def test_a_learner_that_would_take_gigabytes_is_refused() -> None:
    lines = [",".join([*(str((i * r) % 11) for i in range(900)), "uv"[r % 2]]) for r in range(12)]
    header = ",".join([*(f"c{i}" for i in range(900)), "class"])
    scene = scene_from_table("x.csv", "\n".join([header, *lines]).encode(), seed=0)
    with pytest.raises(ValueError, match="LinUCB takes too long with 819 columns"):
        Session(scene, ["chance", "linucb"], seed=0)
    Session(scene, ["chance", "perceptron"], seed=0).regions(1, 4)


def test_promises_follow_the_points() -> None:
    session = Session(make_scene("drawn", 0), ["perceptron"], seed=0)
    session.add_points([_Point(-0.5, 0.5, "blue")])
    assert session.promises() == [{"mistakes": None, "says": "nothing yet: one class only"}]
    session.add_points([_Point(0.5, 0.5, "green")])
    assert "Theorem 2" in session.promises()[0]["says"]
    assert wedges_session().promises()[0]["says"].startswith("nothing")


def test_what_is_asked_is_checked_and_changes_nothing() -> None:
    for learners in ([], ["chance"] * 2, ["nobody"], list(CATALOGUE)[:5]):
        with pytest.raises(ValueError, match="learner"):
            Session(make_scene("wedges", 0), learners, 0)
    with pytest.raises(ValueError, match="stream must be"):
        make_scene("nowhere", 0)
    session = wedges_session()
    for call in (lambda: session.advance(0), lambda: session.advance(10**9), lambda: session.regions(7, 16)):
        with pytest.raises(ValueError, match="must be"):
            call()
    assert session.frame()["round"] == 0


def test_two_threads_share_a_session_without_losing_rounds() -> None:
    session = wedges_session()
    played: list[int] = []

    def play() -> None:
        played.extend(session.advance(5) for _ in range(10))

    threads = [threading.Thread(target=play) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session.frame()["round"] == sum(played)


# The learners, and what the theorems promise of them.


def test_promises_are_those_of_the_theorems() -> None:
    X, y = onebit.streams.paper_strong(400, seed=1)
    strong = margin(X, y, classes=3)
    perceptron = onebit.BanditPerceptron()
    promise = _promised(perceptron, strong)
    (claim,) = [each for each in strong.promises if each.theorem == "2"]
    assert promise["mistakes"] == claim.value
    assert "Theorem 2" in promise["says"]
    weak = margin(*onebit.streams.wedges(), classes=3)
    assert _promised(perceptron, weak)["says"] == "nothing: these rows are not strongly separable"
    assert "Theorem 10" in _promised(onebit.MulticlassPerceptron(), weak)["says"]
    assert _promised(onebit.UniformGuess(), strong)["says"] == "no theorem speaks of it"
    assert _promised(onebit.BanditPerceptron(Gaussian()), strong)["says"] == "no theorem speaks of it"
    assert "Corollary 6" in _promised(CATALOGUE["rational"].learner, weak)["says"]
    found = margin(np.eye(3), np.arange(3), classes=3)
    assert _promised(perceptron, found)["says"] == "at most 18 on average (Theorem 2)"


def test_everyone_in_the_catalogue_has_a_look_of_their_own() -> None:
    assert len({(look.color, look.dashes[1]) for look in _LOOKS.values()}) == len(CATALOGUE)
    for key in CATALOGUE:
        new_learner(key, ["a", "b"], seed=0).begin(3, ["a", "b"])


def test_margins_that_take_too_long_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.playground.session._PATIENCE", -1.0)
    assert wedges_session().promises()[0]["says"] == "not measured: it would take too long"
