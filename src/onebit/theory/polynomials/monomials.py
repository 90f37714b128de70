"""Monomials x^α by their exponents α."""

import math
from collections.abc import Iterator

Exponents = tuple[int, ...]


def exponents_of_degree(n_variables: int, degree: int) -> Iterator[Exponents]:
    """Yield every α with |α| = degree, the first variable's power falling.

    Examples
    --------
    >>> list(exponents_of_degree(2, 2))
    [(2, 0), (1, 1), (0, 2)]
    """
    if n_variables == 1:
        yield (degree,)
        return
    for first in range(degree, -1, -1):
        for rest in exponents_of_degree(n_variables - 1, degree - first):
            yield first, *rest


def multinomial(alpha: Exponents) -> int:
    """Return |α|!/(α₁!⋯α_d!), the number of orders in which the monomial's letters can be written.

    Examples
    --------
    >>> multinomial((2, 1, 1))
    12
    """
    result, total = 1, 0
    for a in alpha:
        total += a
        # As a product of binomial coefficients it stays a whole number at every step.
        result *= math.comb(total, a)
    return result
