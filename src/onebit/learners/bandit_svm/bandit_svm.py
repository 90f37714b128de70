"""BanditSVM: keep what answers prove, and the largest-margin separators consistent with it."""

import math
from collections.abc import Iterator
from typing import Any, Self

from onebit.bounds import BOUNDS, Claim
from onebit.inputs import check_integer, check_number
from onebit.kernels import Gaussian, Linear, Rational, as_kernel
from onebit.learners.bandit_svm.facts import Settings
from onebit.learners.bandit_svm.kernel_facts import KernelFactMemory
from onebit.learners.bandit_svm.linear_facts import LinearFactMemory
from onebit.learners.space_learner import SpaceLearner
from onebit.loop import Memory

# A thousandth of the margin: closer than guesses can tell, and it keeps replays from polishing.
_TOLERANCE = 1e-3
# A step below a tenth of the mean coefficient changes next to nothing (docs/experiments/bandit-svm.md).
_TRIGGER = 0.1
# On unit rows this is exp(−8(1−⟨x, x'⟩)): the best single width over the sets it was chosen on.
_AUTO_KERNEL = Gaussian(width=8.0**-0.5, normalize=True)

# Of examples and of replays: their products stay within the 64 bits of compiled code.
_MOST = 2**31


class BanditSVM(SpaceLearner):
    """Keeps every proved fact that matters and, class by class, the largest-margin separator consistent with them.

    A right guess proves what x is and what it is not; a wrong one proves one thing it is not. When a fact has a margin
    below 0.2, or its step would count beside its class's others, its example is stored, each separator that it violates
    takes a step of dual coordinate ascent on it, and then steps on other facts of that class. The guess is the class
    with the highest score. Nothing needs tuning: the defaults were chosen once for all data
    (docs/experiments/bandit-svm.md).

    Parameters
    ----------
    kernel : "auto", None, Kernel or callable
        "auto" is ``Gaussian(width=8**-0.5, normalize=True)``, whatever the data; None is the linear space, in which
        rows are divided by their length and weights are kept.
    C : float
        What a violated fact costs (squared slack); greater than 1e-300, ``math.inf`` for a hard margin. With a finite C
        facts may be wrong: guesses that become too bad for chance make the learner forget everything and start over.
    exploration : "greedy", "uniform" or float
        What happens when every score is below 0, so that no class claims x. "uniform" draws a label and keeps the
        guarantee, "greedy" guesses the highest score all the same and makes fewer mistakes; a number is the chance of
        "uniform".
    budget : int
        The most examples stored; memory is K + budget numbers for each.
    replays : int
        How many further facts of a class are looked after when one is violated: with a kernel at most
        replays·budget/(examples stored) take a step, without one 50·replays are visited in turn.
    classes : None, int or list
        The labels, or how many; `play` and `fit` find out by themselves.
    seed : int
        Names the learner's random numbers.

    Guarantee
    ---------
    With ``C=math.inf`` and ``exploration="uniform"``, on examples that are strongly separable with margin γ within
    radius R (in the kernel's space, R² = max k(x, x)): at most (K−1)⌊4(R/γ)²⌋ expected mistakes, for any `replays`, and
    with a kernel as long as the budget lasts. The proof, and what other settings cost, is in
    docs/theory/bandit-svm.md.

    Attributes
    ----------
    weights_ : array of shape (K, n_features)
        The separators, for rows divided by their length; without a kernel only.
    support_, coefficients_ : arrays of shapes (n, n_features) and (n, K)
        The stored examples and how much of each every class has gained; with a kernel only.

    Examples
    --------
    >>> import onebit
    >>> X, y = onebit.streams.paper_weak(rounds=10_000, seed=1)
    >>> learner = BanditSVM()
    >>> onebit.play(learner, X, y, seed=7).mistakes < 60
    True

    References
    ----------
    Beygelzimer, Pál, Szörényi, Thiruvenkatachari, Wei, Zhang (2019). Bandit multiclass linear classification: efficient
    algorithms for the separable case. ICML. Definition 1: strong separability.
    Hsieh, Chang, Lin, Keerthi, Sundararajan (2008). A dual coordinate descent method for large-scale linear SVM. ICML.
    Orabona, Keshet, Caputo (2009). Bounded kernel-based online learning. JMLR 10: projecting a removed example.
    Gama, Medas, Castillo, Rodrigues (2004). Learning with drift detection. SBIA: noticing that facts are out of date.
    """

    def __init__(
        self,
        kernel: Any = "auto",
        *,
        C: float = 100.0,
        exploration: Any = "greedy",
        budget: int = 2000,
        replays: int = 10,
        classes: Any = None,
        seed: int = 0,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.exploration = exploration
        self.budget = budget
        self.replays = replays
        self.classes = classes
        self.seed = seed

    def promise(self, *, n_classes: int, n_features: int, radius: float, margin: float) -> tuple[Claim, ...]:
        """Return max(1, K/p − 1)·⌊4(R/γ)²⌋ expected mistakes, p the chance of a uniform guess where no class claims x.

        Promised where nothing can be forgotten: without a kernel, and with a hard margin.
        """
        settings = self._checked_settings()
        if settings.mix == 0.0 or settings.softness > 0.0 or self.kernel is not None:
            return ()
        numbers = {"n_classes": n_classes, "radius": radius, "margin": margin, "exploration": settings.mix}
        return (BOUNDS["BanditSVM"].claim(**numbers),)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield the default, hard margins with the theorem's exploration, kernels, and budgets that fill up."""
        yield cls()
        yield cls(None)
        yield cls(None, C=math.inf, exploration="uniform")
        yield cls(None, C=1.0, exploration=0.25, budget=20, replays=3)
        yield cls(Rational(normalize=True), C=math.inf, exploration="uniform", budget=50)
        yield cls(Linear(), exploration=0.5, budget=30)

    def _checked_settings(self) -> Settings:
        # 1/(2C) is what the squared slack adds to the diagonal of the Gram matrix; C = ∞ adds nothing.
        is_hard = isinstance(self.C, float) and math.isinf(self.C) and self.C > 0.0
        softness = 0.0 if is_hard else 0.5 / check_number("C", self.C, above=1e-300)
        replays = check_integer("replays", self.replays, low=0, high=_MOST)
        budget = check_integer("budget", self.budget, low=1, high=_MOST)
        if isinstance(self.exploration, str):
            if self.exploration not in ("greedy", "uniform"):
                raise ValueError(
                    f'exploration must be "greedy", "uniform" or a chance from 0 to 1; got {self.exploration!r}'
                )
            mix = float(self.exploration == "uniform")
        elif not isinstance(self.exploration, bool) and self.exploration == 0:
            mix = 0.0
        else:
            mix = check_number("exploration", self.exploration, above=0.0, at_most=1.0)
        return Settings(
            softness=softness, replays=replays, budget=budget, mix=mix, trigger=_TRIGGER, tolerance=_TOLERANCE
        )

    def _new_memory(self) -> Memory:
        settings, size = self._checked_settings(), (self.n_features_in_, len(self.classes_))
        if isinstance(self.kernel, str) and self.kernel != "auto":
            raise ValueError(
                f'kernel must be "auto", None, a kernel such as onebit.kernels.Rational(), or a function(X, Y); '
                f"got {self.kernel!r}"
            )
        if self.kernel is None:
            return LinearFactMemory(settings, self.hears_label, *size)
        kernel = _AUTO_KERNEL if isinstance(self.kernel, str) else as_kernel(self.kernel)
        return KernelFactMemory(kernel, settings, self.hears_label, *size)
