"""BanditSVM's full-information twin: the same learner, told every label."""

from collections.abc import Iterator
from typing import ClassVar, Self

from onebit.learners.bandit_svm import BanditSVM
from onebit.learners.base import Promise


class FullInformationSVM(BanditSVM):
    """The floor under `BanditSVM`: every answer is the label itself, so every round proves a fact for every class.

    It plays another game: ``tell(guess, correct, label=…)``. It is here to show what bandit feedback costs; its mistakes
    are what is left when nothing needs exploring.

    Parameters
    ----------
    kernel, C, exploration, budget, replays, classes, seed
        As for `BanditSVM`.

    Guarantee
    ---------
    At most ⌊4(R² + 1/(2C))/γ²⌋ mistakes, always, under the conditions of `BanditSVM`'s guarantee and with any
    exploration: each mistake proves a fact with margin 0 or less.

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

    hears_label: ClassVar[bool] = True

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield the default and the linear one."""
        yield cls()
        yield cls(None, budget=40)
