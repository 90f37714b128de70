"""Whether a learner ignores its mistakes, as Theorem 24 assumes."""

import numpy as np
from sklearn.base import clone

from onebit.engine.randomness import stream_generator
from onebit.learners import Learner

# Points at which guesses are compared. In three features a few change with nearly every update, wherever it happens;
# with half as many, two in twenty streams left none that ε-greedy ridge regression changed after a mistake.
_N_PROBES = 32
_N_FEATURES = 3


def is_ignorant(learner: Learner, rounds: int = 200) -> bool:
    """Return whether a learner seems to ignore its mistakes: what it would guess never changed after one.

    It is tried on random points with random labels, and its probabilities are compared at a few of them before and
    after every mistake. A change proves that it is not ignorant; no change is strong evidence, but no proof, that it
    is.

    Parameters
    ----------
    learner : Learner
        Not changed: a copy with two classes plays.
    rounds : int
        How many examples to try.

    Examples
    --------
    >>> import onebit
    >>> is_ignorant(onebit.NearestNeighbor()), is_ignorant(onebit.BanditPerceptron())
    (True, False)

    References
    ----------
    Beygelzimer et al. (2019). ICML. Definition 23 (ignorant algorithm).
    """
    copy: Learner = clone(learner).set_params(classes=2)
    generator = stream_generator(seed=0)
    X, labels = generator.uniform(-0.5, 0.5, (rounds, _N_FEATURES)), generator.random(rounds) < 0.5
    for t, label in enumerate(labels.astype(int)):
        probes = [*X[:_N_PROBES], X[t]]
        guess = copy.guess(X[t])
        correct = bool(guess.label == label)
        before = [copy.probabilities(x) for x in probes]
        copy.tell(guess, correct, **({"label": label} if copy.full_information else {}))
        if not correct and not np.array_equal(before, [copy.probabilities(x) for x in probes]):
            return False
    return True
