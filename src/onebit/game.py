"""What the sides of a round give each other: a `Guess`, which is a ticket, and an `Answer`; a learner's open `Tickets`.

Each round the learner is shown features, names one label (the *guess*) and gets one bit of feedback: right or wrong. A
ticket is accepted once, and only as issued: if its round is open and its content, a random token included, is that of
the ticket issued there. An equal one (saved and loaded, or from JSON) is as good as the original object.

- A *restored* learner (a saved file, a pickle, or the child of a fork) accepts the tickets that were open when it was
  saved. It draws tokens of its own, so it never accepts a ticket that the original, or another learner restored from
  the same file, issued later.
- A *copy* (`copy.copy`, `copy.deepcopy`) has the same state but no open tickets: no feedback is used twice.
- A *fresh start* closes all tickets.

The learner keeps the latest ``learner.max_open_tickets`` open tickets whole; `tell` finds these by their `id`. When
there are more, the oldest *expires*: only a digest of eight bytes is kept, against which the ticket itself (the object,
or its JSON) can still be checked.
"""

import copy
import math
import os
import re
import secrets
import struct
from collections import OrderedDict
from collections.abc import Iterable
from hashlib import blake2b
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from onebit.inputs import Floats, Rows, SparseRows, check_integer, check_rows, check_whole_numbers
from onebit.machine_memory import check_memory
from onebit.typed_json import Trusted, describe, parse, restore, write

TICKET_BYTES = 1_000
"""Bytes of an open ticket beside its row and scores."""
_TOKEN = 8  # random bytes of a ticket: they cannot be guessed
_ID = re.compile(f"([0-9]{{1,18}})-([0-9a-f]{{{2 * _TOKEN}}})")
_TOKENS_AT_ONCE = 512  # one system call per ticket would cost a tenth of a guess
# Whether the row is sparse; lengths of row, columns, scores and evidence; round, index, explored, version, propensity,
# confidence, token.
_HEAD = struct.Struct(f"<?qqqqqqbqdd{_TOKEN}s")
_DIGEST = 8  # bytes; two tickets share a digest with probability about 10⁻¹⁹
_PAGE = 256  # rounds whose digests are kept together, until the last of their tickets is closed


class Guess(NamedTuple):
    """A ticket: what the learner guessed in one round, and what `tell` needs when the feedback comes.

    Keep it for as long as the answer takes, or only its `id`. The learner that issued it takes it once, as it is, in
    any order (`onebit.game` describes what a saved or copied learner takes). It travels as JSON.

    Attributes
    ----------
    round : int
        Which round it was, counted from 0.
    label : object
        The label that was guessed, one of the learner's classes.
    propensity : float
        The chance with which this label was drawn. It is 1 for a learner that draws nothing, and is not the
        probability that the label is right.
    explored : bool
        Whether the label was drawn to explore rather than because of its score.
    confidence : float or None
        The estimated probability that the label is right, calibrated by the feedback so far; None until there is
        enough of it, and for a learner of four methods. Whole streams are played without it: see `onebit.play`.

    Examples
    --------
    >>> import onebit
    >>> learner = onebit.BanditPerceptron(classes=["no", "yes"])
    >>> text = learner.guess([1.0, 0.5]).to_json()
    >>> learner.tell(Guess.from_json(text), correct=True)
    >>> name = learner.guess([0.2, 0.7]).id
    >>> learner.tell(name, correct=False)
    """

    round: int
    label: Any
    propensity: float
    explored: bool
    index: int  # type: ignore[assignment]  # hides tuple.index, which a ticket does not need
    """The label's position among the classes."""
    row: Rows
    """A copy of the features, as one row."""
    scores: Floats
    """The scores the guess was made from; empty if the learner has none."""
    version: int
    """How many updates the learner had made by then."""
    confidence: float | None
    evidence: Floats
    """What the confidence was estimated from; empty if there is none."""
    labels: tuple[Any, ...]
    """The classes when the guess was made; empty in a ticket from JSON."""
    id: str
    """A short name for `tell`: the round and a random token, drawn for this ticket alone."""

    @property
    def ranking(self) -> list[Any]:
        """The allowed labels, the highest score first; empty for a learner without scores and a ticket from JSON."""
        scores = self.scores[: len(self.labels)]
        return [self.labels[i] for i in np.argsort(-scores, kind="stable").tolist() if scores[i] > -np.inf]

    def to_json(self) -> str:
        """Return the whole ticket as a JSON text, for `from_json`; its label must be one that can be saved."""
        row, fields = self.row, self._asdict()
        del fields["round"], fields["labels"]  # the id has the round
        if isinstance(row, SparseRows):
            held: Any = {"values": row.values.tolist(), "columns": row.columns.tolist(), "n_columns": row.n_columns}
        else:
            held = row[0].tolist()
        fields |= {"row": held, "label": describe(self.label), "evidence": self.evidence.tolist()}
        return write({"onebit": "guess", **fields, "scores": describe(self.scores.tolist())})

    @classmethod
    def from_json(cls, text: str | bytes, trusted: Iterable[Any] = ()) -> "Guess":
        """Return the ticket that `to_json` wrote; whether it is genuine is for the learner to say.

        Parameters
        ----------
        text : str
            The JSON text.
        trusted : list
            Classes of labels that are not plain values, such as an Enum, or their import paths.
        """
        allowed = Trusted(trusted)
        try:
            fields = parse(text)
            if type(fields) is not dict or fields.pop("onebit", None) != "guess":
                raise ValueError("it is not marked as a guess")
            round = _round_of(fields["id"])
            row, label = fields.pop("row"), restore(fields.pop("label"), allowed)
            if type(row) is list:
                rows: Rows = _floats(row)[None]
            else:
                columns = check_whole_numbers("columns", row["columns"])
                n_columns = check_integer("n_columns", row["n_columns"], low=1)
                rows = SparseRows(_floats(row["values"]), columns, np.array([0, len(columns)]), n_columns)
            scores = _floats(restore(fields.pop("scores"), allowed))  # a label that was not allowed has −∞
            fields |= {"row": rows, "scores": scores, "evidence": _floats(fields.pop("evidence"))}
            return cls(round=round, label=label, labels=(), **fields)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise ValueError(f"text must be what Guess.to_json() returned; got {text!r:.80} ({error})") from error

    def __repr__(self) -> str:
        return (
            f"Guess(round={self.round}, label={self.label!r}, propensity={self.propensity:.6g}, "
            f"explored={self.explored})"
        )

    def __eq__(self, other: object) -> bool:
        return self is other  # two rounds are never the same ticket, and arrays have no truth value

    def __hash__(self) -> int:
        return hash(self.id)


def _round_of(text: Any) -> int:
    """Return the round in a ticket's id, or raise ValueError."""
    found = _ID.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"a ticket's id is like '17-{'0f' * _TOKEN}'; got {text!r:.80}")
    return int(found[1])


def _floats(numbers: Any) -> Floats:
    if type(numbers) is not list or not all(type(number) is float for number in numbers):
        raise ValueError(f"{numbers!r:.80} is no list of numbers")
    return np.array(numbers, dtype=np.float64)


class Answer(NamedTuple):
    """The feedback on one guess: its label, and whether it was right."""

    label: int
    """The guessed label's position among the classes."""
    explored: bool
    correct: bool
    truth: int
    """The right label in the full-information game, −1 in the bandit game."""
    propensity: float
    """The probability with which the label was drawn; in a stream what `choose` wrote to ``scratch.propensities``."""


_tokens: list[str] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_tokens.clear)  # parent and child must not issue the same


class Tickets:
    """The open tickets of one learner, of which the latest are kept whole; `kept` are open from the start."""

    def __init__(self, kept: Iterable[Guess] = ()) -> None:
        self._kept = OrderedDict((guess.round, guess) for guess in kept)  # a dict would look long for its first
        """The learner's own form of open tickets: what is done to the caller's does not reach it. The oldest first."""
        self._pages: dict[int, npt.NDArray[np.uint64]] = {}  # digests of expired tickets; 0 where none is open
        self._latest: Guess | None = None  # the caller's form of the latest ticket: nearly always the next to be told

    def issue(self, about: tuple[Any, ...], most: int) -> Guess:
        """Return an open ticket with these fields of a `Guess`, all but the id; keep so many whole."""
        while len(self._kept) >= most:
            expired, oldest = self._kept.popitem(last=False)
            self._write(expired, _digest(_content_of(oldest)))
        try:
            token = _tokens.pop()
        except IndexError:
            drawn = secrets.token_hex(_TOKENS_AT_ONCE * _TOKEN)
            token, *more = (drawn[start : start + 2 * _TOKEN] for start in range(0, len(drawn), 2 * _TOKEN))
            _tokens.extend(more)
        round, label, propensity, explored, index, row, scores, version, confidence, evidence, labels = about
        name = f"{round}-{token}"
        self._kept[round] = tuple.__new__(Guess, (*about, name))  # half the time of Guess(…), which calls it
        row, scores, evidence = row.copy(), scores.copy(), evidence.copy()
        theirs = round, label, propensity, explored, index, row, scores, version, confidence, evidence, labels, name
        guess = self._latest = tuple.__new__(Guess, theirs)
        return guess

    def look_up(self, guess: Guess | str, learner: Any) -> Guess:
        """Return the learner's own form of an open ticket, given as itself, its JSON or its id, or raise ValueError."""
        latest = self._latest
        if guess is latest and latest is not None and (kept := self._kept.get(latest.round)) is not None:
            return kept
        if not isinstance(guess, str):
            return self._check(guess, learner)
        if guess.lstrip().startswith("{"):  # an id never does
            return self._check(Guess.from_json(guess), learner)
        round = _round_of(guess)
        own = self._kept.get(round)
        if own is not None and secrets.compare_digest(own.id, guess):
            return own
        if own is None and self._digest_at(round):
            raise ValueError(
                f"guess {guess!r} has expired: the learner remembers {learner.max_open_tickets} open tickets, the "
                "latest ones (max_open_tickets). Tell the ticket itself instead of its id"
            )
        raise _not_open_error(repr(guess))

    def _check(self, guess: Guess, learner: Any) -> Guess:
        """Return the own form of a ticket, or raise ValueError unless it is open and unchanged."""
        if type(guess) is not Guess:  # a subclass could change its values between checks
            raise ValueError(f"guess must be what guess(x) returned, or its id; got {guess!r}")
        edited = ValueError(f"guess of round {guess.round!r} was edited; tell the ticket as guess(x) returned it")
        try:
            # Copy first, then check: other threads may write to the caller's arrays in between.
            content, types = _content_of(guess), _types_in(guess)
            own = self._kept.get(guess.round)
            given = _guess_of(content, learner._labels) if own is None else own
        except (TypeError, ValueError, AttributeError, OverflowError, struct.error):
            raise edited from None
        if own is not None:
            is_open, is_unchanged = own.id == guess.id, _content_of(own) == content
        else:
            digest = self._digest_at(given.round)
            is_open, is_unchanged = digest != 0, digest == _digest(content) and guess.id == given.id
        if not is_open:
            raise _not_open_error(f"of round {given.round}")
        if not is_unchanged or types != _types_in(given) or guess.label != given.label:
            raise edited
        if own is None:  # a file may hold the digest of what was made up
            _check_fit(given, learner)
        return given

    def close(self, guess: Guess | str, learner: Any) -> Guess:
        """Look an open ticket up and close it."""
        own = self.look_up(guess, learner)
        if self._kept.pop(own.round, None) is None:
            self._write(own.round, 0)
            if not self._pages[own.round // _PAGE].any():
                del self._pages[own.round // _PAGE]
        return own

    def reopen(self, own: Guess) -> None:
        """Open a ticket again whose feedback was refused."""
        self._kept = OrderedDict(sorted([*self._kept.items(), (own.round, own)]))

    def n_bytes(self) -> int:
        """Return roughly how much memory open tickets take, if all are like the latest."""
        latest = next(reversed(self._kept.values()), None)
        if latest is None:
            return 0
        return len(self._kept) * (TICKET_BYTES + latest.row.nbytes + latest.scores.nbytes)

    def _digest_at(self, round: int) -> int:
        page, place = divmod(round, _PAGE)
        return int(self._pages[page][place]) if page in self._pages else 0

    def _write(self, round: int, digest: int) -> None:
        page, place = divmod(round, _PAGE)
        self._pages.setdefault(page, np.zeros(_PAGE, np.uint64))[place] = digest

    def __copy__(self) -> "Tickets":
        twin = Tickets(self._kept.values())
        twin._pages = {number: page.copy() for number, page in self._pages.items()}
        twin._latest = self._latest
        return twin

    def __deepcopy__(self, _memo: Any) -> "Tickets":
        return copy.copy(self)  # tickets of its own need no copy

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the open tickets as a file holds them, for `from_arrays`."""
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
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]], learner: Any) -> "Tickets":
        """Return the open tickets of a learner from a file that is not trusted, or raise ValueError."""
        blank = cls().to_arrays()
        if blank.keys() != arrays.keys():
            raise ValueError("its tickets lack an array, or have another")
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
        found = cls(kept)
        digests = native["expired_digest"].view(np.uint64).ravel()
        for round, digest in zip(expired.tolist(), digests.tolist(), strict=True):
            found._write(round, digest)
        return found


def _check_fit(guess: Guess, learner: Any) -> None:
    """Raise ValueError unless compiled code can take a ticket: one from a file may be forged."""
    row, state, evidence = guess.row, learner._state, guess.evidence
    try:
        checked: Any = check_rows(row)
    except ValueError:
        fits = False
    else:
        fits = checked.shape[0] == 1 and state.takes(checked, learner.n_features_in_)
        if isinstance(row, SparseRows):  # its columns rise, and nothing is left over
            fits = fits and all(map(np.array_equal, checked[:3], row[:3]))
    n_evidence = 0 if learner._confidence is None else learner._confidence.n_evidence
    fits = fits and guess.index < len(learner._labels) and len(evidence) in (0, n_evidence)
    if not (fits and np.isfinite(evidence).all() and state.takes_scores(guess.scores, guess.index)):
        raise ValueError(f"guess of round {guess.round} has a row or scores that no guess is made from")


def _types_in(guess: Guess) -> list[Any]:
    """Return the types and shapes in a ticket: others may have the same bytes, as 0 and False have."""
    row: Any = guess.row
    arrays = *(row[:3] if type(row) is SparseRows else (row,)), guess.scores, guess.evidence
    return [*map(type, guess), *((type(array), array.dtype, array.shape) for array in arrays)]


def _content_of(guess: Guess) -> bytes:
    """Return the content of a ticket as bytes, without its label; raises if a field is not a number."""
    round, _, propensity, explored, index, row, scores, version, confidence, evidence, _, name = guess
    (n_scores,), (n_evidence,) = scores.shape, evidence.shape
    known_confidence, token = math.nan if confidence is None else confidence, bytes.fromhex(name.partition("-")[2])
    numbers = round, index, explored, version, propensity, known_confidence, token
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
    label, known = labels[index] if index < len(labels) else None, None if math.isnan(confidence) else confidence
    name = f"{round}-{token.hex()}"
    return Guess(round, label, propensity, bool(explored), index, row, scores, version, known, evidence, labels, name)


def _digest(content: bytes) -> int:
    return int.from_bytes(blake2b(content, digest_size=_DIGEST).digest(), "little") or 1  # 0 means: not open


def _not_open_error(which: str) -> ValueError:
    """Return the error for a closed ticket or one of another learner; after loading the two look the same."""
    return ValueError(
        f"guess {which} is not open here: it was told before, or is foreign (another learner, another run or a copy of "
        "this one issued it). Each guess is told once, to the learner that issued it"
    )
