"""Thompson sampling: its draws, and chances of winning against SciPy."""

import itertools
import math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import onebit
from onebit.engine.randomness import Draw
from onebit.inputs import Floats
from onebit.learners import thompson_sampling as winning
from ridge_programs import SEED, Ridge, check_same, play_in_numpy


def test_thompson_sampling_draws_from_the_posterior() -> None:
    ridge = Ridge()

    def choose(x: Floats, t: int) -> int:
        # NumPy raises the counter before it draws.
        words = np.random.Philox(key=[SEED, 3], counter=(t - 1) % 2**256).random_raw(4)
        numbers = (words >> np.uint64(11)) * 2.0**-53
        lengths, angles = np.sqrt(-2.0 * np.log(1.0 - numbers[::2])), 2.0 * np.pi * numbers[1::2]
        normals = np.column_stack([lengths * np.cos(angles), lengths * np.sin(angles)]).ravel()
        return int(np.argmax(ridge.weights @ x + 0.4 * ridge.widths(x) * normals))

    guesses = play_in_numpy(choose, lambda label, x, correct: ridge.learn(label, x, float(correct)))
    check_same(onebit.ThompsonSampling(0.4), guesses, ridge.weights)


def test_normals_are_normal() -> None:
    pick = winning._drawn_winner
    # One label has a deviation, another one a constant to be compared with; the others never win.
    bars = np.array([-1.5, -0.5, 0.0, 1.0])
    for place in (0, 3, 4):
        means, deviations = np.full(5, -1e9), np.zeros(5)
        means[place], deviations[place], rival = 0.0, 1.0, (place + 1) % 5
        for bar in bars:
            means[rival] = bar
            share = np.mean([pick(means, deviations, 1.0, Draw(3, t)) == place for t in range(1500)])
            chance = scipy.stats.norm.sf(bar)
            assert abs(share - chance) < 4.5 * math.sqrt(chance * (1 - chance) / 1500)


def winning_by_scipy(means: Floats, deviations: Floats) -> Floats:
    def density(z: float, i: int) -> float:
        others = np.delete(np.arange(len(means)), i)
        below = scipy.stats.norm.cdf(z, means[others], deviations[others])
        return float(scipy.stats.norm.pdf(z, means[i], deviations[i]) * below.prod())

    low, high = (means - 9 * deviations).min(), (means + 9 * deviations).max()
    points = np.sort(np.concatenate([means + c * deviations for c in (-8, -5, -3, -1, 0, 1, 3, 5, 8)]))
    panels = np.concatenate([[low], points, [high]])
    return np.array(
        [
            sum(
                scipy.integrate.quad(density, a, b, args=(i,), epsabs=1e-14, epsrel=1e-12)[0]
                for a, b in itertools.pairwise(panels)
            )
            for i in range(len(means))
        ]
    )


@pytest.mark.parametrize(
    ("means", "deviations"),
    [
        ([0.1, 0.0, -0.2], [1.0, 0.3, 0.5]),
        ([0.0, 0.0, 1e-3], [1.0, 1e-3, 1e-6]),
        ([0.3, 0.0], [0.2, 0.5]),
    ],
)
def test_winning_chances_are_exact(means: list[float], deviations: list[float]) -> None:
    mu, sigma, out = np.array(means), np.array(deviations), np.empty(len(means))
    winning._winning_chances(mu, sigma / 0.25, 0.25, np.empty(len(mu)), out)
    assert np.allclose(out, winning_by_scipy(mu, sigma), rtol=0, atol=1e-10)
    assert out.sum() == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("n", [2, 3])
def test_the_highest_mean_wins_where_no_deviation_can_be_added(n: int) -> None:
    out, means = np.empty(n), np.arange(n, dtype=float)
    winning._winning_chances(means, np.full(n, 1e-200), 1e-10, np.empty(n), out)
    assert out.tolist() == np.eye(n)[-1].tolist()


def test_equal_labels_have_equal_chances_however_many() -> None:
    for n in (2, 3, 10, 40):
        out = np.empty(n)
        winning._winning_chances(np.zeros(n), np.ones(n), 1.0, np.empty(n), out)
        assert np.allclose(out, 1.0 / n, rtol=1e-11)
