"""What ``onebit adversary`` does: every learner against the paper's lower-bound constructions."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from onebit.duels.duel import duel, duel_by_dimension, paper_adversaries
from onebit.duels.figures import draw_duel, draw_growth
from onebit.duels.table import DuelRow, write_duel
from onebit.inputs import check_integer
from onebit.reporting.progress import prepare_folder, say_where
from onebit.reporting.style import save

_MAX_RUNS = 100_000  # a thousand already tell all that the tables show


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
    table = Table(title="Mistakes ± standard error, beside what the theorems force and promise")
    table.add_column("adversary", no_wrap=True)
    table.add_column("learner", overflow="fold")
    for name in ("mistakes", "at least", "at most"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        bounds = (row.lower_bound, row.upper_bound)
        shown = ["" if value is None else f"{value:,.6g}" for value in bounds]
        table.add_row(row.challenge.name, row.learner, f"{row.mean:,.1f} ± {row.standard_error:.1f}", *shown)
    console.print(table)
