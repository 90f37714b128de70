"""Learners with one weight vector per class, whatever else they keep."""

from onebit.inputs import Floats
from onebit.learners.base import Learner


class WeightLearner(Learner):
    """A learner with one weight vector per class.

    Attributes
    ----------
    weights_ : array of shape (K, n_features)
        The weight vector of each class.
    """

    @property
    def weights_(self) -> Floats:
        """One weight vector per class."""
        if not self._started:
            raise AttributeError(f"weights_ is there once {type(self).__name__} has played")
        return self.learned()["weights"]
