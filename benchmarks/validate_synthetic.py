"""Banditron, SOBA, PNewtron and Confidit on SynSep and SynNonSep: error rates to hold beside those of their papers.

``python benchmarks/validate_synthetic.py`` tries every setting on the first rounds, then plays the best of each learner
to the end. Second-order learners are diagonal, as in the experiments of the SOBA paper: nine classes times 400 features
would need a matrix of 3 600 × 3 600. The perceptron, which is told the label, is the floor.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import onebit
from onebit.inputs import Integers
from onebit.reporting.text import grouped
from onebit.streams import syn_non_sep, syn_sep

Stream = tuple[Any, Integers]


class Player(NamedTuple):
    """Who plays."""

    name: str
    settings: tuple[float, ...]
    """Explorations; for Confidit values of its η."""
    learner: Callable[[float], onebit.Learner]


EXPLORATIONS = tuple(2.0**power for power in (-13, -11, -9, -7, -5, -3))
ETAS = tuple(2.0**power for power in (-8, -6, -4, -2, 0, 2, 4))
PLAYERS = (
    Player("Perceptron, told the label", (0.0,), lambda _: onebit.MulticlassPerceptron()),
    Player("Banditron", EXPLORATIONS, onebit.Banditron),
    Player("SOBA, diagonal", EXPLORATIONS, lambda rate: onebit.SOBA(rate, diagonal=True)),
    Player("PNewtron, diagonal", EXPLORATIONS, lambda rate: onebit.PNewtron(rate, diagonal=True)),
    Player("Confidit, diagonal", ETAS, lambda eta: onebit.Confidit(eta=eta, diagonal=True)),
)


def per_cent(learner: onebit.Learner, stream: Stream, seed: int) -> float:
    """Return in how many of a hundred rounds a learner errs."""
    trace = onebit.play(learner, *stream, seed=seed)
    return 100.0 * trace.mistakes / trace.rounds


def main() -> None:
    """Play, and print one table for each stream."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--tried", type=int, default=100_000, help="rounds on which settings are compared")
    parser.add_argument("--players", nargs="+", default=[""], help="beginnings of their names; by default all")
    parser.add_argument("--seed", type=int, default=1)
    options, console = parser.parse_args(), Console(width=140)
    for title, make in (("SynSep", syn_sep), ("SynNonSep", syn_non_sep)):
        X, y = make(options.rounds, options.seed)
        beginning = X[: options.tried], y[: options.tried]
        table = Table("", "with each setting", "best", "in all", title=f"{title}: % of mistakes")
        for name, settings, learner in PLAYERS:
            if not name.startswith(tuple(options.players)):
                continue
            start = time.process_time()
            errors = [per_cent(learner(setting), beginning, options.seed) for setting in settings]
            best = settings[int(np.argmin(errors))]
            told = ", ".join(f"{setting:.3g}: {error:.2f}" for setting, error in zip(settings, errors, strict=True))
            table.add_row(name, told, f"{best:.3g}", f"{per_cent(learner(best), (X, y), options.seed):.2f}")
            console.print(f"{title}, {name}: done in {time.process_time() - start:.0f} s")
        console.print(table)
        console.print(f"with each setting: {grouped(options.tried)} rounds; in all: {grouped(options.rounds)}")


if __name__ == "__main__":
    main()
