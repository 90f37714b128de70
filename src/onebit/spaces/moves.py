"""A rule's moves, compiled for one round at a time."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from onebit.compiled import compiled, inlined
from onebit.draws import Draw
from onebit.inputs import Floats
from onebit.rounds import Rule
from onebit.spaces import linear
from onebit.spaces.linear import Weights


class Moves(NamedTuple):
    """The compiled functions that interactive play calls, made once for each rule."""

    decide: Callable[..., tuple[int, bool, float]]
    """(scores, seed, round, settings) → label (−1 if a score is not finite), explored, probability."""
    learn: Callable[..., bool]
    """(scores, current, label, explored, correct, truth, settings, gains) → changed."""
    probabilities: Callable[..., None]
    """(scores, settings, out)."""
    score_and_decide: Callable[..., tuple[int, bool, float]]
    """(weights, row, out, seed, round, settings): `decide` on dense weights, in one call."""
    learn_and_step: Callable[..., bool]
    """(weights, row, scores, current, label, explored, correct, truth, settings): `learn`, applied to dense weights."""


@cache
def moves(rule: Rule) -> Moves:
    """Return a rule's moves."""
    guess, probabilities, learn = rule.guess, rule.probabilities, rule.learn

    @inlined
    def choose(scores: Floats, seed: int, round: int, settings: Any) -> tuple[int, bool, float]:
        for i in range(scores.shape[0]):
            if not np.isfinite(scores[i]):
                return -1, False, 0.0
        label, explored = guess(scores, Draw(seed, round), settings)
        chances = np.empty(scores.shape[0])
        probabilities(scores, settings, chances)
        return label, explored, chances[label]

    @compiled
    def decide(scores: Floats, seed: int, round: int, settings: Any) -> tuple[int, bool, float]:
        return choose(scores, seed, round, settings)

    @compiled
    def score_and_decide(
        weights: Floats, row: Floats, out: Floats, seed: int, round: int, settings: Any
    ) -> tuple[int, bool, float]:
        linear.scores(Weights(weights), row, 0, out)
        return choose(out, seed, round, settings)

    @compiled
    def hear(
        scores: Floats,
        current: Floats,
        label: int,
        explored: bool,
        correct: bool,
        truth: int,
        settings: Any,
        gains: Floats,
    ) -> bool:
        return learn(scores, current, label, explored, correct, truth, settings, gains)

    @compiled
    def learn_and_step(
        weights: Floats,
        row: Floats,
        scores: Floats,
        current: Floats,
        label: int,
        explored: bool,
        correct: bool,
        truth: int,
        settings: Any,
    ) -> bool:
        gains = np.empty(scores.shape[0])
        changed = learn(scores, current, label, explored, correct, truth, settings, gains)
        if changed:
            linear.step(Weights(weights), row, 0, gains)
        return changed

    @compiled
    def chances(scores: Floats, settings: Any, out: Floats) -> None:
        probabilities(scores, settings, out)

    return Moves(decide, hear, chances, score_and_decide, learn_and_step)
