"""Figures as files: what is to be drawn, and drawing it, in several processes where that is faster."""

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from onebit.reporting.style import FigureFile, save

# Another process needs a second or two to import matplotlib, in which this one draws four figures.
_FEW = 4


class Drawing(NamedTuple):
    """A figure that is to be drawn."""

    name: str
    """Of its files, such as "figure_4"."""
    title: str
    caption: str
    draw: Callable[[], Figure]
    """A top-level function, or a `functools.partial` of one: another process may call it."""


def draw_files(drawings: Sequence[Drawing], folder: Path, jobs: int = 1) -> list[FigureFile]:
    """Draw figures, save each as PNG and SVG, and return them in their order.

    Parameters
    ----------
    drawings : sequence of Drawing
        What to draw.
    folder : Path
        Where to; made if it is missing.
    jobs : int
        The most processes to draw in; the files are the same.
    """
    folder.mkdir(parents=True, exist_ok=True)
    n_workers = min(jobs, len(drawings) // _FEW)
    if n_workers < 2:
        return [_draw(folder, drawing) for drawing in drawings]
    with ProcessPoolExecutor(n_workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        # Last first: those with the most to compute come last in a report.
        return list(pool.map(partial(_draw, folder), reversed(drawings)))[::-1]


def _draw(folder: Path, drawing: Drawing) -> FigureFile:
    name, title, caption, draw = drawing
    return FigureFile(name, title, caption, *save(draw(), folder, name))
