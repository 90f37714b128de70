"""Who plays in a comparison: learners as they are written on the command line.

``Banditron`` or ``Banditron:exploration=0.02`` or ``BanditPerceptron:kernel=Rational,normalize=true``: the name of a
class in `onebit.learners`, then settings. A kernel is named by its class in `onebit.kernels`; a setting that only the
kernel has goes to the kernel, and ``kernel.degree=3`` says so outright.
"""

import inspect
from dataclasses import dataclass, fields
from typing import Any

import onebit.kernels
import onebit.learners
from onebit.arena.grid import JSON, Spec
from onebit.arena.specs import build, describe
from onebit.kernels import Custom, Kernel
from onebit.learners import Learner, all_learners

_DEFAULTS = (
    "BanditSVM",
    "BanditPerceptron",
    "BanditPerceptron:kernel=Rational,normalize=true",
    "Banditron:exploration=0.05",
    "FullInformationSVM",
    "MulticlassPerceptron",
)
_NOT_SETTINGS = ("self", "classes", "seed")
_WORDS: dict[str, JSON] = {"true": True, "false": False, "none": None}


@dataclass(frozen=True)
class Entry:
    """One who plays."""

    title: str
    """Its name in tables and figures."""
    spec: Spec
    hears_label: bool = False
    """Whether it plays the full-information game."""

    @property
    def shown(self) -> str:
        """The title, with a word of warning where one has it easier."""
        return f"{self.title} (told the label)" if self.hears_label else self.title


def default_entries() -> list[str]:
    """Return the learners that play when none are named: those of the list that this onebit has."""
    known = {cls.__name__ for cls in all_learners()}
    return [text for text in _DEFAULTS if text.partition(":")[0] in known]


def parse_entry(text: str) -> Entry:
    """Read a learner with its settings.

    Parameters
    ----------
    text : str
        ``Name`` or ``Name:setting=value,setting=value``.

    Examples
    --------
    >>> parse_entry("Banditron:exploration=0.1").spec.label
    'Banditron(exploration=0.1, kernel=None)'
    >>> parse_entry("Banditron:rate=0.1")
    Traceback (most recent call last):
        ...
    ValueError: Banditron has no setting 'rate'; it has exploration, kernel
    """
    name, _, tail = text.strip().partition(":")
    known = {cls.__name__: cls for cls in all_learners()}
    if name not in known:
        raise ValueError(f"there is no learner {name!r}; there are {', '.join(sorted(known))}")
    given = dict(_setting(name, part) for part in tail.split(",") if part)
    if "kernel" in given:
        given["kernel"] = _kernel(name, known[name], given)
    _check_settings(name, known[name], given)
    try:
        learner = known[name](**given)
        spec = describe(learner)
        # A game of one round finds what only the start of a game can tell.
        build(spec).begin(1, 2)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{text}: {error}") from error
    return Entry(text.strip(), spec, known[name].hears_label)


def _setting(name: str, part: str) -> tuple[str, Any]:
    setting, equals, value = part.partition("=")
    if not equals or not setting.strip():
        raise ValueError(f"settings of {name} are written setting=value, with commas between; got {part!r}")
    return setting.strip(), _value(value.strip())


def _value(text: str) -> JSON:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _kernel(name: str, cls: type[Learner], given: dict[str, Any]) -> Kernel | None:
    """Return the kernel, and take its settings out of those given."""
    kernels = {
        kernel.__name__: kernel
        for _, kernel in inspect.getmembers(onebit.kernels, inspect.isclass)
        if issubclass(kernel, Kernel) and kernel not in (Kernel, Custom)
    }
    chosen = given["kernel"]
    if chosen is None:
        return None
    if chosen not in kernels:
        raise ValueError(f"there is no kernel {chosen!r}; there are {', '.join(sorted(kernels))}")
    kernel: Any = kernels[chosen]
    own = [field.name for field in fields(kernel)]
    mine: dict[str, Any] = {}
    for setting in list(given):
        short = setting.removeprefix("kernel.")
        if short != setting or (setting in own and setting not in _settings(cls)):
            if short not in own:
                raise ValueError(f"the kernel {chosen} of {name} has no setting {short!r}; it has {', '.join(own)}")
            mine[short] = given.pop(setting)
    made: Kernel = kernel(**mine)
    return made


def _settings(cls: type[Learner]) -> list[str]:
    return [name for name in inspect.signature(cls.__init__).parameters if name not in _NOT_SETTINGS]


def _check_settings(name: str, cls: type[Learner], given: dict[str, Any]) -> None:
    known = _settings(cls)
    for setting in given:
        if setting not in known:
            raise ValueError(f"{name} has no setting {setting!r}; it has {', '.join(known) or 'none'}")
