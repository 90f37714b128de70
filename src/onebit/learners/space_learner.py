"""Learned attributes of a learner with scores: weights, or examples with coefficients."""

from onebit.inputs import Floats
from onebit.kernels import Linear
from onebit.learners.base import Learner


class SpaceLearner(Learner):
    """A learner whose state is a `Space`.

    Attributes
    ----------
    weights_ : array of shape (K, n_features)
        The weight vector of each class; without a kernel only.
    support_, coefficients_ : arrays of shapes (n, n_features) and (n, K)
        The stored examples and how much of each every class has gained; with a kernel only.
    """

    @property
    def weights_(self) -> Floats:
        """One weight vector per class."""
        return self._learned_array("weights", "kernel=None")

    @property
    def support_(self) -> Floats:
        """The stored examples."""
        return self._learned_array("support", "a kernel")

    @property
    def coefficients_(self) -> Floats:
        """How much of each stored example every class has gained."""
        return self._learned_array("coefficients", "a kernel")

    def _learned_array(self, name: str, with_what: str) -> Floats:
        if not self._started or name not in (arrays := self.learned()):
            raise AttributeError(f"{name}_ is there once {type(self).__name__} has played with {with_what}")
        return arrays[name]


def in_linear_space(learner: Learner) -> bool:
    """Return whether a margin in R^d is also one in the learner's space, so that its promise applies."""
    kernel = getattr(learner, "kernel", None)
    # A bank of kernels, by name or as a list, promises what its linear kernel does, or nothing.
    return kernel is None or isinstance(kernel, (Linear, str, list, tuple))
