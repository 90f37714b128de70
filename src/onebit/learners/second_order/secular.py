"""The smallest of ½wᵀAw − θᵀw in the ball ‖w‖ ≤ D: the projection of A⁻¹θ onto the ball in the norm of A.

Where A⁻¹θ is longer than D, the answer is w(λ) = (A + λI)⁻¹θ with the one λ > 0 for which ‖w(λ)‖ = D. In the
eigenvectors of A this is one equation in λ, ∑ θᵢ²/(aᵢ + λ)² = D². Newton's method is applied to 1/‖w(λ)‖ = 1/D, whose
left side is concave and nearly a line (Moré and Sorensen, 1983): from any λ it needs a few steps, all but the first
from the same side. With v = w(λ), d‖v‖²/dλ = −2vᵀ(A + λI)⁻¹v, so the step is ‖v‖²/(vᵀ(A + λI)⁻¹v)·(‖v‖/D − 1).
"""

import math

from onebit.engine.jit import jit_no_refcount
from onebit.inputs import Floats

TOLERANCE = 1e-12
"""How far, relatively, the length may be from the radius."""
_MOST_STEPS = 100


@jit_no_refcount
def multiplier(values: Floats, target: Floats, radius: float, start: float) -> float:
    """Return λ ≥ 0: 0 if the free minimum lies within the ball, else the one that leads to its surface.

    Parameters
    ----------
    values, target : array
        The eigenvalues of A, all above 0, and θ in its eigenvectors.
    radius : float
        D.
    start : float
        Where to begin: the last λ, or 0.
    """
    shift = start
    for _ in range(_MOST_STEPS):
        square, slope = 0.0, 0.0
        for i in range(values.shape[0]):
            part = target[i] / (values[i] + shift)
            square += part * part
            slope += part * part / (values[i] + shift)
        length = math.sqrt(square)
        is_within = length <= radius * (1.0 + TOLERANCE)
        if is_within and (shift == 0.0 or length >= radius * (1.0 - TOLERANCE)):
            return shift
        following = max(0.0, shift + square / slope * (length / radius - 1.0)) if slope > 0.0 else 0.0
        if following == shift:
            return shift
        shift = following
    return shift
