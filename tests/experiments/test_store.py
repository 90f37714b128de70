import json
import math
import sqlite3
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onebit.experiments import JSON, Cell, DamageWarning, Result, Spec, Store, StoreError, grid
from onebit.experiments.store import _APPLICATION_ID, _FORMAT_VERSION

CELL = Cell(Spec("paper_weak", {"rounds": 10}), Spec("Banditron", {"exploration": 0.02}), 3, "1")
OTHER_CELL = Cell(CELL.stream, CELL.player, 4, "1")
RESULT = Result({"mistakes": 7, "updates": 3}, {"curve": np.arange(2000) / 7})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one result."""
    path = tmp_path / "arena.sqlite"
    with Store(path) as store:
        store.put(CELL, RESULT)
    return path


def arrays_of_all_kinds() -> dict[str, Any]:
    numbers = np.arange(24).reshape(2, 3, 4)
    kinds = ["?", "i1", "u8", ">i4", "<f2", "f4", ">f8", "c16", "S3", "U2", "M8[s]"]
    return {kind: np.zeros((2, 3), dtype=kind) for kind in kinds} | {
        "record": np.zeros(3, dtype=[("round", "<i8"), ("seconds", "<f4")]),
        "odd floats": np.array([np.nan, -np.nan, np.inf, -0.0, 5e-324]),
        "scalar": np.array(1.5),
        "empty": np.zeros((0, 3)),
        "by columns": np.asfortranarray(numbers),
        "view": numbers[:, ::-2, 1:],
        "name\nwith ünusual letters": numbers,
    }


def test_results_come_back_bit_for_bit(path: Path) -> None:
    numbers: dict[str, int | float] = {"big": 2**80, "small": 5e-324, "third": 1 / 3, "whole": 1.0, "zero": -0.0}
    numbers |= {"inf": float("inf"), "nan": float("nan")}
    put = Result(numbers, arrays_of_all_kinds())
    with Store(path) as store:
        store.put(OTHER_CELL, put)
    with Store(path) as store:
        got = store.get(OTHER_CELL)
        assert store.get(CELL) == RESULT
    assert got == put
    assert {name: repr(number) for name, number in got.numbers.items()} == {n: repr(v) for n, v in numbers.items()}
    for name, array in put.arrays.items():
        assert got.arrays[name].dtype == array.dtype
        assert got.arrays[name].shape == array.shape
        assert got.arrays[name].tobytes() == array.tobytes()


def test_equal_results_are_stored_as_equal_bytes(tmp_path: Path) -> None:
    rows = []
    curve, counts = np.arange(6.0).reshape(2, 3), np.arange(3)
    results = [
        Result({"a": 1, "b": 2}, {"curve": curve, "counts": counts}),
        Result({"b": 2, "a": 1}, {"counts": counts, "curve": np.asfortranarray(curve)}),
    ]
    for number, result in enumerate(results):
        with Store(tmp_path / f"{number}.sqlite") as store:
            store.put(CELL, result)
        with closing(sqlite3.connect(tmp_path / f"{number}.sqlite")) as connection:
            rows.append(connection.execute("SELECT * FROM results").fetchall())
    assert rows[0] == rows[1]
    assert results[0] == results[1]


def test_results_with_other_bits_differ() -> None:
    base = Result({"a": 1}, {"x": np.zeros(2)})
    for other in (
        Result({"a": 1.0}, {"x": np.zeros(2)}),
        Result({"a": 1}, {"x": -np.zeros(2)}),
        Result({"a": 1}, {"x": np.zeros(2, dtype="f4")}),
        Result({"a": 1}, {"x": np.zeros((2, 1))}),
        Result({"a": 1}, {"y": np.zeros(2)}),
        "something else",
    ):
        assert base != other


def test_numbers_and_arrays_must_be_plain() -> None:
    bad: Any
    for bad in (np.int64(1), np.float64(1), True, None, "1"):
        with pytest.raises(TypeError, match=r"number 'mistakes' is .* of type"):
            Result({"mistakes": bad})
    for bad in ([1], np.array([None]), np.ma.masked_array([1], [True]), np.zeros(1, dtype=[("a", object)])):
        with pytest.raises(TypeError, match="array 'curve' is "):
            Result({}, {"curve": bad})


def test_finished_tells_which(path: Path) -> None:
    with Store(path) as store:
        many = [f"{number:064x}" for number in range(2000)]
        assert store.finished([*many, OTHER_CELL.key, CELL.key]) == {CELL.key}
        assert store.finished([]) == set()


def test_an_absent_result_names_the_cell(path: Path) -> None:
    with Store(path) as store, pytest.raises(StoreError, match=r"^\S+: no result of paper_weak.*, seed 4; run"):
        store.get(OTHER_CELL)


def test_putting_again_changes_nothing_and_putting_another_raises(path: Path) -> None:
    before = path.read_bytes()
    with Store(path) as store:
        store.put(CELL, Result(dict(RESULT.numbers), {"curve": RESULT.arrays["curve"].copy()}))
        assert path.read_bytes() == before
        with pytest.raises(StoreError, match=r"a different result of paper_weak.*seed 3 is already stored"):
            store.put(CELL, Result({"mistakes": 8}))
        assert store.get(CELL) == RESULT
        store.put(OTHER_CELL, RESULT)
        assert store.finished([CELL.key, OTHER_CELL.key]) == {CELL.key, OTHER_CELL.key}


def test_file_is_marked_as_ours(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (_APPLICATION_ID,)
        assert connection.execute("PRAGMA user_version").fetchone() == (_FORMAT_VERSION,)
    assert [file.name for file in path.parent.iterdir()] == ["arena.sqlite"]


def test_empty_file_left_by_a_kill_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "empty.sqlite").touch()
    with Store(tmp_path / "empty.sqlite") as store:
        store.put(CELL, RESULT)
        assert store.get(CELL) == RESULT


def make_text(path: Path) -> None:
    path.write_text("round,mistakes\n" * 100)


def make_foreign_database(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE results (key, cell, numbers, arrays, checksum)")


def make_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:50])


def make_truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-4096])


def make_truncated_in_a_page(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1000])


def make_overwritten(path: Path) -> None:
    contents = path.read_bytes()
    path.write_bytes(contents[:4096] + bytes([255]) * (len(contents) - 4096))


def make_other_format(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {_FORMAT_VERSION + 1}")


def make_without_a_page(path: Path) -> None:
    """Set a page to zero, as a disk does that has lost a sector."""
    contents = path.read_bytes()
    start = contents.index(NEEDLES[0]) // 4096 * 4096
    path.write_bytes(contents[:start] + bytes(4096) + contents[start + 4096 :])


def make_tableless(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE results")


def make_tables_unreadable(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE", b"CREATE\xf4TABLE"))


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (make_text, "not a (whole) SQLite database"),
        (make_foreign_database, "SQLite database of another program"),
        (make_short, "not a (whole) SQLite database"),
        (make_truncated, "database disk image is malformed. The file is damaged"),
        (make_truncated_in_a_page, "damaged (its end is missing)"),
        (make_overwritten, "damaged"),
        (make_without_a_page, "damaged"),
        (make_other_format, f"found format {_FORMAT_VERSION + 1}, where this onebit reads {_FORMAT_VERSION}"),
        (make_tableless, "no such table"),
        (make_tables_unreadable, "damaged"),
    ],
)
def test_files_that_are_no_store_are_refused_and_left_alone(
    path: Path, spoil: Callable[[Path], None], found: str
) -> None:
    spoil(path)
    before = path.read_bytes()
    with pytest.raises(StoreError) as caught:
        Store(path)
    for part in (str(path), found, "Move it away or choose another --out."):
        assert part in str(caught.value)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


NEEDLES = [RESULT.arrays["curve"][1500:1510].tobytes(), b'"mistakes":7', b'"seed":3']


def flip_after(path: Path, needle: bytes, bit: int = 1) -> None:
    contents = path.read_bytes()
    assert contents.count(needle) == 1
    position = contents.index(needle) + len(needle) - 1
    path.write_bytes(contents[:position] + bytes([contents[position] ^ bit]) + contents[position + 1 :])


@pytest.mark.parametrize("needle", NEEDLES, ids=["array", "number", "cell"])
@pytest.mark.parametrize("bit", [1, 128], ids=["flipped", "no text"])
def test_a_damaged_row_is_noticed_and_can_be_put_again(path: Path, needle: bytes, bit: int) -> None:
    with Store(path) as store:
        store.put(OTHER_CELL, Result({"mistakes": 1}), seconds=1.0)
    flip_after(path, needle, bit)
    damaged = path.read_bytes()
    with Store(path) as store:
        with pytest.warns(DamageWarning, match="1 of 2 stored results are damaged"):
            assert store.finished([CELL.key, OTHER_CELL.key, "missing"], warn=True) == {OTHER_CELL.key}
        with pytest.raises(StoreError, match=r"seed 3 is damaged \(wrong checksum\)\. Run again: it is played anew\.$"):
            store.get(CELL)
        assert path.read_bytes() == damaged, "reading changes nothing"
        store.put(CELL, RESULT)
        assert store.get(CELL) == RESULT
        assert store.get(OTHER_CELL) == Result({"mistakes": 1})


def test_a_row_under_the_key_of_another_is_damaged(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE results SET key = ?", (OTHER_CELL.key,))
    with Store(path) as store:
        assert store.finished([CELL.key, OTHER_CELL.key]) == set()


def test_a_result_beyond_a_row_of_sqlite_is_refused_with_its_size(path: Path) -> None:
    with Store(path) as store:
        store._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 50_000)
        store.put(OTHER_CELL, Result({}, {"curve": np.zeros(6_000)}))
        big = Cell(CELL.stream, CELL.player, 5, "1")
        with pytest.raises(StoreError, match=r"too big\. A result must fit in a row of SQLite: keep fewer rounds"):
            store.put(big, Result({}, {"curve": np.zeros(10_000)}))
        assert store.finished([CELL.key, OTHER_CELL.key, big.key]) == {CELL.key, OTHER_CELL.key}


def test_a_time_that_is_no_number_is_not_kept(path: Path) -> None:
    with Store(path) as store:
        store.put(OTHER_CELL, RESULT, seconds=float("nan"))
        assert store.seconds(OTHER_CELL) is None
        assert store.get(OTHER_CELL) == RESULT
        store._connection.execute("INSERT INTO timings VALUES (?, CAST(x'ff' AS TEXT))", (OTHER_CELL.key,))
        assert store.seconds(OTHER_CELL) is None, "damaged"


@pytest.mark.parametrize("every", [997, pytest.param(41, marks=pytest.mark.slow)])
def test_damage_anywhere_gives_right_rows_or_a_clear_error(path: Path, every: int) -> None:
    cells = [Cell(CELL.stream, CELL.player, seed, "1") for seed in range(5)]
    results = {cell.key: Result({"mistakes": cell.seed}, {"curve": np.arange(900) / 7}) for cell in cells}
    path.unlink()
    with Store(path) as store:
        for cell in cells:
            store.put(cell, results[cell.key], seconds=1.0)
    whole = path.read_bytes()
    outcomes: Counter[str] = Counter()
    for position in [*range(0, 100, 3), *range(100, len(whole), every)]:
        for damage in ("flip", "zeros", "cut"):
            spoiled = {
                "flip": whole[:position] + bytes([whole[position] ^ (1 << position % 8)]) + whole[position + 1 :],
                "zeros": whole[:position] + bytes(512) + whole[position + 512 :],
                "cut": whole[:position],
            }[damage]
            for left in path.parent.glob("arena.sqlite*"):
                left.unlink()
            path.write_bytes(spoiled)
            outcomes[outcome_of_damage(path, results, cells)] += 1
    assert set(outcomes) == {"refused", "all right", "some again"}


def outcome_of_damage(path: Path, results: dict[str, Result], cells: list[Cell]) -> str:
    before = path.read_bytes()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamageWarning)
            with Store(path) as store:
                sound = store.finished(results)
                assert all(store.get(cell) == results[cell.key] for cell in cells if cell.key in sound)
                for cell in cells:
                    store.put(cell, results[cell.key], seconds=1.0)
            with Store(path) as store:
                assert all(store.get(cell) == results[cell.key] for cell in cells)
    except StoreError as error:
        said, content = str(error), path.read_bytes()
    else:
        return "all right" if len(sound) == len(cells) else "some again"
    assert said.startswith(str(path))
    assert said.endswith("choose another --out.")
    assert content == before
    return "refused"


def test_folder_must_exist(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no folder .*missing\. Create it first"):
        Store(tmp_path / "missing" / "arena.sqlite")
    assert not (tmp_path / "missing").exists()


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot be read .*choose another --out"):
        Store(tmp_path)


def test_full_disk_loses_nothing(path: Path) -> None:
    with Store(path) as store:
        store._connection.execute("PRAGMA max_page_count = 10")
        with pytest.raises(StoreError, match=r"disk is full\. Nothing finished was lost"):
            store.put(OTHER_CELL, Result({}, {"curve": np.zeros(100_000)}))
        assert store.get(CELL) == RESULT
        assert store.finished([OTHER_CELL.key]) == set()
    with Store(path) as store:
        store.put(OTHER_CELL, Result({}, {"curve": np.zeros(100_000)}))


def test_a_locked_file_is_explained(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.experiments.store._BUSY_SECONDS", 0.01)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection, Store(path) as store:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="Another process kept the file locked"):
            store.put(OTHER_CELL, RESULT)


def test_times_are_beside_the_results_and_the_first_stays(path: Path) -> None:
    with Store(path) as store:
        assert store.seconds(CELL) is None
        store.put(OTHER_CELL, RESULT, seconds=1.5)
        before = path.read_bytes()
        store.put(OTHER_CELL, RESULT, seconds=9.0)
        assert store.seconds(OTHER_CELL) == 1.5
        assert store.get(OTHER_CELL) == RESULT
    assert path.read_bytes() == before


# Cells.

STREAM = Spec("paper_weak", {"rounds": 5_000_000})
BANDITRON = Spec("Banditron", {"exploration": 0.02})
PERCEPTRON = Spec("BanditPerceptron")


def test_labels_read_like_python() -> None:
    assert Cell(STREAM, BANDITRON, 3, "1").label == "paper_weak(rounds=5000000) × Banditron(exploration=0.02), seed 3"
    assert Spec("Tuned", {"kernel": "rational", "bias": None}).label == "Tuned(bias=None, kernel='rational')"
    assert PERCEPTRON.label == "BanditPerceptron"


def test_key_is_the_same_on_every_machine_and_day() -> None:
    key = Cell(Spec("paper_weak", {"rounds": 5, "margins": [0.1, 1e-300]}), Spec("Größe"), 3, "1").key
    assert key == "010e7653c4970132d8ae0bda6b6d07c3a9ed09e35bcef9048858b27d15c6860d"


def test_key_does_not_depend_on_the_order_of_settings() -> None:
    one, other = Spec("A", {"a": 1, "b": {"c": 2, "d": 3}}), Spec("A", {"b": {"d": 3, "c": 2}, "a": 1})
    assert one == other
    assert hash(one) == hash(other)
    assert one.label == other.label
    assert Cell(STREAM, one, 1, "1").key == Cell(STREAM, other, 1, "1").key


def test_any_change_is_another_key() -> None:
    values: list[JSON] = [1, 1.0, True, "1", None, -1, 0.1, 0.1 + 2**-56, 0.0, -0.0, [1], []]
    learners = [
        Spec("A"),
        Spec("B"),
        *(Spec("A", {"a": value}) for value in values),
        Spec("A", {"b": 1}),
        Spec("A", {"a": 1, "b": 1}),
        Spec("A", {"a": {"b": 1}}),
    ]
    streams = [STREAM, Spec("paper_weak", {"rounds": 5_000_001}), Spec("paper_strong", {"rounds": 5_000_000})]
    cells = [*grid(streams, learners, [1, 2], "1"), *grid(streams, learners, [1, 2], "2")]
    assert len({cell.key for cell in cells}) == len(cells) == len(set(cells)) == 2 * 2 * len(learners) * len(streams)


def test_settings_are_a_copy() -> None:
    given: dict[str, Any] = {"margins": [0.1, 0.2]}
    spec = Spec("A", given)
    given["margins"].append(0.3)
    assert spec == Spec("A", {"margins": [0.1, 0.2]})


@pytest.mark.parametrize(
    "value",
    [(1, 2), np.int64(3), np.bool_(True), np.arange(2), {1: "a"}, {1}, b"a", object(), float("nan")],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [0, {"deep": value}]], ids=["plain", "nested"])
def test_settings_that_json_would_change_are_refused(value: Any, wrap: Any) -> None:
    with pytest.raises(ValueError, match="settings of Banditron must survive JSON exactly: None, bool") as caught:
        Spec("Banditron", {"rounds": 1, "margin": wrap(value)})
    assert repr(value) in str(caught.value)


def test_infinity_has_one_exact_text() -> None:
    spec = Spec("BanditSVM", {"C": math.inf, "low": [-math.inf], "word": "1e999"})
    assert spec.settings == {"C": math.inf, "low": [-math.inf], "word": "1e999"}
    assert spec.canonical == '{"name":"BanditSVM","settings":{"C":Infinity,"low":[-Infinity],"word":"1e999"}}'
    assert Spec("BanditSVM", json.loads(spec.canonical)["settings"]) == spec
    assert spec.label == "BanditSVM(C=inf, low=[-inf], word='1e999')"
    keys = {Cell(STREAM, Spec("A", {"C": value}), 1, "1").key for value in (math.inf, -math.inf, "1e999", None, 1e308)}
    assert len(keys) == 5


def test_grid_is_everything_against_everything() -> None:
    cells = grid(iter([STREAM]), iter([BANDITRON, PERCEPTRON]), iter([1, 2]), "1")
    assert cells == [Cell(STREAM, learner, seed, "1") for seed in (1, 2) for learner in (BANDITRON, PERCEPTRON)]
