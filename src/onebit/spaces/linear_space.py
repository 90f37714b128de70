"""The linear space: one weight vector per class, for dense and for sparse rows."""

import copy
from collections.abc import Callable
from functools import cache
from typing import Any, Self

import numpy as np

from onebit.compiled import compiled
from onebit.draws import Draw
from onebit.inputs import Floats, Integers, Rows, SparseRows
from onebit.rounds import EXPLORED, MISTAKES, UPDATES, Guess, Record, Rule
from onebit.spaces import linear, sparse
from onebit.spaces.base import Space
from onebit.spaces.linear import Weights
from onebit.spaces.moves import Moves


class LinearSpace(Space):
    """One weight per class and feature; memory K × d whatever the number of rounds."""

    def __init__(self, n_features: int, n_classes: int) -> None:
        self.n_features, self.n_classes = n_features, n_classes
        self._weights = np.zeros((n_features, n_classes))

    def scores(self, row: Rows) -> Floats:
        """Return ⟨wᵢ, x⟩ for every class i."""
        out = np.empty(self.n_classes)
        if isinstance(row, SparseRows):
            _sparse_scores(Weights(self._weights), row, out)
        else:
            _dense_scores(Weights(self._weights), row, out)
        return out

    def score_rows(self, rows: Rows) -> Floats:
        """Return ⟨wᵢ, x⟩ for every row and class."""
        if not isinstance(rows, SparseRows):
            return rows @ self._weights
        out = np.empty((len(rows), self.n_classes))
        _sparse_score_rows(Weights(self._weights), rows, out)
        return out

    def add(self, row: Rows, gains: Floats) -> None:
        """Add gains[i]·x to the weights of every class i."""
        if isinstance(row, SparseRows):
            _sparse_add(Weights(self._weights), row, gains)
        else:
            _dense_add(Weights(self._weights), row, gains)

    def decide(
        self, moves: Moves, row: Rows, seed: int, round: int, settings: Any
    ) -> tuple[int, bool, float, Floats, Rows]:
        """Score and decide, in one compiled call when the row is dense."""
        if isinstance(row, SparseRows):
            return super().decide(moves, row, seed, round, settings)
        scores = np.empty(self.n_classes)
        label, explored, probability = moves.score_and_decide(self._weights, row, scores, seed, round, settings)
        return label, explored, probability, scores, row

    def hear(self, moves: Moves, guess: Guess, current: Floats, correct: bool, truth: int, settings: Any) -> bool:
        """Learn and step, in one compiled call when the row is dense."""
        _, _, _, explored, index, row, scores, _, _ = guess
        if isinstance(row, SparseRows):
            return super().hear(moves, guess, current, correct, truth, settings)
        return moves.learn_and_step(self._weights, row, scores, current, index, explored, correct, truth, settings)

    def play(
        self, rule: Rule, settings: Any, X: Rows, y: Integers, seed: int, first_round: int, record: Record
    ) -> None:
        """Play a whole stream in one compiled loop."""
        loop = _stream_loop(rule, isinstance(X, SparseRows))
        loop(Weights(self._weights), X, y, seed, first_round, settings, record)

    def bookmark(self) -> Self:
        """Return a copy."""
        return copy.deepcopy(self)

    def arrays(self) -> dict[str, Floats]:
        """Return the weights, one row per class."""
        return {"weights": self._weights.T.copy()}


@compiled
def _dense_scores(memory: Weights, row: Floats, out: Floats) -> None:
    linear.scores(memory, row, 0, out)


@compiled
def _sparse_scores(memory: Weights, row: SparseRows, out: Floats) -> None:
    sparse.scores(memory, row, 0, out)


@compiled
def _sparse_score_rows(memory: Weights, rows: SparseRows, out: Floats) -> None:
    for t in range(out.shape[0]):
        sparse.scores(memory, rows, t, out[t])


@compiled
def _dense_add(memory: Weights, row: Floats, gains: Floats) -> None:
    linear.step(memory, row, 0, gains)


@compiled
def _sparse_add(memory: Weights, row: SparseRows, gains: Floats) -> None:
    sparse.step(memory, row, 0, gains)


@cache
def _stream_loop(rule: Rule, is_sparse: bool) -> Callable[..., None]:
    """Return the compiled loop that plays a rule over a whole stream, made once for each rule and kind of row."""
    guess, learn, hears_label = rule.guess, rule.learn, rule.hears_label
    scores: Callable[..., None] = sparse.scores if is_sparse else linear.scores
    step: Callable[..., None] = sparse.step if is_sparse else linear.step

    @compiled
    def loop(memory: Weights, X: Rows, y: Integers, seed: int, first_round: int, settings: Any, record: Record) -> None:
        n_classes = memory.weights.shape[1]
        values, gains = np.empty(n_classes), np.empty(n_classes)
        keep_guesses = record.guesses.shape[0] > 0
        start = 0
        # Counting in local variables between checkpoints, rather than with `note`, makes the loop three times as fast.
        for passed in range(record.checkpoints.shape[0]):
            mistakes, updates, n_explored = 0, 0, 0
            for t in range(start, record.checkpoints[passed]):
                scores(memory, X, t, values)
                label, explored = guess(values, Draw(seed, first_round + t), settings)
                correct = label == y[t]
                truth = y[t] if hears_label else -1
                if learn(values, values, label, explored, correct, truth, settings, gains):
                    step(memory, X, t, gains)
                    updates += 1
                mistakes += not correct
                n_explored += explored
                if keep_guesses:
                    record.guesses[t] = label
            start = record.checkpoints[passed]
            record.counts[MISTAKES] += mistakes
            record.counts[UPDATES] += updates
            record.counts[EXPLORED] += n_explored
            record.cumulative[passed] = record.counts[MISTAKES]

    return loop
