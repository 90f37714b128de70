"""What ``onebit reproduce`` does, with a progress bar and a table at the end."""

from pathlib import Path

from rich.console import Console

from onebit.commands.workers import executor_for
from onebit.experiments.compare import write_curves
from onebit.experiments.comparison import Comparison, run_comparison
from onebit.experiments.paper import (
    PAPER_ROUNDS,
    PAPER_RUNS,
    QUICK_ROUNDS,
    QUICK_RUNS,
    paper_comparison,
    summarize,
    summary_table,
    write_report,
    write_summary,
)
from onebit.experiments.paper_figures import drawings
from onebit.reporting.console import prepare_folder, print_table, progress_bar, say_where
from onebit.reporting.figures import draw_files
from onebit.reporting.text import grouped

# Apart, so that a quick look does not overwrite the tables of a full run.
_FULL_FOLDER, _QUICK_FOLDER = Path("results"), Path("results/quick")


def reproduce_command(
    rounds: int | None,
    runs: int | None,
    seed: int,
    jobs: int | None,
    out: Path | None,
    quick: bool,
    dask: str | None = None,
) -> None:
    """Play, then write tables, figures and the report into the folder."""
    console = Console()
    place = executor_for(dask, jobs, console)
    comparison = paper_comparison(
        rounds=(QUICK_ROUNDS if quick else PAPER_ROUNDS) if rounds is None else rounds,
        runs=(QUICK_RUNS if quick else PAPER_RUNS) if runs is None else runs,
        seed=seed,
    )
    folder = out if out is not None else _QUICK_FOLDER if quick else _FULL_FOLDER
    prepare_folder(folder)
    title = f"{comparison.runs} runs of {grouped(comparison.rounds)} rounds"
    with progress_bar(console, title) as show, place as executor:
        outcomes = run_comparison(comparison, folder, jobs=jobs, on_progress=show, executor=executor)
    with console.status("Drawing figures and writing the report …"):
        rows = summarize(outcomes)
        write_summary(rows, folder / "summary.csv")
        write_curves(outcomes, folder / "mistakes.csv", with_ends=True)
        figures = draw_files(drawings(outcomes, comparison.seed), folder / "figures")
        write_report(folder / "report.html", rows, figures, _details(comparison))
    print_table(console, summary_table(rows, comparison.runs))
    say_where(console, "Tables, figures and report.html are", folder)


def _details(comparison: Comparison) -> dict[str, str]:
    return {
        "Rounds": grouped(comparison.rounds),
        "Runs": f"{comparison.runs}, each on data and random numbers of its own",
        "Seeds": f"{comparison.seed} to {comparison.seed + comparison.runs - 1}",
        "Command": f"onebit reproduce --rounds {comparison.rounds} --runs {comparison.runs} --seed {comparison.seed}",
    }
