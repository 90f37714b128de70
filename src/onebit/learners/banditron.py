"""Banditron: the baseline of the paper's experiments."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from onebit.engine.jit import jit_inline
from onebit.engine.loop import highest
from onebit.engine.state import Scratch, State
from onebit.game import Answer
from onebit.inputs import check_number
from onebit.kernels import Polynomial
from onebit.learners.base import Learner
from onebit.learners.exploring import chance_of, mostly_highest, n_allowed, write_chances
from onebit.spaces import Rule, space_for


@dataclass(eq=False, repr=False)
class Banditron(Learner):
    """The multiclass perceptron with uniform exploration and importance weights.

    The label with the highest score loses x; if the label that was played is right, it gains x divided by the
    probability it had. With probability `exploration` the label played is drawn uniformly.

    Parameters
    ----------
    exploration : float
        How often a label is drawn uniformly: in (0, 1].
    kernel : None, Kernel or callable
        None for the linear space. With a kernel nearly every round stores an example (right guesses gain x·(1/p − 1)),
        so time grows with the square of the rounds.

    Notes
    -----
    Guarantee: O(√T) expected mistakes on T weakly separable rounds, with exploration of order 1/√T.

    Examples
    --------
    >>> learner = Banditron(exploration=0.3, classes=3, seed=4)
    >>> learner.probabilities([1.0, 0.0]).round(3)
    array([0.8, 0.1, 0.1])

    References
    ----------
    Kakade, Shalev-Shwartz, Tewari (2008). Efficient bandit algorithms for online multiclass prediction. ICML.
    """

    exploration: float = 0.05
    kernel: Any = None
    # One pass over the 300 rows of scikit-learn's check gives 79 to 91 % accuracy, depending on the draws; it asks
    # for 83 %.
    _poor_score: ClassVar[bool] = True

    def _new_state(self) -> State:
        settings = (check_number("exploration", self.exploration, above=0.0, at_most=1.0),)
        return space_for(self.kernel, RULE, settings, self.n_features_in_, len(self.classes_))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(exploration=0.05)
        yield cls(exploration=1.0)
        yield cls(exploration=0.2, kernel=Polynomial(2))


@jit_inline
def _learn(answer: Answer, scratch: Scratch, settings: Any) -> bool:
    scores, gains, label = scratch.scores, scratch.gains, answer.label
    greedy = highest(scores) if answer.explored else label  # an unexplored guess was the greedy one
    for i in range(gains.shape[0]):
        gains[i] = -1.0 if i == greedy else 0.0
    if answer.correct:
        # Dividing by the propensity makes the step unbiased, however rarely the label is played.
        gains[label] += 1.0 / chance_of(label == greedy, settings[0], n_allowed(scores))
    return True


@jit_inline
def _learn_logged(answer: Answer, scratch: Scratch, _settings: Any) -> bool:
    gains, greedy = scratch.gains, highest(scratch.current)
    for i in range(gains.shape[0]):
        gains[i] = -1.0 if i == greedy else 0.0
    if answer.correct:
        gains[answer.label] += 1.0 / answer.propensity
    return True


RULE = Rule(
    f"{__name__}:RULE", mostly_highest, write_chances, _learn, _learn_logged, divides_by_chances=True, always_draws=True
)
