"""The command line: ``onebit --help``.

Each command has a module of its name, whose function `command` has its options and does it; `options.py` has what
several share. A module is imported when its command is run, completed or asked for help: most take a second or two.
"""

import errno
import inspect
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from importlib.metadata import version
from itertools import pairwise
from typing import Annotated, Any, NoReturn, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperGroup

_DATA, _DECISIONS, _RESEARCH = "Your data", "Decisions in production", "Research"
COMMANDS = {
    "play": (_DATA, "Let one learner play your data; show its mistakes, draw them, and save it if you like."),
    "compare": (_DATA, "Play learners on the same shuffles of your data; write tables, figures and report.html."),
    "evaluate": (
        _DATA,
        "Say what other learners would have done on a log: sure bounds on their mistakes, and estimates.",
    ),
    "playground": (_DATA, "Open a page where you watch learners learn, draw points for them, or answer them yourself."),
    "serve": (
        _DECISIONS,
        "Serve deciders over HTTP: guess, tell, reports, metrics. SIGTERM stops it when all is answered.",
    ),
    "tokens": (_DECISIONS, "Who may ask `onebit serve`, and for what."),
    "mcp": (
        _DECISIONS,
        "Give AI agents a decider's verbs over MCP, on standard input and output: their host starts this command.",
    ),
    "accept-loss": (
        _DECISIONS,
        "Let a decider go on whose file has lost events, its journal being damaged; the loss is noted in its log.",
    ),
    "warm-up": (
        _DECISIONS,
        "Compile what you will need, so that no first guess waits for it; the code is kept on disk.",
    ),
    "reproduce": (_RESEARCH, "Play the paper's experiments; write tables, figures and report.html."),
    "league": (
        _RESEARCH,
        "Rank all learners over all streams and your data; write tables, figures and a page for every learner.",
    ),
    "bound": (_RESEARCH, "Evaluate one of the paper's bounds, or BanditSVM's, or halving's."),
    "margin": (
        _RESEARCH,
        "Measure the largest weak and strong margin of a data set, and say what the theorems promise for it.",
    ),
    "adversary": (_RESEARCH, "Play every learner against the paper's lower-bound constructions."),
    "theory": (_RESEARCH, "Draw Figure 2, the looseness of Theorem 5 and the hardness of weak labelling."),
}
"""Every command in the order of ``onebit --help``, with its group there and what its own help begins with."""
_KEEPING = (["compare"], ["league"], ["reproduce"])  # the commands that keep finished games
_INTERRUPTED = 130
_TRUTHS = ("true", "false", "yes", "no", "on", "off", "1", "0")
_ROOM, _RIGHT = "make room and give the same command again", "ask for the right to it, or choose another"
_REMEDIES = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EFBIG: _ROOM,
    errno.EROFS: "choose another folder with --out",
    errno.EACCES: _RIGHT,
    errno.EPERM: _RIGHT,
    errno.ENAMETOOLONG: "use a shorter name",
}


class _LazyGroup(TyperGroup):
    """Commands whose modules are imported when one of them is run, completed or asked for help."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name is None or command is None:
            return name, command, rest
        command = load(name)
        if not ctx.resilient_parsing:  # nothing runs while a shell completes
            from onebit.engine.compile_notice import NOTICE

            NOTICE.is_command = True
            _check_switches(command.params, rest)
        return name, command, rest


# A bug is shown as Python shows it; `main` turns what a user can mend into one line.
app = typer.Typer(cls=_LazyGroup, no_args_is_help=True, pretty_exceptions_enable=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"onebit {version('onebit')}")
        raise typer.Exit


@app.callback()
def onebit(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Learn a K-way classifier when the only answer you ever get is "right" or "wrong"."""


def _list(name: str) -> None:
    panel, text = COMMANDS[name]
    app.command(name, help=text, rich_help_panel=panel)(lambda: None)


for _name in COMMANDS:
    _list(_name)


def load(name: str) -> Any:
    """Import the module of a command and return the command, or group of commands, that Typer makes of it."""
    found = import_module(f"onebit.cli.{name.replace('-', '_')}").command
    if not isinstance(found, typer.Typer):
        single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        single.command(name)(with_options(found))
        found = single
    return typer.main.get_command(found)


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes the fields of its named tuples as options.

    A field is annotated with its help. One that is a tuple may be given several times; a switch that is off by default
    has no opposite. ``Annotated[Group, "field"]`` leaves a field out.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[Callable[..., Any], list[str]]] = {}
    hints = get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        kind, *left_out = get_args(hints[name]) if get_origin(hints[name]) is Annotated else (hints[name],)
        if hasattr(kind, "_field_defaults"):
            options = [_option(kind, field) for field in kind._fields if field not in left_out]
            groups[name] = kind, [option.name for option in options]
            parameters += options
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def with_groups(**given: Any) -> None:
        for name, (kind, fields) in groups.items():
            values = {field: given.pop(field) for field in fields}
            defaults = kind._field_defaults  # type: ignore[attr-defined]
            given[name] = kind(**{f: tuple(v or ()) if defaults[f] == () else v for f, v in values.items()})
        command(**given)

    # Typer reads off both what it may be given.
    with_groups.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_groups.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_groups


def _option(group: Any, field: str) -> inspect.Parameter:
    """Return the option for a field of a named tuple."""
    hint, default = get_type_hints(group, include_extras=True)[field], group._field_defaults[field]
    kind, text = get_args(hint)
    if default == ():
        kind, default = list[str] | None, None
    elif str in get_args(kind):  # a column by name or position
        kind = str | None
    names = [f"--{field.replace('_', '-')}"] if default is False else []
    option = Annotated[kind, typer.Option(*names, help=text)]  # type: ignore[valid-type]
    return inspect.Parameter(field, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=option)


def _check_switches(parameters: list[Any], words: list[str]) -> None:
    """Refuse a value after a switch: it would be taken for one more argument, such as a data set."""
    flags = [parameter for parameter in parameters if getattr(parameter, "is_flag", False)]
    switches = {name for flag in flags for name in (*flag.opts, *flag.secondary_opts)}
    for switch, value in pairwise(words):
        if switch in switches and value.lower() in _TRUTHS:
            fail(f"{switch} takes no value: give it or leave it out; got {value!r}", code=2)


def main() -> None:
    """Run the command line: one line for an error a user can mend, a traceback for a bug of ours."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a letter is no reason to fail when everything has been played.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with _errors_in_a_line():
            app()
    except SystemExit as ended:
        if ended.code == _INTERRUPTED:  # what typer makes of Ctrl-C, and what shells expect
            kept = " What was finished is kept; the same command goes on from there."
            print(f"Stopped.{kept if sys.argv[1:2] in _KEEPING else ''}", file=sys.stderr)
        raise


@contextmanager
def _errors_in_a_line() -> Iterator[None]:
    """End the program with one line for an error that a user can mend; others are ours, and say so."""
    try:
        yield
    except (ValueError, RuntimeError) as error:
        fail(str(error))
    except OSError as error:
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        reason = os.strerror(error.errno) if error.errno else str(error)
        remedy = _REMEDIES.get(error.errno or 0, "mend it and give the same command again")
        fail(f"{where}{reason}; {remedy}. What was finished is kept")
    except MemoryError as error:
        reason = f" ({error})" if str(error) else ""
        fail(f"there is not enough memory{reason}; use fewer --rounds, a smaller data set or a smaller number")
    except Exception as error:
        error.add_note("This is a bug of onebit: please report it, with the command and these lines.")
        raise


def fail(message: str, code: int = 1) -> NoReturn:
    """Print what is wrong, and end the program."""
    from rich.console import Console
    from rich.text import Text

    from onebit.reporting.text import printable

    # As text, not as markup, and nothing that the terminal obeys: what a user typed comes back letter for letter.
    line = Text.assemble(("error: ", "bold red"), printable(message, keep="\n"))
    Console(stderr=True, highlight=False, soft_wrap=True).print(line)
    sys.exit(code)
