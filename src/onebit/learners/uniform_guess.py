"""Guessing at random: what any learner must beat."""

from typing import Any

from onebit.compiled import inlined
from onebit.draws import Draw, uniform, uniform_label
from onebit.inputs import Floats
from onebit.learners.rule_learner import RuleLearner
from onebit.rounds import Rule


class UniformGuess(RuleLearner):
    """Guesses every label with the same chance and never learns.

    Parameters
    ----------
    classes : None, int or list
        The labels, or how many; `play` and `fit` find out by themselves.
    seed : int
        Names the learner's random numbers.

    Guarantee
    ---------
    T(K−1)/K expected mistakes in T rounds, whatever the stream.

    Examples
    --------
    >>> UniformGuess(classes=4).probabilities([0.0])
    array([0.25, 0.25, 0.25, 0.25])

    References
    ----------
    Beygelzimer et al. (2019). ICML. Step 6 of Algorithm 1, on its own.
    """

    def __init__(self, *, classes: Any = None, seed: int = 0) -> None:
        self.classes = classes
        self.seed = seed

    @property
    def rule(self) -> Rule:
        """The uniform rule."""
        return _RULE


@inlined
def _guess(scores: Floats, draw: Draw, _settings: Any) -> tuple[int, bool]:
    return uniform_label(uniform(draw), scores.shape[0]), True


@inlined
def _probabilities(scores: Floats, _settings: Any, out: Floats) -> None:
    out[:] = 1.0 / scores.shape[0]


@inlined
def _learn(
    _scores: Floats,
    _current: Floats,
    _label: int,
    _explored: bool,
    _correct: bool,
    _truth: int,
    _settings: Any,
    _gains: Floats,
) -> bool:
    return False


_RULE = Rule(_guess, _probabilities, _learn)
