"""Whether 95 % intervals cover the truth, and what a floor costs: ``python benchmarks/evaluate_coverage.py``.

In every run a learner plays a stream and leaves a log, with or without a floor of uniform guesses under it; other
learners are evaluated on that log, and their true mistakes, which the log does not tell, are held against bounds and
intervals. It prints two tables for docs/evaluate.md: a few minutes on one core.
"""

import argparse
from collections.abc import Callable

import numpy as np
from rich.console import Console

import onebit
from onebit.evaluate import Candidate, evaluate, play_with_floor
from onebit.evaluate.estimates import METHODS
from onebit.reporting.progress import progress_bar
from onebit.reporting.tables import grouped, with_error

Stream = tuple[np.ndarray, np.ndarray]
K = 5
ROUNDED = 1e-12


def clouds(rounds: int, seed: int) -> Stream:
    """Draw overlapping clouds of points: nobody is always right."""
    centers = 2.2 * np.random.default_rng(7).normal(size=(K, 4))
    random = np.random.default_rng(seed)
    y = random.integers(K, size=rounds)
    return centers[y] + random.normal(size=(rounds, 4)), y


def digits(rounds: int, seed: int) -> Stream:
    """Return the digits of scikit-learn, two and two of them a class."""
    data = onebit.streams.bundled("digits")
    order = np.random.default_rng(seed).permutation(len(data.y))[:rounds]
    return np.asarray(data.X)[order] / 16.0, np.asarray(data.y)[order] // 2


STREAMS: dict[str, Callable[[int, int], Stream]] = {"clouds": clouds, "digits": digits}
LOGS: dict[str, tuple[Callable[[int], onebit.Learner], float]] = {
    "BanditSVM:kernel=none": (lambda seed: onebit.BanditSVM(None, classes=K, seed=seed), 0.0),
    "BanditSVM:kernel=none, floor 0.02": (lambda seed: onebit.BanditSVM(None, classes=K, seed=seed), 0.02),
    "BanditSVM:kernel=none, floor 0.1": (lambda seed: onebit.BanditSVM(None, classes=K, seed=seed), 0.1),
    "EpsilonGreedy:exploration=0.1": (lambda seed: onebit.EpsilonGreedy(0.1, classes=K, seed=seed), 0.0),
}
ONLY_PLAYED = "BanditSVM:kernel=none"
"""Its guesses have propensity 1, so nothing can be estimated from its log."""


def candidates(stream: str) -> list[Candidate]:
    """Return one that stays what it is, and where rows are short one that learns from the log."""
    X, y = STREAMS[stream](200, 10**6)
    saved = onebit.EpsilonGreedy(classes=K).learn_labels(X, y)
    learning = [Candidate("BanditPerceptron", onebit.BanditPerceptron())] if stream == "clouds" else []
    return [Candidate("EpsilonGreedy, saved", saved, is_frozen=True), *learning]


Found = dict[tuple[str, str, str, str], list[tuple[bool, float]]]


def measure(runs: int, rounds: int) -> tuple[Found, dict[tuple[str, str], list[int]]]:
    found: Found = {}
    mistakes: dict[tuple[str, str], list[int]] = {}
    n_done, n_all = 0, runs * len(STREAMS) * len(LOGS)
    who = {stream: candidates(stream) for stream in STREAMS}
    with progress_bar(Console(stderr=True), f"{grouped(runs)} runs of {grouped(rounds)} rounds") as show:
        for run in range(runs):
            for stream, make in STREAMS.items():
                X, y = make(rounds, run)
                for name, (learner, floor) in LOGS.items():
                    log = play_with_floor(learner(run), X, y, floor=floor, seed=run)
                    mistakes.setdefault((stream, name), []).append(int((log.answers == 0).sum()))
                    rows = [] if name == ONLY_PLAYED else evaluate(log, who[stream], seed=run + 10**6)
                    for row in rows[1:]:
                        truth = float(np.mean(row.guesses != y))
                        within = {"sure": (row.known.low, row.known.high)}
                        within |= {method: each[1:] for method, each in row.estimates.found.items()}
                        for method, (low, high) in within.items():
                            is_covered = low - ROUNDED <= truth <= high + ROUNDED
                            found.setdefault((stream, name, row.title, method), []).append((is_covered, high - low))
                    n_done += 1
                    show(n_done, n_all)
    return found, mistakes


def coverage_table(found: Found) -> str:
    lines = ["| stream | log | learner | surely within | " + " | ".join(METHODS) + " |", "|---|---|---|" + "---:|" * 5]
    for stream, name, title in dict.fromkeys(key[:3] for key in found):
        cells = []
        for method in ("sure", *METHODS):
            runs = found.get((stream, name, title, method), [])
            if runs:
                covered, width = np.mean(np.array(runs, dtype=np.float64), axis=0)
                cells.append(f"{100 * covered:.1f} %, {100 * width:.1f}")
            else:
                cells.append("none")
        lines.append(f"| {stream} | `{name}` | `{title}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def cost_table(mistakes: dict[tuple[str, str], list[int]]) -> str:
    lines = ["| stream | log | mistakes |", "|---|---|---:|"]
    for (stream, name), made in mistakes.items():
        error = float(np.std(made, ddof=1)) / len(made) ** 0.5
        lines.append(f"| {stream} | `{name}` | {with_error(float(np.mean(made)), error)} |")
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=500)
    options.add_argument("--rounds", type=int, default=500)
    chosen = options.parse_args()
    found, mistakes = measure(chosen.runs, chosen.rounds)
    print(coverage_table(found), cost_table(mistakes), sep="\n\n")


if __name__ == "__main__":
    main()
