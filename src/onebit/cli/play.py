"""``onebit play``: one learner on one data set, with a progress bar, a table, a figure, and a saved file."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from rich.console import Console

from onebit import streams
from onebit.cli import options
from onebit.cli.options import has_figures, print_what_was_read, typed
from onebit.experiments.entries import parse_player
from onebit.experiments.players import LearnerPlayer, build
from onebit.inputs import check_choice, check_integer, check_seed
from onebit.playing import Trace, play
from onebit.reporting.console import on_screen, prepare_folder, print_table, print_where, progress_bar
from onebit.reporting.looks import PALETTE
from onebit.reporting.pages import Drawing, how_again, section, what_was_run, write_page
from onebit.reporting.text import Table, grouped, in_figure
from onebit.streams import DataSet, describe
from onebit.streams.preprocess import METHODS, describe_preprocessing
from onebit.streams.reading import Reading
from onebit.streams.sources import find_source, load

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DRAWN_ROUNDS = 10_000  # of a stream, unless the user says how many
_PARTS = 10  # of the stream, whose rates are shown
_MOST_CLASSES = 30  # on the screen; the report has them all
_COLUMNS = ("class", "rounds", "mistakes", "rate", "guessed")


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
    made = build(player.spec)
    prepare_folder(out)
    console = Console()
    print_what_was_read(console, found.name, describe(found))
    is_drawn = has_figures(console)
    rows = _prepared(console, found, player, learner, preprocess)
    with progress_bar(console, f"{learner}, {grouped(len(found.y))} rounds") as show:
        trace = play(made, rows, seed=seed, keep_guesses=True, on_progress=show)
    if save is not None:
        made.save(save)
    wrong = np.asarray(trace.guesses != np.array(found.label_names)[found.y])
    caption = "Left: mistakes so far. Right: the share of mistakes in each tenth of the stream; the line is the share "
    draw = partial(_draw_mistakes, trace, wrong, f"{learner} on {found.name}")
    figures = [Drawing("mistakes", "Mistakes", f"{caption}over all of it.", draw)] if is_drawn else []
    table = Table(_COLUMNS, _rows(found, trace, wrong))
    print_table(console, replace(table, rows=table.rows[: _MOST_CLASSES + 1], sections=[1]))
    if (n_more := len(table.rows) - _MOST_CLASSES - 1) > 0:
        console.print(f"… and {n_more} rarer classes, which report.html lists")
    rates = ", ".join(f"{rate:.1%}" for rate in _tenths(wrong))
    console.print(f"Mistakes by tenths of the stream: {rates}", soft_wrap=True)
    facts = {
        "Learner": learner,
        "Data set": found.name,
        **{name.capitalize(): text for name, text in describe(found).items() if name != "rows"},
        "Rounds": f"{grouped(len(found.y))}, {'shuffled' if shuffle else 'in the order of the file'}",
        "Preprocessing": preprocess,
        "Seed": str(seed),
        "Command": typed(),
    }
    blocks = [*what_was_run(facts), *figures, *section("Class by class", table), *how_again(facts)]
    write_page(out / "report.html", f"{learner} on {found.name}", blocks, out)
    print_where(console, "mistakes.png and report.html are" if is_drawn else "report.html is", out)
    if save is not None:
        console.print(on_screen(f"The learner is saved as {save}."), soft_wrap=True)


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
        text = f"Note: {learner} takes columns as they are: --preprocess online scales them if their units differ much "
        text += "(BanditSVM does it by itself)."
    else:
        text = f"Preprocessing: {describe_preprocessing(method, unit_length=False, is_sparse=data.is_sparse)}."
        data = replace(data, X=streams.preprocess(data.X, method))
    console.print(on_screen(text), highlight=False, soft_wrap=True)
    return data


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
        data = load(source)
    n_rows = len(data.y)
    places = (np.random.default_rng(seed).permutation(n_rows) if is_shuffled else np.arange(n_rows))[:rounds]
    X, y = data.X[places], data.y[places]
    if source.stream is None:
        X, y = source.changed(X, y, data.n_classes, seed)
    return replace(data, X=X, y=y, about=(*data.about, *source.about.items()))


def _rows(data: DataSet, trace: Trace, wrong: np.ndarray) -> list[list[str]]:
    """Return the rows of the table: all classes together, then each, the most frequent first."""
    codes = {name: code for code, name in enumerate(data.label_names)}
    guesses = np.array([codes[name] for name in np.asarray(trace.guesses).tolist()])
    counts = np.column_stack(
        [np.bincount(each, minlength=data.n_classes) for each in (data.y, data.y[wrong], guesses)]
    ).tolist()
    lines = [(name, *counts[code]) for name, code in codes.items()]
    lines = [("all", trace.rounds, trace.mistakes, trace.rounds), *sorted(lines, key=lambda line: -line[1])]
    return [
        [name, grouped(rounds), grouped(mistakes), f"{mistakes / rounds:.1%}" if rounds else "–", grouped(guessed)]
        for name, rounds, mistakes, guessed in lines
    ]


def _tenths(wrong: np.ndarray) -> list[float]:
    """Return the share of mistakes in each tenth of a stream, or in each round of one that has fewer.

    >>> _tenths(np.array([True, True, False, True]))
    [1.0, 1.0, 0.0, 1.0]
    """
    return [float(part.mean()) for part in np.array_split(wrong, min(_PARTS, len(wrong)))]


def _draw_mistakes(trace: Trace, wrong: np.ndarray, title: str) -> "Figure":
    """Draw mistakes so far, and the share of mistakes in each tenth of the stream."""
    from matplotlib.ticker import PercentFormatter

    from onebit.reporting import figures as style

    rates = _tenths(wrong)
    with style.looks():
        figure, (left, right) = style.new_figure(1, 2, 3.2)
        figure.suptitle(in_figure(title, most=80))
        trace.plot(left, color=PALETTE[0])
        for axis in (left.xaxis, left.yaxis):
            style.count_axis(axis, most_ticks=4)
        places = np.arange(1, len(rates) + 1)
        right.bar(places, rates, color=PALETTE[0], width=0.75)
        whole = trace.mistakes / trace.rounds
        right.axhline(whole, color=PALETTE[1], linewidth=1.2, linestyle=(0, (5, 2)))
        right.set_title(f"{whole:.1%} in all", loc="right", fontsize=10, color=PALETTE[1])
        right.set(xlabel="tenth of the stream" if len(rates) == _PARTS else "round", ylabel="share of mistakes")
        right.set_xticks(places)
        right.set_ylim(0, max(0.05, 1.1 * max(rates)))
        right.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=None))
        right.grid(visible=False, axis="x")
    return figure
