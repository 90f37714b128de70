"""``onebit evaluate``: other learners on the rounds of a log, with tables, a figure and a page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from rich.console import Console

from onebit.cli import options
from onebit.cli.options import several
from onebit.decider.logged_rounds import read_decider
from onebit.decider.settings import has_password, is_database
from onebit.decider.sqlite import SQLiteLog
from onebit.experiments.entries import parse_player
from onebit.experiments.evaluate.estimates import ASSUMPTION, LEVEL, METHODS, answer_rates
from onebit.experiments.evaluate.log import RIGHT, WRONG, LogColumns, LoggedRounds, read_log
from onebit.experiments.evaluate.replay import Candidate, Evaluation, evaluate
from onebit.experiments.players import LearnerPlayer, build
from onebit.inputs import check_choice, check_seed
from onebit.learners import load
from onebit.reporting.console import prepare_report, print_facts, print_line, print_table, progress_bar
from onebit.reporting.pages import Drawing, Sections, write_page
from onebit.reporting.text import Cell, Table, fixed, grouped, write_csv
from onebit.streams.data_set import in_lines
from onebit.streams.preprocess import METHODS as PREPROCESSING
from onebit.streams.preprocess import describe_preprocessing
from onebit.streams.reading import Reading

_DEFAULTS = ("BanditSVM", "BanditPerceptron", "EpsilonGreedy")
_MODEL = ".onebit"
_HEARD = {
    "facts": "after every answered round the logged label and its answer, by learn_from; a label that was named",
    "own": "what it would have heard itself, where the log tells it",
    "nothing": "nothing",
}
_INTRO = (
    "Each learner guessed every round of the log before it got any feedback on it. After a right answer the label is "
    "known, so its guess is decided; after a wrong one only the same guess is. What is surely so needs true answers, "
    "and no more than one right label in a round; estimates also need the chances that are in the log, and an "
    "assumption that stands beside them. All of it is about the learners as they were run here."
)
_KINDS = {"surely fewer": "good", "fewer": "good", "surely more": "bad", "more": "bad", "open": "dim"}


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
        tuple[str, ...], "All labels there are: the right one is always among them. Repeat it or put commas between."
    ] = (),
    reading: Annotated[Reading, "label"],  # a log has none
    replay: _Replay,
    out: Annotated[Path, "Folder for evaluate.csv, the figure and report.html."] = Path("results/evaluate"),
) -> None:
    """Say what other learners would have done on a log: sure bounds on their mistakes, and estimates."""
    hears, preprocess, seed = replay
    check_choice("--hears", hears, tuple(_HEARD))
    check_choice("--preprocess", preprocess, PREPROCESSING)
    check_seed(seed)
    _check_place(log, name)
    # A file's name may have spaces.
    texts = [word for text in learners for word in ([text] if _is_model(text) else text.split())] or [*_DEFAULTS]
    candidates = [_candidate(text) for text in texts]
    titles = [candidate.title for candidate in candidates]
    if twice := [title for title in titles if titles.count(title) > 1]:
        raise ValueError(f"--learners {twice[0]}: the learner is named twice; leave one out")
    labels = several(classes, ",") or None
    is_read = is_database(log) or SQLiteLog.is_at(log)
    found = read_decider(log, labels, name) if is_read else read_log(log, columns, classes=labels, reading=reading)
    method = describe_preprocessing(preprocess, unit_length=False, is_sparse=hasattr(found.X, "indptr"))
    about = {
        **_describe_log(found),
        "preprocessing": f"{method}; for learners that do not scale columns; saved models get rows as they come",
    }
    # After everything that can be wrong with the request, before anything is replayed.
    console = Console()
    is_drawn = prepare_report(console, out)
    print_facts(console, found.name, about)
    with progress_bar(console, f"{len(candidates)} learners, {grouped(found.n_rounds)} rounds") as show:
        rows = evaluate(found, candidates, hears=hears, preprocessing=preprocess, seed=seed, on_progress=show)
    _write_table(out / "evaluate.csv", rows)
    drawings: list[Drawing] = []
    if is_drawn:
        from onebit.experiments.figures import evaluation_drawings

        drawings = evaluation_drawings(rows)
    tables = [_facts_table(rows)]
    if any(row.estimates.found for row in rows):
        tables.append(_estimates_table(rows))
    remarks = [(kind, text) for kind in ("warning", "note") for text in _together(rows, f"{kind}s")]
    sections: Sections = {
        "": [_INTRO, *drawings],
        "Mistakes": tables,
        "Remarks": [f"{kind}: {text}." for kind, text in remarks],
    }
    facts = {
        "Log": found.name,
        "Read": in_lines(about),
        "Heard": f"{_HEARD[hears]}; saved models hear nothing",
        "Seed": str(seed),
    }
    write_page(out, "What other learners would have done", sections, facts, figures=".")
    for table in tables:
        print_table(console, table)
    for kind, text in remarks:
        print_line(console, text, f"{kind}: ")
    print_line(console, f"evaluate.csv{', evaluate.png' * is_drawn} and report.html are in {out}.")


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


def _describe_log(log: LoggedRounds) -> dict[str, str]:
    """Return what a log holds, for people."""
    counts = np.bincount(log.guesses, minlength=len(log.classes)).tolist()
    n_right, n_wrong = (int((log.answers == answer).sum()) for answer in (RIGHT, WRONG))
    silent = log.n_rounds - n_right - n_wrong
    without = f"; {grouped(silent)} without an answer are shown to learners and counted nowhere" if silent else ""
    guessed = [f"{label} {grouped(n)}" for label, n in zip(log.classes.tolist(), counts, strict=True)]
    more = f", … and {len(counts) - 12} more" if len(counts) > 12 else ""
    complete = "the right one is always among them" if log.is_complete else "there may be others (--classes lists all)"
    chances = log.propensities[~np.isnan(log.propensities)]
    spread = f"{chances.min():.3g} to {chances.max():.3g}" if len(chances) else "none: bounds only, no estimates"
    about = dict(log.about)
    facts = {
        "read as": about.get("read as", ""),
        "rounds": f"{grouped(log.n_rounds)}: {grouped(n_right)} right, {grouped(n_wrong)} wrong{without}",
        "guessed": f"{', '.join(guessed[:12])}{more}; {complete}",
        "answered": _describe_answers(log),
        "propensities": spread,
        **{name: about.get(name, "") for name in ("asked", "silence", "left out", "columns", "missing")},
    }
    return {name: text for name, text in facts.items() if text}


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


def _describe_answers(log: LoggedRounds) -> str:
    """Return in words how often rounds were answered, and whether equally often."""
    n_answered = int(log.is_answered.sum())
    if n_answered == log.n_rounds:
        return "all rounds; if others were left out of the log, that cannot be seen"
    parts = [f"{grouped(n_answered)} of {grouped(log.n_rounds)} rounds"]
    for rates in answer_rates(log):
        tested = "too few to test" if rates.p_value is None else f"p = {rates.p_value:.2g}"
        parts.append(f"by {rates.by} {rates.extremes}, {tested}")
    known = log.answers[log.is_answered]
    if (known == known[0]).all():
        only, favoured = ("right", "the log") if known[0] == RIGHT else ("wrong", "the others")
        parts.append(f"all of them {only}: if only {only} guesses are answered, every comparison favours {favoured}")
    return "; ".join(parts)


def _write_table(path: Path, rows: Sequence[Evaluation]) -> None:
    """Write the table as CSV; shares are between 0 and 1."""
    columns = ["learner", "rounds", "known_right", "known_wrong", "unknown", "least_mistakes", "most_mistakes"]
    for method in METHODS:
        columns += [method.lower().replace("+", "_plus") + end for end in ("", "_low", "_high")]
    columns += ["effective_rounds", "largest_weight", "telling_rounds"]
    columns += ["against_the_log", "against_the_log_by", "estimates_assume", "warnings", "notes"]
    lines = []
    for row in rows:
        facts, of = row.known, row.estimates
        counts = facts.rounds, facts.right, facts.wrong, facts.unknown, facts.wrong, facts.wrong + facts.unknown
        shares = [share for method in METHODS for share in of.found.get(method, (None, None, None))]
        rests_on, remarks = (of.effective, of.largest, of.telling), map("; ".join, (of.warnings, of.notes))
        lines.append((row.title, *counts, *shares, *rests_on, row.verdict, row.verdict_by, of.assumption, *remarks))
    write_csv(path, columns, lines)


def _facts_table(rows: Sequence[Evaluation]) -> Table:
    """Return what is known of every learner."""
    lines: list[list[str | Cell]] = []
    for row in rows:
        facts = row.known
        counts, shares = grouped(facts.wrong), f"{100 * facts.low:.1f}"
        if facts.unknown:
            counts, shares = f"{counts} to {grouped(facts.wrong + facts.unknown)}", f"{shares}–{100 * facts.high:.1f}"
        verdict = f"{row.verdict}, by {row.verdict_by}" if row.verdict_by in METHODS else row.verdict
        cell = Cell(verdict, _KINDS.get(row.verdict, ""))
        lines.append([row.title, *map(grouped, facts), counts, shares, cell])
    notes = [
        f"{grouped(rows[0].known.rounds)} answered rounds; surely: no fewer and no more, whatever the unknown ones are",
        "sure if answers are true, and no more than one label is right in a round",
        "than the log: surely, by the bounds; or by an estimate's interval and its assumption",
    ]
    columns = ("learner", "right", "wrong", "unknown", "mistakes surely", "surely %", "than the log")
    return Table(columns, lines, "What is known of each learner", notes, ("name", *["number"] * 5, ""), [1])


def _estimates_table(rows: Sequence[Evaluation]) -> Table:
    """Return what is estimated of every learner."""
    lines = []
    for row in rows[1:]:
        percent = {name: [f"{100 * end:.1f}" for end in found] for name, found in row.estimates.found.items()}
        shares = ["{} ({}–{})".format(*percent[name]) if name in percent else "" for name in METHODS]
        of = row.estimates
        rests_on = [grouped(of.effective), fixed(of.largest, ".3g"), grouped(of.telling)]
        lines.append([row.title, *shares, *rests_on])
    notes = (
        f"estimated share of mistakes in the answered rounds, with {LEVEL:.0%} intervals; both cut to what is sure",
        f"{ASSUMPTION}; bounds do not",
        "effective rounds: as many of equal weight count as much; telling: an unlikely label was tried and informative",
    )
    columns = ("learner", *(f"{name} %" for name in METHODS), "effective rounds", "largest weight", "telling rounds")
    return Table(columns, lines, "What is estimated", notes)


def _together(rows: Sequence[Evaluation], kind: str) -> list[str]:
    """Return all warnings, or which estimates are not offered; once, where several learners have the same."""
    by_text: dict[str, list[str]] = {}
    for row in rows:
        for text in getattr(row.estimates, kind):
            by_text.setdefault(text, []).append(row.title)
    n_learners = sum(not row.is_logged for row in rows)
    named = {text: "all learners" if len(who) == n_learners > 1 else ", ".join(who) for text, who in by_text.items()}
    return [f"{names}: {text}" for text, names in named.items()]
