"""The colour, dashes and marker of every learner: the same in all figures of all commands.

The hue is the learner's, and relatives have neighbours of it: blue for the support vector machines, green for the
perceptrons, orange for Banditron, olive and ochre for its second-order kin, purple-red for gradients, reds, sand and
teal for regressions. A kernel changes the tone, as Banditron's exploration does (the darker, the more); other settings
change the dashes, and the marker where there is no line. Dots and hollow markers are for learners with full
information.
"""

import math
import re
import zlib
from collections.abc import Iterable
from typing import NamedTuple

from onebit.reporting.style import INK, Dashes


class Look(NamedTuple):
    """How one learner is drawn."""

    color: str
    dashes: Dashes
    marker: str
    fill: str
    """Of its marker: its colour, or white."""


class Shown(NamedTuple):
    """Who is to be drawn."""

    title: str
    """What it is called in this figure."""
    written: str
    """What it is: a learner as Python writes it, such as "Banditron(exploration=0.02)", or a rival's own name."""
    full_information: bool = False


# Of each: by default, without a kernel, with a kernel that is named.
# Blue and orange stay apart in every kind of colour blindness; green has blue in it, as Okabe and Ito's.
_TONES = {
    "BanditSVM": ("#0072B2", "#63A9DB", "#003F66"),
    "FullInformationSVM": ("#0A4A75", "#3E86B5", "#7FA8C4"),
    "BanditPerceptron": ("#3CBB93", "#7FA331", "#006B4E"),
    "MulticlassPerceptron": ("#00916A", "#5DAA8F", "#004D38"),
    # From a twentieth, the default, down to a two-thousandth.
    "Banditron": ("#6B2400", "#9A3B00", "#C65300", "#E07B1A", "#EB9A2D", "#F0B44A", "#F2C877"),
    "SOBA": ("#5C6B00", "#97A53A", "#333C00"),
    "PNewtron": ("#8A6A00", "#BFA13A", "#4F3D00"),
    "NearestNeighbor": ("#5B2A86", "#9A76C2", "#2F1150"),
    # Purple-red for gradient learners, mauve, slate and grey for those without weights.
    "Gaptron": ("#8E2B5F", "#C06A97", "#5A1039"),
    "AdaptiveSurrogate": ("#B5446E", "#DB8FAE", "#7A1F42"),
    "ConservativePassiveAggressive": ("#A8503C", "#D18B77", "#6E2A1A"),
    "FullInformationLogistic": ("#6D1B46", "#A35C82", "#C79AB3"),
    "FullInformationPassiveAggressive": ("#7D3222", "#AD6A5A", "#CFA497"),
    "BanditHalving": ("#9C8AA5", "#C4B7CB", "#6B5A75"),
    "Wrapped": ("#6A5ACD", "#A79BE6", "#3F3391"),
    "Majority": ("#6E6E6E", "#A6A6A6", "#404040"),
    "UniformGuess": (INK, "#8C8C8C", "#595959"),
    # One regression per class: red for bounds, sand for those that draw uniformly, teal for what falls with the cost.
    "LinUCB": ("#C1272D", "#E06C66", "#8C1015"),
    "Confidit": ("#7A0F14", "#A8433F", "#4D0508"),
    "ThompsonSampling": ("#E8736F", "#F0A09B", "#B84A47"),
    "EpsilonGreedy": ("#8A6D3B", "#B0935F", "#5E4820"),
    "ExploreFirst": ("#B79B66", "#D3BE93", "#8F7443"),
    "SquareCB": ("#1B8A9E", "#6CC0CE", "#0F5F6E"),
    "RegCB": ("#0B4A56", "#3F7C88", "#052A32"),
    "FullInformationRidge": ("#95231F", "#BF6A64", "#D9A5A1"),
    "VW": ("#B0307A", "#6A1145", "#DE8FBB"),
    "contextualbandits": ("#7D7A00", "#4A4800", "#BDB84A"),
    "river": ("#4F6D5A", "#2C4034", "#93AE9C"),
    "coba": ("#B8323A", "#7A1219", "#E08A8F"),
}
_STRANGERS = (("#5A5A78", "#9494B0", "#30304A"), ("#7F5539", "#B58B6B", "#4F321E"), ("#1B8A9E", "#6CC0CE", "#0B4A56"))
_DASHES: tuple[Dashes, ...] = (
    (0, ()),
    (0, (5, 1.8)),
    (0, (2.6, 1.2)),
    (0, (6, 1.6, 1.2, 1.6)),
    (0, (9, 2.2)),
    (0, (4, 1.2, 1.2, 1.2, 1.2, 1.2)),
)
_DOTS: tuple[Dashes, ...] = (
    (0, (1.2, 1.0)),
    (0, (1.2, 2.0)),
    (0, (1.2, 0.8, 1.2, 2.6)),
    (0, (1.2, 0.8, 1.2, 0.8, 1.2, 3.0)),
    (0, (1.2, 3.2)),
    (0, (2.0, 1.0)),
)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
# Full-information learners have the markers of their bandit counterparts, hollow.
_FIRST_MARKER = {
    "BanditSVM": 0,
    "FullInformationSVM": 0,
    "VW": 2,
    "contextualbandits": 1,
    "river": 4,
    "coba": 6,
    "BanditPerceptron": 3,
    "MulticlassPerceptron": 3,
    "Banditron": 5,
    "SOBA": 1,
    "PNewtron": 4,
    "NearestNeighbor": 6,
    "Gaptron": 1,
    "AdaptiveSurrogate": 4,
    "ConservativePassiveAggressive": 2,
    "FullInformationLogistic": 4,
    "FullInformationPassiveAggressive": 2,
    "BanditHalving": 5,
    "Majority": 6,
    "Wrapped": 0,
    "UniformGuess": 7,
    "LinUCB": 0,
    "Confidit": 1,
    "ThompsonSampling": 2,
    "EpsilonGreedy": 3,
    "ExploreFirst": 4,
    "SquareCB": 5,
    "RegCB": 6,
    "FullInformationRidge": 0,
}
_KERNEL = re.compile(r"kernel=(None)?")
# The name, the kernel, and settings of how rows are given rather than of the learner.
_NO_SETTING = re.compile(r"^[^(\s:]*[(\s:]?|kernel=[^,]*|(radius|scale)=[^,)]*")
_EXPLORATION = re.compile(r"Banditron\(exploration=([\d.e-]+)")
# A rival's settings have no names that could be read.
_RIVALS = {
    f"{family} {setting}": (place, place)
    for family in ("VW", "contextualbandits", "river", "coba")
    for place, setting in enumerate(("default", "best setting", "best per run"))
}
_RUNGS_OF_DEFAULT = round(3 * math.log10(0.05))


def looks_of(players: Iterable[Shown]) -> dict[str, Look]:
    """Return everyone's look, by title; no two have the same colour and dashes, nor the same colour and marker.

    A look depends on what a learner is, never on its place. Only where two want the same dashes does the later in the
    alphabet take the next free ones. Up to 18 settings of one learner look different.

    Parameters
    ----------
    players : iterable of Shown
        All learners in the figure, or in any figure of the report.

    Examples
    --------
    >>> alone = looks_of([Shown("mine", "BanditSVM()")])["mine"]
    >>> others = looks_of([Shown("a", "Banditron()"), Shown("b", "BanditSVM(kernel=None)"), Shown("c", "BanditSVM()")])
    >>> others["c"] == alone, others["b"].color == alone.color
    (True, False)
    """
    given: dict[str, Look] = {}
    taken: set[tuple[str, int]] = set()
    # Plain settings first: a learner without any keeps the solid line.
    for player in sorted(set(players), key=lambda player: (len(player.written), player.written, player.title)):
        tones = _tones(player.written)
        tone, dashes = _wanted(player.written, len(tones))
        free = [
            (tones[(tone + i) % len(tones)], (dashes + k) % len(_DASHES))
            for i in range(len(tones))
            for k in range(len(_DASHES))
        ]
        color, at = next((place for place in free if place not in taken), free[0])
        taken.add((color, at))
        strokes = (_DOTS if player.full_information else _DASHES)[at]
        first = _FIRST_MARKER.get(_family(player.written), len(_MARKERS) - 1)
        marker = _MARKERS[(first + tones.index(color) + at) % len(_MARKERS)]
        given[player.title] = Look(color, strokes, marker, "white" if player.full_information else color)
    return given


def _family(written: str) -> str:
    return re.split(r"[(\s:]", written, maxsplit=1)[0]


def _tones(written: str) -> tuple[str, ...]:
    family = _family(written)
    return _TONES.get(family) or _STRANGERS[_number(family) % len(_STRANGERS)]


def _wanted(written: str, n_tones: int) -> tuple[int, int]:
    """Return which of its tones and dashes a learner would have if it were alone."""
    if written in _RIVALS:
        return _RIVALS[written]
    if rate := _EXPLORATION.match(written):
        # One rung for each of 1, 2, 5, 10, …: neighbours differ in tone and dashes.
        rung = _RUNGS_OF_DEFAULT - round(3 * math.log10(float(rate[1]) or 1e-9))
        return min(max(rung, 0), n_tones - 1), rung % 3
    settings = _NO_SETTING.sub("", written).strip(" ,)")
    dashes = 1 + _number(settings) % (len(_DASHES) - 1) if settings else 0
    kernel = _KERNEL.search(written)
    return (0 if kernel is None else 1 if kernel[1] else 2), dashes


def _number(text: str) -> int:
    """Return a number that belongs to a text: the same in every process."""
    return zlib.crc32(text.encode())
