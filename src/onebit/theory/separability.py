"""The largest weak and strong margin of a labelled data set (Definition 1), or proof that there is none.

With Σ‖wᵢ‖² ≤ 1 throughout, a set is *weakly* separable with margin γ if ⟨w_y, x⟩ ≥ ⟨wᵢ, x⟩ + γ for every example and
every i ≠ y, and *strongly* if ⟨w_y, x⟩ ≥ γ/2 and ⟨wᵢ, x⟩ ≤ −γ/2. Both largest margins are distances from the origin to
convex hulls:

- weak: one hull, of the vectors in R^(Kd) that hold x in block y and −x in block i; γ is its distance;
- strong: for each class i one hull, of the examples with those of other classes negated, at distance δᵢ; the shortest
  wᵢ with products of at least ½ has length 1/(2δᵢ), so γ = (Σ 1/(4δᵢ²))^(−1/2).

Hulls that contain the origin have no margin, and the weights that show it are the certificate. A margin is always
computed from the returned vectors on all the data, so it is attained; the gap to the dual bound is reported. In R^d
margins below 10⁻⁷ of the radius count as none (10⁻⁶ in a kernel's space); the certificate says how small it must be.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from onebit.bounds import Claim
from onebit.bounds.promises import promises
from onebit.inputs import Floats, check_classes, check_labels, check_rows, dense, encode_labels, infer_classes
from onebit.kernels import Kernel, as_kernel
from onebit.theory.certificates import Certificate, conflicting_pair
from onebit.theory.coordinates import KernelCoordinates, LinearCoordinates
from onebit.theory.largest_margins import Progress, Task, largest_strong, largest_weak

__all__ = ["Margin", "Progress", "margin"]


@dataclass(frozen=True)
class Margin:
    """The largest margins of a data set, with what attains or refutes them.

    Vectors are scaled to Σ‖wᵢ‖² = 1, one row per class in the order of `classes`. In a kernel's space row i holds the
    coefficients of wᵢ over the examples.
    """

    weak: float
    """The largest weak margin; 0.0 if there is none."""
    strong: float
    """The largest strong margin; 0.0 if there is none."""
    weak_vectors: Floats | None
    strong_vectors: Floats | None
    weak_certificate: Certificate | None
    """Why the set is not weakly separable, if it is not."""
    strong_certificates: tuple[Certificate, ...]
    """Why the set is not strongly separable: one certificate for each class that cannot be told from the rest."""
    weak_gap: float
    """The largest margin is at most weak/(1 − weak_gap)."""
    strong_gap: float
    radius: float
    """The length of the longest example, in the kernel's space if there is one."""
    classes: npt.NDArray[Any]
    n_features: int
    kernel: Kernel | None

    @property
    def promises(self) -> list[Claim]:
        """What Theorems 2, 4, 5, 10, 21 and Corollary 6 say about these data."""
        return promises(
            n_classes=len(self.classes),
            n_features=self.n_features,
            radius=self.radius,
            weak=self.weak,
            strong=self.strong,
            in_kernel_space=self.kernel is not None,
        )


def margin(
    X: Any,
    y: Any,
    kernel: Any = None,
    *,
    classes: Any = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Margin:
    """Return the largest weak and strong margin of a labelled data set, in R^d or in a kernel's space.

    The work is an active-set method that looks at all examples only now and then (`onebit.theory.minimum_norm`): its
    cost depends on the number of conditions that hold with equality at the end, at most K·d, far more than on the
    number of examples. With a kernel, d is the numerical rank of the Gram matrix.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        The examples; sparse rows are made dense.
    y : array of shape (n,)
        Their labels, of at least two classes.
    kernel : None, Kernel or callable
        The space; None is R^d itself.
    classes : None, int or list
        All labels, or how many, if some have no example: such a class must still lose to (or reject) every example.
    on_progress : callable, optional
        Called with a `Progress` now and then.

    Examples
    --------
    >>> result = margin([[1, 0, 0], [0, 1, 0], [0, 0, 1]], ["red", "green", "blue"])
    >>> round(result.weak, 6), round(result.strong, 6)
    (0.707107, 0.666667)

    References
    ----------
    Beygelzimer et al. (2019). ICML. Definition 1.
    """
    kernel = as_kernel(kernel)
    rows = dense(check_rows(X))
    labels = check_labels(y, len(rows))
    names = check_classes(classes) if classes is not None else infer_classes(labels)
    if len(names) < 2:
        raise ValueError(
            f"y must hold at least two classes to have a margin; got only {names.tolist()!r}. Pass classes= if some "
            "classes have no example"
        )
    codes = encode_labels(labels, names)
    # A kernel that normalizes works on rows of length 1; from here on these are the examples.
    rows = kernel.prepare(rows) if kernel is not None else rows
    coordinates = KernelCoordinates(rows, kernel) if kernel is not None else LinearCoordinates(rows)
    report = on_progress if on_progress is not None else _ignore
    # Equal rows are found by comparing bits: a solver cannot tell such a pair from a tiny margin.
    task = Task(coordinates, codes, names, conflicting_pair(rows, codes), report)
    weak, strong = largest_weak(task), largest_strong(task)
    report(Progress(1.0, "done", max(weak.gap, strong.gap)))
    return Margin(
        weak=weak.margin * coordinates.radius,
        strong=strong.margin * coordinates.radius,
        weak_vectors=weak.vectors,
        strong_vectors=strong.vectors,
        weak_certificate=weak.certificates[0] if weak.certificates else None,
        strong_certificates=strong.certificates,
        weak_gap=weak.gap,
        strong_gap=strong.gap,
        radius=coordinates.radius,
        classes=names,
        n_features=rows.shape[1],
        kernel=kernel,
    )


def _ignore(_progress: Progress) -> None:
    """Take no notice."""
