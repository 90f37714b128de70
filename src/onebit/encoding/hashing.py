"""Hashing into shared slots, identical on every machine and in every process."""

from collections.abc import Callable, Iterable
from functools import cache

import numpy as np
from sklearn.utils import murmurhash3_32

from onebit.inputs import Floats, Integers

MOST_READ = 10_000
"""Maximum number of characters of a text that are used."""
_CHARACTERS = (3, 4)  # range of character n-grams


def shared_place(token: str, n_places: int) -> tuple[int, int]:
    """Return the slot and the sign of a token, as scikit-learn's FeatureHasher computes them."""
    hashed = murmurhash3_32(token.encode("utf-8", "surrogatepass"))
    return abs(hashed) % n_places, 1 if hashed >= 0 else -1


def text_places(column: str, text: str, n_places: int) -> tuple[Integers, Floats]:
    """Return the slots of a column's text and their values, a vector of norm 1.

    Counts words and their character 3- and 4-grams; tokens of different columns are distinct.
    """
    counts: dict[int, int] = {}
    for token in text_tokens(column, text):
        place, sign = shared_place(token, n_places)
        counts[place] = counts.get(place, 0) + sign
    places = np.fromiter(counts.keys(), np.int64, len(counts))
    values = np.fromiter(counts.values(), np.float64, len(counts))
    length = np.sqrt(values @ values)  # a sum of integers: exact in any order
    return places, values / length if length > 0.0 else values


def text_tokens(column: str, text: str) -> Iterable[str]:
    """Return the tokens of a column's text."""
    read = text[:MOST_READ]
    return [f"{column}:{token}" for analyze in _analyzers() for token in analyze(read)]


@cache
def _analyzers() -> tuple[Callable[[str], list[str]], ...]:
    from sklearn.feature_extraction.text import HashingVectorizer  # slow import, needed only for texts

    words = HashingVectorizer(analyzer="word")
    pieces = HashingVectorizer(analyzer="char_wb", ngram_range=_CHARACTERS)
    return words.build_analyzer(), pieces.build_analyzer()
