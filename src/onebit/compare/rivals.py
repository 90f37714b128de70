"""Rivals from elsewhere, and how their many settings become the few rows one reads."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onebit.arena import vowpal_wabbit
from onebit.arena.grid import Spec
from onebit.compare.comparison import Outcome
from onebit.compare.entries import Entry
from onebit.inputs import check_choice

RIVALS = ("vw",)
DEFAULT_TITLE = "VW default"
BEST_TITLE = "VW best setting"
ORACLE_TITLE = "VW best per run"
_GRID_TITLE = "VW "


def rival_entries(rival: str, *, whole_grid: bool = True) -> list[Entry]:
    """Return the entries of a rival: its default, then the settings of its grid.

    Parameters
    ----------
    rival : {"vw"}
        Who.
    whole_grid : bool
        False for the default alone.
    """
    check_choice("--rival", rival, RIVALS)
    entries = [Entry(DEFAULT_TITLE, vowpal_wabbit.spec(vowpal_wabbit.DEFAULT))]
    if whole_grid:
        entries += [Entry(_GRID_TITLE + options, vowpal_wabbit.spec(options)) for options in vowpal_wabbit.GRID]
    return entries


def settle_in_hindsight(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Replace the settings of a grid, data set by data set, by the two ways of choosing among them in hindsight.

    "VW best setting" is the one with the fewest mistakes over all runs; "VW best per run" takes the best setting of
    every single run, which no one could have chosen and nothing of the grid beats.
    """
    settled = []
    for dataset in dict.fromkeys(outcome.dataset for outcome in outcomes):
        mine = [outcome for outcome in outcomes if outcome.dataset == dataset]
        tuned = [outcome for outcome in mine if _is_tuned(outcome.entry)]
        settled += [outcome for outcome in mine if not _is_tuned(outcome.entry)]
        if tuned:
            settled += [_best_setting(tuned), _best_per_run(tuned)]
    return settled


def _is_tuned(entry: Entry) -> bool:
    return entry.spec.name == vowpal_wabbit.NAME and entry.title != DEFAULT_TITLE


def _options(outcome: Outcome) -> str:
    return str(outcome.entry.spec.settings["options"])


def _best_setting(tuned: list[Outcome]) -> Outcome:
    best = min(tuned, key=lambda outcome: outcome.mean)
    return replace(best, entry=Entry(BEST_TITLE, best.entry.spec), remark=_options(best))


def _best_per_run(tuned: list[Outcome]) -> Outcome:
    chosen = np.argmin([outcome.final for outcome in tuned], axis=0)
    picked = [tuned[k] for k in chosen]
    distinct = list(dict.fromkeys(_options(outcome) for outcome in picked))
    return Outcome(
        tuned[0].dataset,
        Entry(ORACLE_TITLE, Spec(vowpal_wabbit.NAME, {"options": list(distinct)})),
        tuned[0].rounds,
        np.stack([outcome.mistakes[run] for run, outcome in enumerate(picked)]),
        np.array([outcome.seconds[run] for run, outcome in enumerate(picked)]),
        remark="; ".join(distinct),
    )
