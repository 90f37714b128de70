"""Perceptrons: Algorithms 1 to 3 of the paper, and the Banditron; each is a rule on scores, in every space."""

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

from onebit.bounds import BOUNDS, Claim
from onebit.engine.algorithm import clear, highest
from onebit.engine.jit import jit_inline
from onebit.engine.randomness import Draw, uniform, uniform_label
from onebit.engine.state import Scratch, State
from onebit.game import Answer
from onebit.inputs import Floats, check_choice, check_number
from onebit.kernels import Gaussian, Multinomial, Polynomial, Rational, as_kernel
from onebit.learners.base import Learner
from onebit.learners.exploring import fill_propensities, mostly_highest, n_allowed, propensity_of
from onebit.spaces.linear import LinearSpace
from onebit.spaces.rule import Rule, Space
from onebit.spaces.support_set import SupportSet


def space_for(learner: Any, rule: Rule, *settings: float) -> Space:
    """Return the empty space that a learner's `kernel` names; `settings` are the rule's numbers."""
    n_features, n_classes = learner.n_features_in_, len(learner.classes_)
    if learner.kernel is None:  # weights, not examples: time and memory do not grow with the rounds
        return LinearSpace(rule, settings, n_features, n_classes)
    return SupportSet(as_kernel(learner.kernel), rule, settings, n_features, n_classes)


@dataclass(eq=False, repr=False)
class BanditPerceptron(Learner):
    """One perceptron per class; a class claims x when its score is at least 0.

    If no class claims x, a label is drawn uniformly, and if it proves right its class gains x. Otherwise one of the
    claiming classes is guessed, and if it proves wrong it loses x. With ``kernel=None`` this is Algorithm 1, with a
    kernel Algorithm 2.

    Guarantee: If the examples are strongly separable with margin γ within radius R (in the kernel's space, R² = max
    k(x, x)), the number of updates is at most ⌊4(R/γ)²⌋, always, and the expected number of mistakes at most
    (K−1)⌊4(R/γ)²⌋ if every answer comes before the next guess (Theorems 2 and 4). Where several labels may be right,
    both hold for what is played (docs/theory/bandit-svm.md).

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
        return space_for(self, rule)

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
    # Lines 12 and 18 of Algorithm 1: a right draw gains x, a wrong claim loses it. With immediate feedback the second
    # condition never holds; with late feedback the step may no longer be due.
    if answer.explored != answer.correct or answer.correct != (scratch.current[answer.label] < 0.0):
        return False
    clear(scratch.gains)
    scratch.gains[answer.label] = 1.0 if answer.correct else -1.0
    return True


@jit_inline
def _learn_proved(answer: Answer, scratch: Scratch, gains_at_zero: bool) -> bool:
    """Let every class whose score contradicts what the answer proves take a step: after a right one the others too."""
    current, gains, changed = scratch.current, scratch.gains, False
    for i in range(current.shape[0]):
        is_guess, gains[i] = i == answer.label, 0.0
        if is_guess and answer.correct:
            gains[i] = 1.0 if current[i] < 0.0 or (gains_at_zero and current[i] == 0.0) else 0.0
        elif is_guess or answer.correct:
            gains[i] = -1.0 if current[i] >= 0.0 else 0.0
        changed = changed or gains[i] != 0.0
    return changed


@jit_inline
def _learn_authors(answer: Answer, scratch: Scratch, _settings: Any) -> bool:
    # Not the printed algorithm: what the authors' program does (docs/experiments/paper.md).
    return _learn_proved(answer, scratch, True)


@jit_inline
def _learn_facts(answer: Answer, scratch: Scratch, _settings: Any) -> bool:
    return _learn_proved(answer, scratch, False)


_BY_HIGHEST, _BY_FIRST = _sure(_highest_claim), _sure(_first_claim)
_HIGHEST = Rule(f"{__name__}:_HIGHEST", *_BY_HIGHEST, _learn_printed, _learn_facts)
_FIRST = Rule(f"{__name__}:_FIRST", *_BY_FIRST, _learn_printed, _learn_facts)
_RANDOM = Rule(f"{__name__}:_RANDOM", _guess_random, _probabilities_random, _learn_printed, _learn_facts)
_AUTHORS = Rule(f"{__name__}:_AUTHORS", *_BY_HIGHEST, _learn_authors, _learn_facts)
_RULES = {
    ("highest", "printed"): _HIGHEST,
    ("first", "printed"): _FIRST,
    ("random", "printed"): _RANDOM,
    ("highest", "authors"): _AUTHORS,
}


@dataclass(eq=False, repr=False)
class Banditron(Learner):
    """The multiclass perceptron with uniform exploration and importance weights.

    The label with the highest score loses x; if the label that was played is right, it gains x divided by the
    probability it had. With probability `exploration` the label played is drawn uniformly.

    Guarantee: O(√T) expected mistakes on T weakly separable rounds, with exploration of order 1/√T.

    Parameters
    ----------
    exploration : float
        How often a label is drawn uniformly: in (0, 1].
    kernel : None, Kernel or callable
        None for the linear space. With a kernel nearly every round stores an example (right guesses gain x·(1/p − 1)),
        so time grows with the square of the rounds.

    Examples
    --------
    >>> learner = Banditron(exploration=0.3, classes=3, seed=4)
    >>> learner.probabilities([1.0, 0.0]).round(3)
    array([0.8, 0.1, 0.1])

    References
    ----------
    Kakade, Shalev-Shwartz, Tewari (2008). Efficient bandit algorithms for online multiclass prediction. ICML.
    """

    exploration: float = 0.05
    kernel: Any = None
    _poor_score: ClassVar[bool] = True  # 79 to 91 %, depending on the draws; scikit-learn's check asks for 83 %

    def _new_state(self) -> State:
        return space_for(self, _BANDITRON, check_number("exploration", self.exploration, above=0.0, at_most=1.0))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(exploration=0.05)
        yield cls(exploration=1.0)
        yield cls(exploration=0.2, kernel=Polynomial(2))


@jit_inline
def _learn_banditron(answer: Answer, scratch: Scratch, settings: Any) -> bool:
    scores, gains, label = scratch.scores, scratch.gains, answer.label
    greedy = highest(scores) if answer.explored else label  # an unexplored guess was the greedy one
    for i in range(gains.shape[0]):
        gains[i] = -1.0 if i == greedy else 0.0
    if answer.correct:
        # Dividing by the propensity makes the step unbiased, however rarely the label is played.
        gains[label] += 1.0 / propensity_of(label == greedy, settings[0], n_allowed(scores))
    return True


@jit_inline
def _learn_logged(answer: Answer, scratch: Scratch, _settings: Any) -> bool:
    gains, greedy = scratch.gains, highest(scratch.current)
    for i in range(gains.shape[0]):
        gains[i] = -1.0 if i == greedy else 0.0
    if answer.correct:
        gains[answer.label] += 1.0 / answer.propensity
    return True


_BANDITRON = Rule(
    f"{__name__}:_BANDITRON",
    mostly_highest,
    fill_propensities,
    _learn_banditron,
    _learn_logged,
    divides_by_propensity=True,
)


@dataclass(eq=False, repr=False)
class MulticlassPerceptron(Learner):
    """The full-information floor: on a mistake the right class gains x and the guessed one, the highest, loses it.

    Its feedback is the label itself: ``tell(guess, correct, label=…)``. It shows what bandit feedback costs.

    Guarantee: At most ⌊2(R/γ)²⌋ mistakes, always, on examples that are weakly separable with margin γ within radius R
    (Theorem 10). With late feedback it bounds the updates: late feedback leads to an update only if the class that is
    highest by then is wrong.

    Parameters
    ----------
    kernel : None, Kernel or callable
        None for the linear space.

    Examples
    --------
    >>> learner = MulticlassPerceptron(classes=["left", "right"])
    >>> guess = learner.guess([1.0, 0.0])
    >>> learner.tell(guess, correct=False, label="right")
    >>> learner.guess([1.0, 0.0]).label
    'right'

    References
    ----------
    Crammer, Singer (2003). Ultraconservative online algorithms for multiclass problems. JMLR 3.
    Beygelzimer et al. (2019). ICML. Algorithm 3, Theorem 10.
    """

    full_information: ClassVar[bool] = True

    kernel: Any = None

    def _new_state(self) -> State:
        return space_for(self, _MULTICLASS, 0.0)

    def promise(self, *, n_classes: int, n_features: int, radius: float, margin: float) -> tuple[Claim, ...]:
        """Return Theorem 10, each mistake with one update. A strong margin is a weak one too."""
        mistakes = BOUNDS["10"].claim(radius=radius, margin=margin)
        return mistakes, replace(mistakes, about="updates")

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls()
        yield cls(Multinomial(3, normalize=True))


@jit_inline
def _learn_label(answer: Answer, scratch: Scratch, _settings: Any) -> bool:
    # With late feedback Theorem 10 bounds mistakes of the current weights.
    best = highest(scratch.current)
    if best == answer.truth:
        return False
    clear(scratch.gains)  # the update of Algorithm 3
    scratch.gains[answer.truth] = 1.0
    scratch.gains[best] = -1.0
    return True


_MULTICLASS = Rule(
    f"{__name__}:_MULTICLASS", mostly_highest, fill_propensities, _learn_label, _learn_label, full_information=True
)
