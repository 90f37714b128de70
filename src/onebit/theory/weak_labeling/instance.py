"""The weak labelling problem: find weights that agree with everything the feedback has proved.

A learner that hears "right" or "wrong" collects facts: "x is label i" after a right guess, "x is not label i" after a
wrong one. Weights w₁,…,w_K *agree* with

    "x is i"      if ⟨wᵢ,x⟩ > ⟨wⱼ,x⟩ for every j ≠ i,
    "x is not i"  if ⟨wⱼ,x⟩ > ⟨wᵢ,x⟩ for some j.

Whether any weights agree with all the facts is NP-complete, even for K = 3 and features 0 and 1 (Appendix H).
Here labels count from 0.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from onebit.inputs import check_integer
from onebit.theory.exact import Number, Objects, Point, check_point, dot, whole_multiple

Weights = tuple[Point, ...]


class Fact(NamedTuple):
    """What one round proved: features, a label, and whether the label is theirs (`it_is`) or is not (`it_is_not`)."""

    features: Point
    label: int
    holds: bool

    def allows(self, scores: Sequence[Fraction] | Objects) -> bool:
        """Return whether the scores ⟨w₁,x⟩,…,⟨w_K,x⟩ agree with this."""
        # Strictly, as the definition has it: a tie agrees with nothing.
        own = scores[self.label]
        others = [score for label, score in enumerate(scores) if label != self.label]
        return all(own > score for score in others) if self.holds else any(score > own for score in others)

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.features))}) is {'' if self.holds else 'not '}{self.label}"


def it_is(features: Sequence[Number], label: int) -> Fact:
    """Return the fact that the features have that label (a strong label)."""
    return Fact(check_point("features", features), check_integer("label", label, low=0), True)


def it_is_not(features: Sequence[Number], label: int) -> Fact:
    """Return the fact that the features do not have that label (a weak label)."""
    return Fact(check_point("features", features), check_integer("label", label, low=0), False)


class WeakLabeling:
    """An instance of the weak labelling problem.

    Parameters
    ----------
    facts : sequence of Fact
        At least one, all with features of the same length.
    n_classes : int
        K, at least 1 and above every label.

    Examples
    --------
    >>> problem = WeakLabeling([it_is([1, 0], 0), it_is_not([0, 1], 0)], n_classes=2)
    >>> problem.is_solved_by([[1, 0], [0, 1]]), problem.is_solved_by([[1, 1], [0, 0]])
    (True, False)
    >>> [str(fact) for fact in problem.broken_by([[1, 1], [0, 0]])]
    ['(0, 1) is not 0']
    """

    def __init__(self, facts: Sequence[Fact], n_classes: int) -> None:
        self.facts = tuple(facts)
        self.n_classes = check_integer("n_classes", n_classes, low=1)
        if not self.facts:
            raise ValueError("facts must hold at least one fact, made by it_is(x, label) or it_is_not(x, label)")
        for i, fact in enumerate(self.facts):
            if not isinstance(fact, Fact):
                raise ValueError(f"facts[{i}] must be made by it_is(x, label) or it_is_not(x, label); got {fact!r}")
            if fact.label >= self.n_classes:
                raise ValueError(f"facts[{i}] names label {fact.label}, but n_classes={n_classes}; raise n_classes")
            if len(fact.features) != self.n_features:
                raise ValueError(
                    f"facts[{i}] has {len(fact.features)} features, but facts[0] has {self.n_features}; "
                    "give every fact the same number"
                )

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.facts[0].features)

    @cached_property
    def whole_features(self) -> Objects:
        """The features of every fact, times their common denominator, as whole numbers: comparisons stay the same."""
        # Each fact by its own denominator: only the scores of one fact are ever compared.
        return np.array([whole_multiple(fact.features) for fact in self.facts], dtype=object)

    def broken_by(self, weights: Any) -> list[Fact]:
        """Return the facts that the weights contradict; decided exactly."""
        # In fractions: whether scores tie is what the problem turns on.
        checked = self.check_weights(weights)
        return [fact for fact in self.facts if not fact.allows([dot(w, fact.features) for w in checked])]

    def is_solved_by(self, weights: Any) -> bool:
        """Return whether the weights agree with every fact; decided exactly."""
        return not self.broken_by(weights)

    def labels_by(self, weights: Any) -> list[int]:
        """Return the label that the weights give to each fact's features: the highest score, the first of equals."""
        checked = self.check_weights(weights)
        scores = [[dot(w, fact.features) for w in checked] for fact in self.facts]
        return [row.index(max(row)) for row in scores]

    def check_weights(self, weights: Any) -> Weights:
        """Return weights as fractions, one row per class, or raise a ValueError."""
        if isinstance(weights, (str, bytes)) or not hasattr(weights, "__len__") or len(weights) != self.n_classes:
            raise ValueError(f"weights must hold one row for each of the {self.n_classes} classes; got {weights!r}")
        return tuple(check_point(f"weights[{i}]", row, self.n_features) for i, row in enumerate(weights))
