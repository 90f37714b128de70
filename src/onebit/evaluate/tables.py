"""The table of an evaluation: a file for programs, a table on the screen, a page to read."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from onebit.evaluate.estimates import LEVEL, METHODS, Estimate
from onebit.evaluate.evaluation import Evaluation
from onebit.files import replace_file
from onebit.reporting import pages
from onebit.reporting.names import in_cell, in_page, on_screen
from onebit.reporting.style import FigureFile
from onebit.reporting.tables import filled, grouped, number, write_csv

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
    "warnings",
)
_SHOWN = ("learner", "right", "wrong", "unknown", "surely %", *(f"{name} %" for name in METHODS), "than the log")
_CSS = ("name", *["number"] * (len(_SHOWN) - 2), "plain")
_INTRO = (
    "<p>Each learner guessed every round of the log before it heard anything of it. After a right answer the label is "
    "known, so its guess is decided; after a wrong one only the same guess is. What is surely so needs no assumption; "
    "estimates need the chances that are in the log. All of it is about the learners as they were run here.</p>"
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
        *(row.verdict, "; ".join(row.estimates.warnings)),
    )


def legend(rows: Sequence[Evaluation]) -> list[str]:
    """Return what the columns mean, line by line."""
    n_rounds = grouped(rows[0].known.rounds)
    listed = [f"{n_rounds} answered rounds; surely %: the share of mistakes is within this, whatever the unknown are"]
    if any(row.estimates.found for row in rows):
        listed.append(
            f"IPS, SNIPS, DR, DR+: estimated share of mistakes in these rounds, with {LEVEL:.0%} intervals cut to what "
            "is sure"
        )
    listed.append(
        "than the log: surely, by the bounds; or by the steadiest interval, if nothing speaks against it; or open"
    )
    return listed


def notes(rows: Sequence[Evaluation]) -> list[str]:
    """Return every learner's warnings; once, where several have the same."""
    by_text: dict[str, list[str]] = {}
    for row in rows:
        for text in row.estimates.warnings:
            by_text.setdefault(text, []).append(row.title)
    n_learners = sum(not row.is_logged for row in rows)
    return [
        f"{'all learners' if len(titles) == n_learners > 1 else ', '.join(titles)}: {text}"
        for text, titles in by_text.items()
    ]


def print_table(console: Console, rows: Sequence[Evaluation], name: str) -> None:
    """Print what is known and estimated of everyone."""
    lines = [_shown(row) for row in rows]
    shown = filled(_SHOWN, lines)
    caption = Text("\n").join(on_screen(text) for text in legend(rows))
    table = Table(title=on_screen(f"{name}: what other learners would have done"), caption=caption, box=box.SIMPLE)
    for at in shown:
        table.add_column(_SHOWN[at], overflow="fold", justify="left" if at == 0 else "right", no_wrap=at > 0)
    for row, line in zip(rows, lines, strict=True):
        learner, *cells, verdict = line
        styled: list[str | Text] = [in_cell(learner), *cells, Text(verdict, _COLORS.get(verdict, ""))]
        table.add_row(*(styled[at] for at in shown), end_section=row.is_logged)
    console.print(table)
    for note in notes(rows):
        console.print(Text.assemble(("warning: ", "bold yellow"), on_screen(note)), soft_wrap=True)


def _shown(row: Evaluation) -> list[str]:
    """Return what people read of a row, on the screen and on the page."""
    facts = row.known
    sure = f"{100 * facts.low:.1f}" if not facts.unknown else f"{100 * facts.low:.1f}–{100 * facts.high:.1f}"
    return [
        row.title,
        *(grouped(count) for count in (facts.right, facts.wrong, facts.unknown)),
        sure,
        *(_percent(row.estimates.found.get(method)) for method in METHODS),
        row.verdict,
    ]


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
    said = notes(rows)
    warnings = "".join(f"<li>{pages.prose(text)}.</li>\n" for text in said)
    parts = [
        _INTRO,
        f"<h2>What was run</h2>\n<dl>\n{pages.facts(listed)}\n</dl>",
        *(pages.figure(figure) for figure in figures),
        f"<h2>Every learner</h2>\n<p>{'.<br>'.join(map(pages.prose, legend(rows)))}.</p>",
        pages.table(_SHOWN, [pages.cells(_shown(row), _CSS) for row in rows]),
        *([f"<h2>Warnings</h2>\n<ul>\n{warnings}</ul>"] if said else []),
        "<h2>What the estimates rest on</h2>",
        pages.table(_WEIGHT_COLUMNS, [pages.cells(_shown_weights(row), _WEIGHT_CSS) for row in rows[1:]]),
        f"<h2>How to get it again</h2>\n<pre><code>{in_page(command)}</code></pre>",
    ]
    replace_file(path, pages.page("What other learners would have done", "\n".join(parts) + "\n").encode())


_WEIGHT_COLUMNS = ("learner", "effective rounds", "largest weight", "telling rounds")
_WEIGHT_CSS = ("name", *["number"] * 3)


def _shown_weights(row: Evaluation) -> list[str]:
    weights = row.estimates.weights
    if weights is None:
        return [row.title, "", "", ""]
    return [row.title, grouped(weights.effective), f"{weights.largest:.3g}", grouped(weights.telling)]
