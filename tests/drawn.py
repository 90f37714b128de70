"""Figures that are drawn and saved, as pages do it."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from onebit.reporting.figures import save
from onebit.reporting.pages import Drawing


class Drawn(NamedTuple):
    """A figure with its files."""

    name: str
    title: str
    caption: str
    png: Path
    svg: Path


def draw_files(drawings: Sequence[Drawing], folder: Path) -> list[Drawn]:
    """Draw figures, save each as PNG and SVG in the folder, and return them."""
    return [Drawn(name, title, caption, *save(draw(), folder, name)) for name, title, caption, draw in drawings]
