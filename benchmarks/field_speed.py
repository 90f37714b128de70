"""Rounds per second of every learner, d = 20 and K = 10, one core: ``python benchmarks/field_speed.py`` prints a table.

The rows are noisy, so that learners keep changing. Vowpal Wabbit plays the same rows, its start-up included, if it is
installed.
"""

import argparse
import math
import os
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from rich.console import Console
from rich.table import Table

import onebit
from onebit.checks.problems import noisy_problem
from onebit.experiments.players import LearnerPlayer, Player
from onebit.experiments.vowpal_wabbit import VowpalWabbit
from onebit.learners import Learner, all_learners
from onebit.reporting.text import grouped

CLASSES, FEATURES = 10, 20


def field() -> dict[str, Learner]:
    """Return every class's default, and the diagonal forms."""
    found: dict[str, Learner] = {}
    for cls in all_learners():
        found[cls.__name__] = cls(64) if cls is onebit.BanditHalving else cls()
        if "diagonal" in found[cls.__name__].get_params():
            found[f"{cls.__name__}, diagonal"] = cls().set_params(diagonal=True)
    return found


def fastest(player: Player, rounds: int, repeats: int) -> tuple[float, int]:
    """Return the rounds per second of the fastest game, and its mistakes."""
    problem = noisy_problem(rounds, CLASSES, FEATURES)
    with tempfile.TemporaryDirectory() as folder:
        games = [player.play(problem.X, problem.y, CLASSES, 0, Path(folder)) for _ in range(repeats)]
    return rounds / min(game.seconds or math.inf for game in games), int(games[0].curve[-1])


def main() -> None:
    """Play everyone."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=20_000)
    options.add_argument("--repeats", type=int, default=3)
    chosen = options.parse_args()
    table = Table("player", "rounds per second", "mistakes", title=f"{grouped(chosen.rounds)} rounds, d = 20, K = 10")
    for name, learner in field().items():
        # In Python, a thousand times slower: so many rounds tell it.
        rounds = 500 if name == "Wrapped" else chosen.rounds
        speed, mistakes = fastest(LearnerPlayer(learner), rounds, chosen.repeats)
        shown = grouped(mistakes) if rounds == chosen.rounds else f"{grouped(mistakes)} of {grouped(rounds)}"
        table.add_row(name, grouped(speed), shown)
    try:
        speed, mistakes = fastest(VowpalWabbit("--epsilon 0.05"), chosen.rounds, chosen.repeats)
        table.add_row("Vowpal Wabbit --cbify, start-up included", grouped(speed), grouped(mistakes))
    except (ImportError, ValueError) as error:
        table.add_row("Vowpal Wabbit", "absent", str(error))
    Console().print(table)


if __name__ == "__main__":
    main()
