"""Loading a learner from a file that may be untrusted, truncated, or written by a newer version."""

import io
import os
import re
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from onebit import kernels
from onebit.inputs import MAX_SEED, check_integer, check_seed
from onebit.kernels import Kernel
from onebit.labels import check_classes
from onebit.learners.base import Learner
from onebit.learners.packing import Arrays, unpack_state, unpack_tickets
from onebit.learners.saving import CHECKSUM, COUNTS, KEPT, MOST_HEADER, OURS, REBUILT, VERSION, checksum_of
from onebit.machine_memory import MemoryBudgetError, check_memory, no_more_than
from onebit.npz import n_bytes, read_array
from onebit.typed_json import Trusted, parse, restore

_END = re.compile(rb"onebit model (\d{1,9}), blake2b ([0-9a-f]{%d})" % (2 * CHECKSUM))
_LONGEST_END = 100
_READABLE = range(1, VERSION + 1)
_MOST_PARTS = 10_000
_ROOM = 1 << 26
"""Bytes of memory that any file may need, plus eight for each of its own (inverting a matrix needs room)."""


def load(path: "str | os.PathLike[str]", *, trusted: Iterable[Any] = ()) -> Learner:
    """Return the learner that was saved there: it plays on exactly as the saved one would have.

    No code from the file runs, and sizes are checked before memory is allocated, so the file may be untrusted. The
    loaded learner accepts feedback on open tickets, by their id too.

    Parameters
    ----------
    path : str or path-like
        A file that `Learner.save` wrote.
    trusted : list
        Classes and functions of your own that the file may name (learners, kernels, labels such as an Enum), or their
        import paths, ``"package.module:name"``. Only those are imported, and only if the file names them.

    Raises
    ------
    ValueError
        If the file is truncated, was changed, is not a model, comes from a newer onebit, or names what is not trusted.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> import os, tempfile
    >>> from onebit import BanditPerceptron
    >>> learner = BanditPerceptron(classes=["no", "yes"])
    >>> ticket = learner.guess([0.5, 1.0])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.onebit")
    >>> learner.save(path)
    >>> load(path).tell(ticket.id, correct=True)
    """
    with Path(path).open("rb") as file:
        # Twice: the file, and the arrays made from it.
        try:
            check_memory(2 * os.fstat(file.fileno()).st_size)
        except MemoryError as error:
            raise ValueError(f"{os.fspath(path)}: cannot be loaded: {error}") from error
        content = file.read()
    return from_bytes(content, os.fspath(path), trusted)


def from_bytes(content: bytes, name: Any, trusted: Iterable[Any] = ()) -> Learner:
    """Return the learner of a file with that content; the name is for error messages."""
    allowed = Trusted(trusted, _known())
    try:
        _check_whole(content)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            header, arrays = _read_parts(archive, len(content))
        return _rebuilt(header, arrays, allowed, len(content))
    except (OSError, MemoryBudgetError):
        raise
    except Exception as error:  # a malicious file can make anything fail; the message has the cause
        what = str(error) or type(error).__name__
        raise ValueError(f"{name}: cannot be loaded: {what}") from error


def _known() -> dict[str, Any]:
    """Return what is always trusted: our kernels and learners, by import path."""
    ours: dict[str, Any] = {}
    for module, base in ((kernels, Kernel), (sys.modules[OURS], Learner)):
        for name, thing in vars(module).items():
            is_made = isinstance(thing, type) and issubclass(thing, base) and thing is not base
            if is_made and not getattr(thing, "__abstractmethods__", ()):
                ours[f"{module.__name__}:{name}"] = thing
    return ours


def _check_whole(content: bytes) -> None:
    """Raise ValueError unless the file is one of ours, of a version we know, and unchanged."""
    found = _END.search(content, max(0, len(content) - _LONGEST_END))
    if found is None or found.end() != len(content):
        raise ValueError("it is no onebit model, or it was cut off")
    version = int(found[1])
    if version > VERSION:
        raise ValueError(
            f"it was written by a newer onebit (format {version}; this one reads up to {VERSION}): update onebit"
        )
    if checksum_of(memoryview(content)[: -2 * CHECKSUM]).hex().encode() != found[2]:
        raise ValueError("it was changed since it was saved: its checksum does not fit")


def _read_parts(archive: zipfile.ZipFile, size: int) -> tuple[dict[str, Any], Arrays]:
    parts = archive.infolist()
    if len(parts) > _MOST_PARTS or len({part.filename for part in parts}) < len(parts):
        raise ValueError("it has too many parts, or two of one name")
    # Uncompressed parts without duplicates cannot take more memory than the file.
    if any(part.compress_type != zipfile.ZIP_STORED or part.file_size != part.compress_size for part in parts):
        raise ValueError("its parts must not be compressed")
    if sum(part.file_size for part in parts) > size or archive.getinfo("header.json").file_size > MOST_HEADER:
        raise ValueError("its parts are larger than it is")
    header = parse(archive.read("header.json"))
    if type(header) is not dict or header.get("onebit") != "model" or header.get("version") not in _READABLE:
        raise ValueError("its header says something else")
    names = [part.filename.removesuffix(".npy") for part in parts if part.filename != "header.json"]
    for name in names:
        n_bytes(archive, name)
    return header, {name: read_array(archive, name) for name in names}


def _rebuilt(header: dict[str, Any], arrays: Arrays, trusted: Trusted, size: int) -> Learner:
    values = [array for name, array in arrays.items() if name.startswith("values/")]
    cls = trusted.find(header["learner"])
    if not (isinstance(cls, type) and issubclass(cls, Learner)):
        raise ValueError(f"{header['learner']} is no learner")

    def read(described: Any) -> Any:
        return {name: restore(value, trusted, values) for name, value in described.items()}

    learner = cls(**read(header.get("in_force", header["settings"])))
    learner.max_open_tickets = header["max_open_tickets"]
    if "in_force" in header:
        _put_back(learner, header, arrays, restore(header["labels"], trusted, values), size)
        with no_more_than(_ROOM + 8 * size):  # a learner may start others that it wraps
            _give_own(learner, read(header["own"]))
        learner.set_params(**read(header["settings"]))
    return learner


def _put_back(learner: Learner, header: dict[str, Any], arrays: Arrays, labels: Any, size: int) -> None:
    """Restore the saved state in a learner."""
    n_features = check_integer("n_features", header["n_features"], low=1)
    counts = {name: check_integer(name, header["counts"][name], low=0, high=MAX_SEED // 2) for name in COUNTS}
    # Every state but `ByHand` has an array as wide as the features: a small file cannot need a large state.
    if n_features > size and _part(arrays, "memory"):
        raise ValueError(f"it speaks of {n_features} features, and is too small for that")
    if not isinstance(labels, np.ndarray):  # a small file could hold a large count
        raise ValueError(f"its labels are no list: {labels!r:.80}")
    with no_more_than(_ROOM + 8 * size):
        learner._begin(n_features, check_classes(labels), check_seed(header["seed"]))
    unpack_state(learner._state, _part(arrays, "memory"))
    vars(learner).update(counts)
    runs, of_tickets = header["runs"], _part(arrays, "tickets")
    if type(runs) is not list or not all(type(run) is str for run in runs):
        raise ValueError("its runs have no names")
    if of_tickets:
        n = n_features, learner.n_rounds_
        most, known = learner.max_open_tickets, learner._labels
        learner._tickets = unpack_tickets(most, runs, of_tickets, known, learner._state, n)


def _part(arrays: Arrays, folder: str) -> Arrays:
    return {name.partition("/")[2]: array for name, array in arrays.items() if name.startswith(f"{folder}/")}


def _give_own(learner: Learner, own: dict[str, Any]) -> None:
    """Restore a learner's other attributes; ours keep the feature names and what they declare."""
    if type(learner).__module__.startswith(f"{OURS}."):
        if "feature_names_in_" in own and np.shape(own["feature_names_in_"]) != (learner.n_features_in_,):
            raise ValueError(f"it gives the learner {', '.join(own)}, which do not fit")
        learner._take_back({name: own.pop(name) for name in list(own) if name not in KEPT})
    if REBUILT & own.keys():
        raise ValueError(f"it gives the learner {', '.join(REBUILT & own.keys())}, which it makes itself")
    vars(learner).update(own)
