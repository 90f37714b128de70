"""The colour, dashes and marker of every learner: the same in all figures of all commands.

``looks.json`` has the colours: the hue is the learner's, and relatives have neighbours of it. Of the tones of
each the first is that without settings, the second that without a kernel, the third that with another kernel; Banditron
has one for each exploration, from a twentieth to a two-thousandth. Other settings change the dashes, and the marker
where there is no line. Dots and hollow markers are for learners with full information.
"""

import json
import math
import re
import zlib
from collections.abc import Iterable, Sequence
from importlib.resources import files
from itertools import product
from typing import Any, NamedTuple

INK = "#222222"  # nearly black: softer than black on white
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F5539", INK)
"""Okabe and Ito's palette, which the colour-blind can tell apart; its yellow (too pale for lines) replaced by brown."""
_Dashes = tuple[float, Sequence[float]]  # offset, and lengths of strokes and gaps in line widths


class Look(NamedTuple):
    """How one learner is drawn."""

    color: str
    dashes: _Dashes
    marker: str
    fill: str  # of its marker: its colour, or white

    def mark(self) -> dict[str, Any]:
        """Return how matplotlib draws its mark, without a line."""
        return {"color": self.color, "marker": self.marker, "markerfacecolor": self.fill, "linestyle": ""}


class Shown(NamedTuple):
    """A player that is to be drawn."""

    title: str  # what it is called in this figure
    written: str
    """What it is: a learner as Python writes it, such as "Banditron(exploration=0.02)", or a rival's own name."""
    full_information: bool = False


_GIVEN: dict[str, Any] = json.loads(files("onebit.reporting").joinpath("looks.json").read_text(encoding="utf-8"))
_LEARNERS, _OTHER_TONES, _MARKERS = _GIVEN["learners"], _GIVEN["other_tones"], _GIVEN["markers"]
_DASHES, _DOTS = ([(0, tuple(strokes)) for strokes in _GIVEN[kind]] for kind in ("dashes", "dots"))
_KERNEL = re.compile(r"kernel=(None)?")
# The name, the kernel, and settings of how rows are given rather than of the learner.
_NO_SETTING = re.compile(r"^[^(\s:]*[(\s:]?|kernel=[^,]*|(radius|scale)=[^,)]*")
_EXPLORATION = re.compile(r"Banditron\(exploration=([\d.e-]+)")
# A rival's settings have no names that could be read.
_RIVAL = re.compile(r".* (default|best setting|best per run)")
_RUNGS_OF_DEFAULT = round(3 * math.log10(0.05))


def looks_of(players: Iterable[Any]) -> dict[str, Look]:
    """Return the looks of all (with the attributes of `Shown`), by title: no two have the same colour and dashes.

    A look depends on what a learner is, never on its place. Only where two want the same dashes does the later in the
    alphabet take the next free ones. Up to 18 settings of one learner look different.
    """
    given: dict[str, Look] = {}
    taken: set[tuple[str, int]] = set()
    # Plain settings first: a learner without any keeps the solid line.
    distinct = {Shown(player.title, player.written, player.full_information) for player in players}
    for player in sorted(distinct, key=lambda player: (len(player.written), player.written, player.title)):
        family = re.split(r"[(\s:]", player.written, maxsplit=1)[0]
        own = _LEARNERS.get(family, {})
        tones = own.get("tones") or _OTHER_TONES[zlib.crc32(family.encode()) % len(_OTHER_TONES)]
        tone, dashes = _wanted(player.written, len(tones))
        steps = product(range(len(tones)), range(len(_DASHES)))
        places = [(tones[(tone + i) % len(tones)], (dashes + k) % len(_DASHES)) for i, k in steps]
        color, at = next((place for place in places if place not in taken), places[0])
        taken.add((color, at))
        strokes = (_DOTS if player.full_information else _DASHES)[at]
        marker = _MARKERS[(own.get("marker", -1) + tones.index(color) + at) % len(_MARKERS)]
        given[player.title] = Look(color, strokes, marker, "white" if player.full_information else color)
    return given


def _wanted(written: str, n_tones: int) -> tuple[int, int]:
    """Return which of its tones and dashes a learner would have if it were alone."""
    if rival := _RIVAL.fullmatch(written):
        place = ("default", "best setting", "best per run").index(rival[1])
        return place, place
    if rate := _EXPLORATION.match(written):
        # One rung for each of 1, 2, 5, 10, …: neighbours differ in tone and dashes.
        rung = _RUNGS_OF_DEFAULT - round(3 * math.log10(float(rate[1]) or 1e-9))
        return min(max(rung, 0), n_tones - 1), rung % 3
    settings = _NO_SETTING.sub("", written).strip(" ,)")
    dashes = 1 + zlib.crc32(settings.encode()) % (len(_DASHES) - 1) if settings else 0
    kernel = _KERNEL.search(written)
    return (0 if kernel is None else 1 if kernel[1] else 2), dashes
