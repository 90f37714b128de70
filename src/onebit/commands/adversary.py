"""What ``onebit adversary`` does: every learner against the paper's lower-bound constructions."""

import math
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from onebit.experiments.duels import DuelRow, duel, duel_by_dimension, paper_adversaries, short_name, write_duel
from onebit.experiments.figures import draw_duel, draw_growth
from onebit.inputs import check_integer
from onebit.reporting.console import on_screen, prepare_folder, say_where
from onebit.reporting.figures import save
from onebit.reporting.text import grouped

_MAX_RUNS = 100_000  # a thousand already tell all that the tables show
_WIDTH = 120  # of a table that goes to a file or pipe


def adversary_command(theorem: str | None, runs: int, out: Path) -> None:
    """Play, print the table, and write tables and figures into the folder."""
    check_integer("--runs", runs, low=2, high=_MAX_RUNS)
    makers = {make(seed=0).challenge.name.removeprefix("Theorem ").lower(): make for make in paper_adversaries()}
    if theorem is not None and theorem.lower() not in makers:
        raise ValueError(f"there is no adversary {theorem!r}; there are {', '.join(makers)}")
    chosen = list(makers.values()) if theorem is None else [makers[theorem.lower()]]
    # Before anything is played: a minute later is too late to say that the folder cannot be written.
    prepare_folder(out)
    console = Console()
    with console.status("Playing every learner against every adversary …"):
        rows = duel(chosen, runs=runs)
    write_duel(rows, out / "adversaries.csv")
    save(draw_duel(rows), out, "adversaries")
    _print(rows, console)
    # Only Theorem 24 is about the dimension.
    if theorem in (None, "24"):
        with console.status("Playing Theorem 24's adversary in growing dimension …"):
            growth = duel_by_dimension()
        write_duel(growth, out / "adversaries_by_dimension.csv")
        save(draw_growth(growth), out, "adversaries_by_dimension")
    say_where(console, "Tables and figures are", out)


def _print(rows: list[DuelRow], console: Console) -> None:
    names = [short_name(row.learner) for row in rows]
    title = "Mistakes ± standard error, beside what the theorems force and promise"
    table = Table(title=title, box=box.SIMPLE, padding=(0, 1, 0, 0))
    # Wide enough for every word: a long name is broken between its settings, if at all.
    table.add_column("learner", min_width=max(len(word) for name in names for word in name.split()))
    for heading in ("mistakes", "at least", "at most"):
        table.add_column(heading, justify="right", no_wrap=True)
    for at, (row, name) in enumerate(zip(rows, names, strict=True)):
        if at == 0 or rows[at - 1].challenge != row.challenge:
            table.add_section()
            table.add_row(f"[bold]{row.challenge.name}[/]: {row.challenge.stated.binds}")
        mistakes = f"{grouped(row.mean, 1)} ± {grouped(row.standard_error, 1)}"
        table.add_row(on_screen(name), mistakes, _bound(row.lower_bound), _bound(row.upper_bound))
    # A file has room for all.
    (console if console.is_terminal else Console(width=_WIDTH)).print(table)


def _bound(value: float | None) -> str:
    if value is None:
        return ""
    # A number of more than fifteen digits says less than its power of 2.
    return f"2^{math.log2(value):.4g}" if value >= 1e15 else grouped(value) if value % 1 == 0 else f"{value:.6g}"
