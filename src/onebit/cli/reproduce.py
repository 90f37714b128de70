"""``onebit reproduce``: the paper's experiments, our mistakes beside its numbers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from rich.console import Console

from onebit.cli.options import Workers
from onebit.experiments.comparison import Comparison, run_comparison, write_curves
from onebit.experiments.paper import DATASETS, PAPER_ROUNDS, PAPER_RUNS, SummaryRow, contestants, summarize
from onebit.reporting.console import prepare_report, print_line, print_table, progress_bar
from onebit.reporting.pages import Drawing, Sections, write_page
from onebit.reporting.text import Cell, Table, fixed, grouped, what_means_are, with_error, write_csv
from onebit.streams.sources import Source

_CITATION = (
    "A. Beygelzimer, D. Pál, B. Szörényi, D. Thiruvenkatachari, C.-Y. Wei, C. Zhang (2019). Bandit multiclass linear "
    "classification: efficient algorithms for the separable case. International Conference on Machine Learning (ICML)."
)
_QUICK_ROUNDS, _QUICK_RUNS = 100_000, 5  # seconds, and the order of the curves is already that of the full game
# A remark begins with one of these words.
_KINDS = {"agrees": "good", "explained": "known", "unexplained": "bad"}
_INTRO = (
    "Two streams of three classes, one strongly and one weakly separable, played by the paper's algorithms. A learner "
    "names a label each round and learns only whether it was right."
)
_MISTAKES = (
    "Mean number of mistakes after the last round ± its standard error (a single run has none), and the least and the "
    "most of any run."
)
_VERDICTS = (
    "A row agrees if its mean is within 5 % of the published one or, where no cause of a difference is known, within "
    "three standard errors (taking the authors' runs to spread as ours do). Every other difference is explained or "
    "called unexplained."
)
_SOURCES = (
    "The published values are the end points of the curves in the paper's Figures 4 and 5, read off its vector "
    "graphics; each is the mean over the authors' 20 runs. The figures keep the paper's numbers."
)


def command(
    *,
    rounds: Annotated[int | None, "Rounds per run; the paper plays 5 000 000."] = None,
    runs: Annotated[int | None, "Runs of every learner, each on its own data; the paper: 20."] = None,
    seed: Annotated[int, "Seed of the first run; run r uses seed + r."] = 0,
    quick: Annotated[bool, "100 000 rounds and 5 runs: seconds, not minutes."] = False,
    workers: Workers,
    out: Annotated[Path | None, "Folder for results; results/, or results/quick/ with --quick."] = None,
) -> None:
    """Play the paper's experiments; write tables, figures and report.html."""
    console = Console()
    place = workers.executor(console)
    rounds = (_QUICK_ROUNDS if quick else PAPER_ROUNDS) if rounds is None else rounds
    runs = (_QUICK_RUNS if quick else PAPER_RUNS) if runs is None else runs
    comparison = _comparison(rounds, runs, seed)
    # Apart, so that a quick look does not overwrite the tables of a full run.
    folder = out if out is not None else Path("results/quick" if quick else "results")
    is_drawn = prepare_report(console, folder)
    with progress_bar(console, f"{runs} runs of {grouped(rounds)} rounds") as show, place as executor:
        outcomes = run_comparison(comparison, folder, jobs=workers.jobs, on_progress=show, executor=executor)
    with console.status("Drawing figures and writing the report …"):
        rows = summarize(outcomes)
        _write_summary(rows, folder / "summary.csv")
        write_curves(outcomes, folder / "mistakes.csv", with_ends=True)
        figures: list[Drawing] = []
        if is_drawn:
            from onebit.experiments.paper_figures import drawings

            figures = drawings(outcomes, seed)
        facts = {
            "Rounds": grouped(rounds),
            "Runs": f"{runs}, each on data and random numbers of its own",
            "Seeds": f"{seed} to {seed + runs - 1}; the same seeds, rounds and version give the same numbers",
        }
        _write_report(folder, rows, figures, facts)
    lines = []
    for each, _, published, _ in rows:
        numbers = map(grouped, (each.final.min(), each.final.max(), published))
        lines.append([each.dataset, each.entry.key, with_error(each.mean, each.standard_error), *numbers])
    columns, styles = ("data", "learner", "mean", "min", "max", "paper"), ("name", "name", *["number"] * 4)
    print_table(console, Table(columns, lines, what_means_are(runs), styles=styles))
    print_line(console, f"Tables, figures and report.html are in {folder}.")


def _comparison(rounds: int, runs: int, seed: int) -> Comparison:
    """Return what is played."""
    sources = tuple(Source(name, stream=f"paper_{name}") for name in DATASETS)
    # The paper's features have length at most 1 by construction, as the rational kernel needs. Figures 6 to 8 show what
    # was learned.
    return Comparison(sources, tuple(contestants()), rounds, runs, seed, preprocessing="none", keep_learned=True)


def _write_summary(rows: Sequence[SummaryRow], path: Path) -> None:
    lines = []
    for each, settings, published, remark in rows:
        numbers = each.mean, each.standard_error, each.final.min(), each.final.max(), published
        lines.append((each.dataset, each.entry.key, settings, *numbers, remark))
    columns = ("dataset", "learner", "parameters", "mean", "standard_error", "min", "max", "published", "remark")
    write_csv(path, columns, lines)


def _write_report(
    folder: Path, rows: Sequence[SummaryRow], figures: Sequence[Drawing], facts: Mapping[str, str]
) -> None:
    rounds = int(rows[0].outcome.rounds[-1])
    # Mistakes of a shorter game are not a share of a longer one's: curves flatten.
    size = "As many rounds as in the paper: the numbers can be compared."
    if rounds != PAPER_ROUNDS:
        size = (
            f"This run has {grouped(rounds)} rounds where the paper has {grouped(PAPER_ROUNDS)}: "
            "its numbers cannot be compared with the published ones, which are left out of the table."
        )
    of_set = {name: [row for row in rows if row.outcome.dataset == name] for name in DATASETS}
    tables = [_table(name, mine) for name, mine in of_set.items() if mine]
    has_published = any(row.published is not None for row in rows)
    sections: Sections = {
        "": [f"{_INTRO} {size}"],
        "Mistakes": [f"{_MISTAKES} {_VERDICTS}" if has_published else _MISTAKES, *tables],
        "Figures": figures,
        "Sources": [_CITATION, _SOURCES],
    }
    write_page(folder, "Bandit multiclass linear classification: the experiments, reproduced", sections, facts)


def _table(dataset: str, rows: Sequence[SummaryRow]) -> Table:
    lines: list[list[str | Cell]] = []
    for each, settings, published, remark in rows:
        ends = f"{grouped(each.final.min())} to {grouped(each.final.max())}"
        beside = grouped(published), fixed(each.mean / published if published else None, ".2f")
        verdict = Cell(remark, next((_KINDS[word] for word in _KINDS if remark.startswith(word)), ""))
        name, mistakes = Cell(each.entry.shown, small=each.entry.key), with_error(each.mean, each.standard_error)
        lines.append([name, settings, mistakes, ends, *beside, verdict])
    columns = ("learner", "settings", "mistakes", "least to most", "published", "ours / published", "remark")
    styles = ("name", "", *["number"] * 4, "remark")
    return Table(columns, lines, f"{DATASETS[dataset].capitalize()} set", (), styles)
