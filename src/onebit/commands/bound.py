"""What ``onebit bound`` does: one of the bounds, numbers in, number out."""

import json
import math
from typing import Any

from rich.console import Console
from rich.table import Table

from onebit.bounds import BOUNDS, Bound
from onebit.reporting.text import grouped

OPTIONS = {
    "n_classes": "--k",
    "radius": "--radius",
    "margin": "--gamma",
    "dimension": "--dimension",
    "reach": "--reach",
    "directions": "--directions",
    "exploration": "--exploration",
    "n_kernels": "--kernels",
    "softness": "--softness",
    "n_hypotheses": "--hypotheses",
}
"""The option that gives each argument of a bound."""


def bound_command(theorem: str | None, given: dict[str, Any], as_json: bool) -> None:
    """Print the bound for the numbers given, or the list of bounds."""
    if theorem is None:
        _print_list()
        return
    if theorem not in BOUNDS:
        raise ValueError(f"there is no bound for theorem {theorem!r}; there are {', '.join(BOUNDS)}")
    chosen = BOUNDS[theorem]
    arguments = _arguments(chosen, given)
    claim = chosen.claim(**arguments)
    value, log2 = claim.value, claim.log2
    if as_json:
        print(json.dumps({"theorem": theorem, "side": chosen.side, **arguments, "value": value, "log2": log2}))
        return
    console = Console(highlight=False)
    console.print(_title(chosen))
    # A number of more than fifteen digits says less than its power of 2.
    shown = (
        f"2^{log2:.4g}"
        if value is None or value >= 1e15
        else grouped(value)
        if isinstance(value, int)
        else f"{value:.6g}"
    )
    console.print(f"[bold]{shown}[/]")


def _arguments(chosen: Bound, given: dict[str, Any]) -> dict[str, Any]:
    wanted = {name: given[name] for name in chosen.parameters}
    missing = [OPTIONS[name] for name, value in wanted.items() if value is None]
    if missing:
        raise ValueError(f"theorem {chosen.theorem} needs {', '.join(missing)} as well")
    spare = [OPTIONS[name] for name, value in given.items() if value is not None and name not in wanted]
    if spare:
        raise ValueError(f"theorem {chosen.theorem} does not take {', '.join(spare)}")
    return wanted


def _print_list() -> None:
    table = Table(title="The bounds: onebit bound THEOREM …")
    for name in ("theorem", "side", "what", "options"):
        table.add_column(name)
    for theorem, entry in sorted(BOUNDS.items(), key=_reading_order):
        table.add_row(theorem, entry.side, _title(entry), " ".join(OPTIONS[name] for name in entry.parameters))
    Console().print(table)


def _reading_order(item: tuple[str, Bound]) -> tuple[float, str]:
    """By number, the sharper version after the stated one; what has no number comes last."""
    number = item[0].split("-")[0]
    return (int(number) if number.isdigit() else math.inf), item[0]


def _title(entry: Bound) -> str:
    return entry.title.removeprefix("Return ")
