"""The two data sets of the paper's experiments (Section 6, Figure 3).

Three classes meet at the rows of W = (1, 0), (cos 30°, ±sin 30°): the label is the largest entry of Wx, and a point is
drawn again while its two largest entries differ by less than 0.05. With probability 0.8, decided before any redrawing,
the angle is uniform within ±15°, otherwise in [15°, 345°]: 80 % of the points are red, as in the caption. The strong
set lies on the circle, the weak set's radius is uniform in (0, 1). The features are (x₁, x₂, 1)/√2. (Drawn as in the
authors' published script; the caption alone is not enough.)

Round t of seed s depends on s and t alone: a shorter stream is the beginning of a longer one.
"""

import math

import numpy as np

from onebit.engine.jit import jit
from onebit.engine.randomness import STREAM, philox, to_unit
from onebit.inputs import Floats, Integers, check_integer, check_seed

N_CLASSES = 3
_GAP = 0.05  # between the two largest entries of Wx (caption of Figure 3)
_MAIN_SHARE = 0.8  # "80 % of the points are red"
_MAIN_ANGLE = math.radians(15.0)  # half the wedge in which the first row of W wins
_HOPELESS = (_GAP - 1e-9) / (2.0 * math.sin(_MAIN_ANGLE))
_COS, _SIN = math.cos(math.radians(30.0)), math.sin(math.radians(30.0))
_SHRINK = 1.0 / math.sqrt(2.0)  # brings (x₁, x₂, 1) into the unit ball, where the rational kernel is defined


def paper_strong(rounds: int = 5_000_000, seed: int = 0) -> tuple[Floats, Integers]:
    """Return the strongly separable set: points on a circle.

    Its largest strong margin (Definition 1) is about 0.023; the 0.05 of the paper's caption is the gap used in drawing.

    Parameters
    ----------
    rounds : int
        How many rounds, at least 1. The paper plays 5 000 000.
    seed : int
        Seed of the draw.

    Returns
    -------
    X : array of shape (rounds, 3)
    y : array of shape (rounds,)
        Labels 0, 1, 2: the paper's red, green and blue.

    Examples
    --------
    >>> X, y = paper_strong(rounds=4, seed=1)
    >>> bool(np.allclose(np.linalg.norm(X, axis=1), 1.0))
    True

    References
    ----------
    Beygelzimer et al. (2019). ICML. Section 6, Figure 3a.
    """
    return _draw(rounds, seed, on_circle=True)


def paper_weak(rounds: int = 5_000_000, seed: int = 0) -> tuple[Floats, Integers]:
    """Return the weakly, not strongly, separable set: points in a disc.

    Its largest weak margin (Definition 1) is about 0.0495.

    Parameters
    ----------
    rounds : int
        How many rounds, at least 1. The paper plays 5 000 000.
    seed : int
        Seed of the draw.

    Returns
    -------
    X : array of shape (rounds, 3)
    y : array of shape (rounds,)
        Labels 0, 1, 2: the paper's red, green and blue.

    Examples
    --------
    >>> X, y = paper_weak(rounds=1000, seed=1)
    >>> bool((X[:100] == paper_weak(rounds=100, seed=1)[0]).all())
    True

    References
    ----------
    Beygelzimer et al. (2019). ICML. Section 6, Figure 3b.
    """
    return _draw(rounds, seed, on_circle=False)


def _draw(rounds: int, seed: int, *, on_circle: bool) -> tuple[Floats, Integers]:
    n = check_integer("rounds", rounds, low=1)
    X, y = np.empty((n, 3)), np.empty(n, dtype=np.int64)
    _fill(check_seed(seed), on_circle, X, y)
    return X, y


@jit
def _fill(seed: int, on_circle: bool, X: Floats, y: Integers) -> None:
    for t in range(y.shape[0]):
        attempt = 0
        is_main = False
        while True:
            u0, u1, u2, _ = philox(seed, STREAM, t, attempt)
            # Decided before any redrawing; otherwise fewer than 80 % would be red.
            if attempt == 0:
                is_main = to_unit(u0) < _MAIN_SHARE
            attempt += 1
            if is_main:
                angle = (2.0 * to_unit(u1) - 1.0) * _MAIN_ANGLE
            else:
                angle = _MAIN_ANGLE + to_unit(u1) * (2.0 * math.pi - 2.0 * _MAIN_ANGLE)
            radius = 1.0 if on_circle else to_unit(u2)
            # In the wedge of red the gap is 2r·sin 15°·sin(15° − |angle|), at most this: three in four of the weak
            # set's points are drawn again, most of them without a cosine. The slack is far above rounding.
            if is_main and radius * (_MAIN_ANGLE - abs(angle)) < _HOPELESS:
                continue
            x1, x2 = radius * math.cos(angle), radius * math.sin(angle)
            red, green, blue = x1, _COS * x1 + _SIN * x2, _COS * x1 - _SIN * x2
            first, low, high = max(red, green, blue), min(red, green, blue), red + green + blue
            if first - (high - first - low) >= _GAP:
                break
        X[t, 0], X[t, 1], X[t, 2] = x1 * _SHRINK, x2 * _SHRINK, _SHRINK
        y[t] = 0 if first == red else (1 if first == green else 2)
