"""The report of an evaluation: a CSV file, tables for the screen and the page."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from onebit.experiments.evaluate.answer_rates import ASSUMPTION
from onebit.experiments.evaluate.estimates import LEVEL, METHODS, Estimate
from onebit.experiments.evaluate.replay import Evaluation
from onebit.reporting.console import on_screen, print_table
from onebit.reporting.pages import Block, FigureFile, section, what_was_run, write_page
from onebit.reporting.text import Cell, Table, grouped, number, write_csv

_KEYS = {"IPS": "ips", "SNIPS": "snips", "DR": "dr", "DR+": "dr_plus"}
COLUMNS = (
    *("learner", "rounds", "known_right", "known_wrong", "unknown", "least_mistakes", "most_mistakes"),
    *(f"{key}{end}" for key in _KEYS.values() for end in ("", "_low", "_high")),
    *("effective_rounds", "largest_weight", "telling_rounds"),
    *("against_the_log", "against_the_log_by", "estimates_assume", "warnings", "notes"),
)
_INTRO = (
    "Each learner guessed every round of the log before it heard anything of it. After a right answer the label is "
    "known, so its guess is decided; after a wrong one only the same guess is. What is surely so needs true answers, "
    "and no more than one right label in a round; estimates also need the chances that are in the log, and an "
    "assumption that stands beside them. All of it is about the learners as they were run here."
)
_KINDS = {"surely fewer": "good", "fewer": "good", "surely more": "bad", "more": "bad", "open": "dim"}


def write_table(path: Path, rows: Sequence[Evaluation]) -> None:
    """Write the table as CSV; shares are between 0 and 1."""
    write_csv(path, COLUMNS, [_line(row) for row in rows])


def _line(row: Evaluation) -> tuple[object, ...]:
    facts, weights = row.known, row.estimates.weights
    found: list[str] = []
    for method in METHODS:
        estimate = row.estimates.found.get(method)
        found += ["", "", ""] if estimate is None else [number(value) for value in estimate]
    rests_on = ("", "", "") if weights is None else (*map(number, weights[:2]), weights.telling)
    return (
        *(row.title, facts.rounds, facts.right, facts.wrong, facts.unknown),
        *(facts.wrong, facts.wrong + facts.unknown),
        *found,
        *rests_on,
        *(row.verdict, row.verdict_by, row.estimates.assumption),
        *("; ".join(row.estimates.warnings), "; ".join(row.estimates.notes)),
    )


def facts_table(rows: Sequence[Evaluation], title: str = "") -> Table:
    """Return what is known of every learner."""
    lines: list[list[str | Cell]] = []
    for row in rows:
        facts = row.known
        least, most = facts.wrong, facts.wrong + facts.unknown
        verdict = f"{row.verdict}, by {row.verdict_by}" if row.verdict_by in METHODS else row.verdict
        lines.append(
            [
                row.title,
                *(grouped(count) for count in (facts.right, facts.wrong, facts.unknown)),
                grouped(least) if least == most else f"{grouped(least)} to {grouped(most)}",
                f"{100 * facts.low:.1f}" if least == most else f"{100 * facts.low:.1f}–{100 * facts.high:.1f}",
                Cell(verdict, _KINDS.get(row.verdict, "")),
            ]
        )
    notes = [
        f"{grouped(rows[0].known.rounds)} answered rounds; surely: no fewer and no more, whatever the unknown ones are",
        "sure if answers are true, and no more than one label is right in a round",
        "than the log: surely, by the bounds; or by an estimate's interval and its assumption",
    ]
    columns = ("learner", "right", "wrong", "unknown", "mistakes surely", "surely %", "than the log")
    return Table(columns, lines, title, notes, ("name", *["number"] * 5, ""), [1])


def estimates_table(rows: Sequence[Evaluation], title: str = "") -> Table:
    """Return what is estimated of every learner."""
    lines = []
    for row in rows[1:]:
        weights = row.estimates.weights
        rests_on = ["", "", ""]
        if weights is not None:
            rests_on = [grouped(weights.effective), f"{weights.largest:.3g}", grouped(weights.telling)]
        lines.append([row.title, *(_percent(row.estimates.found.get(method)) for method in METHODS), *rests_on])
    notes = (
        f"estimated share of mistakes in the answered rounds, with {LEVEL:.0%} intervals; both cut to what is sure",
        f"{ASSUMPTION}; bounds do not",
        "effective rounds: as many of equal weight would say as much; telling: an unlikely label told something",
    )
    columns = ("learner", *(f"{name} %" for name in METHODS), "effective rounds", "largest weight", "telling rounds")
    return Table(columns, lines, title, notes)


def _percent(found: Estimate | None) -> str:
    return "" if found is None else f"{100 * found.rate:.1f} ({100 * found.low:.1f}–{100 * found.high:.1f})"


def warnings_and_notes(rows: Sequence[Evaluation]) -> tuple[list[str], list[str]]:
    """Return every learner's warnings, and which estimates are not offered; once, where several have the same."""
    n_learners = sum(not row.is_logged for row in rows)
    warnings = [(row.title, text) for row in rows for text in row.estimates.warnings]
    notes = [(row.title, text) for row in rows for text in row.estimates.notes]
    return _together(warnings, n_learners), _together(notes, n_learners)


def _together(texts: Sequence[tuple[str, str]], n_learners: int) -> list[str]:
    by_text: dict[str, list[str]] = {}
    for title, text in texts:
        by_text.setdefault(text, []).append(title)
    return [
        f"{'all learners' if len(titles) == n_learners > 1 else ', '.join(titles)}: {text}"
        for text, titles in by_text.items()
    ]


def print_tables(console: Console, rows: Sequence[Evaluation], name: str) -> None:
    """Print what is known and what is estimated of everyone, and the warnings."""
    print_table(console, facts_table(rows, f"{name}: what is known of each learner"))
    if any(row.estimates.found for row in rows):
        print_table(console, estimates_table(rows, "What is estimated"))
    warnings, notes = warnings_and_notes(rows)
    marked = [("warning: ", "bold yellow", text) for text in warnings] + [("note: ", "bold", text) for text in notes]
    for mark, style, text in marked:
        console.print(Text.assemble((mark, style), on_screen(text)), soft_wrap=True)


def write_report(
    path: Path, rows: Sequence[Evaluation], figures: Sequence[FigureFile], details: Mapping[str, str]
) -> None:
    """Write the page: what was run, the figure, every number, every warning.

    Of the details, "Command" is what to type to get the same again.
    """
    run, facts, again, command = what_was_run(details)
    warnings, notes = warnings_and_notes(rows)
    blocks: list[Block] = [
        *(_INTRO, run, facts),
        *figures,
        *section("What is known", facts_table(rows)),
        *section("What is estimated", estimates_table(rows)),
        *section("Warnings", *(f"{text}." for text in warnings)),
        *section("Notes", *(f"{text}." for text in notes)),
        *(again, command),
    ]
    write_page(path, "What other learners would have done", blocks)
