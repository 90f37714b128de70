"""The command line: ``onebit --help``."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(
    help='Learn a K-way classifier when the only answer you ever get is "right" or "wrong".',
    no_args_is_help=True,
    add_completion=False,
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
    from onebit.reproduce.command import reproduce_command

    reproduce_command(rounds, runs, seed, jobs, out, quick)


def main() -> None:
    """Run the command line: one line for an error a user can mend, no traceback."""
    try:
        app()
    except KeyboardInterrupt:
        Console(stderr=True).print("Stopped. What was finished is kept; the same command goes on from there.")
        sys.exit(130)
    except (ValueError, RuntimeError) as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"[bold red]error:[/] {error}", markup=True)
        sys.exit(1)
