"""A program that throws damaged matrices at everything public that takes rows, and judges what comes back.

It runs in a process of its own, so that a crash is a failed test rather than a dead suite. A plain-Python reading of
each format is the judge: what it can read must be accepted and mean the same as its dense twin, all else must be
refused by a ValueError or TypeError that leaves the learner as it was. Prints how often each outcome was seen.
"""

import copy
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse

from foundation_checks import SPARSE_FORMATS
from onebit.checks.problems import fresh, guesses_of, noisy_problem, scales_rows, snapshot
from onebit.inputs import check_rows
from onebit.kernels import Linear
from onebit.learners import Learner, all_learners
from onebit.learners.run import play_stream
from onebit.streams import preprocess
from onebit.streams.data_set import make_data_set
from onebit.theory import margin

N_COLUMNS = 5
LABELS = noisy_problem(60).y
WRONG = (-1, -2, N_COLUMNS, N_COLUMNS + 1, 10**8, -(10**8), 2**31 - 1, -(2**31), 2**40, -(2**63))
BEYOND_DENSE = 10**6
READ_BY_SCIPY = ("bsr", "dia", "lil", "dok")  # played whole only


# Damage: each takes a whole matrix and breaks it, or changes only how it looks.


def some_matrix(generator: np.random.Generator, n_rows: int) -> Any:
    """Return a whole sparse matrix of a random format."""
    X = np.round(generator.normal(size=(n_rows, N_COLUMNS)), 2) * (generator.random((n_rows, N_COLUMNS)) < 0.6) / 4.0
    kind = np.dtype(str(generator.choice(["f8", "f8", "f4", "i1", "?"])))
    container = f"{generator.choice(SPARSE_FORMATS)}_{generator.choice(['array', 'matrix'])}"
    return getattr(scipy.sparse, container)((4.0 * X if kind.kind == "i" else X).astype(kind))


def parts(X: Any) -> list[str]:
    """Return the names of a matrix's arrays."""
    if X.format == "coo":
        return ["data", "row", "col"] if hasattr(X, "row") else ["data"]
    return ["data", "indices", "indptr"]


def change_number(X: Any, generator: np.random.Generator) -> None:
    """Write a wrong number into an array of places."""
    wrong = int(generator.choice(WRONG))
    name = str(generator.choice([part for part in parts(X) if part != "data"]))
    array = np.array(getattr(X, name), dtype=np.int64 if abs(wrong) > 2**31 else None)
    if len(array):
        array[generator.integers(len(array))] = wrong
    set_part(X, name, array)


def set_part(X: Any, name: str, value: Any) -> None:
    """Replace an array without being asked whether it fits."""
    if X.format == "coo" and name in ("row", "col"):
        row, col = X.coords
        X.coords = (value, col) if name == "row" else (row, value)
    else:
        setattr(X, name, value)


def change_array(X: Any, generator: np.random.Generator) -> None:
    """Shorten, lengthen, shuffle or retype an array, or put something else in its place."""
    name = str(generator.choice(parts(X)))
    array = np.asarray(getattr(X, name))
    changes: list[Callable[[], Any]] = [
        lambda: array[:-1],
        lambda: array[1:],
        lambda: array[:0],
        lambda: np.concatenate([array, array]),
        lambda: np.concatenate([array, array[:1]]),
        lambda: generator.permutation(array),
        lambda: array[::-1],
        lambda: array[None],
        lambda: array.tolist(),
        lambda: None,
        lambda: 3,
        lambda: np.float64(2.0),
        lambda: array.astype(object),
        lambda: np.ma.MaskedArray(array, mask=generator.random(array.shape) < 0.2),
    ]
    if array.dtype != object:
        wide = array.astype(np.float64)
        changes += [
            lambda: array.astype(array.dtype.newbyteorder(">")),
            lambda: np.repeat(array, 2)[::2] if array.ndim == 1 else np.asfortranarray(array),
            lambda: wide,
            lambda: array.astype(str),
            lambda: wide.astype(">f4"),
            lambda: array.astype(complex),
            lambda: np.where(generator.random(array.shape) < 0.2, np.nan, wide),
            lambda: np.where(generator.random(array.shape) < 0.2, np.inf, wide),
            lambda: np.where(generator.random(array.shape) < 0.1, np.uint64(2**64 - 1), np.abs(wide).astype(np.uint64)),
        ]
    set_part(X, name, changes[generator.integers(len(changes))]())


def change_shape(X: Any, generator: np.random.Generator) -> None:
    """Let a matrix say that it has another shape."""
    n, d = X.shape
    shapes = [(n + 1, d), (n - 1, d), (n, d - 1), (n, d + 3), (n, 10**12), (10**15, d), (n, -1), (n,), (n, d, 1)]
    shapes += [(d, n), (n, 2.5), (n, "5"), None, (0, d), (n, 2**63), (n, True)]  # type: ignore[list-item]
    X._shape = shapes[generator.integers(len(shapes))]


def change_flags(X: Any, generator: np.random.Generator) -> None:
    """Let a matrix say that its entries are in order, and put them out of order."""
    if X.format in ("csr", "csc") and len(X.indices):
        X.has_sorted_indices = X.has_canonical_format = True
        X.indices = generator.integers(0, min(X.shape), size=len(X.indices)).astype(X.indices.dtype)


def lose_something(X: Any, generator: np.random.Generator) -> None:
    """Take an attribute away."""
    names = [name for name in ("_shape", "data", "indices", "indptr") if name in vars(X)]
    delattr(X, str(generator.choice(names)))


def leave_alone(X: Any, generator: np.random.Generator) -> None:
    """Do nothing."""


# Some twice: they have more ways to go wrong.
DAMAGES = (
    leave_alone,
    change_number,
    change_number,
    change_array,
    change_array,
    change_shape,
    change_flags,
    lose_something,
)


# The judge.


def whole_numbers(values: Any) -> list[int]:
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        raise ValueError("masked")
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError("not whole numbers")
    return [int(value) for value in array]


def numbers(values: Any, n_dimensions: int) -> Any:
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        raise ValueError("masked")
    array = np.asarray(values)
    if array.dtype == object and all(isinstance(value, (bool, int, float, np.number)) for value in array.flat):
        array = array.astype(np.float64)  # Python's numbers are numbers
    if array.ndim != n_dimensions or array.dtype.kind not in "fiub":
        raise ValueError("not real numbers")
    return array


def compressed(X: Any, n_lists: int, data: Any) -> Iterator[tuple[int, int, int]]:
    """Yield the list, the place and the position of every entry."""
    starts, places = whole_numbers(X.indptr), whole_numbers(X.indices)
    if len(starts) != n_lists + 1 or starts[0] != 0 or starts[-1] > len(places) or len(places) != len(data):
        raise ValueError("starts")
    if any(after < before for before, after in pairwise(starts)):
        raise ValueError("starts")
    for i in range(n_lists):
        for at in range(starts[i], starts[i + 1]):
            yield i, places[at], at


def entries(X: Any, n: int, d: int) -> tuple[Any, list[tuple[int, int, Any]]]:
    """Return the dtype and every entry, as stored."""
    if X.format in ("csr", "csc"):
        data = numbers(X.data, 1)
        found = [(i, j, data[at]) for i, j, at in compressed(X, n if X.format == "csr" else d, data)]
        return data.dtype, found if X.format == "csr" else [(j, i, value) for i, j, value in found]
    if X.format == "bsr":
        data = numbers(X.data, 3)
        _, R, C = data.shape
        if R * C == 0 or n % R or d % C:
            raise ValueError("blocks")
        blocks = list(compressed(X, n // R, data))
        if any(not 0 <= j < d // C for _, j, _ in blocks):
            raise ValueError("outside")
        return data.dtype, [
            (i * R + r, j * C + c, data[at, r, c]) for i, j, at in blocks for r in range(R) for c in range(C)
        ]
    if X.format == "coo":
        data, (rows, columns) = numbers(X.data, 1), X.coords
        return data.dtype, list(zip(whole_numbers(rows), whole_numbers(columns), data, strict=True))
    if X.format == "dia":
        data, offsets = numbers(X.data, 2), whole_numbers(X.offsets)
        if len(data) != len(offsets) or len(set(offsets)) != len(offsets) or max(offsets, default=0) >= 2**63:
            raise ValueError("diagonals")
        places = [(j - k, j, data[s, j]) for s, k in enumerate(offsets) for j in range(min(d, data.shape[1]))]
        return data.dtype, [(i, j, value) for i, j, value in places if 0 <= i < n and value != 0]
    if X.format == "lil":
        if len(X.rows) != n or len(X.data) != n:
            raise ValueError("rows")
        return X.dtype, [
            (i, j, value)
            for i in range(n)
            for j, value in zip(whole_numbers(X.rows[i]), numbers(X.data[i], 1), strict=True)
        ]
    if any(len(place) != 2 for place in X._dict):
        raise ValueError("places")
    return X.dtype, [(*whole_numbers(place), value) for place, value in X._dict.items()]


def dense_twin(X: Any) -> Any:
    """Return the dense matrix that a sparse one means, None if it means none; "large" if that would be too large."""
    try:
        n, d = X.shape
        if any(type(size) is not int or size < 1 for size in (n, d)):
            return None
        kind, found = entries(X, n, d)
    except (ValueError, TypeError, AttributeError):
        return None
    if any(not (0 <= i < n and 0 <= j < d) for i, j, _ in found):
        return None
    if n * d > BEYOND_DENSE:
        return "large"
    twin = np.zeros((n, d), dtype=np.dtype(kind).newbyteorder("="))
    with np.errstate(over="ignore", invalid="ignore"):
        for i, j, value in found:
            twin[i, j] += value
    return twin if np.isfinite(twin.astype(np.float64)).all() else None


# What is called with it.

Call = Callable[[Learner, Any], Any]


def labels_for(X: Any) -> Any:
    try:
        return LABELS[: X.shape[0]]
    except (AttributeError, TypeError):
        return LABELS


def one_round(X: Any) -> Any:
    return X[0] if isinstance(X, np.ndarray) and len(X) == 1 else X


def call_guess(learner: Learner, X: Any) -> Any:
    guess = learner.guess(one_round(X))
    correct = guess.index == 0
    learner.tell(guess, correct, **({"label": learner.classes_[0]} if learner.full_information else {}))
    return np.array([guess.index])


CALLS: dict[str, Call] = {
    "play": lambda learner, X: guesses_of(learner, X, labels_for(X), seed=2),
    "play on": lambda learner, X: guesses_of(learner, X, labels_for(X), fresh=False),
    "play by rounds": lambda learner, X: guesses_of(learner, X, labels_for(X), fresh=False, engine="rounds"),
    "play_stream": lambda learner, X: play_stream(learner, X, labels_for(X), keep_guesses=True).guesses,
    "fit": lambda learner, X: learner.fit(X, labels_for(X)).predict(X),
    "partial_fit": lambda learner, X: learner.partial_fit(X, labels_for(X)).classes_,
    "predict": lambda learner, X: np.where(learner.predict(X) >= 0, 1, 0),
    "decision_function": lambda learner, X: learner.decision_function(X),
    "guess": call_guess,
    "probabilities": lambda learner, X: learner.probabilities(one_round(X)).ravel(),
    "kernel": lambda _, X: Linear()(X),
    "margin": lambda _, X: margin(X, labels_for(X), classes=4).radius,
    "preprocess": lambda _, X: preprocess(scipy.sparse.csr_array(X) if isinstance(X, np.ndarray) else X, "online"),
    "data set": lambda _, X: make_data_set("fuzz", X, labels_for(X), "fuzz").X,
    "check_rows": lambda _, X: check_rows(X).shape,
}


def outcome(call: Call, learner: Learner, X: Any, *, is_large: bool = False) -> Any:
    """Return what a call returns as an array, or None if it refuses; any other error ends the program."""
    known = snapshot(learner)
    try:
        result = call(learner, X)
        return np.asarray(result.toarray() if scipy.sparse.issparse(result) else result)
    except (ValueError, TypeError, MemoryError) as error:
        if isinstance(error, MemoryError) and not is_large:
            raise
        assert snapshot(learner) == known, "refused, and changed the learner"
        return None


def judge(call: Call, learner: Learner, X: Any) -> str:
    """Return which outcome it was; raise AssertionError if it is none of those allowed."""
    twin = dense_twin(X)
    other = copy.deepcopy(learner)
    if isinstance(twin, str):
        return "large: accepted" if outcome(call, learner, X, is_large=True) is not None else "large: refused"
    got = outcome(call, learner, X)
    expected = outcome(call, other, twin) if twin is not None else None
    if expected is None:
        assert got is None, "accepted what should be refused"
        return "refused: damaged" if twin is None else "refused: does not fit"
    assert got is not None, "refused what should be accepted"
    assert got.shape == expected.shape, "another shape"
    assert np.allclose(got, expected, rtol=1e-12, atol=1e-12), "another result"
    mine, theirs = snapshot(learner), snapshot(other)
    assert mine["counts"] == theirs["counts"]
    for name in mine:
        if name != "counts":
            assert np.array_equal(np.frombuffer(mine[name]), np.frombuffer(theirs[name])), "learned other things"
    return "the same game"


def main(seed: int, cases: int, examples: int) -> None:
    generator = np.random.default_rng(seed)
    problem = noisy_problem(20, n_features=N_COLUMNS)
    learners = [learner for cls in all_learners() for learner in list(cls.examples())[:examples]]
    # Where columns are scaled, sparse rows are another game than dense ones.
    trained = [fresh(learner, classes=4, **({"scale": None} if scales_rows(learner) else {})) for learner in learners]
    for learner in trained:
        learner.fit(problem.X, problem.y)
    seen: Counter[str] = Counter()
    for case in range(cases):
        name = str(generator.choice(list(CALLS)))
        is_single = name in ("guess", "probabilities") and generator.random() < 0.8
        X = some_matrix(generator, 1 if is_single else int(generator.integers(1, 12)))
        damage = DAMAGES[generator.integers(len(DAMAGES))]
        if X.format in READ_BY_SCIPY and damage is not leave_alone:
            X = X.tocsr()
        learner = copy.deepcopy(trained[int(generator.integers(len(trained)))])
        damage(X, generator)
        try:
            seen[judge(CALLS[name], learner, X)] += 1
        except BaseException:
            print(f"case {case}: {name}, {learner}, {type(X).__name__}, {damage.__name__}", file=sys.stderr)
            print(vars(X), file=sys.stderr)
            raise
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
