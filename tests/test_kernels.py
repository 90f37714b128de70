import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

import onebit
from onebit.kernels import Custom, Gaussian, Kernel, Linear, Multinomial, Polynomial, Rational, as_kernel

X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(12, 3))
Y = np.random.default_rng(1).uniform(-0.5, 0.5, size=(9, 3))


def test_against_scikit_learn() -> None:
    assert np.allclose(Gaussian(0.7)(X, Y), rbf_kernel(X, Y, gamma=1 / (2 * 0.7**2)), rtol=1e-13)
    assert np.allclose(Polynomial(4)(X, Y), polynomial_kernel(X, Y, degree=4, gamma=1.0, coef0=1.0), rtol=1e-13)
    assert np.allclose(Linear()(X, Y), X @ Y.T, rtol=1e-13)


def test_against_the_formulas() -> None:
    z = X @ Y.T
    assert np.allclose(Rational()(X, Y), 1 / (1 - z / 2), rtol=1e-14)
    assert np.allclose(Multinomial(3)(X, Y), 1 + z + z**2 + z**3, rtol=1e-13)


def test_rational_values_lie_between_two_thirds_and_two() -> None:
    ends = np.array([[1.0, 0.0], [-1.0, 0.0]])
    assert np.allclose(Rational()(ends), [[2.0, 2 / 3], [2 / 3, 2.0]])


def test_rational_kernel_outside_the_unit_ball_names_the_remedy() -> None:
    with pytest.raises(ValueError, match=r"row 1 has length 1\.5.*normalize=True"):
        Rational()([[0.1, 0.0], [1.5, 0.0]])
    assert np.allclose(Rational(normalize=True)([[0.1, 0.0], [1.5, 0.0]]), 2.0)
    assert np.allclose(Rational(normalize=True)([[0.0, 0.0]]), 1.0)


@pytest.mark.parametrize("make", [lambda: Polynomial(0), lambda: Multinomial(-1), lambda: Polynomial(1.5)])  # type: ignore[arg-type]
def test_bad_degrees(make: object) -> None:
    with pytest.raises(ValueError, match="degree must be"):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("make", [lambda: Polynomial(10**400), lambda: Multinomial(10**7)])
def test_degrees_that_would_take_for_ever(make: object) -> None:
    with pytest.raises(ValueError, match="degree must be between 1 and 1000000"):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("radius", [0.0, 1e-200, 1e160, 1e300, np.inf])
@pytest.mark.parametrize(
    "kernel",
    [Linear(), Rational(), Polynomial(3), Polynomial(10**6), Multinomial(3), Multinomial(2000), Gaussian(1e-100)],
    ids=repr,
)
def test_sensitivity_is_infinite_where_it_is_beyond_a_float(kernel: Kernel, radius: float) -> None:
    assert kernel.sensitivity(radius) >= 0.0
    assert radius < 1.0 or isinstance(kernel, Rational) or kernel.sensitivity(radius) == np.inf


@pytest.mark.parametrize("kernel", [Polynomial(5000), Multinomial(5000)], ids=repr)
def test_long_series_are_not_written_down(kernel: Kernel) -> None:
    assert kernel.series(2) is None
    onebit.play(onebit.BanditPerceptron(kernel), 0.01 * X, (X[:, 0] > 0).astype(int))


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_a_kernel_that_loses_the_rows_says_so(size: float) -> None:
    y = (X[:, 0] > 0).astype(int)
    for learner in (onebit.BanditPerceptron(Linear()), onebit.BanditSVM(Linear(), scale=None)):
        for engine in ("stream", "rounds"):
            with pytest.raises(ValueError, match=r"too large or too small.*with a kernel.*normalize=True"):
                onebit.play(learner, size * X, y, engine=engine)
        onebit.play(learner, np.zeros_like(X), y)  # a row of zeros is at the origin by right


@pytest.mark.parametrize("width", [0.0, -1.0, np.nan, np.inf, 1e-170, 1e200])
def test_bad_widths(width: float) -> None:
    with pytest.raises(ValueError, match="width must be"):
        Gaussian(width)


def test_custom_kernels_are_checked() -> None:
    assert isinstance(as_kernel(lambda A, B: A @ B.T), Custom)
    with pytest.raises(ValueError, match=r"shape \(12, 9\)"):
        Custom(lambda A, B: np.ones(3))(X, Y)
    with pytest.raises(ValueError, match="kernel must be None"):
        as_kernel("rbf")
    with pytest.raises(ValueError, match="kernel must be None"):
        as_kernel(Rational)
    with pytest.raises(ValueError, match="same features"):
        Linear()(X, Y[:, :2])
