"""Playing a support set in blocks: matrix products for the scores, and still the round-by-round guesses.

A block of rows is scored at once against the examples stored so far. Walking through the block, each update's effect is
added to the rows still to come. Such scores differ from those of a single round by rounding (or, where a polynomial
stands in for the kernel, by its error), so each comes with a margin, and a row whose scores are closer to each other or
to zero than their margins is scored again, alone and exactly as a single round would. A rule only compares scores with
each other and with zero, so every guess is the same.
"""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from onebit.compiled import compiled, inlined
from onebit.draws import Draw
from onebit.inputs import Floats, Integers, Rows, SparseRows, densify
from onebit.rounds import Record, Rule, note
from onebit.spaces.screen import Screen

if TYPE_CHECKING:
    from onebit.spaces.support_set import SupportSet

_ROWS = 256
_ROWS_WITH_SCREEN = 4096
_ROUNDING = 4.0 * 2.0**-53
_MANY_UPDATES = 1 / 16
_DONE, _UNCERTAIN, _CHANGED = range(3)


def play_in_blocks(
    space: "SupportSet", rule: Rule, settings: Any, X: Rows, y: Integers, seed: int, first_round: int, record: Record
) -> None:
    """Play a whole stream, guess for guess as one round at a time would."""
    screen = Screen.for_kernel(space.kernel, space.n_features, space.n_classes)
    rows_at_once = _ROWS if screen is None else _ROWS_WITH_SCREEN
    walk = _walk(rule)
    many_updates = False
    for start in range(0, len(y), rows_at_once):
        stop = min(start + rows_at_once, len(y))
        rows = space.prepare(densify(X, start, stop) if isinstance(X, SparseRows) else X[start:stop])
        block = _Block(space, screen, rows, many_updates)
        labels, gains = y[start:stop], np.empty(space.n_classes)
        position, certain, n_updates = 0, -1, 0
        while True:
            position, event = walk(
                block.scores,
                block.margins,
                certain,
                labels,
                position,
                start,
                first_round,
                seed,
                settings,
                gains,
                record,
            )
            if event == _UNCERTAIN:
                block.scores[position] = _finite(space.scores(rows[position : position + 1]))
                certain = position
            elif event == _CHANGED:
                n_updates += 1
                block.update(position, gains)
                position += 1
            else:
                break
        many_updates = n_updates > _MANY_UPDATES * (stop - start)


class _Block:
    """The scores of some rows against a support set that changes under them, and how far off they may be."""

    def __init__(self, space: "SupportSet", screen: Screen | None, rows: Floats, expect_many_updates: bool) -> None:
        self.space, self.rows = space, rows
        self.radius = float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max()))
        self.screen = screen if screen is not None and screen.n_terms < 2 * space.size else None
        if self.screen is not None:
            self.screen.catch_up(space.points, space.coefficients)
            self.scores = self.screen.score_rows(rows)
        else:
            self.scores = space.score_rows(rows)
        _finite(self.scores)
        self.gram = space.kernel.matrix(rows, rows) if expect_many_updates else None
        self._measure()

    def _measure(self) -> None:
        space = self.space
        radius = max(self.radius, space.radius)
        terms = space.n_features + space.size + len(self.rows) + 64
        error = _ROUNDING * terms * space.kernel.sensitivity(radius)
        if self.screen is not None:
            error += self.screen.error(radius, _ROUNDING)
        self.margins = error * space.total

    def update(self, position: int, gains: Floats) -> None:
        """Store a row of the block, and add what each class gained of it to the rows that follow."""
        row = self.rows[position : position + 1]
        self.space.add(row, gains)
        self._measure()
        if position + 1 < len(self.rows):
            if self.gram is None:
                values = self.space.kernel.matrix(row, self.rows[position + 1 :])[0]
            else:
                values = self.gram[position, position + 1 :]
            _spread(_finite(values), gains, self.scores, position + 1)


def _finite(scores: Floats) -> Floats:
    """Return the scores, or raise if the kernel gave NaN or an infinity."""
    if not np.isfinite(scores.sum()):
        raise ValueError(
            "the kernel returned NaN or an infinity for these features; check a kernel function of your own, "
            "or use smaller features, a smaller degree or normalize=True"
        )
    return scores


@compiled
def _spread(values: Floats, gains: Floats, scores: Floats, first: int) -> None:
    for j in range(values.shape[0]):
        for i in range(gains.shape[0]):
            scores[first + j, i] += values[j] * gains[i]


@inlined
def _uncertain(scores: Floats, row: int, margins: Floats) -> bool:
    """Say whether a comparison of two scores, or of one with zero, could go the other way without rounding."""
    doubt = False
    for i in range(margins.shape[0]):
        if margins[i] > 0.0:
            doubt |= abs(scores[row, i]) <= margins[i]
            for j in range(margins.shape[0]):
                if j != i:
                    doubt |= abs(scores[row, i] - scores[row, j]) <= margins[i] + margins[j]
    return doubt


@cache
def _walk(rule: Rule) -> Callable[..., tuple[int, int]]:
    """Return the compiled walk through a block: up to the next row that is in doubt or changes the learner."""
    guess, learn, hears_label = rule.guess, rule.learn, rule.hears_label

    @compiled
    def walk(
        scores: Floats,
        margins: Floats,
        certain: int,
        y: Integers,
        position: int,
        start: int,
        first_round: int,
        seed: int,
        settings: Any,
        gains: Floats,
        record: Record,
    ) -> tuple[int, int]:
        for j in range(position, y.shape[0]):
            if j != certain and _uncertain(scores, j, margins):
                return j, _UNCERTAIN
            values = scores[j]
            label, explored = guess(values, Draw(seed, first_round + start + j), settings)
            correct = label == y[j]
            truth = y[j] if hears_label else -1
            changed = learn(values, values, label, explored, correct, truth, settings, gains)
            note(record, start + j, label, explored, correct, changed)
            if changed:
                return j, _CHANGED
        return y.shape[0], _DONE

    return walk
