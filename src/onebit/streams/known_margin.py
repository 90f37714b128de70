"""Streams whose weak margin is known: rows close to the borders between classes, but never closer than the margin.

With evenly spread rows few would be near the margin, and a smaller margin would hardly be harder. Here every row is
near it.
"""

import numpy as np

from onebit.inputs import Floats, Integers, check_integer, check_number, check_seed

_AT_ONCE = 4096
# Each direction is the one of so many that is farthest from those before: all classes get room.
_CANDIDATES = 256
# So many draws without a single row: the margin is too large for these classes.
_HOPELESS = 50


def weak_margin(
    rounds: int, seed: int = 0, *, n_classes: int = 3, margin: float = 0.05, n_features: int = 3
) -> tuple[Floats, Integers]:
    """Return rows of length 1 whose right class leads the next one by at least the margin, and at most twice that.

    K directions are drawn, far apart, and divided by √K, so that their squared lengths add up to 1. A row is drawn
    evenly on the sphere, moved towards the border between its two nearest directions, or a little beyond, and kept if
    its gap is from γ to 2γ. With more classes than features the rows are hardly ever strongly separable.

    Parameters
    ----------
    rounds : int
        How many rounds, at least 1.
    seed : int
        Seed of the directions and the rows. A shorter stream is the beginning of a longer one.
    n_classes : int
        K, at least 2.
    margin : float
        γ, above 0: the margin of the directions. The rows' largest weak margin is a little larger.
    n_features : int
        At least 2.

    Examples
    --------
    >>> X, y = weak_margin(rounds=1000, seed=1, n_classes=4, margin=0.02)
    >>> W = directions(4, 3, seed=1)
    >>> scores = np.sort(X @ W.T, axis=1)
    >>> bool(np.all(scores[:, -1] - scores[:, -2] >= 0.02)), bool(np.all(np.argmax(X @ W.T, axis=1) == y))
    (True, True)
    """
    n = check_integer("rounds", rounds, low=1)
    margin = check_number("margin", margin, above=0.0)
    W = directions(n_classes, n_features, seed)
    generator = np.random.default_rng([check_seed(seed), 1])
    X, y = np.empty((n, W.shape[1])), np.empty(n, dtype=np.int64)
    filled, draws = 0, 0
    while filled < n:
        rows, labels = _rows_near_borders(W, margin, generator)
        draws += 1
        if filled == 0 and len(rows) == 0 and draws == _HOPELESS:
            raise ValueError(
                f"margin must be smaller for n_classes={len(W)} in n_features={W.shape[1]}: of "
                f"{_HOPELESS * _AT_ONCE} rows none has a gap from {margin!r} to twice that. Use a smaller margin"
            )
        taken = min(len(rows), n - filled)
        X[filled : filled + taken], y[filled : filled + taken] = rows[:taken], labels[:taken]
        filled += taken
    return X, y


def directions(n_classes: int, n_features: int, seed: int = 0) -> Floats:
    """Return the vectors that separate `weak_margin`'s classes, one row each; their squared lengths add up to 1."""
    K = check_integer("n_classes", n_classes, low=2)
    d = check_integer("n_features", n_features, low=2)
    generator = np.random.default_rng([check_seed(seed), 0])
    W = np.empty((0, d))
    for _ in range(K):
        candidates = generator.normal(size=(_CANDIDATES, d))
        candidates /= np.linalg.norm(candidates, axis=1, keepdims=True)
        closeness = (candidates @ W.T).max(axis=1, initial=-1.0)
        W = np.vstack([W, candidates[np.argmin(closeness)]])
    scaled: Floats = W / np.sqrt(K)
    return scaled


def _rows_near_borders(W: Floats, margin: float, generator: np.random.Generator) -> tuple[Floats, Integers]:
    rows = generator.normal(size=(_AT_ONCE, W.shape[1]))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    wanted = margin * generator.uniform(1.0, 2.0, _AT_ONCE) * np.where(generator.random(_AT_ONCE) < 0.5, 1.0, -1.0)
    nearest = np.argsort(rows @ W.T, axis=1)[:, -2:]
    across = W[nearest[:, 1]] - W[nearest[:, 0]]
    gap = np.einsum("ij,ij->i", rows, across)
    rows += ((wanted - gap) / np.einsum("ij,ij->i", across, across))[:, None] * across
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    scores = rows @ W.T
    order = np.sort(scores, axis=1)
    gaps = order[:, -1] - order[:, -2]
    kept = (gaps >= margin) & (gaps <= 2.0 * margin)
    return rows[kept], np.argmax(scores[kept], axis=1)
