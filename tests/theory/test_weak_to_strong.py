"""Theorem 5's proof, executed: weak separators, polynomials, and strong separators with the promised margin."""

import math
import operator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from onebit.kernels import Rational
from onebit.streams import paper_weak, wedges
from onebit.theory import (
    ChebyshevConstruction,
    RationalConstruction,
    StrongSeparators,
    margin,
    measure_looseness,
    transformed_margin,
)
from onebit.theory.weak_to_strong import _Construction, _measure_one, weak_margin_of

CONSTRUCTIONS: list[_Construction] = [ChebyshevConstruction, RationalConstruction]
HALF = Fraction(1, 2)

Vector = tuple[Fraction, ...]


def dot(left: Any, right: Any) -> Any:
    """The inner product, exactly."""
    return sum(map(operator.mul, left, right))


def square(margin: Any) -> Fraction:
    return Fraction(1, margin.inverse_square)


@st.composite
def weakly_separated(draw: st.DrawFn, max_k: int, max_d: int) -> tuple[list[Vector], list[Vector], list[int], Fraction]:
    """Vectors with Σ‖wᵢ‖² ≤ 1, points in the unit ball with the classes they have, and the margin; all rational."""
    K, d = draw(st.integers(2, max_k)), draw(st.integers(1, max_d))
    entries = st.lists(st.integers(-9, 9), min_size=d, max_size=d)
    raw = draw(st.lists(entries, min_size=K, max_size=K))
    length = math.isqrt(sum(e * e for row in raw for e in row)) + 1
    w = [tuple(Fraction(e, length) for e in row) for row in raw]
    points, codes, leads = [], [], []
    for row in draw(st.lists(entries, min_size=6, max_size=12)):
        x = tuple(Fraction(e, math.isqrt(sum(e * e for e in row)) + 1) for e in row)
        scores = [dot(v, x) for v in w]
        best = max(range(K), key=scores.__getitem__)
        lead = scores[best] - max(score for i, score in enumerate(scores) if i != best)
        if lead > Fraction(1, 20):
            points.append(x)
            codes.append(best)
            leads.append(lead)
    assume(points)
    return w, points, codes, min(leads)


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@settings(derandomize=True, deadline=None, max_examples=60)
@given(separated=weakly_separated(max_k=4, max_d=4))
def test_polynomials_separate_with_the_margin_of_the_proof(construction: _Construction, separated: Any) -> None:
    w, points, codes, gamma = separated
    assert weak_margin_of(w, points, codes) == gamma
    made = StrongSeparators(w, gamma, construction)
    for x, code in zip(points, codes, strict=True):
        for i, value in enumerate(made.values(x)):
            assert (value >= HALF) if i == code else (value <= -HALF)
    stated = transformed_margin(len(w), gamma)
    gain, theorem = (4, stated.chebyshev) if construction is ChebyshevConstruction else (16, stated.rational)
    assert square(made.proved_margin) == gain * square(theorem)
    assert made.squared_margin(points, codes) >= square(made.proved_margin) > square(made.stated_margin)


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@settings(derandomize=True, deadline=None, max_examples=12)
@given(separated=weakly_separated(max_k=3, max_d=2))
def test_vectors_are_together_no_longer_than_one(construction: _Construction, separated: Any) -> None:
    w, _, _, gamma = separated
    # Theorem 8 for three classes has degree 15 at the least, times the number of stairs.
    assume(construction is ChebyshevConstruction or len(w) == 2 or gamma > HALF)
    made = StrongSeparators(w, gamma, construction)
    norms = made.squared_norms()
    assert sum(norms) <= 1
    for p, norm in zip(made.polynomials, norms, strict=True):
        expanded = p.expand()
        # Lemma 9, and the theorems' bounds on degree and norm: each vector has its share 1/K.
        assert norm <= 2**expanded.degree * expanded.squared_norm * square(made.proved_margin) <= Fraction(1, len(w))
        assert expanded.degree <= p.degree_bound


@pytest.mark.parametrize(
    ("construction", "data"),
    [
        (ChebyshevConstruction, wedges()),
        (RationalConstruction, (np.array([[1.0, 0.0], [-0.5, 0.5], [0.3, 0.1]]), np.array([0, 1, 0]))),
    ],
    ids=["Chebyshev", "rational"],
)
def test_in_the_feature_map(construction: _Construction, data: tuple[Any, Any]) -> None:
    """The scores are inner products with φ(x), and a solver that knows nothing of polynomials finds no less."""
    X, y = data
    made = StrongSeparators.from_data(X, y, construction)
    u = made.vectors()
    assert u.shape == (len(made.weak_vectors), made.feature_map.n_features)
    scores = made.feature_map(X) @ u.T
    scale = 2.0**made.proved_margin.log2
    exact = np.array([[float(value) * scale for value in made.values(x)] for x in X])
    np.testing.assert_allclose(scores, exact, rtol=1e-6, atol=0.01 * scale)
    is_own = np.arange(scores.shape[1]) == y[:, None]
    attained = 2.0 * np.where(is_own, scores, -scores).min()
    assert attained == pytest.approx(math.sqrt(made.squared_margin(X, y)), rel=1e-6)
    assert np.sum(u**2) == pytest.approx(float(sum(made.squared_norms())), rel=1e-9)
    assert np.sum(u**2) <= 1.0
    assert margin(X, y, Rational()).strong >= attained >= scale


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_data_that_are_not_strongly_separable_become_so(construction: _Construction) -> None:
    for X, y in (wedges(), paper_weak(rounds=60, seed=0)):
        made = StrongSeparators.from_data(X, y, construction)
        assert made.squared_margin(X, y) >= square(made.proved_margin)
        assert float(made.margin) == pytest.approx(margin(X, y).weak, rel=1e-9)


@pytest.mark.slow
def test_the_wedges_vectors_by_theorem_8_are_no_longer_than_one() -> None:
    X, y = wedges()
    made = StrongSeparators.from_data(X, y, RationalConstruction)
    assert made.polynomials[0].degree_bound == 66
    assert 0 < sum(made.squared_norms()) <= 1


def test_the_proof_takes_the_larger_margin() -> None:
    few = StrongSeparators([[HALF], [-HALF]], Fraction(1, 10**6))
    many = StrongSeparators([[Fraction(i, 50), Fraction(1, 9)] for i in range(-5, 6)], Fraction(1, 10))
    assert few.construction is RationalConstruction
    assert many.construction is ChebyshevConstruction
    for made, K, gamma in ((few, 2, Fraction(1, 10**6)), (many, 11, Fraction(1, 10))):
        assert made.stated_margin == transformed_margin(K, gamma).larger


def test_labels_may_have_names() -> None:
    X, y = [[0.9, 0.1], [-0.7, 0.2]], ["no", "yes"]
    made = StrongSeparators.from_data(X, y)
    assert made.classes.tolist() == ["no", "yes"]
    assert made.squared_margin(X, y) > 0
    assert made.squared_margin(X, ["yes", "no"]) == 0


def test_sparse_rows_are_rows() -> None:
    X, y = wedges()
    assert StrongSeparators.from_data(scipy.sparse.csr_array(X), y).margin == StrongSeparators.from_data(X, y).margin


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"vectors must be at least two with Σ‖wᵢ‖² ≤ 1; got 2 with 2"):
        StrongSeparators([[1, 0], [0, 1]], 0.1)
    with pytest.raises(ValueError, match="vectors must be at least two"):
        StrongSeparators([[1, 0]], 0.1)
    with pytest.raises(ValueError, match="margin must be a number greater than 0"):
        StrongSeparators([[HALF], [-HALF]], 0.0)
    with pytest.raises(ValueError, match="margin must be at most"):
        StrongSeparators([[HALF], [-HALF]], 1.5)
    with pytest.raises(ValueError, match="construction must be ChebyshevConstruction or"):
        StrongSeparators([[HALF], [-HALF]], 0.5, "chebyshev")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="classes must have one label for each of the 2 vectors"):
        StrongSeparators([[HALF], [-HALF]], 0.5, classes=["a", "b", "c"])
    with pytest.raises(ValueError, match="within the unit ball; row 0 has length 2"):
        StrongSeparators.from_data([[2.0], [-1.0]], [0, 1])
    with pytest.raises(ValueError, match="within the unit ball; row 0 has length 3"):
        StrongSeparators([[HALF], [-HALF]], 0.5).squared_margin([[3], [-1]], [0, 1])
    with pytest.raises(ValueError, match="must be weakly separable"):
        StrongSeparators.from_data([[0.5], [0.5]], [0, 1])
    with pytest.raises(ValueError, match=r"positions\[0\] is 2"):
        weak_margin_of([[HALF], [-HALF]], [[1]], [2])


def test_measured_margin_exceeds_the_guarantee() -> None:
    rows = measure_looseness(sizes=[50, 500], seed=1)
    assert [row.data for row in rows] == ["wedges", "paper_weak", "paper_weak"]
    assert [row.n_examples for row in rows] == [78, 50, 500]
    for row in rows:
        assert row.guaranteed_log2 < row.sharper_log2 < row.measured_log2 < 0.0
        assert row.measured_log2 - row.guaranteed_log2 > 50.0
    assert rows[0].measured == pytest.approx(0.0729119, rel=1e-5)
    assert rows[1].weak > rows[2].weak
    assert rows[1].measured > rows[2].measured


def test_unseparable_data_have_no_row() -> None:
    X, y = paper_weak(rounds=100, seed=1)
    with pytest.raises(ValueError, match="weakly separable"):
        _measure_one("spoilt", np.concatenate([X, X[:1]]), np.append(y, 1 - min(y[0], 1)))
