import numpy as np
import pytest
from numpy.random import Generator, Philox

from onebit.engine.randomness import LEARNER, Draw, uniform, uniform_label


@pytest.mark.parametrize("seed", [0, 1, 12345, 2**63 - 1])
def test_draws_are_numpys_philox_by_random_access(seed: int) -> None:
    expected = Generator(Philox(key=np.array([seed, LEARNER], dtype=np.uint64))).random(1000)
    order = np.random.default_rng(0).permutation(1000)
    assert [uniform(Draw(seed, int(t))) for t in order] == expected[order].tolist()


def test_far_rounds_can_be_had_at_once() -> None:
    generator = Philox(key=np.array([9, LEARNER], dtype=np.uint64))
    generator.advance(10**12 // 4)
    assert uniform(Draw(9, 10**12)) == Generator(generator).random()


def test_labels_from_draws_are_uniform() -> None:
    n = 30_000
    labels = [uniform_label(uniform(Draw(3, t)), 7) for t in range(n)]
    counts = np.bincount(labels, minlength=7)
    assert len(counts) == 7
    # chi-square with 6 degrees of freedom: below 22.5 with probability 0.999
    assert ((counts - n / 7) ** 2 / (n / 7)).sum() < 22.5
    assert uniform_label(np.nextafter(1.0, 0.0), 3) == 2
