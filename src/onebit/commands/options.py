"""Options that several commands have, each written once."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onebit.experiments.entries import kernel_names
from onebit.learners import all_learners
from onebit.streams.sources import known_names

if TYPE_CHECKING:
    from onebit.streams.reading import Reading

_OTHERS = ["a stream of your own, mypackage.streams:mine", "or any of them made harder, noise:0.05:digits"]
NAMES = ", ".join([*known_names(), *_OTHERS])
KERNELS = ", ".join(kernel_names())
LEARNERS = ", ".join(sorted(cls.__name__ for cls in all_learners()))

FILES = "CSV, TSV, Parquet, ARFF, svmlight, npz; text also as .gz"

# What is said about a file, by `reads_files`.
_Label = Annotated[
    str | None,
    typer.Option(help="Label column, by name or position; otherwise label, class, target, y or the last."),
]
_Drop = Annotated[list[str] | None, typer.Option(help="Columns to leave out; repeat it or put commas between.")]
_Columns = Annotated[list[str] | None, typer.Option(help="The only columns to take; repeat it or put commas between.")]
_Missing = Annotated[
    str, typer.Option(help="refuse, or indicator: the column's mean, and a column of 0 and 1 that says where.")
]
_Delimiter = Annotated[str | None, typer.Option(help="What stands between cells; otherwise it is found out.")]
_Decimal = Annotated[str | None, typer.Option(help="What stands before decimals, . or ,; otherwise it is found out.")]
_Encoding = Annotated[str | None, typer.Option(help="Of text, such as cp1252; otherwise UTF-8, or what its mark says.")]
_MaxWords = Annotated[
    int | None, typer.Option(help="The most different words a column may have, each a column then; 100 otherwise.")
]
_MaxGib = Annotated[
    float | None,
    typer.Option(help="The most memory that reading may take; 2 GiB, or 200 times the file's size, otherwise."),
]

# How learners play it.
Preprocess = Annotated[
    str,
    typer.Option(
        help="standardize (over the rows played), online (over the rows so far) or none; not for learners that scale "
        "columns themselves."
    ),
]
Learners = Annotated[
    list[str] | None,
    typer.Option(
        help='Such as "BanditPerceptron Banditron:exploration=0.02"; repeat it or put spaces between. '
        f"There are {LEARNERS}; one of your own is mypackage.mine:Mine."
    ),
]
Rival = Annotated[
    list[str] | None,
    typer.Option(
        help="vw adds Vowpal Wabbit: its default, and its grid tuned in hindsight. Others are named by import path, "
        "such as rivals:river. Repeat it or put spaces between."
    ),
]
Grid = Annotated[bool, typer.Option(help="Play the rivals' whole grids too: thirty settings of vw.")]
RivalSeconds = Annotated[
    float, typer.Option(help="Seconds of a game, by the clock, after which a rival's program is ended.")
]
Rounds = Annotated[int, typer.Option(help="Rounds per run, at most; every row is played once.")]
Runs = Annotated[int, typer.Option(help="Runs of every learner, each on its own shuffle.")]
Seed = Annotated[int, typer.Option(help="Seed of the first shuffle; run r uses seed + r.")]
UnitLength = Annotated[bool, typer.Option("--unit-length", help="Then divide every row by its length.")]
Jobs = Annotated[int | None, typer.Option(help="Worker processes; all cores by default.")]
Out = Annotated[Path, typer.Option(help="Folder for results; what is there already is not played again.")]
Dask = Annotated[
    str | None,
    typer.Option(
        help="Play on a Dask cluster instead: its scheduler's address, such as tcp://10.0.0.1:8786, or scheduler file."
    ),
]


def reads_files(without: str = "") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options about files in the place of its parameter `reading`, which gets what they say.

    Parameters
    ----------
    without : str
        An option that the command does not have.
    """
    options = {name: option for name, option in inspect.signature(_reading).parameters.items() if name != without}

    def given_options(command: Callable[..., None]) -> Callable[..., None]:
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command).parameters.values():
            parameters += options.values() if parameter.name == "reading" else [parameter]

        @wraps(command)
        def with_reading(**given: Any) -> None:
            said = {name: given.pop(name) for name in options}
            command(**given, reading=_reading(**said))

        # Typer reads off both what it may be given.
        with_reading.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
        )
        with_reading.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return with_reading

    return given_options


def _reading(
    label: _Label = None,
    drop: _Drop = None,
    columns: _Columns = None,
    missing: _Missing = "refuse",
    delimiter: _Delimiter = None,
    decimal: _Decimal = None,
    encoding: _Encoding = None,
    max_words: _MaxWords = None,
    max_gib: _MaxGib = None,
) -> "Reading":
    """Return what a user said about a file."""
    from onebit.streams.reading import Reading

    return Reading(
        label, tuple(drop or ()), tuple(columns or ()), missing, delimiter, decimal, encoding, max_words, max_gib
    )
