"""What the theorems say, as functions: numbers in, number out, exactly.

`BOUNDS` lists them by theorem number, and ``BOUNDS["2"].claim(n_classes=3, radius=1, margin=0.1)`` makes the one record
of what a theorem says, a `Claim`: learners promise claims, adversaries force them, ``onebit bound`` prints them.
Whole-number bounds are Python integers. A float argument counts as the decimal it is written as (0.1 is one tenth), and
quotients are formed exactly, so that ⌊4(0.7/0.07)²⌋ is 400, where floats give 399. Bounds that outgrow a float come
with a twin whose name starts with ``log2_``. Constants that can be improved keep the paper's value; the better ones
have names ending in ``_sharp``.

Symbols: K = n_classes; R = radius (no example is longer; in a kernel's space the root of the largest k(x, x));
γ = margin, strong or weak as each bound says; d = dimension, the number of features; r = reach, nearest neighbour's
radius; T = directions. BanditSVM's: p = exploration, the chance of a uniform guess where no class claims the example;
m = n_kernels, its members, one of them linear (or the guard, where columns are scaled); 1/(2C) = softness.

Examples
--------
>>> claim = BOUNDS["3"].claim(n_classes=3, radius=1, margin=0.1)
>>> claim.side, claim.value, claim.subject
('lower', 25.0, 'expected mistakes of bandit learners')
>>> perceptron_mistakes(n_classes=3, radius=1, margin=0.1), rational_kernel_mistakes(n_classes=2, margin=1.0)
(800, 36192256)
>>> guarded_svm_mistakes(n_classes=3, radius=1, margin=0.1, n_kernels=1, softness=0)
99211
>>> nearest_neighbor_mistakes(n_classes=3, radius=1, margin=0.1, dimension=2)
882.0
>>> round(ignorant_lower_bound_sharp(margin=1e-5, dimension=10), 1)
45017.4
"""

from onebit.bounds.claims import BOUNDS, Bound, Claim, at_most
from onebit.bounds.lower import (
    bandit_lower_bound,
    full_information_lower_bound,
    full_information_lower_bound_sharp,
    ignorant_lower_bound,
    ignorant_lower_bound_sharp,
    ignorant_lower_bound_with,
    ignorant_lower_bound_with_sharp,
    log2_bandit_lower_bound,
    log2_full_information_lower_bound,
    log2_full_information_lower_bound_sharp,
    log2_ignorant_lower_bound,
    log2_ignorant_lower_bound_sharp,
    log2_ignorant_lower_bound_with,
    log2_ignorant_lower_bound_with_sharp,
    log2_one_example_lower_bound,
    one_example_lower_bound,
)
from onebit.bounds.margin_transformation import rational_kernel_margin
from onebit.bounds.upper import (
    bandit_halving_mistakes,
    bandit_svm_mistakes,
    full_information_svm_mistakes,
    guarded_svm_mistakes,
    is_safe_reach,
    kernel_perceptron_mistakes,
    log2_bandit_svm_mistakes,
    log2_nearest_neighbor_mistakes,
    log2_nearest_neighbor_mistakes_sharp,
    log2_nearest_neighbor_mistakes_within,
    log2_rational_kernel_mistakes,
    log2_rational_kernel_mistakes_sharp,
    multiclass_perceptron_mistakes,
    nearest_neighbor_memory,
    nearest_neighbor_mistakes,
    nearest_neighbor_mistakes_sharp,
    nearest_neighbor_mistakes_within,
    packing_bound,
    perceptron_mistakes,
    perceptron_updates,
    rational_kernel_mistakes,
    rational_kernel_mistakes_sharp,
)

__all__ = [
    "BOUNDS",
    "Bound",
    "Claim",
    "at_most",
    "bandit_halving_mistakes",
    "bandit_lower_bound",
    "bandit_svm_mistakes",
    "full_information_lower_bound",
    "full_information_lower_bound_sharp",
    "full_information_svm_mistakes",
    "guarded_svm_mistakes",
    "ignorant_lower_bound",
    "ignorant_lower_bound_sharp",
    "ignorant_lower_bound_with",
    "ignorant_lower_bound_with_sharp",
    "is_safe_reach",
    "kernel_perceptron_mistakes",
    "log2_bandit_lower_bound",
    "log2_bandit_svm_mistakes",
    "log2_full_information_lower_bound",
    "log2_full_information_lower_bound_sharp",
    "log2_ignorant_lower_bound",
    "log2_ignorant_lower_bound_sharp",
    "log2_ignorant_lower_bound_with",
    "log2_ignorant_lower_bound_with_sharp",
    "log2_nearest_neighbor_mistakes",
    "log2_nearest_neighbor_mistakes_sharp",
    "log2_nearest_neighbor_mistakes_within",
    "log2_one_example_lower_bound",
    "log2_rational_kernel_mistakes",
    "log2_rational_kernel_mistakes_sharp",
    "multiclass_perceptron_mistakes",
    "nearest_neighbor_memory",
    "nearest_neighbor_mistakes",
    "nearest_neighbor_mistakes_sharp",
    "nearest_neighbor_mistakes_within",
    "one_example_lower_bound",
    "packing_bound",
    "perceptron_mistakes",
    "perceptron_updates",
    "rational_kernel_margin",
    "rational_kernel_mistakes",
    "rational_kernel_mistakes_sharp",
]
