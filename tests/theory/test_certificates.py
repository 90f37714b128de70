"""Lemmas 19 and 20, exactly: how near examples of different labels come, and how many points a packing has."""

import math
import operator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import onebit
from onebit.bounds import is_safe_reach, packing_bound
from onebit.kernels import Kernel, Linear, Polynomial
from onebit.streams import paper_strong, wedges
from onebit.theory import (
    Certificate,
    Separator,
    margin,
    verify_certificate,
    verify_separator,
)
from onebit.theory.certificates import Kind, longest
from onebit.theory.weak_to_strong import weak_margin_of

exactly = settings(derandomize=True, deadline=None, max_examples=50)
entries = st.fractions(-2, 2, max_denominator=12)


def dot(left: Any, right: Any) -> Any:
    """The inner product, exactly."""
    return sum(map(operator.mul, left, right))


def nearest_pair(X: Any, y: Any = None) -> tuple[Fraction, int, int]:
    """The least squared distance, of examples with different labels if there are labels, and whose it is; exact."""
    points = [[Fraction(entry) for entry in x] for x in X]
    pairs = [(i, j) for i, j in combinations(range(len(points)), 2) if y is None or y[i] != y[j]]
    none = Fraction(10**1000), -1, -1
    return min(
        ((sum(((a - b) ** 2 for a, b in zip(points[i], points[j], strict=True)), Fraction(0)), i, j) for i, j in pairs),
        default=none,
    )


def is_packing(X: Any, distance: Any) -> bool:
    return nearest_pair(X)[0] > Fraction(distance) ** 2


@exactly
@given(data=st.data(), K=st.integers(2, 4), d=st.integers(1, 3))
def test_lemma_19(data: st.DataObject, K: int, d: int) -> None:
    rows = st.lists(st.tuples(*[entries] * d), min_size=K, max_size=12)
    w = [tuple(e / (3 * d) for e in v) for v in data.draw(st.lists(st.tuples(*[entries] * d), min_size=K, max_size=K))]
    assume(sum(dot(v, v) for v in w) <= 1)
    points = data.draw(rows)
    codes = [max(range(K), key=[dot(v, x) for v in w].__getitem__) for x in points]
    gamma = weak_margin_of(w, points, codes)
    assume(gamma > 0)
    square, first, second = nearest_pair(points, codes)
    assume(first >= 0)
    # The lemma's own words, and the √2 that its proof leaves on the table.
    assert square > gamma**2
    assert square >= 2 * gamma**2
    assert codes[first] != codes[second]


def test_lemma_19_is_an_equality_for_the_points_one_and_minus_one() -> None:
    assert nearest_pair([[1], [-1]], [0, 1]) == (Fraction(4), 0, 1)
    assert margin([[1.0], [-1.0]], [0, 1]).weak == pytest.approx(math.sqrt(2.0), rel=1e-12)
    assert not is_safe_reach(2, math.sqrt(2.0))
    assert is_safe_reach(1.999, math.sqrt(2.0))


@pytest.mark.parametrize("size", [5e-324, 1e-170, 1.0, 0.1, 1e170, 1e307])
def test_the_nearest_pair_bounds_the_margin_at_any_scale(size: float) -> None:
    # Squares of such numbers are no floats, and a margin rounded up is no margin.
    square, _, _ = nearest_pair([[size], [-size]], [0, 1])
    assert Fraction(margin([[size], [-size]], [0, 1]).weak) ** 2 <= square / 2


def test_the_nearest_pair_bounds_measured_margins() -> None:
    for X, y in (onebit.streams.wedges(), onebit.streams.paper_weak(rounds=150, seed=3)):
        assert Fraction(margin(X, y).weak) ** 2 <= nearest_pair(X, y)[0] / 2


@exactly
@given(data=st.data(), d=st.integers(1, 3), apart=st.fractions(Fraction(1, 4), 2, max_denominator=8))
def test_lemma_20(data: st.DataObject, d: int, apart: Fraction) -> None:
    kept: list[Any] = []
    for x in data.draw(st.lists(st.tuples(*[entries] * d), min_size=1, max_size=40)):
        if is_packing([*kept, x], apart):
            kept.append(x)
    # The longest entry times √d bounds every length; squared it is rational, and rounded up it is a radius.
    radius = Fraction(math.isqrt(math.ceil(max(dot(x, x) for x in kept) * 10**6)) + 1, 1000)
    assert len(kept) <= packing_bound(radius, apart, d)


@pytest.mark.parametrize(("d", "steps"), [(1, 40), (2, 8), (3, 4)])
def test_grids_are_packings_within_the_bound(d: int, steps: int) -> None:
    grid = [tuple(Fraction(e, steps) for e in point) for point in product(range(-steps, steps + 1), repeat=d)]
    inside = [x for x in grid if dot(x, x) <= 1]
    apart = Fraction(1, steps) * Fraction(999, 1000)
    assert is_packing(inside, apart)
    assert not is_packing(inside, Fraction(1, steps))
    assert len(inside) <= packing_bound(1, apart, d)
    # On a line the bound is nearly met; in more dimensions the balls of the proof leave gaps.
    assert d > 1 or len(inside) == 2 * steps + 1 >= packing_bound(1, apart, d) - 1


def test_nearest_neighbour_remembers_a_packing_of_one_label_each() -> None:
    X, y = onebit.streams.paper_weak(rounds=400, seed=5)
    reach = 0.06
    assert is_safe_reach(reach, margin(X, y).weak)
    learner = onebit.NearestNeighbor(reach)
    onebit.play(learner, X, y)
    assert is_packing(learner.support_, reach)
    assert len(learner.support_) <= packing_bound(1, reach, 3)


def test_small_cases() -> None:
    assert packing_bound(Fraction(1, 2), Fraction(1, 3), 2) == 16
    with pytest.raises(ValueError, match="distance must be greater than 0"):
        packing_bound(1, 0, 2)


def fractions(values: Any) -> list[Fraction]:
    return [Fraction(value) for value in np.asarray(values).tolist()]


def test_the_check_refuses_spoilt_certificates() -> None:
    X, y = wedges()
    good = margin(X, y).strong_certificates[1]
    assert verify_certificate(good, X, y)
    assert verify_certificate(replace(good, weights=2 * good.weights), X, y)
    assert not verify_certificate(replace(good, weights=good.weights.astype(float)), X, y)
    assert not verify_certificate(replace(good, weights=0 * good.weights), X, y)
    assert not verify_certificate(replace(good, weights=good.weights[:2]), X, y)
    assert not verify_certificate(replace(good, examples=good.examples + len(X)), X, y)
    assert not verify_certificate(replace(good, weights=np.roll(good.weights, 1)), X, y)
    assert not verify_certificate(replace(good, weights=np.array([1.5, -0.5, 0.0])), X, y)
    assert not verify_certificate(replace(good, classes=good.classes - 1), X, y)
    assert not verify_certificate(replace(good, kind="weak"), X, y)
    assert not verify_certificate(good, X, np.roll(y, 20))
    assert not verify_certificate(good, X + 1e-15, y)


def test_the_check_of_vectors_is_exact() -> None:
    X, y, W = np.array([[3.0, 1.0], [-3.0, 2.0]]), np.array(["a", "b"]), np.array([[1.0, 0.0], [0.0, 0.0]])
    exact = Separator("weak", np.array(["a", "b"]), W, 3.0)
    assert verify_separator(exact, X, y)
    assert verify_separator(replace(exact, vectors=7.0 * W), X, y)
    assert not verify_separator(replace(exact, margin=math.nextafter(3.0, 4.0)), X, y)
    assert not verify_separator(replace(exact, kind="strong", margin=0.1), X, y)
    assert not verify_separator(replace(exact, vectors=0.0 * W), X, y)
    assert not verify_separator(exact, X, y[::-1])
    X[1, 0] = math.nextafter(-3.0, 0.0)
    assert not verify_separator(exact, X, y)


@pytest.mark.parametrize("kind", ["weak", "strong"])
def test_the_check_of_vectors_is_exact_at_any_spread(kind: Kind) -> None:
    # Scaled to 1 the smallest entries vanish, but their products with large ones decide.
    y = np.array([0, 1])
    for small, is_true in ((2e-300, True), (-2e-300, False)):
        X = np.array([[-1e-300, 1e300], [1e-300, -1e300]])
        W = np.array([[1e300, small], [-1e300, -small]])
        separator = Separator(kind, y, W, 1e-305)
        assert verify_separator(separator, X, y) == is_true
    huge = 1.7e308 * np.array([[1.0, 1.0], [-1.0, -1.0]])
    beyond = Certificate("weak", y, 1 - y, np.array([1.0, 1.0]), math.inf)
    assert verify_certificate(beyond, huge, y)
    assert not verify_certificate(replace(beyond, length=1.7e308), huge, y)
    assert verify_separator(Separator(kind, y, huge, 1.7e308), huge, y)


def test_a_class_of_nobody_proves_nothing() -> None:
    # Strongly separable; a third class, which must reject 1 and −1, is nobody's.
    X, y = np.array([[1.0], [-1.0]]), np.array([0, 1])
    third = Certificate("strong", np.array([0, 1]), np.array([2, 2]), np.array([1, 1]), 0.0)
    assert not verify_certificate(third, X, y)
    assert verify_certificate(third, X, y, classes=3)
    # Numbers are not the words that they are written as: here neither class would know its own example.
    numbers = Certificate("weak", np.array([0, 1]), np.array([0, 1]), np.array([1, 1]), 2.0)
    assert not verify_certificate(numbers, X, np.array(["0", "1"]))


def test_what_is_no_certificate_is_refused() -> None:
    X, y = np.array([[1.0, 2.0], [1.0, 2.0]]), np.array(["a", "b"])
    good = Certificate("weak", np.array([0, 1]), np.array(["b", "a"]), np.array([0.5, 0.5]), 0.0)
    assert verify_certificate(good, X, y)
    assert not verify_certificate(replace(good, kind="Weak"), X, y)  # type: ignore[arg-type]
    for weights in ([math.nan, 0.5], [math.inf, 0.5], [0.5j, 0.5], [[0.5], [0.5]], 0.5, []):
        assert not verify_certificate(replace(good, weights=np.array(weights)), X, y), weights
    for examples in ([0.0, 1.0], [True, True], [[0], [1]], 0, [0, -1]):
        assert not verify_certificate(replace(good, examples=np.array(examples)), X, y), examples
    for classes in (["b", "c"], [1, 0], "b", [["b"], ["a"]]):
        assert not verify_certificate(replace(good, classes=np.array(classes)), X, y), classes


@pytest.mark.parametrize("kernel", [None, Linear()])
def test_what_is_no_separator_is_refused(kernel: Kernel | None) -> None:
    # Too few vectors, or too few columns, were read beyond their end by compiled code, and accepted.
    X, y, W = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array(["a", "b"]), np.array([[1.0, 0.0], [-1.0, 0.0]])
    good = Separator("weak", np.array(["a", "b"]), W, 0.5)
    assert verify_separator(good, X, y, kernel)
    for factor in (1e200, 1e-200):
        assert verify_separator(replace(good, vectors=factor * W), X, y, kernel)
    for vectors in (W[:1], W[:, :1], np.ones((3, 2)), np.column_stack([W, W]), W[0], math.nan * W, W.astype(complex)):
        assert not verify_separator(replace(good, vectors=vectors), X, y, kernel), vectors
    for margin_ in (0.0, -1.0, math.nan, math.inf):
        assert not verify_separator(replace(good, margin=margin_), X, y, kernel), margin_
        assert not verify_separator(replace(good, vectors=-W, margin=margin_), X, y, kernel), margin_
    for classes in (["a", "c"], ["a", "a"], ["a"], [0, 1]):
        assert not verify_separator(replace(good, classes=np.array(classes)), X, y, kernel), classes
    assert not verify_separator(replace(good, kind="Weak"), X, y, kernel)  # type: ignore[arg-type]


def test_in_a_kernels_space_long_rows_lose_more_to_rounding() -> None:
    # Few of the coefficients' digits are left at 10¹³: what was allowed for rounding was that of the short rows alone.
    kernel, is_tried = Polynomial(1), False
    for seed in range(100):
        rng = np.random.default_rng(seed)
        short, long = rng.standard_normal(4), 1e13 * rng.standard_normal(2)
        X, y = np.append(short, long)[:, None], rng.integers(0, 2, 6)
        a = rng.standard_normal(4)
        a -= short * (a @ short) / (short @ short)
        vectors = np.zeros((2, 6))
        vectors[:, :4] = a, -a
        gram = kernel.matrix(X, X)
        scores = [[sum(map(operator.mul, fractions(row), fractions(w))) for w in vectors] for row in gram]
        least = min(row[code] - row[1 - code] for row, code in zip(scores, y, strict=True))
        square = 2 * sum(
            Fraction(p) * Fraction(q) * Fraction(gram[i, j]) for i, p in enumerate(a) for j, q in enumerate(a)
        )
        # A claim of more than is there, by the kernel's own values.
        above = max(float(least), 0.0) / math.sqrt(square) * (1.0 + 1e-9) + 1e-300
        is_tried |= least > 0
        assert not verify_separator(Separator("weak", np.array([0, 1]), vectors, above), X, y, kernel)
    assert is_tried


def test_the_longest_row_is_rounded_up() -> None:
    assert longest(np.array([[2.0**900, 2.0**-900]])) > 2.0**900
    assert longest(np.array([[3.0, 4.0], [1.0, 1.0]])) == 5.0
    assert longest(np.array([[3e200, 4e200], [1.0, 1.0]])) == pytest.approx(5e200, rel=1e-15)
    assert longest(np.zeros((2, 3))) == 0.0
    assert Fraction(longest(np.array([[1.0, 1.0]]))) ** 2 > 2
    many = paper_strong(1000, seed=1)[0]
    squares = [sum(each * each for each in fractions(row)) for row in many]
    assert max(squares) <= Fraction(longest(many)) ** 2 <= max(squares) * (1 + Fraction(1, 10**13))
