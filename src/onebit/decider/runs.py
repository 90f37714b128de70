"""Rounds that were answered before the next guess: a replay plays them together, by the loop that plays whole streams.

Most logs are such runs, and the loop plays them several times as fast as one event after the other. What is known
afterwards is the same to the last bit.
"""

from collections.abc import Callable, Container, Iterator
from typing import Any

import numpy as np

from onebit.decider.events import Event, Kind
from onebit.decider.state import State
from onebit.inputs import Floats

_MOST = 2_000  # rounds that are played together
_MOST_BYTES = 16 << 20  # of their rows
_FEWEST = 16  # before a run all that the learner knows is copied: fewer are not worth it
_FEWEST_AT_FIRST = 256  # nor is compiling the loop, which takes seconds once on a machine
_BYTES_A_ROUND = 1 << 18  # that are copied in the time that a round of a run saves
_PLAIN = {"at", "met"}, {"at", "met", "numbers"}  # of a record that brings nothing new


class Runs:
    """Lets events be known in their order, runs of rounds at once.

    Parameters
    ----------
    state : State
        What is known.
    corrected : container of str
        Tickets whose answers were mistakes.
    apply : callable
        Lets one event be known.
    """

    def __init__(self, state: State, corrected: Container[str], apply: Callable[[Event], None]) -> None:
        self._state, self._corrected, self._apply = state, corrected, apply
        self._run, self._has_played = _Run(), False
        self._guess: Event | None = None
        """The latest event, if it is a guess whose answer may come next."""

    def take(self, event: Event) -> None:
        """Let an event be known, now or with those that follow."""
        guess, self._guess = self._guess, None
        if guess is not None:
            if event.ticket == guess.ticket and self._is_plain_answer(event):
                self._run.add(guess, event)
                if len(self._run) == _MOST or self._run.n_bytes >= _MOST_BYTES:
                    self._play()
                return
            self._play()
            self._apply(guess)
        if event.kind == Kind.GUESSED and self._is_plain_guess(event):
            self._guess = event
        else:
            self._play()
            self._apply(event)

    def finish(self) -> None:
        """Let all that was taken be known."""
        guess, self._guess = self._guess, None
        self._play()
        if guess is not None:
            self._apply(guess)

    def _play(self) -> None:
        run = self._run
        if not len(run):
            return
        self._run = _Run()
        if self._is_worth_it(len(run)):
            self._has_played = True
            if run.play(self._state):
                return
        for event in run.events():
            self._apply(event)

    def _is_worth_it(self, n_rounds: int) -> bool:
        n_bytes = sum(array.nbytes for array in self._state.learner._state.arrays)
        fewest = _FEWEST if self._has_played else _FEWEST_AT_FIRST
        return n_rounds >= fewest and n_rounds * _BYTES_A_ROUND >= n_bytes

    def _is_plain_guess(self, event: Event) -> bool:
        """Return whether it is the learner's own, among all labels, of a record with nothing new in it."""
        said, row, state = event.body, event.row, self._state
        additions = said.get("additions")
        return (
            not state.is_altered
            and said.get("among") is None
            and type(said.get("label")) is int
            and said["label"] == said.get("wanted")
            and type(additions) is dict
            and additions.keys() in _PLAIN
            and type(row) is np.ndarray
            and state.learner.can_play_again(row)
        )

    def _is_plain_answer(self, event: Event) -> bool:
        is_told = event.kind == Kind.TOLD and event.ticket not in self._corrected
        return is_told and type(event.body.get("correct")) is bool


class _Run:
    """Rounds one after the other, as lists: so many events, if they were kept, would be work for Python's collector."""

    def __init__(self) -> None:
        self._heads: list[Any] = []
        """Number, time and ticket of a guess, and number and time of its answer, one after the other."""
        self._rows: list[Floats] = []
        self._additions: list[dict[str, Any]] = []
        self._labels: list[int] = []
        self._chances: list[float] = []
        self._answers: list[bool] = []
        self.n_bytes = 0
        """Of the rows."""

    def __len__(self) -> int:
        return len(self._labels)

    def add(self, guess: Event, answer: Event) -> None:
        """Add a round."""
        said = guess.body
        self._heads += guess.seq, guess.time, guess.ticket, answer.seq, answer.time
        self._rows.append(guess.row)  # type: ignore[arg-type]  # dense ones only
        self.n_bytes += self._rows[-1].nbytes
        self._additions.append(said["additions"])
        self._labels.append(said["label"])
        self._chances.append(said["propensity"])
        self._answers.append(answer.body["correct"])

    def play(self, state: State) -> bool:
        """Let all of it be known, and return True; or nothing, if the learner guesses otherwise now."""
        rows, labels, answers = np.array(self._rows), self._labels, self._answers
        if not state.learner.play_again(rows, np.array(labels), np.array(answers)):
            return False
        state.encoder.take_many(rows, self._additions)
        counts, course = state.counts, state.course
        for label, correct, time in zip(labels, answers, self._heads[4::5], strict=True):
            counts.guessed[label] += 1
            (counts.right if correct else counts.wrong)[label] += 1
            course.add(correct, time, counts.guessed)
        state.seq = self._heads[-2]
        return True

    def events(self) -> Iterator[Event]:
        """Yield the events again, with all that a state needs of them."""
        for i, (label, chance, correct) in enumerate(zip(self._labels, self._chances, self._answers, strict=True)):
            seq, time, ticket, answer_seq, answer_time = self._heads[5 * i : 5 * i + 5]
            said = {
                "label": label,
                "wanted": label,
                "propensity": chance,
                "among": None,
                "additions": self._additions[i],
            }
            yield Event(seq, time, Kind.GUESSED, ticket, said, self._rows[i])
            yield Event(answer_seq, answer_time, Kind.TOLD, ticket, {"correct": correct})
