"""The scikit-learn API of a learner: `fit`, `predict` and what scikit-learn's tools need."""

from abc import ABC, abstractmethod
from collections.abc import KeysView, ValuesView
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import validate_data

from onebit.inputs import Floats
from onebit.labels import check_labels, positions

if TYPE_CHECKING:

    class _Classifier:
        # scikit-learn has no type hints: the part of its two base classes that is used here.
        feature_names_in_: npt.NDArray[Any]

        @classmethod
        def _get_param_names(cls) -> list[str]: ...
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...
        def _repr_html_(self) -> str: ...

else:

    class _Classifier(ClassifierMixin, BaseEstimator):
        pass


class Estimator(_Classifier, ABC):
    """A scikit-learn classifier whose `fit` plays one pass over the rows.

    It has no `predict_proba`: scores are not class probabilities, and `probabilities` are the propensities of a
    *guess*, which explores. For class probabilities wrap it in `sklearn.calibration.CalibratedClassifierCV`, which
    learns them from rows with known labels.
    """

    classes_: npt.NDArray[Any]

    @abstractmethod
    def play_stream(self, X: Any, y: Any, *, fresh: bool = True, classes: Any = None) -> Any:
        """Play a whole stream."""

    @abstractmethod
    def score_classes(self, X: Any) -> Floats:
        """Return the score of every row (first axis) for every class (second axis)."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name. Classes that are a dictionary's keys are a list here: keys cannot be copied."""
        settings = super().get_params(deep)
        return {
            name: list(value) if isinstance(value, (KeysView, ValuesView)) else value
            for name, value in settings.items()
        }

    def fit(self, X: Any, y: Any) -> Self:
        """Reset, then play one pass over the rows of X; y is used only to answer right or wrong."""
        self.play_stream(X, y)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Play on over more rows. `classes` must name every label on the first call if the constructor did not."""
        self.play_stream(X, y, fresh=False, classes=classes)
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return finite scores, as scikit-learn's tools expect them: of shape (rows,) for two classes.

        For two classes it is the second's score minus the first's; otherwise the score of every row (first axis) for
        every class (second axis). A class with a score of −∞ gets the lowest float.
        """
        scores = self.score_classes(X)
        if scores.shape[1] == 2:
            with np.errstate(over="ignore", invalid="ignore"):  # inf − inf gives NaN
                scores = scores[:, 1] - scores[:, 0]
        return np.nan_to_num(scores)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class with the highest score for every row, without exploring or learning."""
        best = np.argmax(self.score_classes(X), axis=1)
        labels: npt.NDArray[Any] = self.classes_[best]
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of `predict`, for labels of any type (accuracy_score accepts few)."""
        guesses = np.argmax(self.score_classes(X), axis=1)
        truth = positions(check_labels(y, len(guesses)), self.classes_)
        return float(np.average(guesses == truth, weights=sample_weight))

    def _check_columns(self, X: Any, *, reset: bool) -> None:
        """Store the column names, or check X against the stored ones."""
        if type(X) is np.ndarray and "feature_names_in_" not in vars(self):
            return  # no names on either side: saves scikit-learn's check, 20 µs
        try:
            validate_data(self, X, reset=reset, skip_check_array=True, ensure_2d=False)
        except (TypeError, ValueError) as error:
            remedy = "" if reset else f" Give them in that order: X[{self.feature_names_in_.tolist()!r:.200}]"
            raise ValueError(f"X has other columns. {error}{remedy}") from error

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
