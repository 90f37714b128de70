"""Saved files: what comes back, what is refused, and what a crash leaves."""

import dataclasses
import datetime
import enum
import io
import json
import os
import re
import stat
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import onebit
from onebit.checks.problems import noisy_problem, snapshot
from onebit.game import Answer, _content_of, _digest
from onebit.inputs import Floats, Rows, SparseRows
from onebit.kernels import Gaussian
from onebit.learners.bandit_svm.bank import DUE, LANDMARKS, SEEN
from onebit.learners.saving import _BLANK_END, _CHECKSUM, _checksum_of, _filled_arrays
from onebit.learners.second_order import _STALE

HERE = Path(__file__).parent
PROBLEM = noisy_problem(120)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def similarity(X: Floats, Y: Floats) -> Floats:
    products: Floats = 1.0 + X @ Y.T
    return products


class Counting(onebit.Learner):
    """Guesses the label that was right most often; it keeps what people keep in attributes."""

    def __init__(self, *, classes: Any = None, seed: int = 0) -> None:
        self.classes, self.seed = classes, seed

    def _start(self) -> None:
        self.right = np.zeros(len(self.classes_))
        self.heard: dict[Any, list[int]] = {"rounds": [], ("a", 1): [0]}

    def _choose(self, row: Rows, round: int) -> tuple[int, bool, float]:
        return int(np.argmax(self.right)), False, 1.0

    def _update(self, guess: onebit.Guess, answer: Answer) -> bool:
        self.right[answer.label] += 1.0 if answer.correct else -1.0
        self.heard["rounds"].append(guess.round)
        return True

    def _probabilities(self, row: Rows) -> Floats:
        return np.asarray(np.arange(len(self.right)) == np.argmax(self.right), dtype=float)


def played(learner: onebit.Learner, rounds: int = 60) -> Any:
    onebit.play(learner, PROBLEM.X[:rounds], PROBLEM.y[:rounds], seed=2)
    return learner


def resealed(header: Callable[[dict[str, Any]], object] | None, content: bytes, **changed: Any) -> bytes:
    """Return a file with another header, other parts, and a checksum that fits."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(file, "w") as new:
        new.comment = _BLANK_END
        for name in old.namelist():
            held = changed.get(name.removesuffix(".npy").replace("/", "_"), old.read(name))
            if name == "header.json" and header is not None:
                described = json.loads(held)
                header(described)
                held = json.dumps(described)
            if isinstance(held, np.ndarray):
                part = io.BytesIO()
                np.save(part, held)
                held = part.getvalue()
            if held is not None:
                new.writestr(name, held)
    return sealed(file.getvalue())


def sealed(content: bytes) -> bytes:
    return content[:-_CHECKSUM] + _checksum_of(content)


def ticket_parts(learner: onebit.Learner, *changes: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a file for its open tickets, with some fields changed."""
    assert learner._tickets is not None
    kept = learner._tickets._kept.values()
    contents = [_content_of(each._replace(**changed)) for each, changed in zip(kept, changes, strict=False)]
    ends = np.cumsum([len(content) for content in contents])
    return {"tickets_content": np.frombuffer(b"".join(contents), np.uint8), "tickets_ends": ends}


def refuses(path: Path, content: bytes, message: str, **options: Any) -> None:
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        onebit.load(path, **options)
    assert str(path) in str(caught.value)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.onebit"


# What comes back.


@pytest.mark.parametrize(
    "labels",
    [
        ["refund", "billing", "delivery", "other"],
        [True, False],
        [3, 1, 2, 0],
        [0.5, -1.5, 2.0],
        [("a", 1), ("b", 2)],
        4,
        np.array([7, 9], dtype=np.uint8),
    ],
    ids=str,
)
def test_labels_keep_their_type(path: Path, labels: Any) -> None:
    learner = onebit.BanditPerceptron(classes=labels)
    learner.guess([1.0])
    learner.save(path)
    loaded = onebit.load(path)
    assert loaded.classes_.dtype == learner.classes_.dtype
    for ours, theirs in zip(learner._labels, loaded._labels, strict=True):
        assert type(ours) is type(theirs)
        assert ours == theirs
    assert type(loaded.classes) is type(labels)


def test_settings_that_were_set_during_a_run_wait_for_the_next(path: Path) -> None:
    learner = played(onebit.BanditSVM(budget=20, classes=4))
    learner.set_params(budget=500, C=1.0)
    learner.save(path)
    loaded: Any = onebit.load(path)
    assert (loaded.budget, loaded.C) == (500, 1.0)
    for each in (learner, loaded):
        onebit.play(each, PROBLEM.X[60:], PROBLEM.y[60:], fresh=False)
    assert snapshot(loaded) == snapshot(learner)
    assert len(loaded.support_) <= 20


def test_learners_that_have_forgotten_play_on(path: Path) -> None:
    """The watch of drift is part of what is saved, and so is a store that was emptied."""
    X = np.concatenate([np.random.default_rng(1).normal(size=(600, 2))] * 2)
    y = (X[:, 0] > 0).astype(int)
    y[600:] = 1 - y[600:]
    for kernel in ("auto", None):
        for stop in (640, 670, 700):
            learner = onebit.BanditSVM(kernel, classes=2)
            onebit.play(learner, X[:stop], y[:stop])
            learner.save(path)
            loaded = onebit.load(path)
            for each in (learner, loaded):
                onebit.play(each, X[stop:], y[stop:], fresh=False)
            assert snapshot(loaded) == snapshot(learner)


def test_the_same_learner_gives_the_same_bytes(path: Path, tmp_path: Path) -> None:
    learner = played(onebit.BanditSVM(classes=4))
    learner.save(path)
    onebit.load(path).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    with np.load(path) as parts:  # a stranger can look into it without onebit
        assert json.loads(parts["header.json"])["learner"] == "onebit.learners:BanditSVM"
        assert parts["state/members"].shape == (7, 3)


def test_frames_of_classes_and_special_floats_come_back(path: Path) -> None:
    learner = onebit.BanditSVM(C=np.inf, classes={"a": 1, "b": 2}.keys())
    learner.save(path)
    loaded: Any = onebit.load(path)
    assert np.isinf(loaded.C)
    assert loaded.classes == ["a", "b"]


# Strangers.


def test_own_kernels_and_learners_need_to_be_trusted(path: Path) -> None:
    here = Counting.__module__
    learner = played(onebit.BanditPerceptron(kernel=similarity, classes=4))
    learner.save(path)
    with pytest.raises(ValueError, match=f"trusted=.*{here}:similarity"):
        onebit.load(path)
    loaded = onebit.load(path, trusted=[similarity])
    for each in (learner, loaded):
        onebit.play(each, PROBLEM.X[60:], PROBLEM.y[60:], fresh=False)
    assert snapshot(loaded) == snapshot(learner)

    by_hand = played(Counting(classes=4))
    late = by_hand.guess(PROBLEM.X[0])
    by_hand.guess(scipy.sparse.csr_array(PROBLEM.X[:1]))
    by_hand.save(path)
    with pytest.raises(ValueError, match=f"{here}:Counting"):
        onebit.load(path)
    again: Any = onebit.load(path, trusted=[Counting])
    assert again.heard == by_hand.heard
    again.tell(late.id, True)
    by_hand.tell(late, True)
    assert snapshot(again) == snapshot(by_hand)


def test_labels_of_ones_own_kind(path: Path) -> None:
    for labels, kind in (([Colour.RED, Colour.BLUE], Colour), ([datetime.date(2024, 1, 2)] * 1, datetime.date)):
        learner: Any = onebit.UniformGuess(classes=labels)
        learner.save(path)
        with pytest.raises(ValueError, match="not onebit's own"):
            onebit.load(path)
        assert onebit.load(path, trusted=[kind]).classes == labels


def test_what_cannot_be_found_again_is_not_saved(path: Path) -> None:
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match=r"kernel cannot be saved.*lambda"):
        onebit.BanditPerceptron(kernel=lambda X, Y: X @ Y.T).save(path)

    class Local(enum.Enum):
        ONE = 1
        TWO = 2

    started = onebit.BanditPerceptron()
    onebit.play(started, [[1.0], [2.0]], [Local.ONE, Local.TWO])
    with pytest.raises(ValueError, match=r"^the classes cannot be saved"):
        started.save(path)
    with pytest.raises(ValueError, match="trusted must be a list"):
        onebit.load(path, trusted=Local)
    learner = Counting(classes=2)
    learner.begin(1)
    learner.heard = {"lock": [threading.Lock()]}  # type: ignore[list-item]
    with pytest.raises(ValueError, match="what it keeps as heard cannot be saved"):
        learner.save(path)
    learner.heard["lock"] = [learner.heard]  # type: ignore[list-item]
    with pytest.raises(ValueError, match="nested"):
        learner.save(path)
    assert path.read_bytes() == b"old"


def test_a_path_is_imported_only_if_the_caller_names_it(path: Path) -> None:
    onebit.UniformGuess(classes=2).save(path)
    content = path.read_bytes()
    for described in ({"called": ["os:system", ["true"]]}, {"import": "antigravity:x"}, {"new": ["this:x", []]}):

        def change(header: dict[str, Any], described: Any = described) -> None:
            header["settings"]["classes"] = described

        before = set(sys.modules)
        refuses(path, resealed(change, content), "not onebit's own")
        assert not {"antigravity", "this"} & (set(sys.modules) - before)


# Damage.


def test_every_cut_and_every_flipped_byte_is_noticed(path: Path) -> None:
    learner = onebit.BanditPerceptron(classes=2)
    learner.guess([1.0])
    learner.save(path)
    content = path.read_bytes()
    generator = np.random.default_rng(0)
    for at in generator.integers(len(content), size=60).tolist():
        refuses(path, content[:at], "cannot be loaded: (it is no onebit model, or it was cut off|it was changed)")
        flipped = bytearray(content)
        flipped[at] ^= 1 << int(generator.integers(8))
        refuses(path, bytes(flipped), "cannot be loaded")
    refuses(path, b"", "cut off")
    refuses(path, content + b"x", "cut off")


def test_other_formats_are_refused(path: Path) -> None:
    played(onebit.BanditPerceptron(classes=4)).save(path)
    newer = path.read_bytes().replace(b"onebit model 1,", b"onebit model 2,")
    refuses(path, sealed(newer), "it is of format 2, and this onebit reads format 1: update onebit")


def test_an_enemys_numbers_are_refused(path: Path) -> None:
    def header(**changed: Any) -> Callable[[dict[str, Any]], object]:
        return lambda held: held.update(changed)

    learner = played(onebit.BanditSVM(None, classes=4))
    learner.guess(PROBLEM.X[0])
    learner.guess(scipy.sparse.csr_array(PROBLEM.X[:1]))
    learner.save(path)
    content, state, tickets = path.read_bytes(), learner._state.arrays, np.array([60, 61])
    onebit.load(path)
    refuses(path, resealed(header(n_features=10**12), content), "too small")
    refuses(path, resealed(header(n_features=6), content), "shape")
    refuses(path, resealed(header(labels={"objects": [[2], ["a", "b"]]}), content), "shape")
    refuses(path, resealed(header(max_open_tickets=-1), content), "max_open_tickets")
    refuses(path, resealed(header(seed=-1), content), "seed")
    refuses(path, resealed(header(in_force=[]), content), "cannot be loaded")
    refuses(path, resealed(header(own={"_row_shape": [99]}), content), "_row_shape")
    refuses(path, resealed(header(learner="onebit.kernels:Linear"), content), "no learner")
    for name, changed in {
        "state_columns": state.columns + 10**6,
        "state_examples": state.examples + 10**6,
        "state_counts": state.counts + 10**6,
        "state_weights": state.weights[:-1],
        "state_watch": state.watch.astype(np.float32),
        "state_guesses": None,
        "tickets_ends": tickets,
        "tickets_content": np.zeros(0, np.uint8),
    }.items():
        refuses(path, resealed(None, content, **{name: changed}), "cannot be loaded")
    for changed in ({"index": 60}, {"index": -1}, {"round": 10**6}, {"scores": np.zeros(80)}, {"row": np.ones((2, 5))}):
        parts = ticket_parts(learner, {}, changed)
        refuses(path, resealed(None, content, **parts), "cannot be loaded")
    parts = ticket_parts(learner, {"round": 61}, {"round": 60})
    refuses(path, resealed(None, content, **parts), "in the order of their rounds")


def test_a_small_file_cannot_ask_for_a_large_memory(path: Path) -> None:
    learner = played(onebit.BanditPerceptron(classes=4))
    learner.save(path)
    huge = np.lib.format.header_data_from_array_1_0(np.zeros(1)) | {"shape": (1 << 50, 4)}
    part = io.BytesIO()
    np.lib.format.write_array_header_1_0(part, huge)
    refuses(path, resealed(None, path.read_bytes(), state_weights=part.getvalue()), "bytes where its shape")
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = _BLANK_END
        archive.writestr("header.json", " " * 10**7)
    refuses(path, sealed(bomb.getvalue()), "must not be compressed")


def test_expired_tickets_cannot_ask_for_a_large_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = onebit.UniformGuess(classes=2)
    learner.max_open_tickets = 1
    for _ in range(2):
        learner.guess([1.0])
    learner.save(path)
    n = 10_000  # each on a page of its own
    apart = {"round": 256 * np.arange(n), "digest": np.ones((n, 8), np.uint8)}
    parts = {f"tickets_expired_{name}": array for name, array in apart.items()}
    parts |= ticket_parts(learner, {"round": 256 * n})
    content = resealed(lambda held: held["counts"].update(n_rounds_=256 * n + 1), path.read_bytes(), **parts)
    path.write_bytes(content)
    onebit.load(path)
    monkeypatch.setattr("onebit.machine_memory.memory", lambda: 1e7)
    refuses(path, content, "GiB")


def test_deeply_nested_headers_are_refused(path: Path) -> None:
    onebit.UniformGuess(classes=2).save(path)
    content = path.read_bytes()
    for deep in ("[" * 200 + "]" * 200, "[" * 100_000 + "]" * 100_000, '{"x":NaN}', "1" * 10_000):
        text = resealed(None, content, **{"header.json": f'{{"onebit":"model","version":2,"settings":{deep}}}'})
        refuses(path, text, "cannot be loaded")


def test_an_enemys_tickets_are_refused(path: Path) -> None:
    learner = onebit.Banditron(classes=3)
    learner.guess(scipy.sparse.csr_array(np.ones((1, 5))))
    learner.save(path)
    content = path.read_bytes()
    # Differences between these overflow, and look like those of rising numbers.
    astray = SparseRows(np.ones(5), np.array([0, 2**62, 10 - 2**63, 3, 4]), np.array([0, 5]), 5)
    changes: list[dict[str, Any]] = [{"row": astray}, {"scores": np.empty(0)}]
    changes += [{"scores": each} for each in (np.full(3, -np.inf), np.full(3, np.nan), np.array([np.inf, 0.0, 0.0]))]
    for changed in changes:
        refuses(path, resealed(None, content, **ticket_parts(learner, changed)), "no guess is made from")
    path.write_bytes(resealed(None, content, tickets_ends=ticket_parts(learner, {})["tickets_ends"].astype(">i8")))
    loaded = onebit.load(path)
    loaded.tell(learner._tickets._latest.id, True)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "changed",
    [
        {"row": np.ones((1, 50))},
        {"row": np.ones((0, 3))},
        {"row": SparseRows(np.ones(1), np.array([10**6]), np.array([0, 1]), 3)},
        {"row": SparseRows(np.ones(1), np.array([0]), np.array([0, 10**6]), 3)},
        {"row": SparseRows(np.ones(1), np.array([0]), np.array([0, 1]), 10**6)},
        {"index": -1, "label": 2},
        {"index": 3, "label": 3},
        {"scores": np.zeros(9)},
    ],
)
def test_what_is_left_of_a_ticket_may_be_made_up(path: Path, changed: dict[str, Any]) -> None:
    """A file holds eight bytes of an expired ticket: an enemy knows a ticket that fits what he wrote."""
    learner = onebit.BanditPerceptron(classes=3)
    learner.max_open_tickets = 1
    first, *_ = [learner.guess(np.ones(3)) for _ in range(2)]
    learner.save(path)
    forged = first._replace(**changed)
    digest = np.array([_digest(_content_of(forged))], np.uint64).view(np.uint8)[None]
    path.write_bytes(resealed(None, path.read_bytes(), tickets_expired_digest=digest))
    with pytest.raises(ValueError, match=r"edited|no guess is made from"):
        onebit.load(path).tell(forged, True)


def test_an_enemys_facts_are_refused(path: Path) -> None:
    learner = played(onebit.BanditSVM(None, classes=4))
    learner.save(path)
    content, state = path.read_bytes(), learner._state.arrays
    columns = state.columns[: learner._state.size].copy()
    columns[:, 0] = len(state.weights) - 1  # the constant has no scale
    refuses(path, resealed(None, content, state_columns=columns), "constant")
    refuses(path, resealed(None, content, state_guesses=state.guesses + 2**62), "impossibly large")
    learner = played(onebit.BanditSVM(classes=4))
    learner.save(path)
    content, state = path.read_bytes(), learner._state.arrays
    refuses(path, resealed(None, content, state_members=state.members * np.nan), "losses")
    due = state.counts.copy()
    due[DUE], due[SEEN:] = 2, 0
    refuses(path, resealed(None, content, state_counts=due), "due")
    many = state.counts.copy()
    many[LANDMARKS] += 1
    refuses(path, resealed(None, content, state_counts=many), "landmark")
    for name in ("landmarks", "landmark_changes", "landmark_weights", "row_changes", "row_weights", "mixture"):
        for bad in (np.nan, np.inf):
            changed = _filled_arrays(learner._state)[name].copy()
            changed.flat[0] = bad
            refuses(path, resealed(None, content, **{f"state_{name}": changed}), name)
    refuses(path, resealed(None, content, state_mixture=-state.mixture), "negative")
    # More landmarks than features: compiled code would write behind its arrays.
    more = np.zeros((len(state.landmarks), 118))
    refuses(path, resealed(None, content, state_landmarks=more), "landmarks has shape")


ENEMY_ARRAYS: list[tuple[onebit.Learner, dict[str, float]]] = [
    (onebit.SOBA(classes=2), {"matrix": -1.0, "inverse": np.nan, "tallies": -1.0}),
    (onebit.SOBA(classes=2, diagonal=True), {"matrix": 0.0, "worn": 5000}),
    (onebit.PNewtron(classes=2, diagonal=True), {"matrix": 0.5, "worn": 5000, "target": np.inf}),
    (onebit.LinUCB(classes=2), {"grams": 0.0, "inverses": np.nan, "weights": np.inf}),
    (onebit.EpsilonGreedy(scores="logistic", classes=2), {"grams": -1.0, "weights": np.nan}),
    (onebit.Majority(classes=2), {"counts": -1.0}),
    (onebit.AdaptiveSurrogate(classes=2), {"sums": -1.0, "weights": np.nan}),
    (onebit.BanditHalving(3, classes=2), {"weights": np.nan, "alive": 0}),
]


@pytest.mark.parametrize(("learner", "enemys"), ENEMY_ARRAYS, ids=lambda given: str(given)[:30])
def test_what_no_learner_can_have_learned_is_refused(
    path: Path, learner: onebit.Learner, enemys: dict[str, float]
) -> None:
    learner.begin(2)
    learner.save(path)
    onebit.load(path)
    content = path.read_bytes()
    for name, value in enemys.items():
        array = getattr(learner._state.arrays, name)
        refuses(path, resealed(None, content, **{f"state_{name}": np.full_like(array, value)}), "cannot be loaded")


def test_a_regression_soon_has_an_inverse_whatever_a_file_says(path: Path) -> None:
    learner = played(onebit.LinUCB(classes=4), 100)
    learner.save(path)
    content, inverses = path.read_bytes(), learner._state.arrays.inverses
    path.write_bytes(resealed(None, content, state_inverses=-inverses))
    loaded: Any = onebit.load(path)
    for label in range(4):
        loaded.learn_from(PROBLEM.X[:1], [label], False)
    now = loaded._state.arrays
    assert np.allclose(now.grams @ now.inverses, np.eye(PROBLEM.X.shape[1]))


def test_an_inverse_that_rounding_has_spoiled_is_loaded(path: Path) -> None:
    """Rows from 1e-9 to 1e9: nobody is to lose what was learned, and the loaded one plays on as the other."""
    generator = np.random.default_rng(1343)
    X = generator.normal(size=(40, 2)) * 10.0 ** generator.uniform(-9, 9, size=(40, 1))
    learner: Any = onebit.LinUCB(classes=2)
    onebit.play(learner, X, generator.integers(2, size=40))
    now = learner._state.arrays
    off = np.abs(now.grams @ now.inverses - np.eye(2)).max()
    assert off > 1e-5 * np.linalg.cond(now.grams).max(), "the rows do not test what they are for"
    learner.save(path)
    loaded = onebit.load(path)
    for each in (learner, loaded):
        each.learn_from(X, [0] * 40, False)
    assert snapshot(loaded) == snapshot(learner)


def test_a_worn_inverse_may_be_anything(path: Path) -> None:
    """It is made anew before anybody reads it."""
    learner = played(onebit.SOBA(0.3, classes=4))
    expected = learner.weights_
    learner.save(path)
    worn = {"state_worn": np.array([_STALE]), "state_inverse": -learner._state.arrays.inverse}
    path.write_bytes(resealed(None, path.read_bytes(), **worn))
    loaded: Any = onebit.load(path)
    loaded.guess(PROBLEM.X[0])
    np.testing.assert_allclose(loaded.weights_, expected, rtol=1e-9)


def test_a_small_file_cannot_make_a_learner_take_much(path: Path) -> None:
    for learner, much in (
        (onebit.BanditHalving(3, classes=2), lambda held: held["in_force"].update(hypotheses=10**7)),
        (onebit.SOBA(classes=2), lambda held: held.update(n_features=2500, padding="x" * 3000)),
        (onebit.LinUCB(classes=2), lambda held: held.update(n_features=2500, padding="x" * 3000)),
    ):
        learner.begin(1)
        learner.save(path)
        refuses(path, resealed(much, path.read_bytes()), "GiB")
    wrapped = onebit.Wrapped(refit="geometric", classes=2)
    wrapped.begin(1)
    wrapped.save(path)
    within = {"new": ["onebit.learners:BanditHalving", [], {"dict": [["hypotheses", 10**7]]}]}
    rows = {"values_1": np.ones((2, 1)), "values_2": np.zeros(2, np.int64), "values_3": np.array([True, False])}
    much = lambda held: held["in_force"].update(estimator=within)  # noqa: E731
    refuses(path, resealed(much, path.read_bytes(), **rows), "GiB")


def test_our_own_are_made_by_their_constructors(path: Path) -> None:
    """Kernels and learners need no trust: a file must not make one that does not check, or has other methods."""
    onebit.BanditPerceptron(Gaussian(), classes=3).save(path)
    content = path.read_bytes()
    unit = {"made": ["onebit.kernels:Linear", [["normalize", True]]]}
    for kernel, state in (
        ("Gaussian", [["width", 1.0], ["prepare", unit]]),
        ("Polynomial", [["degree", 10**12]]),
    ):
        described = {"new": [f"onebit.kernels:{kernel}", [], {"dict": state}]}
        changed = resealed(lambda held, new=described: held["settings"].update(kernel=new), content)  # type: ignore[misc]
        refuses(path, changed, "cannot be loaded")
    base = {"learner": "onebit.learners:Learner", "settings": {}}
    refuses(path, resealed(lambda held: held.update(base), content), "Learner")


def test_a_count_is_no_list_of_labels(path: Path) -> None:
    played(onebit.NearestNeighbor(classes=4)).save(path)
    refuses(path, resealed(lambda held: held.update(labels=1 << 24), path.read_bytes()), "no list")


@pytest.mark.parametrize("classes", [np.int64(3), {"b", "c", "a"}, frozenset(("b", "a")), range(3)])
def test_whatever_lists_the_classes_comes_back(path: Path, classes: Any) -> None:
    learner = onebit.UniformGuess(classes=classes)
    learner.guess([1.0])
    learner.save(path)
    loaded = onebit.load(path)
    loaded.begin(1)  # afresh, by the setting
    assert loaded.classes_.tolist() == learner.classes_.tolist()


@dataclasses.dataclass
class Tally:
    step: int = 1
    total: int = dataclasses.field(default=0, init=False)


class Flags(enum.Flag):
    ONE = 1
    TWO = 2


class Keeping(Counting):
    """Keeps what is easily lost: an array without a dimension, one in another order, a count, joined flags."""

    def _start(self) -> None:
        super()._start()
        self.bias, self.turned = np.array(0.5), np.arange(6.0).reshape(2, 3).T
        self.tally, self.flags = Tally(), Flags.ONE | Flags.TWO
        self.tally.total = 7


def test_what_a_learner_by_hand_keeps_comes_back_as_it_was(path: Path) -> None:
    learner = Keeping(classes=2)
    learner.guess([1.0])
    learner.save(path)
    loaded: Any = onebit.load(path, trusted=[Keeping, Tally, Flags])
    assert loaded.bias.shape == ()
    assert loaded.turned.flags.f_contiguous
    assert loaded.turned.tolist() == learner.turned.tolist()
    assert (loaded.tally, loaded.tally.total, loaded.flags) == (learner.tally, 7, learner.flags)


# Where files cannot be written.


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, path: Path) -> None:
    learner = played(onebit.BanditPerceptron(classes=4))
    with pytest.raises(OSError, match="cannot be written"):
        learner.save(tmp_path)
    with pytest.raises(OSError, match="cannot be written"):
        learner.save(tmp_path / "nowhere" / "model")
    with pytest.raises(FileNotFoundError):
        onebit.load(path)
    with pytest.raises(IsADirectoryError):
        onebit.load(tmp_path)
    script = (
        "import resource, signal, sys, numpy as np, onebit\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "learner = onebit.BanditPerceptron(classes=2)\n"
        "learner.guess(np.ones(5000))\n"
        "learner.save(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "learner.tell(learner.guess(np.ones(5000)), True)\n"
        "try:\n    learner.save(sys.argv[1])\nexcept OSError as error:\n    print(error)\n"
        "print(onebit.load(sys.argv[1]).n_rounds_)\n"
    )
    run = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert re.search(r"cannot be written \(File too large\)", run.stdout)
    assert run.stdout.split()[-1] == "1"
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_without_permission_nothing_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(PermissionError, match="cannot be written"):
        onebit.UniformGuess(classes=2).save(folder / "model")


def test_a_link_stays_a_link(tmp_path: Path, path: Path) -> None:
    link = tmp_path / "link"
    path.write_bytes(b"old")
    link.symlink_to(path)
    onebit.UniformGuess(classes=2).save(str(link))
    assert link.is_symlink()
    assert isinstance(onebit.load(path), onebit.UniformGuess)


def kills(n: int, folder: Path) -> None:
    command = [sys.executable, str(HERE.parent / "kill_saving.py"), str(n), str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.split()[-1] == str(n), run.stdout


@pytest.mark.ci
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_killed_save_leaves_the_old_file_or_the_new(tmp_path: Path) -> None:
    kills(5, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_hundred_killed_saves_leave_the_old_file_or_the_new(tmp_path: Path) -> None:
    kills(100, tmp_path)


@pytest.mark.ci
def test_mutated_files_load_or_are_refused() -> None:
    command = [sys.executable, str(HERE.parent / "fuzz_saved.py"), "--seconds", "2"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_file_of_another_version_says_what_to_do(path: Path) -> None:
    played(onebit.BanditSVM(classes=4)).save(path)
    refuses(path, resealed(None, path.read_bytes(), state_watch=None), "another version")
