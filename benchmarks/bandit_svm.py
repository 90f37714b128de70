"""BanditSVM at full size: the paper's sets, lock-ups, drift, speed, and time per round on a stream that never settles.

``python benchmarks/bandit_svm.py [--data FOLDER]``; with a folder that holds letter.npz it measures rounds per second
there. Mistakes on real data beside Vowpal Wabbit are ``make arena DATA=FOLDER``.
"""

import argparse
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import onebit
from lock_ups import lock_up_problem
from onebit.kernels import Gaussian, Rational
from onebit.reporting.text import grouped
from onebit.streams import paper_strong, paper_weak, preprocess, read_table

# What BanditSVM played with before it had a bank: exp(−8(1−⟨x, x'⟩)) on unit rows.
_ONE_KERNEL = Gaussian(width=8.0**-0.5, normalize=True)


def timed(learner: onebit.Learner, X: Any, y: Any, **options: Any) -> tuple[int, float]:
    start = time.perf_counter()
    mistakes = onebit.play(learner, X, y, **options).mistakes
    return mistakes, time.perf_counter() - start


def paper_sets(rounds: int, seeds: int) -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = []
    for name, stream, kernel, goal in (
        ("paper_strong", paper_strong, "auto", 12),
        ("paper_weak", paper_weak, "auto", 16),
        ("paper_strong, no kernel", paper_strong, None, 12),
        ("paper_weak, rational kernel", paper_weak, Rational(), 16),
    ):
        games = []
        for seed in range(seeds):
            X, y = stream(rounds, seed)
            if seed == 0:
                onebit.play(onebit.BanditSVM(kernel, scale=None), X[:100], y[:100])
            games.append(timed(onebit.BanditSVM(kernel, scale=None), X, y, seed=seed))
        mistakes, seconds = map(np.array, zip(*games, strict=True))
        shown = f"{mistakes.mean():.1f} mistakes ({mistakes.min()} to {mistakes.max()})"
        lines.append((f"{name}, {grouped(rounds)} rounds, {seeds} seeds", shown, f"≤ {goal}"))
        lines.append(("… the slowest run", f"{seconds.max():.2f} s", "< 5 s"))
    return lines


def lock_ups(rounds: int = 20_000, seeds: int = 20) -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = []
    for name, goal in (("three directions", 10), ("ten levels", 60), ("two ratings", 120), ("rows in turn", 5)):
        problems = [lock_up_problem(name, rounds, seed) for seed in range(seeds)]
        games = [
            onebit.play(onebit.BanditSVM(scale=None), X, y, seed=seed, checkpoints=[rounds // 2])
            for seed, (X, y, *_) in enumerate(problems)
        ]
        mistakes = np.array([game.mistakes for game in games])
        late = sum(game.mistakes - game.curve.mistakes[0] for game in games)
        shown = f"{mistakes.mean():.1f} mistakes ({mistakes.min()} to {mistakes.max()}), {late} in all second halves"
        lines.append((f"{name}, {grouped(rounds)} rounds, {seeds} seeds", shown, f"≤ {goal}, 0"))
    return lines


def letter(folder: Path) -> list[tuple[str, ...]]:
    data = read_table(folder / "letter.npz")
    order = np.random.default_rng(0).permutation(len(data.y))
    raw, y = np.ascontiguousarray(data.X[order]), data.y[order]
    X = preprocess(raw, "standardize")
    one_kernel = onebit.BanditSVM(_ONE_KERNEL, exploration="greedy", scale=None)
    lines: list[tuple[str, ...]] = []
    for name, learner, rows, goal in (
        ("linear", onebit.BanditSVM(None, scale=None), X, "≥ 70 000"),
        ("one kernel", one_kernel, X, ""),
        ("bank", onebit.BanditSVM(scale=None), X, "≥ 2 000"),
        ("bank, raw rows", onebit.BanditSVM(), raw, "≥ 2 000"),
    ):
        onebit.play(learner, rows[:50], y[:50])
        mistakes, seconds = timed(learner, rows, y)
        shown = f"{grouped(len(y) / seconds)} rounds/s, {grouped(mistakes)} mistakes"
        lines.append((f"letter, {grouped(len(y))} rounds, {name}", shown, goal))
    bank, single = _interactive(onebit.BanditSVM(), raw, y), _interactive(one_kernel, X, y)
    shown = f"{bank:.0f} µs, one kernel {single:.0f} µs: {bank / single:.2f}×"
    lines.append(("one guess + tell after 5 000 rounds of letter, bank", shown, "≤ 3×"))
    return lines


def _interactive(learner: onebit.BanditSVM, X: Any, y: Any) -> float:
    """Return the mean microseconds of a guess and a tell, with a full store."""
    onebit.play(learner, X[:5000], y[:5000])
    learner.tell(learner.guess(X[0]), False)  # compiles what single rounds need
    start = time.perf_counter()
    for x, label in zip(X[5000:6000], y[5000:6000], strict=True):
        guess = learner.guess(x)
        learner.tell(guess, bool(guess.label == label))
    return (time.perf_counter() - start) / 1000 * 1e6


def drift(rounds: int = 20_000, seeds: int = 5) -> list[tuple[str, ...]]:
    """Play a world that changes at once, or slowly; beside it a learner that starts anew every tenth."""
    worlds = (("labels swapped half-way", _swap), ("a boundary that turns", _turn), ("priors that shift", _shift))
    lines: list[tuple[str, ...]] = []
    for name, make in worlds:
        kept, renewed, frozen = [], [], []
        for seed in range(seeds):
            X, y = make(rounds, np.random.default_rng(seed))
            kept.append(onebit.play(onebit.BanditSVM(classes=4), X, y, seed=seed).mistakes)
            frozen.append(onebit.play(onebit.BanditSVM(classes=4, C=math.inf), X, y, seed=seed).mistakes)
            pieces = [slice(start, start + rounds // 10) for start in range(0, rounds, rounds // 10)]
            anew = [onebit.play(onebit.BanditSVM(classes=4), X[p], y[p], seed=seed).mistakes for p in pieces]
            renewed.append(sum(anew))
        own, never, tenth = (grouped(float(np.mean(counts))) for counts in (kept, frozen, renewed))
        shown = f"{own} mistakes; never forgetting {never}, new every tenth {tenth}"
        lines.append((f"{name}, {grouped(rounds)} rounds, {seeds} seeds", shown, "measured"))
    return lines


def _swap(rounds: int, generator: np.random.Generator) -> tuple[Any, Any]:
    X, y = _clusters(rounds, generator, np.full((rounds, 4), 0.25))
    y[rounds // 2 :] = (y[rounds // 2 :] + 1) % 4
    return X, y


def _turn(rounds: int, generator: np.random.Generator) -> tuple[Any, Any]:
    X = generator.normal(size=(rounds, 2))
    angle = np.arctan2(X[:, 1], X[:, 0]) + 2.0 * np.pi * np.arange(rounds) / rounds  # one turn in all
    return X, (np.floor(angle / (0.5 * np.pi)) % 4).astype(int)


def _shift(rounds: int, generator: np.random.Generator) -> tuple[Any, Any]:
    share = np.linspace(0.0, 1.0, rounds)[:, None]
    return _clusters(rounds, generator, (1.0 - share) * [0.7, 0.1, 0.1, 0.1] + share * [0.1, 0.1, 0.1, 0.7])


def _clusters(rounds: int, generator: np.random.Generator, priors: Any) -> tuple[Any, Any]:
    """Return overlapping clusters, whose labels are drawn with one row of priors per round."""
    centres = generator.normal(size=(4, 6))
    y = (generator.random(rounds)[:, None] > np.cumsum(priors, axis=1)).sum(axis=1).clip(max=3)
    return centres[y] + 0.8 * generator.normal(size=(rounds, 6)), y


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
        lines.append((f"overlapping classes, {grouped(rounds)} rounds, {name}", shown, "flat"))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with letter.npz")
    parser.add_argument("--rounds", type=int, default=5_000_000, help="rounds of the paper's sets")
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    lines = paper_sets(options.rounds, options.seeds) + lock_ups() + drift()
    lines += [] if options.data is None else letter(options.data)
    lines += flat_time()
    table = Table("what", "measured", "goal", title="BanditSVM")
    for line in lines:
        table.add_row(*line)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
