import math
import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.svm import SVC

from onebit.inputs import Floats, Integers
from onebit.kernels import Gaussian, Kernel, Linear, Polynomial, Rational
from onebit.streams import paper_strong, paper_weak, wedges
from onebit.theory import (
    Certificate,
    Margin,
    Progress,
    Separator,
    margin,
    verify_certificate,
    verify_separator,
)

property_test = settings(max_examples=60, derandomize=True, deadline=None)


def with_constant(X: Floats) -> Floats:
    return np.column_stack([X, np.ones(len(X))])


@st.composite
def labelled(draw: st.DrawFn, most_classes: int = 4) -> tuple[Floats, Integers, int]:
    """Draw small sets of every kind: lattice points and real ones, random labels and linear ones."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d, K = draw(st.integers(2, 24)), draw(st.integers(1, 6)), draw(st.integers(2, most_classes))
    X = rng.integers(-2, 3, size=(n, d)).astype(float) if draw(st.booleans()) else rng.standard_normal((n, d))
    X = with_constant(X) if draw(st.booleans()) else X
    y = (X @ rng.standard_normal((X.shape[1], K))).argmax(axis=1) if draw(st.booleans()) else rng.integers(K, size=n)
    return X, y, K


def distance(Z: Floats) -> float:
    """The distance from the origin to the hull of rows, by scipy's non-negative least squares on all of them."""
    scale = np.linalg.norm(Z, axis=1).max() or 1.0
    E = np.vstack([Z.T / scale, np.ones(len(Z))])
    weights, _ = scipy.optimize.nnls(E, np.append(np.zeros(Z.shape[1]), 1.0), maxiter=100_000)
    return float(np.linalg.norm(weights @ Z) / weights.sum())


def conditions(X: Floats, y: Integers, K: int) -> Floats:
    rows = []
    for x, own in zip(X, y, strict=True):
        for i in set(range(K)) - {int(own)}:
            z = np.zeros((K, X.shape[1]))
            z[own], z[i] = x, -x
            rows.append(z.ravel())
    return np.array(rows)


def check_attained(result: Margin, X: Floats, y: Integers, K: int, kernel: Kernel | None = None) -> None:
    """Definition 1, by hand, on the returned vectors; or the certificates, by the public check."""
    gram = X if kernel is None else kernel(X)
    each = np.arange(len(y))
    for vectors, is_weak in ((result.weak_vectors, True), (result.strong_vectors, False)):
        if vectors is None:
            continue
        squares = (vectors * vectors).sum() if kernel is None else np.sum((vectors @ gram) * vectors)
        # In a kernel's space coefficients grow as the margin shrinks, and rounding with their squares.
        rounding = 1e-16 * (result.radius / (result.weak if is_weak else result.strong)) ** 2 if kernel else 0.0
        assert squares == pytest.approx(1.0, rel=1e-7 + rounding)
        scores = gram @ vectors.T
        own = scores[each, y].copy()
        scores[each, y] = -np.inf
        slack = 1e-7 * result.radius
        if is_weak:
            assert (own - scores.max(axis=1)).min() == pytest.approx(result.weak, rel=1e-6, abs=slack)
        else:
            assert min(own.min(), -scores.max()) == pytest.approx(result.strong / 2, rel=1e-6, abs=slack)
    assert result.weak <= result.weak_limit
    assert result.strong <= result.strong_limit
    assert (result.weak_vectors is None) == (result.weak == 0.0)
    assert (result.strong_vectors is None) == (result.strong == 0.0)
    assert len(result.strong_certificates) == K
    for certificate in proofs(result):
        assert verify_certificate(certificate, X, y, kernel, classes=K)
    for separator in (result.weak_separator, result.strong_separator):
        assert separator is None or verify_separator(separator, X, y, kernel)


def proofs(result: Margin) -> list[Certificate]:
    return [result.weak_certificate, *result.strong_certificates]


def is_decided(result: Margin) -> bool:
    return (result.weak > 0.0 or result.weak_limit == 0.0) and (result.strong > 0.0 or result.strong_limit == 0.0)


def fractions(values: Any) -> list[Fraction]:
    return [Fraction(value) for value in np.asarray(values).tolist()]


def worst_by_fractions(separator: Separator, X: Floats, y: Integers) -> Fraction:
    """The margin of vectors, squared, by Definition 1 and nothing else; −1 if it is not positive."""
    W = [fractions(w) for w in separator.vectors]
    names, least = separator.classes.tolist(), []
    for x, label in zip([fractions(x) for x in X], y.tolist(), strict=True):
        scores = [sum(a * b for a, b in zip(w, x, strict=True)) for w in W]
        own = scores.pop(names.index(label))
        least.append(own - max(scores) if separator.kind == "weak" else 2 * min(own, -max(scores)))
    worst = Fraction(min(least))
    return worst**2 / sum(a * a for w in W for a in w) if worst > 0 else Fraction(-1)


def square_by_fractions(certificate: Certificate, X: Floats, y: Integers) -> Fraction:
    """The squared length of the combination, by the definition of its vectors and nothing else."""
    weights = fractions(certificate.weights)
    blocks: dict[Any, list[Fraction]] = {}
    for t, i, weight in zip(certificate.examples.tolist(), certificate.classes.tolist(), weights, strict=True):
        own = y.tolist()[t]
        assert weight >= 0
        signs = {own: 1, i: -1} if certificate.kind == "weak" else {i: 1 if i == own else -1}
        for label, sign in signs.items():
            block = blocks.setdefault(label, [Fraction(0)] * X.shape[1])
            blocks[label] = [a + sign * weight * b for a, b in zip(block, fractions(X[t]), strict=True)]
    return Fraction(sum(a * a for block in blocks.values() for a in block)) / sum(weights) ** 2


def check_by_fractions(result: Margin, X: Floats, y: Integers) -> None:
    """Both sides of both margins, without a float and without a line of the package."""
    for separator in (result.weak_separator, result.strong_separator):
        if separator is not None:
            assert worst_by_fractions(separator, X, y) >= Fraction(separator.margin) ** 2
    for certificate in proofs(result):
        assert square_by_fractions(certificate, X, y) <= Fraction(certificate.length) ** 2
    lengths = fractions([certificate.length for certificate in result.strong_certificates])
    assert result.weak_limit == result.weak_certificate.length
    strong = min(4 / sum(1 / length**2 for length in lengths) if all(lengths) else 0, Fraction(result.weak_limit) ** 2)
    assert Fraction(result.strong_limit) ** 2 >= strong


@given(labelled())
@property_test
def test_agrees_with_plain_least_squares(data: tuple[Floats, Integers, int]) -> None:
    X, y, K = data
    result = margin(X, y, classes=K)
    check_attained(result, X, y, K)
    assert max(result.weak_gap, result.strong_gap) <= 1e-7
    assert result.weak == pytest.approx(distance(conditions(X, y, K)), rel=1e-6, abs=1e-7 * result.radius)
    distances = [distance(X * np.where(y == i, 1.0, -1.0)[:, None]) for i in range(K)]
    if min(distances) > 1e-6 * result.radius:
        strong = 2.0 / math.sqrt(sum(each**-2 for each in distances))
        assert result.strong == pytest.approx(strong, rel=1e-6)
    else:
        assert result.strong <= 1e-5 * result.radius


@given(labelled())
@property_test
def test_strong_is_at_most_weak_and_both_respect_their_limits(data: tuple[Floats, Integers, int]) -> None:
    X, y, K = data
    result = margin(X, y, classes=K)
    assert result.strong <= result.weak * (1.0 + 1e-9)
    assert result.weak <= result.radius * math.sqrt(K / (K - 1)) * (1.0 + 1e-9)
    assert result.strong <= 2.0 * result.radius / math.sqrt(K) * (1.0 + 1e-9)


@given(labelled(most_classes=2))
@property_test
def test_two_classes_have_one_margin(data: tuple[Floats, Integers, int]) -> None:
    X, y, _ = data
    result = margin(X, y, classes=2)
    assert result.weak == pytest.approx(result.strong, rel=1e-9)


@given(labelled(), st.integers(0, 2**32), st.floats(1e-6, 1e6))
@property_test
def test_turning_and_stretching(data: tuple[Floats, Integers, int], seed: int, factor: float) -> None:
    X, y, K = data
    result = margin(X, y, classes=K)
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((X.shape[1],) * 2))[0]
    other = margin(factor * X @ turn, y, classes=K)
    if all(each == 0.0 or each > 1e-5 * result.radius for each in (result.weak, result.strong)):
        assert other.weak == pytest.approx(factor * result.weak, rel=1e-7)
        assert other.strong == pytest.approx(factor * result.strong, rel=1e-7)


@given(labelled())
@property_test
def test_the_linear_kernel_is_no_kernel(data: tuple[Floats, Integers, int]) -> None:
    X, y, K = data
    plain, kernel = margin(X, y, classes=K), margin(X, y, Linear(), classes=K)
    check_attained(kernel, X, y, K, Linear())
    assert kernel.radius == pytest.approx(plain.radius)
    assert kernel.weak == pytest.approx(plain.weak, rel=1e-6, abs=2e-6 * plain.radius)
    assert kernel.strong == pytest.approx(plain.strong, rel=1e-6, abs=2e-6 * plain.radius)


@pytest.mark.parametrize("kernel", [Rational(normalize=True), Gaussian(width=0.5), Polynomial(degree=3)])
def test_kernels(kernel: Kernel) -> None:
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.0, 1.0, size=(60, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 0] ** 2 + X[:, 1] ** 2 > 1.0)
    result = margin(X, y, kernel)
    check_attained(result, X, y, 3, kernel)
    for gap, limit in ((result.weak_gap, result.weak_limit), (result.strong_gap, result.strong_limit)):
        assert gap <= 1e-7 or limit <= 1e-6 * result.radius
    assert result.radius == pytest.approx(math.sqrt(np.diagonal(kernel(X)).max()))


def test_polynomial_kernel_against_its_own_features() -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.0, 1.0, size=(80, 2))
    y = (np.einsum("ij,ij->i", X, X) > 0.5).astype(int)
    a, b = X.T
    root = math.sqrt(2.0)
    features = np.column_stack([np.ones(80), root * a, root * b, a * a, root * a * b, b * b])
    plain, kernel = margin(features, y), margin(X, y, lambda X, Y: (1.0 + X @ Y.T) ** 2)
    assert plain.strong > 0.0
    assert kernel.strong == pytest.approx(plain.strong, rel=1e-8)
    assert kernel.weak == pytest.approx(plain.weak, rel=1e-8)


@pytest.mark.parametrize("K", [2, 3, 7])
def test_unit_vectors(K: int) -> None:
    result = margin(5.0 * np.eye(K), np.arange(K))
    assert result.weak == pytest.approx(5.0 / math.sqrt(K - 1), rel=1e-12)
    assert result.strong == pytest.approx(10.0 / K, rel=1e-12)


@pytest.mark.parametrize("K", [2, 3, 7])
def test_one_example_reaches_the_limits(K: int) -> None:
    result = margin([[3.0, 4.0]], [1], classes=K)
    assert result.strong == pytest.approx(10.0 / math.sqrt(K), rel=1e-12)
    assert result.weak == pytest.approx(5.0 * math.sqrt(K / (K - 1)), rel=1e-12)
    assert [promise.value for promise in result.promises if promise.theorem == "2"] == [(K - 1) * K]


def test_against_a_support_vector_machine() -> None:
    # With every example comes its mirror image of the other class, so that the machine's offset is zero.
    rng = np.random.default_rng(5)
    half = rng.standard_normal((200, 8))
    half = half[np.abs(half[:, 0] + half[:, 1]) > 0.5]
    signs = np.where(half[:, 0] + half[:, 1] > 0, 1, -1)
    X, y = np.concatenate([half, -half]), np.concatenate([signs, -signs])
    machine = SVC(kernel="linear", C=1e8, tol=1e-9).fit(X, y)
    result = margin(X, y)
    assert result.strong == pytest.approx(math.sqrt(2.0) / np.linalg.norm(machine.coef_), rel=1e-6)
    assert result.strong_vectors is not None
    direction = machine.coef_[0] / np.linalg.norm(machine.coef_)
    assert result.strong_vectors[1] * math.sqrt(2.0) == pytest.approx(direction, abs=1e-5)


def test_wedges_are_weakly_not_strongly_separable() -> None:
    X, y = wedges()
    result = margin(X, y)
    check_attained(result, X, y, 3)
    assert result.weak == pytest.approx(0.112526676, rel=1e-7)
    assert (result.strong, result.strong_limit) == (0.0, 0.0)
    assert result.mixed_classes == [0, 1, 2]
    assert [certificate.length for certificate in result.strong_certificates] == [0.0] * 3


def test_the_papers_data_sets() -> None:
    strong, weak = margin(*paper_strong(50_000, seed=1)), margin(*paper_weak(50_000, seed=1))
    assert strong.strong == pytest.approx(0.023, abs=5e-4)
    assert weak.weak == pytest.approx(0.0495, abs=1e-4)
    assert (weak.strong, weak.strong_limit) == (0.0, 0.0)
    assert weak.mixed_classes == [0]


def test_digits_are_weakly_not_strongly_separable() -> None:
    X, y = load_digits(return_X_y=True)
    X = with_constant(X / np.linalg.norm(X, axis=1).max())
    result = margin(X, y)
    check_attained(result, X, y, 10)
    assert result.weak == pytest.approx(0.0099389, rel=1e-4)
    assert result.mixed_classes == [8, 9]


def test_wine_is_strongly_separable() -> None:
    X, y = load_wine(return_X_y=True)
    X = with_constant((X - X.mean(axis=0)) / X.std(axis=0))
    result = margin(X, y)
    check_attained(result, X, y, 3)
    assert result.strong == pytest.approx(0.328775, rel=1e-5)


def test_breast_cancer_as_it_comes_is_separable() -> None:
    # Columns from 10⁻³ to 10³: the margin is 10⁻⁸ of the radius, and there.
    X, y = load_breast_cancer(return_X_y=True)
    result = margin(X, y)
    assert result.weak == result.strong == pytest.approx(5.7241146e-5, rel=1e-6)
    assert result.weak_gap <= 1e-9
    check_by_fractions(result, X, y)


def test_rational_kernel_makes_the_papers_weak_set_strongly_separable() -> None:
    X, y = paper_weak(2000, seed=1)
    result = margin(X, y, Rational())
    check_attained(result, X, y, 3, Rational())
    assert result.strong > 0.01
    assert [promise.theorem for promise in result.promises] == ["4", "10"]


def test_equal_examples_with_different_labels_are_the_proof() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 4))
    X[17] = X[40] = [0.0, 1.0, 2.0, 3.0]
    X[40, 0] = -0.0
    y = np.array(["a", "b"] * 25)
    y[17], y[40] = "a", "b"
    for kernel in (None, Rational(normalize=True)):
        result = margin(X, y, kernel)
        assert [sorted(certificate.examples) for certificate in proofs(result)] == [[17, 40]] * 3
        assert all(certificate.length == 0.0 for certificate in proofs(result))
        assert all(verify_certificate(certificate, X, y, kernel) for certificate in proofs(result))


def test_a_zero_example_is_a_proof() -> None:
    X, y = np.array([[1.0, 0.0], [0.0, 0.0], [-1.0, 0.0]]), np.array([0, 1, 1])
    assert all(verify_certificate(certificate, X, y) for certificate in proofs(margin(X, y)))
    nothing = margin(np.zeros((3, 2)), y)
    assert (nothing.weak, nothing.strong, nothing.radius) == (0.0, 0.0, 0.0)
    assert all(verify_certificate(certificate, np.zeros((3, 2)), y) for certificate in proofs(nothing))


def test_values_without_digits_are_not_blamed_on_the_kernel() -> None:
    X = 1e6 * np.random.default_rng(0).standard_normal((20, 30))
    with pytest.raises(ValueError, match=r"Gaussian\(\) as computed is not, by .*: scale or centre X"):
        margin(X, np.arange(20) % 2, Gaussian())


def test_columns_with_an_offset() -> None:
    # Seconds since 1970 beside what tells the classes apart: this was called "not separable", with a proof.
    y = np.arange(100) % 2
    X = np.column_stack([1.7e9 + np.arange(100), 2.0 * y - 1.0])
    result = margin(X, y)
    assert result.weak == result.strong == pytest.approx(math.sqrt(2.0), rel=1e-12)
    check_by_fractions(result, X, y)


@pytest.mark.parametrize("size", [1e-3, 1e-6, 1e-7, 3e-8, 1e-9, 1e-15, 1e-18])
def test_tiny_margins_are_margins(size: float) -> None:
    # The hull of (1, s), (−1, s), (−1, s) is nearest to the origin at (0, s).
    X, y = np.array([[1.0, size], [-1.0, size], [1.0, -size]]), np.array([0, 0, 1])
    result = margin(X, y)
    assert result.weak == result.strong == pytest.approx(math.sqrt(2.0) * size, rel=1e-12)
    check_by_fractions(result, X, y)
    # Two classes have one margin, and a theorem speaks of it however small it is.
    promises = {promise.theorem: promise for promise in result.promises}
    assert promises["2"].log2 == pytest.approx(1.0 - 2.0 * math.log2(size), abs=1e-3)
    assert promises["10"].log2 == pytest.approx(-2.0 * math.log2(size), abs=1e-3)
    assert not any(promise.silent_because for promise in promises.values())


@st.composite
def badly_scaled(draw: st.DrawFn) -> tuple[Floats, Integers, float]:
    """Draw a set whose margins are known, with columns of very different size that tell nothing, and offsets.

    Each of some points a, and its mirror image, comes with every class and has c at the class's own column. So the
    columns of a cancel in the right combination, and the margins are those of c times the unit vectors.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d, K = draw(st.integers(1, 6)), draw(st.integers(1, 4)), draw(st.integers(2, 4))
    a = rng.standard_normal((n, d)) + np.where(rng.random(d) < 0.5, draw(st.sampled_from([0.0, 1.7e9])), 0.0)
    a *= 10.0 ** rng.uniform(-9.0, 9.0 if np.abs(a).max() < 1e9 else 0.0, size=d)
    c = 10.0 ** draw(st.integers(-9, 9))
    y = np.tile(np.arange(K), 2 * n)
    X = np.column_stack([np.repeat(np.concatenate([a, -a]), K, axis=0), c * np.eye(K)[y]])
    order = rng.permutation(X.shape[1])
    return X[:, order], y, c


@given(badly_scaled())
@property_test
def test_badly_scaled_columns(data: tuple[Floats, Integers, float]) -> None:
    X, y, c = data
    K = y.max() + 1
    result = margin(X, y)
    assert result.weak == pytest.approx(c / math.sqrt(K - 1), rel=1e-6)
    assert result.strong == pytest.approx(2.0 * c / K, rel=1e-6)
    # Of smaller margins the limits are no less, but they need not be near.
    if c >= 1e-10 * result.radius:
        assert result.weak_limit == pytest.approx(c / math.sqrt(K - 1), rel=1e-6)
        assert result.strong_limit == pytest.approx(2.0 * c / K, rel=1e-6)
    check_by_fractions(result, X, y)


@given(badly_scaled(), st.integers(0, 2**32))
@property_test
def test_badly_scaled_columns_without_a_margin(data: tuple[Floats, Integers, float], seed: int) -> None:
    X, y, _ = data
    # What is twice as far in another class's name must be told from it by a product of the other sign.
    X, y = np.concatenate([X, 2.0 * X[:1]]), np.append(y, y[0] + 1)
    order = np.random.default_rng(seed).permutation(len(X))
    X, y = X[order], y[order]
    result = margin(X, y)
    assert (result.strong, result.strong_limit) == (0.0, 0.0)
    assert set(result.mixed_classes) >= {0, 1}
    assert is_decided(result)
    check_by_fractions(result, X, y)


@given(labelled(), st.integers(0, 2**32))
@property_test
def test_other_units_change_margins_but_not_separability(data: tuple[Floats, Integers, int], seed: int) -> None:
    X, y, K = data
    # Powers of two round nothing.
    units = 2.0 ** np.random.default_rng(seed).integers(-30, 30, size=X.shape[1])
    plain, scaled = margin(X, y, classes=K), margin(X * units, y, classes=K)
    assert is_decided(plain)
    assert is_decided(scaled)
    assert (plain.weak > 0.0) == (scaled.weak > 0.0)
    assert (plain.strong > 0.0) == (scaled.strong > 0.0)
    check_by_fractions(plain, X, y)
    check_by_fractions(scaled, X * units, y)


@given(labelled(most_classes=2), st.integers(-20, 0))
@property_test
def test_two_classes_have_one_margin_at_any_scale(data: tuple[Floats, Integers, int], exponent: int) -> None:
    X, y, _ = data
    X[:, 0] *= 10.0**exponent
    result = margin(X, y, classes=2)
    assert (result.weak, result.weak_limit) == (result.strong, result.strong_limit)


def test_more_than_a_float_can_tell_is_left_open() -> None:
    # In a kernel's space sums of rounded numbers prove little below 10⁻⁸: that is said, and no more.
    X, y = np.array([[1.0, 1e-12], [-1.0, 1e-12], [1.0, -1e-12]]), np.array([0, 0, 1])
    result = margin(X, y, Linear())
    assert (result.strong, result.strong_vectors) == (0.0, None)
    assert 1e-12 < result.strong_limit < 1e-7
    assert result.mixed_classes == []
    assert result.promises[0].silent_because == f"no strong margin was found; it is at most {result.strong_limit:.3g}"
    # In R^d the smallest numbers separate too, but vectors of floats need not show how far.
    spread = margin(np.column_stack([1e150 * X[:, 0], 1e-150 * np.sign(X[:, 1])]), y)
    assert 0.0 < spread.strong < spread.strong_limit
    assert margin([[1e300, 1e-300], [1e300, -1e-300]], [0, 1]).strong == pytest.approx(math.sqrt(2.0) * 1e-300)


def test_extreme_units() -> None:
    X, y = wedges()
    for factor in (1e-200, 1e200):
        result = margin(factor * X, y)
        assert result.weak == pytest.approx(0.112526676 * factor, rel=1e-7)
        assert all(verify_certificate(certificate, factor * X, y) for certificate in proofs(result))


def test_the_smallest_numbers() -> None:
    # Shares of a subnormal radius are 0, and lengths are at least its last digit: still "not separable" is proved.
    X, y = np.array([[1.0, 1.0], [1.0, -2.0], [-2.0, 1.0]]), np.array([0, 0, 0])
    for unit in (5e-324, 3e-320, 1e-310):
        result = margin(unit * X, y, classes=2)
        assert (result.weak_limit, result.strong_limit) == (0.0, 0.0)
        check_by_fractions(result, unit * X, y)


def test_more_features_than_examples() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((12, 40)), rng.integers(3, size=12)
    result = margin(X, y, classes=3)
    assert result.weak_vectors is not None
    assert result.weak_vectors.shape == (3, 40)
    check_attained(result, X, y, 3)
    assert result.weak == pytest.approx(distance(conditions(X, y, 3)), rel=1e-8)


def test_sparse_rows_and_named_labels() -> None:
    X, y = wedges()
    names = np.array(["white", "gray", "black"])[y]
    dense, sparse = margin(X, y), margin(scipy.sparse.csr_array(X), names)
    assert sparse.weak == pytest.approx(dense.weak, rel=1e-12)
    assert sparse.classes.tolist() == ["black", "gray", "white"]
    assert all(verify_certificate(each, scipy.sparse.csr_array(X), names) for each in sparse.strong_certificates)


def test_a_class_without_examples_still_counts() -> None:
    X, y = np.array([[1.0, 1.0], [-1.0, 1.0]]), np.array([0, 1])
    two, three = margin(X, y), margin(X, y, classes=3)
    assert 0.0 < three.weak < two.weak
    assert 0.0 < three.strong < two.strong
    check_attained(three, X, y, 3)
    # No vector has negative products with both of two opposite examples.
    assert margin([[1.0], [-1.0]], [0, 1], classes=3).strong == 0.0


def test_inputs_are_left_alone_and_answers_repeat() -> None:
    X, y = wedges()
    before = X.copy()
    first, second = margin(X, y, Rational()), margin(X, y, Rational())
    assert np.array_equal(X, before)
    assert first.strong == second.strong
    assert np.array_equal(first.strong_vectors, second.strong_vectors)  # type: ignore[arg-type]


def test_progress_rises_to_one() -> None:
    seen: list[Progress] = []
    X, y = load_digits(return_X_y=True)
    margin(with_constant(X), y, on_progress=seen.append)
    shares = [progress.share for progress in seen]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert {"weak", "strong, class 3"} <= {progress.problem for progress in seen}


def test_promises() -> None:
    X, y = wedges()
    promises = {promise.theorem: promise for promise in margin(X, y).promises}
    assert list(promises) == ["2", "5", "6", "10", "21"]
    assert promises["2"].value is None
    assert promises["2"].silent_because == "the data are not strongly separable"
    assert promises["10"].value == math.floor(2 * (0.958 / 0.112526676) ** 2)
    assert promises["5"].log2 == pytest.approx(-61.175066)
    assert promises["21"].value == pytest.approx(2 * (2 * 0.958 / 0.112526676 + 1) ** 2, rel=1e-6)
    far = {promise.theorem: promise for promise in margin(10.0 * X, y).promises}
    assert far["5"].log2 == promises["5"].log2
    assert "normalize=True" in far["5"].subject
    none = margin([[1.0], [1.0]], [0, 1]).promises
    assert all(promise.value is None and promise.silent_because for promise in none)


@pytest.mark.parametrize(
    ("X", "y", "extra", "named"),
    [
        ([[1.0], [2.0]], [0, 0], {}, r"y must hold at least two classes.*got only \[0\]"),
        ([[1.0], [math.nan]], [0, 1], {}, r"X\[1, 0\] is nan"),
        ([[1.0], [2.0]], [0, math.nan], {}, r"y\[1\] is nan"),
        ([[1.0], [2.0]], [0, 1, 1], {}, "y must hold one label for each of the 2 rounds"),
        ([1.0, 2.0], [0, 1], {}, "X must have two dimensions"),
        ([[1.7e308, 1.7e308], [1.0, 2.0]], [0, 1], {}, r"X must have rows no longer than 1e\+307; it holds 1.7e\+308"),
        ([[1.0], [2.0]], [0, 7], {"classes": 3}, r"y\[1\] is 7"),
        ([[1.0], [2.0]], [0, 0], {"classes": 1}, "at least two classes"),
        ([[1.0], [2.0]], [0, 1], {"kernel": "rational"}, "kernel must be None, a kernel"),
        ([[1.0], [2.0]], [0, 1], {"kernel": Rational()}, "unit ball"),
        ([[1.0], [2.0]], [0, 1], {"kernel": lambda X, Y: -(X @ Y.T)}, "kernel must have finite k"),
        ([[1.0], [2.0]], [0, 1], {"kernel": lambda X, Y: (X - Y.T) ** 2 + 0.1}, "positive definite"),
    ],
)
def test_bad_input(X: Any, y: Any, extra: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        margin(X, y, **extra)


@pytest.mark.slow
def test_twenty_thousand_examples_in_under_a_minute() -> None:
    rng = np.random.default_rng(0)
    W, X = rng.standard_normal((10, 64)), rng.standard_normal((40_000, 64))
    scores = np.sort(X @ W.T, axis=1)
    X = X[scores[:, -1] - scores[:, -2] > 0.5][:20_000]
    start = time.perf_counter()
    result = margin(X, (X @ W.T).argmax(axis=1))
    assert time.perf_counter() - start < 60.0
    assert X.shape == (20_000, 64)
    assert result.weak > 0.02
    assert result.weak_gap < 1e-7
