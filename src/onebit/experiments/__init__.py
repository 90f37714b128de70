"""Players × streams × seeds: the grid, the players, the store of results, and the executors."""

from onebit.experiments.grid import JSON, Batch, Cell, Spec, batches, grid
from onebit.experiments.players import LearnerPlayer, Player, PlayerTrace, player_from
from onebit.experiments.run import CellError, Executor, InThisProcess, LocalProcesses, Played, in_order, run
from onebit.experiments.store import DamageWarning, MissingResultError, Result, Store, StoreError

__all__ = [
    "JSON",
    "Batch",
    "Cell",
    "CellError",
    "DamageWarning",
    "Executor",
    "InThisProcess",
    "LearnerPlayer",
    "LocalProcesses",
    "MissingResultError",
    "Played",
    "Player",
    "PlayerTrace",
    "Result",
    "Spec",
    "Store",
    "StoreError",
    "batches",
    "grid",
    "in_order",
    "player_from",
    "run",
]
