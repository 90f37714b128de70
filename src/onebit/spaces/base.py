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

from onebit.engine.loop import Game, plugged
from onebit.engine.randomness import Draw
from onebit.engine.state import Memory, Sight, in_python, needed_chance
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
    learn : (answer, sight, settings) → changed
        Reads ``sight.scores`` and ``sight.current`` and writes to ``sight.gains`` how much of x each class gains.
    learn_logged : (answer, sight, settings) → changed, or None
        The same for a round that somebody else played; the only setting is the chance that its label was tried with.
        Without it such rounds are refused.
    hears_label : bool
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
    learn: Callable[[Answer, Sight, Any], bool]
    learn_logged: Callable[[Answer, Sight, Any], bool] | None = None
    hears_label: bool = False
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


class Space(Memory):
    """The memory of a learner that follows a rule."""

    rule: Rule

    def sight_of_late(self, scores: Floats) -> Sight:
        """Let the rule see the scores of then beside those of now; a class that came later was not allowed then."""
        then = np.full(self.n_classes, -np.inf)
        then[: len(scores)] = scores
        sight: Sight = self.sight._replace(scores=then)
        return sight

    def takes_scores(self, scores: Floats, label: int) -> bool:
        """Return whether they are numbers, but for labels that were not allowed, and the label was."""
        are_scores = bool((scores < np.inf).all())  # NaN is not
        return are_scores and label < len(scores) <= self.n_classes and bool(scores[label] > -np.inf)

    @abstractmethod
    def game_of(self, rule: Rule, is_sparse: bool) -> Game:
        """Return a rule's game in this space, for dense or for sparse rows."""

    def game(self, is_sparse: bool) -> Game:
        """Return the rule's game."""
        return self.game_of(self.rule, is_sparse)

    def hear_logged(self, row: Rows, label: int, correct: bool, truth: int, propensity: float | None) -> bool:
        """Learn what the rule's theorem allows."""
        rule = self.rule
        if rule.learn_logged is None:
            raise ValueError("this rule cannot learn from rounds that others played; give it learn_logged")
        if rule.divides_by_chances:
            needed_chance(propensity)
        if rule.hears_label and truth < 0:
            return False  # it learns from labels, and this one is not known
        prepared = self.prepare(row)
        self.measure(prepared, row)
        self._seen = -1
        game = self.game_of(rule._replace(learn=rule.learn_logged), isinstance(prepared, SparseRows))
        settings = self.settings._replace(rule=(1.0 if propensity is None else propensity,))
        answer = Answer(label, False, correct, truth)
        return bool(in_python(game.hear)(self.arrays, unlocked(prepared), 0, self.sight, answer, settings))


@cache
def rule_game(rule: Rule, score: Callable[..., Any], step: Callable[..., None], pauses: bool = False) -> Game:
    """Return the game of a rule in a space.

    Parameters
    ----------
    rule : Rule
        How scores become a guess and feedback becomes a step.
    score : (memory, X, t, kernel, out) → READY or why not
        Writes row t's score for every class.
    step : (memory, X, t, gains)
        Lets every class i gain gains[i] times row t.
    pauses : bool
        As for `Game`.
    """
    guess, probabilities, learn = rule.guess, rule.probabilities, rule.learn

    def measure(memory: Any, X: Rows, t: int, sight: Sight, settings: Numbers) -> Any:
        return score(memory, X, t, settings.kernel, sight.current)

    def decide(sight: Sight, draw: Draw, settings: Numbers) -> tuple[int, bool]:
        return guess(sight.current, draw, settings.rule)

    def weigh(sight: Sight, settings: Numbers) -> None:
        probabilities(sight.current, settings.rule, sight.chances)

    def hear(memory: Any, X: Rows, t: int, sight: Sight, answer: Answer, settings: Numbers) -> bool:
        changed = learn(answer, sight, settings.rule)
        if changed:
            step(memory, X, t, sight.gains)
        return changed

    return plugged(Game(measure, decide, weigh, hear, rule.hears_label, pauses))
