"""Tickets: which guesses of a run have been told. Each is honoured once, by the run that issued it."""

import uuid

from onebit.rounds import Guess

# The book grows by this many bytes, eight tickets each, so that it seldom has to.
_MORE = 1024


class Tickets:
    """The book of one run: one bit per round."""

    def __init__(self) -> None:
        self.run = uuid.uuid4().hex  # names no seed and no process: unique wherever it travels
        """Names the run; every ticket carries it."""
        self.told = bytearray()
        """One bit per round; `find` says where."""

    def find(self, guess: Guess) -> tuple[int, int]:
        """Return where a ticket is crossed off, or raise ValueError if it is foreign or was told before."""
        if not isinstance(guess, Guess):
            raise ValueError(f"guess must be what guess(x) returned; got {guess!r}")
        t = guess.round
        if guess.learner != self.run:
            raise ValueError(f"guess of round {t} is foreign: another learner, or another run of it, issued it")
        place, bit = t >> 3, 1 << (t & 7)
        if place >= len(self.told):
            self.told.extend(bytes(place - len(self.told) + _MORE))
        if self.told[place] & bit:
            raise ValueError(f"guess of round {t} was told before; each guess is told once")
        return place, bit

    def __copy__(self) -> "Tickets":
        twin = Tickets.__new__(Tickets)
        twin.run, twin.told = self.run, self.told.copy()
        return twin
