"""A learner whose memory is a space, and what it has learned there."""

from typing import Any, Protocol

from onebit.inputs import Floats, Rows
from onebit.learners.base import Learner


class Memory(Protocol):
    """What any space can do, whatever is played in it."""

    def prepare(self, rows: Rows) -> Rows:
        """Return rows as the space takes them."""
        ...

    def score_rows(self, rows: Rows) -> Floats:
        """Return every prepared row's score for every class."""
        ...

    def bookmark(self) -> Any:
        """Return a space that stays as this one is now."""
        ...

    def arrays(self) -> dict[str, Floats]:
        """Return copies of what was learned, by name."""
        ...


class SpaceLearner(Learner):
    """Keeps its memory in `_space` and shows what is in it: weights, or examples with coefficients."""

    _space: Any

    @property
    def _memory(self) -> Memory:
        memory: Memory = self._space
        return memory

    def _prepare(self, rows: Rows) -> Rows:
        return self._memory.prepare(rows)

    def _decision(self, rows: Rows) -> Floats:
        return self._memory.score_rows(rows)

    def _bookmark(self) -> dict[str, Any]:
        before = super()._bookmark()
        if self._started:
            before["_space"] = self._memory.bookmark()
        return before

    def learned(self) -> dict[str, Floats]:
        """Return copies of the weights, or of the stored examples and their coefficients."""
        self._check_started("learned")
        return self._memory.arrays()

    @property
    def weights_(self) -> Floats:
        """One weight vector per class."""
        return self._learned_array("weights", "kernel=None")

    @property
    def support_(self) -> Floats:
        """The stored examples."""
        return self._learned_array("support", "a kernel")

    @property
    def coefficients_(self) -> Floats:
        """How much of each stored example every class has gained."""
        return self._learned_array("coefficients", "a kernel")

    def _learned_array(self, name: str, with_what: str) -> Floats:
        if not self._started or name not in (arrays := self._memory.arrays()):
            raise AttributeError(f"{name}_ is there once {type(self).__name__} has played with {with_what}")
        return arrays[name]
