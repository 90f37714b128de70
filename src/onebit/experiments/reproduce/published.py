"""The numbers printed in the paper, read off its vector figures.

Source: Beygelzimer, Pál, Szörényi, Thiruvenkatachari, Wei, Zhang (2019), Bandit multiclass linear classification:
efficient algorithms for the separable case, ICML; Figures 4 and 5. Each curve is the mean over the authors' 20 runs.
"""

import csv
from functools import cache
from importlib.resources import files

import numpy as np

from onebit.inputs import Floats

_LEARNERS = {
    # The paper has one curve of each algorithm; its authors' program and the printed one are both held against it.
    "algorithm-1": "perceptron-linear",
    "algorithm-1-authors": "perceptron-linear",
    "algorithm-2": "perceptron-rational",
    "algorithm-2-authors": "perceptron-rational",
}
Curve = tuple[Floats, Floats]
"""Rounds, and mean cumulative mistakes."""


@cache
def published_curves() -> dict[tuple[str, str], Curve]:
    """Return the published curves by data set ("strong", "weak") and by the paper's learner.

    >>> rounds, mistakes = published_curves()["strong", "perceptron-linear"]
    >>> float(mistakes[-1])
    336.8
    """
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    text = files("onebit.experiments.reproduce").joinpath("published_curves.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        points.setdefault((row["dataset"], row["learner"]), []).append(
            (float(row["round"]), float(row["mean_mistakes"]))
        )
    return {key: (np.array(curve)[:, 0], np.array(curve)[:, 1]) for key, curve in points.items()}


def published_learner(key: str) -> str | None:
    """Return the paper's name of a contestant, or None if the paper has none.

    >>> published_learner("algorithm-2"), published_learner("multiclass-perceptron")
    ('perceptron-rational', None)
    """
    name = _LEARNERS.get(key, key)
    return name if any(learner == name for _, learner in published_curves()) else None


def published_mistakes(dataset: str, key: str) -> float | None:
    """Return the end point of a contestant's published curve, or None if the paper has none."""
    name = published_learner(key)
    return None if name is None else float(published_curves()[dataset, name][1][-1])
