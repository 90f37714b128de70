"""Every mistake bound of the paper, as a function: numbers in, number out.

`BOUNDS` lists them by theorem number, for tables and the command line. Whole-number bounds are Python integers. A float
argument counts as the decimal it is written as (0.1 is one tenth), and quotients are formed exactly, so that
⌊4(0.7/0.07)²⌋ is 400, where floats give 399. Bounds that outgrow a float come with a twin whose name starts with
``log2_``. Constants that can be improved keep the paper's value; the better ones have names ending in ``_sharp``.

Symbols: K = n_classes, R = radius (no example is longer), γ = margin, d = dimension.

>>> {number: entry.side for number, entry in BOUNDS.items() if number in ("2", "3")}
{'3': 'lower', '2': 'upper'}
"""

from onebit.bounds.lower import (
    bandit_lower_bound,
    full_information_lower_bound,
    ignorant_lower_bound,
    ignorant_lower_bound_sharp,
    log2_ignorant_lower_bound,
    one_example_lower_bound,
)
from onebit.bounds.registry import BOUNDS, Bound
from onebit.bounds.upper import (
    kernel_perceptron_mistakes,
    log2_nearest_neighbor_mistakes,
    log2_rational_kernel_mistakes,
    log2_rational_kernel_mistakes_sharp,
    multiclass_perceptron_mistakes,
    nearest_neighbor_mistakes,
    nearest_neighbor_mistakes_sharp,
    perceptron_mistakes,
    perceptron_updates,
    rational_kernel_mistakes,
    rational_kernel_mistakes_sharp,
)

__all__ = [
    "BOUNDS",
    "Bound",
    "bandit_lower_bound",
    "full_information_lower_bound",
    "ignorant_lower_bound",
    "ignorant_lower_bound_sharp",
    "kernel_perceptron_mistakes",
    "log2_ignorant_lower_bound",
    "log2_nearest_neighbor_mistakes",
    "log2_rational_kernel_mistakes",
    "log2_rational_kernel_mistakes_sharp",
    "multiclass_perceptron_mistakes",
    "nearest_neighbor_mistakes",
    "nearest_neighbor_mistakes_sharp",
    "one_example_lower_bound",
    "perceptron_mistakes",
    "perceptron_updates",
    "rational_kernel_mistakes",
    "rational_kernel_mistakes_sharp",
]
