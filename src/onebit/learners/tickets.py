"""Tickets: which guesses a learner has issued and not been told about. Each is honoured once, and only as issued.

A ticket belongs to the learner that issued it. The name of its *run* says which: random, so no two learners share one,
wherever they are. A ticket is honoured if its run is one that the learner answers for, its round is open there, and it
says what it said when it was issued; an equal ticket (saved and loaded, say) is as good as the very object.

- A *restored* learner (pickle, or the child of a fork) is the old one's self: it honours the tickets that were open
  when it was saved, and issues its own under a new name. So it never takes what the original, or another learner
  restored from the same file, issued later.
- A *copy* (`copy.copy`, `copy.deepcopy`) is another learner. It knows what the original knew and has no open ticket:
  one answer is not heard twice.
- A *fresh start* closes all tickets.

An open ticket costs eight bytes or a little more, whatever it holds; one that is told before the next guess, none. The
bytes of 256 rounds lie on a page, which goes when its last ticket is told: one that is never told may keep 2 KB.
"""

import copy
import operator
import os
import struct
import uuid
from contextlib import suppress
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from onebit.inputs import Floats, Rows, SparseRows
from onebit.rounds import Guess

_FLOAT64, _INT64 = np.dtype(np.float64), np.dtype(np.int64)
# Whether rows are sparse, rows, columns, scores; round, index, explored, version, probability.
_pack_head = struct.Struct("<?qqqqqbqd").pack
_DIGEST = 8  # bytes: another ticket has the same one in a case of 10¹⁹
_ROUNDS = 256  # on a page
_EMPTY_PAGE = bytes(_ROUNDS * _DIGEST)

_new_guess = tuple.__new__  # half the time of Guess(…), which calls it

_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


class Tickets:
    """The book of one learner: what its open tickets say."""

    def __init__(self) -> None:
        self._pages: dict[str, dict[int, bytearray]] = {}
        """By run, the digests of open tickets, so many to a page; a place of zeros is not open."""
        self.latest: Guess | None = None
        """The latest ticket, until it is told or the next one is issued."""
        self.own: Guess | None = None
        """The same with arrays of its own: what a holder does to those of a ticket must not reach the learner."""
        self._name_run()

    def _name_run(self) -> None:
        # Nothing a seed or a process decides: unique wherever tickets travel.
        self.run, self._fork = uuid.uuid4().hex, _forks
        self._pages[self.run] = {}

    def issue(
        self,
        round: int,
        label: Any,
        probability: float,
        explored: bool,
        index: int,
        row: Rows,
        scores: Floats,
        version: int,
    ) -> Guess:
        """Return an open ticket of the present run; the arguments are its fields."""
        if self.latest is not None:
            self._file_latest()
        if self._fork != _forks:
            self.retire()
        run, shown = self.run, row.copy() if type(row) is np.ndarray else copy.deepcopy(row)
        self.own = _new_guess(Guess, (round, label, probability, explored, index, row, scores, version, run))
        self.latest = guess = _new_guess(
            Guess, (round, label, probability, explored, index, shown, scores.copy(), version, run)
        )
        return guess

    def check(self, guess: Guess, labels: list[Any]) -> Guess:
        """Return a ticket with arrays of its own, or raise ValueError unless it is open and says what it said.

        Parameters
        ----------
        guess : Guess
            The ticket.
        labels : list
            The label of every index.
        """
        if type(guess) is not Guess:  # a subclass could say one thing now and another later
            raise ValueError(f"guess must be what guess(x) returned; got {guess!r}")
        said: bytes | None = None
        with suppress(TypeError, ValueError, AttributeError, OverflowError, struct.error):
            # First the copy, then the look: other threads may write to the holder's arrays in between.
            guess = _own_form(guess)
            said = _all_it_says(guess)
        self._check_filed(guess, said)
        label, issued = guess.label, labels[guess.index]
        if type(label) is not type(issued) or label != issued:
            raise _edited_error(guess)
        return guess

    def _check_filed(self, guess: Guess, said: bytes | None) -> None:
        t, run = guess.round, guess.learner
        if not isinstance(run, str) or run not in self._pages:
            raise ValueError(
                f"guess of round {t!r} is foreign: another learner, another run of it or a copy of it issued it"
            )
        if self.latest is not None:
            self._file_latest()
        is_round = isinstance(t, (int, np.integer))
        digest = self._digest_at(run, int(t)) if is_round else b""
        if is_round and not any(digest):
            raise ValueError(f"guess of round {t} was told before, or never issued; each guess is told once")
        if said is None or digest != _digest(said):
            raise _edited_error(guess)

    def cross_off(self, guess: Guess) -> None:
        """Close a ticket that was checked."""
        run = guess.learner
        assert run is not None
        pages, page = self._pages[run], guess.round // _ROUNDS
        self._write(pages, guess.round, bytes(_DIGEST))
        if pages[page] == _EMPTY_PAGE:
            del pages[page]
            if not pages and run != self.run:
                del self._pages[run]

    def retire(self) -> None:
        """Go on under a new name; open tickets stay open."""
        if self.latest is not None:
            self._file_latest()
        if not self._pages[self.run]:
            del self._pages[self.run]
        self._name_run()

    def _file_latest(self) -> None:
        assert self.own is not None
        self._write(self._pages[self.run], self.own.round, _digest(_all_it_says(self.own)))
        self.latest = self.own = None

    def _digest_at(self, run: str, round: int) -> bytes:
        page, place = divmod(round, _ROUNDS)
        return bytes(self._pages[run].get(page, _EMPTY_PAGE)[place * _DIGEST : (place + 1) * _DIGEST])

    @staticmethod
    def _write(pages: dict[int, bytearray], round: int, digest: bytes) -> None:
        page, place = divmod(round, _ROUNDS)
        pages.setdefault(page, bytearray(_EMPTY_PAGE))[place * _DIGEST : (place + 1) * _DIGEST] = digest

    def __copy__(self) -> "Tickets":
        twin = Tickets.__new__(Tickets)
        vars(twin).update(vars(self))
        twin._pages = {
            run: {number: page.copy() for number, page in pages.items()} for run, pages in self._pages.items()
        }
        return twin

    def __deepcopy__(self, _memo: Any) -> "Tickets":
        return self.__copy__()  # a bookmark is the same book

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.retire()


def _own_form(guess: Guess) -> Guess:
    """Return a ticket as compiled code takes it, with arrays of its own; raises for what could never be issued."""
    round, label, probability, explored, index, row, scores, version, run = guess
    if type(explored) is not bool:
        raise TypeError("explored is True or False")
    own: Rows
    if type(row) is SparseRows:
        values, columns, starts = (
            _copied(row.values, _FLOAT64),
            _copied(row.columns, _INT64),
            _copied(row.starts, _INT64),
        )
        own = SparseRows(values, columns, starts, operator.index(row.n_columns))
        if columns.shape != values.shape or starts.shape != (2,):
            raise ValueError("no sparse row")
    else:
        own = _copied(row, _FLOAT64)
    numbers = operator.index(round), label, probability, explored, operator.index(index)
    return Guess(*numbers, own, _copied(scores, _FLOAT64), version, run)


def _copied(array: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if type(array) is not np.ndarray or array.dtype != dtype:
        raise TypeError(f"no array of {dtype}")
    return np.array(array, order="C")


def _all_it_says(guess: Guess) -> bytes:
    """Return the content of a ticket in its own form, but for its label and run; raises if a number is none."""
    round, _, probability, explored, index, row, scores, version, _ = guess
    (n_scores,) = scores.shape
    if type(row) is np.ndarray:
        head = _pack_head(False, *row.shape, n_scores, round, index, explored, version, probability)
        return head + row.tobytes() + scores.tobytes()
    values, columns, starts, n_columns = row
    (n_entries,) = values.shape
    head = _pack_head(True, n_entries, n_columns, n_scores, round, index, explored, version, probability)
    return head + values.tobytes() + columns.tobytes() + starts.tobytes() + scores.tobytes()


def _digest(said: bytes) -> bytes:
    digest = blake2b(said, digest_size=_DIGEST).digest()
    return digest if any(digest) else b"\1" * _DIGEST  # zeros mean that nothing is open


def _edited_error(guess: Guess) -> ValueError:
    return ValueError(f"guess of round {guess.round!r} was edited; tell the ticket as guess(x) returned it")
