"""The entries of a comparison: players and their titles."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from onebit.experiments import vowpal_wabbit
from onebit.experiments.grid import Spec
from onebit.experiments.player_syntax import parse_player
from onebit.experiments.players import LearnerPlayer, Player, build
from onebit.experiments.python_rivals import Coba, ContextualBandits, River, players
from onebit.inputs import check_choice
from onebit.learners import Learner, all_learners

RIVALS: dict[str, Callable[[bool], list[Player]]] = {
    "vw": vowpal_wabbit.players,
    "contextualbandits": partial(players, ContextualBandits),
    "river": partial(players, River),
    "coba": partial(players, Coba),
}
"""Rivals by their name on the command line; each raises a RuntimeError if it is not installed."""
ALL_RIVALS = "all"
"""In place of a name: all that are installed; the others are listed as absent."""
# One of each kind: ours, the paper's two algorithms, its rival, and full information.
_DEFAULTS = (
    "BanditSVM",
    "BanditPerceptron",
    "BanditPerceptron:kernel=Rational,normalize=true",
    "Banditron:exploration=0.05",
    "FullInformationSVM",
    "MulticlassPerceptron",
)


@dataclass(frozen=True)
class Entry:
    """One player of a comparison."""

    title: str
    """Its name in figures, and in tables unless it has another there."""
    spec: Spec
    full_information: bool = False
    """Whether its feedback is the label."""
    key: str = ""
    """Its name in tables."""
    family: str | None = None
    """The tuned family that it is one setting of."""
    hindsight: bool = False
    """Whether its settings were chosen after the games."""
    note: str = ""
    """A remark for under a table."""
    written: str = ""
    """What it is, whatever it is called: a learner as Python writes it, or a rival's title. Figures colour by it."""

    def __post_init__(self) -> None:
        # A frozen dataclass sets its defaults this way.
        object.__setattr__(self, "key", self.key or self.title)
        object.__setattr__(self, "written", self.written or self.title)

    @property
    def shown(self) -> str:
        """The title, with a remark where it has an advantage."""
        return f"{self.title} ({self.advantage})" if self.advantage else self.title

    @property
    def advantage(self) -> str:
        """Its advantage over the others, in words; empty for most."""
        return "told the label" if self.full_information else "chosen in hindsight" if self.hindsight else ""

    @property
    def is_ranked(self) -> bool:
        """Whether it can be ranked: bandit feedback, and no settings chosen in hindsight."""
        return not self.advantage and self.family is None


def enter(who: str | Learner | type[Learner] | Player, title: str | None = None, key: str = "") -> Entry:
    """Return the entry of a learner, a rival, or of either as it is written on the command line.

    Parameters
    ----------
    who : str, Learner, subclass of Learner, or Player
        A text such as "Banditron:exploration=0.02", or the thing itself. A class plays with its default settings.
    title : str, optional
        Its name in figures and tables; by default the text, or what it calls itself.
    key : str
        Its name in tables, if that is to be another.

    Examples
    --------
    >>> from onebit.learners import Banditron
    >>> enter(Banditron(0.1), "Banditron, ε = 0.1", "banditron").spec == enter("Banditron:exploration=0.1").spec
    True
    """
    if isinstance(who, str):
        title, who = title or who.strip(), parse_player(who)
    if isinstance(who, type):
        who = who()
    player = LearnerPlayer(who) if isinstance(who, Learner) else who
    written = repr(build(player.spec)) if isinstance(player, LearnerPlayer) else player.title
    return Entry(
        title or player.title,
        player.spec,
        player.full_information,
        key,
        player.family,
        note=player.note,
        written=written,
    )


def default_entries() -> list[str]:
    """Return the learners that play when none are named: those of the list that this onebit has."""
    known = {cls.__name__ for cls in all_learners()}
    return [text for text in _DEFAULTS if text.partition(":")[0] in known]


class Rivals(NamedTuple):
    """The requested rivals that are installed, and those that are absent."""

    entries: list[Entry]
    absent: dict[str, str]
    """The reason by name."""


def rival_entries(rival: str, *, whole_grid: bool = True) -> list[Entry]:
    """Return the entries of a rival: its default, then the settings of its grid.

    Parameters
    ----------
    rival : str
        A key of `RIVALS`.
    whole_grid : bool
        False for the default alone.
    """
    check_choice("--rival", rival, [*RIVALS, ALL_RIVALS])
    return [enter(player) for player in RIVALS[rival](whole_grid)]


def find_rivals(names: Sequence[str], *, whole_grid: bool = True) -> Rivals:
    """Return the entries of several rivals. A named one must be installed; of "all", the absent are listed.

    Parameters
    ----------
    names : sequence of str
        Keys of `RIVALS`, or "all".
    whole_grid : bool
        False for their defaults alone.
    """
    entries: list[Entry] = []
    absent: dict[str, str] = {}
    for name in dict.fromkeys(each for given in names for each in (RIVALS if given == ALL_RIVALS else [given])):
        try:
            entries += rival_entries(name, whole_grid=whole_grid)
        except RuntimeError as error:
            if name in names:
                raise
            absent[name] = str(error)
    return Rivals(entries, absent)


def check_distinct(entries: Iterable[Entry]) -> None:
    """Raise if two have the same name."""
    titles = [entry.title for entry in entries]
    for title in titles:
        if titles.count(title) > 1:
            raise ValueError(f"{title}: the learner is named twice")
