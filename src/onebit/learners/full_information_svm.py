"""BanditSVM with full information."""

import math
from collections.abc import Iterator
from typing import ClassVar, Self

from onebit.bounds import BOUNDS, Claim
from onebit.learners.bandit_svm import BanditSVM


class FullInformationSVM(BanditSVM):
    """The floor under `BanditSVM`: every answer is the label itself, so every round proves a fact for every class.

    Its feedback is the label itself: ``tell(guess, correct, label=…)``. It shows what bandit feedback costs: its
    mistakes are those made without any need to explore.

    Parameters
    ----------
    kernel, C, exploration, scale, budget, replays, exclusive, classes, seed
        As for `BanditSVM`; "auto" is True, since the answers give the label.

    Notes
    -----
    Guarantee:
    With ``kernel=None``, ``C=math.inf`` and ``scale=None`` at most ⌊4(R/γ)²⌋ mistakes in every run, on examples that
    are strongly separable with margin γ within radius R, with any exploration, if every answer comes before the next
    guess: a mistake proves a fact whose margin is 0 or less, or, guarded, two that together lack as much. With one
    kernel it is the same in that kernel's space, until the budget is full. The defaults promise nothing: no proof
    covers a vote of several kernels, scaled columns are other rows, and a soft margin may forget. It holds with known
    rounds (`learn_from`), which are examples too; and with `among` and added classes, as long as the right label of
    every round is already a class, and allowed.

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
        """Yield the default and the linear one."""
        yield cls(budget=40)
        yield cls(None, C=math.inf, scale=None, budget=40)
