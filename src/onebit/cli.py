"""The command line: ``onebit --help``."""

import io
import sys
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from onebit.commands import options
from onebit.commands.errors import errors_in_a_line, fail
from onebit.engine.compile_notice import NOTICE
from onebit.streams.sources import known_names

if TYPE_CHECKING:
    from onebit.streams.reading import Reading

_INTERRUPTED = 130
_KEEPING = (["compare"], ["league"], ["reproduce"])  # the commands that keep finished games
_TRUTHS = ("true", "false", "yes", "no", "on", "off", "1", "0")

# Every command imports what it needs when it is called: `onebit --help` answers without matplotlib.
app = typer.Typer(
    help='Learn a K-way classifier when the only answer you ever get is "right" or "wrong".',
    no_args_is_help=True,
    add_completion=False,
    # A bug is shown as Python shows it; `main` turns what a user can mend into one line.
    pretty_exceptions_enable=False,
)


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


@app.command()
def reproduce(
    rounds: Annotated[int | None, typer.Option(help="Rounds per run; the paper plays 5 000 000.")] = None,
    runs: Annotated[
        int | None, typer.Option(help="Runs of every learner, each on its own data; the paper: 20.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the first run; run r uses seed + r.")] = 0,
    jobs: options.Jobs = None,
    dask: options.Dask = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for results; results/, or results/quick/ with --quick.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="100 000 rounds and 5 runs: seconds, not minutes.")] = False,
) -> None:
    """Play the paper's experiments; write tables, figures and report.html."""
    from onebit.commands.reproduce import reproduce_command

    reproduce_command(rounds, runs, seed, jobs, out, quick, dask)


@app.command()
@options.reads_files()
def margin(
    data: Annotated[str, typer.Argument(help=f"A file ({options.FILES}), or a name: {options.NAMES}.")],
    *,
    reading: "Reading",
    kernel: Annotated[
        str | None, typer.Option(help=f"{options.KERNELS}, or mypackage.kernels:Mine. Without: R^d.")
    ] = None,
    standardize: Annotated[
        bool, typer.Option("--standardize", help="Standardise the columns and add a constant one first.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure the largest weak and strong margin of a data set, and say what the theorems promise for it."""
    from onebit.commands.margin import margin_command

    margin_command(data, reading, kernel, standardize, as_json)


@app.command()
def bound(
    theorem: Annotated[str | None, typer.Argument(help="Its number, such as 2 or 21-sharp; none: list them.")] = None,
    k: Annotated[int | None, typer.Option(help="K, the number of classes.")] = None,
    gamma: Annotated[float | None, typer.Option(help="γ, the margin.")] = None,
    radius: Annotated[float | None, typer.Option(help="R, the length of the longest example.")] = None,
    dimension: Annotated[int | None, typer.Option(help="d, the number of features.")] = None,
    reach: Annotated[float | None, typer.Option(help="r, the radius of nearest neighbour.")] = None,
    directions: Annotated[int | None, typer.Option(help="T, the directions of Theorem 24's adversary.")] = None,
    exploration: Annotated[float | None, typer.Option(help="p, BanditSVM's chance of a uniform guess.")] = None,
    kernels: Annotated[int | None, typer.Option(help="m, the kernels of BanditSVM's bank.")] = None,
    softness: Annotated[float | None, typer.Option(help="1/(2C) of BanditSVM, 0 for a hard margin.")] = None,
    hypotheses: Annotated[int | None, typer.Option(help="H, the hypotheses of BanditHalving.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Evaluate one of the paper's bounds, or BanditSVM's, or halving's."""
    from onebit.commands.bound import bound_command

    given = {"n_classes": k, "margin": gamma, "radius": radius, "dimension": dimension}
    given |= {"reach": reach, "directions": directions, "exploration": exploration}
    given |= {"n_kernels": kernels, "softness": softness, "n_hypotheses": hypotheses}
    bound_command(theorem, given, as_json)


@app.command()
def adversary(
    theorem: Annotated[str | None, typer.Argument(help="3, remark, 11 or 24; none: all of them.")] = None,
    runs: Annotated[int, typer.Option(help="Games of every learner against every adversary.")] = 100,
    out: Annotated[Path, typer.Option(help="Folder for tables and figures.")] = Path("results/adversaries"),
) -> None:
    """Play every learner against the paper's lower-bound constructions."""
    from onebit.commands.adversary import adversary_command

    adversary_command(theorem, runs, out)


@app.command()
def theory(
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for tables and figures; results/theory/, or results/theory/quick/ with --quick."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller sets and problems: seconds.")] = False,
) -> None:
    """Draw Figure 2, the looseness of Theorem 5 and the hardness of weak labelling."""
    from onebit.commands.theory import theory_command

    theory_command(out, quick)


@app.command()
@options.reads_files()
def compare(
    data: Annotated[
        list[str], typer.Argument(help=f"Files ({options.FILES}), folders of them, or names: {options.NAMES}.")
    ],
    learners: options.Learners = None,
    rival: options.Rival = None,
    grid: options.Grid = True,
    rival_seconds: options.RivalSeconds = 3600.0,
    baseline: Annotated[
        str | None, typer.Option(help="Whom all others are compared with; the first learner by default.")
    ] = None,
    *,
    reading: "Reading",
    rounds: options.Rounds = 10_000,
    runs: options.Runs = 12,
    seed: options.Seed = 0,
    preprocess: options.Preprocess = "standardize",
    unit_length: options.UnitLength = False,
    jobs: options.Jobs = None,
    dask: options.Dask = None,
    out: options.Out = Path("results/compare"),
) -> None:
    """Play learners on the same shuffles of your data; write tables, figures and report.html."""
    from onebit.commands.compare import Request, compare_command

    size = rounds, runs, seed
    rows = preprocess, unit_length
    compare_command(
        Request(
            data,
            learners or (),
            rival or (),
            grid,
            baseline,
            reading,
            *size,
            *rows,
            jobs,
            out,
            dask,
            rival_seconds,
        )
    )


@app.command()
@options.reads_files()
def league(
    data: Annotated[
        list[str] | None,
        typer.Argument(help=f"More to play on: files ({options.FILES}), folders of them, or streams of your own."),
    ] = None,
    bundled: Annotated[
        bool, typer.Option(help=f"Play on all that comes with onebit: {', '.join(known_names())}.")
    ] = True,
    learners: options.Learners = None,
    diagonal: Annotated[
        bool, typer.Option("--diagonal", help="Play the diagonal forms too of all who keep whole matrices.")
    ] = False,
    rival: options.Rival = None,
    grid: options.Grid = True,
    rival_seconds: options.RivalSeconds = 3600.0,
    *,
    reading: "Reading",
    rounds: options.Rounds = 10_000,
    runs: options.Runs = 20,
    seed: options.Seed = 0,
    preprocess: options.Preprocess = "standardize",
    unit_length: options.UnitLength = False,
    seconds_per_game: Annotated[
        float, typer.Option(help="The longest game; by what a learner says of its effort, not by a clock.")
    ] = 600.0,
    jobs: options.Jobs = None,
    dask: options.Dask = None,
    out: options.Out = Path("results/league"),
) -> None:
    """Rank all learners over all streams and your data; write tables, figures and a page for every learner."""
    from onebit.commands.league import LeagueRequest, league_command

    league_command(
        LeagueRequest(
            data or (),
            learners or (),
            rival or (),
            grid,
            None,
            reading,
            rounds,
            runs,
            seed,
            preprocess,
            unit_length,
            jobs,
            out,
            dask,
            rival_seconds,
            bundled,
            seconds_per_game,
            diagonal,
        )
    )


@app.command()
@options.reads_files()
def play(
    data: Annotated[str, typer.Argument(help=f"A file ({options.FILES}), or a name: {options.NAMES}.")],
    *,
    reading: "Reading",
    learner: Annotated[
        str,
        typer.Option(
            help=f'Such as "Banditron:exploration=0.02". There are {options.LEARNERS}; or mypackage.mine:Mine.'
        ),
    ] = "BanditSVM",
    rounds: Annotated[int | None, typer.Option(help="Rounds, at most; every row once by default.")] = None,
    seed: Annotated[int, typer.Option(help="Of the learner's random numbers, and of the shuffle.")] = 0,
    shuffle: Annotated[bool, typer.Option(help="Shuffle the rows; otherwise they come in the file's order.")] = False,
    preprocess: options.Preprocess = "none",
    save: Annotated[Path | None, typer.Option(help="Save the learner, with all it has learned, as this file.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the figure and report.html.")] = Path("results/play"),
) -> None:
    """Let one learner play your data; show its mistakes, draw them, and save it if you like."""
    from onebit.commands.play import PlayRequest, play_command

    play_command(PlayRequest(data, reading, learner, rounds, seed, shuffle, preprocess, save, out))


@app.command()
@options.reads_files(without="label")
def evaluate(
    log: Annotated[
        str,
        typer.Argument(
            help="A table of rounds that were played (CSV, TSV, Parquet, ARFF), a decider's file, or the URL of a "
            "PostgreSQL database of deciders, postgresql://user@host/database."
        ),
    ],
    name: Annotated[str | None, typer.Option(help="Which decider of the database, such as support/routing.")] = None,
    learners: Annotated[
        list[str] | None,
        typer.Option(
            help='Such as "BanditSVM Banditron:exploration=0.02", or the file of a saved model, which learns nothing; '
            f"repeat it or put spaces between. There are {options.LEARNERS}; one of your own is mypackage.mine:Mine."
        ),
    ] = None,
    guess: Annotated[str, typer.Option(help="Column with the label that was guessed.")] = "guess",
    correct: Annotated[
        str, typer.Option(help="Column with right or wrong, true or false, 1 or 0; empty where nobody said.")
    ] = "correct",
    propensity: Annotated[
        str | None,
        typer.Option(help="Column with the chance the guess was drawn with; otherwise propensity, if it is there."),
    ] = None,
    among: Annotated[
        str | None,
        typer.Option(help="Column with the labels that were allowed, a|b|c; otherwise among, if it is there."),
    ] = None,
    classes: Annotated[
        list[str] | None,
        typer.Option(help="All labels there are: the right one is always among them. Repeat it or put commas between."),
    ] = None,
    *,
    reading: "Reading",
    hears: Annotated[
        str,
        typer.Option(
            help="What learners hear: facts (every logged answer), own (what they would have heard, where that is "
            "known) or nothing."
        ),
    ] = "facts",
    preprocess: options.Preprocess = "online",
    seed: Annotated[int, typer.Option(help="Of the learners' random numbers.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for evaluate.csv, the figure and report.html.")] = Path(
        "results/evaluate"
    ),
) -> None:
    """Say what other learners would have done on a log: sure bounds on their mistakes, and estimates."""
    from onebit.commands.evaluate import EvaluateRequest, evaluate_command
    from onebit.experiments.evaluate.log import LogColumns

    evaluate_command(
        EvaluateRequest(
            log,
            learners or (),
            LogColumns(guess, correct, propensity, among),
            classes or (),
            reading,
            hears,
            preprocess,
            seed,
            out,
            name,
        )
    )


@app.command()
def playground(
    port: Annotated[int, typer.Option(help="Where to listen, on this machine only; another if it is taken.")] = 8017,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    compiled: Annotated[
        bool, typer.Option("--compiled", help="Compile the learners: faster, after a minute or two the first time.")
    ] = False,
) -> None:
    """Open a page where you watch learners learn, draw points for them, or answer them yourself."""
    from onebit.commands.playground import playground_command

    playground_command(port, browser, compiled)


@app.command()
def serve(
    folder: Annotated[Path, typer.Argument(help="Where deciders and tokens are; made if it is missing.")],
    host: Annotated[str, typer.Option(help="Where to listen; others than this machine need tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Where to listen; 0: any that is free.")] = 8018,
    rate: Annotated[
        float, typer.Option(help="Guesses and answers a second that one caller may ask for; 0: any number.")
    ] = 20_000.0,
    log_requests: Annotated[
        bool, typer.Option("--log-requests", help="Note every request; otherwise those that were refused.")
    ] = False,
    log: Annotated[
        str | None,
        typer.Option(help="Keep deciders in a PostgreSQL database, by its URL; or say it in the variable ONEBIT_LOG."),
    ] = None,
    memory: Annotated[
        float | None,
        typer.Option(help="GiB of memory that deciders may take together; half of what there is, if not given."),
    ] = None,
    audit: Annotated[bool, typer.Option(help="Note who did what in the folder's audit.jsonl.")] = True,
    max_connections: Annotated[
        int | None,
        typer.Option(help="Connections at once; 1 000, or half as many as open files are allowed, if not given."),
    ] = None,
    max_connections_per_address: Annotated[
        int | None, typer.Option(help="Of them from one address, such as a proxy's; a quarter of all, if not given.")
    ] = None,
) -> None:
    """Serve deciders over HTTP: guess, tell, reports, metrics. SIGTERM stops it when all is answered."""
    from onebit.commands.serve import serve_command

    serve_command(
        folder, host, port, rate, log_requests, log, memory, audit, max_connections, max_connections_per_address
    )


@app.command()
def mcp(
    where: Annotated[str, typer.Argument(help="A decider's file, begun or continued; with --url its namespace/name.")],
    classes: Annotated[
        list[str] | None,
        typer.Option(help="The labels, to begin one. Repeat it or put commas between."),
    ] = None,
    learner: Annotated[str | None, typer.Option(help='Such as "Banditron:exploration=0.02"; to begin one.')] = None,
    deadline: Annotated[
        float | None, typer.Option(help="Seconds after which a guess without an answer is closed; to begin one.")
    ] = None,
    exploration_floor: Annotated[
        float, typer.Option(help="The share of guesses drawn evenly among the labels; to begin one.")
    ] = 0.0,
    about: Annotated[str | None, typer.Option(help="What is decided, in words for the agents.")] = None,
    url: Annotated[str | None, typer.Option(help="A service, http://127.0.0.1:8018, instead of a file.")] = None,
    token_file: Annotated[Path | None, typer.Option(help="A file with the service's token.")] = None,
) -> None:
    """Give AI agents a decider's verbs over MCP, on standard input and output: their host starts this command."""
    from onebit.commands.mcp import McpRequest, mcp_command

    mcp_command(McpRequest(where, classes or [], learner, deadline, exploration_floor, about, url, token_file))


@app.command("warm-up")
def warm_up(
    learners: Annotated[
        list[str] | None,
        typer.Argument(
            help="As for compare, or all; without any, those that compare plays by default.", metavar="[LEARNER...]"
        ),
    ] = None,
) -> None:
    """Compile what you will need, so that no first guess waits for it; the code is kept on disk."""
    from onebit.commands.warm_up import warm_up_command

    warm_up_command(learners or ())


@app.command("accept-loss")
def accept_loss(path: Annotated[Path, typer.Argument(help="The decider's file.")]) -> None:
    """Let a decider go on whose file has lost events, its journal being damaged; the loss is noted in its log."""
    from onebit.commands.accept_loss import accept_loss_command

    accept_loss_command(path)


tokens = typer.Typer(help="Who may ask `onebit serve`, and for what.", no_args_is_help=True)
app.add_typer(tokens, name="tokens")
_Folder = Annotated[Path, typer.Argument(help="The folder that is served.")]


@tokens.command()
def add(
    folder: _Folder,
    name: Annotated[str, typer.Argument(help="Whose it is.")],
    role: Annotated[list[str], typer.Option(help="play, read or admin; repeat it for several.")],
    namespace: Annotated[list[str] | None, typer.Option(help="Where; repeat it. Without: everywhere.")] = None,
    expires: Annotated[
        str | None, typer.Option(help="When it ends: 12h, 90d, 8w, or a date such as 2027-12-31. Without: never.")
    ] = None,
) -> None:
    """Make a token, and print it once."""
    from onebit.commands.serve import add_token_command

    add_token_command(folder, name, role, namespace or ["*"], expires)


@tokens.command("list")
def list_tokens(folder: _Folder) -> None:
    """List whose tokens there are, and what they may do."""
    from onebit.commands.serve import list_tokens_command

    list_tokens_command(folder)


@tokens.command()
def remove(folder: _Folder, name: Annotated[str, typer.Argument(help="Whose it is.")]) -> None:
    """Remove a token; a running service knows within a second."""
    from onebit.commands.serve import remove_token_command

    remove_token_command(folder, name)


def main() -> None:
    """Run the command line: one line for an error a user can mend, a traceback for a bug of ours."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a letter is no reason to fail when everything has been played.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    _check_switches(sys.argv[1:])
    NOTICE.is_command = True
    try:
        with errors_in_a_line():
            app()
    except SystemExit as ended:
        if ended.code == _INTERRUPTED:  # what typer makes of Ctrl-C, and what shells expect
            kept = " What was finished is kept; the same command goes on from there."
            Console(stderr=True).print(f"Stopped.{kept if sys.argv[1:2] in _KEEPING else ''}")
        raise


def _check_switches(words: list[str]) -> None:
    """Refuse a value after a switch: it would be taken for one more argument, such as a data set."""
    commands = getattr(typer.main.get_command(app), "commands", {})
    options = commands[words[0]].params if words and words[0] in commands else []
    flags = [option for option in options if getattr(option, "is_flag", False)]
    switches = {name for flag in flags for name in (*flag.opts, *flag.secondary_opts)}
    for switch, value in pairwise(words):
        if switch in switches and value.lower() in _TRUTHS:
            fail(f"{switch} takes no value: give it or leave it out; got {value!r}", code=2)
