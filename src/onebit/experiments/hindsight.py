"""How the many settings of a tuned family become the two rows one reads: chosen in hindsight."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onebit.experiments.comparison import Outcome
from onebit.experiments.entries import Entry


def settle_in_hindsight(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Replace the settings of a family, data set by data set, by the two ways of choosing among them in hindsight.

    "… best setting" is the one with the fewest mistakes over all runs; "… best per run" takes the best setting of every
    single run, which cannot be chosen in advance and which no setting of the grid beats.
    """
    settled = []
    for dataset in dict.fromkeys(outcome.dataset for outcome in outcomes):
        families: dict[str, list[Outcome]] = {}
        for outcome in outcomes:
            if outcome.dataset != dataset:
                continue
            if outcome.entry.family is None:
                settled.append(outcome)
            else:
                families.setdefault(outcome.entry.family, []).append(outcome)
        for family, tuned in families.items():
            settled += [_best_setting(family, tuned), _best_per_run(family, tuned)]
    return settled


def _named(entry: Entry, title: str) -> Entry:
    return replace(entry, title=title, key=title, written=title, family=None, hindsight=True)


def _setting(outcome: Outcome, family: str) -> str:
    return outcome.entry.title.removeprefix(f"{family} ")


def _best_setting(family: str, tuned: list[Outcome]) -> Outcome:
    best = min(tuned, key=lambda outcome: outcome.mean)
    return replace(best, entry=_named(best.entry, f"{family} best setting"), remark=_setting(best, family))


def _best_per_run(family: str, tuned: list[Outcome]) -> Outcome:
    # The first of equal settings, as in `min` above.
    finals = np.stack([outcome.final for outcome in tuned])
    picked = [tuned[int(k)] for k in np.argmin(finals, axis=0)]
    return replace(
        picked[0],
        entry=_named(picked[0].entry, f"{family} best per run"),
        mistakes=np.stack([outcome.mistakes[run] for run, outcome in enumerate(picked)]),
        seconds=np.array([outcome.seconds[run] for run, outcome in enumerate(picked)]),
        explored=np.concatenate([outcome.explored[run : run + 1] for run, outcome in enumerate(picked)]),
        remark="; ".join(dict.fromkeys(_setting(outcome, family) for outcome in picked)),
    )
