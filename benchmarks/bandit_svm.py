"""BanditSVM at full size: the paper's sets, speed, and time per round on a stream that never settles.

``python benchmarks/bandit_svm.py [--data FOLDER]``; with a folder that holds letter.npz it measures rounds per second
there. Mistakes on real data beside Vowpal Wabbit are ``make arena DATA=FOLDER``.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import onebit
from onebit.kernels import Rational
from onebit.streams import paper_strong, paper_weak, preprocess, read_table


def timed(learner: onebit.Learner, X: Any, y: Any, **options: Any) -> tuple[int, float]:
    start = time.perf_counter()
    mistakes = onebit.play(learner, X, y, **options).mistakes
    return mistakes, time.perf_counter() - start


def paper_sets(rounds: int, seeds: int) -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = []
    for name, stream, kernel, goal in (
        ("paper_strong", paper_strong, None, 12),
        ("paper_weak", paper_weak, Rational(), 16),
    ):
        games = []
        for seed in range(seeds):
            X, y = stream(rounds, seed)
            if seed == 0:
                onebit.play(onebit.BanditSVM(kernel), X[:100], y[:100])
            games.append(timed(onebit.BanditSVM(kernel), X, y, seed=seed))
        mistakes, seconds = map(np.array, zip(*games, strict=True))
        shown = f"{mistakes.mean():.1f} mistakes ({mistakes.min()} to {mistakes.max()})"
        lines.append((f"{name}, {rounds:,} rounds, {seeds} seeds", shown, f"≤ {goal}"))
        lines.append(("… the slowest run", f"{seconds.max():.2f} s", "< 3 s"))
    return lines


def letter(folder: Path) -> list[tuple[str, ...]]:
    data = read_table(folder / "letter.npz")
    order = np.random.default_rng(0).permutation(len(data.y))
    X, y = preprocess(data.X[order], "standardize"), data.y[order]
    lines: list[tuple[str, ...]] = []
    for name, learner, goal in (
        ("linear", onebit.BanditSVM(None), "≥ 20,000"),
        ("default kernel and budget", onebit.BanditSVM(), "≥ 2,000"),
    ):
        onebit.play(learner, X[:50], y[:50])
        _, seconds = timed(learner, X, y)
        lines.append((f"letter, {len(y):,} rounds, {name}", f"{len(y) / seconds:,.0f} rounds/s", goal))
    return lines


def flat_time(rounds: int = 100_000) -> list[tuple[str, ...]]:
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(5, 10))
    y = generator.integers(5, size=rounds)
    X = centres[y] + 1.5 * generator.normal(size=(rounds, 10))
    lines: list[tuple[str, ...]] = []
    for name, learner in (("linear", onebit.BanditSVM(None)), ("default", onebit.BanditSVM())):
        tenth, times = rounds // 10, []
        for start in range(0, rounds, tenth):
            piece = slice(start, start + tenth)
            times.append(timed(learner, X[piece], y[piece], fresh=start == 0)[1] / tenth * 1e6)
        shown = f"{times[1]:.0f} µs in the second tenth, {times[-1]:.0f} µs in the last"
        lines.append((f"overlapping classes, {rounds:,} rounds, {name}", shown, "flat"))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with letter.npz")
    parser.add_argument("--rounds", type=int, default=5_000_000, help="rounds of the paper's sets")
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    lines = paper_sets(options.rounds, options.seeds)
    lines += [] if options.data is None else letter(options.data)
    lines += flat_time()
    table = Table("what", "measured", "goal", title="BanditSVM")
    for line in lines:
        table.add_row(*line)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
