"""Players × streams × seeds: the grid, the players, the store of results, and the executors."""

from onebit.experiments.players import LearnerPlayer, Player, PlayerTrace, player_from
from onebit.experiments.run import CellError, Executor, LocalProcesses, WorkerWarning, run
from onebit.experiments.store import (
    JSON,
    Cell,
    DamageWarning,
    Played,
    Result,
    Spec,
    Store,
    StoreError,
    grid,
)

__all__ = [
    "JSON",
    "Cell",
    "CellError",
    "DamageWarning",
    "Executor",
    "LearnerPlayer",
    "LocalProcesses",
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
