"""The run of a learner: its lock, its state, its copies.

A run begins when the number of features and the classes are known, and ends with the next fresh start. If a stream is
interrupted, the state before it is restored.
"""

import copy
import threading
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from onebit.engine.randomness import Draw, uniform
from onebit.engine.state import State
from onebit.frames import as_frame, is_frame
from onebit.inputs import Rows, SparseRows, check_integer, check_real, check_seed, check_sparse_row
from onebit.labels import check_classes, check_labels, encode_labels
from onebit.learners.estimator import Estimator
from onebit.learners.tickets import Tickets
from onebit.machine_memory import claim_memory

_FLOAT64 = np.dtype(np.float64)


class Run(Estimator):
    """Starts, copies and restores a learner's run."""

    full_information: ClassVar[bool] = False
    """Whether its feedback is the label, which `tell` then takes."""

    classes: Any
    seed: int

    n_features_in_: int
    n_rounds_: int
    n_mistakes_: int
    n_updates_: int
    n_uniform_guesses_: int

    @abstractmethod
    def _new_state(self) -> State:
        """Check the settings and return an empty state for `n_features_in_` features and the `classes_`."""

    @property
    def _grows(self) -> bool:
        return isinstance(self.classes, str) and self.classes == "grow"

    def begin(self, n_features: int, classes: Any = None, *, seed: int | None = None, fresh: bool = True) -> None:
        """Prepare for rounds with that many features; with ``fresh=False`` keep what was learned."""
        check_integer("n_features", n_features, low=1)
        if fresh or not self._started:
            chosen = classes if self.classes is None or self._grows else self.classes
            self._begin(n_features, None if chosen is None else check_classes(chosen), seed)
            return
        if n_features != self.n_features_in_:
            raise self._width_error(n_features)
        if seed is not None and check_seed(seed) != self._key:
            raise ValueError(f"seed must stay {self._key} when play goes on; got {seed}. Leave it out, or start fresh")

    @contextmanager
    def all_or_nothing(self, fresh: bool = True) -> Iterator[None]:
        """Restore the learner if the block inside is interrupted, by an error or by Ctrl-C.

        Parameters
        ----------
        fresh : bool
            Whether the block starts a new run: then the old state is not changed, and need not be copied, unless it is
            a `ByHand`, which is the learner itself.
        """
        with self._lock:
            before = dict(self.__dict__)
            bookmark = None
            if self._started and (not fresh or self._state.plays_by_hand):
                before["_tickets"] = copy.copy(self._tickets)
                bookmark = self._state.bookmark()
            try:
                yield
            except BaseException:
                self.__dict__.update(before)  # not cleared first: it holds the lock that other threads wait for
                for name in self.__dict__.keys() - before.keys():
                    del self.__dict__[name]
                if bookmark is not None:
                    self._state.n_classes = len(self.classes_)
                    self._state.restore(bookmark)
                raise

    def __copy__(self) -> Self:
        """Return a deep copy: with a shared state each would learn from the other's rounds."""
        return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy without open tickets: those belong to the original."""
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        vars(twin).update(copy.deepcopy(self.__getstate__(), memo))
        vars(twin).pop("_tickets", None)
        return twin

    def index_of(self, label: Any) -> int:
        """Return a label's position among the classes, or raise ValueError."""
        return int(encode_labels(check_labels([label], 1, "label"), self.classes_, "label")[0])

    def __new__(cls, *_settings: Any, **_named: Any) -> Self:
        """Give every learner a lock, so that threads may share it: a round runs in one thread at a time."""
        learner = super().__new__(cls)
        learner._lock = threading.RLock()
        return learner

    def __getstate__(self) -> dict[str, Any]:
        # A copy, here or in another process, gets its own lock from `__new__`. Rounds that other threads play meanwhile
        # must not change what is being saved.
        with self._lock:
            kept = {name: value for name, value in self.__dict__.items() if name != "_lock"}
            return copy.deepcopy(kept, {id(self): self})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._lock = threading.RLock()  # the oldest pickle protocols do not call `__new__`
        self.__dict__.update(state)

    _lock: threading.RLock
    _state: State
    _labels: list[Any]
    _key: int
    """The seed of the current run."""
    _in_force: dict[str, Any]
    """The settings of the current run: changes made meanwhile apply from the next one."""
    _tickets: Tickets | None = None
    """None before the first guess of a run: whole streams issue no tickets."""
    _max_open_tickets: int = 10_000
    _row_shape: tuple[int] | None = None
    """The shape of one round's features, once it is known."""

    @property
    def _started(self) -> bool:
        return "_state" in self.__dict__

    def __sklearn_is_fitted__(self) -> bool:
        return self._started

    def _check_started(self, action: str) -> None:
        if not self._started:
            raise NotFittedError(f"{type(self).__name__} has not played yet: guess, fit or onebit.play before {action}")

    def _begin(
        self, n_features: int, known_classes: npt.NDArray[Any] | None, seed: int | None, given: Any = None
    ) -> None:
        """Set up an empty state; on a bad setting the old one is kept."""
        if known_classes is None:
            if self._grows:
                raise ValueError(
                    "no label is known yet: guess(x, among=[…]), learn_labels or play brings the first ones"
                )
            if self.classes is None:
                raise ValueError(
                    "classes is not known: pass a count or a list of labels, "
                    f'for example {type(self).__name__}(classes=["yes", "no"])'
                )
            known_classes = check_classes(self.classes)
        with self.all_or_nothing():
            self._key = check_seed(self.seed if seed is None else seed)
            self.classes_ = known_classes
            self._labels = known_classes.tolist()
            self.n_features_in_ = n_features
            self._row_shape = (n_features,)
            self._check_columns(as_frame(given), reset=True)
            self._state = self._new_state()
            claim_memory(self._state.n_bytes())  # the system has not allocated untouched zeros yet
            # A setting with parameters of its own, such as a wrapped classifier, may be changed later.
            settings = self.get_params(deep=False)
            self._in_force = {
                name: clone(value) if hasattr(value, "get_params") and not isinstance(value, type) else value
                for name, value in settings.items()
            }
            self.n_rounds_ = self.n_mistakes_ = self.n_updates_ = self.n_uniform_guesses_ = 0
            self._tickets = None

    def n_bytes(self) -> int:
        """Return roughly how much memory its state and open tickets take."""
        tickets = 0 if self._tickets is None else self._tickets.n_bytes()
        return tickets + (self._state.n_bytes() if self._started else 0)

    def _draw(self, round: int) -> float:
        """Return the round's uniform number in [0, 1)."""
        return uniform(Draw(self._key, round))

    def _one_row(self, features: Any) -> Rows:
        """Return a copy of one round's features as a matrix of one row; `score` finds NaN and infinities."""
        if type(features) is np.ndarray and features.dtype is _FLOAT64 and features.shape == self._row_shape:
            return np.array(features, ndmin=2)  # the common case
        if scipy.sparse.issparse(features) or isinstance(features, SparseRows):
            return self._check_width(check_sparse_row(features, "features"))
        features = as_frame(features)
        array = check_real(features, "features")
        if array.ndim == 0 or array.size == 0 or array.size != array.shape[-1]:
            raise ValueError(f"features must be one round's, of shape (n_features,); got shape {array.shape}")
        if self._started and is_frame(features):
            self._check_columns(features, reset=False)
        if self._started and array.size != self.n_features_in_:
            raise ValueError(f"features must have length {self.n_features_in_}; got {array.size}")
        return np.array(array, dtype=np.float64, ndmin=2)

    def _check_width(self, rows: Rows) -> Rows:
        if self._started and rows.shape[1] != self.n_features_in_:
            raise self._width_error(rows.shape[1])
        return rows

    def _check_fit(self, rows: Rows, given: Any) -> Rows:
        """Return rows if they have the expected width; a frame's columns must have the same names, too."""
        if self._started and is_frame(given):
            self._check_columns(given, reset=False)
        return self._check_width(rows)

    def _width_error(self, n_features: int) -> ValueError:
        name, known = type(self).__name__, self.n_features_in_
        return ValueError(f"X has {n_features} features, but {name} is expecting {known} features as input")
