"""``onebit adversary``: every learner against the paper's lower-bound constructions."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from rich.console import Console

from onebit.experiments.duels import DuelRow, duel, duel_by_dimension, paper_adversaries
from onebit.inputs import check_integer
from onebit.reporting.console import prepare_report, print_line, print_table
from onebit.reporting.text import Table, bound_text, grouped, write_csv

_MAX_RUNS = 100_000  # a thousand already tell all that the tables show


def command(
    theorem: Annotated[str | None, "3, remark, 11 or 24; none: all of them."] = None,
    *,
    runs: Annotated[int, "Games of every learner against every adversary."] = 100,
    out: Annotated[Path, "Folder for tables and figures."] = Path("results/adversaries"),
) -> None:
    """Play every learner against the paper's lower-bound constructions."""
    check_integer("--runs", runs, low=2, high=_MAX_RUNS)
    makers = {make(seed=0).challenge.name.removeprefix("Theorem ").lower(): make for make in paper_adversaries()}
    if theorem is not None and theorem.lower() not in makers:
        raise ValueError(f"there is no adversary {theorem!r}; there are {', '.join(makers)}")
    chosen = list(makers.values()) if theorem is None else [makers[theorem.lower()]]
    console = Console()
    is_drawn = prepare_report(console, out)
    with console.status("Playing every learner against every adversary …"):
        rows = duel(chosen, runs=runs)
    _write_duel(rows, out / "adversaries.csv")
    for table in _tables(rows):
        print_table(console, table)
    growth = None
    if theorem in (None, "24"):  # the one that is about the dimension
        with console.status("Playing Theorem 24's adversary in growing dimension …"):
            growth = duel_by_dimension()
        _write_duel(growth, out / "adversaries_by_dimension.csv")
    if is_drawn:
        from onebit.experiments.figures import draw_duel, draw_growth
        from onebit.reporting.figures import save

        save(draw_duel(rows), out, "adversaries")
        if growth is not None:
            save(draw_growth(growth), out, "adversaries_by_dimension")
    print_line(console, f"Tables and figures are in {out}.")


def _write_duel(rows: Iterable[DuelRow], path: Path) -> None:
    """Write a table as CSV, one line per row; cells that no theorem covers are empty."""
    # The game's size is repeated in every line, so that each can be read alone.
    columns = ["adversary", "binds", "n_classes", "n_features", "radius", "margin", "rounds", "learner", "runs"]
    columns += ["mean", "standard_error", "lower_bound", "sharp_lower_bound", "upper_bound"]
    lines = []
    for row in rows:
        it = row.challenge
        game = it.name, it.stated.binds, it.n_classes, it.n_features, it.radius, it.margin, it.rounds
        bounds = row.lower_bound, row.sharp_lower_bound, row.upper_bound
        lines.append((*game, row.learner, row.runs, row.mean, row.standard_error, *bounds))
    write_csv(path, columns, lines)


def _tables(rows: list[DuelRow]) -> list[Table]:
    """Return mistakes beside what the theorems force and promise, a table for every adversary."""
    lines: dict[str, list[list[str]]] = {}
    for row in rows:
        mistakes = f"{grouped(row.mean, 1)} ± {grouped(row.standard_error, 1)}"
        bounds = ["" if each is None else bound_text(each) for each in (row.lower_bound, row.upper_bound)]
        title = f"{row.challenge.name}: {row.challenge.stated.binds}"
        lines.setdefault(title, []).append([row.short_name, mistakes, *bounds])
    columns = ("learner", "mistakes ± standard error", "at least", "at most")
    return [Table(columns, some, title) for title, some in lines.items()]
