"""The spaces of a learner that keeps facts: linear, with explicit weights, and that of a kernel."""

import copy
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from onebit.compiled import compiled
from onebit.inputs import Floats, Integers, Rows, SparseRows, check_finite, densify
from onebit.kernels import Custom, Kernel
from onebit.rounds import Record, note
from onebit.spaces import kernel_facts, linear_facts
from onebit.spaces.facts import Settings, Signs, chances, choose, new_watch, prove

_FIRST_CAPACITY = 16
_ENTRIES_AT_ONCE = 1 << 22


class FactSpace(ABC):
    """A memory of facts and of every class's separator, bounded by a budget of examples."""

    memory: Any

    def __init__(self, n_classes: int, settings: Settings) -> None:
        self.n_classes, self.budget, self.settings = n_classes, settings.budget, settings
        self.watch = new_watch()

    @property
    def size(self) -> int:
        """How many examples are stored."""
        return int(self.memory.counts[0])

    def prepare(self, rows: Rows) -> Rows:
        """Return rows as the space takes them; raises ValueError for a row it cannot take."""
        return rows

    @abstractmethod
    def scores(self, row: Rows) -> Floats:
        """Return one prepared row's score for every class."""

    @abstractmethod
    def score_rows(self, rows: Rows) -> Floats:
        """Return every prepared row's score for every class; rounding may differ from `scores`."""

    @abstractmethod
    def hear(self, row: Rows, new: Signs, correct: bool) -> bool:
        """Learn what an answer proved of a prepared row, and say whether anything changed."""

    @abstractmethod
    def play(self, X: Rows, y: Integers, seed: int, first_round: int, hears_label: bool, record: Record) -> int:
        """Play a whole stream; return −1, or the round whose scores are not finite."""

    @abstractmethod
    def arrays(self) -> dict[str, Floats]:
        """Return copies of what was learned, by name."""

    def bookmark(self) -> Self:
        """Return a copy."""
        return copy.deepcopy(self)

    def decide(self, scores: Floats, seed: int, round: int) -> tuple[int, bool, float]:
        """Return a guess: label (−1 if a score is not finite), explored, probability."""
        return _decide(scores, seed, round, self.settings)

    def probabilities(self, scores: Floats) -> Floats:
        """Return the chance of each label."""
        out = np.empty(self.n_classes)
        _chances(scores, self.settings, out)
        return out

    def proved(self, label: int, correct: bool, truth: int) -> Signs:
        """Return what an answer proves for each class."""
        new: Signs = np.empty(self.n_classes, dtype=np.int8)
        _prove(label, correct, truth, new)
        return new

    def _larger(self) -> int:
        return min(self.budget, 2 * len(self.memory.squares))


class LinearFactSpace(FactSpace):
    """One weight vector per class, on rows divided by their length."""

    def __init__(self, n_features: int, n_classes: int, settings: Settings) -> None:
        super().__init__(n_classes, settings)
        self.memory = linear_facts.new_memory(n_features, n_classes, min(self.budget, _FIRST_CAPACITY), 1)

    def _buffer(self, rows: Rows) -> linear_facts.Entries:
        """Return a place for one row's entries, and see to it that the memory has room for the longest."""
        width = max(1, int(np.diff(rows.starts).max())) if isinstance(rows, SparseRows) else rows.shape[1]
        if width > self.memory.columns.shape[1]:
            self.memory = linear_facts.enlarged(self.memory, len(self.memory.squares), width)
        return linear_facts.Entries(np.empty(width, dtype=np.int64), np.empty(width))

    def scores(self, row: Rows) -> Floats:
        """Return ⟨wᵢ, x⟩/‖x‖ for every class i."""
        return self.score_rows(row)

    def score_rows(self, rows: Rows) -> Floats:
        """Return ⟨wᵢ, x⟩/‖x‖ for every row and class."""
        moves = linear_facts.linear_moves(isinstance(rows, SparseRows))
        out = np.empty((rows.shape[0], self.n_classes))
        moves.score_rows(self.memory, rows, self._buffer(rows), out)
        return out

    def hear(self, row: Rows, new: Signs, correct: bool) -> bool:
        """Learn what an answer proved."""
        if self.size == len(self.memory.squares) < self.budget:
            self.memory = linear_facts.enlarged(self.memory, self._larger(), self.memory.columns.shape[1])
        entries, current = self._buffer(row), self.scores(row)[0]
        n, square = linear_facts.linear_moves(isinstance(row, SparseRows)).read(row, 0, entries)
        return _hear_linear(self.memory, entries, n, square, current, new, correct, self.watch, self.settings)

    def play(self, X: Rows, y: Integers, seed: int, first_round: int, hears_label: bool, record: Record) -> int:
        """Play a whole stream in one compiled loop."""
        play, buffer, played = linear_facts.linear_moves(isinstance(X, SparseRows)).play, self._buffer(X), 0
        while played < len(y):
            played = play(
                self.memory, X, y, played, buffer, (seed, first_round), hears_label, self.settings,
                self.watch, record,
            )  # fmt: skip
            if played < 0:
                return -1 - played
            if played < len(y):
                self.memory = linear_facts.enlarged(self.memory, self._larger(), self.memory.columns.shape[1])
        return -1

    def arrays(self) -> dict[str, Floats]:
        """Return the weights, one row per class."""
        return {"weights": self.memory.weights.T.copy()}


class KernelFactSpace(FactSpace):
    """Stored examples, seen through a kernel."""

    def __init__(self, kernel: Kernel, n_features: int, n_classes: int, settings: Settings) -> None:
        super().__init__(n_classes, settings)
        self.kernel = kernel
        self.memory = kernel_facts.new_memory(n_features, n_classes, min(self.budget, _FIRST_CAPACITY))

    def prepare(self, rows: Rows) -> Floats:
        """Return dense rows that the kernel accepts."""
        dense = densify(rows, 0, len(rows)) if isinstance(rows, SparseRows) else rows
        check_finite(dense, "features")
        return self.kernel.prepare(dense)

    def _compare(self, row: Floats) -> tuple[float, float, Floats]:
        """Return ‖x‖², k(x, x) and the similarities with the stored examples."""
        similarities = np.zeros(len(self.memory.squares))
        if isinstance(self.kernel, Custom):
            if self.size:
                similarities[: self.size] = self.kernel.matrix(row, self._support())[0]
            return float(row[0] @ row[0]), float(self.kernel.matrix(row, row)[0, 0]), similarities
        compare = kernel_facts.kernel_moves(type(self.kernel).value).compare
        square, itself = compare(self.memory, row[0], self.kernel.parameters, similarities)
        return square, itself, similarities

    def _support(self) -> Floats:
        return np.ascontiguousarray(self.memory.points[:, : self.size].T)

    def scores(self, row: Rows) -> Floats:
        """Return Σₛ coefficients[s, i]·k(xₛ, x) for every class i."""
        assert not isinstance(row, SparseRows)
        out = np.empty((1, self.n_classes))
        _add_up(self.memory, self._compare(row)[2], out[0])
        return out

    def score_rows(self, rows: Rows) -> Floats:
        """Return every row's scores by matrix products."""
        assert not isinstance(rows, SparseRows)
        support, coefficients = self._support(), self.memory.coefficients[: self.size]
        out = np.zeros((len(rows), self.n_classes))
        chunk = max(1, _ENTRIES_AT_ONCE // max(1, self.size))
        for start in range(0, len(rows) if self.size else 0, chunk):
            out[start : start + chunk] = self.kernel.matrix(rows[start : start + chunk], support) @ coefficients
        return out

    def hear(self, row: Rows, new: Signs, correct: bool) -> bool:
        """Learn what an answer proved."""
        assert not isinstance(row, SparseRows)
        if self.size == len(self.memory.squares) < self.budget:
            self.memory = kernel_facts.enlarged(self.memory, self._larger())
        square, itself, similarities = self._compare(row)
        current = np.empty(self.n_classes)
        _add_up(self.memory, similarities, current)
        return _hear_kernel(
            self.memory, row[0], square, similarities, itself, current, new, correct, self.watch, self.settings
        )

    def play(self, X: Rows, y: Integers, seed: int, first_round: int, hears_label: bool, record: Record) -> int:
        """Play a whole stream: compiled, unless the kernel is a Python function."""
        n_rows = max(1, _ENTRIES_AT_ONCE // X.shape[1])
        for start in range(0, len(y), n_rows):
            stop = min(start + n_rows, len(y))
            rows = self.prepare(densify(X, start, stop) if isinstance(X, SparseRows) else X[start:stop])
            play = self._play_slowly if isinstance(self.kernel, Custom) else self._play_compiled
            bad = play(rows, y, start, (seed, first_round), hears_label, record)
            if bad >= 0:
                return start + bad
        return -1

    def _play_compiled(
        self, rows: Floats, y: Integers, start: int, seed_and_round: tuple[int, int], hears_label: bool, record: Record
    ) -> int:
        play, parameters, played = kernel_facts.kernel_moves(type(self.kernel).value).play, self.kernel.parameters, 0
        while played < len(rows):
            played = play(
                self.memory, rows, y, played, start, seed_and_round, hears_label, parameters,
                self.settings, self.watch, record,
            )  # fmt: skip
            if played < 0:
                return -1 - played
            if played < len(rows):
                self.memory = kernel_facts.enlarged(self.memory, self._larger())
        return -1

    def _play_slowly(
        self, rows: Floats, y: Integers, start: int, seed_and_round: tuple[int, int], hears_label: bool, record: Record
    ) -> int:
        for t in range(len(rows)):
            row, truth = rows[t : t + 1], int(y[start + t])
            label, explored, _ = self.decide(self.scores(row)[0], seed_and_round[0], seed_and_round[1] + start + t)
            if label < 0:
                return t
            new = self.proved(label, label == truth, truth if hears_label else -1)
            changed = self.hear(row, new, label == truth)
            note(record, start + t, label, explored, label == truth, changed)
        return -1

    def arrays(self) -> dict[str, Floats]:
        """Return the examples and their coefficients, one column per class."""
        return {"support": self._support(), "coefficients": self.memory.coefficients[: self.size].copy()}


@compiled
def _decide(scores: Floats, seed: int, round: int, settings: Settings) -> tuple[int, bool, float]:
    label, explored = choose(scores, seed, round, settings)
    if label < 0:
        return label, explored, 0.0
    out = np.empty(scores.shape[0])
    chances(scores, settings, out)
    return label, explored, out[label]


@compiled
def _chances(scores: Floats, settings: Settings, out: Floats) -> None:
    chances(scores, settings, out)


@compiled
def _prove(label: int, correct: bool, truth: int, new: Signs) -> None:
    prove(label, correct, truth, new)


@compiled
def _add_up(memory: kernel_facts.KernelFacts, similarities: Floats, out: Floats) -> None:
    kernel_facts.add_up(memory, similarities, out)


@compiled
def _hear_kernel(
    memory: kernel_facts.KernelFacts,
    point: Floats,
    square: float,
    similarities: Floats,
    itself: float,
    current: Floats,
    new: Signs,
    correct: bool,
    watch: Floats,
    settings: Settings,
) -> bool:
    return kernel_facts.hear(
        memory, point, square, similarities, itself, current, new, correct, watch, settings
    )  # fmt: skip


@compiled
def _hear_linear(
    memory: linear_facts.LinearFacts,
    row: linear_facts.Entries,
    n: int,
    square: float,
    current: Floats,
    new: Signs,
    correct: bool,
    watch: Floats,
    settings: Settings,
) -> bool:
    return linear_facts.hear(memory, row, n, square, current, new, correct, watch, settings)
