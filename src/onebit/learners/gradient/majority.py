"""The label that was right most often, whatever the features: what a learner must beat to have learned from them."""

from typing import Any

from onebit.engine.state import State
from onebit.inputs import check_number
from onebit.learners.base import Learner
from onebit.learners.gradient.weights import MAJORITY, GradientState, Numbers


class Majority(Learner):
    """Guesses the label that was right in the largest share of the rounds in which it was tried.

    The share is (right + 1)/(tried + 1), as if every label had been right once before: so each label is tried, in the
    order of the classes, before any that has failed is tried again. With probability `exploration` the label is drawn
    uniformly, so that the commonest label is not missed forever after a bad start. Features are checked, and ignored.

    Parameters
    ----------
    exploration : float
        How often a label is drawn uniformly: in [0, 1].
    classes : None, int or list
        The labels, or how many; `play` and `fit` infer them from y.
    seed : int
        Seed of the learner's random numbers.

    Notes
    -----
    Guarantee:
    None. If labels are drawn independently and exploration is above 0, every share converges to its label's frequency,
    and the guesses to the commonest label. An added class is tried next. Known rounds (`learn_from`) count as tried;
    with `among` the best of the allowed labels is guessed.

    Attributes
    ----------
    tried_, right_ : arrays of shape (K,)
        How often each label was tried, and how often it was right then.

    Examples
    --------
    >>> learner = Majority(exploration=0, classes=["no", "yes"])
    >>> for answer in (False, True):
    ...     learner.tell(learner.guess([0.0]), correct=answer)
    >>> learner.guess([0.0]).label, learner.tried_.tolist(), learner.right_.tolist()
    ('yes', [1.0, 1.0], [0.0, 1.0])

    References
    ----------
    Sutton, Barto (2018). Reinforcement learning: an introduction. MIT Press. Sections 2.2 and 2.6: ε-greedy shares,
    optimistic at first.
    """

    def __init__(self, exploration: float = 0.05, *, classes: Any = None, seed: int = 0) -> None:
        self.exploration = exploration
        self.classes = classes
        self.seed = seed

    def _new_state(self) -> State:
        rate = check_number("exploration", self.exploration, at_least=0.0, at_most=1.0)
        return GradientState(Numbers(MAJORITY, rate, 0.0, 0.0), self.n_features_in_, len(self.classes_))

    @property
    def tried_(self) -> Any:
        """How often each label was tried."""
        return self.learned()["tried"]

    @property
    def right_(self) -> Any:
        """How often each label was right when it was tried."""
        return self.learned()["right"]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # it ignores the features
        return tags
