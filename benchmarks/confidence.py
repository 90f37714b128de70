"""Whether confidence is what it claims: the probability that a guess is right.

Every set of FOLDER (``name.npz`` with X and y) is played in shuffles, at most ``--rounds`` rounds each, every guess
answered before the next. Counted are rounds after the first 1 000, or in the second half of a shorter game. A set is
shuffled at least ``--shuffles`` times, and up to ten times as often until 10 000 rounds are counted, since fewer cannot
show an error of 0.02. All shuffles of a set are counted together.

- error: the expected calibration error. Rounds are sorted by confidence and cut into ten bins of equal size; of each
  the distance between mean confidence and share right, weighted by its size. "by chance" is what it would be on average
  if confidence were the true probability.
- Brier score, beside that of the constant (the share right, in hindsight), and log loss.
- area under the curve of "right" by confidence, and by the gap of the two highest scores, mean of the shuffles.
- wrong at 80, 50 %: the share wrong among that share of the rounds with the most confidence.

Settings were chosen on every other set, the first in alphabetical order among them; a star marks them.
"""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import onebit
from onebit.confidence import Confidence
from onebit.inputs import Floats
from onebit.streams.data_set import DataSet
from onebit.streams.preprocess import preprocess

SKIPPED, COUNTED, BINS = 1000, 10_000, 10
GOAL = 0.02


class Game(NamedTuple):
    """The counted rounds of one shuffle."""

    confidence: Floats
    gap: Floats
    right: Any


def play(learner: Any, X: Any, y: Any, beside: bool) -> Game:
    """Play a game, and return its counted rounds; `beside` is whether to use what the learner offers beside scores."""
    found, gaps, right, estimator = np.empty(len(y)), np.empty(len(y)), np.empty(len(y), bool), None
    for t in range(len(y)):
        guess = learner.guess(X[t])
        state, label = learner._state, guess.index
        estimator = estimator or Confidence(state.n_extra if beside else 0)
        evidence, found[t] = estimator.observe(guess.scores, label, state.extra(label) if beside else None)
        others = np.delete(guess.scores, label)
        gaps[t], right[t] = guess.scores[label] - others.max(), label == y[t]
        learner.tell(guess, correct=bool(right[t]))
        estimator.learn(evidence, label, bool(right[t]))
    first = min(SKIPPED, len(y) // 2)
    return Game(found[first:], gaps[first:], right[first:])


def shuffles(data: DataSet, learner: str, rounds: int, least: int, beside: bool) -> Iterator[Game]:
    """Play a set until enough rounds are counted."""
    kind, counted, played = getattr(onebit, learner), 0, 0
    X = data.X
    if kind is not onebit.BanditSVM:  # it scales columns by itself
        X = preprocess(X, "standardize")
    while played < least or (counted < COUNTED and played < 10 * least):
        order = np.random.default_rng(played + 1).permutation(len(data.y))[:rounds]
        game = play(kind(classes=list(range(len(data.label_names)))), X[order], data.y[order], beside)
        played, counted = played + 1, counted + len(game.right)
        yield game


def calibration_error(confidence: Floats, right: Any) -> float:
    """Return the mean distance of confidence and share right in bins of equal size."""
    bins = np.array_split(np.argsort(confidence, kind="stable"), BINS)
    return float(sum(abs(np.sum(confidence[part] - right[part])) for part in bins) / len(right))


def area(values: Floats, right: Any) -> float:
    """Return the area under the curve, or NaN if all are right or all wrong."""
    from scipy.stats import rankdata

    n_right, n_wrong = int(right.sum()), int((~right).sum())
    if n_right == 0 or n_wrong == 0:
        return math.nan
    return float((rankdata(values)[right].sum() - n_right * (n_right + 1) / 2) / (n_right * n_wrong))


def measure(games: list[Game]) -> dict[str, float]:
    """Return the numbers of one set."""
    confidence, right = np.concatenate([g.confidence for g in games]), np.concatenate([g.right for g in games])
    draw, order = np.random.default_rng(0), np.argsort(-confidence, kind="stable")
    chance = [calibration_error(confidence, draw.random(len(confidence)) < confidence) for _ in range(10)]
    likely = np.where(right, confidence, 1.0 - confidence)
    areas = np.array([(area(g.confidence, g.right), area(g.gap, g.right)) for g in games])
    by_confidence, by_gap = areas[~np.isnan(areas[:, 0])].mean(axis=0) if not np.isnan(areas).all() else (math.nan,) * 2
    return {
        "rounds": float(len(right)),
        "wrong": float(1.0 - right.mean()),
        "error": calibration_error(confidence, right),
        "by chance": float(np.mean(chance)),
        "Brier": float(np.mean((confidence - right) ** 2)),
        "constant": float(right.mean() * (1.0 - right.mean())),
        "log loss": float(-np.mean(np.log(likely))),
        "area": float(by_confidence),
        "by gap": float(by_gap),
        "wrong at 80 %": float(1.0 - right[order[: int(0.8 * len(order))]].mean()),
        "50 %": float(1.0 - right[order[: int(0.5 * len(order))]].mean()),
    }


def main() -> None:
    """Play, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="holds name.npz files")
    parser.add_argument("--learner", default="BanditSVM", help="a learner of onebit that has scores")
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--shuffles", type=int, default=5)
    parser.add_argument("--sets", nargs="*", help="only these")
    parser.add_argument("--scores-only", action="store_true", help="without what the learner offers beside its scores")
    chosen, console = parser.parse_args(), Console()
    paths, found, table = sorted(chosen.folder.glob("*.npz")), {}, Table(title=f"confidence of {chosen.learner}")
    for k, path in enumerate(paths):
        if chosen.sets and path.stem not in chosen.sets:
            continue
        data = onebit.streams.read_table(path)
        games = shuffles(data, chosen.learner, chosen.rounds, chosen.shuffles, not chosen.scores_only)
        found[path.stem + ("*" if k % 2 == 0 else "")] = row = measure(list(games))
        console.print(f"{path.stem}: error {row['error']:.4f}, Brier {row['Brier']:.4f}", highlight=False)
    table.add_column("set")
    for name in next(iter(found.values())):
        table.add_column(name, justify="right")
    for name, row in found.items():
        table.add_row(name, *(f"{value:.0f}" if title == "rounds" else f"{value:.4f}" for title, value in row.items()))
    console.print(table)
    for title, group in {"chosen on": "*", "others": ""}.items():
        rows = [row for name, row in found.items() if name.endswith("*") == bool(group)]
        if rows:
            means = ", ".join(f"{name} {np.nanmean([r[name] for r in rows]):.4f}" for name in list(rows[0])[2:])
            good = sum(row["error"] <= GOAL for row in rows), sum(row["Brier"] < row["constant"] for row in rows)
            counts = f"error ≤ {GOAL}: {good[0]} of {len(rows)}, Brier below the constant's: {good[1]} of {len(rows)}"
            console.print(f"{title}: {counts}; means: {means}", highlight=False)


if __name__ == "__main__":
    main()
