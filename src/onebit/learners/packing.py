"""A learner's state and tickets as named arrays for a file: packed without spare capacity, checked when unpacked.

Compiled code does not check bounds, so arrays from an untrusted file are checked here: names, dtypes, consistent
shapes, no negative numbers where none can be, and then each `State.check_arrays`.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from onebit.engine.state import State, grown
from onebit.game import TOKEN, Guess
from onebit.inputs import SparseRows
from onebit.learners.tickets import DIGEST, PAGE, ROUNDS, Expired, Tickets, is_fit
from onebit.machine_memory import check_memory
from onebit.typed_json import check_position

Arrays = dict[str, npt.NDArray[Any]]

_MOST_REBUILT = 1 << 26  # numbers that a file may omit because they follow from others: half a gigabyte
_MOST = 1 << 56  # largest count: ten times as many still fit in 64 bits


def pack_state(state: State) -> Arrays:
    """Return copies of a state's arrays by name, without spare capacity and without what follows from the others."""
    if state.plays_by_hand:
        return {}
    follows = state.follows()
    parts = filled_arrays(state).items()
    return {name: part.copy() for name, part in parts if name not in follows or part.size > _MOST_REBUILT}


def filled_arrays(state: State) -> Arrays:
    """Return views of a state's arrays by name, without spare capacity."""
    # At least one entry, even if unused: then a file is at least as large as its number of features.
    filled = {axis: max(1, size) for axis, size in state.filled().items()}
    found = {}
    for name, array in state.arrays._asdict().items():
        axes = state.rooms.get(name, ("",) * array.ndim)
        found[name] = array[tuple(slice(filled.get(axis)) for axis in axes)]
    return found


def unpack_state(state: State, packed: Mapping[str, npt.NDArray[Any]]) -> None:
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
        array, axes = packed[name], state.rooms.get(name, ("",) * blank.ndim)
        if array.ndim != blank.ndim or array.dtype.newbyteorder("=") != blank.dtype:
            raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not like {blank.dtype} {blank.shape}")
        shape = []
        for axis, size, least in zip(axes, array.shape, blank.shape, strict=True):
            if sizes.setdefault(axis, size) != size if axis else size != least:
                raise ValueError(f"{name} has shape {array.shape}, which does not fit the others or {blank.shape}")
            shape.append(max(size, least))
        array = grown(np.asarray(array, blank.dtype), tuple(shape))
        if array.dtype.kind == "i" and array.size and not 0 <= array.min() <= array.max() <= _MOST:
            raise ValueError(f"{name} holds a negative number, or one that nobody can have counted to")
        taken[name] = array
    for name in left_out:
        blank = empty[name]
        shape = [max(sizes.get(axis, 0), least) for axis, least in zip(state.rooms[name], blank.shape, strict=True)]
        if math.prod(shape) > _MOST_REBUILT:
            raise ValueError(f"it leaves out {name}, of shape {tuple(shape)}: more than such a file may ask for")
        taken[name] = np.zeros(shape, blank.dtype)
    arrays = type(state.arrays)(**taken)
    state.check_arrays(arrays)
    if left_out:
        state.rebuild(arrays)
    state.arrays = arrays
    state.renew()


# Open tickets. Rows and scores may have any length, and are concatenated.


def pack_tickets(tickets: Tickets) -> tuple[list[str], Arrays]:
    """Return the names of the runs that have open tickets, and the tickets' content as arrays."""
    kept, expired = tickets.all_kept(), tickets.all_expired()
    runs = list(dict.fromkeys([*(str(guess.learner) for guess in kept), *(each.run for each in expired)]))
    place = {run: i for i, run in enumerate(runs)}
    rows = [guess.row for guess in kept]
    values = [row.values if isinstance(row, SparseRows) else row[0] for row in rows]
    columns = [row.columns if isinstance(row, SparseRows) else np.empty(0, np.int64) for row in rows]
    arrays: Arrays = {
        "run": np.array([place[str(guess.learner)] for guess in kept], np.int64),
        "round": np.array([guess.round for guess in kept], np.int64),
        "index": np.array([guess.index for guess in kept], np.int64),
        "version": np.array([guess.version for guess in kept], np.int64),
        "probability": np.array([guess.propensity for guess in kept], np.float64),
        "explored": np.array([guess.explored for guess in kept], np.int8),
        "token": _of_bytes([guess.token for guess in kept], TOKEN),
        "sparse": np.array([isinstance(row, SparseRows) for row in rows], np.int8),
        "expired_run": np.array([place[each.run] for each in expired], np.int64),
        "expired_round": np.array([each.round for each in expired], np.int64),
        "expired_digest": _of_bytes([each.digest for each in expired], DIGEST),
    }
    for name, parts in (("values", values), ("columns", columns), ("scores", [guess.scores for guess in kept])):
        empty = np.empty(0, np.int64 if name == "columns" else np.float64)
        arrays[name] = np.concatenate([empty, *parts])
        arrays[f"{name}_ends"] = np.cumsum([len(part) for part in parts], dtype=np.int64)
    return runs, arrays


def unpack_tickets(
    most: int,
    runs: list[str],
    arrays: Mapping[str, npt.NDArray[Any]],
    labels: list[Any],
    state: State,
    n: tuple[int, int],
) -> Tickets:
    """Return the packed tickets, or raise ValueError; n is the number of features and of rounds."""
    n_features, n_rounds = n
    _, blank = pack_tickets(Tickets(1))
    if set(arrays) != set(blank):
        raise ValueError("its tickets lack an array, or have one too many")
    for name, like in blank.items():
        if arrays[name].dtype.newbyteorder("=") != like.dtype or arrays[name].shape[1:] != like.shape[1:]:
            raise ValueError(f"{name} of its tickets is {arrays[name].dtype} of shape {arrays[name].shape}")
    arrays = {name: np.asarray(arrays[name], like.dtype) for name, like in blank.items()}  # in native byte order
    _check_rounds(arrays["round"], n_rounds)
    values, columns, scores = (
        _pieces(arrays[name], arrays[f"{name}_ends"]) for name in ("values", "columns", "scores")
    )
    kept = []
    singles = ("run", "round", "index", "version", "probability", "explored", "token", "sparse")
    for i, each in enumerate(zip(*(arrays[name] for name in singles), strict=True)):
        run, round, index, version, propensity, explored, token, is_sparse = each
        row: Any = values[i][None].copy()
        if is_sparse:
            row = SparseRows(values[i].copy(), columns[i].copy(), np.array([0, len(columns[i])]), n_features)
        label = labels[check_position(int(index), len(labels))]
        of_run = runs[check_position(int(run), len(runs))]
        fields = int(round), label, float(propensity), bool(explored), int(index), row, scores[i].copy(), int(version)
        kept.append(Guess(*fields, of_run, token.tobytes()))
        if not is_fit(kept[-1], state, n_features):
            raise ValueError(f"its ticket of round {round} has a row or scores that no guess is made from")
    return Tickets.restored(most, kept, _unpack_expired(runs, arrays, n_rounds))


def _unpack_expired(runs: list[str], arrays: Mapping[str, npt.NDArray[Any]], n_rounds: int) -> list[Expired]:
    rounds = arrays["expired_round"]
    if len(rounds) and not 0 <= rounds.min() <= rounds.max() < n_rounds:
        raise ValueError("an expired ticket is of a round that was not played")
    # In the worst case each has its own page.
    check_memory(PAGE * len(np.unique(np.column_stack([arrays["expired_run"], rounds // ROUNDS]), axis=0)))
    found = zip(arrays["expired_run"].tolist(), rounds.tolist(), arrays["expired_digest"], strict=True)
    return [Expired(runs[check_position(run, len(runs))], round, digest.tobytes()) for run, round, digest in found]


def _of_bytes(parts: list[bytes], size: int) -> npt.NDArray[np.uint8]:
    return np.frombuffer(b"".join(parts), np.uint8).reshape(len(parts), size)


def _check_rounds(rounds: npt.NDArray[Any], n_rounds: int) -> None:
    if len(rounds) and (rounds[0] < 0 or rounds[-1] >= n_rounds or (rounds[1:] <= rounds[:-1]).any()):
        raise ValueError("its tickets are not in the order of their rounds")


def _pieces(joined: npt.NDArray[Any], ends: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Split an array at the ends of its pieces."""
    starts = np.concatenate([np.zeros(1, np.int64), ends])
    if (starts[1:] < starts[:-1]).any() or starts[-1] != len(joined):
        raise ValueError("the rows of its tickets do not lie one behind the other")
    return [joined[start:end] for start, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]
