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
from onebit.reporting.looks import Shown, looks_of
from onebit.reporting.text import bound_text
from onebit.theory import Margin, Progress, margin

MOST_LEARNERS = 4  # maximum number of learners in a session
# This budget limits a session to some megabytes, and a picture to some tenths of a second.
_BUDGET = 300
_PATIENCE = 20.0  # seconds to measure margins
_WEAK = (MulticlassPerceptron, NearestNeighbor)  # learners whose theorems need only a weak margin
_LONG = 10**7  # larger numbers are shown as powers of two
_SILENCE = "no theorem speaks of it"


class Entry(NamedTuple):
    """One learner of the catalogue."""

    learner: Learner  # template with the settings
    description: str

    @property
    def title(self) -> str:
        """Its name on the page."""
        name = type(self.learner).__name__
        return f"{name}, rational kernel" if isinstance(getattr(self.learner, "kernel", None), Rational) else name


CATALOGUE = {
    "svm": Entry(BanditSVM(budget=_BUDGET), "keeps what answers prove, and asks a bank of kernels that vote."),
    "perceptron": Entry(BanditPerceptron(), "the paper's Algorithm 1: one weight vector per class."),
    "rational": Entry(
        BanditPerceptron(Rational(normalize=True)), "the paper's Algorithm 2: the same, with curved borders."
    ),
    "banditron": Entry(Banditron(), "the classic: now and then it guesses at random to explore."),
    "linucb": Entry(LinUCB(), "one regression per class, and the benefit of the doubt."),
    "neighbor": Entry(NearestNeighbor(radius=0.05), "remembers rounds, and repeats what was right."),
    "told": Entry(MulticlassPerceptron(), "is told the right label each time: what one bit costs."),
    "chance": Entry(UniformGuess(), "guesses at random and learns nothing."),
}
"""All learners by key."""
LOOKS = looks_of(
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
    """Return the bound for rows with these margins: in expectation, or for every sequence."""
    if isinstance(getattr(learner, "kernel", None), Rational):
        return _promise_of([claim for claim in found.promises if claim.theorem == "6"])
    if not in_linear_space(learner):
        return Promise(None, _SILENCE)
    kind = "weak" if isinstance(learner, _WEAK) else "strong"
    size, radius = getattr(found, kind), math.nextafter(found.radius, math.inf)
    # Any margin shows whether there is a theorem.
    assumed = math.nextafter(size, 0.0) if size > 0.0 else radius / 2
    claims = learner.promise(n_classes=len(found.classes), n_features=found.n_features, radius=radius, margin=assumed)
    if not claims or size > 0.0:
        return _promise_of(claims)
    is_not = getattr(found, f"{kind}_limit") == 0.0
    return Promise(
        None, f"nothing: {f'these rows are not {kind}ly separable' if is_not else f'no {kind} margin was found'}"
    )


def _promise_of(claims: Sequence[Claim]) -> Promise:
    of_mistakes = [claim for claim in claims if claim.about in ("mistakes", "expected mistakes")]
    spoken = [claim for claim in of_mistakes if claim.log2 is not None]
    if not spoken:
        why = next((claim.silent_because for claim in of_mistakes if claim.silent_because), "")
        return Promise(None, f"nothing: {why}" if why else _SILENCE)
    best = min(spoken, key=lambda claim: claim.log2 or 0.0)
    # Others lie beyond any session.
    drawn = float(best.value) if best.value is not None and best.value < _LONG else None
    number = bound_text(None if drawn is None else math.floor(drawn), best.log2)
    theorem = best.theorem.partition("-")[0]
    name = f"{'Corollary' if theorem == '6' else 'Theorem'} {theorem}"
    name = name if theorem.isdigit() else f"{theorem}'s own theorem"
    on_average = " on average" if best.about == "expected mistakes" else ""
    return Promise(drawn, f"at most {number}{on_average} ({name})")
