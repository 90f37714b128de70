"""The weak labelling problem: find weights that agree with everything the feedback has proved (Appendix H).

_Weights w₁,…,w_K *agree* with "x is i" if ⟨wᵢ,x⟩ > ⟨wⱼ,x⟩ for every j ≠ i, and with "x is not i" if ⟨wⱼ,x⟩ > ⟨wᵢ,x⟩ for
some j. Whether any weights agree with all facts is NP-complete, by a reduction from Set Splitting. The solver branches
over which label beats i, and decides every node without rounding. See docs/theory/weak-labeling.md.

References
----------
Beygelzimer et al. (2019). ICML. Appendix H. Blum, Rivest (1993). Training a 3-node neural network is NP-complete.
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

from onebit.engine.randomness import STREAM, random_numbers
from onebit.inputs import check_integer, check_number, check_seed
from onebit.theory.exact import Objects, check_point, vanishing_weights, whole_multiple

_Vector = tuple[Fraction, ...]
_Weights = tuple[_Vector, ...]
_Choices = tuple[tuple[int, int], ...]  # the index of a fact "x is not i", and the label that beats i there

_WHOLE = 2  # the label of the subsets and of the origin, which the other two labels have to beat at the elements
# Simple weights first: they are easier to read, and to calculate with. At last the weights as they are.
_DENOMINATORS = (1, 2, 10, 100, 10_000, 2**1100)
_ROUNDING = 1e-9  # what is smaller is the linear program's rounding: t, and multipliers as a share of the largest


@dataclass(frozen=True)
class Fact:
    """What one round proved: that the features have the label (a strong label), or have not (a weak label)."""

    features: Any
    label: int
    holds: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(check_point("features", self.features)))
        check_integer("label", self.label, low=0)

    def allows(self, scores: Sequence[Fraction | int]) -> bool:
        """Return whether the scores ⟨w₁,x⟩,…,⟨w_K,x⟩, or multiples of them, agree with this."""
        # Strictly, as the definition has it: a tie agrees with nothing.
        own = scores[self.label]
        others = [score for label, score in enumerate(scores) if label != self.label]
        return all(own > score for score in others) if self.holds else any(score > own for score in others)

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.features))}) is {'' if self.holds else 'not '}{self.label}"


class Answer(NamedTuple):
    """What the search found: weights that agree with every fact or None, and how many nodes it looked at."""

    weights: _Weights | None
    n_nodes: int


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
    >>> problem = WeakLabeling([Fact([1, 0], 0), Fact([0, 1], 0, holds=False)], n_classes=2)
    >>> problem.is_solved_by([[1, 0], [0, 1]]), problem.is_solved_by([[1, 1], [0, 0]])
    (True, False)
    >>> [str(fact) for fact in problem.broken_by([[1, 1], [0, 0]])]
    ['(0, 1) is not 0']
    """

    def __init__(self, facts: Sequence[Fact], n_classes: int) -> None:
        self.facts = tuple(facts)
        self.n_classes = check_integer("n_classes", n_classes, low=1)
        if not self.facts or not all(isinstance(fact, Fact) for fact in self.facts):
            raise ValueError(f"facts must hold at least one fact, and nothing but Fact(x, label); got {self.facts!r}")
        self.n_features = len(self.facts[0].features)
        for i, fact in enumerate(self.facts):
            if fact.label >= self.n_classes:
                raise ValueError(f"facts[{i}] names label {fact.label}, but n_classes={n_classes}; raise n_classes")
            if len(fact.features) != self.n_features:
                raise ValueError(
                    f"facts[{i}] has {len(fact.features)} features, but facts[0] has {self.n_features}; "
                    "give every fact the same number"
                )
        # Each fact by its own denominator: only the scores of one fact are ever compared.
        self.whole_features: Objects = np.array([whole_multiple(fact.features)[0] for fact in self.facts])

    def broken_by(self, weights: Any) -> list[Fact]:
        """Return the facts that the weights contradict; decided exactly."""
        return [fact for fact, scores in zip(self.facts, self._scores(weights), strict=True) if not fact.allows(scores)]

    def is_solved_by(self, weights: Any) -> bool:
        """Return whether the weights agree with every fact; decided exactly."""
        return not self.broken_by(weights)

    def labels_by(self, weights: Any) -> list[int]:
        """Return the label that the weights give to each fact's features: the highest score, the first of equals."""
        return [row.index(max(row)) for row in self._scores(weights)]

    def _scores(self, weights: Any) -> list[list[int]]:
        """Return a multiple of each fact's scores, in whole numbers: only how they compare counts."""
        if isinstance(weights, (str, bytes)) or not hasattr(weights, "__len__") or len(weights) != self.n_classes:
            raise ValueError(f"weights must hold one row for each of the {self.n_classes} classes; got {weights!r}")
        checked = [check_point(f"weights[{i}]", row, self.n_features) for i, row in enumerate(weights)]
        whole, _ = whole_multiple(np.ravel(checked))
        scores: list[list[int]] = (self.whole_features @ whole.reshape(self.n_classes, -1).T).tolist()
        return scores

    def solve(self, max_nodes: int | None = None) -> Answer:
        """Return weights that agree with every fact, or None as their weights if there are none.

        Parameters
        ----------
        max_nodes : int, optional
            Give up after so many nodes, with a RuntimeError. The time grows exponentially with the facts "x is not i".

        Examples
        --------
        >>> splitting = SetSplitting(3, [{0, 1}, {1, 2}])
        >>> answer = splitting.to_weak_labeling().solve()
        >>> sorted(splitting.split_of(answer.weights)) in ([1], [0, 2])
        True
        >>> SetSplitting(3, [{0, 1}, {1, 2}, {0, 2}]).to_weak_labeling().solve()
        Answer(weights=None, n_nodes=6)
        """
        if max_nodes is not None:
            check_integer("max_nodes", max_nodes, low=1)
        stack: list[_Choices] = [()]
        n_nodes = 0
        while stack:
            if n_nodes == max_nodes:
                raise RuntimeError(
                    f"no answer after max_nodes={max_nodes} nodes; raise max_nodes or shrink the problem"
                )
            choices, n_nodes = stack.pop(), n_nodes + 1
            weights = self._agreeing_weights(choices)
            # A leaf: these choices contradict each other, whatever is chosen besides.
            if weights is None:
                continue
            scores = self._scores(weights)
            broken = next((i for i, fact in enumerate(self.facts) if not fact.allows(scores[i])), None)
            if broken is None:
                return Answer(weights, n_nodes)
            # Labels that nothing has named so far are alike: the first stands for all of them.
            named = {fact.label for fact in self.facts} | {winner for _, winner in choices}
            unnamed = [label for label in range(self.n_classes) if label not in named]
            winners = sorted({*named, *unnamed[:1]} - {self.facts[broken].label})
            # Depth first keeps few nodes at a time; reversed, so that the lowest label is tried first.
            stack.extend((*choices, (broken, winner)) for winner in reversed(winners))
        return Answer(None, n_nodes)

    def _agreeing_weights(self, choices: _Choices) -> _Weights | None:
        """Return weights that agree with every fact "x is i" and let each chosen label win at its fact, or None."""
        facts, K, d = self.facts, self.n_classes, self.n_features
        sure = [(index, fact.label) for index, fact in enumerate(facts) if fact.holds]
        beats = [(index, own, other) for index, own in sure for other in range(K) if other != own]
        beats += [(index, winner, facts[index].label) for index, winner in choices]
        rows = np.zeros((len(beats), K, d), dtype=object)
        for row, (index, winner, loser) in zip(rows, beats, strict=True):
            row[winner], row[loser] = self.whole_features[index], -self.whole_features[index]
        # the last class's weights are 0, so its columns drop out.
        flat = _positive_solution(rows[:, :-1].reshape(len(beats), (K - 1) * d))
        if flat is None:
            return None
        flat += (Fraction(0),) * d
        return tuple(flat[start : start + d] for start in range(0, len(flat), d))


@dataclass(frozen=True)
class SetSplitting:
    """An instance of Set Splitting.

    Parameters
    ----------
    n_elements : int
        N, at least 1; the elements are 0,…,N−1.
    subsets : collection of collections of int
        Non-empty subsets of the elements.

    Examples
    --------
    >>> problem = SetSplitting(3, [{0, 1}, {1, 2}])
    >>> problem.is_solved_by({0, 2}), problem.is_solved_by({0, 1})
    (True, False)
    >>> [str(fact) for fact in problem.to_weak_labeling().facts]  # doctest: +NORMALIZE_WHITESPACE
    ['(0, 0, 0, 1) is 2', '(1, 0, 0, 1) is not 2', '(0, 1, 0, 1) is not 2', '(0, 0, 1, 1) is not 2',
     '(1, 1, 0, 1) is 2', '(0, 1, 1, 1) is 2']
    """

    n_elements: int
    subsets: Collection[Collection[int]]

    def __post_init__(self) -> None:
        check_integer("n_elements", self.n_elements, low=1)
        checked = tuple(self._check_elements(f"subsets[{j}]", subset) for j, subset in enumerate(self.subsets))
        if not all(checked):
            j = checked.index(frozenset())
            raise ValueError(f"subsets[{j}] is empty; remove it: no split can break it and the reduction drops it")
        object.__setattr__(self, "subsets", checked)

    def _check_elements(self, name: str, elements: Any) -> frozenset[int]:
        if isinstance(elements, (str, bytes)) or not isinstance(elements, Collection):
            raise ValueError(f"{name} must be a set of elements; got {elements!r}")
        return frozenset(check_integer(f"an element of {name}", i, low=0, high=self.n_elements - 1) for i in elements)

    @classmethod
    def random(cls, n_elements: int, n_subsets: int, size: int, seed: int) -> "SetSplitting":
        """Return an instance with random subsets of one size, drawn independently.

        With subsets of 3 elements the instances turn from solvable to unsolvable at about 2.1 subsets per element.
        """
        check_integer("size", size, low=1, high=check_integer("n_elements", n_elements, low=1))
        draws = random_numbers(check_seed(seed), STREAM)
        subsets = range(check_integer("n_subsets", n_subsets, low=0))
        return cls(n_elements, [set(draws.permutation(n_elements)[:size].tolist()) for _ in subsets])

    def is_solved_by(self, first: Collection[int]) -> bool:
        """Return whether no subset lies wholly in the part `first` or wholly outside it."""
        part = self._check_elements("first", first)
        return all(part & set(subset) and set(subset) - part for subset in self.subsets)

    def to_weak_labeling(self) -> WeakLabeling:
        """Return the weak labelling problem that has a solution exactly when this has."""
        members: list[Collection[int]] = [(), *([i] for i in range(self.n_elements)), *self.subsets]
        rows = [[int(i in subset) for i in range(self.n_elements)] + [1] for subset in members]
        elements = range(1, self.n_elements + 1)
        return WeakLabeling([Fact(x, _WHOLE, holds=t not in elements) for t, x in enumerate(rows)], 3)

    def weights_of(self, first: Collection[int]) -> _Weights:
        """Return the weights that a split with first part `first` stands for; they solve the weak labelling problem."""
        if not self.is_solved_by(first):
            raise ValueError(f"first must split every subset; {sorted(first)} leaves one whole")
        # One −N outweighs all the 1s that a subset can have; the bias of −½ lets a single element win, and no origin.
        low, bias = Fraction(-self.n_elements), Fraction(-1, 2)
        inside = [Fraction(1) if i in first else low for i in range(self.n_elements)]
        outside = [low if i in first else Fraction(1) for i in range(self.n_elements)]
        return (*inside, bias), (*outside, bias), (Fraction(0),) * (self.n_elements + 1)

    def split_of(self, weights: Any) -> frozenset[int]:
        """Return the first part of the split that weights stand for: where class 0 beats class 2; decided exactly.

        If the weights solve the weak labelling problem, the split solves this one.
        """
        at_elements = self.to_weak_labeling()._scores(weights)[1 : self.n_elements + 1]
        return frozenset(i for i, (first, _, last) in enumerate(at_elements) if first > last)


def _positive_solution(rows: Objects) -> _Vector | None:
    """Return w with ⟨row, w⟩ > 0 for every row of whole numbers, or None if there is none; exact.

    By Gordan's theorem there is such a w, or a y ≥ 0, y ≠ 0 with Σ yᵢ·rowᵢ = 0. A linear program proposes w, or y as
    its multipliers; both are checked exactly.
    """
    if not len(rows):
        return tuple(Fraction(0) for _ in range(rows.shape[1]))
    largest = np.abs(rows).max(axis=1, initial=0)
    if not largest.all():
        return None
    n_rows, n_free = rows.shape
    # The weights with the largest t. Rows of one size keep the tolerances meaningful.
    program = linprog(
        np.append(np.zeros(n_free), -1.0),
        A_ub=np.column_stack([-(rows / largest[:, None]).astype(np.float64), np.ones(n_rows)]),
        b_ub=np.zeros(n_rows),
        bounds=[(-1.0, 1.0)] * n_free + [(0.0, None)],
        method="highs",
    )
    if program.status == 0 and program.x[-1] > _ROUNDING:
        exact = [Fraction(value) for value in (program.x[:-1] / np.abs(program.x[:-1]).max()).tolist()]
        for denominator in _DENOMINATORS:
            weights = tuple(value.limit_denominator(denominator) for value in exact)
            if (rows @ whole_multiple(weights)[0] > 0).all():
                return weights
    elif program.status == 0:
        multipliers = -program.ineqlin.marginals / largest.astype(np.float64)
        support = multipliers > _ROUNDING * multipliers.max()
        if support.any() and vanishing_weights(rows[support]) is not None:
            return None
    return _solve_by_simplex(rows)


def _solve_by_simplex(rows: Objects) -> _Vector | None:
    """Return w with ⟨row, w⟩ > 0 for every row, or None, by the simplex method on fractions alone.

    It looks for y ≥ 0 with Σ yᵢ·rowᵢ = 0 and Σ yᵢ = 1, starting from artificial variables whose sum it brings down. If
    the sum ends above 0 there is no such y, and the prices of the equations are a w. Bland's rule makes it end.
    """
    n_rows, n_free = rows.shape
    # Columns: y, the artificial variables, the right hand side. Last row: what the sum still has to lose.
    artificial = np.eye(n_free + 1, dtype=object)
    tableau = np.column_stack([[*rows.T, [1] * n_rows], artificial, artificial[-1]]) * Fraction(1)
    costs = -tableau.sum(axis=0)
    costs[n_rows:-1] = 0
    tableau = np.vstack([tableau, costs])
    basis = list(range(n_rows, n_rows + n_free + 1))
    # Bland's rule: the first column that helps, and of equal ratios the one with the smallest variable.
    while (helping := np.flatnonzero(tableau[-1, :n_rows] < 0)).size:
        entering = int(helping[0])
        rising = [i for i in range(n_free + 1) if tableau[i, entering] > 0]
        leaving = min(rising, key=lambda i: (tableau[i, -1] / tableau[i, entering], basis[i]))
        solved = tableau[leaving] / tableau[leaving, entering]
        tableau -= np.outer(tableau[:, entering], solved)
        tableau[leaving], basis[leaving] = solved, entering
    if tableau[-1, -1] == 0:
        return None
    # the reduced cost of artificial variable k is 1 − priceₖ, and ⟨row, prices⟩ ≤ −(price of Σ yᵢ = 1) < 0.
    return tuple(Fraction(value - 1) for value in tableau[-1, n_rows : n_rows + n_free])


class SolvingRow(NamedTuple):
    """One problem, solved."""

    n_elements: int
    n_subsets: int
    seed: int
    is_splittable: bool
    n_nodes: int
    seconds: float


def measure_solving(
    sizes: Sequence[int], *, subsets_per_element: float = 4.0, repeats: int = 5, seed: int = 0
) -> list[SolvingRow]:
    """Solve random set splitting problems, as weak labelling problems, and measure what each takes.

    Sizes are numbers of elements; every subset has three. At 4 subsets per element nearly all the problems have
    no solution. There are `repeats` problems of each size, with seeds that count on from `seed`.
    """
    check_number("subsets_per_element", subsets_per_element, above=0.0)
    check_integer("repeats", repeats, low=1)
    rows = []
    for n_elements in [check_integer(f"sizes[{i}]", size, low=3) for i, size in enumerate(sizes)]:
        n_subsets = round(subsets_per_element * n_elements)
        for number in range(seed, seed + repeats):
            problem = SetSplitting.random(n_elements, n_subsets, size=3, seed=number).to_weak_labeling()
            # the clock starts after the problem is built: building is not solving.
            start = time.perf_counter()
            answer = problem.solve()
            seconds = time.perf_counter() - start
            rows.append(SolvingRow(n_elements, n_subsets, number, answer.weights is not None, answer.n_nodes, seconds))
    return rows
