"""What a learner takes beside its own rounds: new classes, and rounds whose outcome is already known."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from onebit.inputs import Floats, Integers, check_real, check_rows, take
from onebit.labels import check_classes, check_labels, encode_labels, infer_classes
from onebit.learners.run import Run
from onebit.machine_memory import claim_memory

_LEAST_CHANCE = 2.0**-1000  # the reciprocal of less may overflow


def check_list(name: str, among: Any) -> npt.NDArray[Any]:
    """Return a list of labels as an array; raise ValueError if it is not a list or is empty."""
    if isinstance(among, (str, bytes)) or not isinstance(among, Iterable):
        raise ValueError(f"{name} must be a list of labels; got {among!r}")
    labels = list(among)
    if not labels:
        raise ValueError(f"{name} must have at least one label; got none")
    return check_labels(labels, len(labels), name)


def _check_answers(correct: Any, n: int) -> npt.NDArray[np.bool_]:
    answers = np.asarray(correct)
    if answers.dtype.kind != "b" or answers.shape not in ((), (n,)):
        raise ValueError(f"correct must be True or False for each of the {n} rounds; got {correct!r:.80}")
    return np.broadcast_to(answers, (n,))


def _check_chances(propensities: Any, n: int) -> Floats:
    chances = check_real(propensities, "propensities").astype(np.float64)
    if chances.shape not in ((), (n,)):
        raise ValueError(f"propensities must have {n} entries, one for each round; got shape {chances.shape}")
    wrong = ~((chances > _LEAST_CHANCE) & (chances <= 1.0))
    if wrong.any():
        raise ValueError(
            f"propensities must be above 0 (above {_LEAST_CHANCE:.1g}) and at most 1; got {chances[wrong].flat[0]:g}"
        )
    return np.broadcast_to(chances, (n,))


_LET_IT_JOIN = "list it in classes=, or let it join a run that has begun: add_class"


class Taught(Run):
    """Adds classes and learns from known rounds."""

    # New labels.

    def add_class(self, label: Any) -> None:
        """Add a label to the classes; it can be guessed from the next round on.

        The learner keeps its state and its open tickets. Its guarantee starts anew from here, for the larger number of
        classes and for rounds in which every label, including the new one, could be the right one.

        Parameters
        ----------
        label : object
            A label that is not among the classes yet.
        """
        with self._lock:
            if not self._started:
                raise ValueError(
                    f"label {label!r} can join when a run has begun: until then put it into the setting, "
                    'classes=[…], or guess with classes="grow" and among=[…]'
                )
            if any(type(own) is type(label) and own == label for own in self._labels):
                raise ValueError(f"label {label!r:.80} is one of the classes already")
            self._join([label])

    def _join(self, labels: list[Any]) -> None:
        """Add labels, all or none of them."""
        wider = check_classes([*self._labels, *labels])
        claim_memory(self.n_bytes() * len(wider) / len(self._labels))
        with self.all_or_nothing(fresh=False):
            for n in range(len(self._labels) + 1, len(wider) + 1):
                self.classes_ = wider[:n]
                self._labels = self.classes_.tolist()
                self._state.add_class()

    def _positions(self, among: Any) -> Integers:
        """Return the positions of allowed labels, in the order of the classes."""
        labels = check_list("among", among)
        if len(labels) > len(self.classes_):
            raise ValueError(
                f"among must list some of the {len(self.classes_)} classes; got {len(labels)} labels. Name each label "
                "once"
            )
        return np.unique(encode_labels(labels, self.classes_, "among", _LET_IT_JOIN))

    # What is known already.

    def learn_from(self, X: Any, guesses: Any, correct: Any, propensities: Any = None) -> Self:
        """Learn from rounds that another system played: which label was tried, and whether it was right.

        These are not rounds of this learner: nothing is guessed, and no mistake is counted. Each learner's docstring
        describes what it learns from them. If one row is refused, nothing is learned.

        Parameters
        ----------
        X : array or sparse matrix of shape (rounds, n_features)
            The rounds.
        guesses : array of shape (rounds,)
            The label that was tried in each.
        correct : array of bool of shape (rounds,), or bool
            Whether it was right; one truth value stands for all.
        propensities : array of shape (rounds,), or float, optional
            The probability with which each label was tried, in (0, 1]; needed by learners that weight by it.
        """
        rows = check_rows(X)
        labels = check_labels(guesses, rows.shape[0], "guesses")
        answers = _check_answers(correct, len(labels))
        chances = None if propensities is None else _check_chances(propensities, len(labels))
        # A single round is applied or refused as a whole; only with several must a failure be rolled back.
        is_one = len(labels) == 1 and self._started and not self._grows
        with self._lock if is_one else self.all_or_nothing(fresh=False):
            self._check_fit(rows, X)
            if not self._started and self.classes is None:
                raise ValueError("classes is not known: pass classes=, for labels that were never tried count too")
            codes = self._codes_of(labels, rows.shape[1], "guesses", X)
            for t, code in enumerate(codes.tolist()):
                truth = code if self.full_information and answers[t] else -1
                chance = None if chances is None else float(chances[t])
                changed = self._state.learn_from_log(take(rows, t, t + 1), code, bool(answers[t]), truth, chance)
                self.n_updates_ += changed
        return self

    def learn_labels(self, X: Any, y: Any) -> Self:
        """Learn from rows whose label is known, as `learn_from` with the right label and propensity 1.

        Parameters
        ----------
        X : array or sparse matrix of shape (rows, n_features)
            The rows.
        y : array of shape (rows,)
            Their labels.
        """
        rows = check_rows(X)
        labels = check_labels(y, rows.shape[0])
        with self.all_or_nothing(fresh=False):
            self._check_fit(rows, X)
            self._codes_of(labels, rows.shape[1], "y", X)
            return self.learn_from(X, labels, True, 1.0)

    def _codes_of(self, labels: npt.NDArray[Any], n_features: int, name: str, given: Any) -> Integers:
        """Return the positions of labels; begin a run if needed, and add new labels where classes grow."""
        if not self._started:
            chosen = infer_classes(labels) if self.classes is None or self._grows else self.classes
            self._begin(n_features, check_classes(chosen), None, given)
        elif self._grows:
            new = [label for label in infer_classes(labels).tolist() if label not in self._labels]
            if new:
                self._join(new)
        return encode_labels(labels, self.classes_, name, _LET_IT_JOIN)
