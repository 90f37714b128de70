"""A league from data to pages, and who is in it."""

import csv
import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from in_process import onebit
from league_players import COIN
from onebit.cli.league import _Field, _intro, _league, _percent, command
from onebit.cli.options import Games, Workers
from onebit.experiments.comparison import Comparison, play_league
from onebit.experiments.entries import enter, with_diagonals
from onebit.experiments.statistics import standings
from onebit.streams.reading import PLAIN
from onebit.streams.sources import find_sources, known_names

FIELD = f"{COIN}:rate=0.1 {COIN}:rate=0.3 {COIN}:rate=0.5,fails_with=10 {COIN}:rate=0.2,long=true"
SAME_BYTES = ("standings.csv", "results.csv", "pairs.csv", "tests.csv", "unfinished.csv", "runs.csv", "curves.csv")
League = partial(Comparison, seconds_per_game=600.0)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_whole_league(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    data = ("iris", "wine", "digits")
    play = partial(
        command, data, field=_Field(bundled=False), games=Games((FIELD,), rounds=80), reading=PLAIN, workers=Workers(1)
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


def test_diagonal_forms_play_where_whole_matrices_are_too_long() -> None:
    field = _Field(bundled=False, diagonal=True)
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


def test_bundled_sources_come_once() -> None:
    def names(*data: str, bundled: bool = True) -> list[str]:
        games, field = Games(("BanditPerceptron", "UniformGuess")), _Field(bundled=bundled)
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


def test_example_of_percent() -> None:
    assert (_percent(0.0512), _percent(0.0), _percent(0.0004), _percent(math.nan)) == ("5.1%", "0%", "0.04%", "")
