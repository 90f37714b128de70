"""Asking when unsure, on real data: ``python benchmarks/asking.py FOLDER`` writes docs/images/asking.png and tables.

``--one-set letter`` draws one game instead, docs/images/asking_one_set.png.

FOLDER has data sets as .npz files with X and y, or with a sparse matrix (data, indices, indptr, shape) and y. Each is
shuffled, and at most so many rounds of it are played by BanditSVM. In a round that is asked, the learner gets the
feedback on its suggestion and then the label. With ``--games FILE`` every game is written down as it ends, and a game
that is in the file is not played again.

The rules that are compared: `onebit.asking`; the trial that came before it, with the same ledger but other constants
(`Trial`); for ``ask_at_most`` the trial that ranks by the gap between the two best scores, and asking at random. The
constants of `onebit.asking` were chosen on `CHOSEN_ON`, the first, third, … of 21 sets in alphabetical order, with
shuffles 0 and 1. Games with `onebit.asking` are those of ``onebit.play(learner, X, y, wrong_at_most=…)``; here its
limits are checked after every round.
"""

import argparse
import json
import tempfile
from bisect import bisect_left, insort
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import onebit
from onebit.asking import Asking, Decision
from onebit.files import replace_file
from onebit.reporting import figures

ALPHAS, BETAS = (0.1, 0.05, 0.02), (0.05, 0.1, 0.2)
# With shuffles 0 and 1.
CHOSEN_ON = {"car", "dermatology", "dna", "isolet5", "letter", "movement_libras", "pendigits", "segment", "vehicle"}
CHOSEN_ON |= {"wine", "yeast"}
LEFT_OUT = ("sleep", "houses")
IMAGES = Path(__file__).parent.parent / "docs" / "images"
Game = dict[str, Any]


class Trial:
    """The second trial of issue 25: the same ledger, a cut from the answers alone, dearer loans."""

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha
        self.balance = self.debt = self.credit = 0.0
        self.recent: deque[tuple[float, bool]] = deque()
        self.ordered: list[tuple[float, bool]] = []

    def decide(self, confidence: float | None, _gap: float) -> Decision:
        """Decide a round."""
        doubt, cut, total = 1.0 if confidence is None else 1.0 - confidence, -1.0, 0.0
        aim = self.alpha * min(max(self.balance, 1.0) / 8.0, 2.0)
        for i, (other, wrong) in enumerate(self.ordered):
            total += wrong - aim
            if total <= 0.0 and (i + 1 == len(self.ordered) or self.ordered[i + 1][0] > other):
                cut = other
        return Decision(doubt > cut or self.balance < 1.0 - self.alpha, doubt, doubt <= cut)

    def answer(self, decision: Decision, correct: bool) -> None:
        """Take the answer of a round."""
        self.recent.append((decision.doubt, not correct))
        insort(self.ordered, self.recent[-1])
        if len(self.recent) > 500:
            del self.ordered[bisect_left(self.ordered, self.recent.popleft())]
        change = self.alpha - (not correct)
        if not decision.ask:
            self.balance += change
            self.debt = max(0.0, self.debt - max(0.0, self.balance - 10.0))
            self.balance = min(self.balance, 10.0)
        elif decision.wanted and self.balance < 1.0 - self.alpha:
            self.credit = max(0.0, self.credit + change)
            if self.credit >= 2.0**self.debt:
                self.balance, self.debt, self.credit = self.balance + 1.0, self.debt + 1.0, 0.0


class Ours(Asking):
    """`onebit.asking`, which does not look at the gap."""

    def decide(self, confidence: float | None, _gap: float = 0.0) -> Decision:
        """Decide a round."""
        return super().decide(confidence)

    def answer(self, decision: Decision, correct: bool) -> None:
        """Take the answer of a round, after which the limits must hold."""
        super().answer(decision, correct)
        assert self.n_wrong <= self.limit() + 1e-9, "the theorem"
        assert self.ask_at_most is None or self.n_asked <= self.ask_at_most * (self.n_asked + self.n_alone) + 20


class ByGap:
    """The trial for ``ask_at_most``: tokens, spent on the smallest gaps; or drawn at random."""

    def __init__(self, beta: float, is_random: bool) -> None:
        self.beta, self.tokens = beta, 20.0
        self.recent: deque[float] = deque(maxlen=300)
        self.random = np.random.default_rng(1) if is_random else None

    def decide(self, _confidence: float | None, gap: float) -> Decision:
        """Decide a round."""
        self.tokens += self.beta
        self.recent.append(gap if self.random is None else self.random.random())
        smaller = sum(other < self.recent[-1] for other in self.recent) / len(self.recent)
        ask = self.tokens >= 1.0 and smaller < self.beta * self.tokens / 4.0
        self.tokens -= ask
        return Decision(ask, 0.0, not ask)

    def answer(self, decision: Decision, correct: bool) -> None:
        """Nothing is learned."""


def rule_named(name: str, share: float) -> Any:
    if name in ("wrong_at_most", "ask_at_most"):
        return Ours(**{name: share})
    return Trial(share) if name == "trial" else ByGap(share, is_random=name == "at random")


def read(path: Path, shuffle: int, rounds: int) -> tuple[Any, np.ndarray]:
    """Return the first rounds of a shuffled set."""
    with np.load(path) as file:
        y = file["y"].astype(int)
        if "indptr" in file:
            X = scipy.sparse.csr_matrix((file["data"], file["indices"], file["indptr"]), shape=file["shape"])
        else:
            X = file["X"]
    order = np.random.default_rng(shuffle).permutation(len(y))[:rounds]
    return X[order].astype(float), y[order]


def play(path: Path, shuffle: int, rounds: int, name: str, share: float) -> Game:
    """Play one game, and return what came of it."""
    X, y = read(path, shuffle, rounds)
    learner = onebit.BanditSVM(classes=np.unique(y).tolist(), seed=shuffle)
    rule, n = rule_named(name, share), len(y)
    confidences, right, asked, over = np.zeros(n), np.zeros(n, dtype=bool), np.zeros(n, dtype=bool), 0.0
    wrong = alone = 0
    for t, label in enumerate(y.tolist()):
        guess = learner.guess(X[t])
        second, best = np.partition(guess.scores, -2)[-2:]
        decision = rule.decide(guess.confidence, best - second)
        is_right = guess.label == label
        right[t], asked[t], confidences[t] = is_right, decision.ask, guess.confidence or 0.0
        rule.answer(decision, is_right)
        if decision.ask:
            learner.label(guess, label)
        else:
            learner.tell(guess, is_right)
        alone, wrong = alone + (not decision.ask), wrong + (not decision.ask and not is_right)
        over = max(over, wrong - share * alone)
    return {
        "set": path.stem,
        "shuffle": shuffle,
        "rule": name,
        "share": share,
        "rounds": n,
        "asked": int(asked.sum()),
        "asked_later": int(asked[n // 2 :].sum()),
        "wrong": wrong,
        "over": over,
        "unsure": int((~right).sum()),
        "least": least_asked(confidences, right, share),
    }


def least_asked(confidences: np.ndarray, right: np.ndarray, share: float) -> int:
    """Return how many rounds had to be asked at least, had the best cut of the confidences been known beforehand."""
    wrong = np.cumsum(~right[np.argsort(-confidences, kind="stable")])
    kept = np.flatnonzero(wrong <= share * np.arange(1, len(wrong) + 1))
    return len(wrong) - (int(kept[-1]) + 1 if len(kept) else 0)


def mean(games: list[Game], key: str) -> float:
    return 100.0 * float(np.mean([game[key] / game["rounds"] for game in games]))


def wrong_alone(games: list[Game]) -> float:
    alone = sum(int(game["rounds"] - game["asked"]) for game in games)
    return 100.0 * sum(int(game["wrong"]) for game in games) / max(1, alone)


def tables(games: list[Game]) -> str:
    """Return what was found, as Markdown."""
    lines = [
        "| sets | limit | rule | asked | second half | least | wrong | most over α A |",
        "|---|---|---|--:|--:|--:|--:|--:|",
    ]
    for title, is_in in (("chosen on", True), ("others", False)):
        for alpha in ALPHAS:
            of = [game for game in games if game["share"] == alpha and (game["set"] in CHOSEN_ON) == is_in]
            keys = [
                {(game["set"], game["shuffle"]) for game in of if game["rule"] == rule}
                for rule in ("trial", "wrong_at_most")
            ]
            for rule in ("trial", "wrong_at_most"):
                these = [
                    game for game in of if game["rule"] == rule and (game["set"], game["shuffle"]) in keys[0] & keys[1]
                ]
                if these:
                    later = 2.0 * mean(these, "asked_later")
                    over = max(game["over"] for game in these)
                    lines.append(
                        f"| {title} ({len(these)} games) | {alpha:.0%} | {rule} | {mean(these, 'asked'):.1f} % | "
                        f"{later:.1f} % | "
                        f"{mean(these, 'least'):.1f} % | {wrong_alone(these):.1f} % | {over:.1f} |"
                    )
    lines += ["", "| rule | " + " | ".join(f"β = {beta:.0%}" for beta in BETAS) + " |", "|---|--:|--:|--:|"]
    for rule in ("at random", "by gap", "ask_at_most"):
        cells = []
        for beta in BETAS:
            these = [game for game in games if game["rule"] == rule and game["share"] == beta]
            cells.append(f"{mean(these, 'wrong'):.1f} % ({mean(these, 'asked'):.1f} % asked)" if these else "")
        lines.append(f"| {rule} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(games: list[Game]) -> None:
    """Draw the share asked in every set beside the least in hindsight."""
    with figures.looks():
        figure, panels = figures.new_figure(1, len(ALPHAS), 3.4)
        for axes, alpha in zip(panels, ALPHAS, strict=True):
            axes.plot([0, 1], [0, 1], color="#8C8C8C", linewidth=1)
            for rule, color, marker, label in (
                ("trial", "#B0B0B0", "x", "the trial"),
                ("wrong_at_most", "#0072B2", "o", "wrong_at_most"),
            ):
                these = [game for game in games if game["rule"] == rule and game["share"] == alpha]
                names = sorted({game["set"] for game in these})
                points = np.array(
                    [
                        [mean([game for game in these if game["set"] == name], key) / 100 for key in ("least", "asked")]
                        for name in names
                    ]
                )
                if len(points):
                    axes.plot(*points.T, linestyle="", marker=marker, color=color, label=label, markersize=6)
            axes.set_title(f"at most {alpha:.0%} wrong")
            for axis in (axes.xaxis, axes.yaxis):
                figures.count_percent(axis, [0, 0.5, 1])
            axes.tick_params(labelleft=axes is panels[0])
        panels[0].set_ylabel("asked")
        panels[1].set_xlabel("least possible in hindsight")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        with tempfile.TemporaryDirectory() as folder:
            png, _ = figures.save(figure, Path(folder), "asking")
            replace_file(IMAGES / "asking.png", png.read_bytes())


def draw_one(path: Path, rounds: int, alpha: float = 0.05, part: int = 250) -> None:
    """Draw how often a game asks as it goes on, and what share is wrong with and without a limit."""
    X, y = read(path, 0, rounds)
    names = np.unique(y).tolist()
    alone = onebit.play(onebit.BanditSVM(classes=names), X, y, confidence=True).by_round
    trace = onebit.play(onebit.BanditSVM(classes=names), X, y, wrong_at_most=alpha)
    game = trace.by_round
    assert alone is not None
    assert game is not None
    done = np.arange(1, len(y) + 1)
    decided = np.maximum(1, np.cumsum(~game.asked))
    n_parts = len(y) // part
    asked = game.asked[: n_parts * part].reshape(n_parts, part).mean(axis=1)
    with figures.looks():
        figure, (left, right) = figures.new_figure(1, 2, 3.2)
        left.bar((np.arange(n_parts) + 0.5) * part, asked, width=0.85 * part, color="#0072B2")
        left.set_title("how often a person is asked")
        right.plot(done, np.cumsum(~alone.right) / done, color="#B0B0B0", label="it decides everything")
        right.plot(done, np.cumsum(~game.right & ~game.asked) / decided, color="#0072B2", label="what it decides alone")
        right.axhline(alpha, color="#D55E00", linestyle=(0, (5, 2)), linewidth=1.2, label=f"limit {alpha:.0%}")
        right.set_title("wrong so far")
        for axes, top in ((left, 1.0), (right, 1.0)):
            axes.set(xlabel="rounds", xlim=(0, len(y)), ylim=(0, top))
            figures.count_axis(axes.xaxis, 2)
            figures.count_percent(axes.yaxis)
        figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        with tempfile.TemporaryDirectory() as folder:
            png, _ = figures.save(figure, Path(folder), "asking_one_set")
            replace_file(IMAGES / "asking_one_set.png", png.read_bytes())
    shares = np.mean(~alone.right), trace.asked / len(y), np.mean(game.asked[len(y) // 2 :])
    print(
        "{}: decides everything, {:.1%} wrong; asks about {:.1%}, {:.1%} in the second half".format(path.stem, *shares)
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--shuffles", type=int, nargs="+", default=list(range(5)))
    options.add_argument("--rounds", type=int, default=5000)
    options.add_argument("--rules", nargs="+", default=["wrong_at_most", "trial", "ask_at_most", "by gap", "at random"])
    options.add_argument("--sets", nargs="+", help="all that are in the folder, but for two, if not given")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--one-set", help="draw one game of this set, and play nothing else")
    options.add_argument("--games", type=Path, help="a file of games that were played; new ones are added")
    chosen = options.parse_args()
    if chosen.one_set:
        draw_one(chosen.folder / f"{chosen.one_set}.npz", chosen.rounds)
        return
    paths = sorted(chosen.folder.glob("*.npz"))
    paths = [path for path in paths if (path.stem in chosen.sets if chosen.sets else path.stem not in LEFT_OUT)]
    games: list[Game] = []
    if chosen.games is not None and chosen.games.exists():
        games = [json.loads(line) for line in chosen.games.read_text().splitlines()]
    known = {(game["set"], game["shuffle"], game["rule"], game["share"]) for game in games}
    wanted = [
        (path, shuffle, chosen.rounds, rule, share)
        for shuffle in chosen.shuffles
        for path in paths
        for rule in chosen.rules
        for share in (ALPHAS if rule in ("wrong_at_most", "trial") else BETAS)
        if (path.stem, shuffle, rule, share) not in known
    ]
    with ProcessPoolExecutor(chosen.processes) as pool:
        for game in pool.map(play, *zip(*wanted, strict=True)) if wanted else ():
            games.append(game)
            if chosen.games is not None:
                with chosen.games.open("a") as file:
                    file.write(json.dumps(game) + "\n")
    draw(games)
    print(tables(games))


if __name__ == "__main__":
    main()
