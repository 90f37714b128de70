"""``onebit bound``: one of the bounds, numbers in, number out."""

import math
from json import dumps
from typing import Annotated, Any, NamedTuple

from rich.console import Console
from rich.table import Table

from onebit.bounds import BOUNDS, Bound
from onebit.reporting.text import grouped


class _Numbers(NamedTuple):
    """The arguments of all bounds, by the names of their options."""

    k: Annotated[int | None, "K, the number of classes."] = None
    gamma: Annotated[float | None, "γ, the margin."] = None
    radius: Annotated[float | None, "R, the length of the longest example."] = None
    dimension: Annotated[int | None, "d, the number of features."] = None
    reach: Annotated[float | None, "r, the radius of nearest neighbour."] = None
    directions: Annotated[int | None, "T, the directions of Theorem 24's adversary."] = None
    exploration: Annotated[float | None, "p, BanditSVM's chance of a uniform guess."] = None
    kernels: Annotated[int | None, "m, the kernels of BanditSVM's bank."] = None
    softness: Annotated[float | None, "1/(2C) of BanditSVM, 0 for a hard margin."] = None
    hypotheses: Annotated[int | None, "H, the hypotheses of BanditHalving."] = None


_ARGUMENTS = {"k": "n_classes", "gamma": "margin", "kernels": "n_kernels", "hypotheses": "n_hypotheses"}
"""The argument of a bound that an option gives, where it is called differently."""
OPTIONS = {_ARGUMENTS.get(name, name): f"--{name}" for name in _Numbers._fields}
"""The option that gives each argument of a bound."""


def command(
    theorem: Annotated[str | None, "Its number, such as 2 or 21-sharp; none: list them."] = None,
    *,
    numbers: _Numbers,
    json: Annotated[bool, "Print JSON."] = False,
) -> None:
    """Evaluate one of the paper's bounds, or BanditSVM's, or halving's."""
    if theorem is None:
        _print_list()
        return
    if theorem not in BOUNDS:
        raise ValueError(f"there is no bound for theorem {theorem!r}; there are {', '.join(BOUNDS)}")
    chosen, given = BOUNDS[theorem], dict(zip(OPTIONS, numbers, strict=True))
    arguments: dict[str, Any] = {name: given[name] for name in chosen.parameters}
    missing = [OPTIONS[name] for name, value in arguments.items() if value is None]
    if missing:
        raise ValueError(f"theorem {theorem} needs {', '.join(missing)} as well")
    spare = [OPTIONS[name] for name, value in given.items() if value is not None and name not in arguments]
    if spare:
        raise ValueError(f"theorem {theorem} does not take {', '.join(spare)}")
    claim = chosen.claim(**arguments)
    value, log2 = claim.value, claim.log2
    if json:
        print(dumps({"theorem": theorem, "side": chosen.side, **arguments, "value": value, "log2": log2}))
        return
    if value is None or value >= 1e15:  # more than fifteen digits tell less than a power of 2
        shown = f"2^{log2:.4g}"
    else:
        shown = grouped(value) if isinstance(value, int) else f"{value:.6g}"
    console = Console(highlight=False)
    console.print(_title(chosen))
    console.print(f"[bold]{shown}[/]")


def _print_list() -> None:
    def reading_order(item: tuple[str, Bound]) -> tuple[float, str]:
        """By number, the sharper version after the stated one; what has no number comes last."""
        number = item[0].split("-")[0]
        return (int(number) if number.isdigit() else math.inf), item[0]

    table = Table("theorem", "side", "what", "options", title="The bounds: onebit bound THEOREM …")
    for theorem, entry in sorted(BOUNDS.items(), key=reading_order):
        table.add_row(theorem, entry.side, _title(entry), " ".join(OPTIONS[name] for name in entry.parameters))
    Console().print(table)


def _title(entry: Bound) -> str:
    return entry.title.removeprefix("Return ")
