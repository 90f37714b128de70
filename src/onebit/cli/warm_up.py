"""``onebit warm-up``: compile what a user will need, and keep it on disk."""

import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse
from numba.core import config
from rich.console import Console

from onebit.cli.options import several
from onebit.decider.decider import Decider
from onebit.engine.code_cache import NOT_KEPT, place
from onebit.engine.compile_notice import NOTICE
from onebit.experiments.entries import DEFAULT_ENTRIES, parse_player
from onebit.experiments.players import LearnerPlayer, build
from onebit.learners import BanditSVM, all_learners
from onebit.playing import play
from onebit.reporting.console import print_line, progress_bar

_ALL = "all"  # in place of names: every learner, with its default settings
_N_ROUNDS, _N_CLASSES, _N_CALM = 60, 3, 5000
_REMEDY = "let the variable NUMBA_CACHE_DIR name a folder of yours, and give the same command again"


def command(
    learners: Annotated[
        tuple[str, ...], "As for compare, or all; without any, those that compare plays by default."
    ] = (),
) -> None:
    """Compile what you will need, so that no first guess waits for it; the code is kept on disk."""
    names = _named(learners)
    players = [player for player in map(parse_player, names) if isinstance(player, LearnerPlayer)]
    if len(players) < len(names):
        raise ValueError(f"{', '.join(names)}: only learners can be compiled; leave other players out")
    folder = _check_place()
    NOTICE.keep_quiet()  # the bar says it
    began, n_before = time.monotonic(), NOTICE.n_compiled
    steps = [step for player in players for step in _steps(player)]
    console = Console()
    with progress_bar(console, f"Compiling {len(players)} learner{'s' * (len(players) > 1)}") as show:
        for n_done, step in enumerate(steps, start=1):
            step()
            show(n_done, len(steps))
    n_compiled = NOTICE.n_compiled - n_before
    if NOT_KEPT:
        why = next(iter(NOT_KEPT.values()))
        raise RuntimeError(f"{len(NOT_KEPT)} of {n_compiled} functions could not be kept ({why}): {_REMEDY}")
    counted = "1 function was" if n_compiled == 1 else f"{n_compiled} functions were"
    what = f"{counted} compiled" if n_compiled else "everything was there already"
    print_line(console, f"Ready after {time.monotonic() - began:.1f} seconds: {what}. The code is kept in {folder}.")


def _named(learners: Sequence[str]) -> list[str]:
    everyone = sorted(cls.__name__ for cls in all_learners())
    names = several(learners) or DEFAULT_ENTRIES
    return list(dict.fromkeys(each for name in names for each in (everyone if name == _ALL else [name])))


def _check_place() -> Path:
    """Return where code is kept, or raise if it cannot be, or nothing is compiled."""
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        raise ValueError("NUMBA_DISABLE_JIT switches the compiler off: unset it, and give the same command again")
    wanted = config.CACHE_DIR  # type: ignore[attr-defined]
    try:
        folder = place()
    except RuntimeError:
        tried = f"{wanted} (NUMBA_CACHE_DIR), " if wanted else ""
        places = f"{tried}{Path(__file__).parents[1]} and your own cache folder"
        raise ValueError(f"compiled code cannot be kept: {places} cannot be written to; {_REMEDY}") from None
    if wanted and folder != Path(wanted):
        raise ValueError(f"NUMBA_CACHE_DIR={wanted} cannot be written to: name another folder, or unset it")
    return folder


def _steps(player: LearnerPlayer) -> list[Callable[[], Any]]:
    """Return what compiles a learner for one round at a time, by records or rows, and for whole streams."""
    rows = np.random.default_rng(0).normal(size=(_N_ROUNDS, _N_CLASSES))
    rows *= np.geomspace(1.0, 100.0, _N_ROUNDS)[:, None]  # learners that scale columns do it again
    y = rows.argmax(axis=1)
    played: list[Any] = [rows, scipy.sparse.csr_array(np.where(abs(rows) < 1.0, 0.0, rows))]
    steps: list[Callable[[], Any]] = [partial(play, build(player.spec), X, y, seed=0) for X in played]
    if isinstance(build(player.spec), BanditSVM):
        # Two rows over and over: it plays such a stream in blocks, which are compiled apart.
        two = np.flatnonzero(np.diff(y))[0] + np.arange(_N_CALM) % 2
        steps.append(partial(play, build(player.spec), rows[two], y[two], seed=0))
    return steps if player.full_information else [partial(_decide, player, rows, y), *steps]


def _decide(player: LearnerPlayer, rows: np.ndarray, y: np.ndarray) -> None:
    """Let a decider play, in a file that is removed."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Decider.open(Path(folder) / "warm-up.onebit", _N_CLASSES, build(player.spec), durability="batch") as decider,
    ):
        decider.warm_up()  # with dense and with sparse rows
        for row, label in zip(rows, y, strict=True):
            ticket = decider.guess({f"x{j}": float(value) for j, value in enumerate(row)})
            decider.tell(ticket, ticket.label == label)
