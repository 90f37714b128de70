"""The largest weak and strong margin of a labelled data set (Definition 1), or proof that there is none.

With Σ‖wᵢ‖² ≤ 1 throughout, a set is *weakly* separable with margin γ if ⟨w_y, x⟩ ≥ ⟨wᵢ, x⟩ + γ for every example and
every i ≠ y, and *strongly* if ⟨w_y, x⟩ ≥ γ/2 and ⟨wᵢ, x⟩ ≤ −γ/2. Both largest margins are distances from the origin to
convex hulls:

- weak: one hull, of the vectors in R^(Kd) that hold x in block y and −x in block i; γ is its distance;
- strong: for each class i one hull, of the examples with those of other classes negated, at distance δᵢ; the shortest
  wᵢ with products of at least ½ has length 1/(2δᵢ), so γ = (Σ 1/(4δᵢ²))^(−1/2).

Hulls that contain the origin have no margin. Both sides of an answer are proved: the returned vectors have the margin
on all the data, and the certificates' combinations show that none is larger. In R^d both are exact; "not separable" is
said when a combination is exactly zero, and never because something is small. What stays open is told as it is: no
margin was found, and it is at most so much.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from onebit.bounds import Claim
from onebit.bounds.promises import promises
from onebit.inputs import Floats, check_rows, dense
from onebit.kernels import Kernel, as_kernel
from onebit.labels import check_classes, check_labels, encode_labels, infer_classes
from onebit.theory.certificates import Certificate, Separator, conflicting_pair
from onebit.theory.coordinates import Coordinates, KernelCoordinates, LinearCoordinates
from onebit.theory.largest_margins import Progress, Task, largest_margins

__all__ = ["Margin", "Progress", "margin"]

# Lengths of a few such rows together are floats still.
_LONGEST = 1e307


@dataclass(frozen=True)
class Margin:
    """The largest margins of a data set, each with the proofs of its two sides.

    Vectors are scaled to Σ‖wᵢ‖² = 1, one row per class in the order of `classes`. In a kernel's space row i holds the
    coefficients of wᵢ over the examples.
    """

    weak: float
    """The largest weak margin that was found; the vectors have it. 0.0 if none was."""
    strong: float
    """The largest strong margin that was found; the vectors have it. 0.0 if none was."""
    weak_limit: float
    """No weak margin is larger. 0.0: the set is proved not to be weakly separable."""
    strong_limit: float
    """No strong margin is larger. 0.0: the set is proved not to be strongly separable."""
    weak_vectors: Floats | None
    strong_vectors: Floats | None
    weak_certificate: Certificate
    """Why no weak margin is larger than `weak_limit`."""
    strong_certificates: tuple[Certificate, ...]
    """How near each class comes to the rest, in the order of `classes`; length 0.0: it is one of `mixed_classes`."""
    radius: float
    """The length of the longest example, in the kernel's space if there is one."""
    classes: npt.NDArray[Any]
    n_features: int
    kernel: Kernel | None

    @property
    def weak_gap(self) -> float:
        """The relative distance between `weak` and `weak_limit`; 0.0 also if there is provably none."""
        return _gap(self.weak, self.weak_limit)

    @property
    def strong_gap(self) -> float:
        """The relative distance between `strong` and `strong_limit`; 0.0 also if there is provably none."""
        return _gap(self.strong, self.strong_limit)

    @property
    def weak_separator(self) -> Separator | None:
        """Why the weak margin is at least `weak`; None if none was found."""
        vectors = self.weak_vectors
        return None if vectors is None else Separator("weak", self.classes, vectors, self.weak)

    @property
    def strong_separator(self) -> Separator | None:
        """Why the strong margin is at least `strong`; None if none was found."""
        vectors = self.strong_vectors
        return None if vectors is None else Separator("strong", self.classes, vectors, self.strong)

    @property
    def mixed_classes(self) -> list[Any]:
        """The classes that provably no hyperplane through the origin tells from all the rest."""
        lengths = [certificate.length for certificate in self.strong_certificates]
        mixed: list[Any] = self.classes[np.equal(lengths, 0.0)].tolist()
        return mixed

    @property
    def promises(self) -> list[Claim]:
        """What Theorems 2, 4, 5, 10, 21 and Corollary 6 say about these data."""
        return promises(
            n_classes=len(self.classes),
            n_features=self.n_features,
            radius=self.radius,
            weak=self.weak,
            strong=self.strong,
            weak_limit=self.weak_limit,
            strong_limit=self.strong_limit,
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
    number of examples. With a kernel, d is the numerical rank of the Gram matrix. Columns may have any units; when
    floats do not settle the matter, it is tried again with twice the digits, and then in whole numbers.

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
    largest = float(np.abs(rows).max())
    if kernel is None and largest * math.sqrt(rows.shape[1]) > _LONGEST:
        raise ValueError(f"X must have rows no longer than {_LONGEST:g}; it holds {largest!r}. Divide all of X by 1e10")
    # A kernel that normalizes works on rows of length 1; from here on these are the examples.
    rows = kernel.prepare(rows) if kernel is not None else rows
    coordinates: Coordinates = KernelCoordinates(rows, kernel) if kernel is not None else LinearCoordinates(rows)
    report = on_progress if on_progress is not None else _ignore
    # Equal rows are found by comparing bits: a solver cannot tell such a pair from a tiny margin.
    task = Task(rows, codes, names, kernel, coordinates, conflicting_pair(rows, codes), report)
    weak, strong = largest_margins(task)
    report(Progress(1.0, "done", max(_gap(weak.margin, weak.limit), _gap(strong.margin, strong.limit))))
    return Margin(
        weak=weak.margin,
        strong=strong.margin,
        weak_limit=weak.limit,
        strong_limit=strong.limit,
        weak_vectors=weak.vectors,
        strong_vectors=strong.vectors,
        weak_certificate=weak.certificates[0],
        strong_certificates=strong.certificates,
        radius=coordinates.radius,
        classes=names,
        n_features=rows.shape[1],
        kernel=kernel,
    )


def _gap(margin: float, limit: float) -> float:
    return max(0.0, 1.0 - margin / limit) if limit > 0.0 else 0.0


def _ignore(_progress: Progress) -> None:
    """Take no notice."""
