"""A rule, and the space it plays in.

A *rule* turns scores into a guess, and feedback into a step; it sees nothing but scores. A *space* is where scores
live: it turns features into scores, and applies what a rule says each class gains. Every rule works in every space.
"""

import importlib
from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from onebit.engine.loop import Algorithm, inline_into_loop
from onebit.engine.randomness import Draw
from onebit.engine.state import Scratch, State, in_python, needed_chance
from onebit.game import Answer
from onebit.inputs import Floats, Rows, SparseRows, unlocked


class Numbers(NamedTuple):
    """The settings of a rule in a space."""

    rule: Any
    kernel: Any
    """The kernel's parameters."""


class Rule(NamedTuple):
    """How scores become a guess and feedback becomes a step: three `onebit.engine.jit.inlined` functions.

    They compare scores of a round with each other and with zero, no more: rounding, and where scores are beyond a float
    their unit, differ between engines.

    Attributes
    ----------
    home : str
        Where the rule is found again when a saved learner is loaded: ``"package.module:NAME"``.
    guess : (scores, draw, settings) → (label, explored)
        May call ``uniform(draw)``, once.
    probabilities : (scores, settings, out)
        Writes the chance that `guess` gives to each label.
    learn : (answer, scratch, settings) → changed
        Reads ``scratch.scores`` and ``scratch.current`` and writes to ``scratch.gains`` how much of x each class gains.
    learn_logged : (answer, scratch, settings) → changed, or None
        The same for a round that somebody else played; the only setting is the chance that its label was tried with.
        Without it such rounds are refused.
    full_information : bool
        Whether the rule belongs to the full-information game.
    divides_by_chances : bool
        Whether `learn_logged` needs the chance.
    always_draws : bool
        Whether `guess` calls ``uniform(draw)`` in nearly every round: then the numbers of a stream are drawn together,
        which is faster.
    """

    home: str
    guess: Callable[[Floats, Draw, Any], tuple[int, bool]]
    probabilities: Callable[[Floats, Any, Floats], None]
    learn: Callable[[Answer, Scratch, Any], bool]
    learn_logged: Callable[[Answer, Scratch, Any], bool] | None = None
    full_information: bool = False
    divides_by_chances: bool = False
    always_draws: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        # Compiled functions do not travel between processes; a name does.
        try:
            found = find_rule(self.home)
        except (ImportError, AttributeError, ValueError):
            found = None
        if found != self:
            raise ValueError(
                f"this rule cannot be saved: at home={self.home!r} there is none, or another one. Give it as home the "
                '"package.module:NAME" where it lives'
            )
        return find_rule, (self.home,)

    def __deepcopy__(self, _memo: Any) -> "Rule":
        return self  # it never changes


def find_rule(home: str) -> Any:
    """Return the rule that lives there."""
    module, _, name = home.partition(":")  # importing it defines the rule
    return getattr(importlib.import_module(module), name)


class Space(State):
    """The memory of a learner that follows a rule."""

    rule: Rule

    def late_scratch(self, scores: Floats) -> Scratch:
        """Let the rule see the scores of then beside those of now; a class that came later was not allowed then."""
        then = np.full(self.n_classes, -np.inf)
        then[: len(scores)] = scores
        scratch: Scratch = self.scratch._replace(scores=then)
        return scratch

    def takes_scores(self, scores: Floats, label: int) -> bool:
        """Return whether they are numbers, but for labels that were not allowed, and the label was."""
        are_scores = bool((scores < np.inf).all())  # NaN is not
        return are_scores and label < len(scores) <= self.n_classes and bool(scores[label] > -np.inf)

    @abstractmethod
    def algorithm_of(self, rule: Rule, is_sparse: bool) -> Algorithm:
        """Return a rule's game in this space, for dense or for sparse rows."""

    def algorithm(self, is_sparse: bool) -> Algorithm:
        """Return the rule's game."""
        return self.algorithm_of(self.rule, is_sparse)

    def learn_from_log(self, row: Rows, label: int, correct: bool, truth: int, propensity: float | None) -> bool:
        """Learn what the rule's theorem allows."""
        rule = self.rule
        if rule.learn_logged is None:
            raise ValueError("this rule cannot learn from rounds that others played; give it learn_logged")
        if rule.divides_by_chances:
            needed_chance(propensity)
        if rule.full_information and truth < 0:
            return False  # it learns from labels, and this one is not known
        prepared = self.prepare(row)
        self.score(prepared, row)
        self._scored_round = -1
        algorithm = self.algorithm_of(rule._replace(learn=rule.learn_logged), isinstance(prepared, SparseRows))
        settings = self.settings._replace(rule=(1.0 if propensity is None else propensity,))
        answer = Answer(label, False, correct, truth)
        return bool(in_python(algorithm.update)(self.arrays, unlocked(prepared), 0, self.scratch, answer, settings))


@cache
def rule_algorithm(rule: Rule, score: Callable[..., Any], step: Callable[..., None], pauses: bool = False) -> Algorithm:
    """Return the algorithm of a rule in a space.

    Parameters
    ----------
    rule : Rule
        How scores become a guess and feedback becomes a step.
    score : (state, X, t, kernel, out) → READY or why not
        Writes row t's score for every class.
    step : (state, X, t, gains)
        Lets every class i gain gains[i] times row t.
    pauses : bool
        As for `Algorithm`.
    """
    guess, probabilities, learn = rule.guess, rule.probabilities, rule.learn

    def score_row(state: Any, X: Rows, t: int, scratch: Scratch, settings: Numbers) -> Any:
        return score(state, X, t, settings.kernel, scratch.current)

    def choose(scratch: Scratch, draw: Draw, settings: Numbers) -> tuple[int, bool]:
        return guess(scratch.current, draw, settings.rule)

    def write_probabilities(scratch: Scratch, settings: Numbers) -> None:
        probabilities(scratch.current, settings.rule, scratch.propensities)

    def update(state: Any, X: Rows, t: int, scratch: Scratch, answer: Answer, settings: Numbers) -> bool:
        changed = learn(answer, scratch, settings.rule)
        if changed:
            step(state, X, t, scratch.gains)
        return changed

    return inline_into_loop(Algorithm(score_row, choose, write_probabilities, update, rule.full_information, pauses))
