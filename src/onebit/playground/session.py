"""Sessions of the playground: one to four of its learners on the same rounds, with the data of their page."""

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
from onebit.inputs import Floats, Integers, check_integer
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
from onebit.reporting.text import bound_text
from onebit.service.gate import Problem
from onebit.theory import Margin, Progress, margin

_MOST_LEARNERS = 4  # maximum number of learners in a session
_MOST_AT_ONCE = 500  # maximum number of rounds in one call of `Session.advance`
READY, FINISHED = "ready", "finished"
# This budget limits a session to some megabytes, and a picture to some tenths of a second.
_BUDGET = 300
_PATIENCE = 10.0  # seconds to measure margins
_WEAK = (MulticlassPerceptron, NearestNeighbor)  # learners whose theorems need only a weak margin
_LONG = 10**7  # larger numbers are shown as powers of two
_LARGEST_GRID = 80  # cells along one side of a picture
_SHOWN_ROUNDS = 250  # points in the picture
_LATELY = 100  # rounds of the recent mistakes
_CURVE_POINTS = 300
_SHOWN_FACTS = 300
_SECONDS = 0.1  # after which `advance` plays no more rounds, but not before one
_LOCK_SECONDS = 30.0
_MEASURED_CELLS = 200_000  # rows × columns up to which the margin is measured
_MOST_SQUARED = 500_000  # maximum columns × columns × classes of second-order learners: half a second a round
_Number = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]


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


CATALOGUE = {
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
    for key, entry in CATALOGUE.items()
)
"""Colour and dashes of each learner by key; the same for all budgets."""


def new_learner(key: str, classes: Sequence[str | int], seed: int) -> Learner:
    """Return a new learner of the catalogue."""
    if key not in CATALOGUE:
        raise ValueError(f"learner must be one of {', '.join(CATALOGUE)}; got {key!r}")
    learner = CATALOGUE[key].learner
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
    """One to four learners of `CATALOGUE` on the same rounds, of a scene that is the session's own. Thread-safe."""

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

    @staticmethod
    def choices() -> dict[str, Any]:
        """Return what a page may choose from."""
        return {
            "streams": [{"name": name, "title": title} for name, (title, _) in SCENES.items()],
            "learners": [
                {"key": key, "title": each.title, "says": each.description} for key, each in CATALOGUE.items()
            ],
            "most_learners": _MOST_LEARNERS,
            "most_at_once": _MOST_AT_ONCE,
            "drawn_labels": DRAWN_LABELS,
            "palette": PALETTE[:-1],
        }

    def _fresh(self) -> list[Learner]:
        return [new_learner(key, self._classes, self._seed) for key in self._keys]

    def promises(self) -> list[dict[str, Any]]:
        """Return what the theorems promise of each learner on the session's rows, whose margins are measured."""
        X, y, end = self._scene.X, self._scene.y, time.monotonic() + _PATIENCE

        def look_at_clock(_progress: Progress) -> None:
            if time.monotonic() > end:
                raise TimeoutError

        if len(set(y.tolist())) < 2:
            return [_no_bound("nothing yet: one class only")] * len(self._keys)
        try:
            if X.size > _MEASURED_CELLS:
                raise TimeoutError
            found = margin(X, y, classes=self._classes, on_progress=look_at_clock)
        except TimeoutError:
            return [_no_bound("not measured: it would take too long")] * len(self._keys)
        return [_promised(learner, found) for learner in self._fresh()]

    def advance(self, rounds: Annotated[int, Meta(ge=1, le=_MOST_AT_ONCE)]) -> int:
        """Play rounds with every learner; return how many: fewer if time is up, or there are no more."""
        check_integer("rounds", rounds, low=1, high=_MOST_AT_ONCE)
        with self._locked():
            end, played = time.monotonic() + _SECONDS, 0
            while played < rounds and (played == 0 or time.monotonic() < end):
                X, y = self._scene.take(self._round, min(rounds - played, played or 1))  # as many as before
                if not len(y):
                    break
                self._play(X, y)
                played += len(y)
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

    @contextmanager
    def _locked(self) -> Iterator[None]:
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
                "state": FINISHED if self._round >= MOST_ROUNDS else READY,
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
            "title": CATALOGUE[key].title,
            "color": _LOOKS[key].color,
            "dashes": list(_LOOKS[key].dashes[1]),
            "mistakes": int(mistakes[self._round]),
            "lately": int(mistakes[self._round] - mistakes[self._round - n_lately]),
            "n_lately": n_lately,
        }

    def regions(self, learner: int, size: int = 32) -> dict[str, Any]:
        """Return every class's score in each cell of the picture, and the learner's stored examples.

        Scores rather than labels, since they can be interpolated: a coarse grid gives smooth boundaries.
        """
        chosen = self._chosen(learner)
        check_integer("size", size, low=4, high=_LARGEST_GRID)
        with self._locked():
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
        with self._locked():
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
