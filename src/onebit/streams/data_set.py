"""What learners play: data sets, identified by their content, with their summary; and adaptive streams."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import scipy.sparse

from onebit.inputs import Floats, Integers, SparseRows, check_rows
from onebit.labels import check_labels, classes_and_codes

if TYPE_CHECKING:
    from onebit.encoding import Encoder

Matrix = Any  # rows: a float64 array, or a scipy CSR array
_MOST, _LONGEST = 12, 40  # classes that are listed in a summary, letters of a class's name


@dataclass(frozen=True, eq=False)
class DataSet:
    """Rows with labels.

    Attributes
    ----------
    name : str
        What it is called in tables and figures.
    X, y : array or scipy CSR array of shape (rows, features), array of shape (rows,)
        The rows, and their labels as positions in `label_names`.
    label_names : tuple of str
    about : tuple of pairs of str
        How the file was read, as in `onebit.streams.describe`; not part of the content.
    encoder : Encoder, optional
        What made the rows of a table, and makes those of later records; not part of the content.
    """

    name: str
    X: Matrix
    y: Integers
    label_names: tuple[str, ...]
    about: tuple[tuple[str, str], ...] = ()
    encoder: "Encoder | None" = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", as_matrix(check_rows(self.X)))  # scipy does not check indices

    @property
    def n_classes(self) -> int:
        """How many labels there are."""
        return len(self.label_names)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """What each column of X is, where a table was read: "amount", "amount is missing", "channel=mail"."""
        return () if self.encoder is None else tuple(self.encoder.feature_names())

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are sparse."""
        return bool(scipy.sparse.issparse(self.X))

    def shuffled(self, seed: int, rounds: int) -> tuple[Matrix, Integers]:
        """Return the first rows and labels of the order ``np.random.default_rng(seed).permutation(n)``."""
        order = np.random.default_rng(seed).permutation(len(self.y))[:rounds]
        return self.X[order], self.y[order]

    @cached_property
    def content(self) -> str:
        """A hash of rows and labels: the same data under another name or in another format has the same."""
        digest = hashlib.sha256()
        parts = (self.X.data, self.X.indices, self.X.indptr) if self.is_sparse else (self.X,)
        for array in (*parts, self.y):
            # Shapes too: the same bytes in another shape are other rows.
            digest.update(f"{array.dtype.kind}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(f"{self.X.shape} {self.n_classes}".encode())
        return digest.hexdigest()[:20]  # 80 bits: collisions are practically impossible


def make_data_set(name: str, X: Any, y: Any, where: str, label_names: Sequence[str] | None = None) -> DataSet:
    """Return rows and labels, which may be positions in `label_names`, as a data set; errors begin with `where`."""
    try:
        rows = check_rows(X)
        labels = check_labels(y, rows.shape[0])
        names, codes = classes_and_codes(labels)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    if len(names) < 2:
        raise ValueError(f"{where}: all {len(labels)} rows have the label {names[0]!s}; at least two labels are needed")
    # An identifier or a measurement was taken for the label.
    if len(names) == len(labels) > 2:
        raise ValueError(f"{where}: every row has a label of its own ({names[0]!s}, {names[1]!s}, …); is it the label?")
    is_position = names.dtype.kind in "iu" and names[0] >= 0 and names[-1] < len(label_names or ())
    shown = [label_names[label] for label in names] if label_names and is_position else names
    return DataSet(name, rows, codes, tuple(map(str, shown)))


def as_matrix(rows: Floats | SparseRows) -> Matrix:
    """Return checked rows as a NumPy or scipy array."""
    if isinstance(rows, SparseRows):
        return scipy.sparse.csr_array((rows.values, rows.columns, rows.starts), shape=rows.shape)
    return rows


def describe(data: DataSet) -> dict[str, str]:
    """Return a summary of a data set and of how its file was read, by name.

    Examples
    --------
    >>> from onebit.streams import bundled
    >>> describe(bundled("iris"))
    {'rows': '150', 'classes': '3: setosa 50, versicolor 50, virginica 50', 'columns': '4 of numbers'}
    """
    names = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in data.label_names]
    listed = [f"{name} {np.count_nonzero(data.y == label)}" for label, name in enumerate(names[:_MOST])]
    more = f", … and {data.n_classes - _MOST} more" if data.n_classes > _MOST else ""
    facts = {
        "rows": f"{data.X.shape[0]}",
        "classes": f"{data.n_classes}: {', '.join(listed)}{more}",
        "columns": f"{data.X.shape[1]} of numbers{', sparse' if data.is_sparse else ''}",
        **dict(data.about),
        "changed": "; ".join(text for name, text in data.about if name == "changed"),
    }
    order = ("read as", "rows", "label", "classes", "columns", "dropped", "missing", "changed")
    return {name: facts[name] for name in order if facts.get(name)}


def in_lines(about: Mapping[str, str]) -> str:
    r"""Return the summary of `describe` as lines, for a report.

    >>> in_lines({"rows": "150", "label": "'species'\n(as asked for)"})
    "rows: 150\nlabel: 'species' (as asked for)"
    """
    return "\n".join(f"{name}: {' '.join(text.split())}" for name, text in about.items())


class LearnerView(NamedTuple):
    """What an adaptive stream may see of a learner: its distribution, never its random numbers."""

    round: int
    probabilities: Callable[[npt.ArrayLike], Floats]
    """The probability of every class for given features, without side effects."""


@runtime_checkable
class AdaptiveStream(Protocol):
    """A stream that chooses each example by the learner's probabilities, before the guess is drawn; used once.

    ``onebit.play(learner, stream)`` plays it.
    """

    classes: Any
    """The labels, or how many."""
    n_features: int

    def next(self, learner: LearnerView) -> tuple[npt.ArrayLike, Any] | None:
        """Return the next features and their label, or None at the end."""
        ...
