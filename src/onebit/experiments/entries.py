"""The entries of a comparison: players and their titles."""

from collections.abc import Iterable
from dataclasses import dataclass

from onebit.experiments import vowpal_wabbit
from onebit.experiments.grid import Spec
from onebit.experiments.player_syntax import parse_player
from onebit.experiments.players import LearnerPlayer, Player, build
from onebit.import_paths import did_you_mean, find_by_import_path, is_import_path
from onebit.learners import Learner

# One of each kind: ours, the paper's two algorithms, its rival, and full information.
DEFAULT_ENTRIES = (
    "BanditSVM",
    "BanditPerceptron",
    "BanditPerceptron:kernel=Rational,normalize=true",
    "Banditron:exploration=0.05",
    "FullInformationSVM",
    "MulticlassPerceptron",
)
"""The learners that play when none are named."""


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


def rival_entries(names: Iterable[str], *, whole_grid: bool = True) -> list[Entry]:
    """Return the entries of rivals: the default of each, then the settings of its grid.

    A rival is "vw", or the import path of a function that takes `whole_grid` and returns players, such as
    "rivals:river". It raises a RuntimeError if it is not installed.
    """
    entries = []
    for name in dict.fromkeys(names):
        if name != "vw" and not is_import_path(name):
            raise ValueError(
                f"--rival must be vw, or the import path of a function that returns players, such as rivals:river; "
                f"got {name!r}{did_you_mean(name, ['vw'])}"
            )
        players = vowpal_wabbit.players if name == "vw" else find_by_import_path(name, "rival")
        entries += [enter(player) for player in players(whole_grid)]
    return entries


def check_distinct(entries: Iterable[Entry]) -> None:
    """Raise if two have the same name."""
    titles = [entry.title for entry in entries]
    for title in titles:
        if titles.count(title) > 1:
            raise ValueError(f"{title}: the learner is named twice")
