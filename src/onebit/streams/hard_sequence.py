"""The example sequence of a lower bound: labelled examples, vectors that separate them, and the mistakes they force."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from onebit.bounds import Claim
from onebit.engine.randomness import stream_generator
from onebit.inputs import Floats, Integers, check_seed

# The separators' squared lengths sum to 1 but for rounding.
_SLACK = 1e-12
# Two gigabytes of floats.
_MOST_NUMBERS = 250_000_000


@dataclass(frozen=True)
class Challenge:
    """A lower bound's sequence before it is drawn: its size, its margin, and the mistakes it forces."""

    name: str
    """Where it comes from: "Theorem 3"."""
    kind: Literal["weak", "strong"]
    """Which of the two separabilities of Definition 1 is proved."""
    n_classes: int
    n_features: int
    rounds: int
    radius: float
    """No example is longer."""
    margin: float
    """γ, the margin with which the examples are separable, at least."""
    stated: Claim
    """The theorem as stated: expected mistakes over all random numbers, and the learners it covers."""
    forced: Claim
    """The most that the same construction forces on every learner it covers."""


@dataclass(frozen=True)
class HardSequence:
    """Labelled examples on which mistakes cannot be avoided.

    Attributes
    ----------
    challenge : Challenge
        Its size, and the theorem's numbers.
    X, y : arrays of shape (rounds, features) and (rounds,)
        The examples, in order. A label may never occur: give the learner ``classes=challenge.n_classes``.
    separators : array of shape (classes, features)
        The vectors of the proof, Σ‖wᵢ‖² ≤ 1; `proved_margin` returns the margin they prove.
    """

    challenge: Challenge
    X: Floats
    y: Integers
    separators: Floats

    @property
    def radius(self) -> float:
        """No example is longer."""
        return self.challenge.radius

    @property
    def margin(self) -> float:
        """γ, which the separators prove."""
        return self.challenge.margin

    @property
    def lower_bound(self) -> float | None:
        """Expected mistakes of any learner that the theorem binds; None beyond a float."""
        return self.challenge.stated.value

    def proved_margin(self) -> float:
        """Return the margin that the separators prove, by Definition 1."""
        return proved_margin(self.X, self.y, self.separators, self.challenge.kind)


def proved_margin(X: Floats, y: Integers, separators: Floats, kind: str) -> float:
    """Return the largest γ for which given vectors satisfy Definition 1; not positive if they separate nothing.

    Parameters
    ----------
    X, y : arrays
        Examples, and labels that count the rows of `separators`.
    separators : array of shape (classes, features)
        w₁…w_K; Σ‖wᵢ‖² must not exceed 1.
    kind : {"weak", "strong"}
        Weak: the own score exceeds every other by γ. Strong: it is at least γ/2, every other at most −γ/2.

    Examples
    --------
    >>> X, W = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.5, -0.5], [-0.5, 0.5]])
    >>> proved_margin(X, np.array([0, 1]), W, "weak"), proved_margin(X, np.array([0, 1]), W, "strong")
    (1.0, 1.0)

    References
    ----------
    Beygelzimer et al. (2019). ICML. Definition 1.
    """
    size = float(np.sum(separators**2))
    if size > 1.0 + _SLACK:
        raise ValueError(f"separators must have Σ‖w‖² at most 1; got {size!r}. Divide them by {size**0.5:.6g}")
    scores = X @ separators.T
    # The best of the other scores decides for both kinds: weak compares it with the own score, strong with −γ/2.
    is_own = np.arange(len(separators)) == y[:, None]
    own, best_other = scores[is_own], np.where(is_own, -np.inf, scores).max(axis=1)
    if kind == "weak":
        return float((own - best_other).min())
    return 2.0 * float(np.minimum(own, -best_other).min())


def check_size(rounds: int, n_features: int, margin: float) -> None:
    """Raise if the examples would need more than two gigabytes."""
    if rounds * n_features > _MOST_NUMBERS:
        raise ValueError(
            f"margin is too small to write the examples down: {margin!r} needs {rounds} rounds of {n_features} "
            f"features, more than {_MOST_NUMBERS} numbers. Use a larger margin"
        )


def random_labels(n: int, n_classes: int, seed: int) -> Integers:
    """Return labels drawn uniformly, from the stream's random numbers of that seed."""
    numbers = stream_generator(check_seed(seed)).random(n)
    return np.minimum((numbers * n_classes).astype(np.int64), n_classes - 1)
