"""What ``onebit accept-loss`` does."""

from pathlib import Path

from rich.console import Console

from onebit.decider.decider import Decider


def accept_loss_command(path: Path) -> None:
    """Let a decider's file go on although events are gone that were acknowledged, and print which."""
    with Decider.open(path, accept_loss=True) as desk:
        lost = desk.lost
    if lost is None:
        said = "nothing was lost, and nothing is changed"
    else:
        said = f"event {lost['acknowledged']} was acknowledged, and event {lost['found']} is the last that was found"
        said += "; this is noted in the log, and the decider goes on from there"
    Console().print(f"{path}: {said}.", soft_wrap=True, markup=False, highlight=False)
