"""An exact solver of the weak labelling problem: branch and bound, with a linear program at each node.

A node of the search has chosen, for some of the facts "x is not i", a label that beats i there. With the facts "x is i"
these choices ask for finitely many strict inequalities ⟨w_a − w_b, x⟩ > 0, and `positive_solution` either meets them or
proves that they contradict each other, exactly. If its weights break a fact, the search goes on over who wins there.
So a "yes" comes with weights that agree exactly, and a "no" is proved at every leaf.

The weights of the last class are 0, which adding one vector to all classes permits. Labels that no fact and no choice
has named are interchangeable, so only the first of them is tried.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from onebit.inputs import check_integer
from onebit.theory.exact import Objects, whole_multiple
from onebit.theory.weak_labeling.instance import WeakLabeling, Weights
from onebit.theory.weak_labeling.strict_inequalities import positive_solution

Choices = tuple[tuple[int, int], ...]


class Answer(NamedTuple):
    """What the search found: weights that agree with every fact or None, and how many nodes it looked at."""

    weights: Weights | None
    n_nodes: int


def solve(problem: WeakLabeling, max_nodes: int | None = None) -> Answer:
    """Return weights that agree with every fact, or None as their weights if there are none.

    Parameters
    ----------
    problem : WeakLabeling
        The facts.
    max_nodes : int, optional
        Give up after so many nodes. The time grows exponentially with the number of facts "x is not i".

    Raises
    ------
    RuntimeError
        If `max_nodes` did not suffice.

    Examples
    --------
    >>> from onebit.theory.weak_labeling import SetSplitting
    >>> splitting = SetSplitting(3, [{0, 1}, {1, 2}])
    >>> answer = solve(splitting.to_weak_labeling())
    >>> sorted(splitting.split_of(answer.weights)) in ([1], [0, 2])
    True
    >>> solve(SetSplitting(3, [{0, 1}, {1, 2}, {0, 2}]).to_weak_labeling())
    Answer(weights=None, n_nodes=6)
    """
    if not isinstance(problem, WeakLabeling):
        raise ValueError(f"problem must be a WeakLabeling; got {problem!r}")
    if max_nodes is not None:
        check_integer("max_nodes", max_nodes, low=1)
    stack: list[Choices] = [()]
    n_nodes = 0
    while stack:
        if n_nodes == max_nodes:
            raise RuntimeError(f"no answer after max_nodes={max_nodes} nodes; raise max_nodes or shrink the problem")
        choices = stack.pop()
        n_nodes += 1
        weights = agreeing_weights(problem, choices)
        # A leaf: these choices contradict each other, whatever is chosen besides.
        if weights is None:
            continue
        broken = _first_broken(problem, weights)
        if broken is None:
            return Answer(weights, n_nodes)
        # Depth first keeps few nodes at a time; reversed, so that the lowest label is tried first.
        stack.extend((*choices, (broken, winner)) for winner in reversed(_winners(problem, choices, broken)))
    return Answer(None, n_nodes)


def agreeing_weights(problem: WeakLabeling, choices: Choices) -> Weights | None:
    """Return weights that agree with every fact "x is i" and let each chosen label win at its fact, or None.

    Parameters
    ----------
    problem : WeakLabeling
        The facts.
    choices : sequence of pairs
        (index of a fact "x is not i", the label that beats i there).
    """
    for index, winner in choices:
        check_integer("choices: the index of a fact", index, low=0, high=len(problem.facts) - 1)
        check_integer("choices: a winner", winner, low=0, high=problem.n_classes - 1)
        if problem.facts[index].holds or problem.facts[index].label == winner:
            raise ValueError(f"choices cannot let label {winner} win, given that {problem.facts[index]}")
    d = problem.n_features
    flat = positive_solution(_inequalities(problem, choices))
    if flat is None:
        return None
    # The last class, whose weights are 0.
    flat += (Fraction(0),) * d
    return tuple(flat[start : start + d] for start in range(0, len(flat), d))


def _winners(problem: WeakLabeling, choices: Choices, broken: int) -> list[int]:
    named = {fact.label for fact in problem.facts} | {winner for _, winner in choices}
    unnamed = [label for label in range(problem.n_classes) if label not in named]
    return [label for label in sorted([*named, *unnamed[:1]]) if label != problem.facts[broken].label]


def _first_broken(problem: WeakLabeling, weights: Weights) -> int | None:
    # Only comparisons count, and on whole numbers they need no fractions to be reduced.
    whole = np.array([whole_multiple([entry for w in weights for entry in w])], dtype=object)
    scores = problem.whole_features @ whole.reshape(problem.n_classes, problem.n_features).T
    return next((i for i, fact in enumerate(problem.facts) if not fact.allows(scores[i])), None)


def _inequalities(problem: WeakLabeling, choices: Choices) -> Objects:
    """Return one row of whole numbers for each demand that one label beat another: ⟨row, w⟩ > 0 for all w in a row."""
    beats = [
        (index, fact.label, other)
        for index, fact in enumerate(problem.facts)
        if fact.holds
        for other in range(problem.n_classes)
        if other != fact.label
    ]
    beats += [(index, winner, problem.facts[index].label) for index, winner in choices]
    rows = np.zeros((len(beats), problem.n_classes, problem.n_features), dtype=object)
    for row, (index, winner, loser) in zip(rows, beats, strict=True):
        row[winner], row[loser] = problem.whole_features[index], -problem.whole_features[index]
    # The last class's weights are 0, so its columns drop out.
    return rows[:, :-1].reshape(len(beats), (problem.n_classes - 1) * problem.n_features)
