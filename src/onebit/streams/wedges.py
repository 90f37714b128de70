"""Figure 1 of the paper: 78 points in the plane, weakly but not strongly separable."""

import numpy as np

from onebit.inputs import Floats, Integers

_RADIUS = 5.0

# Angle in degrees and distance from the centre, read from the source of the paper's Figure 1, exact to two decimals.
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


def wedges() -> tuple[Floats, Integers]:
    """Return Figure 1's points, scaled into the unit disc, and their labels 0, 1, 2.

    Each class lies in a wedge of 120°, so the three are weakly separable; no line has the grey class (1) alone on one
    side, so they are not strongly separable.

    Examples
    --------
    >>> X, y = wedges()
    >>> X.shape, np.bincount(y).tolist()
    ((78, 2), [25, 28, 25])

    References
    ----------
    Beygelzimer et al. (2019). ICML. Figure 1.
    """
    angles, distances = np.array(_POINTS).T
    radians = np.deg2rad(angles)
    X = np.column_stack([np.cos(radians), np.sin(radians)]) * (distances / _RADIUS)[:, None]
    return X, (angles // 120.0).astype(np.int64)
