"""Several right labels: BanditSVM with exclusive=True, False and "auto", and regressions, on ordinary and other rules.

``python benchmarks/several_right.py FOLDER`` prints a table of mean mistakes, one row for each data set (an .npz file
with X and y) and rule. Right are with "one" the label of the set; with "linear" three in ten labels, the highest of a
random linear rule; with "next" the label and the one after it; with "extra" the label, and every other one that is
among the highest fifth of a random linear rule.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import onebit
from onebit.streams import preprocess, with_several_right

SETS = "digits,segment,vehicle,car,vowel,satimage,pendigits,letter,nursery,connect4,wine_quality_white,dna"
PLAYERS: dict[str, Callable[[], onebit.Learner]] = {
    "True": lambda: onebit.BanditSVM(exclusive=True),
    "False": lambda: onebit.BanditSVM(exclusive=False),
    "auto": lambda: onebit.BanditSVM(exclusive="auto"),
    "SquareCB": onebit.SquareCB,
    "EpsilonGreedy": onebit.EpsilonGreedy,
}


RULES = ("one", "linear", "next", "extra")


def right_labels(rule: str, X: Any, y: Any, n_classes: int, seed: int) -> Any:
    """Return which labels are right under a rule."""
    if rule == "next":
        return with_several_right((X, y), 2, seed, rule="next")[1]
    if rule == "linear":
        return with_several_right((X, y), min(n_classes - 1, max(2, round(0.3 * n_classes))), seed)[1]
    right = np.arange(n_classes) == y[:, None]
    if rule == "extra":
        rows = preprocess(X, "standardize")
        scores = rows @ np.random.default_rng([seed, 1]).normal(size=(rows.shape[1], n_classes))
        right |= scores > np.quantile(scores, 0.8)
    return right


def main() -> None:
    """Play every data set under every rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--rounds", type=int, default=6000)
    parser.add_argument("--shuffles", default="20,21")
    parser.add_argument("--rules", default=",".join(RULES))
    given = parser.parse_args()
    print("| set | rounds | rule |", " | ".join(PLAYERS), "| found out |")
    print("|---|---:|---|" + "---:|" * (len(PLAYERS) + 1))
    shuffles = [int(seed) for seed in given.shuffles.split(",")]
    logs: dict[str, list[Any]] = {rule: [] for rule in given.rules.split(",")}
    for name in given.sets.split(","):
        stored = np.load(given.folder / f"{name}.npz")
        for rule, rows in logs.items():
            mistakes, found = np.zeros(len(PLAYERS)), 0
            for seed in shuffles:
                order = np.random.default_rng(seed).permutation(len(stored["y"]))[: given.rounds]
                X, y = stored["X"][order].astype(float), stored["y"][order].astype(np.int64)
                right = right_labels(rule, X, y, int(stored["y"].max()) + 1, seed)
                for p, (title, make) in enumerate(PLAYERS.items()):
                    learner = make()
                    is_svm = isinstance(learner, onebit.BanditSVM)
                    mistakes[p] += onebit.play(
                        learner, X if is_svm else preprocess(X, "standardize"), right, seed=seed
                    ).mistakes
                    if title == "auto" and isinstance(learner, onebit.BanditSVM):
                        found += not learner.exclusive_
            mistakes /= len(shuffles)
            rows.append(np.log(mistakes + 1.0))
            shown = " | ".join(f"{each:.0f}" for each in mistakes)
            print(f"| {name} | {len(y)} | {rule} | {shown} | {found} of {len(shuffles)} |", flush=True)
    for rule, rows in logs.items():
        relative = np.exp(np.mean(np.array(rows) - np.array(rows)[:, :1], axis=0))
        print(f"| geometric mean | | {rule} |", " | ".join(f"{each:.3f}" for each in relative), "| |")


if __name__ == "__main__":
    main()
