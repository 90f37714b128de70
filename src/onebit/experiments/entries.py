"""Entries of a comparison: players with their titles, and players and kernels as they are written on the command line.

A *player* is ``Banditron``, ``Banditron:exploration=0.02`` or ``BanditPerceptron:kernel=Rational,normalize=true``: the
name of a class in `onebit.learners`, then settings. One of the user's own is named by import path:
``mypackage.mine:EpsPerceptron:rate=0.1``. With ``wrong_at_most=5%`` or ``ask_at_most=10%`` among its settings a learner
asks for the label when it is unsure.

A *kernel* is ``rational``, ``gaussian:0.5`` (the number is its first setting), ``Gaussian:width=0.5,normalize=true``,
upper or lower case, or ``mypackage.kernels:Mine``. Among the settings of a player, what only the kernel has goes to the
kernel; ``kernel.degree=3`` is explicit. ``kernel=none`` is the linear space, ``kernel=auto`` the player's own choice.
"""

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any

import onebit.kernels
from onebit.asking import read_share
from onebit.experiments.players import LIMITS, NOT_SETTINGS, LearnerPlayer, Player, build, player_from
from onebit.experiments.store import Spec
from onebit.import_paths import did_you_mean, find_by_import_path, is_import_path, read_settings
from onebit.kernels import Kernel
from onebit.learners import Learner, all_learners

# One of each kind: ours, the paper's two algorithms, its rival, and full information.
DEFAULT_ENTRIES = (
    "BanditSVM",
    "BanditPerceptron",
    "BanditPerceptron:kernel=Rational,normalize=true",
    "Banditron:exploration=0.05",
    "FullInformationSVM",
    "MulticlassPerceptron",
)  # the learners that play when none are named


@dataclass(frozen=True)
class Entry:
    """One player of a comparison."""

    title: str  # its name in figures, and in tables unless it has another there
    spec: Spec
    full_information: bool = False  # whether its feedback is the label
    key: str = ""  # its name in tables
    family: str | None = None  # the tuned family that it is one setting of
    hindsight: bool = False  # whether its settings were chosen after the games
    note: str = ""  # a remark for under a table
    written: str = ""
    """What it is, whatever it is called: a learner as Python writes it, or a rival's title. Figures colour by it."""
    asks: bool = False  # whether its feedback is the label when it is unsure

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
        if self.full_information or self.asks:
            return "told the label" if self.full_information else "told when unsure"
        return "chosen in hindsight" if self.hindsight else ""

    @property
    def is_ranked(self) -> bool:
        """Whether it can be ranked: bandit feedback, and no settings chosen in hindsight."""
        return not self.advantage and self.family is None


def enter(who: str | Learner | type[Learner] | Player, title: str | None = None, key: str = "") -> Entry:
    """Return the entry of a learner, a rival, or of either as it is written on the command line.

    A class plays with its default settings. The title is its name in figures and tables, by default the text, or what
    it calls itself; the key is its name in tables, if that is to be another.

    >>> from onebit.learners import Banditron
    >>> enter(Banditron(0.1), "Banditron, ε = 0.1", "banditron").spec == enter("Banditron:exploration=0.1").spec
    True
    """
    if isinstance(who, str):
        title, who = title or who.strip(), parse_player(who)
    if isinstance(who, type):
        who = who()
    player = LearnerPlayer(who) if isinstance(who, Learner) else who
    written = player.title
    if isinstance(player, LearnerPlayer):
        written = repr(build(player.alone))
        # As one more setting: another look than that of the learner alone.
        written += "".join(f" {name}={share:g}" for name, share in player.limit.items())
    return Entry(
        title or player.title,
        player.spec,
        player.full_information,
        key,
        player.family,
        note=player.note,
        written=written,
        asks=player.asks,
    )


def rival_entries(names: Iterable[str], *, whole_grid: bool = True) -> list[Entry]:
    """Return the entries of rivals ("vw", or import paths of functions that return players), defaults first."""
    entries = []
    for name in dict.fromkeys(names):
        if name != "vw" and not is_import_path(name):
            near = did_you_mean(name, ["vw"])
            of_function = "the import path of a function that returns players, such as rivals:river"
            raise ValueError(f"--rival must be vw, or {of_function}; got {name!r}{near}")
        players = find_by_import_path("onebit.experiments.vowpal_wabbit:players" if name == "vw" else name, "rival")
        entries += [enter(player) for player in players(whole_grid)]
    return entries


def every_learner(rounds: int, *, diagonal: bool = False) -> tuple[list[Entry], dict[str, str]]:
    """Return the entries of every class of `onebit.learners` for so many rounds, and the reasons of those left out."""
    entries: list[Entry] = []
    absent: dict[str, str] = {}
    for cls in all_learners():
        try:
            contenders = cls.contenders(rounds)
            entries += [enter(learner, f"{cls.__name__} {form}".strip()) for form, learner in contenders.items()]
            if not contenders:
                absent[cls.__name__] = "needs settings that cannot be chosen for it"
        except (ValueError, TypeError) as error:
            absent[cls.__name__] = str(error)
    return with_diagonals(entries) if diagonal else entries, absent


def with_diagonals(entries: Sequence[Entry]) -> list[Entry]:
    """Return entries, each that keeps whole matrices followed by its diagonal form, if that does not play already."""
    specs = {entry.spec for entry in entries}
    found: list[Entry] = []
    for entry in entries:
        found.append(entry)
        spec = Spec(entry.spec.name, {**entry.spec.settings, "diagonal": True})
        if entry.spec.settings.get("diagonal") is False and spec not in specs:
            found.append(enter(player_from(spec), f"{entry.title} diagonal"))
    return found


def parse_player(text: str) -> Player:
    """Read a player with its settings, whose name may be an import path."""
    text = text.strip()
    # Our own names come first, so that Banditron:exploration is a setting without its value and no import path.
    cls, path, tail = _split("learner", text, {each.__name__: each for each in all_learners()}, "mine:EpsPerceptron")
    if path and not (isinstance(cls, type) and issubclass(cls, (Learner, Player))):
        raise ValueError(
            f"learner {path}: must be a subclass of onebit.Learner, or of onebit.experiments.Player; is {cls!r}"
        )
    given = read_settings(cls.__name__, tail)
    known = [name for name in inspect.signature(cls).parameters if name not in NOT_SETTINGS]
    limits = [name for name in LIMITS if name in given and name not in known and issubclass(cls, Learner)]
    limit = {name: read_share(name, str(given.pop(name))) for name in limits}
    # None and "auto" are values of the learner, which raises if it does not know them.
    if given.get("kernel") not in (None, "auto"):
        given["kernel"] = _read_kernel(str(given["kernel"]), given, known, cls.__name__)
    for setting in given:
        if setting not in known:
            near = did_you_mean(setting, known)
            raise ValueError(f"{cls.__name__} has no setting {setting!r}; it has {', '.join(known) or 'none'}{near}")
    made = _made(cls, given, text)
    try:
        return LearnerPlayer(made, **limit) if isinstance(made, Learner) else made
    except (Exception, SystemExit) as error:
        raise ValueError(f"{text}: {_message_of(error)}") from error


def parse_kernel(text: str) -> Any:
    """Read a kernel with its settings, whose name may be an import path."""
    return _read_kernel(text.strip(), {})


def kernel_names() -> list[str]:
    """Return how our kernels are written, each with its first setting."""
    first = {name: [each for each in _kernel_settings(cls) if each != "normalize"] for name, cls in _kernels().items()}
    return [f"{name}:{settings[0].upper()}" if settings else name for name, settings in first.items()]


def _split(what: str, text: str, known: dict[str, Any], example: str, names: str = "") -> tuple[Any, str, str]:
    """Return what a text begins with, its import path unless it is known by its name, and the settings after it."""
    name, _, tail = text.partition(":")
    if name in known:
        return known[name], "", tail
    second, _, settings = tail.partition(":")
    path = f"{name}:{second}"
    if not is_import_path(path):
        raise ValueError(
            f"there is no {what} {name!r}; there are {names or ', '.join(sorted(known))}. One of your own is named by "
            f"import path, such as mypackage.{example}{did_you_mean(name, known)}"
        )
    return find_by_import_path(path, what, known), path, settings


def _split_kernel(text: str) -> tuple[Any, str]:
    """Return the class or function that a text begins with, and the settings after it."""
    known, name = _kernels(), text.partition(":")[0]
    if name.lower() in known:
        text = text.replace(name, name.lower(), 1)
    names = f"{', '.join(sorted(cls.__name__ for cls in known.values()))}, such as rational or gaussian:0.5"
    found, path, settings = _split("kernel", text, known, "kernels:Mine", names)
    is_class = isinstance(found, type)
    if not callable(found) or (is_class and not (issubclass(found, Kernel) and is_dataclass(found))):
        raise ValueError(
            f"kernel {path}: must be a function(X, Y), or a subclass of Kernel that is a dataclass, with its settings "
            f"as fields; is {found!r}"
        )
    return found, settings


def _kernels() -> dict[str, Any]:
    """Return the kernels that a name is enough for, by their name in lower case."""
    # Not Kernel itself and not Custom: each has a default for every setting.
    classes: list[Any] = [cls for _, cls in inspect.getmembers(onebit.kernels, inspect.isclass)]
    kernels = [cls for cls in classes if issubclass(cls, Kernel) and is_dataclass(cls) and not inspect.isabstract(cls)]
    named: list[Any] = [cls for cls in kernels if all(field.default is not MISSING for field in fields(cls))]
    return {cls.__name__.lower(): cls for cls in named}


def _read_kernel(text: str, given: dict[str, Any], own: Sequence[str] = (), player: str = "") -> Any:
    """Read a kernel; that of a player takes its settings out of those given, except the player's own."""
    kind, tail = _split_kernel(text)
    known = _kernel_settings(kind)
    mine = read_settings(getattr(kind, "__name__", repr(kind)), tail, next(iter(known), ""))
    for setting in list(given):
        short = setting.removeprefix("kernel.")
        if short != setting or (setting in known and setting not in own):
            if short not in known:
                has = ", ".join(known) or "none"
                raise ValueError(f"the kernel {text} of {player} has no setting {short!r}; it has {has}")
            if short in mine:
                raise ValueError(f"{short} is given twice: {mine[short]!r} and {given[setting]!r}")
            mine[short] = given.pop(setting)
    return _made(kind, mine, f"{player}:kernel={text}" if player else text)


def _kernel_settings(kind: Any) -> list[str]:
    return [field.name for field in fields(kind)] if isinstance(kind, type) else []


def _made(kind: Any, given: dict[str, Any], text: str) -> Any:
    """Call a class with settings; a function is a kernel as it is."""
    if not isinstance(kind, type):
        if given:
            raise ValueError(f"{text}: a function has no settings; got {', '.join(given)}")
        return kind
    try:
        return kind(**given)
    except (Exception, SystemExit) as error:  # a user's constructor may do anything
        raise ValueError(f"{text}: {_message_of(error)}") from error


def _message_of(error: BaseException) -> str:
    return str(error) if isinstance(error, (ValueError, TypeError)) else f"{type(error).__name__}: {error}"
