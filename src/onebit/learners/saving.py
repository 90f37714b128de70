"""Saving a learner to one file.

The file is a zip that NumPy opens too (npz): ``header.json`` holds the class, settings and counts, ``memory/…`` the
learned state, ``tickets/…`` the open tickets, ``values/…`` other arrays. Nothing is compressed, so reading needs no
more room than the file. The zip's comment, the last bytes of the file, has the format version and a checksum of
everything before it. There are no timestamps: the same learner gives the same bytes. `loading` reads it.
"""

import io
import os
import zipfile
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from onebit.files import replace_file
from onebit.import_paths import import_path_of
from onebit.learners.packing import Arrays, pack_state, pack_tickets
from onebit.typed_json import describe, write

if TYPE_CHECKING:
    from onebit.learners.base import Learner

VERSION = 2  # version 1 also held arrays that follow from others
"""Format version: raised when an older onebit could no longer read what this one writes."""
CHECKSUM = 32
"""Bytes of the checksum; written as hexadecimal digits at the end of the file."""
MOST_HEADER = 1 << 26
"""The largest header, in bytes."""
COUNTS = ("n_rounds_", "n_mistakes_", "n_updates_", "n_uniform_guesses_")
OURS = "onebit.learners"
"""The package whose learners are always trusted."""
KEPT = ("feature_names_in_",)
"""Attributes that our own learners keep beside settings, counts, state and tickets."""
REBUILT = {"_lock", "_state", "_tickets", "_labels", "_key", "_row_shape", "_in_force", "_max_open_tickets"} | {
    *COUNTS,
    "classes_",
    "n_features_in_",
}
"""Attributes that are rebuilt on loading, or saved under a name of their own."""


def comment(version: int, checksum: bytes) -> bytes:
    """Return the comment at the end of a file."""
    return f"onebit model {version}, blake2b ".encode() + checksum.hex().encode()


def checksum_of(content: Any) -> bytes:
    """Return the checksum of the content before it."""
    return blake2b(content, digest_size=CHECKSUM).digest()


def save(learner: "Learner", path: "str | os.PathLike[str]") -> None:
    """Write a learner to a file, whole or not at all; see `Learner.save`."""
    replace_file(Path(os.path.realpath(path)), to_bytes(learner))  # a link stays a link


def to_bytes(learner: "Learner") -> Any:
    """Return the content of a learner's file."""
    with learner._lock:
        header, arrays = _describe_learner(learner)
    return _packed(header, arrays)


def _packed(header: Any, arrays: Arrays) -> Any:
    """Return the content of the file."""
    text = write(header).encode()
    if len(text) > MOST_HEADER:
        raise ValueError(
            f"settings, labels and own values take {len(text)} bytes; they must take at most {MOST_HEADER}"
        )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.comment = comment(VERSION, bytes(CHECKSUM))
        archive.writestr(zipfile.ZipInfo("header.json"), text)
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as part:
                npy.write_array(part, array, version=(1, 0), allow_pickle=False)
    content = file.getbuffer()
    checksum = checksum_of(content[: -2 * CHECKSUM])
    content[-2 * CHECKSUM :] = checksum.hex().encode()
    return content


def _describe_learner(learner: "Learner") -> tuple[dict[str, Any], Arrays]:
    """Return the header, and the arrays by name."""
    values: list[Any] = []
    settings, cls = learner.get_params(deep=False), type(learner)
    is_ours = cls.__module__.startswith(f"{OURS}.")
    header: dict[str, Any] = {
        "onebit": "model",
        "version": VERSION,
        "learner": f"{OURS}:{cls.__name__}" if is_ours else import_path_of(cls),
        "settings": _described("the setting", settings, values),
        "max_open_tickets": learner.max_open_tickets,
    }
    arrays: Arrays = {}
    if learner._started:
        in_force = learner._in_force
        own = {name: value for name, value in vars(learner).items() if name not in REBUILT and name not in settings}
        if is_ours:
            own = {name: value for name, value in own.items() if name in KEPT} | learner._keep()
        header |= {
            "in_force": _described("the setting", in_force, values),
            "n_features": learner.n_features_in_,
            "labels": _described("the", {"classes": learner.classes_}, values)["classes"],
            "seed": learner._key,
            "counts": {name: int(getattr(learner, name)) for name in COUNTS},
            "own": _described("what it keeps as", own, values),
            "runs": [],
        }
        arrays |= {f"memory/{name}": array for name, array in pack_state(learner._state).items()}
        if learner._tickets is not None:
            header["runs"], of_tickets = pack_tickets(learner._tickets)
            arrays |= {f"tickets/{name}": array for name, array in of_tickets.items()}
    return header, arrays | {f"values/{i}": array for i, array in enumerate(values)}


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
