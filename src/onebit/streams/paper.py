"""The paper's data: the two sets of its experiments (Section 6, Figure 3), and the points of Figure 1.

Three classes meet at the rows of W = (1, 0), (cos 30°, ±sin 30°): the label is the largest entry of Wx, and a point is
drawn again while its two largest entries differ by less than 0.05. With probability 0.8, decided before any redrawing,
the angle is uniform within ±15°, otherwise in [15°, 345°]: 80 % of the points are red, as in the caption. The strong
set lies on the circle, the weak set's radius is uniform in (0, 1). The features are (x₁, x₂, 1)/√2. (Drawn as in the
authors' published script; the caption alone is not enough.) A shorter stream is the beginning of a longer one.

References
----------
Beygelzimer et al. (2019). ICML. Section 6, Figures 1, 3a (strong) and 3b (weak).
"""

import math

import numpy as np

from onebit.engine.jit import jit
from onebit.engine.randomness import STREAM, philox, to_unit
from onebit.inputs import Floats, Integers, check_integer, check_seed

_GAP = 0.05  # between the two largest entries of Wx (caption of Figure 3)
_MAIN_SHARE = 0.8  # "80 % of the points are red"
_MAIN_ANGLE = math.radians(15.0)  # half the wedge in which the first row of W wins
_HOPELESS = (_GAP - 1e-9) / (2.0 * math.sin(_MAIN_ANGLE))
_COS, _SIN = math.cos(math.radians(30.0)), math.sin(math.radians(30.0))
_SHRINK = 1.0 / math.sqrt(2.0)  # brings (x₁, x₂, 1) into the unit ball, where the rational kernel is defined

# Figure 1, from the source of the paper: angle in degrees, and distance from the centre of a disc of radius 5.
# fmt: off
_POINTS = [
    # class 0
    (7.94, 3.79), (10.97, 4.51), (18.63, 2.3), (21.2, 4.42), (26.23, 3.57), (31.66, 4.63), (41.52, 4.77),
    (42.22, 2.06), (44.9, 3.3), (52.95, 4.01), (57.79, 2.62), (58.25, 4.62), (65.64, 3.86), (68.11, 1.1),
    (71.38, 3), (72.6, 1.97), (77.86, 4.23), (87.11, 4.44), (92.77, 2.9), (93.88, 2.09), (93.97, 3.9),
    (100.87, 4.39), (105.5, 3.4), (107.58, 2.57), (110.09, 4.31),
    # class 1
    (130.71, 4.76), (132.8, 3.7), (133.71, 2.84), (141.55, 4.39), (144.89, 2.14), (144.96, 3.67),
    (150.11, 2.92), (152.47, 4.79), (157.09, 0.9), (160.45, 4.13), (162.92, 1.8), (164.13, 2.68),
    (170.32, 4.44), (174.55, 3.69), (179.08, 3.01), (179.39, 4.49), (182.94, 2.24), (193.19, 4.09),
    (196.53, 3.29), (197.93, 1.08), (198.39, 2.57), (208.08, 1.93), (209.68, 4.07), (210.92, 3.16),
    (217.72, 4.79), (222.35, 3.61), (225.84, 4.36), (227.89, 2.91),
    # class 2
    (248.23, 3.89), (251.03, 4.78), (253.86, 2.55), (258.82, 3.67), (270.54, 2.7), (271.79, 3.46), (272.88, 2),
    (274.04, 4.62), (282.58, 4.75), (283.72, 3.04), (286.97, 1.29), (288.41, 3.8), (293.24, 4.78),
    (297.9, 2.43), (299.36, 4.22), (304.2, 3.46), (308.83, 4.46), (313.94, 2.13), (319.47, 4.33),
    (324.13, 2.82), (335.46, 3.98), (337.6, 1.75), (342.13, 2.45), (345.92, 3.32), (349.18, 4.53),
]
# fmt: on


def paper_strong(rounds: int = 5_000_000, seed: int = 0) -> tuple[Floats, Integers]:
    """Return the strongly separable set: points on a circle.

    Its largest strong margin (Definition 1) is about 0.023; the 0.05 of the paper's caption is the gap used in drawing.

    Parameters
    ----------
    rounds, seed : int
        How many rounds, at least 1 (the paper plays 5 000 000), and the seed of the draw.

    Returns
    -------
    X, y : arrays of shape (rounds, 3) and (rounds,)
        Features, and labels 0, 1, 2: the paper's red, green and blue.

    Examples
    --------
    >>> X, y = paper_strong(rounds=4, seed=1)
    >>> bool(np.allclose(np.linalg.norm(X, axis=1), 1.0))
    True
    """
    return _draw(rounds, seed, on_circle=True)


def paper_weak(rounds: int = 5_000_000, seed: int = 0) -> tuple[Floats, Integers]:
    """Return the weakly, not strongly, separable set: points in a disc.

    Its largest weak margin (Definition 1) is about 0.0495. Parameters and result are as for `paper_strong`.

    Examples
    --------
    >>> X, y = paper_weak(rounds=1000, seed=1)
    >>> bool((X[:100] == paper_weak(rounds=100, seed=1)[0]).all())
    True
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


def wedges() -> tuple[Floats, Integers]:
    """Return Figure 1's points, scaled into the unit disc, and their labels 0, 1, 2.

    Each class lies in a wedge of 120°, so the three are weakly separable; no line has the grey class (1) alone on one
    side, so they are not strongly separable.

    Examples
    --------
    >>> X, y = wedges()
    >>> X.shape, np.bincount(y).tolist()
    ((78, 2), [25, 28, 25])
    """
    angles, distances = np.array(_POINTS).T
    radians = np.deg2rad(angles)
    X = np.column_stack([np.cos(radians), np.sin(radians)]) * (distances / 5.0)[:, None]
    return X, (angles // 120.0).astype(np.int64)
