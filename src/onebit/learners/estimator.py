"""The scikit-learn estimator protocol, without importing scikit-learn.

Importing ``sklearn.base`` takes longer than the rest of onebit together, so the few methods that scikit-learn's tools
ask for (`clone`, pipelines, model selection) are written here, and scikit-learn is imported when one of them calls.
"""

import inspect
from typing import Any, Self

import numpy as np


class Estimator:
    """Settings by name: the constructor stores its arguments untouched, under their own names."""

    _estimator_type = "classifier"

    @classmethod
    def _setting_names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name; `deep` is there for scikit-learn and changes nothing."""
        return {name: getattr(self, name) for name in self._setting_names()}

    def set_params(self, **settings: Any) -> Self:
        """Replace settings by name; they count from the next fresh start."""
        for name, value in settings.items():
            if name not in self._setting_names():
                raise ValueError(
                    f"{type(self).__name__} has no setting {name!r}; it has {', '.join(self._setting_names())}"
                )
            setattr(self, name, value)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows that `predict` gets right."""
        predicted: Any = self.predict(X)  # type: ignore[attr-defined]
        return float(np.average(predicted == np.asarray(y), weights=sample_weight))

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

        class Classifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
            pass

        tags = Classifier().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
