"""The command line: ``onebit --help``.

Each command has a module of its name, whose function `command` has its options and does it; `options.py` has what
several share. A module is imported when its command is run, completed or asked for help: most take a second or two.
"""

import errno
import inspect
import io
import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NoReturn, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperGroup

_PANELS = {
    "Your data": ("play", "compare", "evaluate", "playground"),
    "Decisions in production": ("serve", "tokens", "mcp", "accept-loss", "warm-up"),
    "Research": ("reproduce", "league", "bound", "margin", "adversary", "theory"),
}


def _help_of(name: str) -> str:
    """Return what a command's module says that it does, without importing it."""
    text = Path(__file__).with_name(f"{name.replace('-', '_')}.py").read_text(encoding="utf-8")
    _, _, own = text.partition("\ndef command(")
    return (own or text).split('"""', 2)[1]


COMMANDS = {name: _help_of(name) for panel in _PANELS.values() for name in panel}
"""Every command, in the order of ``onebit --help``, with its help."""
_KEEPING = (["compare"], ["league"], ["reproduce"])  # the commands that keep finished games
_INTERRUPTED = 130
_REMEDIES = dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "make room and give the same command again")
_REMEDIES |= dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "ask for the right to it, or choose another")


class _LazyGroup(TyperGroup):
    """Commands whose modules are imported when one of them is run, completed or asked for help."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and command is not None:
            command = load(name)
            if not ctx.resilient_parsing:  # nothing runs while a shell completes
                from onebit.engine.compile_notice import NOTICE

                NOTICE.is_command = True
        return name, command, rest


# A bug is shown as Python shows it; `main` turns what a user can mend into one line.
app = typer.Typer(cls=_LazyGroup, no_args_is_help=True, pretty_exceptions_enable=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"onebit {version('onebit')}")
        raise typer.Exit


@app.callback()
def _onebit(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Learn a K-way classifier when the only answer you ever get is "right" or "wrong"."""


for _panel, _names in _PANELS.items():
    for _name in _names:
        app.command(_name, help=COMMANDS[_name], rich_help_panel=_panel)(lambda: None)  # `_LazyGroup` replaces it


def load(name: str) -> Any:
    """Import the module of a command and return what Typer makes of it: a command, or a group of commands."""
    found = import_module(f"onebit.cli.{name.replace('-', '_')}").command
    made = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
    if isinstance(found, dict):
        made.callback(help=COMMANDS[name])(lambda: None)
    for each, function in (found if isinstance(found, dict) else {name: found}).items():
        made.command(each)(_as_typer_takes_it(function))
    return typer.main.get_command(made)


def _as_typer_takes_it(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command as Typer takes it, with help, arguments and options of all it may be given.

    Parameters before the ``*`` are arguments, the others options, each annotated with its help. A named tuple stands
    for options, one a field; ``Annotated[Group, "field"]`` leaves one out. A tuple may be given several times.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[Callable[..., Any], list[str]]] = {}
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        kind, *left_out = get_args(hints[name]) if get_origin(hints[name]) is Annotated else (hints[name],)
        if not hasattr(kind, "_field_defaults"):
            is_argument = parameter.kind is not inspect.Parameter.KEYWORD_ONLY
            parameters.append(_parameter(name, hints[name], parameter.default, is_argument))
            continue
        fields = [field for field in kind._fields if field not in left_out]
        groups[name], inside = (kind, fields), get_type_hints(kind, include_extras=True)
        parameters += [_parameter(field, inside[field], kind._field_defaults[field]) for field in fields]

    @wraps(function)
    def with_groups(**given: Any) -> None:
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
        made = {name: kind(**{field: given.pop(field) for field in fields}) for name, (kind, fields) in groups.items()}
        function(**given, **made)

    # Typer reads off both what it may be given.
    with_groups.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_groups.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_groups


def _parameter(name: str, hint: Any, default: Any, is_argument: bool = False) -> inspect.Parameter:
    """Return an argument or option; a switch that is off by default has no opposite."""
    kind: Any
    kind, text = get_args(hint)
    if get_origin(kind) is tuple:
        kind, default = list[str], [] if default == () else default
    elif str in get_args(kind):  # a column by name or position
        kind = str | None
    shown: dict[str, Any] = {"help": text, "show_default": default not in ([], None)}
    names = [f"--{name.replace('_', '-')}"] if default is False else []
    info = typer.Argument(**shown) if is_argument else typer.Option(*names, **shown)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info])


def main() -> None:
    """Run the command line: one line for an error a user can mend, a traceback for a bug of ours."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a letter is no reason to fail when everything has been played.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.argv[1:2] in _KEEPING:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: a run ends its workers and cleans up
    try:
        app()
    except SystemExit as ended:
        if ended.code == _INTERRUPTED:  # what typer makes of Ctrl-C, and what shells expect
            kept = " What was finished is kept; the same command goes on from there."
            print(f"Stopped.{kept if sys.argv[1:2] in _KEEPING else ''}", file=sys.stderr)
        raise
    except (ValueError, RuntimeError) as error:
        _fail(str(error))
    except OSError as error:
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        reason = os.strerror(error.errno) if error.errno else str(error)
        remedy = _REMEDIES.get(error.errno or 0, "mend it and give the same command again")
        _fail(f"{where}{reason}; {remedy}. What was finished is kept")
    except MemoryError as error:
        reason = f" ({error})" if str(error) else ""
        _fail(f"there is not enough memory{reason}; use fewer --rounds, a smaller data set or a smaller number")
    except Exception as error:
        error.add_note("This is a bug of onebit: please report it, with the command and these lines.")
        raise


def _fail(message: str) -> NoReturn:
    """Print what is wrong, and end the program."""
    from rich.console import Console

    from onebit.reporting.console import print_line

    print_line(Console(stderr=True), message, "error: ", "bold red", keep="\n")
    sys.exit(1)
