"""A learner in one file: saved whole or not at all, and loaded from a file that may be untrusted or truncated.

The file is a zip that NumPy opens too (npz): ``header.json`` holds the class, settings and counts, ``state/…`` the
learned arrays, ``tickets/…`` the open tickets, ``values/…`` other arrays. Nothing is compressed. The zip's comment, the
last bytes of the file, has the format version and a checksum. The same learner gives the same bytes.
"""

import io
import math
import os
import re
import sys
import zipfile
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from onebit import kernels
from onebit.engine.state import State, grown
from onebit.files import read_npz
from onebit.game import Tickets
from onebit.import_paths import import_path_of
from onebit.inputs import MAX_SEED, check_integer, check_seed
from onebit.labels import check_classes
from onebit.learners import run
from onebit.machine_memory import MemoryBudgetError, check_memory, no_more_than
from onebit.typed_json import Trusted, describe, parse, restore, write

if TYPE_CHECKING:
    from onebit.learners.base import Learner

_Arrays = dict[str, npt.NDArray[Any]]

_VERSION = 1  # of the format: raised when an older onebit could no longer read what this one writes
_CHECKSUM = 64  # hexadecimal digits at the end of the file
_BLANK_END = f"onebit model {_VERSION}, blake2b {'0' * _CHECKSUM}".encode()
_END = re.compile(rb"onebit model (\d{1,9}), blake2b ([0-9a-f]{%d})" % _CHECKSUM)
_LONGEST_END = 100
_COUNTS = ("n_rounds_", "n_mistakes_", "n_updates_", "n_uniform_guesses_")
_OURS = "onebit.learners"  # the package whose learners are always trusted
_KEPT = ("feature_names_in_",)  # attributes of our own learners beside settings, counts, state and tickets
_PLAIN_CLASSES = (str, int, np.integer, list, tuple, set, frozenset, np.ndarray, type(None))
_MOST_REBUILT = 1 << 26  # numbers that a file may omit because they follow from others: half a gigabyte
_MOST_COUNT = 1 << 56  # ten times as many still fit in 64 bits
_ROOM = 1 << 26  # bytes that any file may need, plus eight for each of its own (inverting a matrix needs room)


def to_bytes(learner: "Learner") -> Any:
    """Return the content of a learner's file."""
    with learner._lock:
        header, arrays = _describe_learner(learner)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.comment = _BLANK_END
        archive.writestr(zipfile.ZipInfo("header.json"), write(header))
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as part:
                npy.write_array(part, array, version=(1, 0), allow_pickle=False)
    content = file.getbuffer()
    content[-_CHECKSUM:] = _checksum_of(content)
    return content


def _checksum_of(content: Any) -> bytes:
    """Return the checksum of a file, as its last bytes should be."""
    return blake2b(memoryview(content)[:-_CHECKSUM], digest_size=_CHECKSUM // 2).hexdigest().encode()


def _describe_learner(learner: "Learner") -> tuple[dict[str, Any], _Arrays]:
    """Return the header, and the arrays by name."""
    values: list[Any] = []
    settings, cls, is_ours = learner.get_params(deep=False), type(learner), _is_ours(learner)
    header: dict[str, Any] = {
        "learner": f"{_OURS}:{cls.__name__}" if is_ours else import_path_of(cls),
        "settings": _described("the setting", settings, values),
        "max_open_tickets": learner.max_open_tickets,
    }
    arrays: _Arrays = {}
    if learner._started:
        if is_ours:
            own = {name: value for name, value in vars(learner).items() if name in _KEPT} | learner._keep()
        else:
            made = _made_by_learners() | settings.keys()
            own = {name: value for name, value in vars(learner).items() if name not in made}
        header |= {
            "in_force": _described("the setting", learner._in_force, values),
            "n_features": learner.n_features_in_,
            "labels": _described("the", {"classes": learner.classes_}, values)["classes"],
            "seed": learner._key,
            "counts": {name: int(getattr(learner, name)) for name in _COUNTS},
            "own": _described("what it keeps as", own, values),
        }
        tickets = {} if learner._tickets is None else learner._tickets.to_arrays()
        folders = {"state": pack_state(learner._state), "confidence": _confidence_of(learner), "tickets": tickets}
        for folder, held in folders.items():
            arrays |= {f"{folder}/{name}": array for name, array in held.items()}
    return header, arrays | {f"values/{i}": array for i, array in enumerate(values)}


def _learners() -> Any:
    return sys.modules[_OURS]


def _is_ours(learner: "Learner") -> bool:
    return type(learner).__module__.startswith(f"{_OURS}.")


def _made_by_learners() -> set[str]:
    """Return the attributes that every learner makes itself."""
    return {*_learners().Learner.__annotations__, "_lock"}


def _described(what: str, named: dict[str, Any], values: list[Any]) -> dict[str, Any]:
    found = {}
    for name, value in named.items():
        # Frames and dict views list the classes as well as a list does. A set has no order to keep.
        plain = list(value) if name == "classes" and not isinstance(value, _PLAIN_CLASSES) else value
        try:
            found[name] = describe(plain, values)
        except ValueError as error:
            raise ValueError(f"{what} {name} cannot be saved: {error}") from error
    return found


def learned_arrays(learner: "Learner") -> _Arrays:
    """Return views of all that a learner has learned, confidence included, without spare capacity."""
    confidence = {f"confidence {name}": array for name, array in _confidence_of(learner).items()}
    return _filled_arrays(learner._state) | confidence


def _confidence_of(learner: "Learner") -> _Arrays:
    return {} if learner._confidence is None else learner._confidence.arrays._asdict()


def pack_state(state: State) -> _Arrays:
    """Return copies of a state's arrays by name, without spare capacity and without what follows from the others."""
    if state.plays_by_hand:
        return {}
    follows, parts = state.follows(), _filled_arrays(state).items()
    return {name: part.copy() for name, part in parts if name not in follows or part.size > _MOST_REBUILT}


def _filled_arrays(state: State) -> _Arrays:
    # At least one entry, even if unused: then a file is at least as large as its number of features.
    filled, arrays = {axis: max(1, size) for axis, size in state.filled().items()}, state.arrays._asdict()
    axes = {name: _axes_of(state, name, array) for name, array in arrays.items()}
    return {name: array[tuple(slice(filled.get(axis)) for axis in axes[name])] for name, array in arrays.items()}


def _axes_of(state: State, name: str, array: npt.NDArray[Any]) -> tuple[str, ...]:
    return state.axes.get(name, ("",) * array.ndim)


def load(path: "str | os.PathLike[str]", *, trusted: Iterable[Any] = ()) -> "Learner":
    """Return the learner that was saved there: it plays on exactly as the saved one would have.

    No code from the file runs, and sizes are checked before memory is allocated, so the file may be untrusted: a
    ValueError says that it is truncated, was changed, is no model or of another format, or names what is not trusted.
    The loaded learner accepts feedback on open tickets, by their id too.

    Parameters
    ----------
    path : str or path-like
        A file that `Learner.save` wrote.
    trusted : list
        Classes and functions of your own that the file may name (learners, kernels, labels such as an Enum), or their
        import paths, ``"package.module:name"``. Only those are imported, and only if the file names them.

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
    # Twice: the file, and the arrays made from it.
    check_memory(2 * Path(path).stat().st_size, f"{os.fspath(path)}: cannot be loaded")
    return from_bytes(Path(path).read_bytes(), os.fspath(path), trusted)


def from_bytes(content: bytes, name: Any, trusted: Iterable[Any] = ()) -> "Learner":
    """Return the learner of a file with that content; the name is for error messages."""
    ours = {
        f"{module.__name__}:{each}": thing
        for module, base in ((kernels, kernels.Kernel), (_learners(), _learners().Learner))
        for each, thing in vars(module).items()
        if isinstance(thing, type) and issubclass(thing, base) and thing is not base
    }
    allowed = Trusted(trusted, ours)
    try:
        return _rebuilt(*_read(content), allowed, len(content))
    except (OSError, MemoryBudgetError):
        raise
    except Exception as error:  # a malicious file can make anything fail; the message has the cause
        raise ValueError(f"{name}: cannot be loaded: {str(error) or type(error).__name__}") from error


def _read(content: bytes) -> tuple[dict[str, Any], dict[str, _Arrays]]:
    """Return header and arrays by folder, of a file that is ours, unchanged and of a known version."""
    found = _END.search(content, max(0, len(content) - _LONGEST_END))
    if found is None or found.end() != len(content):
        raise ValueError("it is no onebit model, or it was cut off")
    if int(found[1]) != _VERSION:
        raise ValueError(f"it is of format {int(found[1])}, and this onebit reads format {_VERSION}: update onebit")
    if _checksum_of(content) != found[2]:
        raise ValueError("it was changed since it was saved: its checksum does not fit")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = archive.infolist()
        if any(part.compress_type != zipfile.ZIP_STORED or part.file_size != part.compress_size for part in parts):
            raise ValueError("its parts must not be compressed")
        if sum(part.file_size for part in parts) > len(content):
            raise ValueError("its parts are larger than it is")
        names = [part.filename.removesuffix(".npy") for part in parts if part.filename != "header.json"]
        folders: dict[str, _Arrays] = {"state": {}, "confidence": {}, "tickets": {}, "values": {}}
        for path, array in read_npz(archive, names).items():
            folder, _, name = path.partition("/")
            folders[folder][name] = array
        return parse(archive.read("header.json")), folders


def _rebuilt(header: dict[str, Any], folders: dict[str, _Arrays], trusted: Trusted, size: int) -> "Learner":
    values, cls = list(folders["values"].values()), trusted.find(header["learner"])
    if not (isinstance(cls, type) and issubclass(cls, _learners().Learner)):
        raise ValueError(f"{header['learner']} is no learner")

    def read(described: Any) -> Any:
        return {name: restore(value, trusted, values) for name, value in described.items()}

    learner: Learner = cls(**read(header.get("in_force", header["settings"])))
    learner.max_open_tickets = header["max_open_tickets"]
    if "in_force" in header:
        _put_back(learner, header, folders, restore(header["labels"], trusted, values), size)
        with no_more_than(_ROOM + 8 * size):  # a learner may start others that it wraps
            own = read(header["own"])
            if "feature_names_in_" in own and np.shape(own["feature_names_in_"]) != (learner.n_features_in_,):
                raise ValueError(f"it gives the learner {', '.join(own)}, which do not fit")
            if _is_ours(learner):
                learner._take_back({name: own.pop(name) for name in list(own) if name not in _KEPT})
        if _made_by_learners() & own.keys():
            raise ValueError(f"it gives the learner {', '.join(own)}, of which it makes some itself")
        vars(learner).update(own)
        learner.set_params(**read(header["settings"]))
    return learner


def _put_back(learner: "Learner", header: dict[str, Any], folders: dict[str, _Arrays], labels: Any, size: int) -> None:
    """Restore the saved state and the open tickets in a learner."""
    n_features = check_integer("n_features", header["n_features"], low=1)
    counts = {name: check_integer(name, header["counts"][name], low=0, high=MAX_SEED // 2) for name in _COUNTS}
    # Every state but `ByHand` has an array as wide as the features: a small file cannot need a large state.
    if n_features > size and folders["state"]:
        raise ValueError(f"it speaks of {n_features} features, and is too small for that")
    if not isinstance(labels, np.ndarray):  # a small file could hold a large count
        raise ValueError(f"its labels are no list: {labels!r:.80}")
    with no_more_than(_ROOM + 8 * size):
        run.begin(learner, n_features, check_classes(labels), check_seed(header["seed"]))
    if not learner._state.plays_by_hand:
        _unpack_state(learner._state, folders["state"])
    vars(learner).update(counts)
    if folders["confidence"]:
        learner._confidence = learner._new_confidence()
        if learner._confidence is None:
            raise ValueError("another version of onebit saved it, which estimated confidence otherwise")
        learner._confidence.put_back(folders["confidence"])
    if folders["tickets"]:
        learner._tickets = Tickets.from_arrays(folders["tickets"], learner)


def _unpack_state(state: State, packed: _Arrays) -> None:
    """Fill an empty state from packed arrays, or raise ValueError."""
    empty, sizes = state.arrays._asdict(), dict[str, int]()
    left_out = empty.keys() - packed.keys()
    if not left_out <= set(state.follows()) or packed.keys() - empty.keys():
        raise ValueError(
            "another version of onebit saved it, whose learner kept other arrays: load it with that version, or learn "
            f"from the rounds again ({', '.join(sorted(packed.keys() ^ empty.keys()))})"
        )
    for name, array in packed.items():
        blank = empty[name]
        if array.ndim != blank.ndim or array.dtype.newbyteorder("=") != blank.dtype:
            raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not like {blank.dtype} {blank.shape}")
        for axis, size, least in zip(_axes_of(state, name, blank), array.shape, blank.shape, strict=True):
            if size != (least if axis in ("", "class") else sizes.setdefault(axis, size)):
                raise ValueError(f"{name} has shape {array.shape}, which does not fit the others or {blank.shape}")
    taken = {}
    for name, blank in empty.items():
        axes = _axes_of(state, name, blank)
        shape = tuple(max(sizes.get(axis, 0), least) for axis, least in zip(axes, blank.shape, strict=True))
        if name in left_out:
            if math.prod(shape) > _MOST_REBUILT:
                raise ValueError(f"it leaves out {name}, of shape {shape}: more than such a file may ask for")
            taken[name] = np.zeros(shape, blank.dtype)
            continue
        taken[name] = array = grown(np.ascontiguousarray(packed[name], blank.dtype), shape)
        if array.dtype.kind == "i" and array.size and not 0 <= array.min() <= array.max() <= _MOST_COUNT:
            raise ValueError(f"{name} holds a negative or an impossibly large number")
    arrays = type(state.arrays)(**taken)
    state.check_arrays(arrays)
    if left_out:
        state.rebuild(arrays)
    state.arrays = arrays
    state.renew()
