"""Players × streams × seeds: the grid, the players, the store of results, and the executors."""

from onebit.arena.executors import CellError, Executor, InThisProcess, LocalProcesses, Played, in_order, run
from onebit.arena.grid import JSON, Batch, Cell, Spec, batches, grid
from onebit.arena.players import LearnerPlayer, Player, PlayerTrace, player_from
from onebit.arena.store import DamageWarning, MissingResultError, Result, Store, StoreError

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
