"""BanditSVM on real data, beside its full-information twin and Vowpal Wabbit: ``bandit_svm.py --data DIR``.

The folder holds ``name.npz`` files with ``X`` and ``y`` (``*_csr.npz``: ``data``, ``indices``, ``indptr``, ``shape``).
Rows are shuffled with a seed and at most 10 000 are played; columns are standardised over them, constant ones dropped,
and a column of ones is appended (sparse rows are played as they are). ``--vw``: a CSV of Vowpal Wabbit's mistakes.
"""

import argparse
import csv
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array

import onebit

Baseline = dict[str, dict[int, tuple[int, int]]]


def load(path: Path, seed: int, most: int) -> tuple[Any, Any]:
    """Return one shuffle of a data set, prepared as for Vowpal Wabbit's figures."""
    file = np.load(path)
    y = file["y"].astype(np.int64)
    chosen = np.random.default_rng(seed).permutation(len(y))[:most]
    if "indptr" in file:
        return csr_array((file["data"], file["indices"], file["indptr"]), shape=file["shape"])[chosen], y[chosen]
    X = file["X"].astype(np.float64)[chosen]
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.hstack([X, np.ones((len(X), 1))]), y[chosen]


def read_baseline(path: Path | None) -> Baseline:
    """Return Vowpal Wabbit's mistakes by data set and seed: as it comes, and the best of its grid in hindsight."""
    found: Baseline = defaultdict(dict)
    if path is not None:
        with path.open(encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                found[row["dataset"]][int(row["seed"])] = (
                    int(row["mistakes_default"]),
                    int(row["mistakes_hindsight_best"]),
                )
    return found


def compare(path: Path, shuffles: int, most: int, settings: dict[str, Any]) -> tuple[list[int], list[int], float]:
    """Return the mistakes of BanditSVM and of its twin on each shuffle, and BanditSVM's rounds per second."""
    ours, twins, seconds, rounds = [], [], 0.0, 0
    for seed in range(shuffles):
        X, y = load(path, seed, most)
        start = time.perf_counter()
        ours.append(onebit.play(onebit.BanditSVM(**settings), X, y, seed=seed).mistakes)
        seconds += time.perf_counter() - start
        rounds += len(y)
        twins.append(onebit.play(onebit.FullInformationSVM(**settings), X, y, seed=seed).mistakes)
    return ours, twins, rounds / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description="BanditSVM, its full-information twin and Vowpal Wabbit on real data.")
    parser.add_argument("--data", type=Path, required=True, help="folder of .npz files")
    parser.add_argument("--vw", type=Path, help="CSV of Vowpal Wabbit's mistakes")
    parser.add_argument("--shuffles", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=10_000, help="most rounds per set")
    parser.add_argument("--only", nargs="*", help="names of sets")
    parser.add_argument("--linear", action="store_true", help="kernel=None instead of the default")
    options = parser.parse_args()
    settings: dict[str, Any] = {"kernel": None} if options.linear else {}
    onebit.play(onebit.BanditSVM(**settings), np.eye(2), [0, 1])
    onebit.play(onebit.BanditSVM(**settings), csr_array(np.eye(2)), [0, 1])
    baseline = read_baseline(options.vw)
    table = Table("set", "mistakes", "twin", "ratio", "VW default", "ratio", "VW hindsight", "ratio", "rounds/s")
    to_twin, to_default, to_hindsight = [], [], []
    for path in sorted(options.data.glob("*.npz")):
        if options.only and path.stem not in options.only:
            continue
        ours, twins, speed = compare(path, options.shuffles, options.rounds, settings)
        mean, twin = float(np.mean(ours)), float(np.mean(twins))
        to_twin.append(mean / twin)
        cells = [path.stem, f"{mean:.1f}", f"{twin:.1f}", f"{mean / twin:.2f}"]
        seeds = [seed for seed in baseline.get(path.stem, {}) if seed < options.shuffles]
        if seeds:
            default, hindsight = np.mean([baseline[path.stem][seed] for seed in seeds], axis=0)
            same = float(np.mean([ours[seed] for seed in seeds]))
            to_default.append(same / default)
            to_hindsight.append(same / hindsight)
            cells += [f"{default:.0f}", f"{to_default[-1]:.2f}", f"{hindsight:.0f}", f"{to_hindsight[-1]:.2f}"]
        else:
            cells += ["", "", "", ""]
        table.add_row(*cells, f"{speed:,.0f}")
    console = Console(width=120)
    console.print(table)
    console.print(f"median ratio to the twin: {np.median(to_twin):.2f} over {len(to_twin)} sets")
    if to_default:
        wins = sum(ratio < 1.0 for ratio in to_hindsight)
        console.print(f"median ratio to Vowpal Wabbit as it comes: {np.median(to_default):.2f}")
        console.print(f"fewer mistakes than Vowpal Wabbit's hindsight-best on {wins} of {len(to_hindsight)} sets")


if __name__ == "__main__":
    main()
