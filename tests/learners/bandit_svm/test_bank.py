"""The arrays of a bank: how kernels share values, and how large arrays are."""

from typing import Any

import pytest

import onebit
from onebit.checks.problems import noisy_problem
from onebit.kernels import Gaussian, Laplace, Linear
from onebit.learners.bandit_svm import bank
from onebit.learners.bandit_svm.bank import BankArrays, BankScratch, Settings
from onebit.learners.bandit_svm.state import _plan_members


def guarded(kernel: Any = "auto", **settings: Any) -> onebit.BanditSVM:
    """Return the learner on rows as they are."""
    return onebit.BanditSVM(kernel, **{"scale": None, **settings})


def planned(*kernels: Any) -> tuple[Any, Settings]:
    """Return the kernels with values of their own, and the plan of a bank of these."""
    return _plan_members(kernels, onebit.BanditSVM()._checked_settings(), 5)


def test_powers_are_had_by_squaring() -> None:
    gaussians = (Gaussian(width, normalize=True) for width in (1.0, 0.5, 0.25))
    kernels = (*gaussians, Laplace(), Linear(normalize=True))
    assert Laplace(12.0) not in kernels
    bases, settings = planned(*kernels, Laplace(12.0))
    assert bases == (kernels[0], kernels[3], kernels[4])
    assert settings.plan[:3].tolist() == [[0, 0, 0], [0, 2, 0], [0, 4, 0]]
    assert settings.plan[5].tolist() == [1, 2, 0]
    problem = noisy_problem(200)
    learner = guarded(list(kernels))
    onebit.play(learner, problem.X, problem.y)
    x = problem.X[:1]
    by_kernel = {opinion.kernel: opinion.scores for opinion in learner.opinions(x[0])}
    for kernel, coefficients in zip(kernels, learner.coefficients_, strict=True):
        expected = (kernel(x, learner.support_) @ coefficients)[0]
        assert by_kernel[kernel] == pytest.approx(expected, abs=1e-9)


def test_what_is_taken_for_true_is_true_for_all() -> None:
    nearly: Any = 0.5
    (base,) = planned(Gaussian(0.7, normalize=nearly))[1].bases
    assert base[bank.OF_UNITS]  # as for the kernel itself, and for what a file leaves out


def new_bank(n_features: int, n_classes: int, capacity: int) -> tuple[BankArrays, BankScratch]:
    """Return the arrays of a default bank that has learned nothing."""
    learner = onebit.BanditSVM(classes=n_classes, scale=None)
    learner.begin(n_features)
    sizes: dict[str, int] = learner._state._sizes(capacity, 1)  # type: ignore[attr-defined]
    return bank.new_arrays(sizes), bank.zeros(BankScratch, sizes)


REGRESSIONS = BankArrays._fields[BankArrays._fields.index("landmarks") :]


@pytest.mark.parametrize(("d", "n_classes"), [(10, 10), (100, 25), (100, 500), (199, 6), (10, 5000), (10_000, 3)])
def test_memory_of_the_regressions_is_in_the_docstring(d: int, n_classes: int) -> None:
    arrays, _ = new_bank(d + 1, n_classes, 2000)
    assert sum(getattr(arrays, name).nbytes for name in REGRESSIONS) <= 4.2e6 + 2400 * d + 4000 * n_classes
    assert "4.2 MB + 2 400·d + 4 000·K bytes" in str(onebit.BanditSVM.__doc__)


def test_the_mixture_names_what_its_weights_multiply() -> None:
    assert bank.MIXED[1:] == tuple(
        name
        for source in ("vote", "regression on rows", "regression on landmarks")
        for name in (source, f"lead in the {source}")
    )


def test_wide_rows_have_landmarks_alone() -> None:
    arrays, _ = new_bank(300, 5, 16)
    assert arrays.row_changes.size == 0
    assert arrays.landmark_changes.shape == (17, 17), "a constant is beside them"
    assert new_bank(100, 100, 16)[0].row_changes.size == 0, "classes × features²"
