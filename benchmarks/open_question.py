"""How mistakes grow with 1/γ and with K: ``python benchmarks/open_question.py`` plays, fits exponents and draws.

The paper leaves open whether an efficient learner can make polynomially many mistakes, in 1/γ and K, on weakly
separable rounds. This proves nothing about that: it measures what the learners here do on rows of known weak margin
(`onebit.streams.weak_margin`), and on the hard sequence of Theorem 3, which binds every bandit learner.

Games that were played before are read from results/open_question/games.csv, whatever code played them: remove the file
to play them anew. A game has *settled* if at most one round
in a hundred of its last quarter was a mistake; only settled games count in a fit, for a learner that still errs has no
total yet.
"""

import argparse
import csv
import math
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from rich.console import Console
from scipy import stats

import onebit
from onebit.bounds import BOUNDS
from onebit.kernels import Rational
from onebit.reporting import figures
from onebit.reporting.console import prepare_folder, progress_bar
from onebit.reporting.looks import INK, Shown, looks_of
from onebit.reporting.text import grouped
from onebit.streams.adversaries import bandit_sequence

IMAGES = Path(__file__).parent.parent / "docs" / "images"
CLASSES, MARGIN, HARD_MARGIN = 4, 0.01, 0.04
MARGINS = (0.16, 0.08, 0.04, 0.02, 0.01, 0.005)
NUMBERS = (2, 3, 4, 6, 8, 12, 16, 24)
HARD_MARGINS = (0.16, 0.08, 0.04, 0.02)
SETTLED = 0.01

LEARNERS: dict[str, Callable[[], onebit.Learner]] = {
    "BanditSVM": onebit.BanditSVM,
    "BanditSVM, linear": lambda: onebit.BanditSVM(None),
    "Algorithm 2": lambda: onebit.BanditPerceptron(Rational()),
    "Algorithm 1": onebit.BanditPerceptron,
    "Banditron": onebit.Banditron,
    "SOBA": onebit.SOBA,
    "Confidit": onebit.Confidit,
    "LinUCB": onebit.LinUCB,
    "told the label": onebit.MulticlassPerceptron,
}


class Game(NamedTuple):
    """One learner on one stream."""

    series: str
    """Which part of the figure it belongs to."""
    learner: str
    n_classes: int
    margin: float
    run: int


class Played(NamedTuple):
    """What came out."""

    mistakes: int
    last_quarter: int
    rounds: int

    @property
    def has_settled(self) -> bool:
        """Whether hardly any round of the last quarter was a mistake."""
        return self.last_quarter <= SETTLED * self.rounds / 4


SERIES = {
    "margin": f"K = {CLASSES}, weak margin γ",
    "classes": f"γ = {MARGIN}, K classes",
    "hard margin": f"K = {CLASSES}, Theorem 3",
    "hard classes": f"γ = {HARD_MARGIN}, Theorem 3",
}


def all_games(runs: int) -> list[Game]:
    sizes = [("margin", CLASSES, margin) for margin in MARGINS]
    sizes += [("classes", K, MARGIN) for K in NUMBERS]
    sizes += [("hard margin", CLASSES, margin) for margin in HARD_MARGINS]
    sizes += [("hard classes", K, HARD_MARGIN) for K in NUMBERS]
    return [
        Game(series, learner, K, margin, run)
        for series, K, margin in sizes
        for learner in LEARNERS
        for run in range(runs)
    ]


def play(game: Game, rounds: int) -> tuple[Game, Played]:
    if game.series.startswith("hard"):
        hard = bandit_sequence(game.n_classes, game.margin, seed=game.run)
        X, y = hard.X, hard.y
    else:
        X, y = onebit.streams.weak_margin(rounds, game.run, n_classes=game.n_classes, margin=game.margin)
    learner = LEARNERS[game.learner]().set_params(classes=game.n_classes)
    n = len(y)
    trace = onebit.play(learner, X, y, seed=game.run, checkpoints=[n - n // 4, n])
    before, *_ = trace.curve.mistakes
    return game, Played(trace.mistakes, trace.mistakes - int(before), n)


def read(path: Path) -> dict[tuple[Game, int], Played]:
    """Return all games that were played, by what was asked for: 0 rounds of a sequence that has its own number."""
    if not path.exists():
        return {}
    found = {}
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            game = Game(
                line["series"], line["learner"], int(line["n_classes"]), float(line["margin"]), int(line["run"])
            )
            played = Played(int(line["mistakes"]), int(line["last_quarter"]), int(line["rounds"]))
            found[game, asked(game, played.rounds)] = played
    return found


def asked(game: Game, rounds: int) -> int:
    return 0 if game.series.startswith("hard") else rounds


def write(path: Path, games: dict[tuple[Game, int], Played]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*Game._fields, *Played._fields])
        writer.writerows([*game, *played] for (game, _), played in sorted(games.items()))


class Fit(NamedTuple):
    """The exponent b of mistakes ≈ a·size^b: the mean over runs of each run's least-squares slope."""

    exponent: float
    half_width: float
    """Of the 95 % interval, by Student's t over the runs."""
    sizes: int
    """How many sizes were settled in every run."""


def size_of(game: Game) -> float:
    return 1.0 / game.margin if "margin" in game.series else float(game.n_classes)


def fit(games: dict[Game, Played], series: str, learner: str) -> Fit | None:
    """Return the exponent, or None if fewer than three sizes have settled in every run."""
    mine = {game: played for game, played in games.items() if (game.series, game.learner) == (series, learner)}
    runs = sorted({game.run for game in mine})
    is_hard = series.startswith("hard")  # such a sequence has an end: all of its mistakes are there
    sizes = sorted({size_of(game) for game in mine})
    settled = [
        size
        for size in sizes
        if all(is_hard or played.has_settled for game, played in mine.items() if size_of(game) == size)
    ]
    if len(settled) < 3 or len(runs) < 2:
        return None
    slopes = []
    for run in runs:
        counts = {size_of(game): played.mistakes for game, played in mine.items() if game.run == run}
        logs = np.log([max(counts[size], 1) for size in settled])
        slopes.append(stats.linregress(np.log(settled), logs).slope)
    half = stats.t.ppf(0.975, len(slopes) - 1) * np.std(slopes, ddof=1) / math.sqrt(len(slopes))
    return Fit(float(np.mean(slopes)), float(half), len(settled))


def draw(games: dict[Game, Played]) -> None:
    looks = looks_of([Shown(name, repr(make()), make().full_information) for name, make in LEARNERS.items()])
    with figures.looks():
        figure, panels = figures.new_figure(2, 2, 6.8)
        for axes, (series, title) in zip(panels, SERIES.items(), strict=True):
            for learner in LEARNERS:
                mine = {g: p for g, p in games.items() if (g.series, g.learner) == (series, learner)}
                sizes = np.array(sorted({size_of(game) for game in mine}))
                runs = [np.array([p.mistakes for g, p in mine.items() if size_of(g) == size]) for size in sizes]
                means = np.array([np.maximum(counts, 1).mean() for counts in runs])
                look = looks[learner]
                axes.plot(sizes, means, color=look.color, linestyle=look.dashes, linewidth=1.4, label=learner)
                for size, mean in zip(sizes, means, strict=True):
                    is_settled = series.startswith("hard") or all(
                        p.has_settled for g, p in mine.items() if size_of(g) == size
                    )
                    fill = look.color if is_settled else "white"
                    axes.plot(size, mean, marker=look.marker, color=look.color, markerfacecolor=fill)
            if series.startswith("hard"):
                _draw_bound(axes, series)
            axes.set_title(title)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_ylim(0.8, 4e5)
            ticks = [1.0 / m for m in MARGINS] if "margin" in series else list(NUMBERS)
            axes.set_xticks(ticks, [f"{tick:.3g}" for tick in ticks])
            axes.minorticks_off()
            figures.log_count_axis(axes.yaxis)
            axes.set_xlabel("1/γ" if "margin" in series else "K")
        panels[0].set_ylabel("mistakes")
        panels[2].set_ylabel("mistakes")
        handles, labels = panels[2].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
        png, _ = figures.save(figure, IMAGES, "open_question")
        for other in IMAGES.glob("open_question.*"):
            if other != png:
                other.unlink()


def _draw_bound(axes: Axes, series: str) -> None:
    """Draw what Theorem 3 forces on every bandit learner on its sequence."""
    sizes = [1.0 / margin for margin in HARD_MARGINS] if "margin" in series else [float(K) for K in NUMBERS]
    forced = []
    for size in sizes:
        K, margin = (CLASSES, 1.0 / size) if "margin" in series else (int(size), HARD_MARGIN)
        forced.append(BOUNDS["3"].claim(n_classes=K, radius=1.0, margin=margin).value or math.nan)
    axes.plot(sizes, forced, color=INK, linestyle=(0, (1, 2)), linewidth=1.2, label="forced")


def table(games: dict[Game, Played]) -> str:
    def cell(series: str, learner: str) -> str:
        found = fit(games, series, learner)
        return "not settled" if found is None else f"{found.exponent:.2f} ± {found.half_width:.2f} ({found.sizes})"

    lines = ["| learner | " + " | ".join(SERIES.values()) + " |", "|---|" + "---:|" * len(SERIES)]
    lines += [f"| {learner} | {' | '.join(cell(series, learner) for series in SERIES)} |" for learner in LEARNERS]
    lines += ["", "| learner | " + " | ".join(f"γ = {m}" for m in MARGINS) + " |", "|---|" + "---:|" * len(MARGINS)]
    for learner in LEARNERS:
        cells = []
        for margin in MARGINS:
            mine = [p for g, p in games.items() if (g.series, g.learner, g.margin) == ("margin", learner, margin)]
            mark = "" if all(played.has_settled for played in mine) else "+"
            cells.append(grouped(float(np.mean([played.mistakes for played in mine]))) + mark)
        lines.append(f"| {learner} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=50_000)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--out", type=Path, default=Path("results/open_question"))
    chosen = options.parse_args()
    prepare_folder(chosen.out)
    path = chosen.out / "games.csv"
    games = read(path)
    wanted = {game: (game, asked(game, chosen.rounds)) for game in all_games(chosen.runs)}
    missing = [game for game, key in wanted.items() if key not in games]
    with ProcessPoolExecutor(chosen.jobs) as pool, progress_bar(Console(), "games") as show:
        waiting = [pool.submit(play, game, chosen.rounds) for game in missing]
        for done, future in enumerate(as_completed(waiting), 1):
            game, played = future.result()
            games[wanted[game]] = played
            if done % 10 == 0 or done == len(missing):
                write(path, games)
            show(done, len(missing))
    wanted_games = {game: games[key] for game, key in wanted.items()}
    draw(wanted_games)
    print(table(wanted_games))


if __name__ == "__main__":
    main()
