"""The paper's experiments: which learners play what, the numbers it prints, and our mistakes beside them.

The published numbers are read off the paper's vector figures 4 and 5 (Beygelzimer, Pál, Szörényi, Thiruvenkatachari,
Wei, Zhang (2019), Bandit multiclass linear classification: efficient algorithms for the separable case, ICML); each
curve is the mean over the authors' 20 runs. A mean agrees with the paper if it lies within 5 %. A larger difference is
explained by `EXPLANATIONS`. Without an explanation, the mean still agrees if it lies within three standard errors of
the difference, taking the authors' runs to spread as ours do; otherwise the difference is called unexplained.
"""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onebit.experiments.comparison import Comparison, Outcome
from onebit.experiments.entries import Entry, enter
from onebit.experiments.players import NOT_SETTINGS, build
from onebit.inputs import Floats
from onebit.kernels import Rational
from onebit.learners import BanditPerceptron, Banditron, BanditSVM, Learner, MulticlassPerceptron
from onebit.reporting.pages import Block, FigureFile, section, what_was_run, write_page
from onebit.reporting.text import Cell, Table, fixed, grouped, number, what_means_are, with_error, write_csv
from onebit.streams.sources import Source

DATASETS = {"strong": "strongly separable", "weak": "weakly separable"}
STREAMS = {"strong": "paper_strong", "weak": "paper_weak"}
_RATES = (0.02, 0.01, 0.005, 0.002, 0.001, 0.0005)  # Banditron's exploration rates in the paper
PAPER_ROUNDS, PAPER_RUNS = 5_000_000, 20  # Section 6
QUICK_ROUNDS, QUICK_RUNS = 100_000, 5  # seconds, and the order of the curves is already that of the full game
_SUMMARY_COLUMNS = ("dataset", "learner", "parameters", "mean", "standard_error", "min", "max", "published", "remark")
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
}  # what is known about a difference of more than 5 %, by data set and contestant
_LEARNERS = {
    # The paper has one curve of each algorithm; its authors' program and the printed one are both held against it.
    "algorithm-1": "perceptron-linear",
    "algorithm-1-authors": "perceptron-linear",
    "algorithm-2": "perceptron-rational",
    "algorithm-2-authors": "perceptron-rational",
}
Curve = tuple[Floats, Floats]  # rounds, and mean cumulative mistakes
CITATION = (
    "A. Beygelzimer, D. Pál, B. Szörényi, D. Thiruvenkatachari, C.-Y. Wei, C. Zhang (2019). Bandit multiclass linear "
    "classification: efficient algorithms for the separable case. International Conference on Machine Learning (ICML)."
)
# A remark begins with one of these words.
_KINDS = {"agrees": "good", "explained": "known", "unexplained": "bad"}
_INTRO = (
    "Two streams of three classes, one strongly and one weakly separable, played by the paper's algorithms. A learner "
    "names a label each round and learns only whether it was right."
)
_MISTAKES = (
    "Mean number of mistakes after the last round ± its standard error (a single run has none), and the least and the "
    "most of any run."
)
_VERDICTS = (
    "A row agrees if its mean is within 5 % of the published one or, where no cause of a difference is known, within "
    "three standard errors (taking the authors' runs to spread as ours do). Every other difference is explained or "
    "called unexplained."
)
_SOURCES = (
    "The published values are the end points of the curves in the paper's Figures 4 and 5, read off its vector "
    "graphics; each is the mean over the authors' 20 runs. The figures keep the paper's numbers."
)


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


def paper_comparison(rounds: int = PAPER_ROUNDS, runs: int = PAPER_RUNS, seed: int = 0) -> Comparison:
    """Return what is played; the paper's size by default."""
    return Comparison(
        tuple(Source(dataset, stream=stream) for dataset, stream in STREAMS.items()),
        tuple(contestants()),
        rounds=rounds,
        runs=runs,
        seed=seed,
        # The paper's features have length at most 1 by construction, as the rational kernel needs.
        preprocessing="none",
        # Figures 6 to 8 show what was learned.
        keep_learned=True,
    )


@cache
def published_curves() -> dict[tuple[str, str], Curve]:
    """Return the published curves by data set ("strong", "weak") and by the paper's learner."""
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    text = files("onebit.experiments").joinpath("published_curves.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        points.setdefault((row["dataset"], row["learner"]), []).append(
            (float(row["round"]), float(row["mean_mistakes"]))
        )
    return {key: (np.array(curve)[:, 0], np.array(curve)[:, 1]) for key, curve in points.items()}


def published_learner(key: str) -> str | None:
    """Return the paper's name of a contestant, or None if the paper has none."""
    name = _LEARNERS.get(key, key)
    return name if any(learner == name for _, learner in published_curves()) else None


def published_mistakes(dataset: str, key: str) -> float | None:
    """Return the end point of a contestant's published curve, or None if the paper has none."""
    name = published_learner(key)
    return None if name is None else float(published_curves()[dataset, name][1][-1])


class SummaryRow(NamedTuple):
    """One contestant on one data set, after the last round."""

    outcome: Outcome
    parameters: str  # its settings that differ from the defaults
    published: float | None  # the paper's number, if it has one for as many rounds
    remark: str


def summarize(outcomes: Iterable[Outcome]) -> list[SummaryRow]:
    """Return one row per outcome, in their order."""
    rows = []
    for outcome in outcomes:
        in_paper = published_mistakes(outcome.dataset, outcome.entry.key)
        is_comparable = int(outcome.rounds[-1]) == PAPER_ROUNDS
        remark = _remark(outcome, in_paper, is_comparable)
        settings = parameters(build(outcome.entry.spec))
        rows.append(SummaryRow(outcome, settings, in_paper if is_comparable else None, remark))
    return rows


def parameters(learner: Learner) -> str:
    """Return the settings that differ from the defaults, classes and seed left out."""
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
            *(outcome.dataset, outcome.entry.key, settings, number(outcome.mean), number(outcome.standard_error)),
            *(int(outcome.final.min()), int(outcome.final.max()), number(published), remark),
        )
        for outcome, settings, published, remark in rows
    ]
    write_csv(path, _SUMMARY_COLUMNS, lines)


def summary_table(rows: list[SummaryRow], n_runs: int) -> Table:
    """Return our mistakes beside the published ones, for the screen."""
    lines = [
        [
            *(each.dataset, each.entry.key, with_error(each.mean, each.standard_error)),
            *(grouped(int(each.final.min())), grouped(int(each.final.max())), grouped(published)),
        ]
        for each, _, published, _ in rows
    ]
    columns = ("data", "learner", "mean", "min", "max", "paper")
    return Table(columns, lines, what_means_are(n_runs), styles=("name", "name", *["number"] * 4))


def write_report(
    path: Path, rows: Sequence[SummaryRow], figures: Sequence[FigureFile], details: Mapping[str, str]
) -> None:
    """Write the page: what was run, the table beside the published numbers, every figure, how to run it again."""
    rounds, n_runs = int(rows[0].outcome.rounds[-1]), len(rows[0].outcome.mistakes)
    facts = {
        "Rounds": grouped(rounds),
        "Runs": f"{n_runs} of each learner on each data set (the paper: {PAPER_RUNS})",
        "Command": f"onebit reproduce --rounds {rounds} --runs {n_runs}",
    }
    run, listed, _, command = what_was_run({**facts, **details})
    # Mistakes of a shorter game are not a share of a longer one's: curves flatten.
    size = "As many rounds as in the paper: the numbers can be compared."
    if rounds != PAPER_ROUNDS:
        size = (
            f"This run has {grouped(rounds)} rounds where the paper has {grouped(PAPER_ROUNDS)}: "
            "its numbers cannot be compared with the published ones, which are left out of the table."
        )
    played = {row.outcome.dataset for row in rows}
    tables = [_table(name, [row for row in rows if row.outcome.dataset == name]) for name in DATASETS if name in played]
    has_published = any(row.published is not None for row in rows)
    blocks: list[Block] = [
        *(f"{_INTRO} {size}", run, listed),
        *section("Mistakes", f"{_MISTAKES} {_VERDICTS}" if has_published else _MISTAKES, *tables),
        *section("Figures", *figures),
        *section("How to reproduce it", command, "The same seed, rounds, runs and version give the same numbers."),
        *section("Sources", CITATION, _SOURCES),
    ]
    write_page(path, "Bandit multiclass linear classification: the experiments, reproduced", blocks)


def _table(dataset: str, rows: Sequence[SummaryRow]) -> Table:
    lines: list[list[str | Cell]] = [
        [
            Cell(outcome.entry.shown, small=outcome.entry.key),
            settings,
            with_error(outcome.mean, outcome.standard_error),
            f"{grouped(int(outcome.final.min()))} to {grouped(int(outcome.final.max()))}",
            grouped(published),
            fixed(outcome.mean / published if published else None, ".2f"),
            Cell(remark, next((_KINDS[word] for word in _KINDS if remark.startswith(word)), "")),
        ]
        for outcome, settings, published, remark in rows
    ]
    columns = ("learner", "settings", "mistakes", "least to most", "published", "ours / published", "remark")
    styles = ("name", "", *["number"] * 4, "remark")
    return Table(columns, lines, f"{DATASETS[dataset].capitalize()} set", (), styles)
