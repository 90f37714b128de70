"""The learners of the playground, with settings and a description each, and what the theorems promise of them."""

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from onebit.bounds import Claim
from onebit.inputs import Floats, Integers
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
from onebit.learners.base import in_linear_space
from onebit.reporting.looks import Look, Shown, looks_of
from onebit.reporting.text import grouped
from onebit.theory import Margin, Progress, margin

MOST_LEARNERS = 4  # maximum number of learners in a session
# This budget limits a session to some megabytes, and a picture to some tenths of a second.
_BUDGET = 300
_PATIENCE = 20.0  # seconds to measure margins
_WEAK = (MulticlassPerceptron, NearestNeighbor)  # learners whose theorems need only a weak margin
_LONG = 10**7  # larger numbers are shown as powers of ten


class Entry(NamedTuple):
    """One learner of the catalogue."""

    learner: Learner  # template with the settings
    title: str
    description: str
    is_square: bool = False  # whether it stores a matrix of columns × columns for each class


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


class Promise(NamedTuple):
    """A theorem's bound on the number of mistakes, or why there is none."""

    mistakes: float | None
    text: str


def measure(
    X: Floats, y: Integers, n_classes: int, patience: float = _PATIENCE, is_wanted: Callable[[], bool] = lambda: True
) -> Margin | None:
    """Return the margins of rows, or None if it takes too long or is cancelled."""
    start = time.monotonic()

    def look_at_clock(_progress: Progress) -> None:
        if time.monotonic() - start > patience or not is_wanted():
            raise TimeoutError

    try:
        return margin(X, y, classes=list(range(n_classes)), on_progress=look_at_clock)
    except TimeoutError:
        return None


def promised(learner: Learner, found: Margin) -> Promise:
    """Return the bound for rows with these margins: in expectation, or for every sequence.

    >>> from onebit import BanditPerceptron
    >>> promised(BanditPerceptron(), margin([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [0, 1, 2])).text
    'at most 18 on average (Theorem 2)'
    """
    if isinstance(getattr(learner, "kernel", None), Rational):
        return _promise_of([claim for claim in found.promises if claim.theorem == "6"])
    if not in_linear_space(learner):
        return Promise(None, "no theorem speaks of it")
    kind, size, limit = ("weak", found.weak, found.weak_limit)
    if not isinstance(learner, _WEAK):
        kind, size, limit = ("strong", found.strong, found.strong_limit)
    # Any margin shows whether there is a theorem.
    numbers = {"n_classes": len(found.classes), "n_features": found.n_features}
    radius = math.nextafter(found.radius, math.inf)
    claims = learner.promise(**numbers, radius=radius, margin=math.nextafter(size, 0.0) if size > 0.0 else radius / 2)
    if not claims:
        return Promise(None, "no theorem speaks of it")
    if size > 0.0:
        return _promise_of(claims)
    why = f"these rows are not {kind}ly separable" if limit == 0.0 else f"no {kind} margin was found"
    return Promise(None, f"nothing: {why}")


def _promise_of(claims: "list[Claim] | tuple[Claim, ...]") -> Promise:
    of_mistakes = [claim for claim in claims if claim.about in ("mistakes", "expected mistakes")]
    spoken = [claim for claim in of_mistakes if claim.log2 is not None]
    if not spoken:
        why = next((claim.silent_because for claim in of_mistakes if claim.silent_because), "")
        return Promise(None, f"nothing: {why}" if why else "no theorem speaks of it")
    best = min(spoken, key=lambda claim: claim.log2 or 0.0)
    # Bounds beyond any session are shown as text, but not drawn.
    drawn = float(best.value) if best.value is not None and best.value < _LONG else None
    number = grouped(math.floor(drawn)) if drawn is not None else _power(best.log2 or 0.0)
    on_average = " on average" if best.about == "expected mistakes" else ""
    return Promise(drawn, f"at most {number}{on_average} ({_name(best)})")


def _power(log2: float) -> str:
    exponent = math.ceil(log2 * math.log10(2.0))
    return "10" + str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _name(claim: Claim) -> str:
    number = claim.theorem.partition("-")[0]
    if not number.isdigit():
        return f"{number}'s own theorem"
    return f"Corollary {number}" if number == "6" else f"Theorem {number}"
