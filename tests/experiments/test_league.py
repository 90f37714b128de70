"""A league from data to pages, and who is in it."""

import csv
import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from in_process import onebit
from onebit.cli.league import Field, _intro, _league, _percent, command
from onebit.cli.options import Games, Workers
from onebit.experiments.comparison import Comparison, in_seconds, play_league, run_comparison
from onebit.experiments.entries import Entry, enter, every_learner, with_diagonals
from onebit.experiments.players import player_from
from onebit.experiments.statistics import standings
from onebit.learners import Banditron, NearestNeighbor, UniformGuess, all_learners
from onebit.streams.reading import PLAIN
from onebit.streams.sources import find_sources, known_names

PLAYERS = """
import numpy as np

from onebit.experiments import Player, PlayerTrace, Spec
from onebit.learners.run import default_checkpoints


class Coin(Player):
    \"\"\"Errs with a rate of its own.\"\"\"

    def __init__(self, rate=0.5, fails_with=0, long=False):
        self.rate, self.fails_with, self.long = rate, fails_with, long

    @property
    def spec(self):
        return Spec("league_players:Coin", {"rate": self.rate, "fails_with": self.fails_with, "long": self.long})

    def effort(self, *, rounds, n_features, n_classes):
        return 1e15 * self.long * (n_features == 4)

    def play(self, X, y, n_classes, seed, scratch):
        if n_classes == self.fails_with and seed == 1:
            raise ValueError("more classes than it can count")
        wrong = np.random.default_rng([seed, int(100 * self.rate)]).random(len(y)) < self.rate
        return PlayerTrace(np.cumsum(wrong)[default_checkpoints(len(y)) - 1], 0, int(len(y) * self.rate / 10))


class Matrix(Coin):
    def __init__(self, diagonal=False):
        super().__init__()
        self.diagonal = diagonal

    @property
    def spec(self):
        return Spec("league_players:Matrix", {"diagonal": self.diagonal})
"""
COIN = "league_players:Coin"
FIELD = f"{COIN}:rate=0.1 {COIN}:rate=0.3 {COIN}:rate=0.5,fails_with=10 {COIN}:rate=0.2,long=true"
SAME_BYTES = ("standings.csv", "results.csv", "pairs.csv", "tests.csv", "unfinished.csv", "runs.csv", "curves.csv")


@pytest.fixture(autouse=True)
def players(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "league_players.py").write_text(PLAYERS)
    monkeypatch.syspath_prepend(str(tmp_path))


League = partial(Comparison, seconds_per_game=600.0)


def _everyone(rounds: int) -> list[Entry]:
    return every_learner(rounds)[0]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_whole_league(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    data = ("iris", "wine", "digits")
    play = partial(
        command, data, field=Field(bundled=False), games=Games((FIELD,), rounds=80), reading=PLAIN, workers=Workers(1)
    )
    play(runs=3, out=out)
    printed = " ".join(capsys.readouterr().out.split())
    standings = rows_of(out / "standings.csv")
    assert [(row["place"], row["learner"], row["finished"]) for row in standings] == [
        ("1", f"{COIN}:rate=0.1", "3"),
        ("2", f"{COIN}:rate=0.2,long=true", "2"),
        ("3", f"{COIN}:rate=0.3", "3"),
        ("4", f"{COIN}:rate=0.5,fails_with=10", "2"),
    ]
    assert float(standings[0]["mean_rank"]) == 1.0
    assert float(standings[1]["mean_rank"]) == pytest.approx((4 + 2 + 2) / 3), "last where it did not play"
    reasons = {(row["dataset"], row["learner"]): row["reason"] for row in rows_of(out / "unfinished.csv")}
    assert reasons["digits", f"{COIN}:rate=0.5,fails_with=10"] == "ValueError: more classes than it can count (seed 1)"
    assert reasons["iris", f"{COIN}:rate=0.2,long=true"].startswith("too long: 1 000 000 s")
    assert len(reasons) == 2
    results = {(row["dataset"], row["learner"]): row for row in rows_of(out / "results.csv")}
    assert len(results) == 10
    assert float(results["iris", f"{COIN}:rate=0.3"]["explored"]) == pytest.approx(2 / 80)
    assert len(rows_of(out / "pairs.csv")) == 12
    assert {row["quantity"] for row in rows_of(out / "tests.csv")} >= {"friedman_permutation_p", "sets"}
    for word in ("did not finish digits", "more classes than it can count", "Friedman's test over 3 sets", str(out)):
        assert word in printed

    report = (out / "report.html").read_text(encoding="utf-8")
    for word in ("Not finished", "more classes than it can count", "cannot be told apart"):
        assert word in report
    assert report.count("data:image/svg+xml") == 3
    assert (out / "figures" / "critical_difference.png").read_bytes().startswith(b"\x89PNG")

    before = {name: (out / name).read_bytes() for name in SAME_BYTES}
    monkeypatch.setattr("onebit.cli.league._write_report", lambda *_: None)  # to draw all again would take longest
    play(runs=3, out=out)
    assert {name: (out / name).read_bytes() for name in SAME_BYTES} == before


def test_a_league_and_a_comparison_share_a_store(tmp_path: Path) -> None:
    league = League(tuple(find_sources(["iris"])), (enter(COIN), enter(f"{COIN}:rate=0.2")), rounds=50, runs=2)
    played: list[tuple[int, int]] = []
    first = play_league(league, tmp_path, jobs=1)[0]
    again = run_comparison(league, tmp_path, jobs=1, on_progress=lambda *done: played.append(done))
    assert played == [(4, 4)], "nothing is played again"
    assert all(np.array_equal(a.mistakes, b.mistakes) for a, b in zip(first, again, strict=True))


def test_the_report_says_who_was_tuned_in_hindsight(tmp_path: Path) -> None:
    rivals = [replace(enter(f"{COIN}:rate={rate}"), family="coin") for rate in (0.1, 0.2)]
    league = League(tuple(find_sources(["iris"])), (enter("UniformGuess"), *rivals), rounds=20, runs=2)
    outcomes, _ = play_league(league, tmp_path, jobs=1)
    found = standings(outcomes)
    assert [(row.title, row.mean_rank, row.firsts) for row in found.ranked] == [("UniformGuess", 1.0, 1)]
    assert [row.title for row in found.unranked] == ["coin best setting", "coin best per run"]
    assert all(row.relative < 1.0 for row in found.unranked), "though they make fewer mistakes than the first"
    assert found.pairs == {}
    assert {row.entry.shown for row in found.unranked} == {
        f"coin best {of} (chosen in hindsight)" for of in ("setting", "per run")
    }
    assert "in hindsight" in " ".join(_intro(found))
    own = [outcome for outcome in outcomes if not outcome.remark]
    assert "in hindsight" not in " ".join(_intro(standings(own)))


def test_who_is_chosen_in_hindsight_changes_nobodys_place(tmp_path: Path) -> None:
    rivals = [replace(enter(f"{COIN}:rate={rate}"), family="coin") for rate in (0.1, 0.2)]
    ours = [enter(f"{COIN}:rate={rate}") for rate in (0.15, 0.4)]
    sources = tuple(find_sources(["iris", "wine"]))
    alone, beside = (
        standings(play_league(League(sources, tuple(field), rounds=50, runs=2), tmp_path, jobs=1)[0])
        for field in (ours, [*rivals, *ours])
    )
    assert beside.ranked == alone.ranked
    assert (beside.pairs, beside.friedman, beside.groups) == (alone.pairs, alone.friedman, alone.groups)
    with pytest.raises(ValueError, match="iris: no ranked learner could play it"):
        play_league(League(sources, tuple(rivals), rounds=50, runs=2), tmp_path, jobs=1)


def test_a_league_in_pieces_is_the_whole(tmp_path: Path) -> None:
    """Set by set and learner by learner into one folder: what is left for the whole is what none of them played."""
    entries = tuple(enter(f"{COIN}:rate={rate}") for rate in (0.1, 0.2, 0.3))
    iris, wine = find_sources(["iris", "wine"])
    (tmp_path / "pieces").mkdir()
    for sources, some in (((iris,), entries[:2]), ((wine,), entries[1:])):
        play_league(League(sources, some, rounds=50, runs=2), tmp_path / "pieces", jobs=1)
    whole, played = League((iris, wine), entries, rounds=50, runs=2), []
    found = play_league(whole, tmp_path / "pieces", jobs=1, on_progress=lambda *done: played.append(done))[0]
    assert (played[0], played[-1]) == ((8, 12), (12, 12))
    fresh = play_league(whole, tmp_path, jobs=1)[0]
    assert all(np.array_equal(a.mistakes, b.mistakes) for a, b in zip(found, fresh, strict=True))


def test_diagonal_forms_play_where_whole_matrices_are_too_long() -> None:
    field = Field(bundled=False, diagonal=True)
    games = Games(("SOBA", "SOBA:diagonal=true", "LinUCB"))
    league, _ = _league(["digits"], field._replace(seconds_per_game=1e-6), games, PLAIN, runs=20)
    titles = ["SOBA", "SOBA:diagonal=true", "LinUCB", "LinUCB diagonal"]
    assert [entry.title for entry in league.entries] == titles, "nobody plays twice"
    assert [entry.title for entry in league.entries_on(league.sources[0])] == [titles[1], titles[3]]
    everyone = {entry.title: entry for entry in _league(["digits"], field, Games(), PLAIN, runs=20)[0].entries}
    assert everyone["Confidit diagonal"].spec.settings["diagonal"] is True
    assert everyone["Confidit"].spec.settings["diagonal"] is False
    assert "Banditron diagonal" not in everyone
    own = with_diagonals([enter("league_players:Matrix")])
    assert [entry.spec.settings["diagonal"] for entry in own] == [False, True], (
        "a player of one's own has no set_params"
    )


def test_a_set_that_nobody_can_play_stops_the_league(tmp_path: Path) -> None:
    entries = tuple(enter(f"{COIN}:rate={rate},fails_with=3") for rate in (0.1, 0.2))
    league = League(tuple(find_sources(["iris"])), entries, rounds=20, runs=2)
    with pytest.raises(ValueError, match=r"iris: no ranked learner could play it; .*more classes than it can count"):
        play_league(league, tmp_path, jobs=1)


def test_a_set_that_only_the_told_can_play_stops_the_league(tmp_path: Path) -> None:
    entries = (enter("MulticlassPerceptron"), *(enter(f"{COIN}:rate={rate},fails_with=3") for rate in (0.1, 0.2)))
    league = League(tuple(find_sources(["iris"])), entries, rounds=20, runs=2)
    with pytest.raises(ValueError, match=r"iris: no ranked learner could play it; .*more classes than it can count"):
        play_league(league, tmp_path, jobs=1)


def test_who_cannot_be_entered_for_so_few_rounds_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def for_long_games(cls: Any, rounds: int) -> dict[str, Any]:
        return {"": cls(exploration=1 - 100 / rounds)}

    monkeypatch.setattr(Banditron, "contenders", classmethod(for_long_games))
    entries = every_learner(160)[0]
    league = League(tuple(find_sources(["wine", "wedges"])), tuple(entries), rounds=160, runs=2, field_for=_everyone)
    left_out = [(failure.dataset, failure.entry.title, failure.reason) for failure in league.left_out()]
    assert left_out == [("wedges", "Banditron", "it cannot be entered for a game of 78 rounds")]


def test_every_learner_is_entered_as_it_comes() -> None:
    entries, absent = every_learner(1000)
    assert absent == {}
    named = {entry.title.split(" ")[0] for entry in entries}
    assert named == {cls.__name__ for cls in all_learners()}


def test_learners_say_how_they_are_entered(monkeypatch: pytest.MonkeyPatch) -> None:
    def two_forms(cls: Any, rounds: int) -> dict[str, Any]:
        return {"": cls(), "hurried": cls(exploration=1 / rounds)}

    monkeypatch.setattr(Banditron, "contenders", classmethod(two_forms))
    monkeypatch.setattr(UniformGuess, "contenders", classmethod(lambda cls, rounds: {}))
    monkeypatch.setattr(NearestNeighbor, "contenders", classmethod(lambda cls, rounds: {"": cls(radius=-1.0)}))
    entries, absent = every_learner(1000)
    assert {"Banditron", "Banditron hurried"} <= {entry.title for entry in entries}
    assert list(absent) == ["NearestNeighbor", "UniformGuess"]
    assert "radius" in absent["NearestNeighbor"]
    # Every source asks with its own number of rounds.
    sources = tuple(find_sources(["iris", "wine"]))
    league = League(sources, (), rounds=160, runs=2, field_for=_everyone)
    rates = [
        entry.spec.settings["exploration"]
        for source in sources
        for entry in league.entries_on(source)
        if entry.title == "Banditron hurried"
    ]
    assert rates == [1 / 150, 1 / 160]
    hurried = [cell for cell in league.cells() if cell.player.settings.get("exploration") == 1 / 150]
    assert len(hurried) == 2, "one for each run on iris"


def test_what_is_too_long_is_known_before_it_is_played() -> None:
    entries = (enter("NearestNeighbor"), enter("UniformGuess"))
    source = find_sources(["digits", "paper_weak"])
    league = League(tuple(source), entries, rounds=1000, runs=2, seconds_per_game=0.01)
    assert [(failure.dataset, failure.entry.title) for failure in league.left_out()] == [("digits", "NearestNeighbor")]
    assert [entry.title for entry in league.entries_on(source[0])] == ["UniformGuess"]
    assert len(league.entries_on(source[1])) == 2, "three columns are fewer than 64"


@pytest.mark.parametrize("name", ["LinUCB", "EpsilonGreedy", "SOBA", "PNewtron"])
def test_matrices_of_wide_rows_are_too_long(name: str) -> None:
    wide = {"rounds": 10_000, "n_features": 5000, "n_classes": 10}
    assert player_from(enter(name).spec).effort(**wide) > 600e9
    assert player_from(enter(f"{name}:diagonal=true").spec).effort(**wide) == 0.0
    assert player_from(enter(name).spec).effort(**{**wide, "n_features": 20}) < 600e9


def test_bundled_sources_come_once() -> None:
    def names(*data: str, bundled: bool = True) -> list[str]:
        games, field = Games(("BanditPerceptron", "UniformGuess")), Field(bundled=bundled)
        return [source.name for source in _league(data, field, games, PLAIN, runs=2)[0].sources]

    assert names() == known_names()
    assert names("iris")[-1] == "iris"
    assert len(names("iris")) == len(known_names())
    with pytest.raises(ValueError, match="--no-bundled"):
        names(bundled=False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--learners", f"{COIN} MulticlassPerceptron"], "a league needs two who hear only right or wrong"),
        (["--runs", "1"], "runs must be at least 2"),
        (["--seconds-per-game", "0"], "seconds_per_game"),
        (["--rival-seconds", "-1"], "rival_seconds"),
        (["--rival-seconds", "1e9"], "rival_seconds must be greater than 0 and at most 1e+06"),
        (["--jobs", "0"], "--jobs"),
    ],
)
def test_bad_requests_play_nothing(options: list[str], words: str, tmp_path: Path) -> None:
    field = [] if "--learners" in options else ["--learners", FIELD]
    run = onebit("league", "iris", "--no-bundled", *field, *options, "--out", str(tmp_path / "no"))
    assert run.returncode == 1
    assert words in run.stderr
    assert not (tmp_path / "no").exists()


def test_example_of_in_seconds() -> None:
    assert (in_seconds(12345.6), in_seconds(0.0123)) == ("12 346 s", "0.012 s")


def test_example_of_every_learner() -> None:
    entries, absent = every_learner(1000)
    assert ([entry.title for entry in entries if entry.full_information][-2:], absent) == (
        ["FullInformationSVM", "MulticlassPerceptron"],
        {},
    )


def test_example_of_with_diagonals() -> None:
    assert [entry.title for entry in with_diagonals([enter("SOBA"), enter("Banditron")])] == [
        "SOBA",
        "SOBA diagonal",
        "Banditron",
    ]


def test_example_of_percent() -> None:
    assert (_percent(0.0512), _percent(0.0), _percent(0.0004), _percent(math.nan)) == ("5.1%", "0%", "0.04%", "")


def test_who_needs_one_right_label_is_left_out() -> None:
    entries = tuple(enter(name) for name in ("BanditPerceptron", "MulticlassPerceptron"))
    league = League(tuple(find_sources(["several:2:iris", "iris"])), entries, rounds=60, runs=2)
    assert [(each.dataset, each.entry.title) for each in league.left_out()] == [
        ("several:2:iris", "MulticlassPerceptron")
    ]
    several = league.sources[0]
    assert [entry.title for entry in league.entries_on(several)] == ["BanditPerceptron"]
