"""Labels: anything hashable, and each keeps its type.

An array of labels has a number dtype where all of them are whole numbers or truth values, and holds the objects
themselves where they are of several kinds. What stands for "not there" (None, NaN, pandas' NA and NaT) is no label.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import column_or_1d

from onebit.inputs import Integers, as_array, brief, check_integer, is_missing

_MOST_CLASSES = 1 << 24  # each of them is an object of every learner; more is a slip
_FEW = 1 << 20  # labels told apart in one pass
_NO_LABELS = "cV"  # complex numbers and records
_DTYPES = {int: "iu", bool: "b", float: "f", str: "U"}
_NEVER_MISSING = (int, str, bool)
_SHOWN = 8  # classes of an error
_MOST_SEVERAL = 63  # a bit for each label
_WORDS = 1 << 26  # bytes of an array in which every word takes as much room as the longest


def check_classes(classes: Any) -> npt.NDArray[Any]:
    """Return the labels a learner may guess: 0…K−1 for a count K, or the labels of a list, in its order."""
    if isinstance(classes, (int, np.integer)) and not isinstance(classes, bool):
        return np.arange(check_integer("classes", classes, low=1, high=_MOST_CLASSES))
    if isinstance(classes, (str, bytes, Mapping)) or not isinstance(classes, Collection):
        raise ValueError(f"classes must be a count or a list of labels; got {brief(classes)}")
    if len(getattr(classes, "shape", (1,))) != 1:
        raise ValueError(f"classes must be a list of labels, of one dimension; got {brief(classes)}")
    if not 0 < len(classes) <= _MOST_CLASSES:
        raise ValueError(f"classes must list at least one label; got {brief(classes)}")
    labels = _plain(as_array(classes, "classes") if isinstance(classes, np.ma.MaskedArray) else classes)
    if isinstance(classes, (set, frozenset)):
        try:
            labels.sort()
        except TypeError as error:
            raise ValueError(f"classes is a set of labels without an order ({error}); give a list") from error
    _check_distinct(labels)
    return _as_labels(labels)


def _plain(labels: Iterable[Any]) -> list[Any]:
    """Return labels as Python has them: 3 for NumPy's int64(3). Moments in time stay NumPy's, which has more digits."""
    plain = labels.tolist() if isinstance(labels, np.ndarray) and labels.dtype.kind in "iubUSf" else list(labels)
    if any(issubclass(kind, np.generic) for kind in set(map(type, plain))):
        plain = [
            each.item() if isinstance(each, np.generic) and each.dtype.kind not in "Mm" else each for each in plain
        ]
    return plain


def _check_distinct(labels: list[Any], name: str = "classes") -> None:
    known: dict[Any, Any] = {}
    for at, label in enumerate(labels):
        if type(label) not in _NEVER_MISSING and (isinstance(label, complex) or is_missing(label)):
            raise ValueError(f"{name}[{at}] is {label!r}, which is no label; leave it out, or give it a name")
        try:
            first = known.setdefault(label, label)
        except TypeError as error:
            raise ValueError(f"{name} must be labels that can be told apart; got {brief(label)} ({error})") from error
        if len(known) <= at:
            same = "" if type(first) is type(label) else f"; {first!r} and {label!r} are one label to Python"
            raise ValueError(f"{name} must not repeat a label; got {label!r:.80} twice{same}")


def _as_labels(labels: list[Any]) -> npt.NDArray[Any]:
    """Return labels as an array whose `tolist` gives them back, type for type."""
    kinds = set(map(type, labels))
    dtypes = _DTYPES.get(kinds.pop(), "") if len(kinds) == 1 else ""
    if dtypes and (dtypes != "U" or 4 * len(labels) * max(map(len, labels)) <= _WORDS):
        array = np.asarray(labels)
        # Whole numbers beyond 64 bits do not fit, and arrays of words drop zeros at the end.
        if array.dtype.kind in dtypes and (dtypes != "U" or array.tolist() == labels):
            return array
    return np.fromiter(labels, dtype=object, count=len(labels))


def infer_classes(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the distinct labels of a stream: sorted, or as they first appear if they have no order."""
    if y.dtype.kind in "iu" and y.min(initial=0) >= 0 and y.max(initial=0) < _FEW:
        # Sorting millions of labels would take seconds, and mostly there is no other label than among the first.
        for some in (y[: 1 << 16], y):
            seen = np.flatnonzero(np.bincount(some.astype(np.int64, copy=False)))
            if len(seen) > y.max(initial=0):
                break
        return seen
    if y.dtype.kind == "f":
        wrong = y[y != np.trunc(y)]
        raise ValueError(
            f"y must hold labels, not real numbers; got {(wrong if len(wrong) else y)[0]}. Unknown label type: "
            "continuous. If these are labels, list them: classes=[…]"
        )
    if y.dtype.kind != "O":
        return np.unique(y)
    found = list(dict.fromkeys(zip(map(type, y), y, strict=True)))
    labels = [label for _, label in found]
    _check_distinct(labels, "the labels of y")
    try:
        labels.sort()
    except TypeError:
        labels = [label for _, label in found]
    return _as_labels(labels)


def check_labels(y: Any, n_rounds: int, name: str = "y") -> npt.NDArray[Any]:
    """Return the labels of a stream as a one-dimensional array with one entry per round.

    A column of shape (rounds, 1) is taken with scikit-learn's DataConversionWarning.
    """
    if y is None:
        raise ValueError(f"{name} is missing: a learner requires y to be passed, but the target y is None")
    labels = _as_they_are(y, name)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = column_or_1d(labels, warn=True)
    if labels.ndim != 1 or len(labels) != n_rounds:
        raise ValueError(f"{name} must hold one label for each of the {n_rounds} rounds; got shape {labels.shape}")
    if labels.dtype.kind == "O":
        labels = _settled(_plain(labels), name)
    if labels.dtype.kind in _NO_LABELS:
        raise ValueError(f"{name} must hold labels: whole numbers, words or other objects; got dtype {labels.dtype}")
    return _whole(labels, name) if labels.dtype.kind == "f" else labels


def check_answers(y: Any, n_rounds: int) -> npt.NDArray[Any]:
    """Return the labels of a stream; or, where several may be right, a matrix of truth values as it is, checked.

    >>> check_answers(np.array([[True, False, True]]), 1).shape
    (1, 3)
    """
    if not (isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] > 1 and y.dtype == np.bool_):
        return check_labels(y, n_rounds)
    if len(y) != n_rounds:
        raise ValueError(f"y must have a row for each of the {n_rounds} rounds; got shape {y.shape}")
    if y.shape[1] > _MOST_SEVERAL:
        raise ValueError(f"y may have at most {_MOST_SEVERAL} columns where several labels are right; got {y.shape[1]}")
    return as_array(y, "y")


def _codes_of_right(right: npt.NDArray[np.bool_]) -> Integers:
    """Return a number for each round: the right label, −1 where none is, and otherwise −1 minus a bit for each.

    >>> _codes_of_right(np.array([[False, False, True], [False, False, False], [True, False, True]])).tolist()
    [2, -1, -6]
    """
    masks = right.astype(np.int64) @ (np.int64(1) << np.arange(right.shape[1]))
    return np.where(right.sum(axis=1) == 1, right.argmax(axis=1), -1 - masks)


def first_right(code: int) -> int:
    """Return the first of the right labels of a round, or −1 if there is none.

    >>> first_right(2), first_right(-1), first_right(-6)
    (2, -1, 0)
    """
    mask = -1 - code
    return code if code >= -1 else (mask & -mask).bit_length() - 1


def _as_they_are(y: Any, name: str) -> npt.NDArray[Any]:
    """Return an array as it is, and a list or a column of moments in time as its objects."""
    if hasattr(y, "__array__") or isinstance(y, (str, bytes)) or not isinstance(y, Iterable):
        array = y if type(y) is np.ndarray else as_array(y, name)
        return np.fromiter(y, dtype=object, count=len(array)) if array.dtype.kind in "Mm" and array.ndim == 1 else array
    listed = list(y)
    if any(issubclass(kind, (list, np.ndarray)) for kind in set(map(type, listed))):
        return as_array(listed, name)
    # NumPy would make words of numbers among words, and two columns of pairs.
    return np.fromiter(listed, dtype=object, count=len(listed))


def _settled(labels: list[Any], name: str) -> npt.NDArray[Any]:
    """Return labels as numbers if all are whole numbers, or all truth values; or as the objects they are."""
    kinds = set(map(type, labels))
    if kinds in ({int}, {bool}):
        return _as_labels(labels)
    if kinds in ({float}, {int, float}):
        floats = _whole(np.asarray([label if type(label) is float else 0.0 for label in labels]), name)
        if floats.dtype.kind == "i":
            return _as_labels([int(label) for label in labels])
        try:
            return np.asarray(labels, dtype=np.float64)
        except OverflowError:
            raise ValueError(f"{name} must hold labels, not real numbers and numbers beyond them") from None
    try:
        is_whole = not any(map(is_missing, set(labels)))
    except TypeError as error:
        raise ValueError(f"{name} must hold labels that can be told apart ({error})") from error
    if not is_whole:
        at = next(at for at, label in enumerate(labels) if is_missing(label))
        raise ValueError(f"{name}[{at}] is {labels[at]!r}, which is no label; remove such rows, or give it a name")
    return np.fromiter(labels, dtype=object, count=len(labels))


def _whole(labels: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Return whole numbers if all are: 1.0 and 2.0 is what spreadsheets make of 1 and 2."""
    if not np.isfinite(labels).all():
        at = int(np.argmin(np.isfinite(labels)))
        what = "NaN" if np.isnan(labels[at]) else "an infinity"
        raise ValueError(f"{name} contains {what}: {name}[{at}] is {labels[at]}, which is no label; remove such rows")
    with np.errstate(invalid="ignore"):  # what is too large is no whole number below
        whole = labels.astype(np.int64)
    return whole if np.array_equal(whole, labels) else labels


def classes_and_codes(y: npt.NDArray[Any], classes: Any = None) -> tuple[npt.NDArray[Any], Integers]:
    """Return the classes, those of y if none are given, and each label's position among them.

    Of a matrix of truth values, with a column for each class, the numbers are `_codes_of_right`.
    """
    known = check_classes(infer_classes(y) if classes is None else classes)
    if y.ndim == 1:
        return known, encode_labels(y, known)
    if len(known) != y.shape[1]:
        raise ValueError(f"y must have a column for each of the {len(known)} classes; got {y.shape[1]}")
    return known, _codes_of_right(y)


def encode_labels(
    y: npt.NDArray[Any],
    classes: npt.NDArray[Any],
    name: str = "y",
    remedy: str = "pass classes= that lists every label",
) -> Integers:
    """Return each label's position in `classes`, or raise a ValueError for the first label that has none."""
    codes = positions(y, classes)
    if codes.min(initial=0) < 0:
        at = int(np.argmax(codes < 0))
        shown = ", ".join(map(repr, classes[:_SHOWN].tolist())) + (", …" if len(classes) > _SHOWN else "")
        raise ValueError(
            f"{name}[{at}] is {y[at : at + 1].tolist()[0]!r}, which is not among the {len(classes)} classes "
            f"[{shown}]; {remedy}"
        )
    return codes


def positions(y: npt.NDArray[Any], classes: npt.NDArray[Any]) -> Integers:
    """Return each label's position in `classes`, −1 for one that is not there."""
    n_classes, kinds = len(classes), y.dtype.kind + classes.dtype.kind
    if y.dtype.kind in "iu" and classes.dtype.kind in "iu" and np.array_equal(classes, np.arange(n_classes)):
        # A copy: a later change of y cannot change what was checked. Beyond 2⁶³ it is negative.
        codes = y.astype(np.int64)
        if codes.min(initial=0) < 0 or codes.max(initial=0) >= n_classes:
            codes[(codes < 0) | (codes >= n_classes)] = -1
        return codes
    if kinds in ("ii", "iu", "ui", "uu", "bb", "UU"):
        order = np.argsort(classes, kind="stable")
        places = np.minimum(np.searchsorted(classes, y, sorter=order), n_classes - 1)
        codes = order[places].astype(np.int64)
        codes[classes[codes] != y] = -1
        return codes
    places_of = {label: place for place, label in enumerate(classes.tolist())}
    return np.fromiter((places_of.get(label, -1) for label in y.tolist()), dtype=np.int64, count=len(y))
