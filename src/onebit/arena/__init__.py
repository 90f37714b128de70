"""Learners × streams × seeds: what to play, where results are kept, and who plays."""

from onebit.arena.executors import CellError, run
from onebit.arena.grid import JSON, Batch, Cell, Spec, batches, grid
from onebit.arena.store import MissingResultError, Result, Store, StoreError

__all__ = [
    "JSON",
    "Batch",
    "Cell",
    "CellError",
    "MissingResultError",
    "Result",
    "Spec",
    "Store",
    "StoreError",
    "batches",
    "grid",
    "run",
]
