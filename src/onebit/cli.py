"""The command line: ``onebit --help``."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

_INTERRUPTED = 130

# Every command imports what it needs when it is called: `onebit --help` answers without numba and matplotlib.
app = typer.Typer(
    help='Learn a K-way classifier when the only answer you ever get is "right" or "wrong".',
    no_args_is_help=True,
    add_completion=False,
    # A bug is shown as Python shows it; `main` turns what a user can mend into one line.
    pretty_exceptions_enable=False,
)


@app.callback()
def onebit() -> None:
    """Learn a K-way classifier when the only answer you ever get is "right" or "wrong"."""


@app.command()
def reproduce(
    rounds: Annotated[int | None, typer.Option(help="Rounds per run; the paper plays 5 000 000.")] = None,
    runs: Annotated[
        int | None, typer.Option(help="Runs of every learner, each on its own data; the paper: 20.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the first run; run r uses seed + r.")] = 0,
    jobs: Annotated[int | None, typer.Option(help="Worker processes; all cores by default.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for results; results/, or results/quick/ with --quick.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="100 000 rounds and 5 runs: seconds, not minutes.")] = False,
) -> None:
    """Play the paper's experiments; write tables, figures and report.html."""
    from onebit.commands.reproduce import reproduce_command

    reproduce_command(rounds, runs, seed, jobs, out, quick)


@app.command()
def margin(
    data: Annotated[str, typer.Argument(help="A file (CSV, svmlight, npz), or the name of a bundled set.")],
    label: Annotated[str | None, typer.Option(help="The column of a CSV file that holds the label.")] = None,
    kernel: Annotated[
        str | None, typer.Option(help="rational, gaussian:WIDTH, polynomial:DEGREE, …; none: R^d.")
    ] = None,
    standardize: Annotated[
        bool, typer.Option("--standardize", help="Standardise the columns and add a constant one first.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure the largest weak and strong margin of a data set, and say what the theorems promise for it."""
    from onebit.commands.margin import margin_command

    margin_command(data, label, kernel, standardize, as_json)


@app.command()
def bound(
    theorem: Annotated[str | None, typer.Argument(help="Its number, such as 2 or 21-sharp; none: list them.")] = None,
    k: Annotated[int | None, typer.Option(help="K, the number of classes.")] = None,
    gamma: Annotated[float | None, typer.Option(help="γ, the margin.")] = None,
    radius: Annotated[float | None, typer.Option(help="R, the length of the longest example.")] = None,
    dimension: Annotated[int | None, typer.Option(help="d, the number of features.")] = None,
    reach: Annotated[float | None, typer.Option(help="r, the radius of nearest neighbour.")] = None,
    directions: Annotated[int | None, typer.Option(help="T, the directions of Theorem 24's adversary.")] = None,
    exploration: Annotated[float | None, typer.Option(help="p, BanditSVM's chance of a uniform guess.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Evaluate one of the paper's bounds, or BanditSVM's."""
    from onebit.commands.bound import bound_command

    given = {"n_classes": k, "margin": gamma, "radius": radius, "dimension": dimension}
    given |= {"reach": reach, "directions": directions, "exploration": exploration}
    bound_command(theorem, given, as_json)


@app.command()
def adversary(
    theorem: Annotated[str | None, typer.Argument(help="3, remark, 11 or 24; none: all of them.")] = None,
    runs: Annotated[int, typer.Option(help="Games of every learner against every adversary.")] = 100,
    out: Annotated[Path, typer.Option(help="Folder for tables and figures.")] = Path("results/adversaries"),
) -> None:
    """Play every learner against the paper's lower-bound constructions."""
    from onebit.commands.adversary import adversary_command

    adversary_command(theorem, runs, out)


@app.command()
def theory(
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for tables and figures; results/theory/, or results/theory/quick/ with --quick."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller sets and problems: seconds.")] = False,
) -> None:
    """Draw Figure 2, the looseness of Theorem 5 and the hardness of weak labelling."""
    from onebit.commands.theory import theory_command

    theory_command(out, quick)


@app.command()
def compare(
    data: Annotated[
        list[str],
        typer.Argument(
            help="Files (CSV, svmlight, npz), folders of them, or names: breast_cancer, digits, iris, wine, "
            "paper_strong, paper_weak."
        ),
    ],
    learners: Annotated[
        list[str] | None,
        typer.Option(help='Such as "BanditPerceptron Banditron:exploration=0.02"; repeat it or put spaces between.'),
    ] = None,
    rival: Annotated[
        str | None, typer.Option(help="vw adds Vowpal Wabbit: its default, and its grid tuned in hindsight.")
    ] = None,
    grid: Annotated[bool, typer.Option(help="Play the rival's whole grid too: thirty settings.")] = True,
    baseline: Annotated[
        str | None, typer.Option(help="Whom all others are compared with; the first learner by default.")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(help="Label column of CSV files, by name or position; label, class, target, y or the last."),
    ] = None,
    rounds: Annotated[int, typer.Option(help="Rounds per run, at most; every row is played once.")] = 10_000,
    runs: Annotated[int, typer.Option(help="Runs of every learner, each on its own shuffle.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the first shuffle; run r uses seed + r.")] = 0,
    preprocess: Annotated[
        str, typer.Option(help="standardize (over the rows played), online (over the rows so far) or none.")
    ] = "standardize",
    unit_length: Annotated[bool, typer.Option("--unit-length", help="Then divide every row by its length.")] = False,
    jobs: Annotated[int | None, typer.Option(help="Worker processes; all cores by default.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for results; what is there already is not played again.")] = Path(
        "results/compare"
    ),
) -> None:
    """Play learners on the same shuffles of your data; write tables, figures and report.html."""
    from onebit.commands.compare import Request, compare_command

    size = rounds, runs, seed
    rows = preprocess, unit_length
    compare_command(Request(data, learners or (), rival, grid, baseline, label, *size, *rows, jobs, out))


def main() -> None:
    """Run the command line: one line for an error a user can mend, no traceback."""
    try:
        app()
    except SystemExit as ended:
        if ended.code == _INTERRUPTED:  # what typer makes of Ctrl-C, and what shells expect
            Console(stderr=True).print("Stopped. What was finished is kept; the same command goes on from there.")
        raise
    except (ValueError, RuntimeError) as error:
        # As text, not as markup: what a user typed must come back letter for letter.
        message = Text.assemble(("error: ", "bold red"), str(error))
        Console(stderr=True, highlight=False, soft_wrap=True).print(message)
        sys.exit(1)
