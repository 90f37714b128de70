"""The table of an evaluation: a file for programs, a table on the screen, a page to read."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from onebit.experiments.evaluate.answer_rates import ASSUMPTION
from onebit.experiments.evaluate.estimates import LEVEL, METHODS, Estimate
from onebit.experiments.evaluate.evaluation import Evaluation
from onebit.files import replace_file
from onebit.reporting import pages
from onebit.reporting.names import in_cell, in_page, on_screen
from onebit.reporting.style import FigureFile
from onebit.reporting.tables import grouped, number, write_csv

_KEYS = {"IPS": "ips", "SNIPS": "snips", "DR": "dr", "DR+": "dr_plus"}
COLUMNS = (
    "learner",
    "rounds",
    "known_right",
    "known_wrong",
    "unknown",
    "least_mistakes",
    "most_mistakes",
    *(f"{key}{end}" for key in _KEYS.values() for end in ("", "_low", "_high")),
    "effective_rounds",
    "largest_weight",
    "telling_rounds",
    "against_the_log",
    "against_the_log_by",
    "estimates_assume",
    "warnings",
    "notes",
)
_FACTS = ("learner", "right", "wrong", "unknown", "mistakes surely", "surely %", "than the log")
_FACTS_CSS = ("name", *["number"] * 5, "plain")
_ESTIMATES = ("learner", *(f"{name} %" for name in METHODS), "effective rounds", "largest weight", "telling rounds")
_ESTIMATES_CSS = ("name", *["number"] * (len(_ESTIMATES) - 1))
_INTRO = (
    "<p>Each learner guessed every round of the log before it heard anything of it. After a right answer the label is "
    "known, so its guess is decided; after a wrong one only the same guess is. What is surely so needs true "
    "answers, and no more than one right label in a round; estimates also need the chances that are in the log, and an "
    "assumption that stands beside them. All of it is about the learners as they were run here.</p>"
)
_COLORS = {"surely fewer": "green", "fewer": "green", "surely more": "red", "more": "red", "open": "dim"}


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


def _legend_of_facts(rows: Sequence[Evaluation]) -> list[str]:
    return [
        f"{grouped(rows[0].known.rounds)} answered rounds; surely: no fewer and no more, whatever the unknown ones are",
        "sure if answers are true, and no more than one label is right in a round",
        "than the log: surely, by the bounds; or by an estimate's interval and its assumption",
    ]


_LEGEND_OF_ESTIMATES = (
    f"estimated share of mistakes in the answered rounds, with {LEVEL:.0%} intervals; both cut to what is sure",
    f"{ASSUMPTION}; bounds do not",
    "effective rounds: of equal weight that would say as much; telling: an unlikely label was tried and told something",
)


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


def print_table(console: Console, rows: Sequence[Evaluation], name: str) -> None:
    """Print what is known and what is estimated of everyone, and the warnings."""
    table = _new_table(f"{name}: what is known of each learner", _FACTS, _legend_of_facts(rows))
    for row in rows:
        learner, *cells, verdict = _shown_facts(row)
        table.add_row(in_cell(learner), *cells, Text(verdict, _COLORS.get(row.verdict, "")), end_section=row.is_logged)
    console.print(table)
    if any(row.estimates.found for row in rows):
        table = _new_table("What is estimated", _ESTIMATES, _LEGEND_OF_ESTIMATES)
        for row in rows[1:]:
            learner, *cells = _shown_estimates(row)
            table.add_row(in_cell(learner), *cells)
        console.print(table)
    warnings, notes = warnings_and_notes(rows)
    for text in warnings:
        console.print(Text.assemble(("warning: ", "bold yellow"), on_screen(text)), soft_wrap=True)
    for text in notes:
        console.print(Text.assemble(("note: ", "bold"), on_screen(text)), soft_wrap=True)


def _new_table(title: str, columns: Sequence[str], legend: Sequence[str]) -> Table:
    caption = Text("\n").join(on_screen(text) for text in legend)
    table = Table(title=on_screen(title), caption=caption, box=box.SIMPLE, padding=(0, 1, 0, 0))
    for at, column in enumerate(columns):
        table.add_column(column, overflow="fold", justify="right" if at else "left")
    return table


def _shown_facts(row: Evaluation) -> list[str]:
    """Return the cells of what is known, for the screen and the page."""
    facts = row.known
    least, most = facts.wrong, facts.wrong + facts.unknown
    return [
        row.title,
        *(grouped(count) for count in (facts.right, facts.wrong, facts.unknown)),
        grouped(least) if least == most else f"{grouped(least)} to {grouped(most)}",
        f"{100 * facts.low:.1f}" if least == most else f"{100 * facts.low:.1f}–{100 * facts.high:.1f}",
        f"{row.verdict}, by {row.verdict_by}" if row.verdict_by in METHODS else row.verdict,
    ]


def _shown_estimates(row: Evaluation) -> list[str]:
    """Return the cells of what is estimated."""
    weights = row.estimates.weights
    rests_on = ["", "", ""]
    if weights is not None:
        rests_on = [grouped(weights.effective), f"{weights.largest:.3g}", grouped(weights.telling)]
    return [row.title, *(_percent(row.estimates.found.get(method)) for method in METHODS), *rests_on]


def _percent(found: Estimate | None) -> str:
    return "" if found is None else f"{100 * found.rate:.1f} ({100 * found.low:.1f}–{100 * found.high:.1f})"


def write_report(
    path: Path,
    rows: Sequence[Evaluation],
    figures: Sequence[FigureFile],
    details: Mapping[str, str],
) -> None:
    """Write the report: what was run, the figure, every number, every warning.

    Parameters
    ----------
    path : Path
        Where to.
    rows : sequence of Evaluation
        What came out.
    figures : sequence of FigureFile
        From `draw_files`.
    details : mapping
        Lines for "What was run", by name; "Command" is what to type to get the same again.
    """
    listed = {**details, "Version": f"onebit {version('onebit')}"}
    command = listed.pop("Command")
    warnings, notes = warnings_and_notes(rows)
    parts = [
        _INTRO,
        f"<h2>What was run</h2>\n<dl>\n{pages.facts(listed)}\n</dl>",
        *(pages.figure(figure) for figure in figures),
        f"<h2>What is known</h2>\n<p>{_lines(_legend_of_facts(rows))}</p>",
        pages.table(_FACTS, [pages.cells(_shown_facts(row), _FACTS_CSS) for row in rows]),
        f"<h2>What is estimated</h2>\n<p>{_lines(_LEGEND_OF_ESTIMATES)}</p>",
        pages.table(_ESTIMATES, [pages.cells(_shown_estimates(row), _ESTIMATES_CSS) for row in rows[1:]]),
        *_listed("Warnings", warnings),
        *_listed("Notes", notes),
        f"<h2>How to get it again</h2>\n<pre><code>{in_page(command)}</code></pre>",
    ]
    replace_file(path, pages.page("What other learners would have done", "\n".join(parts) + "\n").encode())


def _listed(title: str, texts: Sequence[str]) -> list[str]:
    items = "".join(f"<li>{pages.prose(text)}.</li>\n" for text in texts)
    return [f"<h2>{title}</h2>\n<ul>\n{items}</ul>"] if texts else []


def _lines(texts: Sequence[str]) -> str:
    return ".<br>".join(map(pages.prose, texts)) + "."
