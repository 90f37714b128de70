"""Scenes of the playground: rounds, their picture, and tables of the user."""

import string

import numpy as np
import pytest

from onebit.playground import scenes
from onebit.playground.scenes import (
    _MOST_CLASSES,
    _MOST_COLUMNS,
    SCENES,
    _flat_picture,
    _widest_picture,
    make_scene,
    scene_from_table,
)
from onebit.playground.session import Session

LIGHT = ["perceptron", "chance"]


@pytest.mark.parametrize("name", [name for name in SCENES if name not in ("csv", "drawn")])
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
    picture = _flat_picture(X, "")
    assert picture.rows(picture.places(X)) == pytest.approx(X)
    picture = _flat_picture(np.array([[3.0, 4.0, 1.0], [-3.0, 0.0, 1.0]]), "the two columns")
    assert picture.places(np.array([[3.0, 4.0, 1.0]])).tolist() == [[3.0, 4.0]]
    assert picture.rows(np.array([[3.0, 4.0]])).tolist() == [[3.0, 4.0, 1.0]]


def test_wide_rows_are_projected_along_what_varies_most() -> None:
    generator = np.random.default_rng(0)
    hidden = generator.normal(size=(200, 2))
    X = np.column_stack([hidden @ generator.normal(size=(2, 6)), np.ones(200)])
    picture = _widest_picture(X)
    assert picture.rows(picture.places(X)) == pytest.approx(X)  # two dimensions were all there was
    assert "100%" in picture.caption
    assert picture.grid(8).shape == (64, 7)


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
        (
            "x.csv",
            "\n".join(["a,class", *(f"{i % 9},c{i // 2}" for i in range(60))]).encode(),
            f"takes {_MOST_CLASSES}",
        ),
    ],
)
def test_a_bad_table_is_refused_in_words(name: str, text: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace(".", r"\.")) as error:
        scene_from_table(name, text, seed=0)
    assert "/tmp" not in str(error.value)


def test_a_table_with_too_many_columns_is_refused_by_its_first_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read whole, 20 000 columns of words took 22 s."""
    monkeypatch.setattr(scenes, "read_table", lambda *_, **__: pytest.fail("it was read"))
    header, row = ",".join([*(f"c{j}" for j in range(60_000)), "class"]), ",".join(["red"] * 60_000 + ["u"])
    with pytest.raises(ValueError, match=r"wide\.csv: has 59999 columns; the playground takes 1000"):
        scene_from_table("wide.csv", f"{header}\n{row}\n{row}\n".encode(), seed=0, drop=["c0"])


def test_columns_that_are_dropped_do_not_count() -> None:
    header = ",".join([*(f"c{j}" for j in range(_MOST_COLUMNS + 2)), "class"])
    rows = [",".join([*(str(i * j % 7) for j in range(_MOST_COLUMNS + 2)), "uvu"[i]]) for i in range(3)]
    text = "\n".join([header, *rows]).encode()
    assert scene_from_table("a.csv", text, seed=0, drop=["c1,c2"]).n_features > _MOST_COLUMNS // 2
    with pytest.raises(ValueError, match="has 1001 columns"):
        scene_from_table("a.csv", text, seed=0, drop=["c1"])


def test_a_table_whose_words_take_too_much_memory_is_refused() -> None:
    letters = string.ascii_letters
    lines = [",".join([*(letters[(i + j) % 52] for j in range(999)), "uv"[i % 2]]) for i in range(950)]
    with pytest.raises(ValueError, match=r"a\.csv: does not fit into memory \(it asks for 0\.368 GiB"):
        scene_from_table("a.csv", "\n".join(lines).encode(), seed=0)


def test_a_table_of_one_column_is_shown_as_that() -> None:
    scene = scene_from_table("x.csv", b"a,class\n1,u\n2,v\n4,u\n", seed=0)
    assert "3 rows, 1 column, 2 classes" in scene.description
    assert scene.picture.caption == "the one column that varies, from left to right"
