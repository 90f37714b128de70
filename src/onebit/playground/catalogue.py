"""The learners of the playground, with settings and a description each."""

from collections.abc import Sequence
from typing import NamedTuple

from onebit.kernels import Rational
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
from onebit.reporting.looks import Look, Shown, looks_of

MOST_LEARNERS = 4
"""Maximum number of learners in a session."""
# This budget limits a session to some megabytes, and a picture to some tenths of a second.
_BUDGET = 300


class Entry(NamedTuple):
    """One learner of the catalogue."""

    learner: Learner
    """Template with the settings."""
    title: str
    description: str
    is_square: bool = False
    """Whether it stores a matrix of columns × columns for each class."""


CATALOGUE: dict[str, Entry] = {
    "svm": Entry(
        BanditSVM(budget=_BUDGET),
        "BanditSVM",
        "keeps what answers prove, and asks a bank of kernels that vote.",
    ),
    "perceptron": Entry(
        BanditPerceptron(), "BanditPerceptron", "the paper's Algorithm 1: one weight vector per class."
    ),
    "rational": Entry(
        BanditPerceptron(Rational(normalize=True)),
        "BanditPerceptron, rational kernel",
        "the paper's Algorithm 2: the same, with curved borders.",
    ),
    "banditron": Entry(Banditron(), "Banditron", "the classic: now and then it guesses at random to explore."),
    "linucb": Entry(LinUCB(), "LinUCB", "one regression per class, and the benefit of the doubt.", is_square=True),
    "neighbor": Entry(NearestNeighbor(radius=0.05), "NearestNeighbor", "remembers rounds, and repeats what was right."),
    "told": Entry(
        MulticlassPerceptron(), "MulticlassPerceptron", "is told the right label each time: what one bit costs."
    ),
    "chance": Entry(UniformGuess(), "UniformGuess", "guesses at random and learns nothing."),
}
"""All learners by key."""


def looks() -> dict[str, Look]:
    """Return colour and dashes of each learner by key."""
    # The same style for all budgets.
    found = looks_of(
        Shown(key, repr(entry.learner).replace(f"budget={_BUDGET}", ""), type(entry.learner).full_information)
        for key, entry in CATALOGUE.items()
    )
    return {key: found[key] for key in CATALOGUE}


def new_learner(key: str, classes: Sequence[str | int], seed: int) -> Learner:
    """Return a new learner of the catalogue.

    >>> new_learner("banditron", ["a", "b"], seed=3).classes
    ['a', 'b']
    """
    if key not in CATALOGUE:
        raise ValueError(f"learner must be one of {', '.join(CATALOGUE)}; got {key!r}")
    learner = CATALOGUE[key].learner
    return type(learner)(**{**learner.get_params(deep=False), "classes": list(classes), "seed": seed})
