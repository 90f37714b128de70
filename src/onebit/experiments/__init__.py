"""Players × streams × seeds: the grid, the players, the store of results, and the executors."""

from onebit.experiments.grid import JSON, Cell, Spec, grid
from onebit.experiments.players import LearnerPlayer, Player, PlayerTrace, player_from
from onebit.experiments.run import CellError, Executor, WorkerWarning, run
from onebit.experiments.store import DamageWarning, MissingResultError, Played, Result, Store, StoreError
from onebit.experiments.workers import LocalProcesses

__all__ = [
    "JSON",
    "Cell",
    "CellError",
    "DamageWarning",
    "Executor",
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
    "WorkerWarning",
    "grid",
    "player_from",
    "run",
]
