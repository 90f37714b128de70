"""Players and kernels as they are written on the command line: the one grammar of all commands.

A *player* is ``Banditron``, ``Banditron:exploration=0.02`` or ``BanditPerceptron:kernel=Rational,normalize=true``: the
name of a class in `onebit.learners`, then settings. One of the user's own is named by import path:
``mypackage.mine:EpsPerceptron:rate=0.1``.

A *kernel* is ``rational``, ``gaussian:0.5`` (the number is its first setting), ``Gaussian:width=0.5,normalize=true``,
upper or lower case, or ``mypackage.kernels:Mine``. Among the settings of a player, what only the kernel has goes to the
kernel; ``kernel.degree=3`` is explicit. ``kernel=none`` is the linear space, ``kernel=auto`` the player's own choice.
"""

import inspect
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import onebit.kernels
from onebit.experiments.players import NOT_SETTINGS, LearnerPlayer, Player
from onebit.import_paths import did_you_mean, find_by_import_path, is_import_path
from onebit.kernels import Kernel
from onebit.learners import Learner, all_learners
from onebit.settings_syntax import once, read_setting, read_value


def parse_player(text: str) -> Player:
    """Read a player with its settings.

    Parameters
    ----------
    text : str
        ``Name`` or ``Name:setting=value,setting=value``, where the name may be an import path.

    Examples
    --------
    >>> parse_player("Banditron:exploration=0.1").spec.label
    'Banditron(exploration=0.1, kernel=None)'
    >>> parse_player("Banditron:rate=0.1")
    Traceback (most recent call last):
        ...
    ValueError: Banditron has no setting 'rate'; it has exploration, kernel
    """
    cls, tail = _split_class(text.strip())
    given = once(read_setting(cls.__name__, part) for part in tail.split(",") if part)
    if "kernel" in given:
        given["kernel"] = _kernel_of(cls, given)
    known = _settings(cls)
    for setting in given:
        if setting not in known:
            near = did_you_mean(setting, known)
            raise ValueError(f"{cls.__name__} has no setting {setting!r}; it has {', '.join(known) or 'none'}{near}")
    try:
        made = cls(**given)
        return LearnerPlayer(made) if isinstance(made, Learner) else made
    except (Exception, SystemExit) as error:  # a user's constructor may do anything
        raise ValueError(f"{text.strip()}: {_message_of(error)}") from error


def _message_of(error: BaseException) -> str:
    return str(error) if isinstance(error, (ValueError, TypeError)) else f"{type(error).__name__}: {error}"


def parse_kernel(text: str) -> Any:
    """Read a kernel with its settings.

    Parameters
    ----------
    text : str
        ``name``, ``name:number``, ``name:setting=value,setting=value``, where the name may be an import path.

    Examples
    --------
    >>> parse_kernel("gaussian:0.5")
    Gaussian(width=0.5)
    >>> parse_kernel("Polynomial:degree=3,normalize=true")
    Polynomial(degree=3, normalize=True)
    """
    made, tail = _split_kernel(text.strip())
    given = once(_kernel_setting(made, part) for part in tail.split(",") if part)
    return _make_kernel(made, given, text)


def _split_class(text: str) -> tuple[Any, str]:
    """Return the class that a text begins with, and the settings after it."""
    known = {cls.__name__: cls for cls in all_learners()}
    name, _, tail = text.partition(":")
    # Our own names come first, so that Banditron:exploration is a setting without its value and no import path.
    if name in known:
        return known[name], tail
    second, _, settings = tail.partition(":")
    path = f"{name}:{second}"
    if not is_import_path(path):
        raise ValueError(
            f"there is no learner {name!r}; there are {', '.join(sorted(known))}. One of your own is named by import "
            f"path, such as mypackage.mine:EpsPerceptron{did_you_mean(name, known)}"
        )
    found = find_by_import_path(path, "learner", known)
    if not (isinstance(found, type) and issubclass(found, (Learner, Player))):
        raise ValueError(
            f"learner {path}: must be a subclass of onebit.Learner, or of onebit.experiments.Player; is {found!r}"
        )
    return found, settings


def _settings(cls: type) -> list[str]:
    return [name for name in inspect.signature(cls).parameters if name not in NOT_SETTINGS]


def _kernel_of(cls: type, given: dict[str, Any]) -> Any:
    """Return a player's kernel, and take its settings out of those given."""
    chosen = given["kernel"]
    # None and "auto" are values of the learner, which raises if it does not know them.
    if chosen is None or chosen == "auto":
        return chosen
    made, tail = _split_kernel(str(chosen))
    own = _kernel_settings(made)
    mine = dict([_kernel_setting(made, tail)] if tail else [])
    for setting in list(given):
        short = setting.removeprefix("kernel.")
        if short != setting or (setting in own and setting not in _settings(cls)):
            if short not in own:
                has = ", ".join(own) or "none"
                raise ValueError(f"the kernel {chosen} of {cls.__name__} has no setting {short!r}; it has {has}")
            mine = once([*mine.items(), (short, given.pop(setting))])
    return _make_kernel(made, mine, f"{cls.__name__}:kernel={chosen}")


def _split_kernel(text: str) -> tuple[Any, str]:
    """Return the class or function that a text begins with, and the settings after it."""
    known = _kernels()
    name, _, tail = text.partition(":")
    if name.lower() in known:
        return known[name.lower()], tail
    second, _, settings = tail.partition(":")
    if not is_import_path(f"{name}:{second}"):
        names = ", ".join(sorted(cls.__name__ for cls in known.values()))
        raise ValueError(
            f"there is no kernel {name!r}; there are {names}, such as rational or gaussian:0.5. One of your own "
            f"is named by import path, such as mypackage.kernels:Mine{did_you_mean(name, known)}"
        )
    found = find_by_import_path(f"{name}:{second}", "kernel", known)
    is_class = isinstance(found, type)
    if not callable(found) or (is_class and not (issubclass(found, Kernel) and is_dataclass(found))):
        raise ValueError(
            f"kernel {name}:{second}: must be a function(X, Y), or a subclass of Kernel that is a dataclass, with its "
            f"settings as fields; is {found!r}"
        )
    return found, settings


def _kernels() -> dict[str, Any]:
    """Return the kernels that a name is enough for, by their name in lower case."""
    classes = inspect.getmembers(onebit.kernels, inspect.isclass)
    return {name.lower(): cls for name, cls in classes if _can_be_named(cls)}


def kernel_names() -> list[str]:
    """Return how our kernels are written, each with its first setting.

    >>> kernel_names()[:2]
    ['gaussian:WIDTH', 'laplace:SHARPNESS']
    """
    first = {
        name: [setting for setting in _kernel_settings(cls) if setting != "normalize"]
        for name, cls in _kernels().items()
    }
    return [f"{name}:{settings[0].upper()}" if settings else name for name, settings in first.items()]


def _can_be_named(cls: Any) -> bool:
    # Not Kernel itself and not Custom: a kernel that a name is enough for has a default for every setting.
    is_kernel = issubclass(cls, Kernel) and is_dataclass(cls)
    return is_kernel and all(field.default is not MISSING for field in fields(cls))


def _kernel_settings(made: Any) -> list[str]:
    return [field.name for field in fields(made)] if isinstance(made, type) else []


def _kernel_setting(made: Any, part: str) -> tuple[str, Any]:
    """Read one setting of a kernel; a value alone is that of its first."""
    own = _kernel_settings(made)
    return (
        (own[0], read_value(part.strip()))
        if own and "=" not in part
        else read_setting(getattr(made, "__name__", repr(made)), part)
    )


def _make_kernel(made: Any, given: dict[str, Any], text: str) -> Any:
    if not isinstance(made, type):
        if given:
            raise ValueError(f"{text}: a function has no settings; got {', '.join(given)}")
        return made
    try:
        return made(**given)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{text}: {_message_of(error)}") from error
