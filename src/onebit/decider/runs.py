"""Fast replay of runs: consecutive rounds in which feedback follows its guess directly.

Most logs consist of such runs. The compiled loop plays them several times as fast as single events, with the identical
resulting state.
"""

from collections.abc import Callable, Container, Iterator
from typing import Any

import numpy as np

from onebit.decider.events import Event, Kind
from onebit.decider.state import State
from onebit.inputs import Floats
from onebit.learners.run import can_play_again, play_again

_MOST = 2_000  # maximum rounds in a run
_MOST_BYTES = 16 << 20  # maximum bytes of a run's rows
_FEWEST = 16  # minimum rounds in a run: the learner's state is copied before each
_FEWEST_AT_FIRST = 256  # minimum for the first run, which may compile the loop for seconds
_BYTES_A_ROUND = 1 << 18  # bytes that can be copied in the time that one round of a run saves
_PLAIN = {"at", "met"}, {"at", "met", "numbers"}  # additions of a record with nothing new to the encoder


class ReplayBatcher:
    """Applies events in order, runs of rounds at once.

    Parameters
    ----------
    state : State
        The state.
    corrected : container of str
        Tickets whose feedback was corrected.
    apply : callable
        Applies one event to the state.
    """

    def __init__(self, state: State, corrected: Container[str], apply: Callable[[Event], None]) -> None:
        self._state, self._corrected, self._apply = state, corrected, apply
        self._run, self._has_played = _Run(), False
        self._guess: Event | None = None
        """The latest event, if it is a guess whose feedback may come next."""

    def take(self, event: Event) -> None:
        """Apply an event, now or together with the following ones."""
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
        """Apply all remaining events."""
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
        """Return whether it is the learner's own guess, from all labels, for a record with nothing new."""
        body, row, state = event.body, event.row, self._state
        additions = body.get("additions")
        return (
            not state.is_altered
            and body.get("among") is None
            and type(body.get("label")) is int
            and body["label"] == body.get("wanted")
            and type(additions) is dict
            and additions.keys() in _PLAIN
            and type(row) is np.ndarray
            and can_play_again(state.learner, row)
        )

    def _is_plain_answer(self, event: Event) -> bool:
        is_feedback = event.kind == Kind.TOLD and event.ticket not in self._corrected
        return is_feedback and type(event.body.get("correct")) is bool


class _Run:
    """Consecutive rounds as lists: so many Event objects would slow down the garbage collector."""

    def __init__(self) -> None:
        self._heads: list[Any] = []
        """Five entries a round: number, time and ticket of the guess, number and time of the feedback."""
        self._rows: list[Floats] = []
        self._additions: list[dict[str, Any]] = []
        self._labels: list[int] = []
        self._chances: list[float] = []
        self._answers: list[bool] = []
        self.n_bytes = 0
        """Bytes of the rows."""

    def __len__(self) -> int:
        return len(self._labels)

    def add(self, guess: Event, answer: Event) -> None:
        """Add a round."""
        body = guess.body
        self._heads += guess.seq, guess.time, guess.ticket, answer.seq, answer.time
        self._rows.append(guess.row)  # type: ignore[arg-type]  # dense ones only
        self.n_bytes += self._rows[-1].nbytes
        self._additions.append(body["additions"])
        self._labels.append(body["label"])
        self._chances.append(body["propensity"])
        self._answers.append(answer.body["correct"])

    def play(self, state: State) -> bool:
        """Apply the whole run and return True; or nothing and False, if the learner makes other guesses."""
        rows, labels, answers = np.array(self._rows), self._labels, self._answers
        if not play_again(state.learner, rows, np.array(labels), np.array(answers)):
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
        """Yield the events of the run, with all that the state needs."""
        for i, (label, chance, correct) in enumerate(zip(self._labels, self._chances, self._answers, strict=True)):
            seq, time, ticket, answer_seq, answer_time = self._heads[5 * i : 5 * i + 5]
            body = {
                "label": label,
                "wanted": label,
                "propensity": chance,
                "among": None,
                "additions": self._additions[i],
            }
            yield Event(seq, time, Kind.GUESSED, ticket, body, self._rows[i])
            yield Event(answer_seq, answer_time, Kind.TOLD, ticket, {"correct": correct})
