"""Vowpal Wabbit as a rival: multiclass data played as a bandit with ``--cbify``, on the same rounds as all players.

One line per round, ``LABEL | f0:… f1:…``, with labels 1…K and five significant digits. Feature names are not bare
integers, which Vowpal Wabbit takes as raw indices that collide with its per-action offsets. The rows bring their own
constant column, so ``--noconstant``. Its summed loss is the number of progressive mistakes; the predictions that it
writes give the curve, and the two are compared.
"""

import importlib.metadata
import math
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from onebit.experiments.players import PATIENCE, TOO_LITTLE, Player, PlayerTrace
from onebit.experiments.run import run_program
from onebit.experiments.store import Spec
from onebit.extras import require_extra
from onebit.import_paths import import_path_of
from onebit.inputs import Integers
from onebit.learners.run import default_checkpoints

_FAMILY = "VW"
_DEFAULT = "--epsilon 0.05"  # what one gets without tuning: this exploration, the default learning rate
LEARNING_RATES = ("0.1", "0.5", "2")  # its default, a fifth of it and four times it
# One or two of every way in which it can explore; where costs of −1 and 0 instead of 0 and 1 help, with those.
_EXPLORATIONS = (
    "--epsilon 0.05",
    "--epsilon 0.02 --loss0 -1 --loss1 0",
    "--squarecb --gamma_scale 100",
    "--squarecb --gamma_scale 10 --loss0 -1 --loss1 0",
    "--regcbopt --mellowness 0.001",
    "--cover 4 --nounif --cb_type dr",
    "--cover 8 --nounif --cb_type dr --loss0 -1 --loss1 0",
    "--bag 4 --greedify --cb_type dr",
    "--first 300",
    "--epsilon 0 --loss0 -1 --loss1 0",
)
_GRID = tuple(f"{exploration} -l {rate}" for exploration in _EXPLORATIONS for rate in LEARNING_RATES)
"""What one can get by tuning in hindsight: thirty settings, the best of which counts."""


class VowpalWabbit(Player):
    """One setting of Vowpal Wabbit: its options, and the version that plays, by default the installed."""

    note = f"{_FAMILY}'s time has its start-up and the reading of its text in it"

    def __init__(self, options: str, version: str | None = None) -> None:
        self.options = options
        self.version = require() if version is None else version
        self.family = None if options == _DEFAULT else _FAMILY

    @property
    def spec(self) -> Spec:
        """Its options and its version."""
        return Spec(import_path_of(type(self)), {"options": self.options, "version": self.version})

    @property
    def title(self) -> str:
        """The options; the default is called so."""
        return f"{_FAMILY} default" if self.options == _DEFAULT else f"{_FAMILY} {self.options}"

    def code(self) -> set[str]:
        """Return this module alone: it does not depend on our learners' code, and its grid is slow to play."""
        # Nor on the loop module of default_checkpoints: the checkpoints themselves are in every key.
        return {__name__}

    def play(self, X: Any, y: Integers, n_classes: int, seed: int, scratch: Path) -> PlayerTrace:
        """Play rounds that the first setting to play them has written for all."""
        rounds = scratch / "rounds.vw"
        if not rounds.exists():
            write_rounds(rounds, X, y)
        guesses, seconds = play_rounds(self.options, n_classes, rounds, y, self.patience)
        return PlayerTrace(np.cumsum(guesses != y)[default_checkpoints(len(y)) - 1], seconds=seconds)


def players(whole_grid: bool = True) -> list[Player]:
    """Return its default and, unless that is enough, the settings of its grid."""
    return [VowpalWabbit(options) for options in (_DEFAULT, *(_GRID if whole_grid else ()))]


def require() -> str:
    """Return the installed version, or raise an error with the command to install it."""
    require_extra("Vowpal Wabbit needs", "rivals")
    return importlib.metadata.version("vowpalwabbit")


def write_rounds(path: Path, X: Any, y: Integers) -> None:
    """Write rows and labels as Vowpal Wabbit's text."""
    with path.open("w", encoding="ascii") as file:
        if scipy.sparse.issparse(X):
            rows = X.tocsr()
            for t, label in enumerate(y.tolist()):
                part = slice(rows.indptr[t], rows.indptr[t + 1])
                pairs = zip(rows.indices[part].tolist(), rows.data[part].tolist(), strict=True)
                file.write(f"{label + 1} | " + " ".join(f"f{j}:{value:.5g}" for j, value in pairs) + "\n")
        else:
            template = "%d | " + " ".join(f"f{j}:%.5g" for j in range(X.shape[1])) + "\n"
            file.writelines(template % (label + 1, *row.tolist()) for row, label in zip(X, y.tolist(), strict=True))


def play_rounds(
    options: str, n_classes: int, rounds: Path, y: Integers, patience: float = PATIENCE
) -> tuple[Integers, float]:
    """Let Vowpal Wabbit play the rounds of `write_rounds`; return its guesses, and the seconds of the whole command."""
    predictions = rounds.with_suffix(".predictions")
    predictions.unlink(missing_ok=True)  # those of the previous setting
    start = time.perf_counter()
    name = f"Vowpal Wabbit {options}"
    run = run_program(_command(options, n_classes, rounds, predictions), name, patience, TOO_LITTLE)
    seconds = time.perf_counter() - start
    if run.returncode != 0 or not predictions.exists():
        last_line = [line for line in run.stderr.splitlines() if line.strip()][-1:] or ["nothing"]
        raise RuntimeError(f"{name} stopped with status {run.returncode}; its last line: {last_line[0]}")
    # A crash in the middle leaves a shorter file and, sometimes, status 0.
    words = predictions.read_text(encoding="ascii").split()
    if len(words) != len(y):
        raise RuntimeError(f"Vowpal Wabbit answered {len(words)} of {len(y)} rounds")
    guesses: Integers = np.array([int(float(word)) for word in words], dtype=np.int64) - 1
    _check_loss(run.stderr, int(np.count_nonzero(guesses != y)), len(y))
    return guesses, seconds


def _command(options: str, n_classes: int, rounds: Path, predictions: Path) -> list[str]:
    vw = [sys.executable, "-m", "vowpalwabbit", "--cbify", str(n_classes), *options.split(), "--noconstant"]
    return [*vw, "-d", str(rounds), "-p", str(predictions)]


def _check_loss(output: str, mistakes: int, n_rounds: int) -> None:
    """Raise unless Vowpal Wabbit's own summed loss is the number of mistakes in its predictions."""
    found = re.search(r"^average loss = (-?\d[-+.\de]*)$", output, re.MULTILINE)
    loss = float(found[1]) if found else math.nan
    # It prints six decimals of the average, enough to distinguish two counts.
    if not abs(loss * n_rounds - mistakes) <= 0.5 + 1e-6 * n_rounds:
        raise RuntimeError(
            f"Vowpal Wabbit reports an average loss of {loss:g} over {n_rounds} rounds, but its predictions hold "
            f"{mistakes} mistakes"
        )
