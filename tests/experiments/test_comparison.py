"""Which games a comparison plays, what they give, and who is left out."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from league_players import COIN
from onebit.experiments import CellError, Spec, vowpal_wabbit
from onebit.experiments.comparison import Comparison, Outcome, _in_seconds, _settled, play_league, run_comparison
from onebit.experiments.entries import Entry, enter, every_learner, rival_entries
from onebit.experiments.players import make_rounds
from onebit.experiments.statistics import standings
from onebit.learners import BanditPerceptron, Banditron
from onebit.playing import play
from onebit.streams import paper_weak, preprocess
from onebit.streams.sources import Source, _load, find_sources
from tables import animals

ENTRIES = tuple(map(enter, ("BanditPerceptron", "Banditron:exploration=0.1", "MulticlassPerceptron")))
League = partial(Comparison, seconds_per_game=600.0)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return animals(tmp_path)


def comparison(*sources: Source, **settings: Any) -> Comparison:
    return Comparison(tuple(sources), ENTRIES, **{"rounds": 150, "runs": 3, **settings})


def _everyone(rounds: int) -> list[Entry]:
    return every_learner(rounds)[0]


def test_hindsight_takes_the_best_of_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vowpal_wabbit, "require", lambda: "0.0")
    entries = rival_entries(["vw"])[:4]
    finals = ([9, 9], [5, 8], [8, 4], [7, 7])
    outcomes = [
        Outcome(name, entry, np.array([1, 50]), np.array([[1, last] for last in final]), np.full(2, k + 1.0))
        for name in ("a", "b")
        for k, (entry, final) in enumerate(zip(entries, finals, strict=True))
    ]
    outcomes.insert(0, Outcome("a", Entry("Ours", Spec("Ours")), np.array([1, 50]), np.array([[0, 3]] * 2), np.ones(2)))
    settled = _settled(outcomes)
    assert [(o.dataset, o.entry.title, o.mean) for o in settled] == [
        ("a", "Ours", 3.0),
        ("a", "VW default", 9.0),
        ("a", "VW best setting", 6.0),
        ("a", "VW best per run", 4.5),
        ("b", "VW default", 9.0),
        ("b", "VW best setting", 6.0),
        ("b", "VW best per run", 4.5),
    ]
    best, oracle = settled[2:4]
    assert best.remark == vowpal_wabbit._GRID[1]
    assert oracle.remark == f"{vowpal_wabbit._GRID[0]}; {vowpal_wabbit._GRID[1]}"
    assert oracle.final.tolist() == [5, 4]
    assert oracle.seconds.tolist() == [2.0, 3.0]


def test_every_family_is_settled_by_itself() -> None:
    outcomes = [
        Outcome("a", Entry(f"{family} {k}", Spec("x"), family=family), np.array([9]), np.array([[k]]), np.ones(1))
        for family in ("One", "Two")
        for k in (4, 3)
    ]
    titles = [(outcome.entry.title, outcome.remark, outcome.mean) for outcome in _settled(outcomes)]
    assert titles == [
        (f"{family} {how}", "3", 3.0) for family in ("One", "Two") for how in ("best setting", "best per run")
    ]


def test_everyone_plays_the_rows_that_the_seed_names(table: Path, tmp_path: Path) -> None:
    (source,) = find_sources([str(table)])
    outcomes = run_comparison(comparison(source, seed=4), tmp_path, jobs=1)
    data = source.load()
    for run in range(3):
        order = np.random.default_rng(4 + run).permutation(240)[:150]
        X = preprocess(data.X[order], "standardize")
        for outcome, learner in zip(outcomes, (BanditPerceptron(classes=3), Banditron(0.1, classes=3)), strict=False):
            trace = play(learner, X, data.y[order], seed=4 + run)
            assert outcome.final[run] == trace.mistakes
            assert np.array_equal(outcome.mistakes[run], trace.curve.mistakes)
            assert np.array_equal(outcome.rounds, trace.curve.rounds)
    assert [outcome.dataset for outcome in outcomes] == ["animals"] * 3
    assert all((outcome.seconds > 0).all() for outcome in outcomes)


def test_streams_of_the_paper_are_drawn_anew(tmp_path: Path) -> None:
    source = Source("paper_weak", stream="paper_weak")
    wanted = comparison(source, preprocessing="none")
    stream = wanted.facts[source].stream
    rounds = make_rounds(stream, source, 7)
    assert np.array_equal(rounds.X, paper_weak(150, 7)[0])
    assert np.array_equal(rounds.y, paper_weak(150, 7)[1])
    assert rounds.n_classes == 3
    assert make_rounds(Spec("paper_weak", {**stream.settings, "rounds": 1}), source, 7).n_classes == 3


def test_key_knows_data_preprocessing_and_rounds(table: Path) -> None:
    (source,) = find_sources([str(table)])

    def keys(wanted: Comparison) -> set[str]:
        return {cell.key for cell in wanted.cells()}

    first = keys(comparison(source))
    assert len(first) == 9
    assert keys(comparison(source)) == first
    assert keys(comparison(source, rounds=240)) == keys(comparison(source, rounds=9999)), "all rows are all rows"
    for other in ({"preprocessing": "online"}, {"unit_length": True}, {"rounds": 151}, {"seed": 10}):
        assert not keys(comparison(source, **other)) & first
    text = table.read_text()
    table.write_text(text.replace("emu", "elk"))
    _load.cache_clear()
    assert keys(comparison(source)) == first, "another name of a label is the same game"
    table.write_text(text[: text.rindex("\n", 0, -1)] + "\n0.1,0.2,red,cat\n")
    _load.cache_clear()
    assert not keys(comparison(source)) & first


def test_a_file_that_changes_while_it_is_played(table: Path) -> None:
    (source,) = find_sources([str(table)])
    stream = comparison(source).facts[source].stream
    table.write_text(table.read_text() + "0.1,0.2,red,cat\n")
    _load.cache_clear()
    with pytest.raises(ValueError, match="has changed while it was being played"):
        make_rounds(stream, source, 0)


def test_a_learner_that_cannot_play_is_named(table: Path, tmp_path: Path) -> None:
    entry = enter("BanditPerceptron:kernel=Rational")
    wanted = replace(comparison(*find_sources([str(table)])), entries=(entry,))
    with pytest.raises(CellError, match=r"animals.*BanditPerceptron.*unit ball"):
        run_comparison(wanted, tmp_path, jobs=1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rounds": 0}, "rounds"),
        ({"runs": 0}, "runs"),
        ({"seed": -1}, "seed"),
        ({"preprocessing": "pca"}, "preprocessing must be one of 'standardize', 'online', 'none'"),
    ],
)
def test_bad_settings(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        comparison(Source("wine"), **settings)


def outcome(dataset: str, title: str, n_runs: int, n_rounds: int) -> Outcome:
    mistakes = np.cumsum(np.ones((n_runs, n_rounds), dtype=np.int64), axis=1) // 2
    entry = replace(ENTRIES[2] if title == "told" else ENTRIES[0], title=title, key=title)
    return Outcome(dataset, entry, np.arange(1, n_rounds + 1), mistakes, np.ones(n_runs))


def test_the_key_of_a_cell_counts_code_that_plays() -> None:
    of_three_modules = tuple(map(enter, ("BanditPerceptron", "NearestNeighbor", "SOBA")))
    wanted = replace(comparison(Source("paper_weak", stream="paper_weak")), entries=of_three_modules)
    versions = {cell.player.name: cell.version for cell in wanted.cells()}
    assert len(set(versions.values())) == 3, "every module of learners has code of its own"
    assert all(version.startswith("code ") and "numpy" in version for version in versions.values())
    kept = {cell.key for cell in replace(wanted, keep_learned=True).cells()}
    assert not kept & {cell.key for cell in wanted.cells()}, "a game stored without what was learned is another"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"runs": 2**63}, "runs must be between 1 and 100000; got 9223372036854775808"),
        ({"runs": 0}, "runs must be between 1 and 100000; got 0"),
        ({"rounds": 2**63}, "rounds must be between 1 and 1000000000000; got 9223372036854775808"),
        ({"seed": 2**63 - 2, "runs": 3}, r"seed \+ runs must be between 1 and 9223372036854775807"),
    ],
)
def test_sizes_that_are_a_slip_are_refused_at_once(settings: dict[str, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        comparison(Source("iris"), **settings)


@pytest.mark.parametrize("jobs", [0, -3, 10**6])
def test_jobs_are_checked_before_a_file_is_read(tmp_path: Path, jobs: int) -> None:
    missing = Source("missing", path=tmp_path / "missing.csv")
    with pytest.raises(ValueError, match=f"jobs must be .*got {jobs}$"):
        run_comparison(comparison(missing), tmp_path, jobs=jobs)
    assert list(tmp_path.iterdir()) == []


def test_changes_are_made_to_the_rounds_of_each_run_and_are_in_the_key() -> None:
    plain, noisy, thinned = find_sources(["iris", "noise:0.2:iris", "imbalance:10:iris"])
    wanted = comparison(plain, noisy, thinned, rounds=150)
    assert wanted.facts[noisy].about["changed"] == "20 % of the labels replaced by another, at random"
    specs = {source: facts.stream for source, facts in wanted.facts.items()}
    keys = [{cell.key for cell in wanted.cells() if cell.stream == specs[source]} for source in specs]
    assert [len(each) for each in keys] == [9, 9, 9]
    assert len(set.union(*keys)) == 27
    wrong = []
    for seed in (0, 1):
        same, other = (make_rounds(specs[each], each, seed) for each in (plain, noisy))
        assert other.n_classes == 3
        assert np.array_equal(same.X, other.X)
        wrong.append(np.flatnonzero(same.y != other.y).tolist())
    assert wrong[0] != wrong[1]
    assert all(15 < len(each) < 45 for each in wrong)
    n_left = len(make_rounds(specs[thinned], thinned, 0).y)
    assert n_left == specs[thinned].settings["rounds"]
    assert n_left < 100


def test_a_stream_of_sparse_rows_is_said_to_be_sparse() -> None:
    facts = comparison(*find_sources(["syn_sep", "paper_weak"])).facts.values()
    assert [each.is_sparse for each in facts] == [True, False]


def test_several_labels_may_be_right(tmp_path: Path) -> None:
    entries = tuple(enter(name) for name in ("BanditPerceptron", "Banditron:exploration=0.1"))
    sources = tuple(find_sources(["several:2:iris", "iris", "several_right"]))
    outcomes = run_comparison(Comparison(sources, entries, rounds=150, runs=2), tmp_path, jobs=1)
    means = {(outcome.dataset, outcome.entry.title): outcome.mean for outcome in outcomes}
    assert len(means) == 6
    assert means["several:2:iris", "BanditPerceptron"] < means["iris", "BanditPerceptron"]
    told = Comparison(sources[:1], (enter("MulticlassPerceptron"),), rounds=150, runs=2)
    with pytest.raises(CellError, match="needs one right label in every round; leave it out of several:2:iris"):
        run_comparison(told, tmp_path, jobs=1)


def test_a_league_and_a_comparison_share_a_store(tmp_path: Path) -> None:
    league = League(tuple(find_sources(["iris"])), (enter(COIN), enter(f"{COIN}:rate=0.2")), rounds=50, runs=2)
    played: list[tuple[int, int]] = []
    first = play_league(league, tmp_path, jobs=1)[0]
    again = run_comparison(league, tmp_path, jobs=1, on_progress=lambda *done: played.append(done))
    assert played == [(4, 4)], "nothing is played again"
    assert all(np.array_equal(a.mistakes, b.mistakes) for a, b in zip(first, again, strict=True))


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


def test_what_is_too_long_is_known_before_it_is_played() -> None:
    entries = (enter("NearestNeighbor"), enter("UniformGuess"))
    source = find_sources(["digits", "paper_weak"])
    league = League(tuple(source), entries, rounds=1000, runs=2, seconds_per_game=0.01)
    assert [(failure.dataset, failure.entry.title) for failure in league.left_out()] == [("digits", "NearestNeighbor")]
    assert [entry.title for entry in league.entries_on(source[0])] == ["UniformGuess"]
    assert len(league.entries_on(source[1])) == 2, "three columns are fewer than 64"


def test_example_of_in_seconds() -> None:
    assert (_in_seconds(12345.6), _in_seconds(0.0123)) == ("12 346 s", "0.012 s")


def test_who_needs_one_right_label_is_left_out() -> None:
    entries = tuple(enter(name) for name in ("BanditPerceptron", "MulticlassPerceptron"))
    league = League(tuple(find_sources(["several:2:iris", "iris"])), entries, rounds=60, runs=2)
    assert [(each.dataset, each.entry.title) for each in league.left_out()] == [
        ("several:2:iris", "MulticlassPerceptron")
    ]
    several = league.sources[0]
    assert [entry.title for entry in league.entries_on(several)] == ["BanditPerceptron"]
