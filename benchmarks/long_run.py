"""Does it go on learning? ``python benchmarks/long_run.py --data FOLDER`` plays 60 000 rounds and looks at each part.

Real sets come from FOLDER (``name.npz`` with X and y) in one seeded shuffle. A set with fewer rows than rounds is
played again in fresh shuffles; its first pass is reported by itself too. `long_run_games` has the synthetic streams.

Learners that scale columns themselves (BanditSVM) get raw rows. All others get columns standardised over all rows
played, which is knowledge in hindsight, and a constant column.

Every game is one file in ``--out``, kept by learner, rounds and code: only what has changed is played again, and a
break-off loses the games under way, no more. ``--no-play`` shows what is there. ``--million`` plays 1 000 000 rounds.
"""

import argparse
import math
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from rich.console import Console
from rich.table import Table

from long_run_games import PIECES, STREAMS, SYNTHETIC, WINDOW, Game, Played, file_of, play_all, player_of, read
from onebit.experiments.players import build
from onebit.files import replace_file
from onebit.inputs import check_integer
from onebit.reporting import figures
from onebit.reporting.console import prepare_folder
from onebit.reporting.looks import INK, Shown, looks_of
from onebit.reporting.text import grouped, write_csv

RIVALS = ("BanditSVM:kernel=none", "LinUCB", "LinUCB:alpha=0.1", "Confidit")
LEARNERS = ("BanditSVM", *RIVALS)
TITLES = {"BanditSVM:kernel=none": "BanditSVM, linear", "LinUCB:alpha=0.1": "LinUCB, α = 0.1"}
LARGEST_RATIO, LARGEST_TOTAL = 1.02, 1.05  # the goals
LABEL_GAP = 0.13  # of a panel's height

Found = dict[tuple[str, str], Played | None]
"""By stream and learner; None where a game was not played."""
NOTHING = "not played"


class Report(NamedTuple):
    """A table, for the terminal and for Markdown."""

    title: str
    columns: tuple[str, ...]
    lines: list[tuple[str, ...]]
    n_texts: int
    """How many columns, from the left, are no numbers."""

    def rows(self) -> Iterable[tuple[str, ...]]:
        """Yield the lines, each stream's name only once."""
        before = ""
        for stream, *cells in self.lines:
            yield ("" if stream == before else stream, *cells)
            before = stream

    def markdown(self) -> str:
        """Return it ready to paste."""
        rule = ("---" if at < self.n_texts else "---:" for at in range(len(self.columns)))
        return f"{self.title}:\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in (self.columns, rule, *self.rows()))

    def terminal(self) -> Table:
        """Return it for rich."""
        table = Table(title=self.title)
        for at, column in enumerate(self.columns):
            table.add_column(column, justify="left" if at < self.n_texts else "right")
        for row in self.rows():
            table.add_row(*(cell.replace("**", "") for cell in row))
        return table


def title_of(learner: str) -> str:
    return TITLES.get(learner, learner)


def shares(played: Played, rounds: int, is_best: bool) -> tuple[str, ...]:
    """Return the percentages of the four quarters; the last of the best learner in bold."""
    *others, last = (f"{100.0 * share:.2f}" for share in played.quarters(rounds))
    return (*others, f"**{last}**" if is_best else last)


def quarter_lines(found: Found, once: bool) -> list[tuple[str, ...]]:
    """Return the lines of all rounds, or of the first pass through the sets that are played more than once."""
    lines: list[tuple[str, ...]] = []
    for stream in dict.fromkeys(name for name, _ in found):
        mine = {learner: played for (name, learner), played in found.items() if name == stream}
        known = [played for played in mine.values() if played is not None]
        n_rows = known[0].n_rows if known else 0
        if once and (not known or n_rows == known[0].rounds):
            continue
        best = min((game.quarters(n_rows if once else game.rounds)[-1] for game in known), default=0.0)
        title = STREAMS[stream].title
        if known and n_rows < known[0].rounds:
            times = known[0].rounds / n_rows
            title += f", {grouped(n_rows)} rows" if once else f" ({grouped(n_rows)} rows, {times:.3g} times)"
        for learner, played in mine.items():
            if played is None:
                lines.append((title, title_of(learner), NOTHING, *[""] * (4 if once else 7)))
                continue
            rounds = n_rows if once else played.rounds
            quarters = shares(played, rounds, played.quarters(rounds)[-1] == best)
            mistakes = grouped(int(played.upto(rounds)))
            costs = (grouped(played.rounds / played.seconds), f"{played.memory / 1e6:.3g}", f"{played.file / 1e6:.3g}")
            lines.append((title, title_of(learner), *quarters, mistakes, *(() if once else costs)))
    return lines


def check_lines(found: Found) -> list[tuple[str, ...]]:
    """Hold every learner that is no rival against the goals."""
    return [
        (STREAMS[stream].title, title_of(learner), *line)
        for (stream, learner), played in found.items()
        if learner not in RIVALS and not player_of(learner).full_information
        for line in (goals(played, found) if played is not None else [("all", "", NOTHING)])
    ]


def goals(played: Played, found: Found) -> Iterable[tuple[str, str, str]]:
    """Yield each goal, what was measured, and whether it is reached."""
    _, second, _, last = played.quarters(played.rounds)
    rivals = [game for learner in RIVALS if (game := found.get((played.stream, learner))) is not None]
    if rivals:
        best = min(rivals, key=lambda game: game.quarters(game.rounds)[-1])
        least = best.quarters(best.rounds)[-1]
        yield (
            f"last quarter ≤ {LARGEST_RATIO} × the best rival's",
            f"{100 * last:.2f} % against {100 * least:.2f} % ({title_of(best.learner)}): {times(last, least)}",
            verdict(last <= LARGEST_RATIO * least),
        )
    if not STREAMS[played.stream].drifts:
        rounds = played.rounds / 4
        error = math.sqrt((second * (1.0 - second) + last * (1.0 - last)) / rounds)
        more = f", {(last - second) / error:.1f} standard errors more" if last > second else ""
        yield (
            "last quarter ≤ the second",
            f"{100 * last:.2f} % against {100 * second:.2f} %{more}",
            verdict(last <= second),
        )
    plain = found.get(("linear", "LinUCB"))
    if played.stream == "linear" and plain is not None:
        yield (
            f"mistakes ≤ {LARGEST_TOTAL} × LinUCB's",
            f"{grouped(played.mistakes)} against {grouped(plain.mistakes)}: {times(played.mistakes, plain.mistakes)}",
            verdict(played.mistakes <= LARGEST_TOTAL * plain.mistakes),
        )


def times(mine: float, other: float) -> str:
    return f"{mine / other:.3f}×" if other > 0 else "no ratio"


def verdict(holds: bool) -> str:
    return "PASS" if holds else "MISSED"


def reports(found: Found, rounds: int, seed: int) -> list[Report]:
    quarters = ("stream", "learner", "quarter 1, % wrong", "2", "3", "4", "mistakes")
    sizes = ("rounds/s", "memory, MB", "saved file, MB")
    drawn = [
        Report(f"{grouped(rounds)} rounds, seed {seed}", (*quarters, *sizes), quarter_lines(found, once=False), 2),
        Report("The first pass through the sets that were played again", quarters, quarter_lines(found, once=True), 2),
        Report("The goals", ("stream", "learner", "goal", "measured", "verdict"), check_lines(found), 5),
    ]
    return [report for report in drawn if report.lines]


def draw(found: Found, folder: Path, name: str) -> list[Path]:
    """Draw the learning curves, one figure for each group of streams, and return the files."""
    learners = list(dict.fromkeys(learner for _, learner in found))
    players = {learner: player_of(learner) for learner in learners}
    looks = looks_of(
        Shown(learner, repr(build(player.spec)), player.full_information) for learner, player in players.items()
    )
    files = []
    for group in dict.fromkeys(stream.figure for stream in STREAMS.values()):
        streams = [
            stream
            for stream in STREAMS
            if STREAMS[stream].figure == group and any(found.get((stream, learner)) for learner in learners)
        ]
        if not streams:
            continue
        with figures.looks():
            figure, panels = figures.new_figure(len(streams), 1, 0.5 + 2.2 * len(streams))
            for axes, stream in zip(panels, streams, strict=True):
                games = [game for learner in learners if (game := found.get((stream, learner))) is not None]
                draw_panel(axes, stream, games, looks)
            panels[-1].set_xlabel("round")
            window = next(game for game in found.values() if game is not None).rounds * WINDOW // PIECES
            over = f"% wrong, over the last {grouped(window)} rounds"
            # A single panel is too low for one line.
            figure.supylabel(over.replace(", ", ",\n") if len(streams) == 1 else over, fontsize=12)
            with tempfile.TemporaryDirectory() as scratch:
                png, _ = figures.save(figure, Path(scratch), f"{name}_{group}")
                files.append(folder / png.name)
                replace_file(files[-1], png.read_bytes())
    return files


def draw_panel(axes: Axes, stream: str, games: Sequence[Played], looks: Any) -> None:
    ends, highest = [], 0.0
    for game in games:
        rounds, wrong = game.curve()
        look = looks[game.learner]
        axes.plot(
            rounds,
            100.0 * wrong,
            color=look.color,
            linestyle=look.dashes,
            linewidth=1.5 if game.learner in RIVALS else 2.4,
        )
        ends.append((100.0 * float(wrong[-1]), game.learner))
        highest = max(highest, 100.0 * float(wrong[WINDOW - 1 :].max()))
    rounds, n_rows = games[0].rounds, games[0].n_rows
    axes.set_xlim(0, rounds)
    axes.set_ylim(top=1.05 * highest)  # the first windows, where all are near chance, may go beyond
    axes.set_title(STREAMS[stream].title, loc="left", fontweight="bold")
    figures.count_axis(axes.xaxis)
    at, text = (rounds // 2, "new scores") if STREAMS[stream].drifts else (n_rows, "rows come again")
    if at < rounds:
        axes.axvline(at, color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
        axes.set_title(f"┊ {text}", loc="right", fontsize=10)
    label_lines(axes, sorted(ends), looks)


def label_lines(axes: Axes, ends: list[tuple[float, str]], looks: Any) -> None:
    """Write every learner's name beside the end of its line, and lead from one to the other."""
    low, high = axes.get_ylim()
    heights = [(end - low) / (high - low) for end, _ in ends]
    # Moved apart upwards and downwards: the mean of both stays closest to the lines.
    up = figures.spread(heights, LABEL_GAP)
    down = [1.0 - height for height in figures.spread([1.0 - height for height in heights[::-1]], LABEL_GAP)[::-1]]
    for (_, learner), height, *places in zip(ends, heights, up, down, strict=True):
        color, place = looks[learner].color, sum(places) / 2.0
        axes.plot([1.0, 1.03], [height, place], color=color, linewidth=0.8, transform=axes.transAxes, clip_on=False)
        axes.text(1.04, place, title_of(learner), color=color, fontsize=10, va="center", transform=axes.transAxes)


def save_csv(path: Path, found: Found) -> None:
    columns = ("stream", "learner", "rounds", "rows", "q1", "q2", "q3", "q4", "mistakes", "rounds_per_second",
               "memory_bytes", "file_bytes")  # fmt: skip
    lines = [
        (game.stream, game.learner, game.rounds, game.n_rows, *(f"{share:.4f}" for share in game.quarters(game.rounds)),
         game.mistakes, round(game.rounds / game.seconds), game.memory, game.file)
        for game in found.values() if game is not None
    ]  # fmt: skip
    write_csv(path, columns, lines)


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, help="folder with the real sets; without it only synthetic streams")
    options.add_argument("--rounds", type=int, help="default: 60 000")
    options.add_argument("--seed", type=int, default=0, help="of the shuffles, the synthetic streams and the learners")
    options.add_argument("--streams", nargs="+", choices=list(STREAMS), metavar="NAME", help=", ".join(STREAMS))
    options.add_argument(
        "--learners",
        nargs="+",
        metavar="LEARNER",
        help=f"as onebit compare takes them, such as BanditSVM:C=1; default: {' '.join(LEARNERS)}",
    )
    options.add_argument("--out", type=Path, default=Path("results/long_run"), help="games, results.csv and figures")
    options.add_argument("--images", type=Path, help="folder for the figures, if not --out")
    options.add_argument("--jobs", type=int, default=1, help="processes at a time; two make rounds/s less exact")
    options.add_argument("--million", action="store_true", help="1 000 000 rounds of linear_noise and sleep, BanditSVM")
    options.add_argument("--no-play", action="store_true", help="show what was played before")
    options.add_argument("--markdown", action="store_true", help="print the tables as Markdown, ready to paste")
    return options


def wanted_games(chosen: argparse.Namespace) -> list[Game]:
    rounds = chosen.rounds if chosen.rounds is not None else 1_000_000 if chosen.million else 60_000
    check_integer("--rounds", rounds, low=PIECES)
    check_integer("--jobs", chosen.jobs, low=1)
    usual = ("linear_noise", "sleep") if chosen.million else tuple(STREAMS)
    streams = chosen.streams or [name for name in usual if chosen.data is not None or name in SYNTHETIC]
    learners = chosen.learners or (LEARNERS[:1] if chosen.million else LEARNERS)
    return [Game(stream, learner, rounds, chosen.seed, chosen.data) for stream in streams for learner in learners]


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser()
    chosen = options.parse_args(arguments)
    console = Console(stderr=True)
    try:
        games = wanted_games(chosen)
        prepare_folder(chosen.out)
        files = {game: file_of(game, chosen.out) for game in games}
        if not chosen.no_play:
            play_all({game: path for game, path in files.items() if not path.is_file()}, chosen.jobs, console)
    except ValueError as error:
        options.error(str(error))
    found = {(game.stream, game.learner): read(path) for game, path in files.items()}
    save_csv(chosen.out / "results.csv", found)
    for image in draw(found, chosen.images or chosen.out, "long_run_million" if chosen.million else "long_run"):
        console.print(f"figure: {image}", soft_wrap=True)
    for report in reports(found, games[0].rounds, chosen.seed):
        if chosen.markdown:
            print(report.markdown())
        else:
            Console(width=150).print(report.terminal())


if __name__ == "__main__":
    os.environ |= {
        f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMBA")
    }  # workers read it when they start
    main()
