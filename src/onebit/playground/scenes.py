"""Sources of a session's rounds (data sets of the paper, tables of the user, drawn points), and their picture."""

import tempfile
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse

from onebit.inputs import Floats, Integers, check_number, check_seed
from onebit.reporting.text import printable, shortened
from onebit.streams import bundled, paper_strong, paper_weak, preprocess, wedges
from onebit.streams.files import ending, read_table
from onebit.streams.reading import Reading

MOST_ROUNDS = 5000  # maximum number of rounds in a session
_MOST_POINTS = 300  # maximum number of drawn points
DRAWN_LABELS = ("blue", "orange", "green", "pink")  # labels of drawn points
_MOST_CELLS = 500_000  # maximum rows × columns of a table, after one-hot encoding
_MOST_COLUMNS = 1000  # maximum columns of a table: a picture has thousands of such rows
_MOST_CLASSES = 20
_LONGEST_NAME = 40
_BORDER = 0.08  # margin of a picture, as a fraction of the data's width
# A table of two million characters takes about 100 MB and two seconds.
_MOST_GIB = 0.25
_ONE_AT_A_TIME = threading.Lock()


class _Picture(NamedTuple):
    """A plane in the space of rows, ``origin + scale · (place @ axes)``; other rows are projected onto it."""

    caption: str  # description of the plane
    origin: Floats
    scale: Floats  # scale of each column; 0 if constant
    axes: Floats  # two unit vectors (2 × d)
    box: tuple[float, float, float, float]  # left, bottom, right, top: a square

    def places(self, X: Floats) -> Floats:
        """Project rows into the plane."""
        return np.asarray(((X - self.origin) / np.where(self.scale > 0.0, self.scale, 1.0)) @ self.axes.T)

    def rows(self, places: Floats) -> Floats:
        """Return the rows at points of the plane."""
        return np.asarray(self.origin + self.scale * (places @ self.axes))

    def grid(self, size: int) -> Floats:
        """Return the rows at the centres of size × size cells, from the top left, line by line."""
        left, bottom, right, top = self.box
        steps = (np.arange(size) + 0.5) / size
        x, y = np.meshgrid(left + (right - left) * steps, top - (top - bottom) * steps)
        return self.rows(np.column_stack([x.ravel(), y.ravel()]))


def _flat_picture(X: Floats, caption: str, box: tuple[float, float, float, float] | None = None) -> _Picture:
    """Return the plane of the first two columns, at the first row's values of all others."""
    axes = np.eye(2, X.shape[1])
    origin = X[0] * (np.arange(X.shape[1]) >= 2)
    return _Picture(caption, origin, np.ones(X.shape[1]), axes, box or _square(X[:, :2]))


def _widest_picture(X: Floats) -> _Picture:
    """Return the plane of the first two principal components of the standardised rows."""
    origin, scale = X.mean(axis=0), X.std(axis=0)
    spread = (X - origin) / np.where(scale > 0.0, scale, 1.0)
    _, lengths, directions = np.linalg.svd(spread, full_matrices=False)
    axes = np.zeros((2, X.shape[1]))
    axes[: len(directions[:2])] = directions[:2]
    share, n_varying = float((lengths[:2] ** 2).sum() / max((lengths**2).sum(), 1e-300)), int((scale > 0).sum())
    caption = (
        f"the two principal components of {n_varying} columns, which hold {share:.0%} of their spread; "
        "the background is that plane, and points off it are projected onto it"
        if n_varying != 1
        else "the one column that varies, from left to right"
    )
    return _Picture(caption, origin, scale, axes, _square(spread @ axes.T))


def _square(places: Floats) -> tuple[float, float, float, float]:
    low, high = places.min(axis=0), places.max(axis=0)
    centre, half = (low + high) / 2.0, float((high - low).max()) * (0.5 + _BORDER) or 1.0
    left, bottom = (centre - half).tolist()
    right, top = (centre + half).tolist()
    return left, bottom, right, top


class Scene:
    """Rows `X` with labels `y`, a title and a description, and their picture; rounds are the rows in some order."""

    def __init__(
        self, shown: tuple[str, str], X: Floats, y: Integers, labels: Sequence[str], picture: _Picture, order: Integers
    ) -> None:
        (self.title, self.description), self.picture = shown, picture
        self.labels = tuple(shortened(printable(label), _LONGEST_NAME) for label in labels)
        self.X, self.y, self._order, self.n_features = X, y, order, X.shape[1]

    def take(self, start: int, count: int) -> tuple[Floats, Integers]:
        """Return rows and labels of at most `count` rounds from `start` on; fewer if there are no more."""
        chosen = self._order[start : start + count]
        return self.X[chosen], self.y[chosen]


class Drawn(Scene):
    """Points drawn by a person: new points come first, then old ones at random."""

    def __init__(self, seed: int) -> None:
        picture = _flat_picture(np.array([[0.0, 0.0, 1.0]]), "the square you draw in", (-1.0, -1.0, 1.0, 1.0))
        nothing = np.zeros(0, dtype=np.int64)
        super().__init__(SCENES["drawn"], np.zeros((0, 3)), nothing, DRAWN_LABELS, picture, nothing)
        self._generator = np.random.default_rng(seed)
        self._waiting: deque[int] = deque()

    @property
    def points(self) -> list[list[float]]:
        """The points: two coordinates and the index of the label."""
        return [[*row[:2], code] for row, code in zip(self.X.tolist(), self.y.tolist(), strict=True)]

    def add(self, x: float, y: float, label: str) -> None:
        """Add a point; raises ValueError if it is outside the square, or there are too many."""
        place = [check_number(name, value, above=-1.0000001, at_most=1.0) for name, value in (("x", x), ("y", y))]
        if label not in DRAWN_LABELS:
            raise ValueError(f"label must be one of {', '.join(DRAWN_LABELS)}; got {label!r}")
        if len(self.y) >= _MOST_POINTS:
            raise ValueError(f"at most {_MOST_POINTS} points can be drawn; start again with an empty square")
        self._waiting.append(len(self.y))
        self.X = np.vstack([self.X, [*place, 1.0]])  # the constant column is an intercept for linear learners
        self.y = np.append(self.y, DRAWN_LABELS.index(label))

    def take(self, start: int, count: int) -> tuple[Floats, Integers]:
        """Return the next rounds; none without points."""
        n = min(count, MOST_ROUNDS - start) if len(self.y) else 0
        chosen = [
            self._waiting.popleft() if self._waiting else int(self._generator.integers(len(self.y))) for _ in range(n)
        ]
        return self.X[chosen], self.y[chosen]


_COLOURS = ("blue", "orange", "green")
_HEARS = "and hears only right or wrong"
_POINTS = f"A learner names its colour, {_HEARS}. Most points are blue, and"
SCENES = {  # titles and descriptions by name; "csv" and "drawn" need input of the user
    "paper_weak": (
        "Three classes in a disc",
        f"Each round is a point in a disc. {_POINTS} no line cuts one colour off from all others: hard for most.",
    ),
    "paper_strong": (
        "Three classes on a circle",
        f"Each round is a point on a circle. {_POINTS} a straight line cuts off each colour.",
    ),
    "wedges": (
        "The wedges",
        f"Each round is one of 78 points in wedges, like slices of a cake. A learner names its wedge, {_HEARS}.",
    ),
    "iris": ("Iris flowers", f"Each round is a flower. A learner names its kind from four lengths, {_HEARS}."),
    "csv": ("Your CSV", f"Each round is a row of your table. A learner names its class, {_HEARS}."),
    "drawn": (
        "Points you draw",
        f"Choose a colour and put points into the square. A learner names the colour of each, {_HEARS}.",
    ),
}


def make_scene(name: str, seed: int) -> Scene:
    """Return a scene that needs only a seed, or an empty one to draw in."""
    check_seed(seed)
    if name == "drawn":
        return Drawn(seed)
    if name in ("paper_weak", "paper_strong"):
        X, y = (paper_weak if name == "paper_weak" else paper_strong)(MOST_ROUNDS, seed)
        picture = _flat_picture(X, "the first two columns; the third is constant")
        return Scene(SCENES[name], X, y, _COLOURS, picture, np.arange(len(y)))
    if name == "wedges":
        X, y = wedges()
        labels, picture = [f"wedge {k + 1}" for k in range(int(y.max()) + 1)], _flat_picture(X, "the two columns")
    elif name == "iris":
        data = bundled("iris")
        X, y, labels = preprocess(data.X, "standardize"), data.y, list(data.label_names)
        picture = _widest_picture(X)
    else:
        raise ValueError(f"stream must be one of {', '.join(SCENES)}; got {name!r}")
    return Scene(SCENES[name], X, y, labels, picture, _passes(len(y), seed))


def scene_from_table(
    file_name: str, text: bytes, seed: int, label: str | None = None, drop: Sequence[str] = ()
) -> Scene:
    """Return the rounds of an uploaded table: standardised, with an intercept, shuffled by the seed.

    It is parsed with limited memory, one at a time. `label` and `drop` are as in `onebit.streams.read_table`.
    """
    from onebit.streams.text import count_columns  # imports Polars, a large library

    check_seed(seed)
    if ending(Path(file_name)) not in (".csv", ".tsv"):
        raise ValueError(f"{printable(file_name)}: the table must be a .csv or .tsv file")
    with tempfile.TemporaryDirectory(prefix="onebit-") as folder:
        # Not under the uploaded name, which may be a path.
        path = Path(folder) / f"table{ending(Path(file_name))}"
        path.write_bytes(text)
        reading = Reading(label, tuple(drop), max_gib=_MOST_GIB)
        try:
            # Checked on the first line; the label and dropped columns do not count.
            n_named = sum(len(names.split(",")) for names in drop) + 1
            _check_size(file_name, "columns", count_columns(path, text, reading) - n_named, _MOST_COLUMNS)
            with _ONE_AT_A_TIME:
                data = read_table(path, **reading._asdict())
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), printable(file_name))) from None
    n_rows, n_columns = data.X.shape
    _check_size(file_name, "columns", n_columns, _MOST_COLUMNS)
    _check_size(file_name, "rows × columns", n_rows * n_columns, _MOST_CELLS)
    _check_size(file_name, "classes", data.n_classes, _MOST_CLASSES)
    X = preprocess(data.X.toarray() if scipy.sparse.issparse(data.X) else data.X, "standardize")
    is_flat = np.flatnonzero(X.std(axis=0)).tolist() == [0, 1]
    picture = _flat_picture(X, "the two columns, standardised") if is_flat else _widest_picture(X)
    title, description = SCENES["csv"]
    columns = "1 column" if n_columns == 1 else f"{n_columns} columns"
    size = f"{n_rows} rows, {columns}, {data.n_classes} classes"
    shown = (
        f"{title}: {shortened(printable(file_name), _LONGEST_NAME)}",
        f"{description} {size}; columns are standardised, and a constant is added.",
    )
    return Scene(shown, X, data.y, data.label_names, picture, _passes(n_rows, seed))


def _check_size(file_name: str, what: str, size: int, most: int) -> None:
    if size > most:
        raise ValueError(
            f"{printable(file_name)}: has {size} {what}; the playground takes {most}. `onebit play` takes all"
        )


def _passes(n: int, seed: int) -> Integers:
    """Return repeated random permutations of the row indices."""
    generator = np.random.default_rng(seed)
    n_passes = -(-MOST_ROUNDS // n)
    return np.concatenate([generator.permutation(n) for _ in range(n_passes)])[:MOST_ROUNDS]
