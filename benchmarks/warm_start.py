"""What rows with known labels save: mistakes after 0, 100 and 1 000 of them, on three of scikit-learn's own sets.

``python benchmarks/warm_start.py``: the same rows are played in the same order, those with known labels are others.
"""

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits

import onebit
from onebit.reporting.text import grouped
from onebit.streams import paper_weak

_KNOWN = 0, 100, 1000
_RUNS = 5


def sets(seed: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    generator = np.random.default_rng(seed)
    digits = load_digits()
    order = generator.permutation(len(digits.target))
    centres = generator.normal(size=(12, 20))
    y = generator.integers(12, size=3000)
    clouds = centres[y] + 1.1 * generator.normal(size=(3000, 20))
    return {
        "digits": (digits.data[order], digits.target[order]),
        "12 clouds in 20 dimensions": (clouds, y),
        "paper_weak": paper_weak(3000, seed),
    }


def main() -> None:
    table = Table("set", "learner", *(f"{grouped(n)} known" for n in _KNOWN), title="Mistakes, mean of 5 shuffles")
    makers = {"BanditSVM": onebit.BanditSVM, "BanditPerceptron": onebit.BanditPerceptron}
    for name in sets(0):
        for title, make in makers.items():
            means = []
            for known in _KNOWN:
                mistakes = []
                for seed in range(_RUNS):
                    X, y = sets(seed)[name]
                    learner = make(classes=np.unique(y))
                    if known:
                        learner.learn_labels(X[:known], y[:known])
                    mistakes.append(onebit.play(learner, X[max(_KNOWN) :], y[max(_KNOWN) :], fresh=False).mistakes)
                means.append(grouped(float(np.mean(mistakes))))
            table.add_row(name, title, *means)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
