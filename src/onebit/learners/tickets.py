"""Tickets: the guesses of a learner that await feedback. Each is accepted once, and only as issued.

A ticket belongs to the learner that issued it, identified by the random name of its *run*. A ticket is accepted if its
run is one of the learner's, its round is open there, and its content is unchanged; an equal ticket (saved and loaded,
or from JSON) is as good as the original object.

- A *restored* learner (a saved file, pickle, or the child of a fork) accepts the tickets that were open when it was
  saved, and issues its own under a new run name. So it never accepts a ticket that the original, or another learner
  restored from the same file, issued later.
- A *copy* (`copy.copy`, `copy.deepcopy`) has the same state but no open tickets: no feedback is used twice.
- A *fresh start* closes all tickets.

The learner keeps the latest ``learner.max_open_tickets`` open tickets whole; `tell` finds these by their `id`. When
there are more, the oldest *expires*: only a digest of eight bytes is kept, against which the ticket itself (the object,
or its JSON) can still be checked. A ticket that is answered before the next guess costs nothing. The digests of 256
expired rounds form a page, which is freed when its last ticket is closed.
"""

import math
import operator
import os
import secrets
import struct
import uuid
from collections import Counter
from contextlib import suppress
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from onebit.engine.state import State
from onebit.game import TOKEN, Guess, read_id
from onebit.inputs import Rows, SparseRows

_FLOAT64, _INT64 = np.dtype(np.float64), np.dtype(np.int64)
# Whether the row is sparse; lengths of row, columns, scores and evidence; round, index, explored, version, propensity,
# confidence, token.
_HEAD = struct.Struct(f"<?qqqqqqbqdd{TOKEN}s")
_pack_head = _HEAD.pack
DIGEST = 8
"""Bytes kept of an expired ticket; two tickets share a digest with probability about 10⁻¹⁹."""
ROUNDS = 256
"""Rounds on a page."""
PAGE = ROUNDS * DIGEST
"""Bytes of a page."""
_EMPTY_PAGE = bytes(PAGE)
TICKET_BYTES = 1_000
"""Bytes of an open ticket beside its arrays."""
_TOKENS_AT_ONCE = 512  # one system call per ticket would cost a tenth of a guess

_new_guess = tuple.__new__  # half the time of Guess(…), which calls it

_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


class Expired(NamedTuple):
    """What is left of an expired ticket."""

    run: str
    round: int
    digest: bytes


class Tickets:
    """The open tickets of one learner.

    Parameters
    ----------
    most : int
        How many open tickets are kept whole; at least 1.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._pages: dict[str, dict[int, bytearray]] = {}
        """By run, the pages of digests of expired tickets; a digest of zeros is not open."""
        self._kept: dict[int, Guess] = {}
        """Open tickets by round, the oldest first; a round is never used twice."""
        self._n_kept: Counter[str] = Counter()
        """How many of them each run issued."""
        self.latest: Guess | None = None
        """The latest ticket, until it is closed or the next one is issued."""
        self.own: Guess | None = None
        """A copy of it with its own arrays, so that changes to the caller's ticket do not reach the learner."""
        self._name_run()

    def _name_run(self) -> None:
        # Independent of seed and process: unique everywhere.
        self.run, self._fork = uuid.uuid4().hex, _forks
        self._pages[self.run] = {}
        self._tokens: list[bytes] = []

    def issue(self, *fields: Any) -> Guess:
        """Return an open ticket of the current run; the arguments are its fields, up to the labels."""
        if self.latest is not None:
            self._file_latest()
            while len(self._kept) >= self.most:
                self._expire_oldest()
        if self._fork != _forks:
            self.retire()
        if not self._tokens:
            drawn = secrets.token_bytes(_TOKENS_AT_ONCE * TOKEN)
            self._tokens = [drawn[start : start + TOKEN] for start in range(0, len(drawn), TOKEN)]
        run, token = self.run, self._tokens.pop()
        *head, row, scores, version, confidence, evidence, labels = fields
        self.own = _new_guess(Guess, (*fields, run, token))
        copies = row.copy(), scores.copy(), version, confidence, evidence.copy(), labels
        self.latest = guess = _new_guess(Guess, (*head, *copies, run, token))
        return guess

    def look_up(self, guess: Guess | str, labels: tuple[Any, ...], state: State, shape: tuple[int, int]) -> Guess:
        """Return the learner's own form of an open ticket, given as itself, its JSON or its id, or raise ValueError.

        `labels` has the label of every index; `shape` is the number of features, and that of numbers in evidence.
        """
        own = self.own
        if own is not None and guess is self.latest:
            return own
        if isinstance(guess, str) and guess.lstrip().startswith("{"):  # an id never does
            guess = Guess.from_json(guess)
        own = self._find(guess) if isinstance(guess, str) else self._check(guess, labels)
        # Tickets of this run are valid; one from a file may be forged.
        if own.learner != self.run and not is_fit(own, state, *shape):
            raise ValueError(f"guess of round {own.round} has a row or scores that no guess is made from")
        return own

    def _find(self, name: str) -> Guess:
        round, token = read_id(name)
        own = self.own if self.own is not None and self.own.round == round else self._kept.get(round)
        if own is not None and secrets.compare_digest(own.token, token):
            return own
        if own is None and any(any(self._digest_at(run, round)) for run in self._pages):
            raise ValueError(
                f"guess {name!r} has expired: the learner remembers {self.most} open tickets, the latest ones "
                "(max_open_tickets). Tell the ticket itself instead of its id"
            )
        raise _not_open_error(repr(name))

    def _check(self, guess: Guess, labels: tuple[Any, ...]) -> Guess:
        """Return a ticket with its own arrays, or raise ValueError unless it is open and unchanged."""
        if type(guess) is not Guess:  # a subclass could change its values between checks
            raise ValueError(f"guess must be what guess(x) returned, or its id; got {guess!r}")
        content: bytes | None = None
        with suppress(TypeError, ValueError, AttributeError, OverflowError, struct.error):
            # Copy first, then check: other threads may write to the caller's arrays in between.
            guess = _own_form(guess)
            content = content_of(guess)
        self._check_filed(guess, content)
        if not 0 <= guess.index < len(labels):  # digests may come from an untrusted file
            raise _edited_error(guess)
        label, issued = guess.label, labels[guess.index]
        if type(label) is not type(issued) or label != issued:
            raise _edited_error(guess)
        return guess

    def _check_filed(self, guess: Guess, content: bytes | None) -> None:
        t, run = guess.round, guess.learner
        if not isinstance(run, str) or run not in self._pages:
            raise _not_open_error(f"of round {t!r}")
        if self.latest is not None:
            self._file_latest()
        if isinstance(t, (int, np.integer)):
            kept = self._kept.get(int(t))
            if kept is not None and kept.learner == run:
                if content != content_of(kept):
                    raise _edited_error(guess)
                return
            digest = self._digest_at(run, int(t))
            if not any(digest):
                raise _not_open_error(f"of round {t}")
            if content is not None and digest == _digest(content):
                return
        raise _edited_error(guess)

    def close(self, guess: Guess) -> None:
        """Close a ticket that was looked up."""
        if guess is self.own:
            self.latest = self.own = None
            return
        run, round = guess.learner, guess.round
        assert run is not None
        pages = self._pages[run]
        kept = self._kept.get(round)
        if kept is not None and kept.learner == run:
            self._take_out(round)
        else:
            page = round // ROUNDS
            self._write(pages, round, bytes(DIGEST))
            if pages[page] == _EMPTY_PAGE:
                del pages[page]
        self._drop_if_done(run)

    def retire(self) -> None:
        """Continue under a new run name; open tickets stay open."""
        if self.latest is not None:
            self._file_latest()
        old = self.run
        self._name_run()
        self._drop_if_done(old)

    def n_bytes(self) -> int:
        """Return roughly how much memory open tickets take, if all are like the latest."""
        latest = self.own or next(reversed(self._kept.values()), None)
        if latest is None:
            return 0
        arrays = latest.row.nbytes + latest.scores.nbytes + latest.evidence.nbytes
        return (len(self._kept) + 1) * (TICKET_BYTES + arrays)

    # What a saved file holds.

    def all_kept(self) -> list[Guess]:
        """Return the open tickets that are kept whole, the oldest first."""
        return [*self._kept.values()] + ([] if self.own is None else [self.own])

    def all_expired(self) -> list[Expired]:
        """Return the rounds and digests of the expired tickets."""
        found = []
        for run, pages in self._pages.items():
            for number, page in pages.items():
                digests = (bytes(page[start : start + DIGEST]) for start in range(0, len(page), DIGEST))
                found += [Expired(run, number * ROUNDS + i, each) for i, each in enumerate(digests) if any(each)]
        return found

    @classmethod
    def restored(cls, most: int, kept: list[Guess], expired: list[Expired]) -> "Tickets":
        """Return an object with those open tickets, which continues under a new run name."""
        book = cls(most)
        for guess in kept:
            assert guess.learner is not None
            book._keep(guess.learner, guess)
        for run, round, digest in expired:
            book._write(book._pages.setdefault(run, {}), round, digest)
        return book

    # Internals.

    def _file_latest(self) -> None:
        assert self.own is not None
        self._keep(self.run, self.own)
        self.latest = self.own = None

    def _keep(self, run: str, guess: Guess) -> None:
        self._pages.setdefault(run, {})
        self._kept[guess.round] = guess
        self._n_kept[run] += 1

    def _take_out(self, round: int) -> Guess:
        guess = self._kept.pop(round)
        run = guess.learner
        assert run is not None
        self._n_kept[run] -= 1
        return guess

    def _expire_oldest(self) -> None:
        guess = self._take_out(next(iter(self._kept)))
        assert guess.learner is not None
        self._write(self._pages[guess.learner], guess.round, _digest(content_of(guess)))

    def _drop_if_done(self, run: str) -> None:
        """Forget a run that has no open tickets left."""
        if run != self.run and not self._n_kept[run] and not self._pages[run]:
            del self._pages[run], self._n_kept[run]

    def _digest_at(self, run: str, round: int) -> bytes:
        page, place = divmod(round, ROUNDS)
        return bytes(self._pages[run].get(page, _EMPTY_PAGE)[place * DIGEST : (place + 1) * DIGEST])

    @staticmethod
    def _write(pages: dict[int, bytearray], round: int, digest: bytes) -> None:
        page, place = divmod(round, ROUNDS)
        pages.setdefault(page, bytearray(_EMPTY_PAGE))[place * DIGEST : (place + 1) * DIGEST] = digest

    def __copy__(self) -> "Tickets":
        twin = Tickets.__new__(Tickets)
        vars(twin).update(vars(self))
        twin._pages = {
            run: {number: page.copy() for number, page in pages.items()} for run, pages in self._pages.items()
        }
        twin._kept, twin._n_kept = self._kept.copy(), self._n_kept.copy()
        return twin

    def __deepcopy__(self, _memo: Any) -> "Tickets":
        return self.__copy__()  # used by bookmarks, which keep the same run

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.retire()


def is_fit(guess: Guess, state: State, n_features: int, n_evidence: int) -> bool:
    """Return whether compiled code can take a checked ticket: one from a file may be forged."""
    row = guess.row
    if isinstance(row, SparseRows):
        values, columns, starts, n_columns = row
        if starts.tolist() != [0, len(columns)] or len(columns) != len(values):
            return False
        # Not via differences, which may overflow.
        if len(columns) and (columns[0] < 0 or columns[-1] >= n_columns or (columns[1:] <= columns[:-1]).any()):
            return False
    elif row.shape[0] != 1:
        return False
    numbers = row.values if isinstance(row, SparseRows) else row
    is_row = state.takes(row, n_features) and bool(np.isfinite(numbers).all())
    if len(guess.evidence) and (len(guess.evidence) != n_evidence or not np.isfinite(guess.evidence).all()):
        return False
    return is_row and state.takes_scores(guess.scores, guess.index)


def _own_form(guess: Guess) -> Guess:
    """Return a ticket with its own arrays, of the types that compiled code takes; raises if it cannot be one."""
    round, label, propensity, explored, index, row, scores, version, confidence, evidence, _, run, token = guess
    if confidence is not None and type(confidence) is not float:
        raise TypeError("confidence is a number or None")
    if type(explored) is not bool:
        raise TypeError("explored is True or False")
    if type(token) is not bytes or len(token) != TOKEN:
        raise TypeError(f"a token has {TOKEN} bytes")
    own: Rows
    if type(row) is SparseRows:
        columns, starts = _copied(row.columns, _INT64), _copied(row.starts, _INT64)
        values = _copied(row.values, _FLOAT64)
        own = SparseRows(values, columns, starts, operator.index(row.n_columns))
        if columns.shape != values.shape or starts.shape != (2,):
            raise ValueError("no sparse row")
    else:
        own = _copied(row, _FLOAT64)
    numbers = operator.index(round), label, propensity, explored, operator.index(index)
    arrays = own, _copied(scores, _FLOAT64), version, confidence, _copied(evidence, _FLOAT64)
    return Guess(*numbers, *arrays, (), run, token)


def _copied(array: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if type(array) is not np.ndarray or array.dtype != dtype:
        raise TypeError(f"no array of {dtype}")
    return np.array(array, order="C")


def content_of(guess: Guess) -> bytes:
    """Return the content of a ticket as bytes, without its label and run; raises if a field is not a number."""
    round, _, propensity, explored, index, row, scores, version, confidence, evidence, _, _, token = guess
    (n_scores,), (n_evidence,) = scores.shape, evidence.shape
    numbers = round, index, explored, version, propensity, math.nan if confidence is None else confidence, token
    known = scores.tobytes() + evidence.tobytes()
    if type(row) is np.ndarray:
        return _pack_head(False, *row.shape, n_scores, n_evidence, *numbers) + row.tobytes() + known
    values, columns, starts, n_columns = row
    (n_entries,) = values.shape
    head = _pack_head(True, n_entries, n_columns, n_scores, n_evidence, *numbers)
    return head + values.tobytes() + columns.tobytes() + starts.tobytes() + known


def guess_of(content: bytes, labels: tuple[Any, ...], run: str) -> Guess:
    """Return the ticket with that content, or raise an error if there can be none."""
    is_sparse, size, width, n_scores, n_evidence, round, index, explored, *rest = _HEAD.unpack_from(content)
    sizes = [*([size, size, 2] if is_sparse else [size * width]), n_scores, n_evidence]
    if min(size, width, n_scores, n_evidence, index) < 0 or len(content) != _HEAD.size + 8 * sum(sizes):
        raise ValueError("a ticket has another length than its row, scores and evidence")
    ends = [_HEAD.size + 8 * sum(sizes[:n]) for n in range(len(sizes))]
    whole = {1, 2} if is_sparse else set()
    parts: list[Any] = [
        np.frombuffer(content, np.int64 if i in whole else np.float64, n, start).copy()
        for i, (n, start) in enumerate(zip(sizes, ends, strict=True))
    ]
    row: Any = SparseRows(parts[0], parts[1], parts[2], width) if is_sparse else parts[0].reshape(size, width)
    version, propensity, confidence, token = rest
    head = round, labels[index], propensity, bool(explored), index, row, parts[-2], version
    return Guess(*head, None if math.isnan(confidence) else confidence, parts[-1], labels, run, token)


def _digest(content: bytes) -> bytes:
    digest = blake2b(content, digest_size=DIGEST).digest()
    return digest if any(digest) else b"\1" * DIGEST  # zeros mean: not open


def _not_open_error(which: str) -> ValueError:
    """Return the error for a closed ticket or one of another learner; after loading the two look the same."""
    return ValueError(
        f"guess {which} is not open here: it was told before, or is foreign (another learner, another run or a copy of "
        "this one issued it). Each guess is told once, to the learner that issued it"
    )


def _edited_error(guess: Guess) -> ValueError:
    return ValueError(f"guess of round {guess.round!r} was edited; tell the ticket as guess(x) returned it")
