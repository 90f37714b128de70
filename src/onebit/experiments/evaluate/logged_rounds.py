"""A log of rounds: which label was guessed, with which propensity, and whether it was right."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from onebit.inputs import Floats, Integers, check_real, check_rows
from onebit.labels import check_classes, check_labels, encode_labels, infer_classes
from onebit.streams.data_set import Matrix, as_matrix

RIGHT, WRONG, UNKNOWN = 1, 0, -1
"""The answer to a guess in a log."""


@dataclass(frozen=True, eq=False)
class LoggedRounds:
    """Logged rounds, in their order; `logged_rounds` makes one from plain lists.

    Attributes
    ----------
    name : str
        What it is called in tables and figures.
    X : array or scipy CSR array of shape (rounds, features)
    classes : array of shape (n_classes,)
        The labels that could be guessed.
    guesses : array of int
        The label that was guessed in each round, as a position in `classes`.
    answers : array of int
        1 for right, 0 for wrong, −1 where unknown.
    propensities : array of float
        The chance that the guessed label had when it was drawn; NaN where that is not known.
    among : tuple of arrays of int and None, or None
        The labels that were allowed in each round, as positions; None where all were.
    is_complete : bool
        Whether the right label is always one of `classes`. Then of two classes "not the one" proves the other.
    about : tuple of pairs of str
        A summary of what was read.
    """

    name: str
    X: Matrix
    classes: npt.NDArray[Any]
    guesses: Integers
    answers: Integers
    propensities: Floats
    among: tuple[Integers | None, ...] | None = None
    is_complete: bool = False
    about: tuple[tuple[str, str], ...] = ()

    @property
    def n_rounds(self) -> int:
        """How many rounds were played."""
        return len(self.guesses)

    @property
    def is_answered(self) -> npt.NDArray[np.bool_]:
        """Whether the answer of each round is known."""
        is_known: npt.NDArray[np.bool_] = self.answers != UNKNOWN
        return is_known

    def allowed(self, t: int) -> Integers | None:
        """Return the labels that were allowed in a round, as positions, or None if all were."""
        return None if self.among is None else self.among[t]

    @property
    def n_allowed(self) -> Integers:
        """How many labels were allowed in each round."""
        n_classes = len(self.classes)
        if self.among is None:
            return np.full(self.n_rounds, n_classes)
        return np.array([n_classes if allowed is None else len(allowed) for allowed in self.among])

    def truths(self) -> Integers:
        """Return the right label of every round in which it is known, as a position; −1 where it is not."""
        right = np.where(self.answers == RIGHT, self.guesses, -1)
        if self.is_complete and len(self.classes) == 2:
            right = np.where(self.answers == WRONG, 1 - self.guesses, right)
        return right


def logged_rounds(
    X: Any,
    guesses: Any,
    correct: Any,
    propensities: Any = None,
    *,
    among: Sequence[Any] | None = None,
    classes: Any = None,
    name: str = "log",
) -> LoggedRounds:
    """Check a log of rounds and return it.

    Parameters
    ----------
    X : array or sparse matrix of shape (rounds, features)
        The rows, in the order in which they were played.
    guesses : array of shape (rounds,)
        The label that was guessed in each round.
    correct : sequence of True, False and None
        Whether it was right; None where unknown.
    propensities : array of float, float or None
        The chance that the guessed label had, in (0, 1]; NaN where it is not known. Without them there are bounds, and
        no estimates.
    among : sequence of lists of labels and None, optional
        The labels that were allowed in each round; None where all were.
    classes : int or list, optional
        All labels that there are: the right one is always among them. Without it the labels are those that were guessed
        or allowed, and there may be others.
    name : str
        What it is called in tables and figures.

    Examples
    --------
    >>> log = logged_rounds([[0.5], [1.5], [2.5]], ["tea", "milk", "tea"], [True, False, None], classes=["milk", "tea"])
    >>> log.classes[log.truths()[:2]].tolist()
    ['tea', 'tea']
    """
    rows = check_rows(X)
    n = rows.shape[0]
    if n == 0:
        raise ValueError(f"{name}: the log has no rounds")
    labels = check_labels(guesses, n, "guesses")
    allowed = None if among is None else _check_among(among, n)
    met = [label for each in allowed or () if each is not None for label in each]
    known = infer_classes(check_labels([*labels.tolist(), *met], n + len(met), "guesses"))
    listed = known if classes is None else check_classes(classes)
    codes = encode_labels(labels, listed, "guesses", "list every label in classes")
    places: tuple[Integers | None, ...] | None = None
    if allowed is not None:
        places = tuple(None if each is None else _places(each, listed, t) for t, each in enumerate(allowed))
        _check_allowed(codes, places, labels)
    answers = _check_answers(correct, n)
    if not (answers != UNKNOWN).any():
        raise ValueError(
            f"{name}: correct says nothing of any of the {n} rounds; at least one must be answered, right or wrong"
        )
    chances = _check_propensities(propensities, n)
    return LoggedRounds(name, as_matrix(rows), listed, codes, answers, chances, places, classes is not None)


def _check_answers(correct: Any, n: int) -> Integers:
    listed = correct.tolist() if isinstance(correct, np.ndarray) else list(correct)
    if len(listed) != n:
        raise ValueError(f"correct must have {n} entries, one for each round; got {len(listed)}")
    answers = np.full(n, UNKNOWN, dtype=np.int64)
    for t, answer in enumerate(listed):
        if answer is not None:
            if not isinstance(answer, (bool, np.bool_)):
                raise ValueError(f"correct[{t}] must be True, False, or None where nobody said; got {answer!r:.80}")
            answers[t] = RIGHT if answer else WRONG
    return answers


def _check_propensities(propensities: Any, n: int) -> Floats:
    if propensities is None:
        return np.full(n, np.nan)
    chances = np.broadcast_to(np.asarray(propensities, dtype=np.float64), (n,)).copy()
    given = chances[~np.isnan(chances)]
    check_real(given if len(given) else np.ones(1), "propensities")
    wrong = ~(np.isnan(chances) | ((chances > 0.0) & (chances <= 1.0)))
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(
            f"propensities[{at}] must be above 0 and at most 1: the chance that the guessed label had; "
            f"got {chances[at]:g}. Where it is not known, leave it empty (NaN)"
        )
    return chances


def _check_among(among: Sequence[Any], n: int) -> list[list[Any] | None]:
    listed = list(among)
    if len(listed) != n:
        raise ValueError(f"among must have {n} entries, one for each round; got {len(listed)}")
    for t, each in enumerate(listed):
        if each is not None and (isinstance(each, (str, bytes)) or not isinstance(each, Iterable)):
            raise ValueError(f"among[{t}] must be a list of labels, or None where all are allowed; got {each!r:.80}")
    return [None if each is None else list(each) for each in listed]


def _places(allowed: list[Any], classes: npt.NDArray[Any], t: int) -> Integers:
    if not allowed:
        raise ValueError(f"among[{t}] must have at least one label; got none. Where all are allowed, leave it empty")
    labels = check_labels(allowed, len(allowed), f"among[{t}]")
    return np.unique(encode_labels(labels, classes, f"among[{t}]", "list every label in classes"))


def _check_allowed(codes: Integers, places: tuple[Integers | None, ...], labels: npt.NDArray[Any]) -> None:
    for t, (code, allowed) in enumerate(zip(codes.tolist(), places, strict=True)):
        if allowed is not None and code not in allowed:
            raise ValueError(
                f"guesses[{t}] is {labels[t : t + 1].tolist()[0]!r}, which among[{t}] does not allow; mend one of them"
            )
