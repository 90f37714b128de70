"""How many mistakes halving makes on a finite class with a hypothesis that is never wrong.

The label that most of the n survivors say is said by n/K of them or more, and a mistake drops those: after M mistakes
H(1 − 1/K)^M ≥ 1 are left, so M ≤ ln H/−ln(1 − 1/K) ≤ K·ln H.
"""

import math

from onebit.bounds.registry import bound
from onebit.inputs import check_integer


@bound("halving", "upper", "mistakes", binds="BanditHalving, if a hypothesis is never wrong")
def bandit_halving_mistakes(n_classes: int, n_hypotheses: int) -> int:
    """Return ⌊K·ln H⌋: the mistakes of BanditHalving, always, if one of its hypotheses is never wrong.

    Parameters
    ----------
    n_classes, n_hypotheses : int
        K classes; H hypotheses.

    Examples
    --------
    >>> bandit_halving_mistakes(n_classes=3, n_hypotheses=1000)
    20
    """
    K, H = check_integer("n_classes", n_classes, low=1), check_integer("n_hypotheses", n_hypotheses, low=1)
    # K·ln H is a whole number for H = 1 only; where a float cannot tell, the larger one is a bound all the same.
    return 0 if min(K, H) == 1 else math.floor(K * math.log(H) * (1.0 + 2.0**-50))
