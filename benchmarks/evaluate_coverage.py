"""Whether 95 % intervals cover the truth, and what a floor costs: ``python benchmarks/evaluate_coverage.py``.

In every run a learner plays a stream and leaves a log, with or without a floor of uniform guesses under it; other
learners are evaluated on that log, and their true mistakes, which the log does not tell, are held against bounds and
intervals. It prints two tables for docs/evaluate.md: a few minutes on one core.

``--part assumptions`` prints a third: what becomes of the intervals where an assumption does not hold, and how often
there is a warning. Answers are missing at random, for rows of one class, or for half of the wrong guesses; or ``among``
allows three labels of five, whatever the right one is.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from rich.console import Console

import onebit
from onebit.experiments.evaluate import Candidate, LoggedRounds, evaluate, logged_rounds, play_with_floor
from onebit.experiments.evaluate.estimates import METHODS
from onebit.reporting.console import progress_bar
from onebit.reporting.text import grouped, with_error

Stream = tuple[np.ndarray, np.ndarray]
K = 5
ROUNDED = 1e-12


def clouds(rounds: int, seed: int) -> Stream:
    """Draw overlapping clouds of points: nobody is always right."""
    centers = 2.2 * np.random.default_rng(7).normal(size=(K, 4))
    random = np.random.default_rng(seed)
    y = random.integers(K, size=rounds)
    return centers[y] + random.normal(size=(rounds, 4)), y


def digits(rounds: int, seed: int) -> Stream:
    """Return the digits of scikit-learn, two and two of them a class."""
    data = onebit.streams.bundled("digits")
    order = np.random.default_rng(seed).permutation(len(data.y))[:rounds]
    return np.asarray(data.X)[order] / 16.0, np.asarray(data.y)[order] // 2


STREAMS: dict[str, Callable[[int, int], Stream]] = {"clouds": clouds, "digits": digits}
LOGS: dict[str, tuple[Callable[[int], onebit.Learner], float]] = {
    "BanditSVM:kernel=none": (lambda seed: onebit.BanditSVM(None, classes=K, seed=seed), 0.0),
    "BanditSVM:kernel=none, floor 0.02": (lambda seed: onebit.BanditSVM(None, classes=K, seed=seed), 0.02),
    "BanditSVM:kernel=none, floor 0.1": (lambda seed: onebit.BanditSVM(None, classes=K, seed=seed), 0.1),
    "EpsilonGreedy:exploration=0.1": (lambda seed: onebit.EpsilonGreedy(0.1, classes=K, seed=seed), 0.0),
}
ONLY_PLAYED = "BanditSVM:kernel=none"
"""Its guesses have propensity 1, so nothing can be estimated from its log."""


def candidates(stream: str) -> list[Candidate]:
    """Return one that stays what it is, and where rows are short one that learns from the log."""
    X, y = STREAMS[stream](200, 10**6)
    saved = onebit.EpsilonGreedy(classes=K).learn_labels(X, y)
    learning = [Candidate("BanditPerceptron", onebit.BanditPerceptron())] if stream == "clouds" else []
    return [Candidate("EpsilonGreedy, saved", saved, is_frozen=True), *learning]


Found = dict[tuple[str, str, str, str], list[tuple[bool, float]]]


def measure(runs: int, rounds: int) -> tuple[Found, dict[tuple[str, str], list[int]]]:
    found: Found = {}
    mistakes: dict[tuple[str, str], list[int]] = {}
    n_done, n_all = 0, runs * len(STREAMS) * len(LOGS)
    who = {stream: candidates(stream) for stream in STREAMS}
    with progress_bar(Console(stderr=True), f"{grouped(runs)} runs of {grouped(rounds)} rounds") as show:
        for run in range(runs):
            for stream, make in STREAMS.items():
                X, y = make(rounds, run)
                for name, (learner, floor) in LOGS.items():
                    log = play_with_floor(learner(run), X, y, floor=floor, seed=run)
                    mistakes.setdefault((stream, name), []).append(int((log.answers == 0).sum()))
                    rows = [] if name == ONLY_PLAYED else evaluate(log, who[stream], seed=run + 10**6)
                    for row in rows[1:]:
                        truth = float(np.mean(row.guesses != y))
                        within = {"sure": (row.known.low, row.known.high)}
                        within |= {method: each[1:] for method, each in row.estimates.found.items()}
                        for method, (low, high) in within.items():
                            is_covered = low - ROUNDED <= truth <= high + ROUNDED
                            found.setdefault((stream, name, row.title, method), []).append((is_covered, high - low))
                    n_done += 1
                    show(n_done, n_all)
    return found, mistakes


def coverage_table(found: Found) -> str:
    lines = ["| stream | log | learner | surely within | " + " | ".join(METHODS) + " |", "|---|---|---|" + "---:|" * 5]
    for stream, name, title in dict.fromkeys(key[:3] for key in found):
        cells = []
        for method in ("sure", *METHODS):
            runs = found.get((stream, name, title, method), [])
            if runs:
                covered, width = np.mean(np.array(runs, dtype=np.float64), axis=0)
                cells.append(f"{100 * covered:.1f} %, {100 * width:.1f}")
            else:
                cells.append("none")
        lines.append(f"| {stream} | `{name}` | `{title}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def cost_table(mistakes: dict[tuple[str, str], list[int]]) -> str:
    lines = ["| stream | log | mistakes |", "|---|---|---:|"]
    for (stream, name), made in mistakes.items():
        error = float(np.std(made, ddof=1)) / len(made) ** 0.5
        lines.append(f"| {stream} | `{name}` | {with_error(float(np.mean(made)), error)} |")
    return "\n".join(lines)


PLAYERS: dict[str, tuple[Callable[[int], onebit.Learner], float]] = {
    "BanditPerceptron, floor 0.02": (lambda seed: onebit.BanditPerceptron(classes=K, seed=seed), 0.02),
    "BanditPerceptron, floor 0.1": (lambda seed: onebit.BanditPerceptron(classes=K, seed=seed), 0.1),
    "EpsilonGreedy:exploration=0.1": (lambda seed: onebit.EpsilonGreedy(0.1, classes=K, seed=seed), 0.0),
    "UniformGuess": (lambda seed: onebit.UniformGuess(classes=K, seed=seed), 0.0),
}
MISSING: dict[str, Callable[[LoggedRounds, np.ndarray, np.ndarray], np.ndarray]] = {
    "all answers": lambda _log, _y, _numbers: np.zeros(len(_y), dtype=bool),
    "a fifth missing at random": lambda _log, _y, numbers: numbers < 0.2,
    "half missing at random": lambda _log, _y, numbers: numbers < 0.5,
    "the last fifth yet to come": lambda _log, y, _numbers: np.arange(len(y)) >= 0.8 * len(y),
    "half missing for rows of one class": lambda _log, y, numbers: (y == 0) & (numbers < 0.5),
    "half of the wrong missing": lambda log, _y, numbers: (log.answers == 0) & (numbers < 0.5),
}
AMONG = {"`among` three of five": 1.0, "so in half of the rounds": 0.5}
"""In which share of the rounds."""


def play_among(X: np.ndarray, y: np.ndarray, share: float, seed: int) -> LoggedRounds:
    """Let EpsilonGreedy play with three labels of five allowed in some rounds, whatever the right one is."""
    random, learner = np.random.default_rng(seed), onebit.EpsilonGreedy(0.3, classes=K, seed=seed)
    among = [random.choice(K, 3, replace=False).tolist() if random.random() < share else list(range(K)) for _ in y]
    guesses, correct, propensities = [], [], []
    for row, label, allowed in zip(X, y.tolist(), among, strict=True):
        guess = learner.guess(row, allowed)
        learner.tell(guess, guess.label == label)
        guesses.append(guess.label)
        correct.append(guess.label == label)
        propensities.append(guess.propensity)
    return logged_rounds(X, guesses, correct, propensities, among=among, classes=K)


def broken_logs(run: int, X: np.ndarray, y: np.ndarray) -> dict[tuple[str, str], LoggedRounds]:
    """Return logs of one stream, by who played and by what is not as it should be."""
    numbers = np.random.default_rng(run + 10**7).random(len(y))
    found = {(what, "EpsilonGreedy:exploration=0.3"): play_among(X, y, share, run) for what, share in AMONG.items()}
    for name, (learner, floor) in PLAYERS.items():
        log = play_with_floor(learner(run), X, y, floor=floor, seed=run)
        for what, is_missing in MISSING.items():
            found[what, name] = replace(log, answers=np.where(is_missing(log, y, numbers), -1, log.answers))
    return found


def assumptions_table(runs: int, rounds: int) -> str:
    """Return coverage, mean error in points, and how often there is a warning that answers are not as assumed."""
    found: dict[tuple[str, str], dict[str, list[tuple[bool, float]]]] = {}
    warned: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
    who = candidates("clouds")[:1]
    with progress_bar(Console(stderr=True), f"{grouped(runs)} runs of {grouped(rounds)} rounds") as show:
        for run in range(runs):
            X, y = clouds(rounds, run)
            for key, log in broken_logs(run, X, y).items():
                (_, row) = evaluate(log, who, seed=run + 10**6)
                heard = log.is_answered
                truth, made = float(np.mean((row.guesses != y)[heard])), row.logged_mistakes / heard.sum()
                for method, (rate, low, high) in row.estimates.found.items():
                    is_covered = low - ROUNDED <= truth <= high + ROUNDED
                    found.setdefault(key, {}).setdefault(method, []).append((is_covered, rate - truth))
                is_warned = any("answer" in text for text in row.estimates.warnings)
                is_misjudged = (row.verdict == "fewer" and truth >= made) or (row.verdict == "more" and truth <= made)
                warned.setdefault(key, []).append((is_warned, is_misjudged))
            show(run + 1, runs)
    lines = [f"| what | log | {' | '.join(METHODS)} | warned | misjudged |", "|---|---|" + "---:|" * (len(METHODS) + 2)]
    for what, name in sorted(warned, key=lambda key: [*MISSING, *AMONG].index(key[0])):
        cells = []
        for method in METHODS:
            cases = np.array(found[what, name].get(method, []), dtype=np.float64)
            covered, error = 100 * cases.mean(axis=0) if len(cases) else (0.0, 0.0)
            cells.append(f"{covered:.1f} %, {error:+.1f}" if len(cases) else "none")
        shares = 100 * np.mean(np.array(warned[what, name], dtype=np.float64), axis=0)
        cells += [f"{share:.1f} %" for share in shares]
        lines.append(f"| {what} | `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=500)
    options.add_argument("--rounds", type=int, default=500)
    options.add_argument("--part", choices=("coverage", "assumptions"), default="coverage")
    chosen = options.parse_args()
    if chosen.part == "assumptions":
        print(assumptions_table(chosen.runs, chosen.rounds))
        return
    found, mistakes = measure(chosen.runs, chosen.rounds)
    print(coverage_table(found), cost_table(mistakes), sep="\n\n")


if __name__ == "__main__":
    main()
