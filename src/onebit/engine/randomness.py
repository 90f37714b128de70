"""Randomness as data: the uniform number of a round, from its seed and its round.

A learner owns no generator. Round ``t`` under seed ``s`` has one number, ``uniform(Draw(s, t))``: interactive
play, compiled play and a replay of a log draw the same labels. The numbers are those of NumPy's
``Generator(Philox(key=[s, purpose])).random()``, but each is computed directly, without those before it.

References
----------
Salmon, Moraes, Dror, Shaw (2011). Parallel random numbers: as easy as 1, 2, 3. SC'11 (Philox4x64-10).
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core.types import Type
from numba.extending import intrinsic
from numpy.random import Generator, Philox

from onebit.engine.jit import jit_inline, jit_no_refcount

LEARNER, STREAM, CHANGE, DECIDER = 1, 2, 16, 32
"""Second word of the key, so that all may be given the same seed: for a learner's draws, for a stream's, for what is
changed about a stream, and for the guesses that a decider draws evenly, whatever its learner would guess."""

_ROUNDS = 10  # of mixing: the variant that NumPy has


class Draw(NamedTuple):
    """Names the random number of one round; `uniform` computes it, only when a rule looks at it."""

    seed: int
    round: int


@intrinsic
def _multiplied(_context: Any, a: Type, b: Type) -> Any:
    """Return the high and the low word of a product of two words."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)  # one machine instruction gives both halves; Numba has no such type
        product = builder.mul(builder.zext(arguments[0], wide), builder.zext(arguments[1], wide))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))
        low = builder.trunc(product, ir.IntType(64))
        return _context.make_tuple(builder, _signature.return_type, (high, low))

    pair: Any = types.UniTuple
    return pair(types.uint64, 2)(a, b), generate


_multiply: Any = _multiplied


@jit_inline
def _philox(seed: int, purpose: int, counter: int, attempt: int) -> Any:
    """Return Philox4x64-10's four words for the key (seed, purpose) and the counter (counter, attempt, 0, 0)."""
    k0, k1 = np.uint64(seed), np.uint64(purpose)
    c0, c1, c2, c3 = np.uint64(counter), np.uint64(attempt), np.uint64(0), np.uint64(0)
    for _ in range(_ROUNDS):
        # Constants of Salmon et al.: multipliers, then the golden ratio and √3 − 1 for the key.
        high0, low0 = _multiply(np.uint64(0xD2E7470EE14C6C93), c0)
        high1, low1 = _multiply(np.uint64(0xCA5A826395121157), c2)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0 += np.uint64(0x9E3779B97F4A7C15)
        k1 += np.uint64(0xBB67AE8584CAA73B)
    return c0, c1, c2, c3


def _numpys_philox(seed: int, purpose: int, counter: int, attempt: int) -> Any:
    """Return the same words, where nothing is compiled."""
    before = (counter + (attempt << 64) - 1) % 2**256  # NumPy raises the counter before it draws
    return tuple(Philox(key=np.array([seed, purpose], np.uint64), counter=before).random_raw(4))


philox = _numpys_philox if config.DISABLE_JIT else _philox


@jit_inline
def to_unit(word: int) -> float:
    """Turn a word into a number in [0, 1) with 53 random bits, as NumPy does."""
    return float(word >> np.uint64(11)) * 2.0**-53  # 53 bits: every double of this grid, none twice as likely


@jit_no_refcount
def uniform(draw: Draw) -> float:
    """Return the round's uniform number in [0, 1).

    Examples
    --------
    >>> uniform(Draw(seed=7, round=0)) == uniform(Draw(seed=7, round=0))
    True
    >>> from numpy.random import Generator, Philox
    >>> float(Generator(Philox(key=[7, LEARNER])).random(6)[5]) == uniform(Draw(seed=7, round=5))
    True
    """
    lane = draw.round % 4
    # NumPy raises the counter before it draws, four numbers at a time.
    w0, w1, w2, w3 = philox(draw.seed, LEARNER, draw.round // 4 + 1, 0)
    low, high = w1 if lane == 1 else w0, w3 if lane == 3 else w2
    return to_unit(high if lane >= 2 else low)


@jit_inline
def uniform_label(number: float, n_classes: int) -> int:
    """Turn a uniform number in [0, 1) into a label, each with the same chance."""
    return min(int(number * n_classes), n_classes - 1)


def random_numbers(seed: int, purpose: int, round: int = 0, number: int = 0) -> Generator:
    """Return NumPy's generator of random numbers, others for each purpose, round and number under one seed.

    Examples
    --------
    >>> float(random_numbers(7, STREAM).random()) == float(random_numbers(7, STREAM).random())
    True
    >>> float(random_numbers(7, STREAM).random()) != uniform(Draw(seed=7, round=0))
    True
    """
    # In the highest word of the counter: no stream is so long that two numbers meet.
    return Generator(Philox(key=[seed, purpose], counter=[round, 0, 0, number]))
