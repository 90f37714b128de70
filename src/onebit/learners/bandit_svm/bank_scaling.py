"""What changes in a bank when its columns get a new scale: every stored example is looked at again.

Compiled, and by the same functions that looked at it the first time: a matrix product would be as fast, but its last
bits depend on the number of threads, and so would every guess after it.
"""

import numpy as np

from onebit.compiled import frugal, inlined
from onebit.inputs import Integers
from onebit.learners.bandit_svm.bank_facts import BankFacts, BankSight
from onebit.learners.bandit_svm.bank_plan import CODE, IN_PYTHON, LINEAR, BankNumbers, compare
from onebit.learners.bandit_svm.bank_steps import replay, similarity_row, write_similarities
from onebit.learners.bandit_svm.bank_vote import add_up, multiply_weights, scale_row, take_direction
from onebit.learners.bandit_svm.facts import SIZE, FactNumbers
from onebit.learners.bandit_svm.rows import DENSE, change_scale

# Steps for each class of each kernel.
_STEPS = 100


@inlined
def add_to_weights(memory: BankFacts, plan: Integers, sign: float) -> None:
    """Add to the linear kernel's weights what its stored examples are worth, or take it off."""
    for k in range(plan.shape[0]):
        if plan[k, LINEAR]:
            for j in range(memory.weights.shape[0]):
                for s in range(memory.counts[SIZE]):
                    for i in range(memory.weights.shape[1]):
                        memory.weights[j, i] += sign * memory.units[j, s] * memory.coefficients[k, s, i]


@inlined
def look_again(memory: BankFacts, sight: BankSight, s: int) -> None:
    """Write what the kernels see of a stored example."""
    sight.kind[0] = memory.kinds[s]
    for j in range(memory.rows.shape[0]):
        sight.raw[j] = memory.rows[j, s]
    scale_row(memory, sight)
    take_direction(sight)


@inlined
def compare_with_earlier(memory: BankFacts, sight: BankSight, s: int, numbers: BankNumbers) -> None:
    """Keep the similarities of example s, which is in `sight`, with those before it."""
    memory.counts[SIZE] = s
    for b in range(sight.compared.shape[0]):
        sight.compared[b] = numbers.forms[b, CODE] == IN_PYTHON
        compare(memory, s, sight, b, numbers)
    write_similarities(memory, sight, s)


@frugal
def see_again(memory: BankFacts, sight: BankSight, kind: int, numbers: BankNumbers) -> None:
    """Put the scale of the rows so far in force, and store all examples once more, one after the other."""
    size = memory.counts[SIZE]
    # What belongs to no stored example means the same hyperplanes as before.
    add_to_weights(memory, numbers.plan, -1.0)
    change_scale(memory.scales[kind], memory.statistics[kind], float(memory.seen[kind]), kind == DENSE, memory.weights)
    for s in range(size):
        look_again(memory, sight, s)
        memory.lengths[s] = sight.length[0]
        for j in range(memory.units.shape[0]):
            memory.units[j, s] = sight.unit[j]
            memory.features[j, s] = sight.features[0, j]
        compare_with_earlier(memory, sight, s, numbers)
    memory.counts[SIZE] = size
    add_to_weights(memory, numbers.plan, 1.0)


@frugal
def compare_all(memory: BankFacts, sight: BankSight, numbers: BankNumbers) -> None:
    """Write the similarities of all stored examples."""
    size = memory.counts[SIZE]
    for s in range(size):
        sight.length[0], sight.is_multiplied[0] = memory.lengths[s], 0
        for j in range(memory.units.shape[0]):
            sight.unit[j] = memory.units[j, s]
            sight.features[0, j] = memory.features[j, s]
        compare_with_earlier(memory, sight, s, numbers)
    memory.counts[SIZE] = size


@frugal
def score_again(memory: BankFacts, sight: BankSight, settings: FactNumbers) -> bool:
    """Write every kernel's scores of all stored examples; return whether all are numbers."""
    plan, line, scores = settings.kernel.plan, sight.line, sight.scores
    are_finite = True
    for k in range(plan.shape[0]):
        for s in range(memory.counts[SIZE]):
            if plan[k, LINEAR]:
                for j in range(sight.unit.shape[0]):
                    sight.unit[j] = memory.units[j, s]
                multiply_weights(memory.weights, sight.unit, scores)
            else:
                similarity_row(memory, plan, k, s, line)
                add_up(memory.coefficients[k], line, memory.counts[SIZE], scores)
            for i in range(scores.shape[0]):
                memory.scores[k, i, s] = scores[i]
                are_finite = are_finite and np.isfinite(scores[i])
    return are_finite


@frugal
def replay_all(memory: BankFacts, sight: BankSight, settings: FactNumbers) -> None:
    """Take in what the new scale changed."""
    for k in range(settings.kernel.plan.shape[0]):
        for i in range(memory.targets.shape[0]):
            replay(memory, settings.kernel.plan, k, i, _STEPS, settings.facts, sight.line, sight.squares)
