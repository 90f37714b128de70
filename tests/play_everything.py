"""A program that plays every learner in every engine, on dense and on sparse rows, with late answers."""

import sys
from typing import Any

import numpy as np
import scipy.sparse

from onebit import play
from onebit.checks.problems import fresh, noisy_problem
from onebit.learners import Learner, all_learners


def play_all(learner: Learner) -> None:
    problem = noisy_problem(40)
    X = np.where(np.abs(problem.X) > 0.1, problem.X, 0.0)
    kinds: tuple[Any, ...] = X, scipy.sparse.csr_array(X)
    for rows in kinds:
        for engine in ("stream", "rounds"):
            player = fresh(learner, classes=4)
            play(player, rows, problem.y, engine=engine)
        player.predict(rows)
        player.probabilities(rows[[0]] if scipy.sparse.issparse(rows) else rows[0])
        guesses = [player.guess(rows[[t]] if scipy.sparse.issparse(rows) else rows[t]) for t in range(8)]
        for guess, label in reversed(list(zip(guesses, problem.y, strict=False))):
            named = {"label": label} if player.full_information else {}
            player.tell(guess, bool(guess.label == label), **named)


if __name__ == "__main__":
    chosen = sys.argv[1:]
    played = 0
    for cls in all_learners():
        if not chosen or cls.__name__ in chosen:
            for example in list(cls.examples())[: 1 if chosen else None]:
                play_all(example)
                played += 1
    print(played)
