"""The weak labelling problem, its reduction and its solver, against brute force."""

import itertools
import operator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from onebit.theory.weak_labeling import (
    Fact,
    SetSplitting,
    WeakLabeling,
    _positive_solution,
    _solve_by_simplex,
    measure_solving,
)
from plain_programs import split_by_enumeration

it_is = Fact


def it_is_not(features: Any, label: int) -> Fact:
    return Fact(features, label, holds=False)


exactly = settings(derandomize=True, deadline=None, max_examples=60)


def subsets_of(n: int) -> list[frozenset[int]]:
    return [frozenset(i for i in range(n) if mask >> i & 1) for mask in range(1, 2**n)]


def families(n: int) -> list[list[frozenset[int]]]:
    subsets = subsets_of(n)
    return [[c for j, c in enumerate(subsets) if mask >> j & 1] for mask in range(2 ** len(subsets))]


def antichains(n: int) -> list[list[frozenset[int]]]:
    """Families none of whose subsets holds another: the larger of two such adds nothing."""
    return [f for f in families(n) if not any(a < b for a in f for b in f)]


def small_splittings() -> list[SetSplitting]:
    every = [SetSplitting(n, family) for n in (1, 2, 3) for family in families(n)]
    return every + [SetSplitting(4, family) for family in antichains(4)]


@pytest.mark.ci
def test_reduction_and_solver_on_all_small_splittings() -> None:
    problems = small_splittings()
    assert len(problems) == 2 + 8 + 128 + 167
    n_splittable = 0
    for splitting in problems:
        problem = splitting.to_weak_labeling()
        first, answer = split_by_enumeration(splitting), problem.solve()
        assert (first is None) == (answer.weights is None), splitting
        if first is not None:
            n_splittable += 1
            weights = splitting.weights_of(first)
            assert problem.is_solved_by(weights)
            assert splitting.split_of(weights) == first
            assert problem.is_solved_by(answer.weights)
            assert splitting.is_solved_by(splitting.split_of(answer.weights))
    assert 0 < n_splittable < len(problems)


def test_the_papers_example() -> None:
    facts = SetSplitting(3, [{0, 1}, {1, 2}]).to_weak_labeling().facts
    rows = [tuple(int(entry) for entry in fact.features) for fact in facts]
    assert rows == [(0, 0, 0, 1), (1, 0, 0, 1), (0, 1, 0, 1), (0, 0, 1, 1), (1, 1, 0, 1), (0, 1, 1, 1)]
    assert [fact.holds for fact in facts] == [True, False, False, False, True, True]
    assert {fact.label for fact in facts} == {2}


def solvable_by_enumeration(problem: WeakLabeling) -> bool:
    """Try every labelling of the facts "x is not i" with a plain linear program: some label beats i by 1."""
    K, d = problem.n_classes, problem.n_features
    options = [[None] if f.holds else [j for j in range(K) if j != f.label] for f in problem.facts]
    for winners in itertools.product(*options):
        rows = []
        for fact, winner in zip(problem.facts, winners, strict=True):
            pairs = [(fact.label, j) for j in range(K) if j != fact.label] if fact.holds else [(winner, fact.label)]
            for above, below in pairs:
                row = np.zeros((K, d))
                row[above] -= [float(entry) for entry in fact.features]
                row[below] += [float(entry) for entry in fact.features]
                rows.append(row.ravel())
        if not rows or linprog(np.zeros(K * d), A_ub=rows, b_ub=-np.ones(len(rows)), bounds=(None, None)).status == 0:
            return True
    return False


@st.composite
def weak_labelings(draw: st.DrawFn) -> WeakLabeling:
    K, d, T = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 5))
    facts = []
    for _ in range(T):
        features = draw(st.lists(st.integers(-2, 2), min_size=d, max_size=d))
        holds = draw(st.booleans())
        facts.append(Fact(features, draw(st.integers(0, K - 1)), holds))
    return WeakLabeling(facts, K)


@exactly
@given(weak_labelings())
def test_solver_against_every_labelling(problem: WeakLabeling) -> None:
    answer = problem.solve()
    assert (answer.weights is not None) == solvable_by_enumeration(problem)
    if answer.weights is not None:
        assert problem.is_solved_by(answer.weights)
        for fact, label in zip(problem.facts, problem.labels_by(answer.weights), strict=True):
            assert (label == fact.label) == fact.holds


def test_all_tiny_weak_labelings() -> None:
    """K = 2 and 3 classes, two features of 0 and 1, every pair of facts."""
    for K in (2, 3):
        facts = [
            Fact(x, label, holds)
            for x in itertools.product((0, 1), repeat=2)
            for label in range(K)
            for holds in (True, False)
        ]
        for pair in itertools.combinations(facts, 2):
            problem = WeakLabeling(pair, K)
            assert (problem.solve().weights is not None) == solvable_by_enumeration(problem), pair


def test_weights_are_exact_and_often_simple() -> None:
    answer = SetSplitting(4, [{0, 1}, {2, 3}]).to_weak_labeling().solve()
    assert answer.weights is not None
    assert all(isinstance(entry, Fraction) for w in answer.weights for entry in w)
    assert max(entry.denominator for w in answer.weights for entry in w) <= 100


def test_features_need_not_be_whole() -> None:
    problem = WeakLabeling([it_is([0.1, 0.3], 0), it_is_not([Fraction(1, 3), -0.7], 0), it_is([1e-9, 2e-9], 1)], 2)
    weights = problem.solve().weights
    assert weights is not None
    assert problem.is_solved_by(weights)
    assert WeakLabeling([it_is([0.1, 0.3], 0), it_is_not([0.2, 0.6], 0)], 2).solve().weights is None


def test_almost_contradictory_facts_are_decided_exactly() -> None:
    """(0.1, 0.3) and (0.2, 0.6) are in proportion as floats; (0.3, 0.9) and three times (0.1, 0.3) are not."""
    assert WeakLabeling([it_is([0.1, 0.3], 0), it_is([0.3, 0.9], 1)], 2).solve().weights is not None
    nudged = [it_is([1, 1], 0), it_is([1, 1 + 2.0**-52], 1), it_is([1, 1 - 2.0**-53], 1)]
    assert WeakLabeling(nudged[:2], 2).solve().weights is not None
    assert WeakLabeling(nudged, 2).solve().weights is None


@exactly
@given(st.integers(1, 4).flatmap(lambda d: st.lists(st.lists(st.integers(-3, 3), min_size=d, max_size=d), min_size=1)))
def test_strict_inequalities_both_ways(rows: list[list[int]]) -> None:
    fast = _positive_solution(np.array(rows, dtype=object))
    slow = _solve_by_simplex(np.array(rows, dtype=object))
    assert (fast is None) == (slow is None)
    for weights in (fast, slow):
        assert weights is None or all(sum(map(operator.mul, row, weights)) > 0 for row in rows)


def test_choices_are_kept() -> None:
    problem = WeakLabeling([it_is_not([1, 0], 2), it_is_not([0, 1], 2)], 3)
    weights = problem._agreeing_weights(((0, 1), (1, 0)))
    assert weights is not None
    assert weights[1][0] > weights[2][0]
    assert weights[0][1] > weights[2][1]


@pytest.mark.parametrize("label", [0, 1])
def test_one_class(label: int) -> None:
    assert (WeakLabeling([Fact([1.0], 0, holds=not label)], 1).solve().weights is None) == bool(label)


def test_many_interchangeable_classes_cost_nothing() -> None:
    facts = [it_is_not(row, 0) for row in np.eye(4, dtype=int).tolist()] + [it_is([1, 1, 1, 1], 0)]
    nodes = [WeakLabeling(facts, K).solve().n_nodes for K in (3, 12)]
    assert nodes[1] <= 2 * nodes[0]


@pytest.mark.slow
def test_the_work_grows() -> None:
    rows = measure_solving([4, 8, 12], repeats=3)
    medians = [sorted(row.n_nodes for row in rows if row.n_elements == n)[1] for n in (4, 8, 12)]
    assert medians[0] * 3 < medians[1] < medians[2] / 2
    again = measure_solving([8], repeats=3)
    assert [row.n_nodes for row in rows if row.n_elements == 8] == [row.n_nodes for row in again]
    assert all(row.seconds > 0 for row in rows)
    for row in rows:
        splitting = SetSplitting.random(row.n_elements, row.n_subsets, size=3, seed=row.seed)
        assert row.is_splittable == (split_by_enumeration(splitting) is not None)


def test_random_splittings() -> None:
    splitting = SetSplitting.random(9, 20, size=3, seed=5)
    assert len(splitting.subsets) == 20
    assert all(len(subset) == 3 for subset in splitting.subsets)
    assert splitting != SetSplitting.random(9, 20, size=3, seed=6)


def test_an_empty_subset_would_break_the_reduction() -> None:
    with pytest.raises(ValueError, match=r"subsets\[1\] is empty; remove it"):
        SetSplitting(2, [{0, 1}, set()])


def bad(call: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        call()


def test_bad_input_is_named() -> None:
    splitting = SetSplitting(3, [{0, 1}])
    problem = splitting.to_weak_labeling()
    bad(lambda: SetSplitting(0, []), "n_elements must be at least 1")
    bad(lambda: SetSplitting(2, [{2}]), r"an element of subsets\[0\] must be between 0 and 1; got 2")
    bad(lambda: splitting.weights_of({0, 1}), r"first must split every subset; \[0, 1\] leaves one whole")
    bad(lambda: splitting.split_of([[0] * 4]), "one row for each of the 3 classes")
    bad(lambda: problem.is_solved_by([[0] * 3] * 3), r"weights\[0\] must hold 4 numbers; got 3")
    bad(lambda: WeakLabeling([], 3), "facts must hold at least one fact")
    bad(lambda: WeakLabeling([it_is([1], 3)], 3), "raise n_classes")
    bad(lambda: WeakLabeling([it_is([1], 0), it_is([1, 2], 0)], 3), "same number")
    bad(lambda: WeakLabeling([([1], 0, True)], 3), r"facts must hold .* Fact\(")  # type: ignore[list-item]
    bad(lambda: it_is([1], -1), "label must be at least 0")
    bad(lambda: measure_solving([2]), r"sizes\[0\] must be at least 3")
    bad(lambda: SetSplitting.random(2, 1, size=3, seed=0), "size must be between 1 and 2")


def test_giving_up_is_an_error() -> None:
    problem = SetSplitting.random(8, 32, size=3, seed=0).to_weak_labeling()
    with pytest.raises(RuntimeError, match="max_nodes=5"):
        problem.solve(max_nodes=5)
    needed = problem.solve().n_nodes
    assert problem.solve(max_nodes=needed).n_nodes == needed
