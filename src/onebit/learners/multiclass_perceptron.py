"""Algorithm 3 of the paper: the Multiclass Perceptron, with full information."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from onebit.bounds import BOUNDS, Claim
from onebit.engine.jit import jit_inline
from onebit.engine.loop import clear, highest
from onebit.engine.state import Scratch, State
from onebit.game import Answer
from onebit.kernels import Multinomial
from onebit.learners.base import Learner
from onebit.learners.exploring import mostly_highest, write_chances
from onebit.spaces import Rule, space_for


@dataclass(eq=False, repr=False)
class MulticlassPerceptron(Learner):
    """The full-information floor: on a mistake the right class gains x and the guessed one, the highest, loses it.

    Its feedback is the label itself: ``tell(guess, correct, label=…)``. It shows what bandit feedback costs.

    Parameters
    ----------
    kernel : None, Kernel or callable
        None for the linear space.

    Notes
    -----
    Guarantee: At most ⌊2(R/γ)²⌋ mistakes, always, on examples that are weakly separable with margin γ within radius R
    (Theorem 10). With late feedback it bounds the updates: late feedback leads to an update only if the class that is
    highest by then is wrong.

    Examples
    --------
    >>> learner = MulticlassPerceptron(classes=["left", "right"])
    >>> guess = learner.guess([1.0, 0.0])
    >>> learner.tell(guess, correct=False, label="right")
    >>> learner.guess([1.0, 0.0]).label
    'right'

    References
    ----------
    Crammer, Singer (2003). Ultraconservative online algorithms for multiclass problems. JMLR 3.
    Beygelzimer et al. (2019). ICML. Algorithm 3, Theorem 10.
    """

    full_information: ClassVar[bool] = True

    kernel: Any = None

    def _new_state(self) -> State:
        return space_for(self.kernel, RULE, (0.0,), self.n_features_in_, len(self.classes_))

    def promise(self, *, n_classes: int, n_features: int, radius: float, margin: float) -> tuple[Claim, ...]:
        """Return Theorem 10: M ≤ ⌊2(R/γ)²⌋ mistakes, each with one update. A strong margin is a weak one too."""
        mistakes = BOUNDS["10"].claim(radius=radius, margin=margin)
        return mistakes, replace(mistakes, about="updates")

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls()
        yield cls(Multinomial(3, normalize=True))


@jit_inline
def _learn(answer: Answer, scratch: Scratch, _settings: Any) -> bool:
    # With immediate feedback this is the guessed label. With late feedback, Theorem 10 bounds mistakes of the current
    # weights.
    best = highest(scratch.current)
    if best == answer.truth:
        return False
    clear(scratch.gains)  # the update of Algorithm 3
    scratch.gains[answer.truth] = 1.0
    scratch.gains[best] = -1.0
    return True


RULE = Rule(f"{__name__}:RULE", mostly_highest, write_chances, _learn, _learn, full_information=True)
