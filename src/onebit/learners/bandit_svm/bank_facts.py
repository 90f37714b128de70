"""What a bank of kernels learned: one store of facts, and every kernel's separators over it.

Similarities of all stored examples are kept for every kernel that needs its own (powers of one are had by squaring),
and so are their scores, so a step on one fact costs one pass over one row. When the budget is full, the example with
the smallest coefficients makes room, and every fourth time the next one in turn: noise has large coefficients and would
stay for ever. What goes is projected onto the example most like it (Orabona, Keshet, Caputo 2009); of the linear kernel
nothing goes, since its weights are kept as they are.
"""

import math
from typing import NamedTuple

import numpy as np

from onebit.compiled import frugal, inlined
from onebit.inputs import Floats, Integers
from onebit.learners.bandit_svm.bank_plan import (
    BASE,
    LINEAR,
    SQUARINGS,
    Bank,
    BankNumbers,
    compare,
    squared_often,
    write_powers,
)
from onebit.learners.bandit_svm.drift import new_watch
from onebit.learners.bandit_svm.facts import (
    SIZE,
    FactNumbers,
    Settings,
    Signs,
    change_of_support,
    is_productive,
    is_worth_storing,
    stepped,
)
from onebit.lengths import shorten
from onebit.loop import highest
from onebit.rounds import Answer
from onebit.scaling import new_scale, new_statistics

REMOVED, DUE = 1, 2  # behind SIZE in `counts`
_FIRST_CAPACITY = 16
# One removal in four goes in turn: enough to wash noise out, too few to lose what is needed.
_TURNOVER = 4
# What a productive fact counts beside a wrong opinion: among kernels that are wrong alike, trust the one that fits.
_LESSON = 0.03


class BankFacts(NamedTuple):
    """What was learned: one place per stored example."""

    rows: Floats
    """The examples as they came, one column each (d × capacity); empty if nothing is scaled."""
    features: Floats
    """The examples as the kernels see them, scaled and with the constant (D × capacity)."""
    units: Floats
    """The same, divided by their length: a round's products are added up feature by feature."""
    lengths: Floats
    kinds: Signs
    """Whether an example came as a dense row (0) or as a sparse one (1)."""
    grams: Floats
    """The similarities of the stored examples, for every base (bases × capacity × capacity)."""
    signs: Signs
    """What is proved (K × capacity)."""
    dues: Floats
    """The margins that are due for it."""
    alphas: Floats
    """The dual coefficients, never negative (m × K × capacity)."""
    coefficients: Floats
    """What each class gained of each example: sign times alpha, and what it took over (m × capacity × K)."""
    scores: Floats
    """Every class's score of each example (m × K × capacity)."""
    totals: Floats
    """The sum of each class's alphas (m × K)."""
    supports: Integers
    """How many of them are above 0."""
    weight: Floats
    """The sum of all squared coefficients of an example."""
    weights: Floats
    """The linear kernel's separators, with what removed examples left in them (D × K); empty without that kernel."""
    guard: Floats
    """The weights of linear separators on rows as they came, which have no vote but can be the reference (d × K): a
    scale that changes cannot touch their guarantee. Empty unless columns are scaled and guesses guarded."""
    losses: Floats
    """How often each kernel's own opinion was proved wrong, and a little for each productive fact."""
    trust: Floats
    """What each kernel's opinion counts in the vote: exp(−losses), the best one's being 1."""
    productive: Integers
    """How many stored examples had a productive fact for each kernel, and then for the guard if there is one."""
    right: Integers
    """How often each class was guessed, and it was right."""
    wrong: Integers
    tally: Integers
    counts: Integers
    """How many examples are stored, how many were removed, and which scale is due: 1 + the kind of rows, or 0."""
    watch: Floats
    """How the guesses went, for `is_outdated`."""
    statistics: Floats
    """Of the columns, for dense and for sparse rows (2 × 4 × d); empty if nothing is scaled."""
    scales: Floats
    """How columns are scaled, for dense and for sparse rows (2 × 3 × d)."""
    seen: Integers
    """How many dense and how many sparse rows were heard."""


class BankSight(NamedTuple):
    """What is known about one round."""

    scores: Floats
    """The vote."""
    opinions: Floats
    """Every kernel's scores, then the guard's if there is one (m or m + 1 × K), as far as it was asked."""
    asked: Signs
    """Who was."""
    reference: Integers
    """The kernel with the fewest productive facts, the only entry."""
    follow: Signs
    """Whether to follow it where it disputes the vote, the only entry."""
    denied: Signs
    """Whether the vote holds every label to be wrong, the only entry."""
    signs: Signs
    """What the answer proves."""
    dues: Floats
    raw: Floats
    """The row as it came; empty if nothing is scaled."""
    raw_unit: Floats
    kind: Signs
    """Whether it came dense (0) or sparse (1), the only entry."""
    features: Floats
    """The row, scaled, with the constant (1 × D)."""
    unit: Floats
    length: Floats
    products: Floats
    """Of the unit row with the stored ones."""
    is_multiplied: Signs
    """Whether they are written, the only entry."""
    bases: Floats
    """The similarities with every stored example, for every base."""
    compared: Signs
    """Which of them are written."""
    similarities: Floats
    """The same for every kernel that was asked (m × capacity)."""
    itself: Floats
    """k(x, x) for every base, then for every kernel (2 × m)."""
    squares: Floats
    """Room for one number per stored example."""
    line: Floats
    """Room for one row of similarities."""
    other_line: Floats
    chances: Floats


def new_bank_facts(bank: Bank, settings: Settings, n_features: int, n_classes: int) -> BankFacts:
    """Return an empty memory."""
    m, n, width = len(bank.kernels), min(settings.budget, _FIRST_CAPACITY), n_features + settings.scales
    n_scaled = n_features if settings.scales else 0
    has_guard = settings.scales and settings.guarded
    return BankFacts(
        rows=np.zeros((n_scaled, n)),
        features=np.zeros((width, n)),
        units=np.zeros((width, n)),
        lengths=np.zeros(n),
        kinds=np.zeros(n, np.int8),
        grams=np.zeros((len(bank.bases), n, n)),
        signs=np.zeros((n_classes, n), np.int8),
        dues=np.zeros((n_classes, n)),
        alphas=np.zeros((m, n_classes, n)),
        coefficients=np.zeros((m, n, n_classes)),
        scores=np.zeros((m, n_classes, n)),
        totals=np.zeros((m, n_classes)),
        supports=np.zeros((m, n_classes), np.int64),
        weight=np.zeros(n),
        weights=np.zeros((width if bank.numbers.plan[:, LINEAR].any() else 0, n_classes)),
        guard=np.zeros((n_features if has_guard else 0, n_classes)),
        losses=np.zeros(m),
        trust=np.ones(m),
        productive=np.zeros(m + has_guard, np.int64),
        right=np.zeros(n_classes, np.int64),
        wrong=np.zeros(n_classes, np.int64),
        tally=np.zeros(2, np.int64),
        counts=np.zeros(3, np.int64),
        watch=new_watch(),
        statistics=np.stack([new_statistics(n_scaled), new_statistics(n_scaled)]),
        scales=np.stack([new_scale(n_scaled), new_scale(n_scaled)]),
        seen=np.zeros(2, np.int64),
    )


def new_bank_sight(memory: BankFacts) -> BankSight:
    """Return scratch paper."""
    (m, n_classes), n, width = memory.totals.shape, len(memory.lengths), len(memory.units)
    n_judges = len(memory.productive)
    return BankSight(
        scores=np.empty(n_classes),
        opinions=np.empty((n_judges, n_classes)),
        asked=np.zeros(n_judges, np.int8),
        reference=np.zeros(1, np.int64),
        follow=np.zeros(1, np.int8),
        denied=np.zeros(1, np.int8),
        signs=np.empty(n_classes, np.int8),
        dues=np.empty(n_classes),
        raw=np.empty(len(memory.rows)),
        raw_unit=np.empty(len(memory.rows)),
        kind=np.zeros(1, np.int8),
        features=np.empty((1, width)),
        unit=np.empty(width),
        length=np.empty(1),
        products=np.zeros(n),
        is_multiplied=np.zeros(1, np.int8),
        bases=np.zeros((len(memory.grams), n)),
        compared=np.zeros(len(memory.grams), np.int8),
        similarities=np.zeros((m, n)),
        itself=np.zeros((2, m)),
        squares=np.zeros(n),
        line=np.zeros(n),
        other_line=np.zeros(n),
        chances=np.empty(n_classes),
    )


# What the kernels say.


@inlined
def multiply_weights(weights: Floats, unit: Floats, out: Floats) -> None:
    """Write every class's score of a unit row."""
    for i in range(out.shape[0]):
        out[i] = 0.0
    for j in range(unit.shape[0]):
        entry = unit[j]
        for i in range(out.shape[0]):
            out[i] += entry * weights[j, i]


@frugal
def add_up(coefficients: Floats, similarities: Floats, size: int, out: Floats) -> None:
    """Write every class's score of an example with those similarities."""
    for i in range(out.shape[0]):
        out[i] = 0.0
    for s in range(size):
        for i in range(out.shape[0]):
            out[i] += similarities[s] * coefficients[s, i]


@inlined
def liken(memory: BankFacts, sight: BankSight, k: int, numbers: BankNumbers) -> None:
    """Write kernel k's similarities of the row in `sight` with all stored ones, and with itself."""
    base, times, size = numbers.plan[k, BASE], numbers.plan[k, SQUARINGS], memory.counts[SIZE]
    compare(memory, size, sight, base, numbers)
    write_powers(sight.bases[base], size, times, sight.similarities[k])
    sight.itself[1, k] = squared_often(sight.itself[0, base], times)


@frugal
def ask(memory: BankFacts, sight: BankSight, k: int, numbers: BankNumbers) -> None:
    """Write kernel k's opinion of the row in `sight`, or the guard's."""
    sight.asked[k] = 1
    if k == numbers.plan.shape[0]:
        for j in range(sight.raw.shape[0]):
            sight.raw_unit[j] = sight.raw[j]
        shorten(sight.raw_unit, sight.raw_unit.shape[0])
        multiply_weights(memory.guard, sight.raw_unit, sight.opinions[k])
    elif numbers.plan[k, LINEAR]:
        multiply_weights(memory.weights, sight.unit, sight.opinions[k])
        sight.itself[1, k] = 1.0 if sight.length[0] > 0.0 else 0.0
    else:
        liken(memory, sight, k, numbers)
        add_up(memory.coefficients[k], sight.similarities[k], memory.counts[SIZE], sight.opinions[k])


@frugal
def ask_all(memory: BankFacts, sight: BankSight, settings: FactNumbers) -> None:
    """Write the opinions of all kernels that were not asked yet."""
    for k in range(sight.asked.shape[0]):
        if not sight.asked[k]:
            ask(memory, sight, k, settings.kernel)


# Steps.


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
    old, sign = memory.alphas[k, i, s], memory.signs[i, s]
    new = stepped(old, sign, memory.dues[i, s], memory.scores[k, i, s], line[s], softness)
    memory.alphas[k, i, s] = new
    memory.totals[k, i] += new - old
    memory.supports[k, i] += change_of_support(old, new)
    gain(memory, plan[k, LINEAR], k, i, s, sign * (new - old), line)


@frugal
def worst_fact(
    signs: Signs, dues: Floats, alphas: Floats, scores: Floats, size: int, softness: float, tolerance: float
) -> int:
    """Return a class's fact whose dual slope is steepest, or −1 if none is beyond the tolerance."""
    worst, steepest = -1, tolerance  # the steepest first: the fewest steps to the optimum
    for s in range(size):
        slope = dues[s] - signs[s] * scores[s] - alphas[s] * softness
        if signs[s] != 0 and ((slope > steepest) or (-slope > steepest and alphas[s] > 0.0)):
            worst, steepest = s, abs(slope)
    return worst


@frugal
def replay(memory: BankFacts, plan: Integers, k: int, i: int, times: int, settings: Settings, line: Floats) -> None:
    """Let class i of kernel k take up to that many steps, the steepest first."""
    signs, dues, alphas, scores = memory.signs[i], memory.dues[i], memory.alphas[k, i], memory.scores[k, i]
    size = memory.counts[SIZE]
    for _ in range(times):
        worst = worst_fact(signs, dues, alphas, scores, size, settings.softness, settings.tolerance)
        if worst < 0:
            break
        if plan[k, SQUARINGS]:
            similarity_row(memory, plan, k, worst, line)
            step_on(memory, plan, k, i, worst, settings.softness, line)
        else:
            step_on(memory, plan, k, i, worst, settings.softness, memory.grams[plan[k, BASE], worst])


# The store.


@frugal
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
        for i in range(memory.signs.shape[0]):
            memory.totals[k, i] -= memory.alphas[k, i, place]
            memory.supports[k, i] += change_of_support(memory.alphas[k, i, place], 0.0)
            memory.coefficients[k, place, i] = memory.alphas[k, i, place] = 0.0
    return place


@frugal
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
                memory.alphas[k, i, heir] = max(0.0, old + memory.signs[i, heir] * inherited)
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


@frugal
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
    memory.lengths[place], memory.weight[place] = sight.length[0], 0.0
    write_similarities(memory, sight, place)
    for k in range(plan.shape[0]):
        sight.similarities[k, place] = sight.itself[1, k]
        for i in range(sight.signs.shape[0]):
            memory.scores[k, i, place] = sight.opinions[k, i]
            memory.alphas[k, i, place] = memory.coefficients[k, place, i] = 0.0
    for i in range(sight.signs.shape[0]):
        memory.signs[i, place], memory.dues[i, place] = sight.signs[i], sight.dues[i]
    return place


# What an answer changes.


@inlined
def highest_sign(signs: Signs) -> int:
    """Return the class that is proved to be the right one, or −1."""
    known = -1
    for i in range(signs.shape[0]):
        if signs[i] > 0:
            known = i
    return known


@inlined
def teaches(sight: BankSight, k: int) -> bool:
    """Say whether a proved fact is productive for kernel k."""
    found = False
    for i in range(sight.signs.shape[0]):
        sign = sight.signs[i]
        found = found or (sign != 0 and is_productive(sign, sight.opinions[k, i], sight.dues[i]))
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
    known = highest_sign(sight.signs)
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


@frugal
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
    for i in range(sight.signs.shape[0]):
        sign = sight.signs[i]
        if sign != 0:
            step = sign * stepped(0.0, sign, sight.dues[i], opinion[i], square, softness)
            for j in range(n_features):
                memory.guard[j, i] += step * sight.raw_unit[j]


@frugal
def learn_from_sight(memory: BankFacts, sight: BankSight, settings: FactNumbers) -> int:
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
        for i in range(sight.signs.shape[0]):
            sign = sight.signs[i]
            if sign != 0 and sign * memory.scores[k, i, place] < sight.dues[i]:
                step_on(memory, plan, k, i, place, facts.softness, sight.similarities[k])
                # Replays make opinions better, so they go where opinions count.
                replay(memory, plan, k, i, int(times * memory.trust[k]), facts, sight.line)
    return place
