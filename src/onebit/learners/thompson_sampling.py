"""Thompson sampling with a normal posterior for every class."""

import math
from dataclasses import dataclass

import numpy as np

from onebit.engine.algorithm import highest
from onebit.engine.jit import jit_inline, jit_no_refcount
from onebit.engine.randomness import LEARNER, Draw, philox, to_unit
from onebit.engine.scaling import MOST
from onebit.inputs import Floats, check_number
from onebit.learners.exploring import fill_propensities
from onebit.learners.regression import RegressionLearner, RegressionState, Scratch, Settings

# Label i has the largest of several independent normal numbers with probability ∫ φᵢ(z) ∏ⱼ≠ᵢ Φⱼ(z) dz. For two labels
# that is Φ of a difference. For more it is computed by Gauss-Legendre quadrature on panels, each at most two deviations
# wide for every label whose Φⱼ still varies there. Compared with adaptive integration the error was below 10⁻¹¹.

_NORMALS = LEARNER + 2  # second word of the key: independent of all other draws
_FAR = 8.3  # a normal number lies beyond so many deviations with probability below 10⁻¹⁶
_STRIDE = 2.0  # width of a panel, in units of the smallest deviation in it
# Tuples of floats: with global arrays the compiled code could not be cached on disk.
_NODES, _SHARES = (tuple(numbers.tolist()) for numbers in np.polynomial.legendre.leggauss(10))


@jit_inline
def _two_normals(first: int, second: int) -> tuple[float, float]:
    """Return two independent normal numbers from two random words (Box and Muller)."""
    length = math.sqrt(-2.0 * math.log(1.0 - to_unit(first)))
    angle = 2.0 * math.pi * to_unit(second)
    return length * math.cos(angle), length * math.sin(angle)


@jit_no_refcount
def _drawn_winner(means: Floats, deviations: Floats, scale: float, draw: Draw) -> int:
    """Draw a normal number for each label and return the label of the largest; the first of equals."""
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


@jit_inline
def _below(z: float) -> float:
    return 0.5 * math.erfc(-z * math.sqrt(0.5))


@jit_no_refcount
def _winning_chances(means: Floats, deviations: Floats, scale: float, scratch: Floats, out: Floats) -> None:
    """Write each label's probability to win; all deviations are above 0. `scratch` has one number per label."""
    n = means.shape[0]
    apart = scale * math.hypot(deviations[0], deviations[1]) if n == 2 else 0.0
    if apart > 0.0:
        out[0], out[1] = _below((means[0] - means[1]) / apart), _below((means[1] - means[0]) / apart)
        return
    # Below the highest of the lower ends no label wins: some number is larger.
    z, end = -math.inf, -math.inf
    for i in range(n):
        out[i] = 0.0
        z = max(z, means[i] - _FAR * scale * deviations[i])
        end = max(end, means[i] + _FAR * scale * deviations[i])
    while z < end:
        half = 0.5 * (_panel_end(means, deviations, scale, z, end) - z)
        if not z + half > z:
            break  # the rest is below rounding
        for k in range(len(_NODES)):
            _add_node(means, deviations, scale, z + half * (1.0 + _NODES[k]), half * _SHARES[k], scratch, out)
        z += 2.0 * half
    total = 0.0
    for i in range(n):
        total += out[i]
    if not total > 0.0:  # deviations so small that they change no mean: the highest wins
        out[highest(means)] = total = 1.0
    for i in range(n):
        out[i] /= total


@jit_inline
def _panel_end(means: Floats, deviations: Floats, scale: float, start: float, end: float) -> float:
    """Return the end of a panel: within a few deviations of every label that varies in it."""
    for i in range(means.shape[0]):
        deviation = scale * deviations[i]
        if start < means[i] + _FAR * deviation:
            # `start` is above every lower end, so every label that still varies does so here.
            end = min(end, start + _STRIDE * deviation)
    return end


@jit_inline
def _add_node(
    means: Floats, deviations: Floats, scale: float, z: float, share: float, scratch: Floats, out: Floats
) -> None:
    """Add the contribution of one node to every label's probability."""
    product = share
    for i in range(means.shape[0]):
        away = (z - means[i]) / (scale * deviations[i])
        scratch[i] = _below(away) if away < _FAR else 1.0
        product *= scratch[i]
    for i in range(means.shape[0]):
        away = (z - means[i]) / (scale * deviations[i])
        if away < _FAR:
            density = math.exp(-0.5 * away * away) / (math.sqrt(2.0 * math.pi) * scale * deviations[i])
            out[i] += product * density / scratch[i]


@jit_inline
def _is_uncertain(scratch: Scratch) -> bool:
    """Return whether all widths are above 0: those of a row of (nearly) zeros are not."""
    found = True
    for i in range(scratch.widths.shape[0]):
        found = found and scratch.widths[i] > 0.0
    return found


@jit_inline
def _winning(scratch: Scratch, settings: Settings) -> None:
    if _is_uncertain(scratch):
        _winning_chances(scratch.scores, scratch.widths, settings.own[0], scratch.below, scratch.propensities)
    else:
        fill_propensities(scratch.scores, (0.0,), scratch.propensities)


@jit_no_refcount
def _draw(scratch: Scratch, draw: Draw, settings: Settings) -> int:
    # Quadrature would take most of the time of a round.
    if _is_uncertain(scratch):
        return _drawn_winner(scratch.scores, scratch.widths, settings.own[0], draw)
    return highest(scratch.scores)


@dataclass(eq=False, repr=False)
class ThompsonSampling(RegressionLearner):
    """Draws every class's weights from its posterior, and guesses the label that they predict to be best.

    Class i regresses 1 for right and 0 for wrong on the rounds in which it was guessed; its posterior is normal with
    mean wᵢ and covariance `spread`²·Aᵢ⁻¹. Only the predictions ⟨wᵢ, x⟩ matter, so K normal numbers are drawn.
    `probabilities`, that each is the largest, are computed by quadrature to twelve digits. Give rows a column of ones.

    Guarantee: If the probability that label i is right is linear in x, with weights and rows of length at most 1, then
    with `spread` of order √(D·log(T/δ)), where D = Kd, it makes at most Õ(D^(3/2)·√T) more mistakes in T rounds than
    the best labels would, with probability 1 − δ (Agrawal and Goyal). The default explores far less. None for the
    diagonal form.

    Parameters
    ----------
    spread : float
        The posterior's standard deviation, in widths √(xᵀAᵢ⁻¹x); from 1e-10 to 1e100.
    diagonal, regularization
        As for `LinUCB`.

    Examples
    --------
    >>> learner = ThompsonSampling(classes=3)
    >>> learner.learn_from([[1.0, 0.5]], [0], False).probabilities([1.0, 0.5]).round(3)
    array([0.3 , 0.35, 0.35])

    References
    ----------
    Agrawal, Goyal (2013). Thompson sampling for contextual bandits with linear payoffs. ICML.
    """

    spread: float = 0.25
    diagonal: bool = False
    regularization: float = 1.0

    _write_propensities, _draw_label = staticmethod(_winning), staticmethod(_draw)

    def _new_state(self) -> RegressionState:
        spread = check_number("spread", self.spread, at_least=1e-10, at_most=MOST)
        return RegressionState(self, Settings((spread,), has_widths=True))
