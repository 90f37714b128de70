"""Sessions of the playground: its learners on the same rounds, or one that asks a person; with data of the page."""

import logging
import math
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Annotated, Any, NamedTuple

import numpy as np
from msgspec import Meta, Struct

from onebit.bounds import Claim
from onebit.inputs import Floats, Integers, check_integer, check_seed
from onebit.kernels import Rational, kernel_name
from onebit.learners import (
    BanditPerceptron,
    Banditron,
    BanditSVM,
    Learner,
    LinUCB,
    MulticlassPerceptron,
    NearestNeighbor,
    UniformGuess,
)
from onebit.learners.base import in_linear_space
from onebit.learners.run import play_stream
from onebit.playground.scenes import DRAWN_LABELS, MOST_ROUNDS, SCENES, Drawn, Scene
from onebit.reporting.looks import PALETTE, Shown, looks_of
from onebit.reporting.text import bound_text, printable
from onebit.service.gate import Problem
from onebit.streams import bundled
from onebit.theory import Margin, Progress, margin

_MOST_LEARNERS = 4  # maximum number of learners in a session
_MOST_AT_ONCE = 500  # maximum number of rounds in one call of `Session.advance`
_WARMING_UP, _READY, _FINISHED, _FAILED = "warming up", "ready", "finished", "failed"
# This budget limits a session to some megabytes, and a picture to some tenths of a second.
_BUDGET = 300
_PATIENCE = 20.0  # seconds to measure margins
_WEAK = (MulticlassPerceptron, NearestNeighbor)  # learners whose theorems need only a weak margin
_LONG = 10**7  # larger numbers are shown as powers of two
_LARGEST_GRID = 80  # cells along one side of a picture
_MOST_ANSWERS = 2000  # maximum number of answers of an oracle
_SHOWN_ROUNDS = 250  # points in the picture
_LATELY = 100  # rounds of the recent mistakes
_CURVE_POINTS = 300
_SHOWN_FACTS = 300
_SECONDS = 0.1  # after which `advance` plays no more rounds, but not before one
_LOCK_SECONDS = 30.0
_MEASURED_CELLS = 200_000  # rows × columns up to which the margin is measured
_MOST_SQUARED = 500_000  # maximum columns × columns × classes of second-order learners: half a second a round
_MOST_NAMES, _LONGEST_NAME = 10, 40
_SHELF = 40  # digits shown sorted by the learner's current guess
_REMEMBERED, _LATEST = 12, 10  # answers shown, and those of the score of late
_Number = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
_WHY_FAILED = "something went wrong inside; the terminal says what"
_LOG = logging.getLogger("onebit.playground")


# The learners, and what the theorems promise of them.


class _Entry(NamedTuple):
    """One learner of the catalogue."""

    learner: Learner  # template with the settings
    description: str

    @property
    def title(self) -> str:
        """Its name on the page."""
        name = type(self.learner).__name__
        return f"{name}, rational kernel" if isinstance(getattr(self.learner, "kernel", None), Rational) else name


_CATALOGUE = {
    "svm": _Entry(BanditSVM(budget=_BUDGET), "keeps what answers prove, and asks a bank of kernels that vote."),
    "perceptron": _Entry(BanditPerceptron(), "the paper's Algorithm 1: one weight vector per class."),
    "rational": _Entry(
        BanditPerceptron(Rational(normalize=True)), "the paper's Algorithm 2: the same, with curved borders."
    ),
    "banditron": _Entry(Banditron(), "the classic: now and then it guesses at random to explore."),
    "linucb": _Entry(LinUCB(), "one regression per class, and the benefit of the doubt."),
    "neighbor": _Entry(NearestNeighbor(radius=0.05), "remembers rounds, and repeats what was right."),
    "told": _Entry(MulticlassPerceptron(), "is told the right label each time: what one bit costs."),
    "chance": _Entry(UniformGuess(), "guesses at random and learns nothing."),
}
"""All learners by key."""
_LOOKS = looks_of(
    Shown(key, repr(entry.learner).replace(f"budget={_BUDGET}", ""), type(entry.learner).full_information)
    for key, entry in _CATALOGUE.items()
)
"""Colour and dashes of each learner by key; the same for all budgets."""


def _new_learner(key: str, classes: Sequence[str | int], seed: int) -> Learner:
    """Return a new learner of the catalogue."""
    if key not in _CATALOGUE:
        raise ValueError(f"learner must be one of {', '.join(_CATALOGUE)}; got {key!r}")
    learner = _CATALOGUE[key].learner
    return type(learner)(**{**learner.get_params(deep=False), "classes": list(classes), "seed": seed})


def _promised(learner: Learner, found: Margin) -> dict[str, Any]:
    """Return the bound for rows with these margins, in expectation or for every sequence, or why there is none."""
    claims: Sequence[Claim] = ()
    if isinstance(getattr(learner, "kernel", None), Rational):
        claims = [claim for claim in found.promises if claim.theorem == "6"]
    elif in_linear_space(learner):
        kind = "weak" if isinstance(learner, _WEAK) else "strong"
        size, radius = getattr(found, kind), math.nextafter(found.radius, math.inf)
        # Any margin shows whether there is a theorem.
        assumed = math.nextafter(size, 0.0) if size > 0.0 else radius / 2
        claims = learner.promise(
            n_classes=len(found.classes), n_features=found.n_features, radius=radius, margin=assumed
        )
        if claims and size == 0.0:
            is_not = getattr(found, f"{kind}_limit") == 0.0
            why = f"these rows are not {kind}ly separable" if is_not else f"no {kind} margin was found"
            return _no_bound(f"nothing: {why}")
    claims = [claim for claim in claims if claim.about in ("mistakes", "expected mistakes")]
    spoken = [claim for claim in claims if claim.log2 is not None]
    if not spoken:
        why = next((claim.silent_because for claim in claims if claim.silent_because), "")
        return _no_bound(f"nothing: {why}" if why else "no theorem speaks of it")
    best = min(spoken, key=lambda claim: claim.log2 or 0.0)
    # Others lie beyond any session.
    drawn = float(best.value) if best.value is not None and best.value < _LONG else None
    number = bound_text(None if drawn is None else math.floor(drawn), best.log2)
    theorem = best.theorem.partition("-")[0]
    name = f"{'Corollary' if theorem == '6' else 'Theorem'} {theorem}"
    name = name if theorem.isdigit() else f"{theorem}'s own theorem"
    on_average = " on average" if best.about == "expected mistakes" else ""
    return {"mistakes": drawn, "says": f"at most {number}{on_average} ({name})"}


def _no_bound(why: str) -> dict[str, Any]:
    return {"mistakes": None, "says": why}


# The sessions.


class _Point(Struct, forbid_unknown_fields=True):
    """A point that a person draws."""

    x: _Number
    y: _Number
    label: Annotated[str, Meta(max_length=40)]


class Session:
    """One to four learners of `_CATALOGUE` on the same rounds, of a scene that is the session's own. Thread-safe."""

    def __init__(self, scene: Scene, learners: Sequence[str], seed: int) -> None:
        if not 1 <= len(learners) <= _MOST_LEARNERS or len(set(learners)) < len(learners):
            raise ValueError(f"learners must be 1 to {_MOST_LEARNERS} different ones; got {list(learners)!r}")
        self._keys, self._scene, self._seed = tuple(learners), scene, seed
        self._classes = list(range(len(scene.labels)))
        self._learners = self._fresh()
        for learner in self._learners:
            if isinstance(learner, LinUCB) and scene.n_features**2 * len(scene.labels) > _MOST_SQUARED:
                raise ValueError(f"LinUCB takes too long with {scene.n_features} columns; choose another learner")
            learner.begin(scene.n_features, self._classes)
        self._lock = threading.Lock()
        self._round = 0
        self._mistakes = np.zeros((MOST_ROUNDS + 1, len(learners)), dtype=np.int64)  # after each round
        self._shown: deque[dict[str, Any]] = deque(maxlen=_SHOWN_ROUNDS)
        self._state = _READY
        self._promises: list[dict[str, Any] | None] = [None] * len(learners)
        self._measured = -1
        self._is_over = False

    @staticmethod
    def choices() -> dict[str, Any]:
        """Return what a page may choose from."""
        return {
            "streams": [{"name": name, "title": title} for name, (title, _) in SCENES.items()],
            "learners": [
                {"key": key, "title": each.title, "says": each.description} for key, each in _CATALOGUE.items()
            ],
            "most_learners": _MOST_LEARNERS,
            "most_at_once": _MOST_AT_ONCE,
            "drawn_labels": DRAWN_LABELS,
            "palette": PALETTE[:-1],
        }

    def prepare(self) -> threading.Thread:
        """Compile the learners, and measure the margins for their bounds, in the thread that is returned."""
        self._state = _WARMING_UP
        thread = threading.Thread(target=self._prepare, name="onebit playground", daemon=True)
        thread.start()
        return thread

    def _fresh(self) -> list[Learner]:
        return [_new_learner(key, self._classes, self._seed) for key in self._keys]

    def _prepare(self) -> None:
        try:
            X, y = np.zeros((2, self._scene.n_features)), np.zeros(2, dtype=np.int64)
            X[:, -1] = 1.0
            for twin in self._fresh():
                play_stream(twin, X, y, classes=self._classes)
                twin.score_classes(X)
                twin.probabilities(X[0])
        except Exception as error:  # in a thread: no caller can catch it
            _LOG.error("a session cannot be prepared", exc_info=error)
            self._state = _FAILED
            return
        self._state = _READY
        self._measure()

    def _measure(self) -> None:
        """Find the bounds of the theorems, until no points are added meanwhile."""
        while not self._is_over:
            with self._lock:
                X, y = self._scene.X, self._scene.y
            if self._measured == len(y):
                return
            self._measured = len(y)  # points may be added during the measurement
            try:
                self._promises = self._promises_on(X, y)
            except TimeoutError:
                self._promises = [_no_bound("not measured: it would take too long")] * len(self._keys)
            except Exception as error:  # play goes on without bounds
                _LOG.error("margins cannot be measured", exc_info=error)
                self._promises = [_no_bound("not measured: something went wrong")] * len(self._keys)

    def _promises_on(self, X: Floats, y: Integers) -> list[dict[str, Any] | None]:
        """Return the bounds of all learners on rows; raises TimeoutError if it takes too long, or the session ends."""
        if len(set(y.tolist())) < 2:
            return [_no_bound("nothing yet: one class only")] * len(self._keys)
        if X.size > _MEASURED_CELLS:
            raise TimeoutError
        end = time.monotonic() + _PATIENCE

        def look_at_clock(_progress: Progress) -> None:
            if time.monotonic() > end or self._is_over:
                raise TimeoutError

        found = margin(X, y, classes=self._classes, on_progress=look_at_clock)
        return [_promised(learner, found) for learner in self._fresh()]

    def end(self) -> None:
        """Stop measuring, when the session ends."""
        self._is_over = True

    def advance(self, rounds: Annotated[int, Meta(ge=1, le=_MOST_AT_ONCE)]) -> int:
        """Play rounds with every learner; return how many: fewer if time is up, or there are no more."""
        check_integer("rounds", rounds, low=1, high=_MOST_AT_ONCE)
        with self._locked(needs_learners=True):
            end, played = time.monotonic() + _SECONDS, 0
            while played < rounds and (played == 0 or time.monotonic() < end):
                X, y = self._scene.take(self._round, min(rounds - played, played or 1))  # as many as before
                if not len(y):
                    break
                self._play(X, y)
                played += len(y)
            if self._round >= MOST_ROUNDS:
                self._state = _FINISHED
            return played

    def _play(self, X: Floats, y: Integers) -> None:
        """Play rounds with every learner, and record the results."""
        guesses = np.column_stack(
            [play_stream(learner, X, y, fresh=False, keep_guesses=True).guesses for learner in self._learners]
        )
        places, before = self._scene.picture.places(X), self._round
        self._round += len(y)
        self._mistakes[before + 1 : self._round + 1] = self._mistakes[before] + (guesses != y[:, None]).cumsum(axis=0)
        rounds = zip(places.tolist(), y.tolist(), guesses.tolist(), strict=True)
        for number, (place, truth, guessed) in enumerate(rounds, before + 1):
            self._shown.append({"round": number, "place": place, "truth": truth, "guesses": guessed})

    def add_points(self, points: list[_Point]) -> None:
        """Add points to a session of drawn points: all or none."""
        if not isinstance(self._scene, Drawn):
            raise ValueError(f"points can be drawn only where the stream is drawn; this one is {self._scene.title!r}")
        with self._locked():
            scene = deepcopy(self._scene)
            for point in points:
                scene.add(point.x, point.y, point.label)
            self._scene = scene
            is_due = self._state == _READY and None not in self._promises
            if is_due:
                self._promises = [None] * len(self._keys)
        if is_due:
            threading.Thread(target=self._measure, name="onebit playground", daemon=True).start()

    @contextmanager
    def _locked(self, needs_learners: bool = False) -> Iterator[None]:
        if needs_learners and self._state == _WARMING_UP:
            raise Problem(503, "the session is warming up: code is compiled, once; ask again in a moment")
        if needs_learners and self._state == _FAILED:
            raise Problem(500, f"the session cannot go on ({_WHY_FAILED}); start a new one")
        if not self._lock.acquire(timeout=_LOCK_SECONDS):
            raise Problem(503, "the session is still busy with an earlier request; ask again in a moment")
        try:
            yield
        finally:
            self._lock.release()

    def frame(self) -> dict[str, Any]:
        """Return the data of the page as plain values."""
        with self._locked():
            scene, last = self._scene, self._round
            every = 1
            while last > every * _CURVE_POINTS:  # so that points stay where they are
                every *= 2
            rounds = [*range(0, last, every), last]
            return {
                "state": self._state,
                "why_failed": _WHY_FAILED if self._state == _FAILED else "",
                "round": last,
                "most_rounds": MOST_ROUNDS,
                "stream": {
                    "title": scene.title,
                    "says": scene.description,
                    "labels": list(scene.labels),
                    "picture": scene.picture.caption,
                    "box": list(scene.picture.box),
                    "points": scene.points if isinstance(scene, Drawn) else None,
                },
                "learners": [self._learner_frame(at) for at in range(len(self._keys))],
                "curve": {"rounds": rounds, "mistakes": self._mistakes[rounds].T.tolist()},
                "rounds": list(self._shown),
            }

    def _learner_frame(self, at: int) -> dict[str, Any]:
        key = self._keys[at]
        n_lately, mistakes = min(self._round, _LATELY), self._mistakes[:, at]
        return {
            "key": key,
            "title": _CATALOGUE[key].title,
            "color": _LOOKS[key].color,
            "dashes": list(_LOOKS[key].dashes[1]),
            "mistakes": int(mistakes[self._round]),
            "lately": int(mistakes[self._round] - mistakes[self._round - n_lately]),
            "n_lately": n_lately,
            "promise": self._promises[at],
        }

    def regions(self, learner: int, size: int = 32) -> dict[str, Any]:
        """Return every class's score in each cell of the picture, and the learner's stored examples.

        Scores rather than labels, since they can be interpolated: a coarse grid gives smooth boundaries.
        """
        chosen = self._chosen(learner)
        check_integer("size", size, low=4, high=_LARGEST_GRID)
        with self._locked(needs_learners=True):
            scores = np.nan_to_num(chosen.score_classes(self._scene.picture.grid(size)))
            scores = (scores / (np.abs(scores).max() or 1.0)).round(5).T.tolist()
            shown = {"learner": learner, "size": size, "round": self._round, "scores": scores}
            return shown | {"facts": self._facts(chosen)}

    def _facts(self, learner: Learner) -> list[dict[str, Any]] | None:
        """Return the positions of the latest stored examples, with the label that each has or does not have."""
        if not isinstance(learner, BanditSVM) or learner.n_rounds_ == 0:
            return None
        places, facts = self._scene.picture.places(learner.support_[-_SHOWN_FACTS:]).tolist(), []
        for place, proved in zip(places, learner.proved_[-_SHOWN_FACTS:], strict=True):
            right = np.flatnonzero(proved > 0).tolist()
            is_not = [] if right else np.flatnonzero(proved < 0).tolist()
            facts.append({"place": place, "is": right[0] if right else None, "is_not": is_not})
        return facts

    def opinions(self, learner: int, x: _Number, y: _Number) -> dict[str, Any]:
        """Return the guesses at a point of the picture: of each kernel, or the learner's propensities."""
        chosen = self._chosen(learner)
        with self._locked(needs_learners=True):
            row = self._scene.picture.rows(np.array([[x, y]]))[0]
            chances = chosen.probabilities(row)
            opinions = chosen.opinions(row) if isinstance(chosen, BanditSVM) else ()
            voices = [
                {"kernel": kernel_name(each.kernel), "label": int(each.label), "weight": round(each.weight, 4)}
                for each in opinions
            ]
            guess = int(np.argmax(chances))
            return {"learner": learner, "guess": guess, "chances": chances.round(4).tolist(), "voices": voices}

    def _chosen(self, learner: int) -> Learner:
        return self._learners[check_integer("learner", learner, low=0, high=len(self._learners) - 1)]


class Oracle:
    """A learner of `_CATALOGUE` that asks a person about digits, with two to ten labels. Thread-safe."""

    def __init__(self, classes: list[str], learner: str = "svm", seed: int = 0) -> None:
        names = [printable(name.strip()) for name in classes]
        is_named = 2 <= len(names) <= _MOST_NAMES and len(set(names)) == len(names)
        if not is_named or any(not 1 <= len(name) <= _LONGEST_NAME for name in names):
            raise ValueError(
                f"classes must be 2 to {_MOST_NAMES} different names of 1 to {_LONGEST_NAME} letters; "
                f"got {list(classes)!r:.200}"
            )
        if learner in _CATALOGUE and type(_CATALOGUE[learner].learner).full_information:
            raise ValueError(f"learner must be one that hears right or wrong only; got {learner!r}")
        self._lock = threading.Lock()
        self._classes = names
        self._learner = _new_learner(learner, names, check_seed(seed))
        self._title = _CATALOGUE[learner].title
        digits = bundled("digits").X
        order = np.random.default_rng(seed).permutation(len(digits))
        self._shelf, self._digits = digits[order[:_SHELF]], digits[order[_SHELF:]]
        self._learner.begin(digits.shape[1], names)
        self._round, self._right = 0, 0
        self._answers: deque[dict[str, Any]] = deque(maxlen=_REMEMBERED)
        self._begin_round()

    def _begin_round(self) -> None:
        self._digit = self._digits[self._round % len(self._digits)]
        self._guess = self._learner.guess(self._digit)
        self._round += 1

    def answer(self, round: int, correct: bool) -> None:
        """Give feedback for a round; raises Problem unless it is the current one."""
        with self._lock:
            if round != self._round:
                message = f"round must be {self._round}, the present one; got {round}. It was answered already"
                raise Problem(409, message)
            if self._round > _MOST_ANSWERS:
                raise ValueError(f"there are at most {_MOST_ANSWERS} rounds; start again")
            self._learner.tell(self._guess, correct)
            image = self._digit.astype(int).tolist()
            self._answers.append({"image": image, "guess": self._guess.label, "correct": correct})
            self._right += correct
            self._begin_round()

    def frame(self) -> dict[str, Any]:
        """Return the data of the page as plain values."""
        with self._lock:
            is_over = self._round > _MOST_ANSWERS
            scores = self._learner.score_classes(self._shelf)
            return {
                "state": _FINISHED if is_over else _READY,
                "learner": self._title,
                "classes": self._classes,
                "round": self._round,
                "image": self._digit.astype(int).tolist(),
                "guess": None if is_over else self._guess.label,
                "right": self._right,
                "answered": self._round - 1,
                "lately": [each["correct"] for each in self._answers][-_LATEST:],
                "answers": list(self._answers),
                "shelf": self._shelf.astype(int).tolist(),
                "sorted_as": np.argmax(scores, axis=1).tolist() if self._round > 1 else None,
            }
