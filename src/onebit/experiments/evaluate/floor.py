"""A learner with a floor of random guesses, so that other learners can be evaluated on its log."""

from typing import Any

import numpy as np

from onebit.experiments.evaluate.logged_rounds import LoggedRounds, logged_rounds
from onebit.inputs import check_number, check_rows, check_seed, take
from onebit.labels import check_labels, encode_labels
from onebit.learners import Learner


def play_with_floor(
    learner: Learner, X: Any, y: Any, *, floor: float = 0.02, seed: int = 0, name: str = "log"
) -> LoggedRounds:
    """Play a stream with a least propensity for every label, and return the log.

    In a share `floor` of the rounds the label is drawn uniformly, and the learner learns from it by `learn_from`; in
    the others it plays as usual. So each of K labels has a propensity of at least floor/K, and the log holds the
    propensity of the guessed label.

    Parameters
    ----------
    learner : Learner
        With its classes; it continues from its state.
    X : array or sparse matrix of shape (rounds, features)
        The rounds.
    y : array of shape (rounds,)
        Their labels, used only to answer right or wrong.
    floor : float
        How often a label is drawn uniformly, in [0, 1]; 0 to play as usual, and log the propensities.
    seed : int
        Seed of the floor's random numbers; the learner has its own.
    name : str
        What the log is called.

    Examples
    --------
    >>> import onebit
    >>> X, y = onebit.streams.paper_strong(rounds=100, seed=1)
    >>> log = play_with_floor(onebit.BanditPerceptron(classes=9), X, y, floor=0.09)
    >>> float(log.propensities.min().round(3)), float(log.propensities.max().round(3))
    (0.01, 0.92)
    """
    rate = check_number("floor", floor, at_least=0.0, at_most=1.0)
    rows = check_rows(X)
    labels = check_labels(y, rows.shape[0])
    learner.begin(rows.shape[1], fresh=False)
    classes = learner.classes_
    truths = encode_labels(labels, classes)
    random = np.random.default_rng(check_seed(seed))
    is_drawn, drawn = random.random(len(truths)) < rate, random.integers(len(classes), size=len(truths))
    guesses, chances = np.empty(len(truths), dtype=np.int64), np.empty(len(truths))
    for t, truth in enumerate(truths.tolist()):
        row: Any = take(rows, t, t + 1)
        if is_drawn[t]:
            own = float(learner.probabilities(row)[0, drawn[t]])
            guesses[t], chances[t] = drawn[t], (1.0 - rate) * own + rate / len(classes)
            label = classes[drawn[t] : drawn[t] + 1]
            learner.learn_from(row, label, bool(drawn[t] == truth), min(1.0, float(chances[t])))
        else:
            guess = learner.guess(row)
            guesses[t], chances[t] = guess.index, (1.0 - rate) * guess.propensity + rate / len(classes)
            extra = {"label": classes[truth : truth + 1].tolist()[0]} if learner.full_information else {}
            learner.tell(guess, guess.index == truth, **extra)
    chances = np.minimum(chances, 1.0)  # rounding
    return logged_rounds(X, classes[guesses], guesses == truths, chances, classes=classes, name=name)
