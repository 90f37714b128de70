"""After how many of its rounds a rare class is found that first appears half-way through a noisy stream.

Five classes are the largest of five random linear scores of 20 normal features; a fifth of the labels are random. In
the second half a sixth class makes up 1 % of the rounds. In `corner` it lies in a corner of its own, in `among` nearer,
between the others, in `cone` it is the largest of six linear scores, as the others are.
"""

import argparse
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import onebit

FEATURES, CLASSES, NOISE, SHARE = 20, 6, 0.2, 0.01
CORNERS = {"corner": (2.0, 0.3), "among": (1.0, 0.5)}
"""How far the late class is from the middle, in lengths of a usual row, and its spread."""
LEARNERS = {"BanditSVM": onebit.BanditSVM, "LinUCB": onebit.LinUCB, "Confidit": onebit.Confidit}


def make(name: str, rounds: int, seed: int) -> tuple[Any, Any, Any]:
    """Return rows, labels, and which rounds are the late class's."""
    generator = np.random.default_rng(seed)
    late = (np.arange(rounds) >= rounds // 2) & (generator.random(rounds) < SHARE)
    weights = generator.normal(size=(CLASSES, FEATURES))
    X = generator.normal(size=(4 * rounds, FEATURES))
    if name in CORNERS:
        distance, spread = CORNERS[name]
        X, centre = X[:rounds], generator.normal(size=FEATURES)
        centre *= distance * np.sqrt(FEATURES) / np.linalg.norm(centre)
        X[late] = centre + spread * generator.normal(size=(int(late.sum()), FEATURES))
        y = np.argmax(X @ weights[1:].T, axis=1)
    else:
        largest = np.argmax(X @ weights.T, axis=1)
        rare = X[largest == 0][: int(late.sum())]
        X = X[largest > 0][:rounds]
        X[late] = rare
        y = np.argmax(X @ weights.T, axis=1) - 1
    is_random = generator.random(rounds) < NOISE
    y = np.where(is_random, generator.integers(CLASSES - 1, size=rounds), y)
    y[late] = CLASSES - 1
    return X, y, late


def main() -> None:
    """Play all streams, and print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=20_000)
    options.add_argument("--seeds", type=int, default=4, help="streams of each kind")
    chosen = options.parse_args()
    table = Table("stream", "learner", "late rounds", "wrong", "first right after", "% wrong of the others")
    for name in (*CORNERS, "cone"):
        for learner, make_learner in LEARNERS.items():
            lines = []
            for seed in range(chosen.seeds):
                X, y, late = make(name, chosen.rounds, seed)
                trace = onebit.play(make_learner(), X, y, seed=seed, keep_guesses=True)
                wrong = np.asarray(trace.guesses) != y
                right = np.flatnonzero(~wrong[late])
                found = str(right[0]) if len(right) else "never"
                lines.append((int(late.sum()), int(wrong[late].sum()), found, 100.0 * wrong[~late].mean()))
            n_late, n_wrong, found_after, rest = zip(*lines, strict=True)
            words = [" ".join(map(str, column)) for column in (n_late, n_wrong, found_after)]
            table.add_row(name, learner, *words, f"{np.mean(rest):.1f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
