"""Any scikit-learn classifier as a learner."""

import copy
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, clone, is_classifier

from onebit.engine.algorithm import highest
from onebit.engine.state import grown
from onebit.game import Answer, Guess
from onebit.import_paths import find_by_import_path, is_import_path
from onebit.inputs import Floats, Rows, check_choice, check_number, dense
from onebit.learners.base import Learner

_FIRST_CAPACITY = 16  # doubled when full
_MOST_AT_ONCE = 100
_NOT_PUBLIC = ("tests", "conftest", "externals", "experimental")


@dataclass(eq=False, repr=False)
class Wrapped(Learner):
    """One copy of a scikit-learn classifier for every label, which predicts whether that label is right; ε-greedy.

    A right answer is an example for its label's copy and a counter-example for all others; a wrong one is a
    counter-example for the label that was guessed. The label with the highest `decision_function` (`predict_proba`
    where there is none) is guessed, or with probability `exploration` one drawn uniformly. Until a label has been both
    right and wrong its score is the share (or log odds) of right answers, one more of each counted. It is slow: it
    plays in Python, keeps every answered row, and makes sparse rows dense. Columns are not scaled.

    Guarantee: None. Known rounds (`learn_from`) are used like the learner's own.

    It is saved without pickle: the file holds the rows, and loading refits on them, which takes as long as before. So
    the classifier must be deterministic given its `random_state`. One that is not given by name must be `trusted` when
    it is loaded, with every class in its settings (a forest holds a tree).

    Parameters
    ----------
    estimator : classifier, str, optional
        A scikit-learn classifier; it is cloned, and a `random_state` of None is set from the seed. Or the import path
        of a scikit-learn class, such as ``"sklearn.ensemble:RandomForestClassifier"``, used with its defaults. By
        default ``SGDClassifier(loss="log_loss")``.
    exploration : float
        How often a label is drawn uniformly: in [0, 1].
    refit : {"partial", "geometric"}
        "partial" passes new rows to `partial_fit`, in batches of a tenth of the rows so far (1 to 100 rows).
        "geometric" refits all copies whenever the number of rows has grown by a quarter: for forests and others without
        `partial_fit`.

    Examples
    --------
    >>> import onebit
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = onebit.streams.paper_strong(rounds=300, seed=1)
    >>> trace = onebit.play(Wrapped(GaussianNB(), exploration=0.1), X, y, seed=1)
    >>> trace.mistakes < 150
    True

    References
    ----------
    Cortes (2018). Adapting multi-armed bandits policies to contextual bandits scenarios. arXiv 1811.04383 (one binary
    classifier for every choice, ε-greedy).
    """

    estimator: Any = None
    exploration: float = 0.05
    refit: str = "partial"
    _poor_score: ClassVar[bool] = True  # it depends on the classifier, and columns are not scaled

    # The four methods of a learner.

    def _start(self) -> None:
        self._rate = check_number("exploration", self.exploration, at_least=0.0, at_most=1.0)
        self._is_partial = check_choice("refit", self.refit, ("partial", "geometric")) == "partial"
        self._blank = self._new_estimator()
        if self._is_partial and not hasattr(self._blank, "partial_fit"):
            remedy = f'{self._blank!r:.80} has none: say refit="geometric"'
            raise ValueError(f'refit="partial" needs a classifier with partial_fit; {remedy}')
        self._models: list[Any] = [None] * len(self.classes_)
        self._size = self._learned_size = 0
        self._rows = np.zeros((0, self.n_features_in_))
        self._labels_heard, self._right = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)

    def _new_estimator(self) -> Any:
        given: Any = self.estimator
        if given is None:
            given = _gradient_descent()(loss="log_loss")
        blank = _named_classifier(given) if isinstance(given, str) else given
        if isinstance(blank, type) or not hasattr(blank, "get_params") or not is_classifier(blank):
            raise ValueError(f"estimator must be a classifier of scikit-learn's kind; got {given!r:.80}")
        blank = clone(blank)
        seeds = {name: self._key % 2**31 for name, value in blank.get_params().items() if value is None}
        return blank.set_params(**{name: seed for name, seed in seeds.items() if name.endswith("random_state")})

    def _choose(self, row: Rows, round: int) -> tuple[int, bool, float]:
        propensities, number, n = self._probabilities(row), self._draw(round), len(self.classes_)
        explored = number < self._rate
        label = min(int(number / self._rate * n), n - 1) if explored else int(np.argmax(propensities))
        return label, explored, float(propensities[label])

    def _probabilities(self, row: Rows) -> Floats:
        propensities = np.full(len(self.classes_), self._rate / len(self.classes_))
        propensities[highest(self._scores(dense(row)))] += 1.0 - self._rate
        return propensities

    def _update(self, guess: Guess, answer: Answer) -> bool:
        return self._learn(guess.row, answer.label, answer.correct)

    def _learn_from_log(self, row: Rows, answer: Answer, propensity: float | None) -> bool:
        return self._learn(row, answer.label, answer.correct)

    def _add_class(self) -> None:
        self._models = [*self._models, None]
        self._models[-1] = self._fitted(len(self._models) - 1, 0, self._learned_size)

    # The stored rows, and fitting on them.

    def _learn(self, row: Rows, label: int, correct: bool) -> bool:
        n = self._size
        if n == len(self._right):
            room = max(_FIRST_CAPACITY, 2 * n)
            self._rows = grown(self._rows, (room, self._rows.shape[1]))
            self._labels_heard, self._right = grown(self._labels_heard, (room,)), grown(self._right, (room,))
        self._rows[n], self._labels_heard[n], self._right[n] = dense(row)[0], label, correct
        learned = self._learned_size
        more = max(1, min(learned // 10, _MOST_AT_ONCE)) if self._is_partial else max(1, learned // 4)
        if n + 1 >= learned + more:
            try:
                models = [self._fitted(i, learned, n + 1) for i in range(len(self._models))]
            except BaseException:
                self._rows[n], self._labels_heard[n], self._right[n] = 0.0, 0, False
                raise
            self._models, self._learned_size = models, n + 1
        self._size = n + 1
        return True

    def _fitted(self, i: int, start: int, stop: int) -> Any:
        """Return label i's copy of the classifier, fitted on the rows up to `stop`."""
        model = self._models[i] if self._is_partial else None
        # An unfitted copy gets all rows; it is first fitted when its label has been both right and wrong.
        places, answers = self._known_of(i, start if model is not None else 0, stop)
        if model is None and (not len(answers) or answers.min() == answers.max()):
            return None
        if not len(answers):
            return model
        model = clone(self._blank) if model is None else copy.deepcopy(model)
        if self._is_partial:
            model.partial_fit(self._rows[places], answers, classes=[0, 1])
        else:
            model.fit(self._rows[places], answers)
        return model

    def _known_of(self, i: int, start: int, stop: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the positions of the rows for which it is known whether label i is right, and whether it is."""
        is_own, is_right = self._labels_heard[start:stop] == i, self._right[start:stop]
        places = np.flatnonzero(is_own | is_right)
        return places + start, (is_own & is_right)[places].astype(np.int64)

    def _scores(self, rows: Floats) -> Floats:
        scores = np.empty(len(self._models))
        has_margins = hasattr(self._blank, "decision_function")
        for i, model in enumerate(self._models):
            if model is None:
                answers = self._known_of(i, 0, self._size)[1]
                right, wrong = answers.sum() + 1.0, len(answers) - answers.sum() + 1.0
                scores[i] = math.log(right / wrong) if has_margins else right / (right + wrong)
            elif type(model).decision_function is _gradient_descent().decision_function if has_margins else False:
                scores[i] = model.coef_[0] @ rows[0] + model.intercept_[0]  # decision_function without its input checks
            elif has_margins:
                scores[i] = model.decision_function(rows)[0]
            else:
                scores[i] = model.predict_proba(rows)[0, 1]
        if not np.isfinite(scores).all():
            raise ValueError(f"the classifier's scores of these features are NaN or infinite: {scores!r:.80}")
        return scores

    def _keep(self) -> dict[str, Any]:
        n = self._size
        return {"rows": self._rows[:n], "labels": self._labels_heard[:n], "right": self._right[:n]}

    def _take_back(self, kept: dict[str, Any]) -> None:
        """Refit on the rows of a file, in the same batches."""
        rows, labels, right = (np.asarray(kept[name]) for name in ("rows", "labels", "right"))
        fits = [rows.dtype, labels.dtype, right.dtype] == [np.float64, np.int64, np.bool_] and right.ndim == 1
        if not fits or rows.shape != (len(right), self.n_features_in_) or labels.shape != right.shape:
            raise ValueError("the rows that its classifier learned from do not fit")
        if not (np.isfinite(rows).all() and np.isin(labels, np.arange(len(self.classes_))).all()):
            raise ValueError("a row that its classifier learned from is no number, or has a label beyond the classes")
        for n in range(len(right)):
            self._learn(rows[n : n + 1], int(labels[n]), bool(right[n]))


def _named_classifier(path: str) -> Any:
    """Return a public scikit-learn classifier by import path, which may come from an untrusted file."""
    parts, found = path.partition(":")[0].split("."), None
    is_public = is_import_path(path) and not any(part.startswith("_") or part in _NOT_PUBLIC for part in parts)
    if is_public and parts[0] == "sklearn":
        found = find_by_import_path(path, "estimator")
    # Checked to be scikit-learn's own before it is called: a module also exposes what it imports.
    if not (isinstance(found, type) and found.__module__.startswith("sklearn.") and issubclass(found, ClassifierMixin)):
        raise ValueError(
            f"estimator must be a classifier, or the import path of one of scikit-learn's, such as "
            f'"sklearn.ensemble:RandomForestClassifier"; got {path!r:.80}'
        )
    try:
        return found()
    except TypeError as error:
        raise ValueError(f"estimator {path} must be given itself, with its settings: {error}") from error


def _gradient_descent() -> Any:
    from sklearn.linear_model import SGDClassifier  # slow to import

    return SGDClassifier
