"""Algorithms 1 and 2 of the paper: K perceptrons with bandit feedback, linear or with a kernel."""

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from onebit.bounds import BOUNDS, Claim
from onebit.engine.jit import jit_inline
from onebit.engine.loop import clear, highest
from onebit.engine.randomness import Draw, uniform, uniform_label
from onebit.engine.state import Scratch, State
from onebit.game import Answer
from onebit.inputs import Floats, check_choice
from onebit.kernels import Gaussian, Rational
from onebit.learners.base import Learner
from onebit.spaces import Rule, space_for


@dataclass(eq=False, repr=False)
class BanditPerceptron(Learner):
    """One perceptron per class; a class claims x when its score is at least 0.

    If no class claims x, a label is drawn uniformly, and if it proves right its class gains x. Otherwise one of the
    claiming classes is guessed, and if it proves wrong it loses x. With ``kernel=None`` this is Algorithm 1, with a
    kernel Algorithm 2.

    Parameters
    ----------
    kernel : None, Kernel or callable
        None for the linear space; `onebit.kernels.Rational` for the paper's weakly separable case.
    ties : {"highest", "first", "random"}
        Which claiming class is guessed: the one with the highest score, the first, or one drawn uniformly. The
        guarantee covers all three; "highest" makes the fewest mistakes in practice.
    update : {"printed", "authors"}
        "printed" is the algorithm as published. "authors" is what the authors' program does: after any right guess
        every other claiming class also loses x, and the guessed class gains x if its score is not above 0. It always
        guesses the highest score.

    Notes
    -----
    Guarantee: If the examples are strongly separable with margin γ within radius R (in the kernel's space, R² = max
    k(x, x)), the number of updates is at most ⌊4(R/γ)²⌋, always, and the expected number of mistakes at most
    (K−1)⌊4(R/γ)²⌋ if every answer comes before the next guess (Theorems 2 and 4). Where several labels may be right,
    both hold for what is played (docs/theory/bandit-svm.md).

    Examples
    --------
    >>> learner = BanditPerceptron(classes=["billing", "delivery"], seed=1)
    >>> guess = learner.guess([0.2, -0.4])
    >>> guess.label
    'billing'
    >>> learner.tell(guess, correct=False)
    >>> learner.weights_
    array([[-0.2,  0.4],
           [ 0. ,  0. ]])

    References
    ----------
    Beygelzimer, Pál, Szörényi, Thiruvenkatachari, Wei, Zhang (2019). Bandit multiclass linear classification: efficient
    algorithms for the separable case. ICML. Algorithms 1 and 2, Theorems 2 and 4.
    """

    kernel: Any = None
    _: KW_ONLY
    ties: str = "highest"
    update: str = "printed"

    def _new_state(self) -> State:
        rule = _RULES.get((str(self.ties), str(self.update)))
        if rule is None:
            check_choice("ties", self.ties, ("highest", "first", "random"))
            check_choice("update", self.update, ("printed", "authors"))
            raise ValueError(f'update="authors" always guesses the highest score; got ties={self.ties!r}')
        return space_for(self.kernel, rule, (), self.n_features_in_, len(self.classes_))

    def promise(self, *, n_classes: int, n_features: int, radius: float, margin: float) -> tuple[Claim, ...]:
        """Return Theorem 2 (Theorem 4 with a kernel) and the bound on updates from its proof."""
        theorems = "2-updates", "2" if self.kernel is None else "4"
        return tuple(BOUNDS[name].claim(n_classes=n_classes, radius=radius, margin=margin) for name in theorems)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        for ties, update in _RULES:
            yield cls(ties=ties, update=update)
        yield cls(Rational(normalize=True))
        yield cls(Rational(normalize=True), update="authors")
        yield cls(Gaussian(width=0.7), ties="random")


@jit_inline
def _highest_claim(scores: Floats) -> int:
    best = highest(scores)
    return best if scores[best] >= 0.0 else -1


@jit_inline
def _first_claim(scores: Floats) -> int:
    for i in range(scores.shape[0]):
        if scores[i] >= 0.0:
            return i
    return -1


def _sure(find_claim: Callable[[Floats], int]) -> tuple[Any, Any]:
    """Return how to guess the one claim that is found, with its probabilities."""

    def guess(scores: Floats, draw: Draw, _settings: Any) -> tuple[int, bool]:
        claim = find_claim(scores)
        if claim >= 0:  # line 14 of Algorithm 1: some label of S
            return claim, False
        return uniform_label(uniform(draw), scores.shape[0]), True  # line 6: S is empty

    def probabilities(scores: Floats, _settings: Any, out: Floats) -> None:
        claim = find_claim(scores)
        for i in range(out.shape[0]):
            out[i] = 0.0 if claim >= 0 else 1.0 / out.shape[0]
        if claim >= 0:
            out[claim] = 1.0

    return jit_inline(guess), jit_inline(probabilities)


@jit_inline
def _n_claims(scores: Floats) -> int:
    n = 0
    for i in range(scores.shape[0]):
        n += scores[i] >= 0.0
    return n


@jit_inline
def _guess_random(scores: Floats, draw: Draw, _settings: Any) -> tuple[int, bool]:
    number = uniform(draw)  # always one number per round
    n = _n_claims(scores)
    if n == 0:
        return uniform_label(number, scores.shape[0]), True
    left, label = uniform_label(number, n), -1
    for i in range(scores.shape[0]):
        if scores[i] >= 0.0 and left >= 0:
            label, left = i, left - 1
    return label, False


@jit_inline
def _probabilities_random(scores: Floats, _settings: Any, out: Floats) -> None:
    n = _n_claims(scores)
    for i in range(scores.shape[0]):
        if n == 0:
            out[i] = 1.0 / scores.shape[0]
        else:
            out[i] = 1.0 / n if scores[i] >= 0.0 else 0.0


@jit_inline
def _learn_printed(answer: Answer, scratch: Scratch, _settings: Any) -> bool:
    label, correct = answer.label, answer.correct
    # Lines 12 and 18 of Algorithm 1: a right draw gains x, a wrong claim loses it.
    if answer.explored != correct:
        return False
    # With immediate feedback the condition always holds; with late feedback the step may no longer be due.
    if correct == (scratch.current[label] < 0.0):
        clear(scratch.gains)
        scratch.gains[label] = 1.0 if correct else -1.0
        return True
    return False


@jit_inline
def _learn_authors(answer: Answer, scratch: Scratch, _settings: Any) -> bool:
    # Not the printed algorithm: what the authors' program does (docs/experiments/paper.md).
    label, current, gains, changed = answer.label, scratch.current, scratch.gains, False
    clear(gains)
    if answer.correct:
        for i in range(current.shape[0]):
            if i == label and current[i] <= 0.0:
                gains[i] = 1.0
                changed = True
            elif i != label and current[i] >= 0.0:
                gains[i] = -1.0
                changed = True
    elif current[label] >= 0.0:
        gains[label] = -1.0
        changed = True
    return changed


@jit_inline
def _learn_facts(answer: Answer, scratch: Scratch, _settings: Any) -> bool:
    # Each class is a perceptron, whose bound holds for any true examples: every class proved wrong takes a step. That a
    # label is right proves that all others are wrong.
    current, gains, changed = scratch.current, scratch.gains, False
    for i in range(current.shape[0]):
        is_guess = i == answer.label
        is_proved = is_guess or answer.correct
        is_true = is_guess and answer.correct
        gains[i] = 0.0
        if is_proved and is_true == (current[i] < 0.0):
            gains[i] = 1.0 if is_true else -1.0
            changed = True
    return changed


_HIGHEST, _FIRST = _sure(_highest_claim), _sure(_first_claim)
HIGHEST = Rule(f"{__name__}:HIGHEST", *_HIGHEST, _learn_printed, _learn_facts)
FIRST = Rule(f"{__name__}:FIRST", *_FIRST, _learn_printed, _learn_facts)
RANDOM = Rule(f"{__name__}:RANDOM", _guess_random, _probabilities_random, _learn_printed, _learn_facts)
AUTHORS = Rule(f"{__name__}:AUTHORS", *_HIGHEST, _learn_authors, _learn_facts)
_RULES = {
    ("highest", "printed"): HIGHEST,
    ("first", "printed"): FIRST,
    ("random", "printed"): RANDOM,
    ("highest", "authors"): AUTHORS,
}
