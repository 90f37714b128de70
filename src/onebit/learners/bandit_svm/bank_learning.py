"""What an answer changes in a bank: whom it trusts, what it stores, and what its kernels learn."""

import math

import numpy as np

from onebit.compiled import inlined, shared
from onebit.inputs import Floats
from onebit.learners.bandit_svm.bank_facts import DUE, BankFacts, BankSight
from onebit.learners.bandit_svm.bank_plan import LINEAR
from onebit.learners.bandit_svm.bank_steps import replay, step_on, store
from onebit.learners.bandit_svm.bank_vote import ask_all, liken
from onebit.learners.bandit_svm.facts import (
    IT_IS,
    SIZE,
    FactNumbers,
    Settings,
    hearing,
    is_productive,
    is_worth_storing,
    lack,
    stepped,
)
from onebit.learners.bandit_svm.rows import count_entry, scale_is_due
from onebit.loop import highest
from onebit.rounds import Answer

# What a productive fact counts beside a wrong opinion: among kernels that are wrong alike, trust the one that fits.
_LESSON = 0.03


@inlined
def known_label(targets: Floats) -> int:
    """Return the class that is proved to be the right one, or −1."""
    known = -1
    for i in range(targets.shape[0]):
        if targets[i] == IT_IS:
            known = i
    return known


@inlined
def teaches(sight: BankSight, k: int) -> bool:
    """Say whether a proved fact is productive for kernel k."""
    found = False
    for i in range(sight.targets.shape[0]):
        found = found or is_productive(sight.targets[i], sight.opinions[k, i])
    return found


@inlined
def wants(memory: BankFacts, sight: BankSight, k: int, settings: Settings) -> bool:
    """Say whether kernel k finds the example worth storing."""
    return is_worth_storing(
        sight, sight.opinions[k], sight.itself[1, k], memory.totals[k], memory.supports[k], settings
    )


@inlined
def judge(memory: BankFacts, sight: BankSight, answer: Answer, settings: Settings) -> bool:
    """Count which kernels were wrong, and say whether the most trusted one wants the example."""
    n_asked, leader = 0, -1
    for k in range(sight.asked.shape[0]):
        n_asked += sight.asked[k]
    for k in range(memory.trust.shape[0]):
        if leader < 0 and memory.trust[k] == 1.0:
            leader = k
    is_wanted = wants(memory, sight, leader, settings)
    if n_asked < sight.asked.shape[0]:  # the leader was sure, and right: nobody else was asked
        return is_wanted
    known = known_label(sight.targets)
    for k in range(memory.losses.shape[0]):
        best = highest(sight.opinions[k])
        # Without a known label all that is proved is that the guess was wrong.
        if (known >= 0 and best != known) or (known < 0 and best == answer.label):
            memory.losses[k] += 1.0
    fewest = memory.losses[0]
    for k in range(1, memory.losses.shape[0]):
        fewest = min(fewest, memory.losses[k])
    for k in range(memory.losses.shape[0]):
        memory.trust[k] = math.exp(fewest - memory.losses[k])
    # What is productive for the reference is stored whoever else wants it: the guarantee is about those facts. And
    # where every label is held to be wrong, it must be known which were tried.
    return is_wanted or teaches(sight, sight.reference[0]) or (sight.denied[0] != 0 and not answer.correct)


@shared
def forget(memory: BankFacts, sight: BankSight, settings: FactNumbers) -> None:
    """Forget all facts; the linear kernel keeps its weights, and with them its guarantee."""
    plan = settings.kernel.plan
    for k in range(plan.shape[0]):
        if not plan[k, LINEAR]:
            for i in range(sight.opinions.shape[1]):
                sight.opinions[k, i] = 0.0
    memory.counts[SIZE] = 0
    memory.totals[:] = 0.0
    memory.supports[:] = 0
    memory.losses[:] = 0.0
    memory.trust[:] = 1.0
    memory.right[:] = 0
    memory.wrong[:] = 0


@inlined
def teach_guard(memory: BankFacts, sight: BankSight, softness: float) -> None:
    """Let the guard take its step on every fact that it violates; it keeps no examples, and replays nothing."""
    opinion, n_features = sight.opinions[sight.opinions.shape[0] - 1], sight.raw_unit.shape[0]
    square = 0.0
    for j in range(n_features):
        square += sight.raw_unit[j] * sight.raw_unit[j]
    for i in range(sight.targets.shape[0]):
        target = sight.targets[i]
        if target != 0.0:
            step = np.sign(target) * stepped(0.0, target, opinion[i], square, softness)
            for j in range(n_features):
                memory.guard[j, i] += step * sight.raw_unit[j]


@shared
def learn_row(memory: BankFacts, sight: BankSight, settings: FactNumbers) -> None:
    """Store an example, let every kernel step on the violated facts about it, and replay what that upset."""
    facts, numbers = settings.facts, settings.kernel
    plan = numbers.plan
    # Before the store makes room, which changes opinions: the reference was asked with those the guess was made from.
    for k in range(memory.productive.shape[0]):
        if teaches(sight, k):
            memory.productive[k] += 1
            if k < plan.shape[0]:
                memory.losses[k] += _LESSON
            else:
                teach_guard(memory, sight, facts.softness)
    for k in range(plan.shape[0]):
        if plan[k, LINEAR]:
            liken(memory, sight, k, numbers)
    place = store(memory, plan, sight)
    # A step costs one pass over the store: while it is small, more of them fit into the same work.
    times = facts.replays * facts.budget / memory.counts[SIZE]
    for k in range(plan.shape[0]):
        for i in range(sight.targets.shape[0]):
            if lack(sight.targets[i], memory.scores[k, i, place]) > 0.0:
                step_on(memory, plan, k, i, place, facts.softness, sight.similarities[k])
                # Replays make opinions better, so they go where opinions count.
                replay(memory, plan, k, i, int(times * memory.trust[k]), facts, sight.line, sight.squares)


@inlined
def count_row(memory: BankFacts, sight: BankSight, _settings: FactNumbers) -> None:
    """Take the row into the statistics of the columns, and say if a new scale is due."""
    kind = sight.kind[0]
    memory.seen[kind] += 1
    for j in range(memory.rows.shape[0]):
        count_entry(memory, kind, j, sight.raw[j])
    if scale_is_due(memory, kind):
        memory.counts[DUE] = 1 + kind


hear_row = shared(hearing(ask_all, judge, learn_row, forget, count_row))
