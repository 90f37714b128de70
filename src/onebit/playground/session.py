"""A session: some learners on the same rounds, played step by step, and the data of its page."""

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np

from onebit.inputs import Floats, Integers, check_integer
from onebit.kernels import kernel_name
from onebit.learners import BanditSVM, Learner
from onebit.learners.run import play_stream
from onebit.playground.catalogue import CATALOGUE, MOST_LEARNERS, Promise, looks, measure, new_learner, promised
from onebit.playground.scenes import Drawn, Scene

WARMING_UP, READY, FINISHED, FAILED = "warming up", "ready", "finished", "failed"
MOST_AT_ONCE = 500  # maximum number of rounds in one call of `Session.advance`
LARGEST_GRID = 80  # cells along one side of a picture

_SHOWN_ROUNDS = 250  # points in the picture
_LISTED_ROUNDS = 8  # rounds listed as text
_LATELY = 100  # rounds of the recent mistakes
_CURVE_POINTS = 300
_SHOWN_FACTS = 300
_SECONDS = 0.15  # after which `advance` returns, but not before one round
_LOCK_SECONDS = 30.0
_MEASURED_CELLS = 200_000  # rows × columns up to which the margin is measured
_MOST_SQUARED = 500_000  # maximum columns × columns × classes of second-order learners: half a second a round
_LOG = logging.getLogger("onebit.playground")


class BusyError(RuntimeError):
    """The session is in use by another request."""


class _Curve:
    """Cumulative mistakes, at rounds that are thinned out as they grow in number."""

    def __init__(self, n_learners: int) -> None:
        self._points: list[tuple[int, list[int]]] = [(0, [0] * n_learners)]
        self._every = 1

    def note(self, round: int, mistakes: list[int]) -> None:
        if round % self._every == 0:
            self._points.append((round, mistakes))
        if len(self._points) > _CURVE_POINTS:
            self._every *= 2
            self._points = [point for point in self._points if point[0] % self._every == 0]

    def until(self, round: int, mistakes: list[int]) -> dict[str, Any]:
        points = self._points if self._points[-1][0] == round else [*self._points, (round, mistakes)]
        lines = [list(line) for line in zip(*(counts for _, counts in points), strict=True)]
        return {"rounds": [number for number, _ in points], "mistakes": lines}


class Session:
    """One to four learners of `CATALOGUE` on the same rounds, of a scene that is the session's own. Thread-safe.

    >>> from onebit.playground.scenes import make_scene
    >>> session = Session(make_scene("wedges", seed=0), ["perceptron", "chance"], seed=0)
    >>> session.advance(20)
    20
    >>> [learner["mistakes"] > 0 for learner in session.frame()["learners"]]
    [True, True]
    """

    def __init__(self, scene: Scene, learners: Sequence[str], seed: int) -> None:
        if not 1 <= len(learners) <= MOST_LEARNERS or len(set(learners)) < len(learners):
            raise ValueError(f"learners must be 1 to {MOST_LEARNERS} different ones; got {list(learners)!r}")
        self._keys, self._scene, self._seed = tuple(learners), scene, seed
        self._classes = list(range(len(scene.labels)))
        n_squared = scene.n_features**2 * len(scene.labels)
        for key in learners:
            if key in CATALOGUE and CATALOGUE[key].is_square and n_squared > _MOST_SQUARED:
                raise ValueError(
                    f"{CATALOGUE[key].title} takes too long with {scene.n_features} columns; choose another learner"
                )
        self._learners = [self._fresh(key) for key in learners]
        for learner in self._learners:
            learner.begin(scene.n_features, self._classes)
        self._lock = threading.Lock()
        self._round = 0
        self._mistakes = np.zeros(len(learners), dtype=np.int64)
        self._lately: deque[tuple[bool, ...]] = deque(maxlen=_LATELY)
        self._shown: deque[dict[str, Any]] = deque(maxlen=_SHOWN_ROUNDS)
        self._curve = _Curve(len(learners))
        self._seconds_per_round = 0.0
        self._looks = looks()
        self._state, self._why_failed = READY, ""
        self._promises: list[Promise | None] = [None] * len(learners)
        self._measured = -1
        self._is_over = False

    def _fresh(self, key: str) -> Learner:
        return new_learner(key, self._classes, self._seed)

    # Preparation.

    def prepare(self, in_background: bool = True) -> None:
        """Compile the learners, and measure the margins for their bounds."""
        self._state = WARMING_UP
        if in_background:
            threading.Thread(target=self._prepare, name="onebit-playground", daemon=True).start()
        else:
            self._prepare()

    def _prepare(self) -> None:
        try:
            X, y = np.zeros((2, self._scene.n_features)), np.zeros(2, dtype=np.int64)
            X[:, -1] = 1.0
            for key in self._keys:
                twin = self._fresh(key)
                play_stream(twin, X, y, classes=self._classes)
                twin.score_classes(X)
                twin.probabilities(X[0])
        except Exception as error:  # in a thread: no caller can catch it
            _LOG.error("a session cannot be prepared", exc_info=error)
            self._state, self._why_failed = FAILED, "something went wrong inside; the terminal says what"
            return
        self._state = READY
        self._measure()

    def _measure(self) -> None:
        while self._measured != self._n_rows() and not self._is_over:  # points may be added during the measurement
            try:
                promises = self._promises_now()
            except Exception as error:  # play goes on without bounds
                _LOG.error("margins cannot be measured", exc_info=error)
                promises = [Promise(None, "not measured: something went wrong")] * len(self._keys)
            self._promises = list(promises)

    def _n_rows(self) -> int:
        with self._lock:
            return len(self._scene.all_rows()[1])

    def _promises_now(self) -> list[Promise]:
        with self._lock:
            X, y = self._scene.all_rows()
        self._measured = len(y)
        if len(set(y.tolist())) < 2:
            return [Promise(None, "nothing yet: one class only")] * len(self._keys)
        if X.size <= _MEASURED_CELLS:
            found = measure(X, y, len(self._classes), is_wanted=lambda: not self._is_over)
            if found is not None:
                return [promised(self._fresh(key), found) for key in self._keys]
        return [Promise(None, "not measured: it would take too long")] * len(self._keys)

    def end(self) -> None:
        """Stop measuring, when the session ends."""
        self._is_over = True

    # Playing.

    def advance(self, rounds: int) -> int:
        """Play rounds with every learner; return how many: fewer if time is up, or there are no more."""
        check_integer("rounds", rounds, low=1, high=MOST_AT_ONCE)
        with self._locked(needs_learners=True):
            start, played = time.monotonic(), 0
            while played < rounds and (played == 0 or time.monotonic() - start < _SECONDS):
                before = time.monotonic()
                left = max(_SECONDS - (before - start), 0.0)
                chunk = int(left / self._seconds_per_round) if self._seconds_per_round else 1
                X, y = self._scene.take(self._round, min(rounds - played, max(chunk, 1)))
                if not len(y):
                    break
                self._play(X, y)
                self._seconds_per_round = (time.monotonic() - before) / len(y)
                played += len(y)
            if self._round >= self._scene.most_rounds:
                self._state = FINISHED
            return played

    def _play(self, X: Floats, y: Integers) -> None:
        """Play rounds with every learner, and record the results."""
        guesses = np.column_stack(
            [play_stream(learner, X, y, fresh=False, keep_guesses=True).guesses for learner in self._learners]
        )
        places = self._scene.picture.places(X)
        for t, (truth, guessed, place) in enumerate(zip(y.tolist(), guesses.tolist(), places.tolist(), strict=True)):
            wrong = tuple(guess != truth for guess in guessed)
            self._mistakes += wrong
            self._lately.append(wrong)
            number = self._round + t + 1
            self._shown.append({"round": number, "place": place, "truth": truth, "guesses": guessed})
            self._curve.note(number, self._mistakes.tolist())
        self._round += len(y)

    def add_points(self, points: Sequence[tuple[float, float, str]]) -> None:
        """Add points to a session of drawn points: all or none."""
        if not isinstance(self._scene, Drawn):
            raise ValueError(f"points can be drawn only where the stream is drawn; this one is {self._scene.title!r}")
        with self._locked():
            scene = deepcopy(self._scene)
            for point in points:
                scene.add(*point)
            self._scene = scene
            is_due = self._state == READY and None not in self._promises
            if is_due:
                self._promises = [None] * len(self._keys)
        if is_due:
            threading.Thread(target=self._measure, name="onebit-playground", daemon=True).start()

    @contextmanager
    def _locked(self, needs_learners: bool = False) -> Iterator[None]:
        if needs_learners and self._state == WARMING_UP:
            raise BusyError("the session is warming up: code is compiled, once; ask again in a moment")
        if needs_learners and self._state == FAILED:
            raise RuntimeError(f"the session cannot go on ({self._why_failed}); start a new one")
        if not self._lock.acquire(timeout=_LOCK_SECONDS):
            raise BusyError("the session is still busy with an earlier request; ask again in a moment")
        try:
            yield
        finally:
            self._lock.release()

    # Data of the page.

    def frame(self) -> dict[str, Any]:
        """Return the data of the page as plain values."""
        with self._locked():
            scene = self._scene
            return {
                "state": self._state,
                "why_failed": self._why_failed,
                "round": self._round,
                "most_rounds": scene.most_rounds,
                "seed": self._seed,
                "stream": {
                    "title": scene.title,
                    "says": scene.description,
                    "labels": list(scene.labels),
                    "picture": scene.picture.caption,
                    "box": list(scene.picture.box),
                    "points": [list(point) for point in scene.points] if isinstance(scene, Drawn) else None,
                },
                "learners": [self._learner_frame(at) for at in range(len(self._keys))],
                "curve": self._curve.until(self._round, self._mistakes.tolist()),
                "rounds": list(self._shown),
                "n_listed": _LISTED_ROUNDS,
            }

    def _learner_frame(self, at: int) -> dict[str, Any]:
        key, learner, promise = self._keys[at], self._learners[at], self._promises[at]
        entry, look = CATALOGUE[key], self._looks[key]
        return {
            "key": key,
            "title": entry.title,
            "says": entry.description,
            "color": look.color,
            "dashes": list(look.dashes[1]),
            "mistakes": int(self._mistakes[at]),
            "lately": sum(wrong[at] for wrong in self._lately),
            "n_lately": len(self._lately),
            "updates": learner.n_updates_,
            "explored": learner.n_uniform_guesses_,
            "promise": None if promise is None else {"mistakes": promise.mistakes, "says": promise.text},
        }

    def regions(self, learner: int, size: int) -> dict[str, Any]:
        """Return every class's score in each cell of the picture, and the learner's stored examples.

        Scores rather than labels, since they can be interpolated: a coarse grid gives smooth boundaries.
        """
        chosen = self._chosen(learner)
        check_integer("size", size, low=4, high=LARGEST_GRID)
        with self._locked(needs_learners=True):
            rows = self._scene.picture.grid(size)
            scores = np.nan_to_num(chosen.score_classes(rows))
            scores /= np.abs(scores).max() or 1.0
            return {
                "learner": learner,
                "size": size,
                "round": self._round,
                "scores": scores.round(5).T.tolist(),
                **self._facts(chosen),
            }

    def _facts(self, learner: Learner) -> dict[str, Any]:
        """Return the positions of the latest stored examples, with the label that each has or does not have."""
        if not isinstance(learner, BanditSVM) or learner.n_rounds_ == 0:
            return {"facts": None, "n_facts": None}
        support, proved = learner.support_, learner.proved_
        facts = []
        for place, row in zip(self._scene.picture.places(support)[-_SHOWN_FACTS:], proved[-_SHOWN_FACTS:], strict=True):
            right = np.flatnonzero(row > 0)
            facts.append(
                {
                    "place": place.tolist(),
                    "is": int(right[0]) if len(right) else None,
                    "is_not": [] if len(right) else np.flatnonzero(row < 0).tolist(),
                }
            )
        return {"facts": facts, "n_facts": len(support)}

    def opinions(self, learner: int, x: float, y: float) -> dict[str, Any]:
        """Return the guesses at a point of the picture: of each kernel, or the learner's propensities."""
        chosen = self._chosen(learner)
        with self._locked(needs_learners=True):
            row = self._scene.picture.rows(np.array([[x, y]]))[0]
            chances = chosen.probabilities(row)
            found = {"learner": learner, "guess": int(np.argmax(chances)), "chances": chances.round(4).tolist()}
            voices = []
            if isinstance(chosen, BanditSVM):
                for opinion in chosen.opinions(row):
                    scores = np.clip(opinion.scores, -1e6, 1e6).round(3).tolist()
                    voices.append(
                        {
                            "kernel": kernel_name(opinion.kernel),
                            "label": int(opinion.label),
                            "weight": round(opinion.weight, 4),
                            "scores": scores,
                        }
                    )
            return {**found, "voices": voices}

    def _chosen(self, learner: int) -> Learner:
        return self._learners[check_integer("learner", learner, low=0, high=len(self._learners) - 1)]
