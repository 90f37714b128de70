"""What late answers cost: ``python benchmarks/delay.py`` writes docs/images/delay.png and prints the table for docs/.

With a delay of D the answer to round t is told after guess t + D, so the learner plays D rounds without it. All guesses
of a stream count, also those whose answer never comes before its end.
"""

import argparse
import tempfile
from collections import deque
from collections.abc import Callable
from pathlib import Path

import numpy as np

import onebit
from onebit.files import replace_file
from onebit.kernels import Rational
from onebit.reporting import figures
from onebit.reporting.looks import Shown, looks_of
from onebit.reporting.text import grouped

DELAYS = (0, 10, 100, 1000)
IMAGES = Path(__file__).parent.parent / "docs" / "images"
Stream = tuple[np.ndarray, np.ndarray]


def digits(rounds: int, seed: int) -> Stream:
    data = onebit.streams.bundled("digits")
    order = np.random.default_rng(seed).permutation(len(data.y))[:rounds]
    return np.asarray(data.X)[order], np.asarray(data.y)[order]


STREAMS: dict[str, tuple[Callable[[int, int], Stream], int]] = {
    "digits": (digits, 1797),
    "paper_strong": (onebit.streams.paper_strong, 5000),
    "paper_weak": (onebit.streams.paper_weak, 5000),
}


def learners(stream: str, n_classes: int, seed: int) -> dict[str, onebit.Learner]:
    kernel = Rational(normalize=True) if stream == "paper_weak" else None
    return {
        "BanditSVM": onebit.BanditSVM(classes=n_classes, seed=seed),
        "BanditPerceptron": onebit.BanditPerceptron(kernel, classes=n_classes, seed=seed),
    }


def mistakes(learner: onebit.Learner, X: np.ndarray, y: np.ndarray, delay: int) -> int:
    """Play a stream, telling every answer so many rounds late, by the ticket's id."""
    waiting: deque[tuple[str, bool]] = deque()
    wrong = 0
    for x, label in zip(X, y, strict=True):
        guess = learner.guess(x)
        wrong += guess.label != label
        waiting.append((guess.id, bool(guess.label == label)))
        if len(waiting) > delay:
            learner.tell(*waiting.popleft())
    return wrong


def measure(n_seeds: int, share: float) -> dict[tuple[str, str, int], list[int]]:
    found: dict[tuple[str, str, int], list[int]] = {}
    for stream, (make, rounds) in STREAMS.items():
        for seed in range(n_seeds):
            X, y = make(int(rounds * share), seed)
            for delay in DELAYS:
                for name, learner in learners(stream, int(y.max()) + 1, seed).items():
                    found.setdefault((stream, name, delay), []).append(mistakes(learner, X, y, delay))
        print(stream, "is done", flush=True)
    return found


def draw(found: dict[tuple[str, str, int], list[int]]) -> None:
    names = list(dict.fromkeys(name for _, name, _ in found))
    looks = looks_of([Shown(name, f"{name}()") for name in names])
    places = np.arange(len(DELAYS))
    with figures.looks():
        figure, panels = figures.new_figure(1, len(STREAMS), 3.2)
        for axes, (stream, (_, rounds)) in zip(panels, STREAMS.items(), strict=True):
            for name in names:
                look = looks[name]
                runs = np.array([found[stream, name, delay] for delay in DELAYS])
                error = runs.std(axis=1, ddof=1) / np.sqrt(runs.shape[1])
                axes.errorbar(
                    places, runs.mean(axis=1), error, color=look.color, marker=look.marker, capsize=3, label=name
                )
            axes.set_title(f"{stream}\n{grouped(rounds)} rounds")
            axes.set_xticks(places, [grouped(delay) for delay in DELAYS])
            axes.set_yscale("log")
            axes.set_ylim(3, 6000)
            figures.log_count_axis(axes.yaxis)
            axes.tick_params(labelleft=axes is panels[0])
        panels[0].set_ylabel("mistakes")
        panels[1].set_xlabel("rounds until the answer")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(names))
        with tempfile.TemporaryDirectory() as folder:
            png, _ = figures.save(figure, Path(folder), "delay")
            replace_file(IMAGES / "delay.png", png.read_bytes())


def table(found: dict[tuple[str, str, int], list[int]]) -> str:
    lines = ["| stream | learner | " + " | ".join(f"{grouped(delay)} rounds" for delay in DELAYS) + " |"]
    lines.append("|---|---|" + "---:|" * len(DELAYS))
    for stream, name in dict.fromkeys(key[:2] for key in found):
        cells = []
        for delay in DELAYS:
            runs = np.array(found[stream, name, delay])
            cells.append(f"{runs.mean():.0f} ± {runs.std(ddof=1) / np.sqrt(len(runs)):.0f}")
        lines.append(f"| {stream} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--share", type=float, default=1.0, help="of each stream; for a quick look")
    chosen = options.parse_args()
    found = measure(chosen.seeds, chosen.share)
    draw(found)
    print(table(found))


if __name__ == "__main__":
    main()
