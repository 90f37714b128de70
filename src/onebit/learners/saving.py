"""A learner in one file: saved whole or not at all, and loaded from a file that may be untrusted or truncated.

The file is a zip that NumPy opens too (npz): ``header.json`` holds the class, settings and counts, ``state/…`` the
learned arrays, ``tickets/…`` the open tickets, ``values/…`` other arrays. Nothing is compressed, so reading needs no
more room than the file. The zip's comment, the last bytes of the file, has the format version and a checksum of
everything before it. There are no timestamps: the same learner gives the same bytes.
"""

import io
import math
import os
import re
import sys
import zipfile
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from onebit import kernels
from onebit.engine.state import State, grown
from onebit.files import npz_array, npz_bytes, replace_file
from onebit.import_paths import import_path_of
from onebit.inputs import MAX_SEED, check_integer, check_seed
from onebit.kernels import Kernel
from onebit.labels import check_classes
from onebit.learners import run
from onebit.learners.tickets import DIGEST, PAGE, ROUNDS, Expired, Tickets, content_of, guess_of, is_fit
from onebit.machine_memory import MemoryBudgetError, check_memory, no_more_than
from onebit.typed_json import Trusted, check_position, describe, parse, restore, write

if TYPE_CHECKING:
    from onebit.learners.base import Learner

Arrays = dict[str, npt.NDArray[Any]]

VERSION = 1
"""Format version: raised when an older onebit could no longer read what this one writes."""
CHECKSUM = 32
"""Bytes of the checksum; written as hexadecimal digits at the end of the file."""
_COUNTS = ("n_rounds_", "n_mistakes_", "n_updates_", "n_uniform_guesses_")
_OURS = "onebit.learners"
"""The package whose learners are always trusted."""
_KEPT = ("feature_names_in_",)  # attributes of our own learners beside settings, counts, state and tickets
# Attributes that are rebuilt on loading, or saved under a name of their own.
_REBUILT = {
    "_lock",
    "_state",
    "_started",
    "_tickets",
    "_labels",
    "_key",
    "_row_shape",
    "_in_force",
    "_confidence",
    "_max_open_tickets",
} | {
    *_COUNTS,
    "classes_",
    "n_features_in_",
}
_END = re.compile(rb"onebit model (\d{1,9}), blake2b ([0-9a-f]{%d})" % (2 * CHECKSUM))
_LONGEST_END = 100
_MOST_HEADER = 1 << 26  # bytes
_MOST_PARTS = 10_000
_MOST_REBUILT = 1 << 26  # numbers that a file may omit because they follow from others: half a gigabyte
_MOST_COUNT = 1 << 56  # ten times as many still fit in 64 bits
_ROOM = 1 << 26  # bytes that any file may need, plus eight for each of its own (inverting a matrix needs room)


def comment(version: int, checksum: bytes) -> bytes:
    """Return the comment at the end of a file."""
    return f"onebit model {version}, blake2b ".encode() + checksum.hex().encode()


def checksum_of(content: Any) -> bytes:
    """Return the checksum of the content before it."""
    return blake2b(content, digest_size=CHECKSUM).digest()


# Saving.


def save(learner: "Learner", path: "str | os.PathLike[str]") -> None:
    """Write a learner to a file, whole or not at all; see `Learner.save`."""
    replace_file(Path(os.path.realpath(path)), to_bytes(learner))  # a link stays a link


def to_bytes(learner: "Learner") -> Any:
    """Return the content of a learner's file."""
    with learner._lock:
        header, arrays = _describe_learner(learner)
    text = write(header).encode()
    if len(text) > _MOST_HEADER:
        raise ValueError(
            f"settings, labels and own values take {len(text)} bytes; they must take at most {_MOST_HEADER}"
        )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.comment = comment(VERSION, bytes(CHECKSUM))
        archive.writestr(zipfile.ZipInfo("header.json"), text)
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as part:
                npy.write_array(part, array, version=(1, 0), allow_pickle=False)
    content = file.getbuffer()
    content[-2 * CHECKSUM :] = checksum_of(content[: -2 * CHECKSUM]).hex().encode()
    return content


def _describe_learner(learner: "Learner") -> tuple[dict[str, Any], Arrays]:
    """Return the header, and the arrays by name."""
    values: list[Any] = []
    settings, cls = learner.get_params(deep=False), type(learner)
    is_ours = cls.__module__.startswith(f"{_OURS}.")
    header: dict[str, Any] = {
        "onebit": "model",
        "version": VERSION,
        "learner": f"{_OURS}:{cls.__name__}" if is_ours else import_path_of(cls),
        "settings": _described("the setting", settings, values),
        "max_open_tickets": learner.max_open_tickets,
    }
    arrays: Arrays = {}
    if learner._started:
        own = {name: value for name, value in vars(learner).items() if name not in _REBUILT and name not in settings}
        if is_ours:
            own = {name: value for name, value in own.items() if name in _KEPT} | learner._keep()
        header |= {
            "in_force": _described("the setting", learner._in_force, values),
            "n_features": learner.n_features_in_,
            "labels": _described("the", {"classes": learner.classes_}, values)["classes"],
            "seed": learner._key,
            "counts": {name: int(getattr(learner, name)) for name in _COUNTS},
            "own": _described("what it keeps as", own, values),
            "runs": [],
        }
        arrays |= {f"state/{name}": array for name, array in pack_state(learner._state).items()}
        if learner._confidence is not None:
            arrays |= {f"confidence/{name}": each for name, each in learner._confidence.arrays._asdict().items()}
        if learner._tickets is not None:
            header["runs"], of_tickets = _pack_tickets(learner._tickets)
            arrays |= {f"tickets/{name}": array for name, array in of_tickets.items()}
    return header, arrays | {f"values/{i}": array for i, array in enumerate(values)}


def learned_arrays(learner: "Learner") -> Arrays:
    """Return views of all arrays that a learner has learned, confidence included, without spare capacity."""
    confidence = {} if learner._confidence is None else learner._confidence.arrays._asdict()
    return filled_arrays(learner._state) | {f"confidence {name}": array for name, array in confidence.items()}


def _described(what: str, named: dict[str, Any], values: list[Any]) -> dict[str, Any]:
    found = {}
    for name, value in named.items():
        # Frames and dict views list the classes as well as a list does. A set has no order to keep.
        plain = (str, int, np.integer, list, tuple, set, frozenset, np.ndarray, type(None))
        if name == "classes" and not isinstance(value, plain):
            value = list(value)
        try:
            found[name] = describe(value, values)
        except ValueError as error:
            raise ValueError(f"{what} {name} cannot be saved: {error}") from error
    return found


def pack_state(state: State) -> Arrays:
    """Return copies of a state's arrays by name, without spare capacity and without what follows from the others."""
    if state.plays_by_hand:
        return {}
    follows, parts = state.follows(), filled_arrays(state).items()
    return {name: part.copy() for name, part in parts if name not in follows or part.size > _MOST_REBUILT}


def filled_arrays(state: State) -> Arrays:
    """Return views of a state's arrays by name, without spare capacity."""
    # At least one entry, even if unused: then a file is at least as large as its number of features.
    filled = {axis: max(1, size) for axis, size in state.filled().items()}
    found = {}
    for name, array in state.arrays._asdict().items():
        axes = state.axes.get(name, ("",) * array.ndim)
        found[name] = array[tuple(slice(filled.get(axis)) for axis in axes)]
    return found


def _pack_tickets(tickets: Tickets) -> tuple[list[str], Arrays]:
    """Return the names of the runs that have open tickets, and the tickets' content as arrays."""
    kept, expired = tickets.all_kept(), tickets.all_expired()
    runs = list(dict.fromkeys([*(str(guess.learner) for guess in kept), *(each.run for each in expired)]))
    place, contents = {name: i for i, name in enumerate(runs)}, [content_of(guess) for guess in kept]
    return runs, {
        "run": np.array([place[str(guess.learner)] for guess in kept], np.int64),
        "ends": np.cumsum([len(content) for content in contents], dtype=np.int64),
        "content": np.frombuffer(b"".join(contents), np.uint8),
        "expired_run": np.array([place[each.run] for each in expired], np.int64),
        "expired_round": np.array([each.round for each in expired], np.int64),
        "expired_digest": np.frombuffer(b"".join(each.digest for each in expired), np.uint8).reshape(-1, DIGEST),
    }


# Loading.


def load(path: "str | os.PathLike[str]", *, trusted: Iterable[Any] = ()) -> "Learner":
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


def from_bytes(content: bytes, name: Any, trusted: Iterable[Any] = ()) -> "Learner":
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
    learners: Any = sys.modules[_OURS]
    ours: dict[str, Any] = {}
    for module, base in ((kernels, Kernel), (learners, learners.Learner)):
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
    if int(found[1]) > VERSION:
        raise ValueError(
            f"it was written by a newer onebit (format {int(found[1])}; this one reads up to {VERSION}): update onebit"
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
    if sum(part.file_size for part in parts) > size or archive.getinfo("header.json").file_size > _MOST_HEADER:
        raise ValueError("its parts are larger than it is")
    header = parse(archive.read("header.json"))
    if type(header) is not dict or header.get("onebit") != "model" or header.get("version") != VERSION:
        raise ValueError("its header does not match")
    names = [part.filename.removesuffix(".npy") for part in parts if part.filename != "header.json"]
    for name in names:
        npz_bytes(archive, name)
    return header, {name: npz_array(archive, name) for name in names}


def _rebuilt(header: dict[str, Any], arrays: Arrays, trusted: Trusted, size: int) -> "Learner":
    values = [array for name, array in arrays.items() if name.startswith("values/")]
    learners: Any = sys.modules[_OURS]
    cls = trusted.find(header["learner"])
    if not (isinstance(cls, type) and issubclass(cls, learners.Learner)):
        raise ValueError(f"{header['learner']} is no learner")

    def read(described: Any) -> Any:
        return {name: restore(value, trusted, values) for name, value in described.items()}

    learner: Learner = cls(**read(header.get("in_force", header["settings"])))
    learner.max_open_tickets = header["max_open_tickets"]
    if "in_force" in header:
        _put_back(learner, header, arrays, restore(header["labels"], trusted, values), size)
        with no_more_than(_ROOM + 8 * size):  # a learner may start others that it wraps
            _give_own(learner, read(header["own"]))
        learner.set_params(**read(header["settings"]))
    return learner


def _put_back(learner: "Learner", header: dict[str, Any], arrays: Arrays, labels: Any, size: int) -> None:
    """Restore the saved state and the open tickets in a learner."""
    n_features = check_integer("n_features", header["n_features"], low=1)
    counts = {name: check_integer(name, header["counts"][name], low=0, high=MAX_SEED // 2) for name in _COUNTS}
    of_state, of_tickets, of_confidence = (_part(arrays, name) for name in ("state", "tickets", "confidence"))
    # Every state but `ByHand` has an array as wide as the features: a small file cannot need a large state.
    if n_features > size and of_state:
        raise ValueError(f"it speaks of {n_features} features, and is too small for that")
    if not isinstance(labels, np.ndarray):  # a small file could hold a large count
        raise ValueError(f"its labels are no list: {labels!r:.80}")
    with no_more_than(_ROOM + 8 * size):
        run.begin(learner, n_features, check_classes(labels), check_seed(header["seed"]))
    _unpack_state(learner._state, of_state)
    vars(learner).update(counts)
    runs = header["runs"]
    if type(runs) is not list or not all(type(name) is str for name in runs):
        raise ValueError("its runs have no names")
    if of_confidence:
        _unpack_confidence(learner, of_confidence)
    if of_tickets:
        learner._tickets = _unpack_tickets(learner, runs, of_tickets)


def _part(arrays: Arrays, folder: str) -> Arrays:
    return {name.partition("/")[2]: array for name, array in arrays.items() if name.startswith(f"{folder}/")}


def _give_own(learner: "Learner", own: dict[str, Any]) -> None:
    """Restore a learner's other attributes; ours keep the feature names and what they declare."""
    if type(learner).__module__.startswith(f"{_OURS}."):
        if "feature_names_in_" in own and np.shape(own["feature_names_in_"]) != (learner.n_features_in_,):
            raise ValueError(f"it gives the learner {', '.join(own)}, which do not fit")
        learner._take_back({name: own.pop(name) for name in list(own) if name not in _KEPT})
    if _REBUILT & own.keys():
        raise ValueError(f"it gives the learner {', '.join(_REBUILT & own.keys())}, which it makes itself")
    vars(learner).update(own)


def _unpack_state(state: State, packed: Mapping[str, npt.NDArray[Any]]) -> None:
    """Fill an empty state from packed arrays, or raise ValueError."""
    if state.plays_by_hand:
        return
    empty = state.arrays._asdict()
    left_out = empty.keys() - packed.keys()
    if not left_out <= set(state.follows()) or packed.keys() - empty.keys():
        differing = ", ".join(sorted(packed.keys() ^ empty.keys()))
        raise ValueError(
            "another version of onebit saved it, whose learner kept other arrays: load it with that version, or learn "
            f"from the rounds again ({differing})"
        )
    sizes: dict[str, int] = {}
    taken = {}
    for name in packed:
        blank = empty[name]
        array, axes = packed[name], state.axes.get(name, ("",) * blank.ndim)
        if array.ndim != blank.ndim or array.dtype.newbyteorder("=") != blank.dtype:
            raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not like {blank.dtype} {blank.shape}")
        shape = []
        for axis, size, least in zip(axes, array.shape, blank.shape, strict=True):
            if sizes.setdefault(axis, size) != size if axis not in ("", "class") else size != least:
                raise ValueError(f"{name} has shape {array.shape}, which does not fit the others or {blank.shape}")
            shape.append(max(size, least))
        array = grown(np.ascontiguousarray(array, blank.dtype), tuple(shape))
        if array.dtype.kind == "i" and array.size and not 0 <= array.min() <= array.max() <= _MOST_COUNT:
            raise ValueError(f"{name} holds a negative or an impossibly large number")
        taken[name] = array
    for name in left_out:
        blank = empty[name]
        shape = [max(sizes.get(axis, 0), least) for axis, least in zip(state.axes[name], blank.shape, strict=True)]
        if math.prod(shape) > _MOST_REBUILT:
            raise ValueError(f"it leaves out {name}, of shape {tuple(shape)}: more than such a file may ask for")
        taken[name] = np.zeros(shape, blank.dtype)
    arrays = type(state.arrays)(**taken)
    state.check_arrays(arrays)
    if left_out:
        state.rebuild(arrays)
    state.arrays = arrays
    state.renew()


def _unpack_confidence(learner: "Learner", packed: Mapping[str, npt.NDArray[Any]]) -> None:
    """Restore what was learned about confidence, or raise ValueError."""
    confidence = run.new_confidence(learner)
    blank = {} if confidence is None else confidence.arrays._asdict()
    if confidence is None or packed.keys() != blank.keys():
        raise ValueError("another version of onebit saved it, which estimated confidence otherwise")
    for name, like in blank.items():
        if packed[name].dtype.newbyteorder("=") != like.dtype or packed[name].shape != like.shape:
            raise ValueError(f"{name} of its confidence is {packed[name].dtype} of shape {packed[name].shape}")
    arrays = {name: np.array(packed[name], like.dtype) for name, like in blank.items()}
    confidence.check(type(confidence.arrays)(**arrays))
    confidence.arrays = type(confidence.arrays)(**arrays)
    learner._confidence = confidence


def _unpack_tickets(learner: "Learner", runs: list[str], arrays: Mapping[str, npt.NDArray[Any]]) -> Tickets:
    """Return the packed tickets, or raise ValueError."""
    _, blank = _pack_tickets(Tickets(1))
    if set(arrays) != set(blank):
        raise ValueError("its tickets lack an array, or have one too many")
    for name, like in blank.items():
        if arrays[name].dtype.newbyteorder("=") != like.dtype or arrays[name].shape[1:] != like.shape[1:]:
            raise ValueError(f"{name} of its tickets is {arrays[name].dtype} of shape {arrays[name].shape}")
    arrays = {name: np.asarray(arrays[name], like.dtype) for name, like in blank.items()}  # in native byte order
    starts, content = np.concatenate([np.zeros(1, np.int64), arrays["ends"]]), arrays["content"].tobytes()
    if (starts[1:] < starts[:-1]).any() or starts[-1] != len(content):
        raise ValueError("its tickets do not lie one behind the other")
    kept, n_evidence = [], 0 if learner._confidence is None else learner._confidence.n_evidence
    for (start, end), place in zip(pairwise(starts.tolist()), arrays["run"].tolist(), strict=True):
        guess = guess_of(content[start:end], learner._labels, runs[check_position(place, len(runs))])
        if not is_fit(guess, learner._state, learner.n_features_in_, n_evidence):
            raise ValueError(f"its ticket of round {guess.round} has a row or scores that no guess is made from")
        kept.append(guess)
    rounds = [-1, *(guess.round for guess in kept), learner.n_rounds_]
    if any(later <= earlier for earlier, later in pairwise(rounds)):
        raise ValueError("its tickets are not in the order of their rounds")
    return Tickets.restored(learner.max_open_tickets, kept, _unpack_expired(learner.n_rounds_, runs, arrays))


def _unpack_expired(n_rounds: int, runs: list[str], arrays: Mapping[str, npt.NDArray[Any]]) -> list[Expired]:
    rounds = arrays["expired_round"]
    if len(rounds) and not 0 <= rounds.min() <= rounds.max() < n_rounds:
        raise ValueError("an expired ticket is of a round that was not played")
    # In the worst case each has its own page.
    check_memory(PAGE * len(np.unique(np.column_stack([arrays["expired_run"], rounds // ROUNDS]), axis=0)))
    found = zip(arrays["expired_run"].tolist(), rounds.tolist(), arrays["expired_digest"], strict=True)
    return [Expired(runs[check_position(at, len(runs))], round, digest.tobytes()) for at, round, digest in found]
