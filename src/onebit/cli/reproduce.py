"""``onebit reproduce``, with a progress bar and a table at the end."""

from pathlib import Path
from typing import Annotated

from rich.console import Console

from onebit.cli.options import Workers, has_figures
from onebit.experiments import paper
from onebit.experiments.compare import write_curves
from onebit.experiments.comparison import Comparison, run_comparison
from onebit.reporting.console import prepare_folder, print_table, progress_bar, say_where
from onebit.reporting.pages import FigureFile
from onebit.reporting.text import grouped

# Apart, so that a quick look does not overwrite the tables of a full run.
_FULL_FOLDER, _QUICK_FOLDER = Path("results"), Path("results/quick")


def command(
    *,
    rounds: Annotated[int | None, "Rounds per run; the paper plays 5 000 000."] = None,
    runs: Annotated[int | None, "Runs of every learner, each on its own data; the paper: 20."] = None,
    seed: Annotated[int, "Seed of the first run; run r uses seed + r."] = 0,
    quick: Annotated[bool, "100 000 rounds and 5 runs: seconds, not minutes."] = False,
    workers: Workers,
    out: Annotated[Path | None, "Folder for results; results/, or results/quick/ with --quick."] = None,
) -> None:
    """Play the paper's experiments; write tables, figures and report.html."""
    console = Console()
    place = workers.executor(console)
    comparison = paper.paper_comparison(
        rounds=(paper.QUICK_ROUNDS if quick else paper.PAPER_ROUNDS) if rounds is None else rounds,
        runs=(paper.QUICK_RUNS if quick else paper.PAPER_RUNS) if runs is None else runs,
        seed=seed,
    )
    folder = out if out is not None else _QUICK_FOLDER if quick else _FULL_FOLDER
    prepare_folder(folder)
    title = f"{comparison.runs} runs of {grouped(comparison.rounds)} rounds"
    is_drawn = has_figures(console)
    with progress_bar(console, title) as show, place as executor:
        outcomes = run_comparison(comparison, folder, jobs=workers.jobs, on_progress=show, executor=executor)
    with console.status("Drawing figures and writing the report …"):
        rows = paper.summarize(outcomes)
        paper.write_summary(rows, folder / "summary.csv")
        write_curves(outcomes, folder / "mistakes.csv", with_ends=True)
        figures: list[FigureFile] = []
        if is_drawn:
            from onebit.experiments.paper_figures import drawings
            from onebit.reporting.figures import draw_files

            figures = draw_files(drawings(outcomes, comparison.seed), folder / "figures")
        paper.write_report(folder / "report.html", rows, figures, _details(comparison))
    print_table(console, paper.summary_table(rows, comparison.runs))
    say_where(console, "Tables, figures and report.html are", folder)


def _details(comparison: Comparison) -> dict[str, str]:
    return {
        "Rounds": grouped(comparison.rounds),
        "Runs": f"{comparison.runs}, each on data and random numbers of its own",
        "Seeds": f"{comparison.seed} to {comparison.seed + comparison.runs - 1}",
        "Command": f"onebit reproduce --rounds {comparison.rounds} --runs {comparison.runs} --seed {comparison.seed}",
    }
