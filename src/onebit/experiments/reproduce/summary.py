"""The table of an experiment: our mistakes beside the published ones, with every difference accounted for.

A mean agrees with the paper if it lies within 5 %. A larger difference is explained by `EXPLANATIONS`. Without an
explanation, the mean still agrees if it lies within three standard errors of the difference, taking the authors' 20
runs to spread as ours do; otherwise the difference is called unexplained.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from onebit.experiments.comparison import Outcome
from onebit.experiments.players import NOT_SETTINGS, build
from onebit.experiments.reproduce.contestants import PAPER_ROUNDS, PAPER_RUNS
from onebit.experiments.reproduce.published import published_mistakes
from onebit.learners import Learner
from onebit.reporting.tables import grouped, number, write_csv

SUMMARY_COLUMNS = ("dataset", "learner", "parameters", "mean", "standard_error", "min", "max", "published", "remark")
CURVE_COLUMNS = ("dataset", "learner", "round", "mean", "standard_error", "min", "max")
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
EXPLANATIONS: dict[tuple[str, str], str] = {
    ("strong", "algorithm-1"): _OTHER_PROGRAM,
    ("weak", "algorithm-1"): f"{_OTHER_PROGRAM}; the printed one also varies widely from run to run on this set",
    ("strong", "algorithm-2"): _NINETEEN,
    ("strong", "algorithm-2-authors"): _NINETEEN,
    ("weak", "algorithm-2"): _SCALING,
    ("weak", "algorithm-2-authors"): _SCALING,
}
"""What is known about a difference of more than 5 %, by data set and contestant."""


@dataclass(frozen=True)
class SummaryRow:
    """One contestant on one data set, after the last round."""

    dataset: str
    learner: str
    """The contestant's key."""
    parameters: str
    """Its settings that differ from the defaults."""
    mean: float
    standard_error: float
    """NaN for a single run."""
    minimum: int
    maximum: int
    published: float | None
    """The paper's number, if it has one for as many rounds."""
    remark: str


def summarize(outcomes: Iterable[Outcome]) -> list[SummaryRow]:
    """Return one row per outcome, in their order."""
    return [_row(outcome) for outcome in outcomes]


def _row(outcome: Outcome) -> SummaryRow:
    in_paper = published_mistakes(outcome.dataset, outcome.entry.key)
    is_comparable = int(outcome.rounds[-1]) == PAPER_ROUNDS
    return SummaryRow(
        dataset=outcome.dataset,
        learner=outcome.entry.key,
        parameters=parameters(build(outcome.entry.spec)),
        mean=outcome.mean,
        standard_error=outcome.standard_error,
        minimum=int(outcome.final.min()),
        maximum=int(outcome.final.max()),
        published=in_paper if is_comparable else None,
        remark=_remark(outcome, in_paper, is_comparable),
    )


def parameters(learner: Learner) -> str:
    """Return the settings that differ from the defaults, classes and seed left out.

    >>> from onebit.learners import Banditron
    >>> parameters(Banditron(0.02, classes=3, seed=7))
    'exploration=0.02'
    """
    # The same words as in a constructor call, so that a reader can type them.
    defaults: dict[str, Any] = type(learner)().get_params(deep=False)
    settings: dict[str, Any] = learner.get_params(deep=False)
    changed = [name for name in sorted(settings) if settings[name] != defaults[name]]
    return ", ".join(f"{name}={_short(settings[name])}" for name in changed if name not in NOT_SETTINGS)


def _short(setting: Any) -> str:
    if not is_dataclass(setting):
        return str(setting)
    changed = [field.name for field in fields(setting) if getattr(setting, field.name) != field.default]
    shown = ", ".join(f"{name}={getattr(setting, name)}" for name in changed)
    return f"{type(setting).__name__}({shown})" if shown else type(setting).__name__


def _remark(outcome: Outcome, published: float | None, is_comparable: bool) -> str:
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
    known = EXPLANATIONS.get((outcome.dataset, outcome.entry.key))
    if abs(mean - published) <= _SHARE * published:
        is_far = error > 0 and abs(mean - published) > _STANDARD_ERRORS * error
        verdict = "agrees to within 5 %, not to within the spread of the runs: unexplained" if is_far else "agrees"
    elif known is None and abs(mean - published) <= _STANDARD_ERRORS * error:
        verdict = "agrees within the spread of the runs"
    else:
        verdict = known or "unexplained"
    return f"{verdict} ({away})"


def write_summary(rows: Iterable[SummaryRow], path: Path) -> None:
    """Write the table as CSV; the same rows give the same bytes."""
    lines = [
        (
            row.dataset,
            row.learner,
            row.parameters,
            number(row.mean),
            number(row.standard_error),
            row.minimum,
            row.maximum,
            "" if row.published is None else number(row.published),
            row.remark,
        )
        for row in rows
    ]
    write_csv(path, SUMMARY_COLUMNS, lines)


def write_curves(outcomes: Iterable[Outcome], path: Path) -> None:
    """Write every curve as CSV; the same outcomes give the same bytes."""
    lines = [
        (outcome.dataset, outcome.entry.key, t, number(mean), number(error), low, high)
        for outcome in outcomes
        for t, mean, error, low, high in zip(
            outcome.rounds.tolist(),
            outcome.means.tolist(),
            outcome.errors.tolist(),
            outcome.mistakes.min(axis=0).tolist(),
            outcome.mistakes.max(axis=0).tolist(),
            strict=True,
        )
    ]
    write_csv(path, CURVE_COLUMNS, lines)
