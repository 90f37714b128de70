"""``onebit margin``: the largest margins of a data set, and what the theorems promise for it."""

from json import dumps
from typing import Annotated, Any

import numpy as np
from rich.console import Console

from onebit.cli import options
from onebit.experiments.entries import kernel_names, parse_kernel
from onebit.kernels import as_kernel
from onebit.reporting.console import print_facts, print_line, print_table, progress_bar
from onebit.reporting.text import Table, bound_text, grouped
from onebit.streams import describe, preprocess
from onebit.streams.data_set import make_data_set
from onebit.streams.reading import Reading
from onebit.streams.sources import find_source
from onebit.theory import Margin, margin

_DRAWN_ROUNDS = 50_000  # of a stream: by then the paper's margins have settled to three digits


def command(
    data: options.OneSource,
    *,
    kernel: Annotated[str | None, f"{', '.join(kernel_names())}, or mypackage.kernels:Mine. Without: R^d."] = None,
    standardize: Annotated[bool, "Standardise the columns and add a constant one first."] = False,
    reading: Reading,
    json: Annotated[bool, "Print JSON."] = False,
) -> None:
    """Measure the largest weak and strong margin of a data set, and what the theorems promise for it."""
    try:
        chosen = None if kernel is None or kernel.lower() == "none" else as_kernel(parse_kernel(kernel))
    except ValueError as error:
        raise ValueError(f"--kernel {kernel}: {error}") from error
    found = find_source(data, reading).as_data_set(_DRAWN_ROUNDS)
    console = Console(stderr=json)  # with --json standard output is for the JSON alone
    print_facts(console, found.name, describe(found))
    if standardize:
        found = make_data_set(found.name, preprocess(found.X, "standardize"), found.y, data, found.label_names)
    with progress_bar(console, f"Margins of {found.name}") as show:
        labels = np.array(found.label_names)[found.y]
        result = margin(found.X, labels, chosen, on_progress=lambda done: show(round(100 * done.share), 100))
    if json:
        print(dumps(_as_dict(found.name, len(found.y), result)))
    else:
        _print(console, found.name, len(found.y), result)


def _as_dict(name: str, n_examples: int, result: Margin) -> dict[str, Any]:
    same = ("radius", "weak", "strong", "weak_limit", "strong_limit", "weak_gap", "strong_gap")
    return {
        "data": name,
        "examples": n_examples,
        "features": result.n_features,
        "classes": len(result.classes),
        "kernel": None if result.kernel is None else repr(result.kernel),
        **{each: getattr(result, each) for each in same},
        "classes_not_told_from_the_rest": [str(label) for label in result.mixed_classes],
        "promises": [promise.as_dict() for promise in result.promises],
    }


def _print(console: Console, name: str, n_examples: int, result: Margin) -> None:
    size = f"{grouped(n_examples)} examples, {result.n_features} features, {len(result.classes)} classes"
    facts = {
        "space": "R^d" if result.kernel is None else f"of {result.kernel!r}",
        "radius": f"{result.radius:.6g}",
        "weak margin": _found("weak", result.weak, result.weak_limit),
        "strong margin": _found("strong", result.strong, result.strong_limit),
    }
    print_facts(console, f"{name}: {size}", facts)
    if result.mixed_classes:
        names = ", ".join(map(str, result.mixed_classes))
        print_line(console, f"no hyperplane through the origin tells these classes from all the rest: {names}")
    columns = ("theorem", "about", "at most" if result.kernel is not None else "bound")
    promises = [
        (each.theorem, each.subject, each.silent_because if each.log2 is None else bound_text(each.value, each.log2))
        for each in result.promises
    ]
    print_table(console, Table(columns, promises, "What the theorems promise", (), ("name", "", "number")))


def _found(kind: str, margin: float, limit: float) -> str:
    """Say what was found, and no more than is proved."""
    if limit == 0.0:
        return f"none; not {kind}ly separable"
    if margin == 0.0:
        return f"none found; it is at most {limit:.3g}"
    # Six digits are printed, so what differs only after them does not.
    return f"{margin:.6g}" if margin >= (1.0 - 1e-6) * limit else f"between {margin:.6g} and {limit:.6g}"
