"""Rivals that are Python packages: river, coba and contextualbandits, each played in a process of its own.

They are entered by import path, from a clone of the repository: ``PYTHONPATH=benchmarks onebit compare iris --rival
rivals:river``. They need not be installed beside onebit. The environment variable `ENVIRONMENT` names the folder of a
virtual environment that holds them, such as ``make rivals`` builds; without it they are looked for where onebit is.
What runs there is `program.py`, which defines the feedback of each. Versions are part of every key, and the program
reports those it has played with.
"""

import inspect
import json
import os
import sys
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from onebit.experiments.players import TOO_LITTLE, Player, PlayerTrace
from onebit.experiments.run import run_program
from onebit.experiments.store import JSON, Spec
from onebit.import_paths import import_path_of
from onebit.inputs import Integers, check_choice, check_number
from onebit.learners.run import default_checkpoints
from rivals import program

ENVIRONMENT = "ONEBIT_RIVALS"
"""The environment variable that names the folder of the rivals' virtual environment."""
# Every library that they may compute with reads its own variable.
_LIBRARIES = ("OPENBLAS", "OMP", "MKL", "VECLIB", "NUMBA")
_STARTING = 300.0  # seconds for a program to report its versions: a network folder may be slow
_SEEDS = 2**31 - 1  # all of them take as many
_PYTHON = 1e5  # numbers that could be touched in the time of a few calls of theirs


class PythonRival(Player):
    """One setting of a rival; a subclass defines the rival."""

    package: ClassVar[str]
    """What it is called by pip, by ``import`` and in tables."""
    computes_with: ClassVar[tuple[str, ...]]
    """Further packages whose versions decide its games."""
    models: ClassVar[tuple[str, ...]]
    """What can play."""
    grid: ClassVar[tuple[dict[str, Any], ...]]
    """Settings to be tuned in hindsight; the constructor's own defaults are what one gets without."""

    def __init__(self, settings: dict[str, JSON], version: str | None) -> None:
        check_choice("model", settings["model"], self.models)
        for name in settings.keys() - {"model"}:
            if settings[name] not in (None, 0):  # none at all, if the package allows it
                check_number(name, settings[name], above=0)
        self.settings = settings
        self.version = require(self.package, self.computes_with) if version is None else version
        self.note = f"{self.package} plays in a process of its own, its time is that of its rounds alone"

    @property
    def spec(self) -> Spec:
        """Its settings, and the versions of all that decides its games."""
        return Spec(import_path_of(type(self)), {**self.settings, "version": self.version})

    @property
    def _is_default(self) -> bool:
        defaults = inspect.signature(type(self)).parameters
        return all(value == defaults[name].default for name, value in self.settings.items())

    @property
    def title(self) -> str:
        """The settings that are not the package's own; those of the constructor are called the default."""
        if self._is_default:
            return f"{self.package} default"
        chosen = [f"{name}={value}" for name, value in self.settings.items() if name != "model" and value is not None]
        return f"{self.package} {' '.join([str(self.settings['model']), *chosen])}"

    def code(self) -> set[str]:
        """Return this module and the program: it does not depend on our learners' code."""
        return {__name__, program.__name__}

    def play(self, X: Any, y: Integers, n_classes: int, seed: int, scratch: Path) -> PlayerTrace:
        """Play rounds that the first of these rivals to play them has written for all."""
        rounds, guesses = scratch / "rounds.npz", scratch / "guesses.npy"
        if not rounds.exists():
            write_rounds(rounds, X, y)
        # Remove the guesses of the previous player.
        guesses.unlink(missing_ok=True)
        request = {
            **self.settings,
            "rival": self.package,
            "packages": [self.package, *self.computes_with],
            "n_classes": n_classes,
            "seed": seed % _SEEDS,
            "rounds": str(rounds),
            "guesses": str(guesses),
        }
        (scratch / "request.json").write_text(json.dumps(request), encoding="utf-8")
        reply = _run(["play", str(scratch / "request.json")], self.title, self.patience, TOO_LITTLE)
        version = _in_words(reply["versions"])
        if version != self.version:
            raise RuntimeError(f"{self.title} was to play with {self.version} and has played with {version}; run again")
        named = read_guesses(guesses, len(y), n_classes, self.title)
        return PlayerTrace(np.cumsum(named != y)[default_checkpoints(len(y)) - 1], seconds=reply["seconds"])


class River(PythonRival):
    """A one-vs-rest classifier of river, with ε-greedy exploration around it.

    Parameters
    ----------
    model : {"LogisticRegression", "PAClassifier", "Perceptron"}
        The binary models. After a right guess the classifier learns the label; after a wrong one, the model of the
        class that was named learns that it is not this one.
    rate : float, optional
        The learning rate of the logistic regression, C of the passive-aggressive classifier; river's own by default.
    exploration : float
        The share of rounds with a uniform guess.
    version : str, optional
        The version that plays; by default the installed one.
    """

    package, computes_with = "river", ("numpy",)
    models = ("LogisticRegression", "PAClassifier", "Perceptron")
    grid = (
        *({"model": "LogisticRegression", "rate": r, "exploration": e} for r in (0.03, 0.1, 0.3) for e in (0.01, 0.05)),
        *({"model": "PAClassifier", "rate": r, "exploration": 0.05} for r in (0.01, 0.1)),
        {"model": "Perceptron", "rate": None, "exploration": 0.05},
    )

    def effort(self, *, rounds: int, n_features: int, n_classes: int) -> float:
        """Return its work: every number is found by its name, in Python."""
        return 100.0 * rounds * n_features * n_classes

    def __init__(
        self,
        model: str = "LogisticRegression",
        rate: float | None = None,
        exploration: float = 0.05,
        version: str | None = None,
    ) -> None:
        super().__init__({"model": model, "rate": rate, "exploration": exploration}, version)


class Coba(PythonRival):
    """A learner of coba; those that need Vowpal Wabbit are left to `onebit.experiments.vowpal_wabbit`.

    Parameters
    ----------
    model : {"LinUCBLearner", "LinTSLearner", "BanditEpsilonLearner"}
        The linear ones keep one matrix for all classes together, (features × classes)². The last does not look at rows.
    exploration : float, optional
        Its alpha, v or epsilon; coba's own by default.
    version : str, optional
        The version that plays; by default the installed one.
    """

    package, computes_with = "coba", ("numpy",)
    models = ("LinUCBLearner", "LinTSLearner", "BanditEpsilonLearner")
    grid = (
        *({"model": "LinUCBLearner", "exploration": alpha} for alpha in (0.03, 0.1, 0.3)),
        {"model": "BanditEpsilonLearner", "exploration": 0.05},
    )

    def effort(self, *, rounds: int, n_features: int, n_classes: int) -> float:
        """Return its work: the whole matrix times the features of every action, or a draw with that covariance."""
        size = n_features * n_classes if self.settings["model"] != "BanditEpsilonLearner" else 1
        draws = size**3 if self.settings["model"] == "LinTSLearner" else 0
        return float(rounds) * ((n_classes + 3) * size**2 + draws + _PYTHON)

    def __init__(
        self, model: str = "LinUCBLearner", exploration: float | None = None, version: str | None = None
    ) -> None:
        super().__init__({"model": model, "exploration": exploration}, version)


class ContextualBandits(PythonRival):
    """A policy of contextualbandits.

    Parameters
    ----------
    model : {"LinUCB", "LinTS", "EpsilonGreedy", "SoftmaxExplorer"}
        The linear ones learn after every round. The others explore around scikit-learn's logistic regression, refitted
        on all rounds so far whenever they have grown by a fifth.
    exploration : float, optional
        Its alpha, v_sq, explore_prob or multiplier; the package's own by default.
    version : str, optional
        The version that plays; by default the installed one.
    """

    package, computes_with = "contextualbandits", ("numpy", "scipy", "scikit-learn")
    models = ("LinUCB", "LinTS", "EpsilonGreedy", "SoftmaxExplorer")
    grid = (
        *({"model": "LinUCB", "exploration": alpha} for alpha in (0.03, 0.1, 0.3)),
        *({"model": "EpsilonGreedy", "exploration": share} for share in (0.05, 0.2)),
        {"model": "SoftmaxExplorer", "exploration": None},
    )

    def effort(self, *, rounds: int, n_features: int, n_classes: int) -> float:
        """Return its work: a matrix for every class, or refits of all rounds so far."""
        power = {"LinUCB": 2, "LinTS": 3}.get(str(self.settings["model"]), 1)
        return float(rounds * n_classes * (n_features**power + _PYTHON))

    def __init__(self, model: str = "LinUCB", exploration: float | None = None, version: str | None = None) -> None:
        super().__init__({"model": model, "exploration": exploration}, version)


def players(rival: type[PythonRival], whole_grid: bool = True) -> list[Player]:
    """Return a rival's default and, unless that is enough, the settings of its grid."""
    make: Any = rival
    tuned = [make(**each) for each in (rival.grid if whole_grid else ())]
    for player in tuned:
        player.family = rival.package
    return [make(), *tuned]


river, coba, contextualbandits = (partial(players, rival) for rival in (River, Coba, ContextualBandits))


def require(package: str, computes_with: Sequence[str]) -> str:
    """Return the installed versions as text, or raise an error with the command to install it."""
    found = _versions(_python(), package, *computes_with)
    if found[package] is None:
        raise RuntimeError(
            f"{package} is not installed {_where()}; build an environment that has it with: make rivals, and name its "
            f"folder in {ENVIRONMENT}; or install it here with: pip install {package}"
        )
    return _in_words(found)


def write_rounds(path: Path, X: Any, y: Integers) -> None:
    """Write rows and labels for the program."""
    if scipy.sparse.issparse(X):
        rows = X.tocsr()
        np.savez(path, data=rows.data, indices=rows.indices, indptr=rows.indptr, n_columns=X.shape[1], y=y)
    else:
        np.savez(path, X=X, n_columns=X.shape[1], y=y)


def read_guesses(path: Path, n_rounds: int, n_classes: int, who: str) -> Integers:
    """Return the guesses, one for every round, or raise if that is not what was written."""
    guesses: Integers = np.load(path)
    if guesses.ndim != 1:
        raise RuntimeError(f"{who} wrote an array of shape {guesses.shape} instead of its guesses")
    if guesses.shape != (n_rounds,):
        raise RuntimeError(f"{who} answered {len(guesses)} of {n_rounds} rounds")
    if guesses.dtype.kind not in "iu":
        raise RuntimeError(f"{who} wrote guesses that are no whole numbers, but {guesses.dtype}")
    if guesses.min() < 0 or guesses.max() >= n_classes:
        raise RuntimeError(f"{who} named a label beyond the {n_classes} that there are")
    return guesses


def _where() -> str:
    folder = os.environ.get(ENVIRONMENT)
    return f"in {folder}" if folder else "beside onebit"


def _python() -> str:
    """Return the Python of the rivals' environment."""
    folder = os.environ.get(ENVIRONMENT)
    if not folder:
        return sys.executable
    python = Path(folder) / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.is_file():
        raise RuntimeError(
            f"{ENVIRONMENT}={folder}: has no {python.relative_to(folder)}; build it with: make rivals RIVALS={folder}"
        )
    return str(python)


@lru_cache  # every setting of a grid asks
def _versions(python: str, *packages: str) -> dict[str, str | None]:
    slow = f"it did not say its versions; try {python} by hand"
    found: dict[str, str | None] = _run(["versions", *packages], packages[0], _STARTING, slow, python)
    return found


def _in_words(versions: dict[str, str | None]) -> str:
    return ", ".join(f"{package} {version}" for package, version in versions.items())


def _run(words: Sequence[str], who: str, seconds: float, remedy: str, python: str | None = None) -> Any:
    """Run the program, and return its JSON reply."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    # The same order of sets and the same sums in every run, as for our own learners.
    settled = {"PYTHONHASHSEED": "0", **dict.fromkeys((f"{name}_NUM_THREADS" for name in _LIBRARIES), "1")}
    command = [python or _python(), "-s", "-P", "-W", "ignore", str(program.__file__), *words]
    run = run_program(command, who, seconds, remedy, {**kept, **settled})
    if run.returncode != 0:
        last_line = [line for line in run.stderr.splitlines() if line.strip()][-1:] or ["nothing"]
        raise RuntimeError(f"{who} stopped with status {run.returncode}; it said: {last_line[0]}")
    last = run.stdout.splitlines()[-1:]
    try:
        return json.loads(last[0])
    except (IndexError, ValueError) as error:
        raise RuntimeError(f"{who} ended without saying what it did; its last words: {last}") from error
