"""Projection of rows into the plane, and back."""

from typing import NamedTuple

import numpy as np

from onebit.inputs import Floats

_BORDER = 0.08  # margin, as a fraction of the data's width


class Picture(NamedTuple):
    """A plane in the space of rows, ``origin + scale · (place @ axes)``; other rows are projected onto it.

    Examples
    --------
    >>> picture = flat_picture(np.array([[3.0, 4.0, 1.0], [-3.0, 0.0, 1.0]]), "the two columns")
    >>> picture.places(np.array([[3.0, 4.0, 1.0]])).tolist(), picture.rows(np.array([[3.0, 4.0]])).tolist()
    ([[3.0, 4.0]], [[3.0, 4.0, 1.0]])
    """

    caption: str
    """Description of the plane."""
    origin: Floats
    scale: Floats
    """Scale of each column; 0 if constant."""
    axes: Floats
    """Two unit vectors (2 × d)."""
    box: tuple[float, float, float, float]
    """Left, bottom, right, top: a square."""

    def places(self, X: Floats) -> Floats:
        """Project rows into the plane."""
        safe = np.where(self.scale > 0.0, self.scale, 1.0)
        places: Floats = ((X - self.origin) / safe) @ self.axes.T
        return places

    def rows(self, places: Floats) -> Floats:
        """Return the rows at points of the plane."""
        rows: Floats = self.origin + self.scale * (places @ self.axes)
        return rows

    def grid(self, size: int) -> Floats:
        """Return the rows at the centres of size × size cells, from the top left, line by line."""
        left, bottom, right, top = self.box
        steps = (np.arange(size) + 0.5) / size
        x, y = np.meshgrid(left + (right - left) * steps, top - (top - bottom) * steps)
        return self.rows(np.column_stack([x.ravel(), y.ravel()]))


def flat_picture(X: Floats, caption: str, box: tuple[float, float, float, float] | None = None) -> Picture:
    """Return the plane of the first two columns, at the first row's values of all others."""
    axes = np.eye(2, X.shape[1])
    origin = X[0] * (np.arange(X.shape[1]) >= 2)
    return Picture(caption, origin, np.ones(X.shape[1]), axes, box or _square(X[:, :2]))


def widest_picture(X: Floats) -> Picture:
    """Return the plane of the first two principal components of the standardised rows."""
    origin, scale = X.mean(axis=0), X.std(axis=0)
    spread = (X - origin) / np.where(scale > 0.0, scale, 1.0)
    _, lengths, directions = np.linalg.svd(spread, full_matrices=False)
    axes = np.zeros((2, X.shape[1]))
    axes[: len(directions[:2])] = directions[:2]
    share, n_varying = float((lengths[:2] ** 2).sum() / max((lengths**2).sum(), 1e-300)), int((scale > 0).sum())
    caption = (
        f"the two principal components of {n_varying} columns, which hold {share:.0%} of their spread; "
        "the background is that plane, and points off it are projected onto it"
        if n_varying != 1
        else "the one column that varies, from left to right"
    )
    return Picture(caption, origin, scale, axes, _square(spread @ axes.T))


def _square(places: Floats) -> tuple[float, float, float, float]:
    low, high = places.min(axis=0), places.max(axis=0)
    centre, half = (low + high) / 2.0, float((high - low).max()) * (0.5 + _BORDER) or 1.0
    left, bottom = (centre - half).tolist()
    right, top = (centre + half).tolist()
    return left, bottom, right, top
