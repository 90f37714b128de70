"""What ``onebit evaluate`` does: other learners on the rounds of a log, with a table, a figure and a page."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from onebit.commands.decider_log import is_decider, read_decider
from onebit.commands.what_was_read import reading_words, say_what_was_read
from onebit.decider.settings import has_password, is_database
from onebit.experiments.entries import parse_player
from onebit.experiments.evaluate.answer_rates import describe_answers
from onebit.experiments.evaluate.log import RIGHT, USUAL, WRONG, LogColumns, LoggedRounds, read_log
from onebit.experiments.evaluate.replay import HEARS, Candidate, evaluate, print_tables, write_report, write_table
from onebit.experiments.figures import evaluation_drawings
from onebit.experiments.players import LearnerPlayer, build
from onebit.inputs import check_choice, check_seed
from onebit.learners import load
from onebit.reporting.console import on_screen, prepare_folder, progress_bar, say_where
from onebit.reporting.figures import draw_files
from onebit.reporting.text import grouped, in_shell
from onebit.streams.data_set import in_lines
from onebit.streams.preprocess import METHODS, describe_preprocessing
from onebit.streams.reading import PLAIN, Reading

DEFAULTS = ("BanditSVM", "BanditPerceptron", "EpsilonGreedy")
_MODEL = ".onebit"
_HEARD = {
    "facts": "after every answered round the logged label and its answer, by learn_from",
    "own": "what it would have heard itself, where the log tells it",
    "nothing": "nothing",
}


@dataclass(frozen=True)
class EvaluateRequest:
    """What the user asked for, in the user's words."""

    log: str
    """A table, a decider's file, or the URL of a database of deciders."""
    learners: Sequence[str] = ()
    """Each may name several, with spaces between, or be the file of a saved model; none means the defaults."""
    columns: LogColumns = USUAL
    classes: Sequence[str] = ()
    """Each may name several, with commas between; none: those that were guessed."""
    reading: Reading = PLAIN
    hears: str = "facts"
    preprocessing: str = "online"
    seed: int = 0
    out: Path = Path("results/evaluate")
    name: str | None = None
    """Which decider of a database."""

    @property
    def learner_texts(self) -> list[str]:
        """The learners, one each, or the defaults."""
        # A file's name may have spaces.
        return [word for text in self.learners for word in ([text] if _is_model(text) else text.split())] or list(
            DEFAULTS
        )

    @property
    def class_names(self) -> list[str] | None:
        """The labels, one each."""
        return [name.strip() for part in self.classes for name in part.split(",")] or None


def evaluate_command(request: EvaluateRequest) -> None:
    """Replay, then show, draw and write."""
    check_choice("--hears", request.hears, HEARS)
    check_choice("--preprocess", request.preprocessing, METHODS)
    check_seed(request.seed)
    _check_place(request)
    candidates = [_candidate(text) for text in request.learner_texts]
    titles = [candidate.title for candidate in candidates]
    for title in titles:
        if titles.count(title) > 1:
            raise ValueError(f"--learners {title}: the learner is named twice; leave one out")
    if is_decider(request.log):
        log = read_decider(request.log, request.class_names, request.name)
    else:
        log = read_log(request.log, request.columns, classes=request.class_names, reading=request.reading)
    # After everything that can be wrong with the request, before anything is replayed.
    prepare_folder(request.out)
    console, about = Console(), describe_log(log)
    say_what_was_read(console, log.name, about)
    preprocessing = describe_preprocessing(request.preprocessing, unit_length=False, is_sparse=hasattr(log.X, "indptr"))
    if not all(candidate.scales_rows for candidate in candidates):
        said = f"Preprocessing, for all who do not scale columns themselves: {preprocessing}."
        console.print(on_screen(said), highlight=False, soft_wrap=True)
    with progress_bar(console, f"{len(candidates)} learners, {grouped(log.n_rounds)} rounds") as show:
        rows = evaluate(
            log,
            candidates,
            hears=request.hears,
            preprocessing=request.preprocessing,
            seed=request.seed,
            on_progress=show,
        )
    write_table(request.out / "evaluate.csv", rows)
    figures = draw_files(evaluation_drawings(rows), request.out)
    details = {
        "Log": log.name,
        "Read": in_lines(about),
        "Heard": f"{_HEARD[request.hears]}; saved models hear nothing",
        "Preprocessing": f"{preprocessing}; who scales columns, and saved models, get rows as they come",
        "Seed": str(request.seed),
        "Command": _command(request),
    }
    write_report(request.out / "report.html", rows, figures, details)
    print_tables(console, rows, log.name)
    say_where(console, "evaluate.csv, evaluate.png and report.html are", request.out)


def _check_place(request: EvaluateRequest) -> None:
    """Raise ValueError unless it is clear which log is meant, and the command can be shown to everybody."""
    if not is_database(request.log):
        if request.name is not None:
            raise ValueError(f"--name {request.name}: is for deciders in a database; a file has one log, leave it out")
        return
    if has_password(request.log):
        raise ValueError(
            "the URL of the database must have no password: everybody on this machine could read it there, and in the "
            "report. Give it in PGPASSWORD, or in the file ~/.pgpass"
        )
    if request.name is None:
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


def _command(request: EvaluateRequest) -> str:
    """Return what to type to get the same again."""
    words = ["onebit", "evaluate"]
    for text in request.learner_texts:
        words += ["--learners", text]
    for name, value in request.columns._asdict().items():
        words += [f"--{name}", value] if value != LogColumns._field_defaults[name] else []
    words += [] if request.name is None else ["--name", request.name]
    for name in request.class_names or ():
        words += ["--classes", name]
    words += reading_words(request.reading)
    words += ["--hears", request.hears, "--preprocess", request.preprocessing, "--seed", str(request.seed)]
    return in_shell([*words, *(["--"] if request.log.startswith("-") else []), request.log])
