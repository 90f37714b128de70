"""What ``onebit play`` does: one learner on one data set, with a progress bar, a table, a figure, and a saved file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from rich.console import Console

from onebit.commands.what_was_read import reading_words, say_what_was_read
from onebit.experiments.entries import parse_player
from onebit.experiments.players import LearnerPlayer, build
from onebit.game import Trace
from onebit.inputs import check_choice, check_integer, check_seed
from onebit.playing import play
from onebit.reporting import figures as style
from onebit.reporting.console import check_save, on_screen, prepare_folder, print_table, progress_bar, say_where
from onebit.reporting.figures import Drawing, draw_files
from onebit.reporting.looks import PALETTE
from onebit.reporting.pages import FigureFile, Heading, what_was_run, write_page
from onebit.reporting.text import Table, grouped, in_figure, in_shell
from onebit.streams import DataSet, describe
from onebit.streams.preprocess import METHODS, describe_preprocessing, preprocess
from onebit.streams.reading import PLAIN, Reading
from onebit.streams.sources import changed, draw_source, find_source, load, say_changes

_DRAWN_ROUNDS = 10_000  # of a stream, unless the user says how many
_PARTS = 10  # of the stream, whose rates are shown
_MOST_CLASSES = 30  # on the screen; the report has them all
_COLUMNS = ("class", "rounds", "mistakes", "rate", "guessed")


@dataclass(frozen=True)
class PlayRequest:
    """What the user asked for, in the user's words."""

    data: str
    reading: Reading = PLAIN
    learner: str = "BanditSVM"
    rounds: int | None = None
    seed: int = 0
    shuffle: bool = False
    preprocessing: str = "none"
    save: Path | None = None
    out: Path = Path("results/play")


class _Line(NamedTuple):
    """A row of the closing table."""

    name: str
    rounds: int
    mistakes: int
    guessed: int

    @property
    def shown(self) -> list[str]:
        """What people read of it, after the name."""
        rate = f"{self.mistakes / self.rounds:.1%}" if self.rounds else "–"
        return [grouped(self.rounds), grouped(self.mistakes), rate, grouped(self.guessed)]


def play_command(request: PlayRequest) -> None:
    """Play, then show, draw and save."""
    player = parse_player(request.learner)
    if not isinstance(player, LearnerPlayer):
        raise ValueError(f"--learner {request.learner}: must be a learner; other players can be compared, not shown")
    if request.save is not None:
        check_save(request.save, request.data)
        if request.preprocessing != "none" and not player.scales_rows:
            raise ValueError(
                f"--save with --preprocess {request.preprocessing}: the learner would be saved without what makes its "
                "rows ready; leave one out, or take BanditSVM, which scales columns by itself"
            )
    check_choice("--preprocess", request.preprocessing, METHODS)
    data = _rounds(request)
    learner = build(player.spec)
    prepare_folder(request.out)
    console = Console()
    say_what_was_read(console, data.name, describe(data))
    rows = data
    if player.scales_rows:
        pass
    elif request.preprocessing != "none":
        said = describe_preprocessing(request.preprocessing, unit_length=False, is_sparse=data.is_sparse)
        console.print(on_screen(f"Preprocessing: {said}."), highlight=False, soft_wrap=True)
        rows = replace(data, X=preprocess(data.X, request.preprocessing))
    else:
        note = f"{request.learner} takes columns as they are: --preprocess online scales them if their units differ"
        note += " much (BanditSVM does it by itself)"
        console.print(on_screen(f"Note: {note}."), highlight=False, soft_wrap=True)
    n_rounds = len(data.y)
    with progress_bar(console, f"{request.learner}, {grouped(n_rounds)} rounds") as show:
        trace = play(learner, rows, seed=request.seed, keep_guesses=True, on_progress=show)
    if request.save is not None:
        learner.save(request.save)
    wrong = np.asarray(trace.guesses != np.array(data.label_names)[data.y])
    drawing = Drawing(
        "mistakes",
        "Mistakes",
        "Left: mistakes so far. Right: the share of mistakes in each tenth of the stream; the line is the share over "
        "all of it.",
        partial(draw_mistakes, trace, wrong, f"{request.learner} on {data.name}"),
    )
    figures = draw_files([drawing], request.out)
    lines = _lines(data, trace, wrong)
    _print(console, lines, wrong)
    _write_report(request, data, lines, figures)
    say_where(console, "mistakes.png and report.html are", request.out)
    if request.save is not None:
        console.print(on_screen(f"The learner is saved as {request.save}."), soft_wrap=True)


def _rounds(request: PlayRequest) -> DataSet:
    """Return the rounds in the order in which they are played."""
    check_seed(request.seed)
    if request.rounds is not None:
        check_integer("--rounds", request.rounds, low=1)
    source = find_source(request.data, request.reading)
    if source.stream is not None:
        X, y, n_classes = draw_source(source, request.rounds or _DRAWN_ROUNDS, request.seed)
        data = DataSet(source.name, X, y, tuple(map(str, range(n_classes))))
    else:
        data = load(source)
    n_rows = len(data.y)
    order = np.random.default_rng(request.seed).permutation(n_rows) if request.shuffle else np.arange(n_rows)
    order = order[: request.rounds]
    X, y = data.X[order], data.y[order]
    if source.stream is None:
        X, y = changed(source, X, y, data.n_classes, request.seed)
    return replace(data, X=X, y=y, about=(*data.about, *say_changes(source).items()))


def _lines(data: DataSet, trace: Trace, wrong: np.ndarray) -> list[_Line]:
    """Return the classes, the most frequent first, after all of them together."""
    names = np.array(data.label_names)
    places = {name: code for code, name in enumerate(data.label_names)}
    guessed = np.bincount([places[name] for name in np.asarray(trace.guesses).tolist()], minlength=len(names))
    rounds, mistakes = (np.bincount(codes, minlength=len(names)) for codes in (data.y, data.y[wrong]))
    counts = zip(data.label_names, rounds.tolist(), mistakes.tolist(), guessed.tolist(), strict=True)
    classes = [_Line(*each) for each in counts]
    whole = _Line("all", trace.rounds, trace.mistakes, trace.rounds)
    return [whole, *sorted(classes, key=lambda line: -line.rounds)]


def tenths(wrong: np.ndarray) -> list[float]:
    """Return the share of mistakes in each tenth of a stream, or in each round of one that has fewer.

    >>> tenths(np.array([True, True, False, True]))
    [1.0, 1.0, 0.0, 1.0]
    """
    return [float(part.mean()) for part in np.array_split(wrong, min(_PARTS, len(wrong)))]


def draw_mistakes(trace: Trace, wrong: np.ndarray, title: str) -> Figure:
    """Draw mistakes so far, and the share of mistakes in each tenth of the stream."""
    rates = tenths(wrong)
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


def _print(console: Console, lines: Sequence[_Line], wrong: np.ndarray) -> None:
    rows = [[line.name, *line.shown] for line in lines[: _MOST_CLASSES + 1]]
    print_table(console, Table(_COLUMNS, rows, sections=[1]))
    if len(lines) > _MOST_CLASSES + 1:
        console.print(f"… and {len(lines) - _MOST_CLASSES - 1} rarer classes, which report.html lists")
    console.print(
        "Mistakes by tenths of the stream: " + ", ".join(f"{rate:.1%}" for rate in tenths(wrong)), soft_wrap=True
    )


def _write_report(request: PlayRequest, data: DataSet, lines: Sequence[_Line], figures: Sequence[FigureFile]) -> None:
    facts = {
        "Learner": request.learner,
        "Data set": data.name,
        **{name.capitalize(): text for name, text in describe(data).items() if name != "rows"},
        "Rounds": f"{grouped(len(data.y))}, {'shuffled' if request.shuffle else 'in the order of the file'}",
        "Preprocessing": request.preprocessing,
        "Seed": str(request.seed),
        "Command": _command(request),
    }
    run, listed, again, command = what_was_run(facts)
    table = Table(_COLUMNS, [[line.name, *line.shown] for line in lines])
    blocks = [run, listed, *figures, Heading("Class by class"), table, again, command]
    write_page(request.out / "report.html", f"{request.learner} on {data.name}", blocks)


def _command(request: PlayRequest) -> str:
    words = ["onebit", "play", "--learner", request.learner, *reading_words(request.reading)]
    words += ["--rounds", str(request.rounds)] if request.rounds is not None else []
    words += ["--seed", str(request.seed), *(["--shuffle"] if request.shuffle else [])]
    words += ["--preprocess", request.preprocessing] if request.preprocessing != "none" else []
    return in_shell([*words, *(["--"] if request.data.startswith("-") else []), request.data])
