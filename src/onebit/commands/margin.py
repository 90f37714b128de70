"""What ``onebit margin`` does: the largest margins of a data set, and what the theorems promise for it."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from onebit import kernels
from onebit.bounds import Claim
from onebit.inputs import Floats, Integers
from onebit.kernels import Kernel
from onebit.reporting.progress import progress_bar
from onebit.streams import DataSet, bundled, paper_strong, paper_weak, preprocess, read_table, wedges
from onebit.streams.data_set import make_data_set
from onebit.streams.files import BUNDLED, SUFFIXES
from onebit.theory import Margin, Progress, margin

_OUR_SETS: dict[str, Callable[[], tuple[Floats, Integers]]] = {
    "wedges": wedges,
    "paper_strong": partial(paper_strong, 50_000),
    "paper_weak": partial(paper_weak, 50_000),
}


def margin_command(data: str, label: str | None, kernel: str | None, standardize: bool, as_json: bool) -> None:
    """Measure a file or a named set and print what is found."""
    chosen = _kernel(kernel)
    found = _load(data, label)
    if standardize:
        found = make_data_set(found.name, preprocess(found.X, "standardize"), found.y, data, found.label_names)
    with progress_bar(Console(stderr=as_json), f"Margins of {found.name}") as show:

        def on_progress(progress: Progress) -> None:
            show(round(100 * progress.share), 100)

        result = margin(found.X, np.array(found.label_names)[found.y], chosen, on_progress=on_progress)
    if as_json:
        print(json.dumps(_as_dict(found.name, len(found.y), result)))
    else:
        _print(found.name, len(found.y), result)


def _load(data: str, label: str | None) -> DataSet:
    if data in _OUR_SETS:
        X, y = _OUR_SETS[data]()
        return make_data_set(data, X, y, data)
    if data in BUNDLED:
        return bundled(data)
    if "." not in data:
        known = ", ".join([*_OUR_SETS, *BUNDLED])
        raise ValueError(f"there is no set {data!r}; give a file ({', '.join(SUFFIXES)}) or one of {known}")
    return read_table(data, label)


def _kernel(name: str | None) -> Kernel | None:
    """Return a kernel by name, such as ``rational`` or ``gaussian:0.5``."""
    if name is None:
        return None
    word, _, number = name.partition(":")
    known = {cls.__name__.lower(): cls for cls in (kernels.Linear, kernels.Rational)}
    with_number: dict[str, Any] = {
        "polynomial": lambda text: kernels.Polynomial(int(text)),
        "multinomial": lambda text: kernels.Multinomial(int(text)),
        "gaussian": lambda text: kernels.Gaussian(float(text)),
    }
    try:
        if word in known and not number:
            return known[word]()
        if word in with_number:
            made: Kernel = with_number[word](number)
            return made
    except ValueError as error:
        raise ValueError(f"--kernel {name}: {error}") from error
    choices = ", ".join([*known, *(f"{word}:NUMBER" for word in with_number)])
    raise ValueError(f"--kernel must be one of {choices}; got {name!r}")


def _as_dict(name: str, n_examples: int, result: Margin) -> dict[str, Any]:
    return {
        "data": name,
        "examples": n_examples,
        "features": result.n_features,
        "classes": len(result.classes),
        "kernel": None if result.kernel is None else repr(result.kernel),
        "radius": result.radius,
        "weak": result.weak,
        "strong": result.strong,
        "weak_gap": result.weak_gap,
        "strong_gap": result.strong_gap,
        "classes_not_told_from_the_rest": [str(proof.classes[0]) for proof in result.strong_certificates],
        "promises": [promise.as_dict() for promise in result.promises],
    }


def _print(name: str, n_examples: int, result: Margin) -> None:
    console = Console(highlight=False)
    console.print(
        f"[bold]{name}[/]: {n_examples:,} examples, {result.n_features} features, {len(result.classes)} classes"
        f"{'' if result.kernel is None else f', in the space of {result.kernel!r}'}, radius {result.radius:.6g}"
    )
    for kind, value in (("weak", result.weak), ("strong", result.strong)):
        console.print(
            f"largest {kind} margin: [bold]{f'{value:.6g}' if value > 0 else f'none; not {kind}ly separable'}[/]"
        )
    if result.strong_certificates:
        names = ", ".join(str(proof.classes[0]) for proof in result.strong_certificates)
        console.print(f"no hyperplane tells these classes from all the rest: {names}")
    table = Table(title="What the theorems promise")
    table.add_column("theorem")
    table.add_column("about")
    table.add_column("at most" if result.kernel is not None else "bound", justify="right")
    for promise in result.promises:
        table.add_row(promise.theorem, promise.subject, _shown(promise))
    console.print(table)


def _shown(promise: Claim) -> str:
    if promise.log2 is None:
        return promise.silent_because
    if promise.value is None or not 1e-6 < promise.value < 1e15:
        return f"2^{promise.log2:.4g}"
    return f"{promise.value:,.6g}" if promise.value < 1 else f"{promise.value:,.0f}"
