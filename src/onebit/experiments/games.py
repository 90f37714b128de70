"""The games of a comparison: which rows are played, in which order, by which players.

All that decides a game beside the players' own code is here, since this module is in the key of every stored game.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from onebit.engine.loop import default_checkpoints
from onebit.experiments.grid import Batch, Spec
from onebit.experiments.players import player_from
from onebit.experiments.run import Played
from onebit.experiments.workers import batch_folder
from onebit.inputs import Integers
from onebit.streams.preprocess import preprocess
from onebit.streams.sources import Source, changed, draw_source, load


def make_rounds(stream: Spec, source: Source, seed: int) -> tuple[Any, Any, Integers, int]:
    """Return the rows of one run in order, as they come and preprocessed, their labels, and the number of classes."""
    settings: dict[str, Any] = dict(stream.settings)
    if source.stream is not None:
        raw, y, n_classes = draw_source(source, settings["rounds"], seed)
    else:
        data = load(source)
        # The parent keyed the results by what it read; a worker must not store those of other rows under that key.
        if data.content != settings["content"]:
            raise ValueError(f"{source.path or source.name} has changed while it was being played; run again")
        n_classes = data.n_classes
        raw, y = changed(source, *data.shuffled(seed, settings["rounds"]), n_classes, seed)
    return raw, preprocess(raw, str(settings["preprocessing"]), bool(settings["unit_length"])), y, n_classes


def play_batch(source: Source, keep_learned: bool, patience: float, batch: Batch) -> Iterator[Played]:
    """Make the rounds once and let every player of the batch play them.

    A learner that scales columns itself gets rows that are not preprocessed.
    """
    raw, X, y, n_classes = make_rounds(batch.stream, source, batch.seed)
    # A generator's `with` ends when the last cell is taken, or when the batch is given up.
    with batch_folder() as scratch:
        for cell in batch.cells:
            player = player_from(cell.player)
            object.__setattr__(player, "patience", patience)  # a user's player may be a frozen dataclass
            start = time.perf_counter()
            trace = player.play(raw if player.scales_rows else X, y, n_classes, cell.seed, scratch)
            seconds = time.perf_counter() - start if trace.seconds is None else float(trace.seconds)
            _check_curve(trace.curve, len(y))
            yield Played(cell, trace.result(keep_learned), seconds if np.isfinite(seconds) else None)


def _check_curve(curve: Any, n_rounds: int) -> None:
    """Raise if a user's player has returned an invalid trace."""
    expected = len(default_checkpoints(n_rounds))
    if np.shape(curve) != (expected,) or np.asarray(curve).dtype.kind not in "iu":
        raise ValueError(
            f"a player's curve must hold whole numbers, its mistakes after each of the {expected} rounds of "
            f"onebit.engine.loop.default_checkpoints({n_rounds}); got shape {np.shape(curve)}"
        )
