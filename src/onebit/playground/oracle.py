"""A person as oracle: digits are shown one by one, and the person gives the feedback."""

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from onebit.game import Guess
from onebit.inputs import check_seed
from onebit.playground.catalogue import CATALOGUE, new_learner
from onebit.reporting.text import printable
from onebit.streams import bundled

MOST_ANSWERS = 2000  # maximum number of answers in a session
MOST_NAMES, LONGEST_NAME = 10, 40

_SHELF = 40  # digits shown sorted by the learner's current guess
_REMEMBERED = 12  # answers shown
_LATELY = 10


class StaleError(ValueError):
    """Feedback for a round that is over."""


class Oracle:
    """A learner of `CATALOGUE` that asks a person about digits, with two to ten labels. Thread-safe.

    >>> oracle = Oracle(["even", "odd"], "perceptron", seed=0)
    >>> oracle.frame()["guess"] in ("even", "odd")
    True
    >>> oracle.answer(1, correct=True)
    >>> oracle.frame()["round"], oracle.frame()["right"]
    (2, 1)
    """

    def __init__(self, classes: Sequence[str], learner: str, seed: int) -> None:
        names = [printable(name.strip()) for name in classes]
        if not 2 <= len(names) <= MOST_NAMES or len(set(names)) < len(names) or "" in names:
            raise ValueError(f"classes must be 2 to {MOST_NAMES} different names; got {list(classes)!r:.200}")
        if any(len(name) > LONGEST_NAME for name in names):
            raise ValueError(f"classes must be names of at most {LONGEST_NAME} letters; got {list(classes)!r:.200}")
        if learner in CATALOGUE and type(CATALOGUE[learner].learner).full_information:
            raise ValueError(f"learner must be one that hears right or wrong only; got {learner!r}")
        self._lock = threading.Lock()
        self._classes = names
        self._title = CATALOGUE[learner].title if learner in CATALOGUE else ""
        self._learner = new_learner(learner, names, check_seed(seed))
        digits = bundled("digits").X
        order = np.random.default_rng(seed).permutation(len(digits))
        self._shelf, self._digits = digits[order[:_SHELF]], digits[order[_SHELF:]]
        self._learner.begin(digits.shape[1], names)
        self._round, self._right = 1, 0
        self._answers: deque[dict[str, Any]] = deque(maxlen=_REMEMBERED)
        self._lately: deque[bool] = deque(maxlen=_LATELY)
        self._guess: Guess | None = None

    def answer(self, round: int, correct: bool) -> None:
        """Give feedback for a round; raises StaleError unless it is the current one."""
        with self._lock:
            if round != self._round:
                raise StaleError(f"round must be {self._round}, the present one; got {round}. It was answered already")
            if self._round > MOST_ANSWERS:
                raise ValueError(f"there are at most {MOST_ANSWERS} rounds; start again")
            guess = self._open_guess()
            self._learner.tell(guess, correct)
            self._answers.append({"image": self._image(), "guess": guess.label, "correct": correct})
            self._lately.append(correct)
            self._right += correct
            self._round, self._guess = self._round + 1, None

    def frame(self) -> dict[str, Any]:
        """Return the data of the page as plain values."""
        with self._lock:
            is_over = self._round > MOST_ANSWERS
            scores = self._learner.score_classes(self._shelf)
            sorted_as = np.argmax(scores, axis=1).tolist() if self._round > 1 else None
            return {
                "state": "finished" if is_over else "ready",
                "learner": self._title,
                "classes": self._classes,
                "round": self._round,
                "image": self._image(),
                "guess": None if is_over else self._open_guess().label,
                "right": self._right,
                "answered": self._round - 1,
                "lately": list(self._lately),
                "answers": list(self._answers),
                "shelf": self._shelf.astype(int).tolist(),
                "sorted_as": sorted_as,
            }

    def _image(self) -> list[int]:
        image: list[int] = self._digits[(self._round - 1) % len(self._digits)].astype(int).tolist()
        return image

    def _open_guess(self) -> Guess:
        if self._guess is None:
            self._guess = self._learner.guess(self._digits[(self._round - 1) % len(self._digits)])
        return self._guess
