"""Tickets: the guesses of a learner that await feedback. Each is accepted once, and only as issued.

A ticket has a random token. It is accepted if its round is open and its content, token included, is that of the ticket
issued there; an equal ticket (saved and loaded, or from JSON) is as good as the original object.

- A *restored* learner (a saved file, a pickle, or the child of a fork) accepts the tickets that were open when it was
  saved. It draws tokens of its own, so it never accepts a ticket that the original, or another learner restored from
  the same file, issued later.
- A *copy* (`copy.copy`, `copy.deepcopy`) has the same state but no open tickets: no feedback is used twice.
- A *fresh start* closes all tickets.

The learner keeps the latest ``learner.max_open_tickets`` open tickets whole; `tell` finds these by their `id`. When
there are more, the oldest *expires*: only a digest of eight bytes is kept, against which the ticket itself (the object,
or its JSON) can still be checked. The digests of 256 rounds form a page, which is freed when its last ticket is closed.
"""

import copy
import math
import operator
import os
import secrets
import struct
from collections.abc import Iterable
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from onebit.game import TOKEN, Guess, read_id
from onebit.inputs import Floats, Rows, SparseRows
from onebit.machine_memory import check_memory

if TYPE_CHECKING:
    from onebit.learners.base import Learner

TICKET_BYTES = 1_000
"""Bytes of an open ticket beside its arrays."""
_FLOAT64, _INT64 = np.dtype(np.float64), np.dtype(np.int64)
# Whether the row is sparse; lengths of row, columns, scores and evidence; round, index, explored, version, propensity,
# confidence, token.
_HEAD = struct.Struct(f"<?qqqqqqbqdd{TOKEN}s")
_DIGEST = 8  # bytes; two tickets share a digest with probability about 10⁻¹⁹
_PAGE = 256  # rounds
_TOKENS_AT_ONCE = 512  # one system call per ticket would cost a tenth of a guess

_new_guess = tuple.__new__  # half the time of Guess(…), which calls it
_tokens: list[bytes] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_tokens.clear)  # parent and child must not issue the same


def _new_token() -> bytes:
    try:
        return _tokens.pop()
    except IndexError:
        drawn = secrets.token_bytes(_TOKENS_AT_ONCE * TOKEN)
        token, *more = (drawn[start : start + TOKEN] for start in range(0, len(drawn), TOKEN))
        _tokens.extend(more)
        return token


class Tickets:
    """The open tickets of one learner.

    Parameters
    ----------
    most : int
        How many open tickets are kept whole; at least 1.
    kept : iterable of Guess
        Those that are open from the start, the oldest first.
    """

    def __init__(self, most: int, kept: Iterable[Guess] = ()) -> None:
        self.most = most
        self._kept = {guess.round: guess for guess in kept}
        """The learner's own form of open tickets: what is done to the caller's does not reach it. The oldest first."""
        self._pages: dict[int, npt.NDArray[np.uint64]] = {}
        """Digests of expired tickets, by round; 0 where none is open."""
        self._latest: Guess | None = None
        """The caller's form of the latest ticket: nearly always the next to be told."""

    def issue(
        self,
        round: int,
        label: Any,
        propensity: float,
        explored: bool,
        index: int,
        row: Rows,
        scores: Floats,
        version: int,
        confidence: float | None,
        evidence: Floats,
        labels: tuple[Any, ...],
    ) -> Guess:
        """Return an open ticket."""
        while len(self._kept) >= self.most:
            oldest = self._kept.pop(next(iter(self._kept)))
            self._write(oldest.round, _digest(_content_of(oldest)))
        head, token = (round, label, propensity, explored, index), _new_token()
        self._kept[round] = _new_guess(Guess, (*head, row, scores, version, confidence, evidence, labels, token))
        copies = row.copy(), scores.copy(), version, confidence, evidence.copy()
        self._latest = guess = _new_guess(Guess, (*head, *copies, labels, token))
        return guess

    def look_up(self, guess: Guess | str, learner: "Learner") -> Guess:
        """Return the learner's own form of an open ticket, given as itself, its JSON or its id, or raise ValueError."""
        if isinstance(guess, Guess) and guess is self._latest and guess.round in self._kept:
            return self._kept[guess.round]
        if not isinstance(guess, str):
            return self._check(guess, learner)
        if guess.lstrip().startswith("{"):  # an id never does
            return self._check(Guess.from_json(guess), learner)
        round, token = read_id(guess)
        own = self._kept.get(round)
        if own is not None and secrets.compare_digest(own.token, token):
            return own
        if own is None and self._digest_at(round):
            raise ValueError(
                f"guess {guess!r} has expired: the learner remembers {self.most} open tickets, the latest ones "
                "(max_open_tickets). Tell the ticket itself instead of its id"
            )
        raise _not_open_error(repr(guess))

    def _check(self, guess: Guess, learner: "Learner") -> Guess:
        """Return the own form of a ticket, or raise ValueError unless it is open and unchanged."""
        if type(guess) is not Guess:  # a subclass could change its values between checks
            raise ValueError(f"guess must be what guess(x) returned, or its id; got {guess!r}")
        edited = ValueError(f"guess of round {guess.round!r} was edited; tell the ticket as guess(x) returned it")
        try:
            # Copy first, then check: other threads may write to the caller's arrays in between.
            given = _own_form(guess)
            content = _content_of(given)
        except (TypeError, ValueError, AttributeError, OverflowError, struct.error):
            raise edited from None
        own, labels = self._kept.get(given.round), learner._labels
        if own is not None:
            is_open, is_unchanged = own.token == given.token, _content_of(own) == content
        else:
            digest = self._digest_at(given.round)
            is_open, is_unchanged = digest != 0, digest == _digest(content)
        if not is_open:
            raise _not_open_error(f"of round {given.round}")
        if not is_unchanged or not 0 <= given.index < len(labels):  # a file may hold the digest of what was made up
            raise edited
        label = labels[given.index]
        if type(given.label) is not type(label) or given.label != label:
            raise edited
        if own is None:
            _check_fit(given, learner)
        return own or given

    def close(self, guess: Guess) -> None:
        """Close a ticket that was looked up."""
        if self._kept.pop(guess.round, None) is None:
            self._write(guess.round, 0)
            if not self._pages[guess.round // _PAGE].any():
                del self._pages[guess.round // _PAGE]

    def n_bytes(self) -> int:
        """Return roughly how much memory open tickets take, if all are like the latest."""
        latest = next(reversed(self._kept.values()), None)
        if latest is None:
            return 0
        return len(self._kept) * (TICKET_BYTES + latest.row.nbytes + latest.scores.nbytes + latest.evidence.nbytes)

    def _digest_at(self, round: int) -> int:
        page, place = divmod(round, _PAGE)
        return int(self._pages[page][place]) if page in self._pages else 0

    def _write(self, round: int, digest: int) -> None:
        page, place = divmod(round, _PAGE)
        self._pages.setdefault(page, np.zeros(_PAGE, np.uint64))[place] = digest

    def __copy__(self) -> "Tickets":
        twin = Tickets(self.most, self._kept.values())
        twin._pages = {number: page.copy() for number, page in self._pages.items()}
        twin._latest = self._latest
        return twin

    def __deepcopy__(self, _memo: Any) -> "Tickets":
        return copy.copy(self)  # tickets of its own need no copy

    # What a saved file holds.

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the open tickets as arrays for `from_arrays`."""
        contents = [_content_of(guess) for guess in self._kept.values()]
        places = {number: np.flatnonzero(page) for number, page in self._pages.items()}
        rounds = [number * _PAGE + found for number, found in places.items()]
        digests = [self._pages[number][found] for number, found in places.items()]
        return {
            "ends": np.cumsum([len(content) for content in contents], dtype=np.int64),
            "content": np.frombuffer(b"".join(contents), np.uint8),
            "expired_round": np.concatenate([np.zeros(0, np.int64), *rounds]),
            "expired_digest": np.concatenate([np.zeros(0, np.uint64), *digests]).view(np.uint8).reshape(-1, _DIGEST),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]], learner: "Learner") -> "Tickets":
        """Return the open tickets of a learner from a file that is not trusted, or raise ValueError."""
        blank = cls(1).to_arrays()
        if not blank.keys() <= arrays.keys():
            raise ValueError("its tickets lack an array")
        for name, like in blank.items():
            if arrays[name].dtype.newbyteorder("=") != like.dtype or arrays[name].shape[1:] != like.shape[1:]:
                raise ValueError(f"{name} of its tickets is {arrays[name].dtype} of shape {arrays[name].shape}")
        native = {name: np.ascontiguousarray(arrays[name], like.dtype) for name, like in blank.items()}
        starts, content = [0, *native["ends"].tolist()], native["content"].tobytes()
        if sorted(starts) != starts or starts[-1] != len(content):
            raise ValueError("its tickets do not lie one behind the other")
        kept = [_guess_of(content[start:end], learner._labels) for start, end in pairwise(starts)]
        for guess in kept:
            _check_fit(guess, learner)
        rounds = [-1, *(guess.round for guess in kept), learner.n_rounds_]
        if any(later <= earlier for earlier, later in pairwise(rounds)):
            raise ValueError("its tickets are not in the order of their rounds")
        expired = native["expired_round"]
        if len(expired) and not 0 <= expired.min() <= expired.max() < learner.n_rounds_:
            raise ValueError("an expired ticket is of a round that was not played")
        check_memory(_PAGE * _DIGEST * len(np.unique(expired // _PAGE)))
        found = cls(learner.max_open_tickets, kept)
        digests = native["expired_digest"].view(np.uint64).ravel()
        for round, digest in zip(expired.tolist(), digests.tolist(), strict=True):
            found._write(round, digest)
        return found


def _check_fit(guess: Guess, learner: "Learner") -> None:
    """Raise ValueError unless compiled code can take a ticket: one from a file may be forged."""
    row, state, evidence = guess.row, learner._state, guess.evidence
    is_row = state.takes(row, learner.n_features_in_)
    if isinstance(row, SparseRows):
        columns = row.columns
        is_row = is_row and row.starts.tolist() == [0, len(columns)] and len(columns) == len(row.values)
        # Not via differences, which may overflow.
        is_rising = bool((columns[1:] > columns[:-1]).all())
        is_row = is_row and (not len(columns) or (is_rising and columns[0] >= 0 and columns[-1] < row.n_columns))
    else:
        is_row = is_row and len(row) == 1
    numbers = row.values if isinstance(row, SparseRows) else row
    n_evidence = 0 if learner._confidence is None else learner._confidence.n_evidence
    is_evidence = len(evidence) in (0, n_evidence) and np.isfinite(evidence).all()
    if not (is_row and is_evidence and np.isfinite(numbers).all() and state.takes_scores(guess.scores, guess.index)):
        raise ValueError(f"guess of round {guess.round} has a row or scores that no guess is made from")


def _own_form(guess: Guess) -> Guess:
    """Return a ticket with its own arrays, of the types that compiled code takes; raises if it cannot be one."""
    confidence, token, row = guess.confidence, guess.token, guess.row
    if confidence is not None and not (type(confidence) is float and 0.0 <= confidence <= 1.0):
        raise TypeError("confidence is a probability or None")
    if type(guess.explored) is not bool or type(token) is not bytes or len(token) != TOKEN:
        raise TypeError(f"explored is True or False, a token {TOKEN} bytes")
    if type(row) is SparseRows:
        columns, starts = _copied(row.columns, _INT64), _copied(row.starts, _INT64)
        row = SparseRows(_copied(row.values, _FLOAT64), columns, starts, operator.index(row.n_columns))
        if columns.shape != row.values.shape or starts.shape != (2,):
            raise ValueError("no sparse row")
    else:
        row = _copied(row, _FLOAT64)
    return guess._replace(
        round=operator.index(guess.round),
        index=operator.index(guess.index),
        row=row,
        scores=_copied(guess.scores, _FLOAT64),
        evidence=_copied(guess.evidence, _FLOAT64),
    )


def _copied(array: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if type(array) is not np.ndarray or array.dtype != dtype:
        raise TypeError(f"no array of {dtype}")
    return np.array(array, order="C")


def _content_of(guess: Guess) -> bytes:
    """Return the content of a ticket as bytes, without its label; raises if a field is not a number."""
    round, _, propensity, explored, index, row, scores, version, confidence, evidence, _, token = guess
    (n_scores,), (n_evidence,) = scores.shape, evidence.shape
    numbers = round, index, explored, version, propensity, math.nan if confidence is None else confidence, token
    known = scores.tobytes() + evidence.tobytes()
    if type(row) is np.ndarray:
        return _HEAD.pack(False, *row.shape, n_scores, n_evidence, *numbers) + row.tobytes() + known
    values, columns, starts, n_columns = row
    head = _HEAD.pack(True, len(values), n_columns, n_scores, n_evidence, *numbers)
    return head + values.tobytes() + columns.tobytes() + starts.tobytes() + known


def _guess_of(content: bytes, labels: tuple[Any, ...]) -> Guess:
    """Return the ticket with that content, or raise an error if there can be none."""
    is_sparse, size, width, n_scores, n_evidence, round, index, explored, *rest = _HEAD.unpack_from(content)
    sizes = [*([size, size, 2] if is_sparse else [size * width]), n_scores, n_evidence]
    if min(size, width, n_scores, n_evidence, index) < 0 or len(content) != _HEAD.size + 8 * sum(sizes):
        raise ValueError("a ticket has another length than its row, scores and evidence")
    numbers = np.frombuffer(content, np.float64, offset=_HEAD.size).copy()
    *of_row, scores, evidence = np.split(numbers, np.cumsum(sizes)[:-1])
    if is_sparse:
        values, columns, starts = of_row
        row: Any = SparseRows(values, columns.view(np.int64), starts.view(np.int64), width)
    else:
        row = of_row[0].reshape(size, width)
    version, propensity, confidence, token = rest
    known = None if math.isnan(confidence) else confidence
    return Guess(
        round, labels[index], propensity, bool(explored), index, row, scores, version, known, evidence, labels, token
    )


def _digest(content: bytes) -> int:
    return int.from_bytes(blake2b(content, digest_size=_DIGEST).digest(), "little") or 1  # 0 means: not open


def _not_open_error(which: str) -> ValueError:
    """Return the error for a closed ticket or one of another learner; after loading the two look the same."""
    return ValueError(
        f"guess {which} is not open here: it was told before, or is foreign (another learner, another run or a copy of "
        "this one issued it). Each guess is told once, to the learner that issued it"
    )
