"""The program that plays a rival, in the environment of the rival: onebit is not there.

``program.py versions PACKAGE …`` prints what is installed. ``program.py play REQUEST`` reads a JSON file
with the player and the rounds, writes the guesses, and prints the versions and how long the rounds took. A rival gets a
row, guesses a label, and gets 1 or 0; labels are used only for that feedback.
"""

import importlib.metadata
import json
import platform
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Answer = Callable[[int, int], bool]
"""Whether a guess is right in a round."""
Play = Callable[[Answer], list[int]]
"""Plays all rounds and returns the guesses: the part that is timed, without imports."""

# A refit uses all rounds so far: whenever their number has grown by a fifth.
_GROWTH, _FEWEST = 1.2, 20


class Rounds:
    """Rows in the forms that rivals take."""

    def __init__(self, path: str) -> None:
        with np.load(path) as arrays:
            self.y = arrays["y"]
            self._rows = None if "indptr" in arrays else arrays["X"]
            self._parts = None if self._rows is not None else [arrays[name] for name in ("data", "indices", "indptr")]
            self.n_columns = int(arrays["n_columns"])

    def __len__(self) -> int:
        return len(self.y)

    def matrix(self) -> Any:
        """All rows: an array, or a CSR matrix."""
        if self._parts is None:
            return self._rows
        from scipy.sparse import csr_matrix

        return csr_matrix(tuple(self._parts), shape=(len(self), self.n_columns))

    def row(self, t: int) -> list[float]:
        """One row as a list."""
        if self._parts is None:
            values: list[float] = self._rows[t].tolist()  # type: ignore[index]
            return values
        row = np.zeros(self.n_columns)
        data, indices, indptr = self._parts
        row[indices[indptr[t] : indptr[t + 1]]] = data[indptr[t] : indptr[t + 1]]
        return row.tolist()

    def named(self, t: int) -> dict[str, float]:
        """One row by the names of its columns; what is 0 in a sparse row is left out."""
        if self._parts is None:
            return {f"f{j}": value for j, value in enumerate(self.row(t))}
        data, indices, indptr = self._parts
        part = slice(indptr[t], indptr[t + 1])
        return {f"f{j}": value for j, value in zip(indices[part].tolist(), data[part].tolist(), strict=True)}


def prepare_river(rounds: Rounds, request: dict[str, Any]) -> Play:
    """Prepare river's one-vs-rest classifier, ε-greedily.

    A right guess reveals the label, and the classifier learns it as usual; after a wrong one, only the model of the
    guessed class learns, a negative example.
    """
    from river import linear_model, multiclass, optim

    n_classes, rate, exploration = request["n_classes"], request["rate"], request["exploration"]
    model = {
        "LogisticRegression": lambda: linear_model.LogisticRegression(None if rate is None else optim.SGD(rate)),
        "PAClassifier": lambda: linear_model.PAClassifier(**({} if rate is None else {"C": rate})),
        "Perceptron": linear_model.Perceptron,
    }[request["model"]]()
    classifier = multiclass.OneVsRestClassifier(model)
    # It creates a class at its first example; here all are created at the start.
    classifier.classifiers = {label: model.clone() for label in range(n_classes)}

    def play(answer: Answer) -> list[int]:
        generator, guesses = random.Random(request["seed"]), []
        for t in range(len(rounds)):
            row = rounds.named(t)
            chances = classifier.predict_proba_one(row)
            explores = generator.random() < exploration
            guess = generator.randrange(n_classes) if explores else max(chances, key=chances.__getitem__)
            if answer(t, guess):
                classifier.learn_one(row, guess)
            else:
                classifier.classifiers[guess].learn_one(row, False)
            guesses.append(guess)
        return guesses

    return play


def prepare_coba(rounds: Rounds, request: dict[str, Any]) -> Play:
    """Prepare a learner of coba: actions are unit vectors, the features are all products of action and row."""
    from coba import learners

    model, exploration, seed = request["model"], request["exploration"], request["seed"]
    settings: dict[str, Any] = {"seed": seed}
    if model in ("LinUCBLearner", "LinTSLearner"):
        settings["features"] = ["ax"]
    if exploration is not None:
        settings[{"LinUCBLearner": "alpha", "LinTSLearner": "v"}.get(model, "epsilon")] = exploration
    learner = getattr(learners, model)(**settings)
    actions = [tuple(int(k == label) for k in range(request["n_classes"])) for label in range(request["n_classes"])]
    labels = {action: label for label, action in enumerate(actions)}

    def play(answer: Answer) -> list[int]:
        guesses = []
        for t in range(len(rounds)):
            row = rounds.row(t)
            action, chance = learner.predict(row, actions)
            guess = labels[tuple(action)]
            learner.learn(row, action, float(answer(t, guess)), chance)
            guesses.append(guess)
        return guesses

    return play


def prepare_contextualbandits(rounds: Rounds, request: dict[str, Any]) -> Play:
    """Prepare a policy of contextualbandits.

    Linear ones learn after every round. The others are put around scikit-learn's logistic regression, and refitted on
    all rounds so far whenever their number has grown by a fifth.
    """
    from contextualbandits import online

    model, exploration, n_classes = request["model"], request["exploration"], request["n_classes"]
    name = {"LinUCB": "alpha", "LinTS": "v_sq", "EpsilonGreedy": "explore_prob"}.get(model, "multiplier")
    chosen = {} if exploration is None else {name: exploration}
    # Its seeds begin with 1. Rows bring their constant.
    settings: dict[str, Any] = {"nchoices": n_classes, "random_state": request["seed"] + 1, "njobs": 1, **chosen}
    guesses, rights = np.zeros(len(rounds), dtype=np.int64), np.zeros(len(rounds))
    if model in ("LinUCB", "LinTS"):
        policy = getattr(online, model)(fit_intercept=False, **settings)

        def play_one_by_one(answer: Answer) -> list[int]:
            for t in range(len(rounds)):
                row = np.array([rounds.row(t)])  # its own code cannot take one sparse row
                guesses[t] = policy.predict(row)[0]
                rights[t] = answer(t, int(guesses[t]))
                policy.partial_fit(row, guesses[t : t + 1], rights[t : t + 1])
            return guesses.tolist()

        return play_one_by_one
    from sklearn.linear_model import LogisticRegression

    policy = getattr(online, model)(LogisticRegression(fit_intercept=False, max_iter=300), **settings)

    def play_with_refits(answer: Answer) -> list[int]:
        X, start = rounds.matrix(), 0
        while start < len(rounds):
            stop = min(max(start + _FEWEST, int(start * _GROWTH)), len(rounds))
            guesses[start:stop] = policy.predict(X[start:stop])
            rights[start:stop] = [answer(t, int(guesses[t])) for t in range(start, stop)]
            policy.fit(X[:stop], guesses[:stop], rights[:stop])
            start = stop
        return guesses.tolist()

    return play_with_refits


PREPARE = {"river": prepare_river, "coba": prepare_coba, "contextualbandits": prepare_contextualbandits}


def versions(packages: list[str]) -> dict[str, str | None]:
    """Return what is installed here; None for what is not."""
    found: dict[str, str | None] = {}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return {**found, "python": ".".join(platform.python_version_tuple()[:2])}


def play(path: str) -> dict[str, Any]:
    """Play a request, and return the reply."""
    with open(path, encoding="utf-8") as file:
        request = json.load(file)
    rounds = Rounds(request["rounds"])
    labels = rounds.y.tolist()
    play_rounds = PREPARE[request["rival"]](rounds, request)
    start = time.perf_counter()
    guesses = play_rounds(lambda t, guess: bool(labels[t] == guess))
    seconds = time.perf_counter() - start
    np.save(request["guesses"], np.array(guesses, dtype=np.int64))
    return {"seconds": seconds, "versions": versions(request["packages"])}


if __name__ == "__main__":
    reply = versions(sys.argv[2:]) if sys.argv[1] == "versions" else play(sys.argv[2])
    print(json.dumps(reply))
