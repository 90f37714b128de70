"""Rules, and the spaces they work in.

A *rule* turns scores into a guess, and feedback into a step; it sees nothing but scores. A *space* turns features into
scores, and applies each class's gain. Every rule works in every space.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from onebit.engine.algorithm import Algorithm
from onebit.engine.jit import in_python, jit_inline
from onebit.engine.randomness import Draw
from onebit.engine.state import Scratch, State
from onebit.game import Answer
from onebit.import_paths import find_by_import_path
from onebit.inputs import Floats, Rows, SparseRows, unlocked


class Numbers(NamedTuple):
    """The settings of a rule in a space."""

    rule: Any
    kernel: Any  # the kernel's parameters


class Rule(NamedTuple):
    """How scores become a guess and feedback becomes a step: `onebit.engine.jit.jit_inline` functions.

    They may only compare scores of a round with each other and with zero: rounding, and the scale of scores that
    overflow, differ between engines.

    Attributes
    ----------
    home : str
        The rule's import path, for loading a saved learner: ``"package.module:NAME"``.
    guess : (scores, draw, settings) → (label, explored)
        May call ``uniform(draw)``, once.
    probabilities : (scores, settings, out)
        Writes the propensity of each label.
    learn : (answer, scratch, settings) → changed
        Reads ``scratch.scores`` and ``scratch.current`` and writes to ``scratch.gains`` how much of x each class gains.
        Only `learn_logged` may read ``answer.propensity``.
    learn_logged : (answer, scratch, settings) → changed, or None
        The same for a round that another system played. If None, such rounds are refused.
    full_information : bool
        Whether the rule learns from the label itself.
    divides_by_propensity : bool
        Whether `learn_logged` reads ``answer.propensity``, which is NaN where it is not known.
    """

    home: str
    guess: Callable[[Floats, Draw, Any], tuple[int, bool]]
    probabilities: Callable[[Floats, Any, Floats], None]
    learn: Callable[[Answer, Scratch, Any], bool]
    learn_logged: Callable[[Answer, Scratch, Any], bool] | None = None
    full_information: bool = False
    divides_by_propensity: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        # Compiled functions cannot be pickled; an import path can.
        if find_by_import_path(self.home, "this rule cannot be saved:") != self:
            raise ValueError(f'this rule cannot be saved: home={self.home!r} must be the "package.module:NAME" of it')
        return find_by_import_path, (self.home, "rule")

    def __deepcopy__(self, _memo: Any) -> "Rule":
        return self  # immutable


class Space(State):
    """The state of a learner that follows a rule."""

    rule: Rule

    @abstractmethod
    def algorithm(self, is_sparse: bool, rule: Rule | None = None) -> Algorithm:
        """Return the algorithm of a rule in this space, of its own by default, for dense or for sparse rows."""

    def learns_from_logs(self) -> bool:
        return self.rule.learn_logged is not None

    def learn_from_log(self, row: Rows, label: int, correct: bool, truth: int, propensity: float | None) -> bool:
        """Learn from a round that another system played, by the rule's `learn_logged`."""
        rule = self.rule
        if rule.learn_logged is None:
            raise ValueError("this rule cannot learn from rounds that others played; give it learn_logged")
        if rule.divides_by_propensity:
            needed_propensity(propensity)
        if rule.full_information and truth < 0:
            return False  # it learns from labels, and this one is unknown
        prepared = self.prepare(row)
        self.score(prepared, row)
        algorithm = self.algorithm(isinstance(prepared, SparseRows), rule._replace(learn=rule.learn_logged))
        answer = Answer(label, False, correct, truth, math.nan if propensity is None else propensity)
        state, settings = self.arrays, self.settings
        return bool(in_python(algorithm.update)(state, unlocked(prepared), 0, self.scratch, answer, settings))


@cache
def rule_algorithm(rule: Rule, score: Callable[..., Any], step: Callable[..., None], pauses: bool = False) -> Algorithm:
    """Return the algorithm of a rule in a space, which gives two functions.

    ``score(state, X, t, kernel, out)`` writes row t's score for every class and returns READY or why not;
    ``step(state, X, t, gains)`` adds gains[i] times row t to every class i.
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

    functions = jit_inline(score_row), jit_inline(choose), jit_inline(write_probabilities), jit_inline(update)
    return Algorithm(*functions, rule.full_information, pauses)


def needed_propensity(propensity: float | None) -> float:
    """Return the propensity of a label that was tried, for learners that divide by it."""
    if propensity is None:
        raise ValueError(
            "propensities are needed: this rule divides by the chance with which each label was tried. Give "
            "them, or use a learner that needs none, such as BanditSVM or BanditPerceptron"
        )
    return propensity
