"""``onebit bound``: one of the bounds, numbers in, number out."""

import math
from json import dumps
from typing import Annotated, Any, NamedTuple

from rich.console import Console

from onebit.bounds import BOUNDS
from onebit.bounds.claims import Bound
from onebit.reporting.console import print_line, print_table
from onebit.reporting.text import Table, bound_text


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
_OPTIONS = {_ARGUMENTS.get(name, name): f"--{name}" for name in _Numbers._fields}
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
    chosen, given = BOUNDS[theorem], dict(zip(_OPTIONS, numbers, strict=True))
    arguments: dict[str, Any] = {name: given[name] for name in chosen.parameters}
    if missing := [_OPTIONS[name] for name, value in arguments.items() if value is None]:
        raise ValueError(f"theorem {theorem} needs {', '.join(missing)} as well")
    if spare := [_OPTIONS[name] for name, value in given.items() if value is not None and name not in arguments]:
        raise ValueError(f"theorem {theorem} does not take {', '.join(spare)}")
    claim = chosen.claim(**arguments)
    if json:
        print(dumps({"theorem": theorem, "side": chosen.side, **arguments, "value": claim.value, "log2": claim.log2}))
        return
    print_line(Console(), f"{_title(chosen)}: {bound_text(claim.value, claim.log2)}")


def _title(entry: Bound[Any]) -> str:
    return entry.title.removeprefix("Return ").removesuffix(".")


def _print_list() -> None:
    def reading_order(theorem: str) -> tuple[float, str]:
        """By number, the sharper version after the stated one; what has no number comes last."""
        number = theorem.split("-")[0]
        return (int(number) if number.isdigit() else math.inf), theorem

    rows = []
    for theorem in sorted(BOUNDS, key=reading_order):
        entry = BOUNDS[theorem]
        options = " ".join(_OPTIONS[name] for name in entry.parameters)
        rows.append((theorem, entry.side, _title(entry), options))
    columns = ("theorem", "side", "what", "options")
    print_table(Console(), Table(columns, rows, "The bounds: onebit bound THEOREM …", styles=("name", "", "", "")))
