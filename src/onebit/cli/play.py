"""``onebit play``: one learner on one data set, with a progress bar, a table, a figure, and a saved file."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from rich.console import Console

from onebit import streams
from onebit.asking import read_share
from onebit.cli import options
from onebit.confidence import reliability, risk_by_coverage
from onebit.decider.report import share_of
from onebit.experiments.entries import parse_player
from onebit.experiments.players import LearnerPlayer, build
from onebit.inputs import check_choice, check_integer, check_seed
from onebit.playing import ByRound, Trace, play
from onebit.reporting.console import (
    prepare_folder,
    prepare_report,
    print_facts,
    print_line,
    print_table,
    progress_bar,
)
from onebit.reporting.looks import PALETTE
from onebit.reporting.pages import Drawing, Sections, write_page
from onebit.reporting.text import Table, grouped, in_figure
from onebit.streams import DataSet, describe
from onebit.streams.preprocess import METHODS, describe_preprocessing
from onebit.streams.reading import Reading
from onebit.streams.sources import find_source

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DRAWN_ROUNDS = 10_000  # of a stream, unless the user says how many
_PARTS = 10  # of the stream, whose rates are shown
_MOST_CLASSES = 30  # on the screen; the report has them all
_COLUMNS = ("class", "rounds", "asked", "mistakes", "rate", "guessed")
_SURE_ROUNDS = 100_000  # as many are played with confidence unless the user says otherwise: a few seconds more
_DRAWN_POINTS = 1_000  # of a curve that has one a round
_PALE = "#C4CDD5"
_NEARLY_ALL = 0.9  # of the second half of the rounds
_FEWEST_SURE = 100  # rounds with a confidence, for its figure


class _Sureness(NamedTuple):
    """Whether confidence is estimated, and when the learner asks."""

    wrong_at_most: Annotated[
        str | None, "Ask for the label when unsure, so that at most this share of the rest is wrong: 5% or 0.05."
    ] = None
    ask_at_most: Annotated[str | None, "Or ask about at most this share of the rounds, where it helps most."] = None
    confidence: Annotated[
        bool | None,
        "Estimate how likely each guess is to be right, which takes some 25 µs a round; by default in games of at most "
        f"{grouped(_SURE_ROUNDS)} rounds, and where it asks.",
    ] = None

    def arguments(self, rounds: int) -> dict[str, Any]:
        """Return what `play` is given, in a game of so many rounds."""
        limits = {"wrong_at_most": self.wrong_at_most, "ask_at_most": self.ask_at_most}
        given = {name: read_share(f"--{name.replace('_', '-')}", text) for name, text in limits.items() if text}
        if len(given) == 2:
            raise ValueError("--wrong-at-most and --ask-at-most are two ways to limit questions; give one of them")
        if given and self.confidence is False:
            raise ValueError(f"--no-confidence with --{next(iter(given)).replace('_', '-')}: leave one of them out")
        wanted = rounds <= _SURE_ROUNDS if self.confidence is None else self.confidence
        return {**given, "confidence": wanted}


def command(
    data: options.OneSource,
    *,
    learner: Annotated[
        str, f'Such as "Banditron:exploration=0.02". There are {options.LEARNERS}; or mypackage.mine:Mine.'
    ] = "BanditSVM",
    rounds: Annotated[int | None, "Rounds, at most; every row once by default."] = None,
    seed: Annotated[int, "Of the learner's random numbers, and of the shuffle."] = 0,
    shuffle: Annotated[bool, "Shuffle the rows; otherwise they come in the file's order."] = False,
    reading: Reading,
    preprocess: options.Preprocess = "none",
    sureness: _Sureness,
    save: Annotated[Path | None, "Save the learner, with all it has learned, as this file."] = None,
    out: Annotated[Path, "Folder for the figure and report.html."] = Path("results/play"),
) -> None:
    """Let one learner play your data; show its mistakes, draw them, and save it if you like."""
    player = parse_player(learner)
    if not isinstance(player, LearnerPlayer):
        raise ValueError(f"--learner {learner}: must be a learner; other players can be compared, not shown")
    if save is not None:
        _check_save(save, data)
        if preprocess != "none" and not player.scales_rows:
            raise ValueError(
                f"--save with --preprocess {preprocess}: the learner would be saved without what makes its rows ready; "
                "leave one out, or take BanditSVM, which scales columns by itself"
            )
    check_choice("--preprocess", preprocess, METHODS)
    found = _rounds(data, reading, rounds, seed, shuffle)
    made, game = build(player.spec), sureness.arguments(len(found.y))
    console = Console()
    is_drawn = prepare_report(console, out)
    print_facts(console, found.name, describe(found))
    rows = _prepared(console, found, player, learner, preprocess)
    with progress_bar(console, f"{learner}, {grouped(len(found.y))} rounds") as show:
        trace = play(made, rows, seed=seed, keep_guesses=True, on_progress=show, **game)
    if save is not None:
        made.save(save)
    facts = {
        "Learner": learner,
        "Data set": found.name,
        **{name.capitalize(): text for name, text in describe(found).items() if name != "rows"},
        "Rounds": f"{grouped(len(found.y))}, {'shuffled' if shuffle else 'in the order of the file'}",
        "Preprocessing": preprocess,
        "Seed": str(seed),
    }
    wrong = np.asarray(trace.guesses != np.array(found.label_names)[found.y])
    alone = np.ones_like(wrong) if trace.by_round is None else ~trace.by_round.asked
    table, says = Table(_COLUMNS, _rows(found, trace, wrong, alone)), _says(trace, game)
    rates = ", ".join(f"{rate:.1%}" for rate in _tenths(wrong & alone, alone))
    print_table(console, replace(table, rows=table.rows[: _MOST_CLASSES + 1], sections=[1]))
    if (n_more := len(table.rows) - _MOST_CLASSES - 1) > 0:
        print_line(console, f"… and {n_more} rarer classes, which report.html lists")
    for line in (f"Mistakes by tenths of the stream: {rates}", *says):
        print_line(console, line)
    title = f"{learner} on {found.name}"
    figures = _figures(trace, wrong, alone, title, game.get("wrong_at_most")) if is_drawn else []
    sections: Sections = {"": [*says, *figures], "Class by class": [table]}
    write_page(out, title, sections, facts, figures=".")
    names = ", ".join(f"{figure.name}.png" for figure in figures)
    print_line(console, f"{names} and report.html are in {out}." if figures else f"report.html is in {out}.")
    if save is not None:
        print_line(console, f"The learner is saved as {save}.")


def _check_save(path: Path, data: str) -> None:
    """Make sure that a file can be written, and is not the data, before anything is played."""
    if path.exists() and not path.is_file():
        raise ValueError(f"--save {path}: is a folder or a device; name a file, such as model.onebit")
    if path.exists() and Path(data).exists() and path.samefile(data):
        raise ValueError(f"--save {path}: is the file with the data; name another, such as model.onebit")
    prepare_folder(path.absolute().parent, f"--save {path}:")


def _prepared(console: Console, data: DataSet, player: LearnerPlayer, learner: str, method: str) -> DataSet:
    """Return the data set as the learner gets it, and print what was done to its rows."""
    if player.scales_rows:
        return data
    if method == "none":
        text = f"{learner} takes columns as they are: --preprocess online scales them if their units differ much "
        print_line(console, f"{text}(BanditSVM does it by itself).", "note: ")
        return data
    text = describe_preprocessing(method, unit_length=False, is_sparse=data.is_sparse)
    print_line(console, f"Preprocessing: {text}.")
    return replace(data, X=streams.preprocess(data.X, method))


def _rounds(given: str, reading: Reading, rounds: int | None, seed: int, is_shuffled: bool) -> DataSet:
    """Return the rounds in the order in which they are played."""
    check_seed(seed)
    if rounds is not None:
        check_integer("--rounds", rounds, low=1)
    source = find_source(given, reading)
    source.check_one_right()
    if source.stream is not None:
        X, y, n_classes = source.drawn(rounds or _DRAWN_ROUNDS, seed)
        data = DataSet(source.name, X, y, tuple(map(str, range(n_classes))))
    else:
        data = source.load()
    n_rows = len(data.y)
    places = (np.random.default_rng(seed).permutation(n_rows) if is_shuffled else np.arange(n_rows))[:rounds]
    X, y = data.X[places], data.y[places]
    if source.stream is None:
        X, y = source.changed(X, y, data.n_classes, seed)
    return replace(data, X=X, y=y, about=(*data.about, *source.about.items()))


def _rows(data: DataSet, trace: Trace, wrong: np.ndarray, alone: np.ndarray) -> list[list[str]]:
    """Return the rows of the table: all classes together, then each, the most frequent first."""
    codes = {name: code for code, name in enumerate(data.label_names)}
    guesses = np.array([codes[name] for name in np.asarray(trace.guesses).tolist()])
    counted = (data.y, data.y[~alone], data.y[wrong & alone], guesses)
    counts = np.column_stack([np.bincount(each, minlength=data.n_classes) for each in counted]).tolist()
    classes = sorted(zip(codes, counts, strict=True), key=lambda each: -each[1][0])
    rows = []
    for name, (rounds, asked, mistakes, guessed) in [("all", np.sum(counts, axis=0).tolist()), *classes]:
        rate = f"{mistakes / (rounds - asked):.1%}" if rounds > asked else "–"
        of_asked = grouped(asked) if trace.asked else ""
        rows.append([name, grouped(rounds), of_asked, grouped(mistakes), rate, grouped(guessed)])
    return rows


def _says(trace: Trace, game: dict[str, Any]) -> list[str]:
    """Return in words how often it asked, and what came of it."""
    if trace.by_round is None or not game.keys() & {"wrong_at_most", "ask_at_most"}:
        return []
    later, alone = trace.by_round.asked[trace.rounds // 2 :].mean(), trace.rounds - trace.asked
    asked = f"Asked: {grouped(trace.asked)} of {grouped(trace.rounds)} rounds ({trace.asked / trace.rounds:.1%}; "
    asked += f"{later:.1%} in the second half)"
    if trace.asked:
        share = trace.suggestions_right / trace.asked
        asked += f"; {grouped(trace.suggestions_right)} of the suggestions were right ({share:.1%})"
    decided = f"Decided alone: {grouped(alone)} rounds"
    if alone:
        decided += f", {grouped(trace.mistakes)} of them wrong ({trace.mistakes / alone:.1%})"
    if "wrong_at_most" in game:
        most, share = int((trace.wrong_limit or 0.0) + 1e-9), 100.0 * game["wrong_at_most"]
        decided += f"; the theorem allows {grouped(most)}, which is {share:g}% of them and the debt"
    else:
        decided += f"; at most {grouped(int(game['ask_at_most'] * trace.rounds) + 20)} rounds may be asked about"
    hopeless = f"It asks nearly always ({later:.0%}): the columns do not say enough for this limit."
    return [f"{asked}.", f"{decided}.", *([hopeless] if later >= _NEARLY_ALL and "wrong_at_most" in game else [])]


def _tenths(counted: np.ndarray, of: np.ndarray) -> list[float]:
    """Return the share in each tenth of a stream, or each round of a short one; 0 where there is nothing to count.

    >>> _tenths(np.array([True, True, False, True]), np.ones(4, dtype=bool))
    [1.0, 1.0, 0.0, 1.0]
    """
    parts = min(_PARTS, len(of))
    split = zip(np.array_split(counted, parts), np.array_split(of, parts), strict=True)
    return [float(part.sum() / max(1, n.sum())) for part, n in split]


def _figures(trace: Trace, wrong: np.ndarray, alone: np.ndarray, title: str, limit: float | None) -> list[Drawing]:
    """Return the figures of the report."""
    caption = (
        "Left: mistakes so far. Right: the share of mistakes in each tenth of the stream; the line is the share over "
        "all of it, or its limit. Rounds that were asked about are no mistakes; their share is beside."
    )
    draw = partial(_draw_mistakes, trace, wrong, alone, title, limit)
    drawings = [Drawing("mistakes", "Mistakes", caption, draw)]
    if trace.by_round is not None and (~np.isnan(trace.by_round.confidence)).sum() >= _FEWEST_SURE:
        caption = (
            "Left: ten groups of guesses by confidence, of equal size: on the line confidence is what it claims; the "
            "bars are 95 % intervals. Right: if only the guesses with the most confidence were decided alone, how many "
            "of them would be wrong."
        )
        draw = partial(_draw_confidence, trace.by_round, title)
        drawings.append(Drawing("confidence", "How sure it was, and how often right", caption, draw))
    return drawings


def _draw_mistakes(trace: Trace, wrong: np.ndarray, alone: np.ndarray, title: str, limit: float | None) -> "Figure":
    """Draw mistakes so far, and the share of mistakes in each tenth of the stream, and of what was asked about."""
    from onebit.reporting import figures as style

    rates, asked = _tenths(wrong & alone, alone), _tenths(~alone, np.ones_like(alone))
    with style.looks():
        figure, (left, right) = style.new_figure(1, 2, 3.2)
        figure.suptitle(in_figure(title, most=80))
        trace.plot(left, color=PALETTE[0])
        for axis in (left.xaxis, left.yaxis):
            style.count_axis(axis, most_ticks=4)
        places = np.arange(1, len(rates) + 1)
        if trace.asked:
            right.bar(places, asked, color=_PALE, width=0.75, label="asked")
        right.bar(places, rates, color=PALETTE[0], width=0.4 if trace.asked else 0.75, label="wrong of the rest")
        if trace.asked:
            right.legend(loc="upper right", handlelength=1.0)
        whole = trace.mistakes / max(1, alone.sum()) if limit is None else limit
        right.axhline(whole, color=PALETTE[1], linewidth=1.2, linestyle=(0, (5, 2)))
        named = f"{whole:.1%} in all" if limit is None else f"limit {100 * limit:g}%"
        right.set_title(named, loc="right", fontsize=10, color=PALETTE[1])
        right.set(xlabel="tenth of the stream" if len(rates) == _PARTS else "round", ylabel="share", xticks=places)
        right.set_ylim(0, max(0.05, 1.1 * max([*rates, *asked])))
        style.count_percent(right.yaxis)
        right.grid(visible=False, axis="x")
    return figure


def _draw_confidence(rounds: ByRound, title: str) -> "Figure":
    """Draw how often guesses of each confidence were right, and what share would be wrong of those decided alone."""
    from onebit.reporting import figures as style

    known = ~np.isnan(rounds.confidence)
    bins = reliability(rounds.confidence[known], rounds.right[known])
    means = [mean for mean, _, _ in bins]
    shares = [share_of(n_right, of) for _, n_right, of in bins]
    heights, lows, highs = np.array([(share.share, share.low, share.high) for share in shares]).T
    ends = [heights - lows, highs - heights]
    risk = risk_by_coverage(rounds.confidence[known], rounds.right[known])
    with style.looks():
        figure, (left, right) = style.new_figure(1, 2, 3.2)
        figure.suptitle(in_figure(title, most=80))
        left.plot([0, 1], [0, 1], color=_PALE)
        left.errorbar(means, heights, ends, color=PALETTE[0], marker="o", markersize=5, linestyle="", elinewidth=1.2)
        left.set(xlabel="confidence", ylabel="share right", xlim=(0, 1.02), ylim=(0, 1.02))
        at = np.unique(np.linspace(0, len(risk) - 1, _DRAWN_POINTS).astype(int))
        right.plot((at + 1) / len(risk), risk[at], color=PALETTE[0])
        right.set(xlabel="share decided alone", ylabel="share wrong of these", xlim=(0, 1))
        right.set_ylim(0, max(0.02, 1.1 * float(risk[len(risk) // 20 :].max())))
        for axis in (left.xaxis, left.yaxis, right.xaxis):
            style.count_percent(axis, [0, 0.5, 1])
        style.count_percent(right.yaxis)
    return figure
