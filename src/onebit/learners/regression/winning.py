"""Who of several independent normal numbers is the largest: one draw of them, and each one's chance.

Label i wins with chance ∫ φᵢ(z) ∏ⱼ≠ᵢ Φⱼ(z) dz. For two labels that is Φ of a difference. For more it is computed by
Gauss and Legendre's rule between the points μⱼ + cσⱼ for a few c: between two such points, φⱼ and Φⱼ are smooth or all
but constant, however different the σⱼ. Against adaptive integration the error was below 10⁻¹¹.
"""

import math

import numpy as np

from onebit.compiled import frugal, inlined
from onebit.draws import LEARNER, Draw, philox, to_unit
from onebit.inputs import Floats

_NORMALS = LEARNER + 2  # second word of the key: these numbers are nobody else's
_FAR = 8.3  # beyond so many deviations a normal number lies with a chance below 10⁻¹⁶
_EDGES = (-_FAR, -6.0, -4.0, -2.0, 0.0, 2.0, 4.0, 6.0, _FAR)
EDGES = len(_EDGES)
"""How many points each label brings."""
# Tuples of floats: arrays would keep the compiled code from being kept on disk.
_NODES, _SHARES = (tuple(numbers.tolist()) for numbers in np.polynomial.legendre.leggauss(8))


@inlined
def _two_normals(first: int, second: int) -> tuple[float, float]:
    """Return two independent normal numbers from two random words (Box and Muller)."""
    length = math.sqrt(-2.0 * math.log(1.0 - to_unit(first)))
    angle = 2.0 * math.pi * to_unit(second)
    return length * math.cos(angle), length * math.sin(angle)


@frugal
def drawn_winner(means: Floats, deviations: Floats, scale: float, draw: Draw) -> int:
    """Draw a normal number for each label, and return the label of the largest, the first of them if all are equal."""
    best, top = 0, -math.inf
    for i in range(0, means.shape[0], 4):
        w0, w1, w2, w3 = philox(draw.seed, _NORMALS, draw.round, i // 4)
        n0, n1 = _two_normals(w0, w1)
        n2, n3 = _two_normals(w2, w3)
        for k in range(i, min(i + 4, means.shape[0])):
            normal = n0 if k == i else n1 if k == i + 1 else n2 if k == i + 2 else n3
            value = means[k] + scale * deviations[k] * normal
            if value > top:
                best, top = k, value
    return best


@inlined
def _below(z: float) -> float:
    return 0.5 * math.erfc(-z * math.sqrt(0.5))


@frugal
def winning_chances(means: Floats, deviations: Floats, scale: float, edges: Floats, out: Floats) -> None:
    """Write each label's chance to win; all deviations are above 0. `edges` is scratch paper."""
    n = means.shape[0]
    if n == 2:
        apart = scale * math.hypot(deviations[0], deviations[1])
        out[0], out[1] = _below((means[0] - means[1]) / apart), _below((means[1] - means[0]) / apart)
        return
    low, high = -math.inf, -math.inf
    for i in range(n):
        out[i] = 0.0
        low = max(low, means[i] - _FAR * scale * deviations[i])
        high = max(high, means[i] + _FAR * scale * deviations[i])
    n_edges = _sorted_edges(means, deviations, scale, low, high, edges)
    for e in range(1, n_edges):
        half, middle = 0.5 * (edges[e] - edges[e - 1]), 0.5 * (edges[e] + edges[e - 1])
        if half > 0.0:
            for k in range(len(_NODES)):
                _add_node(means, deviations, scale, middle + half * _NODES[k], half * _SHARES[k], out)
    total = 0.0
    for i in range(n):
        total += out[i]
    for i in range(n):
        out[i] /= total


@inlined
def _sorted_edges(means: Floats, deviations: Floats, scale: float, low: float, high: float, edges: Floats) -> int:
    """Write the points between which all is smooth, in order, and return how many there are."""
    edges[0], edges[1], n = low, high, 2
    for i in range(means.shape[0]):
        for c in range(EDGES):
            edge = means[i] + _EDGES[c] * scale * deviations[i]
            if low < edge < high:
                place = n
                while edges[place - 1] > edge:
                    edges[place] = edges[place - 1]
                    place -= 1
                edges[place] = edge
                n += 1
    return n


@inlined
def _add_node(means: Floats, deviations: Floats, scale: float, z: float, share: float, out: Floats) -> None:
    """Add what one point contributes to every label's chance."""
    product = share
    for i in range(means.shape[0]):
        away = (z - means[i]) / (scale * deviations[i])
        if away < _FAR:
            product *= _below(away)
    for i in range(means.shape[0]):
        away = (z - means[i]) / (scale * deviations[i])
        if away < _FAR:
            density = math.exp(-0.5 * away * away) / (math.sqrt(2.0 * math.pi) * scale * deviations[i])
            out[i] += product * density / _below(away)
