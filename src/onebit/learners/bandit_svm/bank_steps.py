"""How a bank learns: steps on facts, over one store that all kernels share.

Similarities of all stored examples are kept for every kernel that needs its own (powers of one are had by squaring),
and so are their scores, so a step on one fact costs one pass over one row. When the budget is full, the example with
the smallest coefficients makes room, and every fourth time the next one in turn: noise has large coefficients and would
stay for ever. What goes is projected onto the example most like it (Orabona, Keshet, Caputo 2009); of the linear kernel
nothing goes, since its weights are kept as they are.
"""

import numpy as np

from onebit.compiled import inlined, shared
from onebit.inputs import Floats, Integers
from onebit.learners.bandit_svm.bank_facts import REMOVED, BankFacts, BankSight
from onebit.learners.bandit_svm.bank_plan import BASE, LINEAR, SQUARINGS, write_powers
from onebit.learners.bandit_svm.facts import SIZE, Settings, change_of_support, lack, stepped

# One removal in four goes in turn: enough to wash noise out, too few to lose what is needed.
_TURNOVER = 4
# How many slopes are looked through at once.
_BLOCK = 256


@inlined
def similarity_row(memory: BankFacts, plan: Integers, k: int, s: int, out: Floats) -> None:
    """Write kernel k's similarities of example s with all stored ones."""
    write_powers(memory.grams[plan[k, BASE], s], memory.counts[SIZE], plan[k, SQUARINGS], out)


@inlined
def gain(memory: BankFacts, is_linear: int, k: int, i: int, s: int, amount: float, line: Floats) -> None:
    """Let class i of kernel k gain that much of example s, given its similarities with all stored ones."""
    scores, before = memory.scores[k, i], memory.coefficients[k, s, i]
    memory.coefficients[k, s, i] = before + amount
    memory.weight[s] += amount * (2.0 * before + amount)
    for r in range(memory.counts[SIZE]):
        scores[r] += amount * line[r]
    if is_linear:
        for j in range(memory.weights.shape[0]):
            memory.weights[j, i] += amount * memory.units[j, s]


@inlined
def step_on(memory: BankFacts, plan: Integers, k: int, i: int, s: int, softness: float, line: Floats) -> None:
    """Take kernel k's step on the fact about class i and example s, given its similarities with all stored ones."""
    old, target = memory.alphas[k, i, s], memory.targets[i, s]
    new = stepped(old, target, memory.scores[k, i, s], line[s], softness)
    memory.alphas[k, i, s] = new
    memory.totals[k, i] += new - old
    memory.supports[k, i] += change_of_support(old, new)
    gain(memory, plan[k, LINEAR], k, i, s, np.sign(target) * (new - old), line)


@shared
def worst_fact(targets: Floats, alphas: Floats, scores: Floats, size: int, settings: Settings, slopes: Floats) -> int:
    """Return a class's fact whose dual slope is steepest, or −1 if none is beyond the tolerance."""
    for s in range(size):
        slope = lack(targets[s], scores[s]) - alphas[s] * settings.softness
        slopes[s] = max(slope, -slope * (alphas[s] > 0.0))  # a coefficient of 0 cannot become smaller
    # Numbers that are not negative are ordered as their bits are, and the compiler vectorises the search for the
    # largest integer, though not for the largest float. Where it is matters only in the block that has it.
    bits = slopes.view(np.int64)
    steepest, first = 0, 0
    for start in range(0, size, _BLOCK):
        block, top = bits[start : min(start + _BLOCK, size)], 0
        for r in range(block.shape[0]):
            top = max(top, block[r])
        if top > steepest:
            steepest, first = top, start
    for s in range(first, min(first + _BLOCK, size)):
        if bits[s] == steepest and slopes[s] > settings.tolerance:
            return s
    return -1


@shared
def replay(
    memory: BankFacts, plan: Integers, k: int, i: int, times: int, settings: Settings, line: Floats, slopes: Floats
) -> None:
    """Let class i of kernel k take up to that many steps, the steepest first: the fewest to the optimum."""
    targets, alphas, scores = memory.targets[i], memory.alphas[k, i], memory.scores[k, i]
    for _ in range(times):
        worst = worst_fact(targets, alphas, scores, memory.counts[SIZE], settings, slopes)
        if worst < 0:
            break
        if plan[k, SQUARINGS]:
            similarity_row(memory, plan, k, worst, line)
            step_on(memory, plan, k, i, worst, settings.softness, line)
        else:
            step_on(memory, plan, k, i, worst, settings.softness, memory.grams[plan[k, BASE], worst])


# The store.


@shared
def make_place(memory: BankFacts, plan: Integers, sight: BankSight) -> int:
    """Free the place of the example with the smallest coefficients, or of the next in turn."""
    size = memory.counts[SIZE]
    place = 0
    for s in range(1, size):
        if memory.weight[s] < memory.weight[place]:
            place = s
    removed = memory.counts[REMOVED]  # counts removals, so that turns go on across calls
    memory.counts[REMOVED] = removed + 1
    if removed % _TURNOVER == 0:
        place = removed // _TURNOVER % size
    for k in range(plan.shape[0]):
        if not plan[k, LINEAR]:
            hand_over(memory, plan, k, place, sight)
        for i in range(memory.targets.shape[0]):
            memory.totals[k, i] -= memory.alphas[k, i, place]
            memory.supports[k, i] += change_of_support(memory.alphas[k, i, place], 0.0)
            memory.coefficients[k, place, i] = memory.alphas[k, i, place] = 0.0
    return place


@shared
def hand_over(memory: BankFacts, plan: Integers, k: int, place: int, sight: BankSight) -> None:
    """Project what a kernel learned from an example that goes onto the example most like it."""
    size, similarities, opinion = memory.counts[SIZE], sight.similarities[k], sight.opinions[k]
    own, others = sight.line, sight.other_line
    similarity_row(memory, plan, k, place, own)
    heir = -1
    for s in range(size):
        if s != place and (heir < 0 or own[s] > own[heir]):
            heir = s
    ratio = 0.0
    if heir >= 0:
        similarity_row(memory, plan, k, heir, others)
        # The projection of k(x, ·) onto k(heir, ·): the least that is lost by one example's going.
        ratio = own[heir] / others[heir] if others[heir] > 0.0 else 0.0
    for i in range(opinion.shape[0]):
        share, scores = memory.coefficients[k, place, i], memory.scores[k, i]
        if share != 0.0:
            inherited = share * ratio
            for r in range(size):
                scores[r] -= share * own[r]
            opinion[i] -= share * similarities[place]
            if inherited != 0.0:
                gain(memory, 0, k, i, heir, inherited, others)
                opinion[i] += inherited * similarities[heir]
                old = memory.alphas[k, i, heir]
                # An inherited share counts as the heir's own only where it has the heir's sign.
                memory.alphas[k, i, heir] = max(0.0, old + np.sign(memory.targets[i, heir]) * inherited)
                memory.totals[k, i] += memory.alphas[k, i, heir] - old
                memory.supports[k, i] += change_of_support(old, memory.alphas[k, i, heir])


@inlined
def write_similarities(memory: BankFacts, sight: BankSight, place: int) -> None:
    """Keep the similarities of the row in `sight`, which is stored at that place."""
    for b in range(memory.grams.shape[0]):
        gram, similarities = memory.grams[b], sight.bases[b]
        for s in range(memory.counts[SIZE]):
            gram[place, s] = gram[s, place] = similarities[s]
        gram[place, place] = sight.itself[0, b]


@shared
def store(memory: BankFacts, plan: Integers, sight: BankSight) -> int:
    """Store the round's row with what is proved of it, and return its place."""
    place = int(memory.counts[SIZE])
    if place == memory.lengths.shape[0]:
        place = make_place(memory, plan, sight)
    else:
        memory.counts[SIZE] = place + 1
    for j in range(memory.units.shape[0]):
        memory.units[j, place] = sight.unit[j]
        memory.features[j, place] = sight.features[0, j]
    for j in range(memory.rows.shape[0]):  # as it came, to be scaled anew
        memory.rows[j, place] = sight.raw[j]
    memory.kinds[place] = sight.kind[0]
    memory.lengths[place], memory.weight[place] = sight.length[0], 0.0
    write_similarities(memory, sight, place)
    for k in range(plan.shape[0]):
        sight.similarities[k, place] = sight.itself[1, k]
        for i in range(sight.targets.shape[0]):
            memory.scores[k, i, place] = sight.opinions[k, i]
            memory.alphas[k, i, place] = memory.coefficients[k, place, i] = 0.0
    for i in range(sight.targets.shape[0]):
        memory.targets[i, place] = sight.targets[i]
    return place
