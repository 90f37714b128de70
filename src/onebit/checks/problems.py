"""Small problems for the checks to play."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from onebit.inputs import Floats, Integers
from onebit.learners import Learner
from onebit.playing import play


class Problem(NamedTuple):
    """A stream with a known strong margin; a margin of 0 means that nothing is known."""

    X: Floats
    y: Integers
    n_classes: int
    radius: float
    margin: float


def separable_problem(
    rounds: int, n_classes: int = 3, n_features: int = 4, margin: float = 0.2, seed: int = 0
) -> Problem:
    """Return examples within the unit ball that wᵢ = eᵢ/√K separate strongly with at least that margin."""
    generator = np.random.default_rng([seed, n_classes, n_features])  # each size its own draw
    labels = generator.integers(n_classes, size=rounds)
    signs = np.where(np.arange(n_classes) == labels[:, None], 1.0, -1.0)
    least = margin * np.sqrt(n_classes) / 2.0  # wᵢ = eᵢ/√K asks for xᵢ/√K ≥ γ/2
    room = np.sqrt(1.0 / n_features) - least
    X = np.empty((rounds, n_features))
    X[:, :n_classes] = signs * (least + room * generator.random((rounds, n_classes)))
    X[:, n_classes:] = generator.uniform(-1.0, 1.0, (rounds, n_features - n_classes)) / np.sqrt(n_features)
    return Problem(X, labels, n_classes, radius=1.0, margin=margin)


def noisy_problem(rounds: int, n_classes: int = 4, n_features: int = 5, seed: int = 0) -> Problem:
    """Return overlapping clusters within the unit ball: not separable, so learners keep changing."""
    generator = np.random.default_rng([seed, n_classes, n_features])
    centres = generator.normal(size=(n_classes, n_features))
    labels = generator.integers(n_classes, size=rounds)
    # Spread nearly as wide as the centres lie apart: learners never stop changing.
    X = centres[labels] + 0.8 * generator.normal(size=(rounds, n_features))
    return Problem(X / np.linalg.norm(X, axis=1).max(), labels, n_classes, radius=1.0, margin=0.0)


def _three_directions(n_rounds: int, generator: np.random.Generator) -> tuple[Floats, Integers]:
    angles = np.radians([-13.0, 13.0, 0.0])
    y = generator.integers(3, size=n_rounds)
    return np.column_stack([np.cos(angles), np.sin(angles)])[y], y


def _ten_levels(n_rounds: int, generator: np.random.Generator) -> tuple[Floats, Integers]:
    y = generator.integers(10, size=n_rounds)
    return np.column_stack([(y - 4.5) / np.std(np.arange(10)), np.ones(n_rounds)]), y


def _two_ratings(n_rounds: int, generator: np.random.Generator) -> tuple[Floats, Integers]:
    labels, (i, j) = generator.integers(5, size=(5, 5)), generator.integers(5, size=(2, n_rounds))
    spread = np.std(np.arange(5))
    return np.column_stack([(i - 2) / spread, (j - 2) / spread, np.ones(n_rounds)]), labels[i, j]


def _in_turn(n_rounds: int, _generator: np.random.Generator) -> tuple[Floats, Integers]:
    y = np.arange(n_rounds) % 3
    return np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [3**-0.5, 3**-0.5, 3**-0.5]])[y], y


_LOCK_UPS = {
    "three directions": (_three_directions, 3),
    "ten levels": (_ten_levels, 10),
    "two ratings": (_two_ratings, 5),
    "rows in turn": (_in_turn, 3),
}


def lock_up_problem(name: str, n_rounds: int, seed: int) -> Problem:
    """Return a stream of few rows without noise on which a learner that keeps facts can repeat a mistake forever.

    Right guesses on neighbours prove "not y" where y is right, so that y scores below classes that were proved wrong
    there, and the same wrong guess teaches nothing new. `name` is "three directions", "ten levels" (of a rating),
    "two ratings" (with labels at random) or "rows in turn".
    """
    draw, n_classes = _LOCK_UPS[name]
    X, y = draw(n_rounds, np.random.default_rng(seed))
    return Problem(X, y, n_classes, radius=float(np.linalg.norm(X, axis=1).max()), margin=0.0)


def fresh(learner: Learner, **settings: Any) -> Learner:
    """Return an unplayed learner with the same settings, some replaced: the classes are the problem's, not its own."""
    copy: Learner = clone(learner).set_params(**{"classes": None, **settings})
    return copy


def scales_rows(learner: Learner) -> bool:
    """Return whether a learner scales columns itself: then sparse rows, which stay sparse, are another game."""
    return getattr(learner, "scale", None) is not None


def snapshot(learner: Learner) -> dict[str, Any]:
    """Return a learner's counts and learned arrays as bytes, for comparison."""
    counts = (learner.n_rounds_, learner.n_mistakes_, learner.n_updates_, learner.n_uniform_guesses_)
    return {"counts": counts, **{name: array.tobytes() for name, array in learner.learned().items()}}


def guesses_of(learner: Learner, X: Any, y: Any, **options: Any) -> Any:
    """Play and return the label guessed in every round."""
    guesses = play(learner, X, y, keep_guesses=True, **options).guesses
    assert guesses is not None
    return guesses


def tell(learner: Learner, guess: Any, label: int) -> None:
    """Give the feedback on a guess, with the label if the learner has full information."""
    if learner.full_information:
        learner.tell(guess, guess.label == label, label=label)
    else:
        learner.tell(guess, guess.label == label)


def raises_value_error(action: Callable[..., Any], *arguments: Any, **named: Any) -> bool:
    """Return whether a call raises a ValueError with a message."""
    try:
        action(*arguments, **named)
    except ValueError as error:
        return bool(str(error))
    return False
