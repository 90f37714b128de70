"""The tables of a comparison: files for programs, a table on the screen, a page to read."""

import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from onebit.experiments.comparison import Outcome
from onebit.experiments.statistics import LEVEL, LOSS, TIE, TOO_FEW_RUNS, WIN, ComparisonRow, Tally, signs_to_decide
from onebit.files import replace_file
from onebit.reporting import pages
from onebit.reporting.names import in_cell, in_page, on_screen
from onebit.reporting.style import FigureFile
from onebit.reporting.tables import filled, grouped, number, what_means_are, with_error, write_csv

COMPARISON_COLUMNS = (
    "dataset",
    "rounds",
    "runs",
    "learner",
    "mean",
    "standard_error",
    "ratio_to_full_information",
    "p",
    "p_adjusted",
    "verdict",
    "remark",
)
CURVE_COLUMNS = ("dataset", "learner", "round", "mean", "standard_error")
RUN_COLUMNS = ("dataset", "learner", "run", "mistakes")
TALLY_COLUMNS = ("learner", "wins", "ties", "losses", "ratio_to_baseline", "p_across")
TIMING_COLUMNS = ("dataset", "learner", "microseconds_per_round")
_INTRO = (
    "<p>Each round a learner is shown a row, names its label and hears only whether it was right; a learner that is "
    "told the label marks how far one could get with full information. All play the same rows in the same order.</p>"
)
_TALLIED = ("learner", "wins", "ties", "losses", "mistakes / baseline's", "p across")
_TALLY_CSS = ("name", *["number"] * 5)
_PRINTED = ("learner", "mistakes", "rate", "/ told", "p", "", "µs/round")
# On the screen, and by the CSS classes that the page has for verdicts on the paper's numbers.
_COLORS = {WIN: "green", TIE: "dim", LOSS: "red", TOO_FEW_RUNS: "dim"}
_KINDS = {WIN: "agrees", TIE: "plain", LOSS: "unexplained"}


def write_tables(folder: Path, rows: Sequence[ComparisonRow], tallies: Sequence[Tally], first_seed: int) -> None:
    """Write every table as CSV; all but timing.csv have the same bytes whenever the same is played.

    Parameters
    ----------
    folder : Path
        Where to.
    rows, tallies : sequences of ComparisonRow and Tally
        The results.
    first_seed : int
        Run r has the seed first_seed + r.
    """
    write_csv(folder / "comparison.csv", COMPARISON_COLUMNS, [_comparison_line(row) for row in rows])
    tally_rows = [(row.title, row.wins, row.ties, row.losses, number(row.ratio), number(row.p)) for row in tallies]
    write_csv(folder / "tally.csv", TALLY_COLUMNS, tally_rows)
    write_outcomes(folder, [row.outcome for row in rows], first_seed)


def write_outcomes(folder: Path, outcomes: Sequence[Outcome], first_seed: int) -> None:
    """Write curves, mistakes run by run, and time per round as CSV."""
    write_csv(folder / "curves.csv", CURVE_COLUMNS, [line for outcome in outcomes for line in _curve_lines(outcome)])
    runs = [
        (outcome.dataset, outcome.entry.title, first_seed + run, mistakes)
        for outcome in outcomes
        for run, mistakes in enumerate(outcome.final.tolist())
    ]
    write_csv(folder / "runs.csv", RUN_COLUMNS, runs)
    # In a separate file: the only numbers that depend on the machine and the day.
    times = [
        (outcome.dataset, outcome.entry.title, "" if math.isnan(time) else f"{time:.4g}")
        for outcome in outcomes
        for time in [outcome.microseconds_per_round]
    ]
    write_csv(folder / "timing.csv", TIMING_COLUMNS, times)


def _comparison_line(row: ComparisonRow) -> tuple[object, ...]:
    outcome = row.outcome
    return (
        outcome.dataset,
        int(outcome.rounds[-1]),
        len(outcome.final),
        outcome.entry.title,
        number(outcome.mean),
        number(outcome.standard_error),
        number(row.ratio),
        number(row.p),
        number(row.p_adjusted),
        row.verdict,
        outcome.remark,
    )


def _curve_lines(outcome: Outcome) -> list[tuple[object, ...]]:
    curve = zip(outcome.rounds.tolist(), outcome.means.tolist(), outcome.errors.tolist(), strict=True)
    return [(outcome.dataset, outcome.entry.key, t, number(mean), number(error)) for t, mean, error in curve]


def print_tables(console: Console, rows: Sequence[ComparisonRow], tallies: Sequence[Tally], baseline: str) -> None:
    """Print every entry on every data set, then wins, ties and losses."""
    lines = [_shown(row) for row in rows]
    shown = filled(_PRINTED, lines)
    table = Table(title=what_means_are(len(rows[0].outcome.final)), caption=_on_lines(_legend(baseline, rows)))
    table.add_column("data", overflow="fold")
    for at in shown:
        table.add_column(_PRINTED[at], **({"overflow": "fold"} if at == 0 else {"justify": "right", "no_wrap": True}))
    for at, (row, line) in enumerate(zip(rows, lines, strict=True)):
        outcome = row.outcome
        is_first = at == 0 or rows[at - 1].outcome.dataset != outcome.dataset
        if is_first and at:
            table.add_section()
        learner, *numbers, verdict, time = line
        cells: list[str | Text] = [
            in_cell(learner),
            *numbers,
            f"[{_COLORS[verdict]}]{verdict}[/]" if verdict else "",
            time,
        ]
        table.add_row(
            in_cell(outcome.dataset).append(f" ({grouped(outcome.rounds[-1])})") if is_first else "",
            *(cells[place] for place in shown),
        )
    console.print(table)
    if _is_tallied(rows, tallies):
        table = Table(title=on_screen(f"Against {baseline}, over the data sets"))
        table.add_column(_TALLIED[0], overflow="fold")
        for name in _TALLIED[1:]:
            table.add_column(name, justify="right", no_wrap=True)
        for tally in tallies:
            learner, *numbers = _shown_tally(tally)
            table.add_row(in_cell(learner), *numbers)
        console.print(table)


def _shown(row: ComparisonRow) -> list[str]:
    """Return the cells of a row, for the screen and the page: from its learner to its time per round."""
    outcome = row.outcome
    # Nothing where no run's time is known, as in a store that was damaged.
    time = outcome.microseconds_per_round
    return [
        outcome.entry.shown,
        with_error(outcome.mean, outcome.standard_error),
        f"{outcome.mean / outcome.rounds[-1]:.1%}",
        "" if row.ratio is None else f"{row.ratio:.2f}",
        "" if row.p_adjusted is None else f"{row.p_adjusted:.2g}",
        row.verdict,
        "" if math.isnan(time) else grouped(time, 1),
    ]


def _shown_tally(row: Tally) -> list[str]:
    counts = [str(count) for count in (row.wins, row.ties, row.losses)]
    return [row.title, *counts, f"{row.ratio:.2f}", "" if row.p is None else f"{row.p:.2g}"]


def _is_tallied(rows: Sequence[ComparisonRow], tallies: Sequence[Tally]) -> bool:
    # Over a single data set it would repeat the table above it.
    return bool(tallies) and len(_datasets(rows)) > 1


def _on_lines(texts: Sequence[str]) -> Text:
    return Text("\n").join(on_screen(text) for text in texts)


# Under the table, not only in the documentation: readers ask this first.
def _legend(baseline: str, rows: Sequence[ComparisonRow]) -> list[str]:
    notes = dict.fromkeys(row.outcome.entry.note for row in rows if row.outcome.entry.note)
    n_runs, n_tests = len(rows[0].outcome.final), sum(row.p is not None for row in rows)
    needed = signs_to_decide(n_tests)
    too_few = f"{TOO_FEW_RUNS}: with {n_runs} no difference could be significant; --runs {needed} is the least"
    return [
        f"win/loss: fewer/more mistakes than {baseline} in significantly more of the runs, and on average",
        f"p: exact sign test over the runs, Holm-corrected over the table, level {LEVEL:g}",
        "it speaks of other shuffles of the same rows (of a stream: other draws), not of new data",
        *([too_few] if any(row.verdict == TOO_FEW_RUNS for row in rows) else []),
        "/ told: mistakes over those of the first learner that is told the label",
        *notes,
        *(["a single run has no standard error and no p"] if n_runs == 1 else []),
    ]


def write_report(
    path: Path,
    rows: Sequence[ComparisonRow],
    tallies: Sequence[Tally],
    figures: Sequence[FigureFile],
    details: Mapping[str, str],
) -> None:
    """Write the report: what was run, who won, every figure and every number.

    Parameters
    ----------
    path : Path
        Where to.
    rows, tallies : sequences of ComparisonRow and Tally
        The results.
    figures : sequence of FigureFile
        From `draw_files`.
    details : mapping
        Lines for "What was run", by name; "Command" is what to type to get the same again, "Baseline" who all are
        compared with.
    """
    listed = {**details, "Version": f"onebit {version('onebit')}"}
    command = listed.pop("Command")
    parts = [
        _INTRO,
        f"<h2>What was run</h2>\n<dl>\n{pages.facts(listed)}\n</dl>",
        *([_tally_html(tallies, details["Baseline"])] if _is_tallied(rows, tallies) else []),
        *(pages.figure(figure) for figure in figures[:1]),
        f"<h2>Every data set</h2>\n<p>{'.<br>'.join(map(in_page, _legend(details['Baseline'], rows)))}.</p>",
        *(_dataset_html([row for row in rows if row.outcome.dataset == dataset]) for dataset in _datasets(rows)),
        "<h2>Curves</h2>",
        *(pages.figure(figure) for figure in figures[1:]),
        f"<h2>How to get it again</h2>\n<pre><code>{in_page(command)}</code></pre>",
    ]
    replace_file(path, pages.page("Learners compared", "\n".join(parts) + "\n").encode())


def _datasets(rows: Sequence[ComparisonRow]) -> list[str]:
    return list(dict.fromkeys(row.outcome.dataset for row in rows))


def _tally_html(tallies: Sequence[Tally], baseline: str) -> str:
    text = (
        f"Wins, ties and losses of each learner against {baseline} on the single data sets; the geometric mean of the "
        "ratios of mistakes; Wilcoxon's signed-rank test across the data sets, Holm-corrected. That one takes the data "
        "sets for an independent sample, and speaks of sets like these."
    )
    lines = [pages.cells(_shown_tally(row), _TALLY_CSS) for row in tallies]
    return f"<h2>Over all data sets</h2>\n<p>{in_page(text)}</p>\n{pages.table(_TALLIED, lines)}"


def _dataset_html(rows: Sequence[ComparisonRow]) -> str:
    columns = ("learner", "mistakes", "rate", "/ told the label", "p", "verdict", "µs per round", "remark")
    lines = []
    for row in rows:
        css = ("name", *["number"] * 4, _KINDS.get(row.verdict, "plain"), "number", "")
        lines.append(pages.cells([*_shown(row), row.outcome.remark], css))
    first = rows[0].outcome
    heading = f"{first.dataset}: {grouped(first.rounds[-1])} rounds"
    return f"<h3>{in_page(heading)}</h3>\n{pages.table(columns, lines)}"
