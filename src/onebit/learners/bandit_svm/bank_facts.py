"""What a bank of kernels learned, and what it knows about one round: the arrays, and what each of them holds."""

from typing import NamedTuple

import numpy as np

from onebit.inputs import Floats, Integers
from onebit.learners.bandit_svm.bank_plan import LINEAR, Bank
from onebit.learners.bandit_svm.drift import new_watch
from onebit.learners.bandit_svm.facts import Settings, Signs
from onebit.scaling import new_scale, new_statistics

REMOVED, DUE = 1, 2  # behind SIZE in `counts`
_FIRST_CAPACITY = 16


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
    targets: Floats
    """What is proved, as the scores that are due (K × capacity)."""
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
    """How columns are scaled, for dense and for sparse rows (2 × 4 × d)."""
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
    targets: Floats
    """What the answer proves."""
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
        targets=np.zeros((n_classes, n)),
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
        targets=np.empty(n_classes),
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
