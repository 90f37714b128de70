"""Halving over a finite class of hypotheses, with bandit feedback."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from numpy.random import Generator, Philox

from onebit.engine.algorithm import READY, UNSCORED, Algorithm, clear
from onebit.engine.jit import jit_inline
from onebit.engine.state import State, check_finite
from onebit.game import Answer
from onebit.inputs import Floats, Integers, Rows, check_integer, check_real, dense
from onebit.learners.base import Learner
from onebit.learners.exploring import choose_mostly_highest, write_propensities
from onebit.machine_memory import check_memory

_HYPOTHESES = 3  # second word of the key: independent of the draws of learners and streams with the same seed


@dataclass(eq=False, repr=False)
class BanditHalving(Learner):
    """Guesses what most surviving hypotheses predict, and drops those that the answer proves wrong.

    Every hypothesis predicts one label for a row. After a wrong guess those that predicted it are dropped, after a
    right one those that predicted another. It never explores. Time and memory grow with the number of hypotheses.

    Guarantee: If one hypothesis is right in every round, at most K·ln H mistakes, always: the label that most survivors
    predict is predicted by at least one in K of them, so a mistake leaves (1 − 1/K) of them at most, and one survives.
    When no hypothesis survives, none was always right: all are restored, `n_restarts_` counts it, and the bound is
    void.

    Parameters
    ----------
    hypotheses : array of shape (H, K, n_features), list of callables, or int
        The finite class: H linear classifiers, each predicting the label whose weights have the largest product with
        the row (the first of several); or functions that are given a row, an array of shape (n_features,), and return a
        label; or how many linear classifiers to draw at random, with normal weights, by the seed. No class can join.

    Examples
    --------
    >>> thresholds = [lambda x, at=at: "high" if x[0] > at else "low" for at in range(5)]
    >>> learner = BanditHalving(thresholds, classes=["low", "high"])
    >>> guess = learner.guess([2.5])
    >>> guess.label
    'high'
    >>> learner.tell(guess, correct=False)
    >>> learner.survivors_.tolist()
    [3, 4]

    References
    ----------
    Littlestone (1988). Learning quickly when irrelevant attributes abound. Machine Learning 2 (halving).
    Daniely, Sabato, Ben-David, Shalev-Shwartz (2015). Multiclass learnability and the ERM principle. JMLR 16 (with
    bandit feedback).
    """

    hypotheses: Any = 64
    # With so few classifiers drawn at random, none need be good.
    _poor_score: ClassVar[bool] = True

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(30)

    def _new_state(self) -> State:
        shape = len(self.classes_), self.n_features_in_
        given: Any = self.hypotheses
        if isinstance(given, (list, tuple)) and given and all(callable(each) for each in given):
            return _Survivors(np.zeros((1, 1, shape[1])), list(given), self._labels)
        if not hasattr(given, "__len__") or (isinstance(given, np.ndarray) and given.ndim == 0):
            n = check_integer("hypotheses", given, low=1, high=2**53)
            check_memory(8.0 * n * shape[0] * shape[1], f"hypotheses must be fewer than {n}")
            weights: Floats = Generator(Philox(key=[self._key, _HYPOTHESES])).normal(size=(n, *shape))
        else:
            weights = np.array(check_real(given, "hypotheses"), dtype=np.float64)
        if weights.ndim != 3 or weights.shape[1:] != shape or not len(weights) or not np.isfinite(weights).all():
            raise ValueError(
                f"hypotheses must be finite, of shape (H, {shape[0]}, {shape[1]}) for {shape[0]} classes and "
                f"{shape[1]} features, or a list of functions, or a whole number; got shape {weights.shape}"
            )
        return _Survivors(weights, [], self._labels)

    @property
    def survivors_(self) -> Any:
        """The positions of the hypotheses that no answer has disproved."""
        return np.flatnonzero(self.learned()["alive"])

    @property
    def n_restarts_(self) -> int:
        """How often no hypothesis was left, and all were restored."""
        return int(self.learned()["restarts"][0])


class _Hypotheses(NamedTuple):
    weights: Floats  # of the linear classifiers; for functions one row of zeros, as wide as the features
    alive: Integers  # 1 for those that no answer has disproved
    restarts: Integers  # how often none was left; one entry


class _Votes(NamedTuple):
    scores: Floats  # how many survivors predict each label
    votes: Integers  # the prediction of each of them
    propensities: Floats


class _Settings(NamedTuple):
    exploration: float  # none
    is_linear: bool


class _Survivors(State):
    arrays: _Hypotheses
    learn_from_log = State.learn_as_played
    per_class: ClassVar[tuple[str, ...]] = "scores", "propensities"

    def __init__(self, weights: Floats, functions: list[Callable[[Floats], Any]], labels: tuple[Any, ...]) -> None:
        self._functions, self._labels, self.scores_in_python = functions, labels, bool(functions)
        alive, restarts = np.ones(len(functions or weights), dtype=np.int64), np.zeros(1, dtype=np.int64)
        super().__init__(_Hypotheses(weights, alive, restarts), _Settings(0.0, not functions), len(labels))

    def new_scratch(self) -> _Votes:
        scores, propensities = np.zeros((2, self.n_classes))
        return _Votes(scores, np.zeros(len(self.arrays.alive), dtype=np.int64), propensities)

    def algorithm(self, is_sparse: bool) -> Algorithm:
        return Algorithm(_score, choose_mostly_highest, write_propensities, _update)

    def fill(self, row: Rows) -> None:
        features = dense(row)[0]
        if np.isfinite(features).all():  # otherwise `score` refuses the row
            for h in np.flatnonzero(self.arrays.alive).tolist():
                self.scratch.votes[h] = self._vote(h, features)

    def _vote(self, h: int, features: Floats) -> int:
        predicted = self._functions[h](features.copy())
        same = [i for i, label in enumerate(self._labels) if label == predicted]
        if not same:
            n = len(self._labels)
            raise ValueError(f"hypotheses[{h}] says {predicted!r:.80}, which is not among the {n} classes")
        # Of labels that are equal the one of the same type: 1 and True are two labels.
        return next((i for i in same if type(self._labels[i]) is type(predicted)), same[0])

    def add_class(self) -> None:
        raise ValueError("BanditHalving cannot take a new class: its hypotheses do not predict it. Start a new one")

    def check_arrays(self, arrays: _Hypotheses) -> None:
        check_finite(arrays.weights)
        if not arrays.alive.any() or arrays.alive.max() > 1:
            raise ValueError("no hypothesis survives, or one more than once")

    def score_rows(self, rows: Rows) -> Floats:
        out = np.empty((rows.shape[0], self.n_classes))
        for t in range(len(out)):
            row = dense(rows)[t : t + 1]
            self.score(row, row)
            out[t] = self.scratch.scores
        return out

    def learned(self) -> dict[str, npt.NDArray[Any]]:
        kept = {"alive": self.arrays.alive.copy(), "restarts": self.arrays.restarts.copy()}
        return kept if self._functions else kept | {"hypotheses": self.arrays.weights.copy()}


@jit_inline
def _score(state: _Hypotheses, X: Floats, t: int, scratch: _Votes, settings: _Settings) -> int:
    off, weights = 0.0, state.weights
    for j in range(X.shape[1]):
        off += X[t, j] - X[t, j]
    clear(scratch.scores)
    for h in range(state.alive.shape[0]):
        if state.alive[h] == 0 or off != 0.0:
            continue
        if settings.is_linear:
            best = 0.0
            for i in range(weights.shape[1]):
                total = 0.0
                for j in range(X.shape[1]):
                    total += weights[h, i, j] * X[t, j]
                off += total - total
                if i == 0 or total > best:
                    best, scratch.votes[h] = total, i
        scratch.scores[scratch.votes[h]] += 1.0
    return READY if off == 0.0 else UNSCORED


@jit_inline
def _update(state: _Hypotheses, _X: Floats, _t: int, scratch: _Votes, answer: Answer, _settings: _Settings) -> bool:
    alive, n_left, changed = state.alive, 0, False
    for h in range(alive.shape[0]):
        if alive[h] and (scratch.votes[h] == answer.label) != answer.correct:
            alive[h] = 0
            changed = True
        n_left += alive[h]
    if n_left == 0:
        for h in range(alive.shape[0]):
            alive[h] = 1
        state.restarts[0] += 1
    return changed
