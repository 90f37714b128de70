"""Speed and memory, side by side with peers, as ratios measured in one run: ``make benchmark``.

Absolute times move from machine to machine; the ratios say what is claimed. Compilation is timed apart.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import onebit
from onebit.inputs import Floats, Integers
from onebit.kernels import Rational
from onebit.reporting.text import grouped

PAPER_ROUNDS = 5_000_000


class Line(NamedTuple):
    """One line of the table."""

    what: str
    ours: str
    peer: str
    ratio: str
    goal: str
    met: bool


def best_of(repeats: int, action: Callable[[], object]) -> float:
    """Return the shortest of several timings, in seconds."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def algorithm_1_against_memory(rounds: int) -> list[Line]:
    X, y = onebit.streams.paper_strong(rounds, seed=1)
    learner = onebit.BanditPerceptron()
    compiling = best_of(1, lambda: onebit.play(learner, X[:10], y[:10]))
    ours = best_of(5, lambda: onebit.play(learner, X, y, seed=1))
    limit = best_of(5, X.sum)
    return [
        Line(
            f"Algorithm 1, {grouped(rounds)} rounds, against X.sum()",
            f"{ours * 1e3:.0f} ms (compiling {compiling:.1f} s)",
            f"{limit * 1e3:.1f} ms",
            f"{ours / limit:.1f}×",
            "≤ 20×",
            ours <= 20 * limit,
        )
    ]


def algorithm_1_against_vowpal_wabbit(rounds: int) -> list[Line]:
    X, y = onebit.streams.paper_strong(rounds, seed=1)
    learner = onebit.BanditPerceptron()
    onebit.play(learner, X[:10], y[:10])
    ours = best_of(5, lambda: onebit.play(learner, X, y, seed=1))
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "rounds.vw"
        with data.open("w") as file:
            file.writelines(f"{k + 1} | a:{x[0]:.6g} b:{x[1]:.6g} c:{x[2]:.6g}\n" for x, k in zip(X, y, strict=True))
        command = [
            sys.executable,
            "-m",
            "vowpalwabbit",
            "--cbify",
            "3",
            "--epsilon",
            "0.05",
            "--quiet",
            "-d",
            str(data),
        ]
        theirs = best_of(2, lambda: subprocess.run(command, check=True))
        start_up = best_of(2, lambda: subprocess.run([*command[:-1], "/dev/null"], check=True))
    return [
        Line(
            f"rounds per second, {grouped(rounds)} rounds, against VW --cbify 3 --epsilon 0.05",
            f"{rounds / ours / 1e6:.1f} M/s",
            f"{rounds / theirs / 1e6:.3f} M/s (start-up {start_up:.2f} s included)",
            f"{theirs / ours:.0f}×",
            "≥ 30×",
            theirs >= 30 * ours,
        )
    ]


def interactive_against_vowpal_wabbit(rounds: int = 20_000) -> list[Line]:
    from vowpalwabbit import Workspace

    n_features, n_classes = 16, 26
    generator = np.random.default_rng(0)
    X = generator.normal(size=(rounds, n_features))
    y = generator.integers(n_classes, size=rounds)
    labels = y.tolist()
    learner = onebit.BanditPerceptron(classes=n_classes)

    def ours() -> None:
        for x, label in zip(X, labels, strict=True):
            guess = learner.guess(x)
            learner.tell(guess, guess.label == label)

    def text_of(x: Floats) -> str:
        return " ".join(f"f{j}:{value:.5g}" for j, value in enumerate(x))

    texts = [text_of(x) for x in X]
    workspace = Workspace(f"--cb_explore {n_classes} --epsilon 0.05 --quiet")

    def theirs(texts: Iterable[str]) -> None:
        for text, label in zip(texts, labels, strict=True):
            chances = workspace.predict(f"| {text}")
            action = int(np.argmax(chances))
            cost = 0.0 if action == label else 1.0
            workspace.learn(f"{action + 1}:{cost}:{chances[action]:.5g} | {text}")

    learner.guess(X[0])
    seconds = best_of(5, ours) / rounds
    from_numbers = best_of(3, lambda: theirs(map(text_of, X))) / rounds
    text_ready = best_of(3, lambda: theirs(texts)) / rounds
    workspace.finish()
    return [
        Line(
            "one guess + tell, d = 16, K = 26, against VW's Python predict + learn, from numbers",
            f"{seconds * 1e6:.1f} µs",
            f"{from_numbers * 1e6:.1f} µs",
            f"1/{from_numbers / seconds:.1f}",
            "≤ 1/8",
            8 * seconds <= from_numbers,
        ),
        Line(
            "… against VW with its text written beforehand",
            f"{seconds * 1e6:.1f} µs",
            f"{text_ready * 1e6:.1f} µs",
            f"1/{text_ready / seconds:.1f}",
            "reported",
            True,
        ),
    ]


def _mnist(folder: Path, rows: int) -> tuple[Floats, Integers]:
    data = np.load(folder / "mnist_t10k.npz")
    order = np.random.default_rng(0).permutation(len(data["y"]))[:rows]
    return data["X"][order].astype(float), data["y"][order].astype(np.int64)


def _overlapping_classes(rows: int) -> tuple[Floats, Integers]:
    """Return rows of MNIST's size whose ten classes overlap so much that the support keeps growing."""
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(10, 784))
    y = generator.integers(10, size=rows)
    return centres[y] + 12.0 * generator.normal(size=(rows, 784)), y


def algorithm_2_in_blocks(name: str, X: Floats, y: Integers) -> list[Line]:
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    learner = onebit.BanditPerceptron(Rational())
    onebit.play(learner, X[:1000], y[:1000])
    blocks = best_of(3, lambda: onebit.play(learner, X, y, seed=1))
    guesses = onebit.play(learner, X, y, seed=1, keep_guesses=True).guesses
    by_round = best_of(1, lambda: _one_product_per_round(X, y))
    plain, sizes = _one_product_per_round(X, y)
    same = guesses is not None and bool(np.array_equal(guesses, plain))
    A = np.random.default_rng(0).normal(size=(2048, 2048))
    product_rate = 2 * 2048**3 / best_of(5, lambda: A @ A)
    work = 2.0 * 784 * float(sizes.sum())
    return [
        Line(
            f"Algorithm 2, {grouped(len(y))} rows of {name}, {grouped(sizes[-1])} stored, "
            "against one product per round",
            f"{blocks:.2f} s, {'the same' if same else 'OTHER'} guesses",
            f"{by_round:.2f} s",
            f"{by_round / blocks:.1f}×",
            "≥ 10×",
            by_round >= 10 * blocks and same,
        ),
        Line(
            "… the inner products it needs, against the rate of a 2048² product",
            f"{work / blocks / 1e9:.0f} GFLOP/s",
            f"{product_rate / 1e9:.0f} GFLOP/s (one product per round: {work / by_round / 1e9:.0f})",
            f"{work / blocks / product_rate:.0%}",
            "reported",
            same,
        ),
    ]


def _one_product_per_round(X: Floats, y: Integers) -> tuple[Integers, Integers]:
    """Play Algorithm 2 with one matrix-vector product per round, in plain NumPy; return guesses and support sizes."""
    from onebit.engine.randomness import Draw, uniform, uniform_label

    n_classes, size = 10, 0
    points, coefficients = np.empty_like(X), np.zeros((len(X), n_classes))
    guesses, sizes = np.empty(len(y), dtype=np.int64), np.empty(len(y), dtype=np.int64)
    for t, x in enumerate(X):
        sizes[t] = size
        scores = (1.0 / (1.0 - 0.5 * (points[:size] @ x))) @ coefficients[:size]
        best = int(np.argmax(scores))
        explored = scores[best] < 0
        guess = uniform_label(uniform(Draw(1, t)), n_classes) if explored else best
        guesses[t] = guess
        correct = guess == y[t]
        if explored == correct:
            points[size], coefficients[size, guess] = x, 1.0 if correct else -1.0
            size += 1
    return guesses, sizes


def start_up() -> list[Line]:
    def command(*arguments: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)

    bare = best_of(3, command("-c", "import numba, scipy.sparse"))
    importing = best_of(3, command("-c", "import onebit"))
    helping = best_of(3, command("-m", "onebit", "--help"))
    beside, ratio = f"{bare:.2f} s (numba, scipy.sparse)", f"{importing / bare:.1f}×"
    return [
        Line("import onebit", f"{importing:.2f} s", beside, ratio, "< 1 s", importing < 1.0),
        Line("onebit --help", f"{helping:.2f} s", "", "", "< 1.5 s", helping < 1.5),
    ]


def first_rounds() -> list[Line]:
    """Time the first guess + tell of a process: without compiled code on disk, and with what that one left."""
    script = (
        "import time, onebit; t = time.perf_counter(); learner = onebit.{name}(classes=3);"
        "guess = learner.guess([0.2, -0.4, 0.1]); learner.tell(guess, False); print(time.perf_counter() - t)"
    )
    lines = []
    for name in ("BanditPerceptron", "BanditSVM"):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
            command = [sys.executable, "-c", script.format(name=name)]
            run = partial(subprocess.run, command, env=environment, check=True, capture_output=True, text=True)
            cold, *warm = (float(run().stdout) for _ in range(4))
        shown = f"{min(warm):.2f} s", f"{cold:.1f} s (nothing on disk)", f"1/{cold / min(warm):.0f}"
        lines.append(Line(f"first guess + tell of {name} in a second process", *shown, "< 0.7 s", min(warm) < 0.7))
    return lines


def whole_reproduction() -> list[Line]:
    script = (
        "import resource, subprocess, sys, time; t = time.perf_counter();"
        "subprocess.run([sys.executable, '-m', 'onebit', 'reproduce', '--out', sys.argv[1]],"
        " check=True, stdout=subprocess.DEVNULL);"
        "print(time.perf_counter() - t, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"
    )
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([sys.executable, "-c", script, folder], check=True, capture_output=True, text=True)
    seconds, megabytes = map(float, run.stdout.split())
    return [
        Line("onebit reproduce, full size", f"{seconds:.0f} s", "", "", "< 120 s", seconds < 120),
        Line("… memory of its largest process", f"{megabytes:.0f} MB", "", "", "< 2000 MB", megabytes < 2000),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with mnist_t10k.npz, to play that too")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rounds, and no full reproduction")
    arguments = parser.parse_args()
    rounds = PAPER_ROUNDS // 10 if arguments.quick else PAPER_ROUNDS
    lines = algorithm_1_against_memory(rounds)
    lines += algorithm_1_against_vowpal_wabbit(rounds // 5)
    lines += interactive_against_vowpal_wabbit()
    rows = 2_000 if arguments.quick else 10_000
    lines += algorithm_2_in_blocks("overlapping classes", *_overlapping_classes(rows))
    if arguments.data is not None:
        lines += algorithm_2_in_blocks("MNIST", *_mnist(arguments.data, rows))
    lines += start_up()
    lines += first_rounds()
    if not arguments.quick:
        lines += whole_reproduction()
    table = Table(title="Speed and memory, measured in one run")
    for name in ("what", "onebit", "beside it", "ratio", "goal", ""):
        table.add_column(name)
    for line in lines:
        table.add_row(*line[:5], "[green]met[/]" if line.met else "[red]missed[/]")
    Console(width=180 if not sys.stdout.isatty() else None).print(table)


if __name__ == "__main__":
    main()
