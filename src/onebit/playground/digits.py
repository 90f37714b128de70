"""A learner and a person, with handwritten digits: the person judges every guess, or is asked about the unsure ones."""

import threading
import time
from collections import deque
from typing import Any

import numpy as np

from onebit.asking import Asking
from onebit.inputs import check_seed
from onebit.playground.session import CATALOGUE, FINISHED, READY, new_learner
from onebit.reporting.text import printable
from onebit.service.gate import Problem
from onebit.streams import bundled

_MOST_ANSWERS = 2000  # of an oracle
_MOST_NAMES, _LONGEST_NAME = 10, 40
_SHELF = 40  # digits shown sorted by the learner's current guess
_REMEMBERED, _LATEST = 12, 10  # answers shown, and those of the score of late
_SECONDS = 0.3  # after which `go_on` decides no more rounds
_PART = 25  # rounds whose questions are one bar; and of late


def _shuffled(seed: int) -> tuple[Any, Any]:
    """Return images of digits and what they are."""
    digits = bundled("digits")
    order = np.random.default_rng(check_seed(seed)).permutation(len(digits.y))
    return digits.X[order], digits.y[order]


class Oracle:
    """A learner of the catalogue that hears right or wrong about digits, with labels of a person. Thread-safe."""

    def __init__(self, classes: list[str], learner: str = "svm", seed: int = 0) -> None:
        names = [printable(name.strip()) for name in classes]
        is_named = 2 <= len(names) <= _MOST_NAMES and len(set(names)) == len(names)
        if not is_named or any(not 1 <= len(name) <= _LONGEST_NAME for name in names):
            raise ValueError(
                f"classes must be 2 to {_MOST_NAMES} different names of 1 to {_LONGEST_NAME} letters; "
                f"got {list(classes)!r:.200}"
            )
        if learner in CATALOGUE and type(CATALOGUE[learner].learner).full_information:
            raise ValueError(f"learner must be one that hears right or wrong only; got {learner!r}")
        self._lock, self._classes = threading.Lock(), names
        self._learner = new_learner(learner, names, seed)
        self._title = CATALOGUE[learner].title
        images, _ = _shuffled(seed)
        self._shelf, self._digits = images[:_SHELF], images[_SHELF:]
        self._learner.begin(images.shape[1], names)
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
            _check_round(round, self._round)
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
                "state": FINISHED if is_over else READY,
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


class Asker:
    """BanditSVM reads digits within a limit on wrong decisions, and asks a person where it is unsure. Thread-safe.

    The data set says whether decisions made alone were right.
    """

    def __init__(self, wrong_at_most: float = 0.05, seed: int = 0) -> None:
        self._lock, self._asking = threading.Lock(), Asking(wrong_at_most=wrong_at_most)
        self._images, self._truths = _shuffled(seed)
        self._classes = [str(digit) for digit in range(10)]
        self._learner = new_learner("svm", self._classes, seed)
        self._asked: list[bool] = []  # of each round that is over
        self._latest: deque[dict[str, Any]] = deque(maxlen=_REMEMBERED)
        self._begin_round()

    def _begin_round(self) -> None:
        self._is_over = len(self._asked) == len(self._truths)
        if not self._is_over:
            self._guess = self._learner.guess(self._images[len(self._asked)])
            self._decision = self._asking.decide(self._guess.confidence)

    def _end_round(self, label: str) -> None:
        guess, asked, right = self._guess, self._decision.ask, self._guess.label == label
        if asked:
            self._learner.label(guess, label)
        else:
            self._learner.tell(guess, right)
        self._asking.answer(self._decision, right)
        image = self._images[len(self._asked)].astype(int).tolist()
        self._latest.append({"image": image, "guess": guess.label, "asked": asked, "right": right})
        self._asked.append(asked)
        self._begin_round()

    def label(self, round: int, label: str) -> None:
        """Name the digit of the current round, which must be one that is asked about; raises Problem otherwise."""
        with self._lock:
            _check_round(round, len(self._asked) + 1)
            if self._is_over or not self._decision.ask:
                raise Problem(409, f"round {round} is not asked about")
            if label not in self._classes:
                raise ValueError(f"label must be one of {', '.join(self._classes)}; got {label!r:.40}")
            self._end_round(label)

    def go_on(self) -> None:
        """Decide alone until a person is asked, time is up, or there are no more digits."""
        end = time.monotonic() + _SECONDS
        with self._lock:
            while not (self._is_over or self._decision.ask) and time.monotonic() < end:
                self._end_round(self._classes[self._truths[len(self._asked)]])

    def frame(self) -> dict[str, Any]:
        """Return the data of the page as plain values."""
        with self._lock:
            asks, n, counts = not self._is_over and self._decision.ask, len(self._asked), self._asking
            return {
                "state": FINISHED if self._is_over else READY,
                "round": n + 1,
                "image": self._images[n].astype(int).tolist() if asks else None,
                "guess": self._guess.label if asks else None,
                "confidence": self._guess.confidence if asks else None,
                "is_blocked": asks and self._decision.wanted,
                "wrong_at_most": counts.wrong_at_most,
                "asked": sum(self._asked),
                "alone": n - sum(self._asked),
                "wrong": counts.n_wrong,
                "allowed": counts.limit(),
                "lately": sum(self._asked[-_PART:]),
                "n_lately": min(n, _PART),
                "parts": [sum(self._asked[at : at + _PART]) for at in range(0, n, _PART)],
                "part": _PART,
                "latest": list(self._latest),
            }


def _check_round(given: int, current: int) -> None:
    if given != current:
        raise Problem(409, f"round must be {current}, the present one; got {given}. It was answered already")
