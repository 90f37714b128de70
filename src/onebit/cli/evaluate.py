"""``onebit evaluate``: other learners on the rounds of a log, with a table, a figure and a page."""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from rich.console import Console

from onebit.cli import options
from onebit.cli.options import after_options, has_figures, option_words, say_what_was_read, several
from onebit.decider.logged_rounds import is_decider, read_decider
from onebit.decider.settings import has_password, is_database
from onebit.experiments.entries import parse_player
from onebit.experiments.evaluate.answer_rates import describe_answers
from onebit.experiments.evaluate.log import RIGHT, WRONG, LogColumns, LoggedRounds, read_log
from onebit.experiments.evaluate.replay import (
    HEARS,
    Candidate,
    evaluate,
    print_tables,
    write_report,
    write_table,
)
from onebit.experiments.players import LearnerPlayer, build
from onebit.inputs import check_choice, check_seed
from onebit.learners import load
from onebit.reporting.console import on_screen, prepare_folder, progress_bar, say_where
from onebit.reporting.pages import FigureFile
from onebit.reporting.text import grouped, in_shell
from onebit.streams.data_set import in_lines
from onebit.streams.preprocess import METHODS, describe_preprocessing
from onebit.streams.reading import Reading

DEFAULTS = ("BanditSVM", "BanditPerceptron", "EpsilonGreedy")
_MODEL = ".onebit"
_HEARD = {
    "facts": "after every answered round the logged label and its answer, by learn_from",
    "own": "what it would have heard itself, where the log tells it",
    "nothing": "nothing",
}


class _Replay(NamedTuple):
    """How the learners are run."""

    hears: Annotated[
        str,
        "What learners hear: facts (every logged answer), own (what they would have heard, where that is known) or "
        "nothing.",
    ] = "facts"
    preprocess: options.Preprocess = "online"
    seed: Annotated[int, "Of the learners' random numbers."] = 0


def command(
    log: Annotated[
        str,
        "A table of rounds that were played (CSV, TSV, Parquet, ARFF), a decider's file, or the URL of a PostgreSQL "
        "database of deciders, postgresql://user@host/database.",
    ],
    *,
    learners: Annotated[
        tuple[str, ...],
        'Such as "BanditSVM Banditron:exploration=0.02", or the file of a saved model, which learns nothing; repeat it '
        f"or put spaces between. There are {options.LEARNERS}; one of your own is mypackage.mine:Mine.",
    ] = (),
    name: Annotated[str | None, "Which decider of the database, such as support/routing."] = None,
    columns: LogColumns,
    classes: Annotated[
        tuple[str, ...],
        "All labels there are: the right one is always among them. Repeat it or put commas between.",
    ] = (),
    reading: Annotated[Reading, "label"],  # a log has none
    replay: _Replay,
    out: Annotated[Path, "Folder for evaluate.csv, the figure and report.html."] = Path("results/evaluate"),
) -> None:
    """Say what other learners would have done on a log: sure bounds on their mistakes, and estimates."""
    check_choice("--hears", replay.hears, HEARS)
    check_choice("--preprocess", replay.preprocess, METHODS)
    check_seed(replay.seed)
    _check_place(log, name)
    # A file's name may have spaces.
    texts = [word for text in learners for word in ([text] if _is_model(text) else text.split())] or [*DEFAULTS]
    candidates = [_candidate(text) for text in texts]
    titles = [candidate.title for candidate in candidates]
    for title in titles:
        if titles.count(title) > 1:
            raise ValueError(f"--learners {title}: the learner is named twice; leave one out")
    labels = several(classes, ",") or None
    if is_decider(log):
        found = read_decider(log, labels, name)
    else:
        found = read_log(log, columns, classes=labels, reading=reading)
    # After everything that can be wrong with the request, before anything is replayed.
    prepare_folder(out)
    console, about = Console(), describe_log(found)
    say_what_was_read(console, found.name, about)
    is_drawn = has_figures(console)
    preprocessing = describe_preprocessing(replay.preprocess, unit_length=False, is_sparse=hasattr(found.X, "indptr"))
    if not all(candidate.scales_rows for candidate in candidates):
        text = f"Preprocessing, for all who do not scale columns themselves: {preprocessing}."
        console.print(on_screen(text), highlight=False, soft_wrap=True)
    with progress_bar(console, f"{len(candidates)} learners, {grouped(found.n_rounds)} rounds") as show:
        settings: dict[str, Any] = {"hears": replay.hears, "preprocessing": replay.preprocess, "seed": replay.seed}
        rows = evaluate(found, candidates, **settings, on_progress=show)
    write_table(out / "evaluate.csv", rows)
    figures: list[FigureFile] = []
    if is_drawn:
        from onebit.experiments.figures import evaluation_drawings
        from onebit.reporting.figures import draw_files

        figures = draw_files(evaluation_drawings(rows), out)
    words = [word for text in texts for word in ("--learners", text)]
    words += [] if name is None else ["--name", name]
    words += [word for label in labels or () for word in ("--classes", label)]
    words += [*option_words(columns), *option_words(reading), *option_words(replay, always=_Replay._fields)]
    details = {
        "Log": found.name,
        "Read": in_lines(about),
        "Heard": f"{_HEARD[replay.hears]}; saved models hear nothing",
        "Preprocessing": f"{preprocessing}; who scales columns, and saved models, get rows as they come",
        "Seed": str(replay.seed),
        "Command": in_shell(["onebit", "evaluate", *words, *after_options([log])]),
    }
    write_report(out / "report.html", rows, figures, details)
    print_tables(console, rows, found.name)
    say_where(console, f"evaluate.csv{', evaluate.png' * is_drawn} and report.html are", out)


def _check_place(log: str, name: str | None) -> None:
    """Raise ValueError unless it is clear which log is meant, and the command can be shown to everybody."""
    if not is_database(log):
        if name is not None:
            raise ValueError(f"--name {name}: is for deciders in a database; a file has one log, leave it out")
        return
    if has_password(log):
        raise ValueError(
            "the URL of the database must have no password: everybody on this machine could read it there, and in the "
            "report. Give it in PGPASSWORD, or in the file ~/.pgpass"
        )
    if name is None:
        raise ValueError("a database has many deciders: say which, --name support/routing")


def describe_log(log: LoggedRounds) -> dict[str, str]:
    """Return what a log holds, for people."""
    counts = np.bincount(log.guesses, minlength=len(log.classes)).tolist()
    n_right, n_wrong = int((log.answers == RIGHT).sum()), int((log.answers == WRONG).sum())
    silent = log.n_rounds - n_right - n_wrong
    without = f"; {grouped(silent)} without an answer are shown to learners and counted nowhere" if silent else ""
    guessed = ", ".join(
        f"{label} {grouped(n)}" for label, n in list(zip(log.classes.tolist(), counts, strict=True))[:12]
    )
    more = f", … and {len(counts) - 12} more" if len(counts) > 12 else ""
    complete = "the right one is always among them" if log.is_complete else "there may be others (--classes lists all)"
    chances = log.propensities[~np.isnan(log.propensities)]
    spread = f"{chances.min():.3g} to {chances.max():.3g}" if len(chances) else "none: bounds only, no estimates"
    about = dict(log.about)
    return {
        **({"read as": about["read as"]} if "read as" in about else {}),
        "rounds": f"{grouped(log.n_rounds)}: {grouped(n_right)} right, {grouped(n_wrong)} wrong{without}",
        "guessed": f"{guessed}{more}; {complete}",
        "answered": describe_answers(log),
        "propensities": spread,
        **{name: about[name] for name in ("silence", "left out", "columns", "missing") if name in about},
    }


def _is_model(text: str) -> bool:
    return text.strip().endswith(_MODEL) or Path(text).is_file()


def _candidate(text: str) -> Candidate:
    if _is_model(text):
        if not Path(text).is_file():
            raise ValueError(f"--learners {text}: there is no such file; name one that learner.save(…) wrote")
        return Candidate(Path(text).name, load(text), is_frozen=True)
    player = parse_player(text)
    if not isinstance(player, LearnerPlayer):
        raise ValueError(f"--learners {text}: must be a learner; other players can be compared, not evaluated on a log")
    return Candidate(text, build(player.spec))
