"""``onebit accept-loss``."""

from pathlib import Path
from typing import Annotated

from rich.console import Console

from onebit.decider.decider import Decider
from onebit.reporting.console import print_line


def command(path: Annotated[Path, "The decider's file."]) -> None:
    """Let a decider go on whose file has lost events; the loss is noted in its log."""
    with Decider.open(path, accept_loss=True) as decider:
        lost = decider.lost
    outcome = "nothing was lost, and nothing is changed"
    if lost is not None:
        outcome = (
            f"event {lost['acknowledged']} was acknowledged, and event {lost['found']} is the last that was found; "
            "this is noted in the log, and the decider goes on from there"
        )
    print_line(Console(), f"{path}: {outcome}.")
