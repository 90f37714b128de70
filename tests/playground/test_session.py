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
from onebit.playground.server import _Sessions
from onebit.playground.session import (
    _CATALOGUE,
    _FINISHED,
    _LOOKS,
    _MOST_ANSWERS,
    _READY,
    Oracle,
    Session,
    _new_learner,
    _Point,
    _promised,
)
from onebit.service.gate import Problem
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
        trace = onebit.play(_new_learner(key, [0, 1, 2], seed=3), X, y, keep_guesses=True)
        assert shown["mistakes"] == trace.mistakes
        assert trace.guesses is not None
        assert shown["lately"] == int((trace.guesses != y)[-100:].sum())
    assert frame["round"] == 108
    assert frame["curve"]["rounds"][-1] == 108
    assert [line[-1] for line in frame["curve"]["mistakes"]] == [each["mistakes"] for each in frame["learners"]]


def test_a_frame_is_json_and_stays_small_and_ends() -> None:
    session = wedges_session()
    while session.frame()["state"] == _READY:
        session.advance(500)
    frame = session.frame()
    assert frame["state"] == _FINISHED
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
    learner = _new_learner("perceptron", [0, 1, 2], seed=3)
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


def test_a_session_whose_margins_cannot_be_measured_is_played(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_args: object, **_named: object) -> None:
        raise ArithmeticError("secret")

    monkeypatch.setattr("onebit.playground.session.margin", broken)
    session = wedges_session()
    session.prepare().join()
    assert session.advance(1) == 1
    assert session.frame()["learners"][0]["promise"]["says"] == "not measured: something went wrong"
    monkeypatch.setattr("onebit.playground.session._new_learner", broken)
    session.prepare().join()
    frame = session.frame()
    assert (frame["state"], "secret" in json.dumps(frame)) == ("failed", False)
    assert caplog.text.count("ArithmeticError: secret") == 2, "the terminal is told"


def test_points_that_join_while_others_are_measured_count(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(make_scene("drawn", 0), ["perceptron"], seed=0)
    session.add_points([_Point(-0.5, 0.5, "blue"), _Point(0.5, 0.5, "green")])
    seen: list[int] = []

    def joined(X: np.ndarray, *args: object, **named: object) -> None:
        seen.append(len(X))
        if len(seen) == 1:
            session.add_points([_Point(0.5, -0.5, "green")])
        raise TimeoutError

    monkeypatch.setattr("onebit.playground.session.margin", joined)
    session.prepare().join()
    assert seen == [2, 3]


def test_nobody_measures_for_a_session_that_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.playground.server._MOST_SESSIONS", 1)
    session = wedges_session()
    sessions = _Sessions()
    sessions.add(session)
    sessions.add(wedges_session())
    session.prepare().join()
    assert session.frame()["learners"][0]["promise"] is None
    session.end()
    with pytest.raises(TimeoutError):
        session._promises_on(*onebit.streams.paper_strong(400, seed=1))


def test_what_is_asked_is_checked_and_changes_nothing() -> None:
    for learners in ([], ["chance"] * 2, ["nobody"], list(_CATALOGUE)[:5]):
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


def test_nobody_plays_while_code_is_compiled() -> None:
    session = wedges_session()
    session.prepare().join()
    frame = session.frame()
    assert frame["state"] == _READY
    assert frame["learners"][0]["promise"]["says"].startswith("nothing")
    session._state = "warming up"
    with pytest.raises(Problem, match="once"):
        session.advance(1)


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
    assert "Corollary 6" in _promised(_CATALOGUE["rational"].learner, weak)["says"]
    found = margin(np.eye(3), np.arange(3), classes=3)
    assert _promised(perceptron, found)["says"] == "at most 18 on average (Theorem 2)"


def test_everyone_in_the_catalogue_has_a_look_of_their_own() -> None:
    assert len({(look.color, look.dashes[1]) for look in _LOOKS.values()}) == len(_CATALOGUE)
    for key in _CATALOGUE:
        _new_learner(key, ["a", "b"], seed=0).begin(3, ["a", "b"])


def test_margins_that_take_too_long_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.playground.session._PATIENCE", -1.0)
    session = wedges_session()
    session.prepare().join()
    assert session.frame()["learners"][0]["promise"]["says"] == "not measured: it would take too long"


# A person as oracle.


def test_the_oracle_hears_only_its_person() -> None:
    oracle = Oracle(["even", "odd"], "perceptron", seed=5)
    first = oracle.frame()
    assert first["sorted_as"] is None
    assert first["guess"] in ("even", "odd")
    assert oracle.frame() == first  # looking changes nothing
    oracle.answer(1, correct=False)
    with pytest.raises(Problem, match="round must be 2"):
        oracle.answer(1, correct=True)
    second = oracle.frame()
    assert (second["round"], second["right"], second["answered"]) == (2, 0, 1)
    assert second["answers"] == [{"image": first["image"], "guess": first["guess"], "correct": False}]
    assert len(second["sorted_as"]) == len(second["shelf"]) == 40
    json.dumps(second, allow_nan=False)


def test_the_oracle_is_caught_on_to() -> None:
    """Always "yes" to a: after some answers a is all it says."""
    oracle = Oracle(["a", "b", "<script>"], "perceptron", seed=5)
    for round in range(1, 60):
        oracle.answer(round, correct=oracle.frame()["guess"] == "a")
    assert sum(oracle.frame()["lately"]) >= 9
    oracle._round = _MOST_ANSWERS + 1
    assert oracle.frame()["state"] == _FINISHED
    with pytest.raises(ValueError, match="at most"):
        oracle.answer(_MOST_ANSWERS + 1, correct=True)


@pytest.mark.parametrize("names", [["one"], ["a", "a"], ["a", " "], ["a", "b" * 41], [str(i) for i in range(11)]])
def test_the_names_of_an_oracle_are_checked(names: list[str]) -> None:
    with pytest.raises(ValueError, match="classes must be"):
        Oracle(names, "perceptron", seed=0)


def test_the_oracle_needs_a_learner_that_is_not_told_labels() -> None:
    with pytest.raises(ValueError, match="right or wrong only"):
        Oracle(["a", "b"], "told", seed=0)
