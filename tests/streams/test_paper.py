import numpy as np
import pytest
from scipy.stats import kstest

from onebit.inputs import Floats
from onebit.streams import paper_strong, paper_weak, wedges

W = np.array([[1.0, 0.0], [np.cos(np.pi / 6), 0.5], [np.cos(np.pi / 6), -0.5]])


@pytest.mark.parametrize("stream", [paper_strong, paper_weak])
def test_labels_gap_and_shares(stream: object) -> None:
    X, y = stream(50_000, 4)  # type: ignore[operator]
    points = X[:, :2] * np.sqrt(2)
    entries = np.sort(points @ W.T, axis=1)
    assert np.array_equal(np.argmax(points @ W.T, axis=1), y)
    assert (entries[:, 2] - entries[:, 1]).min() >= 0.05 - 1e-12
    assert np.allclose(X[:, 2], 1 / np.sqrt(2))
    assert np.linalg.norm(X, axis=1).max() <= 1 + 1e-12
    assert np.abs(np.bincount(y) / len(y) - [0.8, 0.1, 0.1]).max() < 0.01
    angles = np.degrees(np.arctan2(points[:, 1], points[:, 0]))
    assert np.abs(angles[y == 0]).max() <= 15.0
    assert angles[y == 1].min() > 15.0
    assert angles[y == 2].max() < -15.0


def test_the_strong_set_is_a_circle_and_uniform_where_nothing_is_redrawn() -> None:
    X, y = paper_strong(40_000, 1)
    assert np.allclose(np.linalg.norm(X[:, :2], axis=1), 1 / np.sqrt(2))
    angles = np.degrees(np.arctan2(X[y == 0, 1], X[y == 0, 0]))
    inner = angles[np.abs(angles) < 8]
    assert kstest(inner, "uniform", args=(-8, 16)).pvalue > 1e-3


def test_the_weak_set_is_a_disc() -> None:
    X, y = paper_weak(60_000, 1)
    sideways = (y == 1) & (np.abs(np.degrees(np.arctan2(X[:, 1], X[:, 0])) - 90) < 30)
    radii: Floats = np.linalg.norm(X[sideways, :2], axis=1) * np.sqrt(2)
    far = radii[radii > 0.2]
    assert kstest(far, "uniform", args=(0.2, 0.8)).pvalue > 1e-3


def test_wedges_are_the_papers() -> None:
    X, y = wedges()
    assert X.shape == (78, 2)
    assert np.linalg.norm(X, axis=1).max() < 1
    # first and last point of Figure 1, by hand
    assert np.allclose(5 * X[0], 3.79 * np.array([np.cos(np.radians(7.94)), np.sin(np.radians(7.94))]))
    assert np.allclose(5 * X[-1], 4.53 * np.array([np.cos(np.radians(349.18)), np.sin(np.radians(349.18))]))
    directions = np.radians([60.0, 180.0, 300.0])
    winners = np.argmax(X @ np.array([np.cos(directions), np.sin(directions)]), axis=1)
    assert np.array_equal(winners, y), "the three directions separate the wedges weakly"
