"""Lemma 25, constructed: many vectors, each separable from all others by a hyperplane, with a margin.

Unit vectors z₁…z_N in R^(d−1), any two at an angle of at least θ = √(40γ), have ⟨z_i, z_j⟩ ≤ 1 − 8γ. Then
v_i = (½z_i, ½) and u_i = (½z_i, −½(1−4γ)) satisfy ⟨u_i, v_i⟩ = γ and ⟨u_i, v_j⟩ ≤ −γ for i ≠ j.

The z are found greedily: draw a direction uniformly, keep it if it is far enough from those kept so far. That always
succeeds. A cap of angle θ covers at most ½sin^(d−2)θ of the sphere, so fewer than N = (1/(2θ))^(d−2) caps cover at most
2^(−(d−1)) of it, and for d ≥ 3 at least three draws in four are kept. (The paper cites the existence of such z.)

References
----------
Beygelzimer et al. (2019). ICML. Lemma 25.
Long (1995). On the sample complexity of PAC learning half-spaces against the uniform distribution. IEEE Transactions on
Neural Networks 6. Lemma 6.
"""

import math
from dataclasses import dataclass

import numpy as np

from onebit.bounds.lower import most_directions
from onebit.engine.randomness import stream_generator
from onebit.inputs import Floats, check_integer, check_seed

FEASIBLE_DIRECTIONS = 100_000
"""More take minutes to find and hours to play: time grows with their square."""

# Directions drawn at a time, so that comparing them with those kept is one matrix product.
_BLOCK = 128


@dataclass(frozen=True)
class Packing:
    """Lemma 25's vectors, and whether they are as many as it has."""

    margin: float
    u: Floats
    """Normals of the hyperplanes, one row for each v."""
    v: Floats
    is_complete: bool
    """Whether these are all ⌊N⌋ of the lemma, or the first of them."""

    def __len__(self) -> int:
        return len(self.v)

    @property
    def n_features(self) -> int:
        """The dimension d."""
        return int(self.v.shape[1])


def pack_directions(margin: float, n_features: int, directions: int | None = None, seed: int = 0) -> Packing:
    """Return Lemma 25's vectors, or as many of them as are asked for.

    Fewer directions of the same seed are the beginning of more.

    Parameters
    ----------
    margin : float
        γ, below 1/160.
    n_features : int
        d, at least 2.
    directions : int, optional
        How many, at most `most_directions` and at most 100 000; all of them by default.
    seed : int
        Seed of the directions.

    Examples
    --------
    >>> packing = pack_directions(margin=0.001, n_features=5)
    >>> products = packing.u @ packing.v.T
    >>> len(packing), bool((products[~np.eye(15, dtype=bool)] <= -0.001).all())
    (15, True)
    """
    most = most_directions(margin, n_features)
    if directions is None and most > FEASIBLE_DIRECTIONS:
        raise ValueError(
            f"directions must be given: Lemma 25 has about 10^{math.log10(most):.1f} of them for margin {margin!r} and "
            f"n_features {n_features}, too many to build. Pass directions={FEASIBLE_DIRECTIONS} or fewer"
        )
    n = check_integer(
        "directions", most if directions is None else directions, low=1, high=min(most, FEASIBLE_DIRECTIONS)
    )
    # The lemma's own numbers: an angle of √(40γ) gives ⟨z_i, z_j⟩ ≤ 1 − 8γ.
    z = _spread(n, n_features - 1, math.cos(math.sqrt(40.0 * margin)), check_seed(seed))
    half = np.full((n, 1), 0.5)
    u, v = np.hstack([0.5 * z, -half * (1.0 - 4.0 * margin)]), np.hstack([0.5 * z, half])
    u.setflags(write=False)
    v.setflags(write=False)
    return Packing(float(margin), u, v, n == most)


def _spread(n: int, dimension: int, most_cosine: float, seed: int) -> Floats:
    """Return unit vectors no two of which have a larger inner product, greedily."""
    generator = stream_generator(seed)
    kept, size = np.empty((n, dimension)), 0
    while size < n:
        drawn = generator.standard_normal((_BLOCK, dimension))
        drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        nearest = (drawn @ kept[:size].T).max(axis=1, initial=-1.0)
        before = size
        # Those far enough from what was kept before the block must still be far enough from each other.
        for z in drawn[nearest <= most_cosine]:
            if size < n and (kept[before:size] @ z).max(initial=-1.0) <= most_cosine:
                kept[size] = z
                size += 1
    return kept
