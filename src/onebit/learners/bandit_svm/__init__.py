"""BanditSVM: keep what answers prove, and the largest-margin separators consistent with it.

`bank` has its arrays, and loops that several use; `separators` what answers prove, separators consistent with it, and
the store of examples; `guesses` makes one guess of members, guard and regressions; `rounds` scores a row and learns
from an answer; `state` calls that compiled code, and does what is rare.
"""

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt

from onebit.bounds import BOUNDS, Claim
from onebit.engine.state import State
from onebit.inputs import Floats, check_choice, check_integer, check_number
from onebit.kernels import Gaussian, Kernel, Laplace, Linear, Rational, as_kernel
from onebit.learners import run
from onebit.learners.bandit_svm import bank
from onebit.learners.bandit_svm.bank import Settings
from onebit.learners.bandit_svm.state import BankState
from onebit.learners.base import Learner

_LINEAR = Linear(normalize=True)
# On unit rows a Gaussian of width f^−½ is exp(−f(1−⟨x, x'⟩)): f = 1, 4, 16.
_GAUSSIANS = tuple(Gaussian(width, normalize=True) for width in (1.0, 0.5, 0.25))
_DEFAULT_BANK = (_LINEAR, *_GAUSSIANS, Laplace(), Laplace(sharpness=12.0))
# Beyond, the columns of a store would be too large: the linear kernel alone, which keeps entries.
_MOST_FEATURES = 10_000
_MOST = 2**31  # of examples and of replays: their products stay within the 64 bits of compiled code


class _Opinion(NamedTuple):
    """A member's opinion of a row: the label it would guess, its weight in the vote (all add up to 1), its scores."""

    kernel: Any
    label: Any
    weight: float
    scores: Floats


@dataclass(eq=False, repr=False)
class BanditSVM(Learner):
    """Keeps every proved fact that matters and, class by class, the largest-margin separators consistent with them.

    A right guess proves what x is and what it is not; a wrong one proves one thing it is not. The members of a bank,
    one for each kernel, learn from every fact. When one matters to the most trusted member its example is stored, each
    separator that it violates takes a step of dual coordinate ascent on it, and then steps on other facts of that
    class. The members vote; one counts the less the oftener its own opinion was wrong, and where the most trusted one
    is sure it guesses alone. Separators win early and on clean data. Beside them the default bank has two ridge
    regressions, which win on long noisy streams, and a mixture that learns from the answers when to follow which.
    Nothing needs tuning (docs/experiments/bandit-svm.md, docs/experiments/long-run.md).

    Guarantee: With ``exploration="guarded"`` (the default) and a bank, on examples that are strongly separable as they
    come with margin γ within radius R: at most 11 + 31(K−1)(mB + m − 1) expected mistakes, B = ⌊16(1 + 1/(2C))(R/γ)²⌋.
    m is 7 by default, six members and the linear guard beside them; with ``scale=None`` it is the number of members,
    and ``Linear(normalize=True)`` must be in the bank. Without a kernel (so by default beyond 10 000 features) this
    needs ``scale=None``, and m is 1. With ``kernel=None``, ``C=math.inf``, ``exploration="uniform"`` and ``scale=None``
    at most (K−1)⌊4(R/γ)²⌋; with one kernel in place of None the same in that kernel's space, R² = max k(x, x), until
    the budget is full; with several nothing is proved.

    Every answer must come before the next guess, and the right label must be a class already, and allowed. Where
    several labels may be right the bounds hold with ``exclusive=False``. The proofs, and what other settings, known
    rounds and added classes cost, are in docs/theory/bandit-svm.md.

    Parameters
    ----------
    kernel : "auto", None, Kernel, callable or list of them
        "auto" is a bank that suits most data: linear, three Gaussians and two Laplace kernels (`bank_` shows them), and
        two regressions. One is on the row (below 200 features, fewer with more than six classes), the other on its
        similarities with up to 300 landmarks. A list is a bank of your own, and one kernel a bank of one, both without
        regressions. None stands for ``Linear(normalize=True)``: alone it keeps weights, and of a sparse row only its
        entries, so rows may have any number of features. Beyond 10 000 features "auto" is that.
    C : float
        What a violated fact costs (squared slack); greater than 1e-300, ``math.inf`` for a hard margin. With a finite C
        facts may be wrong: guesses that become too bad for chance make the learner forget everything and start over.
    exploration : "guarded", "greedy", "uniform" or float
        "guarded" guesses the highest score, but gives up guesses that experience speaks against once they were wrong
        too often, and prefers classes of which little is known where scores are close: it has a guarantee. "greedy"
        always guesses the highest score, and can repeat a mistake for ever. "uniform" draws a label where every score
        is below 0, so that no class claims x, and has the best guarantee; a number is the chance of that.
    scale : "online" or None
        "online" standardises columns by the rows so far and adds a constant (sparse rows are not centred, but divided
        by the root mean square of each column); None takes rows as they are.
    budget : int
        The most examples stored. With d features, K classes, m members, and b kernels with values of their own, memory
        is at most 8·budget·(b·budget + 3d + 4mK) bytes, and for the regressions 4.2 MB + 2 400·d + 4 000·K bytes: 105
        MB for the default bank (b = 3, m = 6) with few features and classes. For None, b and m are 1, and d is the most
        entries of a row.
    replays : int
        How many further facts of a class take a step when one is violated: at most replays·budget/(examples stored),
        times the trust in that kernel; five times as many where the linear kernel is alone.
    exclusive : bool or "auto"
        Whether only one label can be right. True: a right guess proves that every other label is wrong, and of two
        classes one that is wrong proves the other. False: a guess proves something about its own label only. "auto"
        begins as True, and changes to False, for good, once guesses between two labels that both claim the row are
        right too often for only one of them to be.

    Attributes
    ----------
    weights_ : array of shape (K, n_features), or (K, n_features + 1) with the constant if columns are scaled
        The separators, for rows as the learner sees them, divided by their length; without a kernel only.
    support_, coefficients_ : arrays of shapes (n, n_features) and (n, K)
        The stored examples, as they came, and how much of each every class has gained; with a kernel only. Coefficients
        of a bank have shape (m, n, K).
    proved_ : array of shape (n, K)
        What is proved of each stored example: 1 where it is of that class, −1 where it is not, otherwise 0.
    bank_ : tuple
        The kernels that take part, one for each member.
    exclusive_ : bool
        Whether a right label is now taken to prove all others wrong.
    mixture_ : dict or None
        The mixture's weights now: of a constant, and of the scores that the vote and the two regressions give a label,
        and of these scores' leads over the best other label; None without regressions.

    Examples
    --------
    >>> import onebit
    >>> X, y = onebit.streams.paper_weak(rounds=10_000, seed=1)
    >>> learner = BanditSVM()
    >>> onebit.play(learner, X, y, seed=7).mistakes < 30
    True
    >>> len(learner.opinions(X[0]))
    6

    References
    ----------
    Beygelzimer, Pál, Szörényi, Thiruvenkatachari, Wei, Zhang (2019). Bandit multiclass linear classification: efficient
    algorithms for the separable case. ICML. Definition 1: strong separability.
    Hsieh, Chang, Lin, Keerthi, Sundararajan (2008). A dual coordinate descent method for large-scale linear SVM. ICML.
    Orabona, Keshet, Caputo (2009). Bounded kernel-based online learning. JMLR 10: projecting a removed example.
    Li, Chu, Langford, Schapire (2010). A contextual-bandit approach to personalized news article recommendation. WWW.
    Gama, Medas, Castillo, Rodrigues (2004). Learning with drift detection. SBIA: noticing that facts are out of date.
    """

    kernel: Any = "auto"
    _: KW_ONLY
    C: float = 10.0
    exploration: Any = "guarded"
    scale: str | None = "online"
    budget: int = 2000
    replays: int = 7
    exclusive: Any = True

    def promise(self, *, n_classes: int, n_features: int, radius: float, margin: float) -> tuple[Claim, ...]:
        """Return the expected mistakes on rows that are strongly separable as they come."""
        settings = self._checked_settings()
        members, softness = self._kernels(n_features), settings.softness
        numbers = {"n_classes": n_classes, "radius": radius, "margin": margin}
        has_linear = members != (_LINEAR,) if settings.scales else _LINEAR in members
        if settings.guarded and has_linear:
            n_members = len(members) + settings.scales
            return (BOUNDS["BanditSVM-guarded"].claim(**numbers, n_kernels=n_members, softness=softness),)
        if settings.mix > 0.0 and self._keeps_all(n_features):
            return (BOUNDS["BanditSVM"].claim(**numbers, exploration=settings.mix),)
        return ()

    def _keeps_all(self, n_features: int) -> bool:
        """Return whether nothing is forgotten: the linear kernel alone, a hard margin, rows as they come."""
        settings = self._checked_settings()
        return self._kernels(n_features) == (_LINEAR,) and not settings.scales and settings.softness == 0.0

    @property
    def bank_(self) -> tuple[Any, ...]:
        """The kernels that take part, one for each member."""
        return self._bank("bank_").kernels

    @property
    def mixture_(self) -> dict[str, float] | None:
        """The mixture's weights, by what they multiply; None without regressions."""
        mixture = self._bank("mixture_").arrays.mixture
        return dict(zip(bank.MIXED, mixture[bank.WEIGHTS].tolist(), strict=True)) if len(mixture) else None

    @property
    def exclusive_(self) -> bool:
        """Whether a right label is now taken to prove all others wrong."""
        return self._bank("exclusive_").is_exclusive

    @property
    def proved_(self) -> npt.NDArray[np.int8]:
        """What is proved of each of `support_`: 1 where it is of a class, −1 where it is not, otherwise 0."""
        with self._lock:
            now = self._bank("proved_")
            return np.sign(now.arrays.targets[:, : now.size].T).astype(np.int8)

    def _bank(self, wanted: str) -> BankState:
        """Return the state, with nothing due; `wanted` is what is asked for."""
        with self._lock:
            self._check_started(wanted)
            now = cast(BankState, self._state)
            now.do_what_is_due()
            return now

    def opinions(self, features: Any) -> list[_Opinion]:
        """Return every member's opinion of a row, the most trusted first."""
        with self._lock:
            bank = self._bank("opinions")
            opinions, trust = bank.opinions(self._row(features)), bank.trust.copy()
        found = [
            _Opinion(kernel, self.classes_[int(np.argmax(scores))], float(weight), scores)
            for kernel, weight, scores in zip(bank.kernels, trust / trust.sum(), opinions, strict=True)
        ]
        return sorted(found, key=lambda opinion: -opinion.weight)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls()
        yield cls(None)
        yield cls(budget=60, scale=None)
        yield cls(None, C=math.inf, scale=None)
        yield cls(None, C=math.inf, exploration="uniform", scale=None)
        yield cls(None, C=1.0, exploration=0.25, budget=20, replays=3)
        yield cls(Rational(normalize=True), C=math.inf, exploration="uniform", scale=None, budget=50)
        yield cls([Linear(), Gaussian()], exploration="greedy", budget=30)
        yield cls(exclusive=False, budget=60)

    def _checked_settings(self) -> Settings:
        # 1/(2C) is what the squared slack adds to the diagonal of the Gram matrix; C = ∞ adds nothing.
        is_hard = isinstance(self.C, float) and math.isinf(self.C) and self.C > 0.0
        if self.scale not in ("online", None):
            raise ValueError(f'scale must be "online" or None; got {self.scale!r}')
        if not isinstance(self.exclusive, bool) and self.exclusive != "auto":
            raise ValueError(f'exclusive must be True, False or "auto"; got {self.exclusive!r}')
        mix = 0.0
        if isinstance(self.exploration, str):
            check_choice("exploration", self.exploration, ("guarded", "greedy", "uniform"))
            mix = float(self.exploration == "uniform")
        elif isinstance(self.exploration, bool) or self.exploration != 0:
            mix = check_number("exploration", self.exploration, above=0.0, at_most=1.0)
        softness = 0.0 if is_hard else 0.5 / check_number("C", self.C, above=1e-300)
        return Settings(
            softness=softness,
            replays=check_integer("replays", self.replays, low=0, high=_MOST),
            budget=check_integer("budget", self.budget, low=1, high=_MOST),
            guarded=self.exploration == "guarded",
            mix=mix,
            scales=self.scale is not None,
            is_closed=not run.grows(self),
            full_information=self.full_information,
            exclusive=self.exclusive is not False,
            finds_out=self.exclusive == "auto" and not self.full_information,
        )

    def _kernels(self, n_features: int) -> tuple[Kernel, ...]:
        """Return the members of the bank."""
        if isinstance(self.kernel, str):
            if self.kernel != "auto":
                raise ValueError(
                    "kernel must be 'auto', None, a kernel such as onebit.kernels.Gaussian(0.5), a function or a list "
                    f"of them; got {self.kernel!r}"
                )
            return _DEFAULT_BANK if n_features <= _MOST_FEATURES else (_LINEAR,)
        kernels = self.kernel if isinstance(self.kernel, (list, tuple)) else [self.kernel]
        if not kernels:
            raise ValueError("kernel must name at least one kernel; got an empty list")
        bank = tuple(as_kernel(_LINEAR if kernel is None else kernel) for kernel in kernels)
        for k, kernel in enumerate(bank):
            if kernel in bank[:k]:
                raise ValueError(f"kernel must name each kernel once; got {kernel!r} twice")
            if self.scale is not None and isinstance(kernel, Rational) and not kernel.normalize:
                raise ValueError(
                    'kernel must take rows of any length with scale="online"; got Rational(). '
                    "Use Rational(normalize=True), or scale=None"
                )
        return bank

    def _new_state(self) -> State:
        kernels, settings = self._kernels(self.n_features_in_), self._checked_settings()
        has_regressions = isinstance(self.kernel, str) and len(kernels) > 1
        return BankState(kernels, settings, self.n_features_in_, len(self.classes_), has_regressions)


class FullInformationSVM(BanditSVM):
    """The floor under `BanditSVM`: every answer is the label itself, so every round proves a fact for every class.

    Its feedback is the label itself: ``tell(guess, correct, label=…)``. It shows what bandit feedback costs.

    Guarantee: With ``kernel=None``, ``C=math.inf`` and ``scale=None`` at most ⌊4(R/γ)²⌋ mistakes in every run, on
    examples that are strongly separable with margin γ within radius R, with any exploration, if every answer comes
    before the next guess, and the right label is already a class, and allowed. With one kernel it is the same in that
    kernel's space, until the budget is full. The defaults promise nothing: no proof covers a vote of several kernels,
    scaled columns are other rows, and a soft margin may forget. The proof is in docs/theory/bandit-svm.md.

    Parameters
    ----------
    kernel, C, exploration, scale, budget, replays, exclusive
        As for `BanditSVM`; "auto" is True, since the answers give the label.

    Examples
    --------
    >>> learner = FullInformationSVM(classes=["left", "right"])
    >>> guess = learner.guess([1.0, 0.0])
    >>> learner.tell(guess, correct=False, label="right")
    >>> learner.guess([1.0, 0.0]).label
    'right'

    References
    ----------
    Hsieh, Chang, Lin, Keerthi, Sundararajan (2008). A dual coordinate descent method for large-scale linear SVM. ICML.
    """

    full_information: ClassVar[bool] = True

    def promise(self, *, n_classes: int, n_features: int, radius: float, margin: float) -> tuple[Claim, ...]:
        """Return ⌊4(R/γ)²⌋ mistakes, where nothing can be forgotten: no kernel, a hard margin, unscaled rows."""
        if not self._keeps_all(n_features):
            return ()
        return (BOUNDS["FullInformationSVM"].claim(n_classes=n_classes, radius=radius, margin=margin),)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(budget=40)
        yield cls(None, C=math.inf, scale=None, budget=40)
