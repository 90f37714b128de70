"""What ``onebit theory`` does: the theory's tables and figures, into a folder."""

import csv
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from onebit.reporting.progress import prepare_folder
from onebit.reporting.style import save
from onebit.theory.drawing import draw_regions, draw_solving_time
from onebit.theory.looseness import Looseness, measure_looseness
from onebit.theory.looseness_figure import draw_looseness
from onebit.theory.weak_labeling.hardness import SolvingRow, measure_solving

_SIZES = (4, 6, 8, 10, 12, 14)


def theory_command(out: Path) -> None:
    """Measure and draw: Figure 2, how loose Theorem 5 is, how hard weak labelling is."""
    prepare_folder(out)
    console = Console()
    save(draw_regions(), out, "figure_2")
    with console.status("Measuring margins after the rational kernel …"):
        rows = measure_looseness()
    _write(rows, out / "looseness.csv")
    save(draw_looseness(rows), out, "looseness")
    with console.status("Solving weak labelling problems …"):
        solved = measure_solving(_SIZES)
    _write(solved, out / "weak_labeling.csv")
    save(draw_solving_time(solved), out, "weak_labeling")
    console.print(f"Figure 2, the looseness of Theorem 5 and the hardness of weak labelling are in [bold]{out}[/].")


def _write(rows: Sequence[Looseness] | Sequence[SolvingRow], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0]._fields)
        writer.writerows(rows)
