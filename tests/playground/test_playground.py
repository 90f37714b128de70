"""The playground without the web: scenes, sessions, the oracle, and their bounds."""

import json
import string
import threading
from pathlib import Path

import numpy as np
import pytest

import onebit
from onebit.kernels import Gaussian
from onebit.playground import scenes
from onebit.playground.catalogue import CATALOGUE, looks, measure, new_learner, promised
from onebit.playground.oracle import MOST_ANSWERS, Oracle, StaleError
from onebit.playground.scenes import (
    DRAWN_LABELS,
    MOST_CLASSES,
    MOST_COLUMNS,
    MOST_POINTS,
    MOST_ROUNDS,
    flat_picture,
    make_scene,
    scene_from_table,
    scene_titles,
    widest_picture,
)
from onebit.playground.server import NoSuchSessionError, Sessions
from onebit.playground.session import FINISHED, READY, BusyError, Session
from onebit.streams import child_reader

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


@pytest.mark.parametrize("name", [name for name in scene_titles() if name not in ("csv", "drawn")])
def test_every_scene_is_shown_in_its_picture(name: str) -> None:
    scene = make_scene(name, seed=2)
    X, y = scene.take(0, 50)
    left, bottom, right, top = scene.picture.box
    places = scene.picture.places(X)
    assert np.all((places > [left, bottom]) & (places < [right, top]))
    assert right - left == pytest.approx(top - bottom)
    # A place in the plane stands for a row that is shown there.
    assert scene.picture.places(scene.picture.rows(places)) == pytest.approx(places)
    assert y.max() < len(scene.labels)
    assert (make_scene(name, seed=2).take(0, 50)[0] == X).all()
    assert not (make_scene(name, seed=3).take(0, 50)[0] == X).all()


def test_flat_rows_are_the_plane_itself() -> None:
    X = np.array([[1.0, 2.0, 0.7], [-3.0, 0.5, 0.7]])
    picture = flat_picture(X, "")
    assert picture.rows(picture.places(X)) == pytest.approx(X)


def test_wide_rows_are_projected_along_what_varies_most() -> None:
    generator = np.random.default_rng(0)
    hidden = generator.normal(size=(200, 2))
    X = np.column_stack([hidden @ generator.normal(size=(2, 6)), np.ones(200)])
    picture = widest_picture(X)
    assert picture.rows(picture.places(X)) == pytest.approx(X)  # two dimensions were all there was
    assert "100%" in picture.caption
    assert picture.grid(8).shape == (64, 7)


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
    session.add_points([(-0.5, 0.5, "blue"), (0.5, -0.5, "green")])
    assert session.advance(2) == 2
    frame = session.frame()
    assert [each["truth"] for each in frame["rounds"]] == [0, 2]  # new points come first, in their order
    assert frame["stream"]["points"] == [[-0.5, 0.5, 0], [0.5, -0.5, 2]]
    for bad in ((2.0, 0.0, "blue"), (0.0, 0.0, "<b>"), (float("nan"), 0.0, "blue")):
        with pytest.raises(ValueError, match=r"x must|label must"):
            session.add_points([(0.0, 0.0, "blue"), bad])
    assert len(session.frame()["stream"]["points"]) == 2  # all or none
    with pytest.raises(ValueError, match="at most"):
        session.add_points([(0.0, 0.0, DRAWN_LABELS[0])] * (MOST_POINTS - 1))
    with pytest.raises(ValueError, match="drawn"):
        wedges_session().add_points([(0.0, 0.0, "blue")])


def test_a_table_is_read_standardised_and_shuffled() -> None:
    lines = [f"{i},{i * i},{i % 7},{'<b>up</b>' if i > 20 else 'down'}" for i in range(40)]
    text = "\n".join(["row,a,b,kind", *lines]).encode()
    with pytest.raises(ValueError, match="counts the rows"):
        scene_from_table("my.csv", text, seed=1)
    scene = scene_from_table("my.csv", text, seed=1, label="kind", drop=["row"])
    X, y = scene.take(0, 40)
    assert X.shape == (40, 3)  # and a constant
    assert X.mean(axis=0) == pytest.approx([0, 0, 1])
    assert set(scene.labels) == {"<b>up</b>", "down"}
    assert sorted(y.tolist()) == [0] * 19 + [1] * 21
    session = Session(scene, LIGHT, seed=1)
    session.advance(3)
    session.regions(0, 8)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("../../x.csv", b"a,class\n1,\x00", "../../x.csv"),
        ("x.npz", b"PK", "must be a .csv"),
        ("x.csv", b"", "x.csv"),
        ("x.csv", b"a,class\n1,u\n2,u\n", "two labels"),
        (
            "x.csv",
            b"\n".join([b",".join([b"%d" % (i + r) for i in range(1001)] + [b"uv"[r:]]) for r in (0, 1)] * 2),
            "1001",
        ),
        ("x.csv", "\n".join(["a,class", *(f"{i % 9},c{i // 2}" for i in range(60))]).encode(), f"takes {MOST_CLASSES}"),
    ],
)
def test_a_bad_table_is_refused_in_words(name: str, text: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace(".", r"\.")) as error:
        scene_from_table(name, text, seed=0)
    assert "/tmp" not in str(error.value)


def test_a_table_with_too_many_columns_is_refused_by_its_first_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read whole, 20 000 columns of words took 22 s."""
    monkeypatch.setattr(scenes, "read_untrusted_text", lambda *_: pytest.fail("it was read"))
    header, row = ",".join([*(f"c{j}" for j in range(60_000)), "class"]), ",".join(["red"] * 60_000 + ["u"])
    with pytest.raises(ValueError, match=r"wide\.csv: has 59999 columns; the playground takes 1000"):
        scene_from_table("wide.csv", f"{header}\n{row}\n{row}\n".encode(), seed=0, drop=["c0"])


def test_columns_that_are_dropped_do_not_count() -> None:
    header = ",".join([*(f"c{j}" for j in range(MOST_COLUMNS + 2)), "class"])
    rows = [",".join([*(str(i * j % 7) for j in range(MOST_COLUMNS + 2)), "uvu"[i]]) for i in range(3)]
    text = "\n".join([header, *rows]).encode()
    assert scene_from_table("a.csv", text, seed=0, drop=["c1,c2"]).n_features > MOST_COLUMNS // 2
    with pytest.raises(ValueError, match="has 1001 columns"):
        scene_from_table("a.csv", text, seed=0, drop=["c1"])


def test_a_table_whose_words_take_too_much_memory_is_refused() -> None:
    letters = string.ascii_letters
    lines = [",".join([*(letters[(i + j) % 52] for j in range(999)), "uv"[i % 2]]) for i in range(950)]
    with pytest.raises(ValueError, match=r"a\.csv: does not fit into memory \(it asks for 0\.368 GiB"):
        scene_from_table("a.csv", "\n".join(lines).encode(), seed=0)


def test_a_table_that_ends_its_reader_leaves_the_playground_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(child_reader, "_PROGRAM", "import os; os.abort()")
        with pytest.raises(ValueError, match=r"a\.csv: could not be read: the reader ended with SIGABRT"):
            scene_from_table("a.csv", b"a,class\n1,u\n2,v\n4,u\n", seed=0)
    assert scene_from_table("a.csv", b"a,class\n1,u\n2,v\n4,u\n", seed=0).labels == ("u", "v")


def test_a_table_of_one_column_is_shown_as_that() -> None:
    scene = scene_from_table("x.csv", b"a,class\n1,u\n2,v\n4,u\n", seed=0)
    assert "3 rows, 1 column, 2 classes" in scene.description
    assert scene.picture.caption == "the one column that varies, from left to right"


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

    monkeypatch.setattr("onebit.playground.session.measure", broken)
    session = wedges_session()
    session.prepare(in_background=False)
    assert session.advance(1) == 1
    assert session.frame()["learners"][0]["promise"]["says"] == "not measured: something went wrong"
    monkeypatch.setattr("onebit.playground.session.new_learner", broken)
    session.prepare(in_background=False)
    frame = session.frame()
    assert (frame["state"], "secret" in json.dumps(frame)) == ("failed", False)
    assert caplog.text.count("ArithmeticError: secret") == 2, "the terminal is told"


def test_points_that_join_while_others_are_measured_count(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(make_scene("drawn", 0), ["perceptron"], seed=0)
    session.add_points([(-0.5, 0.5, "blue"), (0.5, 0.5, "green")])
    seen: list[int] = []

    def joined(X: np.ndarray, *args: object, **named: object) -> None:
        seen.append(len(X))
        if len(seen) == 1:
            session.add_points([(0.5, -0.5, "green")])

    monkeypatch.setattr("onebit.playground.session.measure", joined)
    session.prepare(in_background=False)
    assert seen == [2, 3]


def test_nobody_measures_for_a_session_that_is_over() -> None:
    session = wedges_session()
    sessions: Sessions[Session] = Sessions(most=1, idle_seconds=60.0, let_go=Session.end)
    sessions.add(session)
    sessions.add(wedges_session())
    session.prepare(in_background=False)
    assert session.frame()["learners"][0]["promise"] is None
    X, y = onebit.streams.paper_strong(400, seed=1)
    assert measure(X, y, 3, is_wanted=lambda: False) is None


def test_promises_are_those_of_the_theorems() -> None:
    X, y = onebit.streams.paper_strong(400, seed=1)
    strong = measure(X, y, 3)
    assert strong is not None
    perceptron = onebit.BanditPerceptron()
    promise = promised(perceptron, strong)
    (claim,) = [each for each in strong.promises if each.theorem == "2"]
    assert promise.mistakes == claim.value
    assert "Theorem 2" in promise.text
    weak = measure(*onebit.streams.wedges(), 3)
    assert weak is not None
    assert promised(perceptron, weak).text == "nothing: these rows are not strongly separable"
    assert "Theorem 10" in promised(onebit.MulticlassPerceptron(), weak).text
    assert promised(onebit.UniformGuess(), strong).text == "no theorem speaks of it"
    assert promised(onebit.BanditPerceptron(Gaussian()), strong).text == "no theorem speaks of it"
    assert "Corollary 6" in promised(CATALOGUE["rational"].learner, weak).text
    assert measure(X, y, 3, patience=-1.0) is None


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


def test_nobody_plays_while_code_is_compiled() -> None:
    session = wedges_session()
    session.prepare(in_background=False)
    frame = session.frame()
    assert frame["state"] == READY
    assert frame["learners"][0]["promise"]["says"].startswith("nothing")
    session._state = "warming up"
    with pytest.raises(BusyError, match="once"):
        session.advance(1)


def test_sessions_are_bounded_in_number_and_age_and_unguessable() -> None:
    now = [0.0]
    sessions: Sessions[int] = Sessions(most=3, idle_seconds=10.0, clock=lambda: now[0])
    ids = [sessions.add(number) for number in range(3)]
    assert sessions.get(ids[0]) == 0
    fourth = sessions.add(3)  # the second was left alone longest
    with pytest.raises(NoSuchSessionError):
        sessions.get(ids[1])
    assert [sessions.get(name) for name in (ids[0], ids[2], fourth)] == [0, 2, 3]
    now[0] = 10.5
    assert len(sessions) == 0
    assert all(len(name) >= 20 for name in ids)


def test_the_oracle_hears_only_its_person() -> None:
    oracle = Oracle(["even", "odd"], "perceptron", seed=5)
    first = oracle.frame()
    assert first["sorted_as"] is None
    assert first["guess"] in ("even", "odd")
    assert oracle.frame() == first  # looking changes nothing
    oracle.answer(1, correct=False)
    with pytest.raises(StaleError, match="round must be 2"):
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
    oracle._round = MOST_ANSWERS + 1
    assert oracle.frame()["state"] == FINISHED
    with pytest.raises(ValueError, match="at most"):
        oracle.answer(MOST_ANSWERS + 1, correct=True)


@pytest.mark.parametrize("names", [["one"], ["a", "a"], ["a", " "], ["a", "b" * 41], [str(i) for i in range(11)]])
def test_the_names_of_an_oracle_are_checked(names: list[str]) -> None:
    with pytest.raises(ValueError, match="classes must be"):
        Oracle(names, "perceptron", seed=0)


def test_the_oracle_needs_a_learner_that_is_not_told_labels() -> None:
    with pytest.raises(ValueError, match="right or wrong only"):
        Oracle(["a", "b"], "told", seed=0)


def test_everyone_in_the_catalogue_has_a_look_of_their_own() -> None:
    found = looks()
    assert len({(look.color, look.dashes[1]) for look in found.values()}) == len(CATALOGUE)
    for key in CATALOGUE:
        new_learner(key, ["a", "b"], seed=0).begin(3, ["a", "b"])
