"""Places that many things share: found by hashing, the same on every machine and in every process."""

from collections.abc import Callable, Iterable
from functools import cache

import numpy as np
from sklearn.utils import murmurhash3_32

from onebit.inputs import Floats, Integers

MOST_READ = 10_000
"""Letters of a text that are read."""
_CHARACTERS = (3, 4)  # the lengths of the pieces of words that are looked at


def shared_place(token: str, n_places: int) -> tuple[int, int]:
    """Return the place of a token among so many, and the sign of what is put there: those of scikit-learn's hashers."""
    hashed = murmurhash3_32(token.encode("utf-8", "surrogatepass"))
    return abs(hashed) % n_places, 1 if hashed >= 0 else -1


def text_places(column: str, text: str, n_places: int) -> tuple[Integers, Floats]:
    """Return the places of a column's text among so many, and what is put there: a row of length 1.

    Its words count, and their pieces of three and four letters. The words of two columns are different ones.
    """
    counts: dict[int, int] = {}
    for token in text_tokens(column, text):
        place, sign = shared_place(token, n_places)
        counts[place] = counts.get(place, 0) + sign
    places = np.fromiter(counts.keys(), np.int64, len(counts))
    values = np.fromiter(counts.values(), np.float64, len(counts))
    length = np.sqrt(values @ values)  # of whole numbers: exact in every order
    return places, values / length if length > 0.0 else values


def text_tokens(column: str, text: str) -> Iterable[str]:
    """Return what is counted of a column's text."""
    read = text[:MOST_READ]
    return [f"{column}:{token}" for analyze in _analyzers() for token in analyze(read)]


@cache
def _analyzers() -> tuple[Callable[[str], list[str]], ...]:
    from sklearn.feature_extraction.text import HashingVectorizer  # a tenth of a second that most need not wait for

    words = HashingVectorizer(analyzer="word")
    pieces = HashingVectorizer(analyzer="char_wb", ngram_range=_CHARACTERS)
    return words.build_analyzer(), pieces.build_analyzer()
