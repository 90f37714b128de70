"""The numbers printed in the paper, read off its vector figures.

Source: Beygelzimer, Pál, Szörényi, Thiruvenkatachari, Wei, Zhang (2019), Bandit multiclass linear classification:
efficient algorithms for the separable case, ICML; Figures 4 and 5. Each curve is the mean over the authors' 20 runs.
"""

import csv
from functools import cache
from importlib.resources import files

import numpy as np

from onebit.inputs import Floats

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
    text = files("onebit.reproduce").joinpath("published_curves.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        points.setdefault((row["dataset"], row["learner"]), []).append(
            (float(row["round"]), float(row["mean_mistakes"]))
        )
    return {key: (np.array(curve)[:, 0], np.array(curve)[:, 1]) for key, curve in points.items()}


def published_mistakes(dataset: str, learner: str | None) -> float | None:
    """Return the end point of a published curve, or None if the paper has none."""
    if learner is None:
        return None
    return float(published_curves()[dataset, learner][1][-1])
