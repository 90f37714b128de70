"""A state that takes dense rows only: sparse rows are made dense, as many at a time as fit in memory."""

from onebit.engine.state import State
from onebit.inputs import Floats, Rows, dense, unlocked
from onebit.kernels import ENTRIES_AT_ONCE


class DenseState(State):
    """Base of states that take dense rows only."""

    def prepare(self, rows: Rows) -> Floats:
        """Return dense rows."""
        return dense(rows)

    def rows_at_once(self, n_features: int) -> int:
        """Return how many sparse rows to make dense at a time."""
        return max(1, ENTRIES_AT_ONCE // n_features)

    def learn_as_played(self, row: Rows, label: int, explored: bool, correct: bool, truth: int) -> bool:
        """Learn from a round that another system played as if it were one of its own."""
        prepared = self.prepare(row)
        self.score(prepared, row)
        compiled, arrays, scratch, settings = self._ready[type(prepared)]
        self._scored_round = -1
        return compiled.update(arrays, unlocked(prepared), scratch, label, explored, correct, truth, settings)
