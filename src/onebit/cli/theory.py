"""``onebit theory``: the theory's tables and figures, into a folder."""

from pathlib import Path
from typing import Annotated

from rich.console import Console

from onebit.extras import require_extra
from onebit.reporting.console import prepare_folder, print_line
from onebit.reporting.text import write_csv
from onebit.theory.weak_labeling import SolvingRow, measure_solving
from onebit.theory.weak_to_strong import Looseness, measure_looseness

# Six sizes show the growth, and all their problems together take seconds; the quick ones show that it works.
_PROBLEMS, _QUICK_PROBLEMS = (4, 6, 8, 10, 12, 14), (4, 6, 8)
_QUICK_SIZES = (30, 100, 300)
# Apart, so that a quick look does not overwrite the tables of a full run.
_FULL_FOLDER, _QUICK_FOLDER = Path("results/theory"), Path("results/theory/quick")


def command(
    *,
    out: Annotated[
        Path | None, "Folder for tables and figures; results/theory/, or results/theory/quick/ with --quick."
    ] = None,
    quick: Annotated[bool, "Smaller sets and problems: seconds."] = False,
) -> None:
    """Draw Figure 2, the looseness of Theorem 5 and the hardness of weak labelling."""
    require_extra("the figures of onebit theory need", "figures")
    from onebit.reporting.figures import save
    from onebit.theory.figures import draw_looseness, draw_regions, draw_solving_time

    out = out if out is not None else _QUICK_FOLDER if quick else _FULL_FOLDER
    prepare_folder(out)
    console = Console()
    save(draw_regions(), out, "figure_2")
    with console.status("Measuring margins after the rational kernel …"):
        rows = measure_looseness(_QUICK_SIZES) if quick else measure_looseness()
    write_csv(out / "looseness.csv", Looseness._fields, rows)
    save(draw_looseness(rows), out, "looseness")
    with console.status("Solving weak labelling problems …"):
        solved = measure_solving(_QUICK_PROBLEMS if quick else _PROBLEMS)
    write_csv(out / "weak_labeling.csv", SolvingRow._fields, solved)
    save(draw_solving_time(solved), out, "weak_labeling")
    print_line(console, f"Figure 2, the looseness of Theorem 5 and the hardness of weak labelling are in {out}.")
