"""The paper's experiments: which learners play what, the numbers it prints, and our mistakes beside them.

The published numbers are read off the paper's vector figures 4 and 5 (Beygelzimer, Pál, Szörényi, Thiruvenkatachari,
Wei, Zhang (2019), Bandit multiclass linear classification: efficient algorithms for the separable case, ICML); each
curve is the mean over the authors' 20 runs. A mean agrees with the paper if it lies within 5 %. A larger difference is
explained by `_EXPLANATIONS`. Without an explanation, the mean still agrees if it lies within three standard errors of
the difference, taking the authors' runs to spread as ours do; otherwise the difference is called unexplained.
"""

import csv
import math
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onebit.experiments.entries import Entry, enter
from onebit.experiments.players import NOT_SETTINGS, build
from onebit.inputs import Floats
from onebit.kernels import Rational
from onebit.learners import BanditPerceptron, Banditron, BanditSVM, Learner, MulticlassPerceptron
from onebit.reporting.text import grouped

if TYPE_CHECKING:
    from onebit.experiments.comparison import Outcome

DATASETS = {"strong": "strongly separable", "weak": "weakly separable"}
_RATES = (0.02, 0.01, 0.005, 0.002, 0.001, 0.0005)  # Banditron's exploration rates in the paper
PAPER_ROUNDS, PAPER_RUNS = 5_000_000, 20  # Section 6
_STANDARD_ERRORS = 3.0  # among twenty comparisons a difference of two is no surprise
_SHARE = 0.05  # what is lost in reading curves off a figure, and a reader would still call the same

_OTHER_PROGRAM = (
    "explained: the authors' program differs from the printed algorithm (after any right guess it also takes x away "
    "from every other claiming class), and their curve belongs to the row of the authors' update"
)
_NINETEEN = (
    "explained: on features (x₁, x₂, 1) that are not divided by √2, and so lie outside the kernel's unit ball, the "
    "authors' update makes 19.5 ± 2.0 mistakes in 200 000 rounds (20 runs), where the paper's curve is flat at 19.3"
)
_SCALING = (
    "unexplained: features that are not divided by √2, which explain the strong set, give 200 to 350 mistakes here; "
    "other scalings of the features move this number from 200 to 6 000, but none that was tried gives the paper's curve"
)
# A cause is named only where an experiment shows it; docs/experiments/paper.md has the experiments.
_EXPLANATIONS: dict[tuple[str, str], str] = {
    ("strong", "algorithm-1"): _OTHER_PROGRAM,
    ("weak", "algorithm-1"): f"{_OTHER_PROGRAM}; the printed one also varies widely from run to run on this set",
    ("strong", "algorithm-2"): _NINETEEN,
    ("strong", "algorithm-2-authors"): _NINETEEN,
    ("weak", "algorithm-2"): _SCALING,
    ("weak", "algorithm-2-authors"): _SCALING,
}  # what is known about a difference of more than 5 %, by data set and contestant
_LEARNERS = {"algorithm-1": "perceptron-linear", "algorithm-2": "perceptron-rational"}  # the paper's names


def contestants() -> list[Entry]:
    """Return all entries, in the order of the tables."""
    return [
        enter(BanditPerceptron(), "Algorithm 1", "algorithm-1"),
        enter(BanditPerceptron(update="authors"), "Algorithm 1, authors' update", "algorithm-1-authors"),
        enter(BanditPerceptron(Rational()), "Algorithm 2", "algorithm-2"),
        enter(BanditPerceptron(Rational(), update="authors"), "Algorithm 2, authors' update", "algorithm-2-authors"),
        *(enter(Banditron(rate), f"Banditron, ε = {rate:g}", f"banditron-{rate:g}") for rate in _RATES),
        # Ours, on rows as the paper's algorithms get them.
        enter(BanditSVM(scale=None), "BanditSVM (ours)", "bandit-svm"),
        enter(MulticlassPerceptron(), "Multiclass Perceptron", "multiclass-perceptron"),
    ]


@cache
def _published_curves() -> dict[tuple[str, str], tuple[Floats, Floats]]:
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    text = files("onebit.experiments").joinpath("published_curves.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        point = float(row["round"]), float(row["mean_mistakes"])
        points.setdefault((row["dataset"], row["learner"]), []).append(point)
    return {key: (np.array(curve)[:, 0], np.array(curve)[:, 1]) for key, curve in points.items()}


def published_curve(dataset: str, key: str) -> tuple[Floats, Floats] | None:
    """Return the paper's rounds and mean mistakes for a contestant; None if it has none."""
    # It has one curve of each algorithm; its authors' program and the printed one are both held against it.
    key = key.removesuffix("-authors")
    return _published_curves().get((dataset, _LEARNERS.get(key, key)))


class SummaryRow(NamedTuple):
    """One contestant on one data set, after the last round."""

    outcome: "Outcome"
    parameters: str  # its settings that differ from the defaults
    published: float | None  # the paper's number, if it has one for as many rounds
    remark: str


def summarize(outcomes: "Iterable[Outcome]") -> list[SummaryRow]:
    """Return one row per outcome, in their order."""
    rows = []
    for outcome in outcomes:
        curve = published_curve(outcome.dataset, outcome.entry.key)
        in_paper = None if curve is None else float(curve[1][-1])
        is_comparable = int(outcome.rounds[-1]) == PAPER_ROUNDS
        remark = _remark(outcome, in_paper, is_comparable)
        settings = _parameters(build(outcome.entry.spec))
        rows.append(SummaryRow(outcome, settings, in_paper if is_comparable else None, remark))
    return rows


def _parameters(learner: Learner) -> str:
    """Return the settings that differ from the defaults, as one would type them; classes and seed left out."""
    defaults: dict[str, Any] = type(learner)().get_params(deep=False)
    settings: dict[str, Any] = learner.get_params(deep=False)
    changed = [name for name in sorted(settings) if settings[name] != defaults[name] and name not in NOT_SETTINGS]
    # A kernel without settings by its name alone.
    return ", ".join(f"{name}={str(settings[name]).removesuffix('()')}" for name in changed)


def _remark(outcome: "Outcome", published: float | None, is_comparable: bool) -> str:
    if published is None:
        return "not in the paper"
    if not is_comparable:
        return f"not comparable: {grouped(outcome.rounds[-1])} rounds instead of {grouped(PAPER_ROUNDS)}"
    mean = outcome.mean
    away = f"{100 * (mean / published - 1):+.1f} %".replace("-", "−")
    # Of the difference of two means: ours over our runs, and the paper's over its own, taken to spread alike.
    error = outcome.standard_error * math.sqrt(1 + len(outcome.mistakes) / PAPER_RUNS)
    if error > 0:
        away += f", {abs(mean - published) / error:.1f} standard errors"
    known = _EXPLANATIONS.get((outcome.dataset, outcome.entry.key))
    if abs(mean - published) <= _SHARE * published:
        is_far = error > 0 and abs(mean - published) > _STANDARD_ERRORS * error
        verdict = "agrees to within 5 %, not to within the spread of the runs: unexplained" if is_far else "agrees"
    elif known is None and abs(mean - published) <= _STANDARD_ERRORS * error:
        verdict = "agrees within the spread of the runs"
    else:
        verdict = known or "unexplained"
    return f"{verdict} ({away})"
