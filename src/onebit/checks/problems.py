"""Small problems for the checks to play, and what they ask of learners."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from onebit.inputs import Floats, Integers
from onebit.learners import Learner
from onebit.playing import play


class Problem(NamedTuple):
    """Rows and labels, and the number of classes."""

    X: Floats
    y: Integers
    n_classes: int


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
    return Problem(X, labels, n_classes)


def noisy_problem(rounds: int, n_classes: int = 4, n_features: int = 5, seed: int = 0) -> Problem:
    """Return overlapping clusters within the unit ball: not separable, so learners keep changing."""
    generator = np.random.default_rng([seed, n_classes, n_features])
    centres = generator.normal(size=(n_classes, n_features))
    labels = generator.integers(n_classes, size=rounds)
    # Spread nearly as wide as the centres lie apart: learners never stop changing.
    X = centres[labels] + 0.8 * generator.normal(size=(rounds, n_features))
    return Problem(X / np.linalg.norm(X, axis=1).max(), labels, n_classes)


def fresh(learner: Learner, **settings: Any) -> Learner:
    """Return an unplayed learner with the same settings, some replaced: the classes are the problem's, not its own."""
    copy: Learner = clone(learner).set_params(**{"classes": None, **settings})
    return copy


def twins(learner: Learner, classes: Any = 4) -> tuple[Learner, Learner]:
    """Return two unplayed learners with the same settings."""
    return fresh(learner, classes=classes), fresh(learner, classes=classes)


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


def tell(learner: Learner, guess: Any, label: Any) -> None:
    """Give the feedback on a guess, with the label if the learner has full information."""
    learner.tell(guess, guess.label == label, **({"label": label} if learner.full_information else {}))


def play_by_hand(learner: Learner, X: Floats, y: Integers) -> Learner:
    """Play rounds with `guess` and `tell`."""
    for x, label in zip(X, y.tolist(), strict=True):
        tell(learner, learner.guess(x), label)
    return learner


def raises_value_error(action: Callable[..., Any], *arguments: Any, **named: Any) -> bool:
    """Return whether a call raises a ValueError with a message."""
    try:
        action(*arguments, **named)
    except ValueError as error:
        return bool(str(error))
    return False
