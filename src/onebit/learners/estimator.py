"""The scikit-learn face of a learner, without importing scikit-learn.

Importing ``sklearn.base`` takes longer than the rest of onebit together, so the few methods that scikit-learn's tools
ask for (`clone`, pipelines, model selection) are written here, and scikit-learn is imported when one of them calls.
"""

import inspect
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from onebit.inputs import Floats, check_labels


class Estimator(ABC):
    """Settings by name: the constructor stores its arguments untouched, under their own names."""

    _estimator_type = "classifier"

    classes_: npt.NDArray[Any]

    @classmethod
    def _setting_names(cls) -> list[str]:
        parameters = inspect.signature(cls.__init__).parameters.values()
        # A class without a constructor of its own inherits one that takes anything, and has no settings.
        return [
            each.name
            for each in parameters
            if each.name != "self" and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        ]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name; `deep` is there for scikit-learn and changes nothing."""
        return {name: getattr(self, name) for name in self._setting_names()}

    def set_params(self, **settings: Any) -> Self:
        """Replace settings by name; they count from the next fresh start, and leave a run under way alone."""
        for name, value in settings.items():
            if name not in self._setting_names():
                raise ValueError(
                    f"{type(self).__name__} has no setting {name!r}; it has {', '.join(self._setting_names())}"
                )
            setattr(self, name, value)
        return self

    @abstractmethod
    def play_stream(self, X: Any, y: Any, *, fresh: bool = True, classes: Any = None) -> Any:
        """Play a whole stream."""

    @abstractmethod
    def decision_function(self, X: Any) -> Floats:
        """Return the score of every row (first axis) for every class (second axis)."""

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything, then play the game over the rows of X; y is used only to answer right or wrong."""
        self.play_stream(X, y)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Play on over more rows. `classes` must name every label on the first call if the constructor did not."""
        self.play_stream(X, y, fresh=False, classes=classes)
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class with the highest score for every row: no exploring, no learning."""
        scores = self.decision_function(X)
        best: npt.NDArray[Any] = self.classes_[np.argmax(scores, axis=1)]
        return best

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows that `predict` gets right."""
        guesses = self.predict(X)
        return float(np.average(guesses == check_labels(y, len(guesses)), weights=sample_weight))

    def __repr__(self) -> str:
        parameters = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if type(value) is not type(parameters[name].default) or value != parameters[name].default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator, ClassifierMixin

        # Their tags, whatever they are in the version at hand.
        class Classifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
            pass

        tags = Classifier().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
