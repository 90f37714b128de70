"""Set Splitting, and its reduction to weak labelling (Appendix H), both ways.

Given subsets of {0,…,N−1}: can the elements be split in two so that neither part holds a whole subset? This is
NP-complete (Lovász; Garey and Johnson SP4). The reduction has K = 3 classes and N + 1 features:

    (0, 1) is 2;    (eᵢ, 1) is not 2, for every element i;    (Σ_{i∈c} eᵢ, 1) is 2, for every subset c.

A split gives weights (`SetSplitting.weights_of`): class 0 scores above class 2 at the elements of the first part, class
1 at those of the second, and a subset with an element outside a part is pulled down by that element's −N. Weights give
a split (`SetSplitting.split_of`): the first part is where class 0 beats class 2.

Correction: every subset must be non-empty. An empty one can never be split, but its example is (0, 1) is 2, which is
there anyway: the weak labelling problem would not notice.

References
----------
Beygelzimer et al. (2019). ICML. Appendix H. Blum, Rivest (1993). Training a 3-node neural network is NP-complete.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from onebit.engine.randomness import stream_generator
from onebit.inputs import check_integer, check_seed
from onebit.theory.exact import dot
from onebit.theory.weak_labeling.instance import WeakLabeling, Weights, it_is, it_is_not

N_CLASSES = 3
# The label of the subsets and of the origin, which the other two labels have to beat at the elements.
_WHOLE = 2


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
        for j, subset in enumerate(checked):
            if not subset:
                raise ValueError(f"subsets[{j}] is empty; remove it: no split can break it and the reduction drops it")
        object.__setattr__(self, "subsets", checked)

    def _check_elements(self, name: str, elements: Any) -> frozenset[int]:
        if isinstance(elements, (str, bytes)) or not isinstance(elements, Collection):
            raise ValueError(f"{name} must be a set of elements; got {elements!r}")
        return frozenset(check_integer(f"an element of {name}", i, low=0, high=self.n_elements - 1) for i in elements)

    def is_solved_by(self, first: Collection[int]) -> bool:
        """Return whether no subset lies wholly in the part `first` or wholly outside it."""
        part = self._check_elements("first", first)
        return all(part & set(subset) and set(subset) - part for subset in self.subsets)

    def solve_by_enumeration(self) -> frozenset[int] | None:
        """Return a first part that solves the problem, or None, after trying all 2^(N−1) splits."""
        # A split and its mirror image are one, so the last element may stay in the second part.
        for mask in range(2 ** (self.n_elements - 1)):
            first = frozenset(i for i in range(self.n_elements) if mask >> i & 1)
            if self.is_solved_by(first):
                return first
        return None

    def to_weak_labeling(self) -> WeakLabeling:
        """Return the weak labelling problem that has a solution exactly when this has."""
        members: list[Collection[int]] = [(), *([i] for i in range(self.n_elements)), *self.subsets]
        rows = [[int(i in subset) for i in range(self.n_elements)] + [1] for subset in members]
        makers = [it_is] + [it_is_not] * self.n_elements + [it_is] * len(self.subsets)
        return WeakLabeling([make(row, _WHOLE) for make, row in zip(makers, rows, strict=True)], N_CLASSES)

    def weights_of(self, first: Collection[int]) -> Weights:
        """Return the weights that a split with first part `first` stands for; they solve the weak labelling problem.

        Raises
        ------
        ValueError
            If `first` is not a solution.
        """
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
        problem = self.to_weak_labeling()
        first, _, last = problem.check_weights(weights)
        at_elements = problem.facts[1 : self.n_elements + 1]
        return frozenset(
            i for i, fact in enumerate(at_elements) if dot(first, fact.features) > dot(last, fact.features)
        )


def random_set_splitting(n_elements: int, n_subsets: int, size: int, seed: int) -> SetSplitting:
    """Return an instance with random subsets of one size, drawn independently.

    With subsets of 3 elements the instances turn from solvable to unsolvable at about 2.1 subsets per element.

    Examples
    --------
    >>> random_set_splitting(5, 2, size=3, seed=1) == random_set_splitting(5, 2, size=3, seed=1)
    True
    """
    check_integer("n_elements", n_elements, low=1)
    check_integer("n_subsets", n_subsets, low=0)
    check_integer("size", size, low=1, high=n_elements)
    generator = stream_generator(check_seed(seed))
    subsets: Sequence[set[int]] = [set(generator.permutation(n_elements)[:size].tolist()) for _ in range(n_subsets)]
    return SetSplitting(n_elements, subsets)
