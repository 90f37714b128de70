"""Colours belong to learners: the same in every figure of every command, and no two alike in one figure."""

import random
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from onebit.experiments import duels as duel
from onebit.experiments import paper_figures
from onebit.experiments.comparison import Outcome
from onebit.experiments.duels import DuelRow
from onebit.experiments.entries import DEFAULT_ENTRIES, Entry, enter
from onebit.experiments.figures import _draw_curves, _draw_overview, draw_growth
from onebit.experiments.paper import contestants
from onebit.learners import BanditPerceptron, Banditron, BanditSVM, MulticlassPerceptron
from onebit.reporting.looks import Look, Shown, looks_of
from onebit.streams.adversaries import IgnorantAdversary, pack_directions

LEARNERS = [BanditSVM(), BanditPerceptron(), Banditron(0.01), MulticlassPerceptron()]
FAMILIES = ("VW", "contextualbandits", "river", "coba")
RIVALS = [
    Shown(name, name)
    for family in FAMILIES
    for name in (f"{family} default", f"{family} best setting", f"{family} best per run")
]
DUELS = [Shown(repr(learner), repr(learner), learner.full_information) for learner in duel._contestants(0.1)]
PAPER = [Shown(entry.title, entry.written, entry.full_information) for entry in contestants()]
COMPARED = [Shown(text, enter(text).written, enter(text).full_information) for text in DEFAULT_ENTRIES] + RIVALS


def outcome(dataset: str, entry: Entry) -> Outcome:
    return Outcome(dataset, entry, np.array([1, 10, 100]), np.array([[1, 5, 20], [1, 6, 22]]), np.ones(2))


def colors_in(figure: Figure) -> set[str]:
    return {to_hex(line.get_color()).upper() for axes in figure.axes for line in axes.lines}


def test_a_learner_has_one_colour_in_the_figures_of_all_commands() -> None:
    challenge = IgnorantAdversary(pack_directions(0.001, 4)).challenge
    for learner in LEARNERS:
        expected = looks_of([Shown("alone", repr(learner), learner.full_information)])["alone"].color.upper()
        # Never the first: a colour that came from the place would be another.
        entries = [enter(Banditron(0.3)), enter(BanditPerceptron(ties="random")), enter(learner, "mine", "algorithm-1")]
        played = [outcome("weak", entry) for entry in entries]
        rows = [
            DuelRow(challenge, entry.written, 2, 1.0, 0.1, None, None, None, entry.full_information)
            for entry in entries
        ]
        for figure in (
            _draw_curves({"weak": played}),
            _draw_overview(played),
            paper_figures._draw_curves(played, "weak", False),
            paper_figures._draw_curves(played, "weak", True),
            paper_figures._draw_glance(played, "weak"),
            draw_growth(rows),
        ):
            assert expected in colors_in(figure)


@pytest.mark.parametrize("players", [DUELS, PAPER, COMPARED, DUELS + PAPER + COMPARED])
def test_no_two_of_a_figure_look_alike(players: list[Shown]) -> None:
    found = looks_of(players)
    assert set(found) == {player.title for player in players}
    assert len({(look.color, look.dashes) for look in found.values()}) == len(found)
    assert len({(look.color, look.marker, look.fill) for look in found.values()}) == len(found)


def test_colours_do_not_depend_on_who_else_is_there() -> None:
    everyone = {player.written: player for player in DUELS + PAPER + COMPARED}.values()
    together = looks_of(player._replace(title=player.written) for player in everyone)
    for players in (PAPER, COMPARED):
        found = looks_of(players)
        for player in players:
            assert found[player.title].color == together[player.written].color


def test_looks_do_not_depend_on_the_order() -> None:
    players = DUELS + COMPARED
    mixed = players.copy()
    random.Random(0).shuffle(mixed)
    assert looks_of(mixed) == looks_of(players)


def test_those_who_are_told_the_label_are_dotted_and_hollow() -> None:
    found = looks_of(DUELS)
    told = {player.title for player in DUELS if player.full_information}
    assert told
    assert {title for title, look in found.items() if look.fill == "white"} == told
    dotted = {found[title].dashes for title in told}
    assert not dotted & {look.dashes for title, look in found.items() if title not in told}


def test_banditrons_rates_are_shades_from_dark_to_light() -> None:
    rates = (0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005)
    found = looks_of(Shown(f"{rate}", repr(Banditron(rate))) for rate in rates)
    looks = [found[f"{rate}"] for rate in rates]
    light = [sum(to_rgb(look.color)) for look in looks]
    assert light == sorted(light)
    assert all(one.dashes != other.dashes for one, other in pairwise(looks))


def test_strangers_have_looks_of_their_own_and_as_many_as_one_needs() -> None:
    strangers = [Shown(f"mine {k}", f"Mine(rate={k})") for k in range(18)]
    found = looks_of([*strangers, Shown("BanditSVM", "BanditSVM()")])
    assert len({look[:2] for look in found.values()}) == 19
    # More than there are looks is no error.
    assert len(looks_of(Shown(f"{k}", f"Mine(rate={k})") for k in range(40))) == 40


def seen_by_the_colour_blind(look: Look) -> np.ndarray:
    """Return a colour as without the receptors for green (Viénot, Brettel and Mollon, 1999), its square roots."""
    red, green, blue = np.array(to_rgb(look.color)) ** 2.2
    both = 0.29275 * red + 0.70725 * green
    return np.array([both, both, -0.02234 * red + 0.02234 * green + blue]).clip(0.0) ** (1 / 2.2)


def test_the_colour_blind_can_tell_the_families_apart() -> None:
    names = ("BanditSVM()", "BanditPerceptron()", "Banditron()", "NearestNeighbor()", "UniformGuess()", "VW default")
    looks = looks_of(Shown(name, name) for name in names)
    seen = [seen_by_the_colour_blind(looks[name]) for name in names]
    for i, one in enumerate(seen):
        for other in seen[:i]:
            assert np.linalg.norm(one - other) > 0.15


def test_example_of_looks_of() -> None:
    alone = looks_of([Shown("mine", "BanditSVM()")])["mine"]
    others = looks_of([Shown("a", "Banditron()"), Shown("b", "BanditSVM(kernel=None)"), Shown("c", "BanditSVM()")])
    assert (others["c"] == alone, others["b"].color == alone.color) == (True, False)
