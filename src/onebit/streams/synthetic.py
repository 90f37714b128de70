"""Synthetic streams: the two sets of the bandit literature, one whose weak margin is known, one with several right.

SynSep and SynNonSep are documents as bags of words, separable and not. Each of nine topics has a code, 20 to 40 of the
first 120 words. A document has the words of its topic's code except five of them, and 20 of the other 280 words, which
are noise. Everything, also the codes, is drawn from the seed. Rows are sparse (scipy CSR): linear learners play them
three to four times as fast as dense ones. (BanditSVM is faster on dense ones: ``X.toarray()``.)

A shorter stream is the beginning of a longer one.
"""

import math
from collections.abc import Callable
from functools import partial
from itertools import count

import numpy as np
import numpy.typing as npt
import scipy.sparse

from onebit.engine.jit import jit, jit_inline
from onebit.engine.randomness import STREAM, philox, to_unit, uniform_label
from onebit.inputs import Floats, Integers, check_integer, check_number, check_seed
from onebit.streams.changes import LabelNoise

_N_CLASSES, _N_WORDS = 9, 400
_CODE_WORDS = 120  # the first words, of which codes are made
_SHORTEST, _LONGEST = 20, 40  # of a code
_MISSING = 5  # words of its code that a document lacks
_NOISE_WORDS = 20  # noise words of a document
_WRONG_LABELS = 0.05  # of the set that is not separable
_FAR = 2**32  # a document needs 26 numbers: the numbers of the codes start far beyond

_AT_ONCE = 4096  # rows drawn at a time
_CANDIDATES = 256  # each direction is the one of so many that is farthest from those before: all classes get room
_HOPELESS = 50  # draws without a single row: the margin is too large for these classes
_N_LABELS, _N_FEATURES, _LEVEL, _NEAREST = 6, 4, 0.25, 0.05  # a label is right where a product is above the level


def syn_sep(rounds: int = 1_000_000, seed: int = 0) -> tuple[scipy.sparse.csr_array, Integers]:
    """Return SynSep: nine classes of sparse binary rows, strongly separable.

    Each code has more than five words that another lacks: equal weights on the words of a class's own code separate it
    from all others; the noise words, always 20, serve as the constant.

    Parameters
    ----------
    rounds, seed : int
        How many rounds, at least 1 (the literature plays 1 000 000), and the seed of the draw.

    Returns
    -------
    X, y : CSR array of shape (rounds, 400), array of shape (rounds,)
        Ones where a word occurs, and labels 0 to 8, equally frequent.

    Examples
    --------
    >>> X, y = syn_sep(rounds=1000, seed=1)
    >>> X.shape, len(set(y.tolist())), bool((X[:, 120:].sum(axis=1) == 20).all())
    ((1000, 400), 9, True)

    References
    ----------
    Kakade, Shalev-Shwartz, Tewari (2008). Efficient bandit algorithms for online multiclass prediction. ICML.
    """
    n, seed = check_integer("rounds", rounds, low=1), check_seed(seed)
    codes, sizes = _codes(seed)
    y = np.empty(n, dtype=np.int64)
    _draw_labels(seed, y)
    starts = np.concatenate([[0], np.cumsum(sizes[y] - _MISSING + _NOISE_WORDS)])
    columns = np.empty(starts[-1], dtype=np.int64)
    _draw_words(seed, codes, sizes, y, columns, starts)
    return scipy.sparse.csr_array((np.ones(len(columns)), columns, starts), shape=(n, _N_WORDS)), y


def syn_non_sep(rounds: int = 1_000_000, seed: int = 0) -> tuple[scipy.sparse.csr_array, Integers]:
    """Return SynNonSep: as `syn_sep`, with 5 % of the labels replaced by another.

    Examples
    --------
    >>> (X, y), (same_X, right) = syn_non_sep(rounds=1000, seed=1), syn_sep(rounds=1000, seed=1)
    >>> (X != same_X).nnz, int((y != right).sum())
    (0, 43)
    """
    X, y = syn_sep(rounds, seed)
    return LabelNoise(_WRONG_LABELS).applied(X, y, _N_CLASSES, seed)


def _codes(seed: int) -> tuple[Integers, Integers]:
    """Return the words of each class's code, increasing, and how many they are."""
    for attempt in count(1):
        codes, sizes = np.zeros((_N_CLASSES, _LONGEST), dtype=np.int64), np.zeros(_N_CLASSES, dtype=np.int64)
        _draw_codes(seed, _FAR * attempt, codes, sizes)
        has = np.zeros((_N_CLASSES, _CODE_WORDS))
        for label, size in enumerate(sizes.tolist()):
            has[label, codes[label, :size]] = 1.0
        own = has @ (1.0 - has).T
        np.fill_diagonal(own, _LONGEST)
        if own.min() > _MISSING:
            break
    return codes, sizes


@jit_inline
def _number(seed: int, counter: int, i: int) -> float:
    """Return the i-th uniform number of a round or class."""
    return to_unit(philox(seed, STREAM, counter, i // 4)[i % 4])


@jit_inline
def _choose(seed: int, counter: int, i: int, n: int, chosen: Integers) -> None:
    """Fill an array with different whole numbers below n, increasing, each set as likely (Floyd's algorithm)."""
    size = chosen.shape[0]
    for k in range(size):
        bound = n - size + k
        one = uniform_label(_number(seed, counter, i + k), bound + 1)
        for other in range(k):
            if chosen[other] == one:
                one = bound
        # Insert it in order.
        at = k
        while at > 0 and chosen[at - 1] > one:
            chosen[at] = chosen[at - 1]
            at -= 1
        chosen[at] = one


@jit
def _draw_codes(seed: int, first: int, codes: Integers, sizes: Integers) -> None:
    for label in range(codes.shape[0]):
        spread = uniform_label(_number(seed, label, first), _LONGEST - _SHORTEST + 1)
        sizes[label] = _SHORTEST + spread
        _choose(seed, label, first + 1, _CODE_WORDS, codes[label, : sizes[label]])


@jit
def _draw_labels(seed: int, y: Integers) -> None:
    for t in range(y.shape[0]):
        y[t] = uniform_label(_number(seed, t, 0), _N_CLASSES)


@jit
def _draw_words(seed: int, codes: Integers, sizes: Integers, y: Integers, columns: Integers, starts: Integers) -> None:
    lost = np.empty(_MISSING, dtype=np.int64)
    for t in range(y.shape[0]):
        at, lacking = starts[t], 0
        _choose(seed, t, 1, sizes[y[t]], lost)
        for k in range(sizes[y[t]]):
            if lacking < _MISSING and lost[lacking] == k:
                lacking += 1
            else:
                columns[at] = codes[y[t], k]
                at += 1
        words = columns[at : starts[t + 1]]
        _choose(seed, t, 1 + _MISSING, _N_WORDS - _CODE_WORDS, words)
        for k in range(words.shape[0]):
            words[k] += _CODE_WORDS


def weak_margin(
    rounds: int, seed: int = 0, *, n_classes: int = 3, margin: float = 0.05, n_features: int = 3
) -> tuple[Floats, Integers]:
    """Return rows of length 1 whose right class leads the next one by at least the margin, and at most twice that.

    K directions are drawn, far apart, and divided by √K, so that their squared lengths add up to 1. A row is drawn
    evenly on the sphere, moved towards the border between its two nearest directions, or a little beyond, and kept if
    its gap is from γ to 2γ: with evenly spread rows few would be near the margin, and a smaller one would hardly be
    harder. With more classes than features the rows are hardly ever strongly separable.

    Parameters
    ----------
    rounds, seed : int
        How many rounds, at least 1, and the seed of the directions and the rows.
    n_classes, margin, n_features : int, float, int
        K, at least 2; γ, above 0, the margin of the directions (the rows' largest weak margin is a little larger); at
        least 2 features.

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
    too_large = (
        f"margin must be smaller for n_classes={len(W)} in n_features={W.shape[1]}: of {_HOPELESS * _AT_ONCE} rows "
        f"none has a gap from {margin!r} to twice that. Use a smaller margin"
    )
    X = _collected(n, seed, partial(_rows_near_borders, W, margin), too_large)
    return X, np.argmax(X @ W.T, axis=1)


def _collected(n: int, seed: int, draw: Callable[[np.random.Generator], Floats], nothing: str) -> Floats:
    """Return the first n rows of many draws, or raise a ValueError if the first draws give none."""
    generator = np.random.default_rng([check_seed(seed), 1])
    kept = [draw(generator)]
    while sum(map(len, kept)) < n:
        if len(kept) == _HOPELESS and not sum(map(len, kept)):
            raise ValueError(nothing)
        kept.append(draw(generator))
    return np.concatenate(kept)[:n]


def directions(n_classes: int, n_features: int, seed: int = 0) -> Floats:
    """Return the vectors that separate `weak_margin`'s classes, one row each; their squared lengths add up to 1."""
    K = check_integer("n_classes", n_classes, low=2)
    d = check_integer("n_features", n_features, low=2)
    generator = np.random.default_rng([check_seed(seed), 0])
    W = np.empty((0, d))
    for _ in range(K):
        candidates = _on_sphere(generator, d, _CANDIDATES)
        closeness = (candidates @ W.T).max(axis=1, initial=-1.0)
        W = np.vstack([W, candidates[np.argmin(closeness)]])
    return W / math.sqrt(K)


def several_right(rounds: int = 100_000, seed: int = 0) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return rows of length 1 of which one or several of six labels are right, strongly separable.

    Label i is right where ⟨vᵢ, x⟩ is above a level, for directions vᵢ that are far apart; rows for which one of them is
    within 0.05 of it, or none is right, are drawn again. The features are (x, 1)/√2.

    Parameters
    ----------
    rounds, seed : int
        How many rounds, at least 1, and the seed of the directions and the rows.

    Returns
    -------
    X, right : array of shape (rounds, 5), array of bool of shape (rounds, 6)
        Features, and of every label whether it is right; the margin is 0.028.

    Examples
    --------
    >>> X, right = several_right(rounds=1000, seed=1)
    >>> bool(right.any(axis=1).all()), float(right.sum(axis=1).mean())
    (True, 2.051)
    """
    n, W = check_integer("rounds", rounds, low=1), _several_right_separators(seed)
    least = _NEAREST * np.linalg.norm(W[0]) / math.hypot(1.0, _LEVEL) / math.sqrt(2.0)

    def some_rows(generator: np.random.Generator) -> Floats:
        rows = np.column_stack([_on_sphere(generator, W.shape[1] - 1), np.ones(_AT_ONCE)]) / math.sqrt(2.0)
        scores = rows @ W.T
        return rows[(np.abs(scores) >= least).all(axis=1) & (scores > 0.0).any(axis=1)]

    X = _collected(n, seed, some_rows, "no row has a right label")
    return X, X @ W.T > 0.0


def _several_right_separators(seed: int = 0) -> Floats:
    """Return a row for each label; their squared lengths add up to 1."""
    W = np.column_stack([directions(_N_LABELS, _N_FEATURES, seed), np.full(_N_LABELS, -_LEVEL / math.sqrt(_N_LABELS))])
    return W / math.hypot(1.0, _LEVEL)


def _on_sphere(generator: np.random.Generator, n_features: int, n: int = _AT_ONCE) -> Floats:
    rows = generator.normal(size=(n, n_features))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def _rows_near_borders(W: Floats, margin: float, generator: np.random.Generator) -> Floats:
    rows = _on_sphere(generator, W.shape[1])
    wanted = margin * generator.uniform(1.0, 2.0, _AT_ONCE) * np.where(generator.random(_AT_ONCE) < 0.5, 1.0, -1.0)
    nearest = np.argsort(rows @ W.T, axis=1)[:, -2:]
    across = W[nearest[:, 1]] - W[nearest[:, 0]]
    gap = np.einsum("ij,ij->i", rows, across)
    rows += ((wanted - gap) / np.einsum("ij,ij->i", across, across))[:, None] * across
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    order = np.sort(rows @ W.T, axis=1)
    gaps = order[:, -1] - order[:, -2]
    return rows[(gaps >= margin) & (gaps <= 2.0 * margin)]
