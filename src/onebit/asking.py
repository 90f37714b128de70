"""Whether to ask: a limit on wrong decisions, or on questions, that holds for every stream.

`Asking` decides in each round whether the learner's guess stands or a person is asked. It has one of two limits:

- ``wrong_at_most=α``: of the decisions made alone, at most α A + d are wrong, where A of them are answered and d is the
  debt, which grows with the logarithm of the rounds at most; late answers may add what was in flight at once. A ledger
  holds this whatever the guesses, confidences and answers are: each right decision earns α, each wrong one costs 1 − α,
  and it decides alone only if it can pay. docs/theory/asking.md has the theorem and its proof.
- ``ask_at_most=β``: of N rounds at most β N + 20 are asked: each round earns β of a question, each question costs one.

Which rounds are worth it is a matter of the doubt, 1 − confidence: within the limit, a cut decides. The limit holds for
any cut.
"""

import math
from typing import Any, NamedTuple, Self

import numpy as np

from onebit.engine.jit import jit_no_refcount
from onebit.inputs import Floats, brief, check_integer, check_number, check_switch

# Chosen on half of the data sets that benchmarks/asking.py names. The theorem holds for any cut and any values.
_WINDOW = 400  # rounds that the cut is computed from
_LOAN = 1.0  # mistakes: the least that lets it decide alone again
_PRICE = 0.125  # of the first loan, in mistakes saved on paper; it doubles with each loan that is not repaid
_COMFORT = 4.0  # mistakes saved: the cut then aims at α, with less at less, with more at more; and debts are repaid
_MOST_SAVED = 10.0  # what exceeds it is forgotten: so many mistakes, at most, can follow a good stretch
_RESERVE = 0.05  # times α: what must be saved for each decision whose answer is still open
_LEAST_AIM, _MOST_AIM = 0.5, 2.0  # times α
_TRUST = 0.1  # how much of a round's risk is its doubt, and not whether it was wrong
_ROUNDING = 1e-6  # far more than sums of a million floats are off
_FIRST_TOKENS = 20.0
_USUAL_TOKENS = 2.0  # with as many it asks about a share of β, with one more about 2 β
_UNKNOWN_RANK = 0.25  # of a round without a confidence: the share of rounds that are taken to be more doubtful (or 5 β)


class Decision(NamedTuple):
    """What was decided in a round; needed when its answer comes."""

    ask: bool
    """Whether a person decides."""
    doubt: float
    """The estimated probability that the guess is wrong; 1 where there is no confidence yet."""
    wanted: bool
    """Whether the doubt was small enough to decide alone. If it asks all the same, it could not have paid a mistake."""


class Asking:
    """Decide round by round whether to ask, within one of the two limits.

    It counts rounds decided alone and asked (`n_alone`, `n_asked`), decisions made alone whose answer came, and those
    of them that were wrong (`n_alone_answered`, `n_wrong`), and the largest number of open ones (`most_open`).
    `balance` is the mistakes that it can pay, `debt` those that it was lent, `advance` those of late answers that are
    not paid yet.

    >>> asking = Asking(wrong_at_most=0.05)
    >>> for round in range(1000):
    ...     decision = asking.decide(confidence=0.99)
    ...     asking.answer(decision, correct=round % 500 != 250)
    >>> asking.n_asked < 100, asking.n_wrong <= asking.limit()
    (True, True)
    """

    def __init__(self, *, wrong_at_most: float | None = None, ask_at_most: float | None = None) -> None:
        if (wrong_at_most is None) == (ask_at_most is None):
            raise ValueError(
                "give exactly one of wrong_at_most and ask_at_most; "
                f"got {brief(wrong_at_most)} and {brief(ask_at_most)}"
            )
        self.wrong_at_most = None if wrong_at_most is None else check_share("wrong_at_most", wrong_at_most)
        self.ask_at_most = None if ask_at_most is None else check_share("ask_at_most", ask_at_most)
        self.n_alone = self.n_asked = self.n_alone_answered = self.n_wrong = self.n_dropped = self.most_open = 0
        self.n_blocked_right = 0
        self.balance = self.debt = self.advance = self.credit = 0.0
        self.tokens = _FIRST_TOKENS
        self._n_seen = 0
        self._recent, self._ordered = np.zeros((2, _WINDOW)), np.zeros((2, _WINDOW))

    @property
    def n_open(self) -> int:
        """Decisions made alone whose answer may still come."""
        return self.n_alone - self.n_alone_answered - self.n_dropped

    def decide(self, confidence: float | None) -> Decision:
        """Decide a new round, and open it; the confidence is None if there is no estimate yet."""
        decision = self.propose(confidence)
        self.open(decision)
        return decision

    def propose(self, confidence: float | None) -> Decision:
        """Return what to decide in a new round; nothing is changed, so that it can be recorded first.

        Open it before the next round is proposed: the limit depends on what is open.
        """
        if confidence is None:
            doubt = 1.0
        elif type(confidence) is float and 0.0 <= confidence <= 1.0:
            doubt = 1.0 - confidence
        else:
            doubt = 1.0 - check_number("confidence", confidence, at_least=0.0, at_most=1.0)
        alpha = self.wrong_at_most
        if alpha is not None:
            aim = alpha * min(max((self.balance - self.advance) / _COMFORT, _LEAST_AIM), _MOST_AIM)
            wanted = bool(doubt <= _largest_cut(self._ordered, min(self._n_seen, _WINDOW), aim))
            ask = not (wanted and self._can_pay(alpha))
        else:
            ask = self._is_worth_a_token(doubt)
            wanted = not ask
        return Decision(ask, doubt, wanted)

    def open(self, decision: Decision) -> None:
        """Count a decided round, whose answer may come later; a replay opens what was recorded."""
        if decision.ask:
            self.n_asked += 1
        else:
            self.n_alone += 1
            self.most_open = max(self.most_open, self.n_open)
        if self.ask_at_most is not None:
            self.tokens += self.ask_at_most - decision.ask
            if decision.doubt < 1.0:  # rounds without a confidence would rank above all others
                self._remember(decision.doubt, False)

    def answer(self, decision: Decision, correct: bool) -> None:
        """Take the answer of a round, whether the guess or suggestion was right: at once or late, but only once."""
        ask, doubt, wanted = decision
        wrong = not correct
        if not ask:
            self.n_alone_answered += 1
            self.n_wrong += wrong
        alpha = self.wrong_at_most
        if alpha is None:
            return
        self._remember(doubt, wrong)
        reserve = _RESERVE * alpha * self.n_open
        if not ask:
            self.balance += alpha - wrong
            repaid = max(0.0, min(self.advance + self.debt, self.balance - _COMFORT - reserve))
            self.balance = min(self.balance - repaid, _MOST_SAVED)
            self.debt -= max(0.0, repaid - self.advance)
            self.advance = max(0.0, self.advance - repaid)
        elif wanted and not self._can_pay(alpha):
            self.n_blocked_right += not wrong
            self.credit = max(0.0, self.credit + alpha - wrong)
            if self.credit >= _PRICE * 2.0 ** (self.debt / _LOAN) and _LOAN + reserve <= _MOST_SAVED:
                own = self.balance - self.advance
                if not self._is_safe(alpha):
                    own += _LOAN
                    self.debt += _LOAN
                self.balance = max(self.balance, _LOAN + reserve, own)
                self.advance = self.balance - own
                self.credit = 0.0

    def _can_pay(self, alpha: float) -> bool:
        """Return whether a mistake can be paid, beside a reserve for what is open, and it is safe."""
        return self.balance - _RESERVE * alpha * self.n_open >= 1.0 - alpha and self._is_safe(alpha)

    def _is_safe(self, alpha: float) -> bool:
        """Return whether the theorem would hold if one more decision, and all that are open, turned out to be wrong."""
        return self.balance - self.advance >= (1.0 - alpha) * min(1, self.n_open + 2 - self.most_open)

    def drop(self, decision: Decision) -> None:
        """Close a round whose answer will never come."""
        if not decision.ask:
            self.n_dropped += 1

    def limit(self) -> float:
        """Return how many wrong decisions the theorem allows now, among those made alone and answered.

        With ``ask_at_most`` there is no such limit, and it is infinite.
        """
        if self.wrong_at_most is None:
            return math.inf
        alpha = self.wrong_at_most
        return alpha * self.n_alone_answered + self.debt + (1.0 - alpha) * max(0, self.most_open - 1)

    def most_debt(self) -> float:
        """Return how large the debt can be at most, after as many blocked rounds whose suggestion was right."""
        return _LOAN * math.log2(1.0 + (self.wrong_at_most or 0.0) * self.n_blocked_right / _PRICE)

    def _is_worth_a_token(self, doubt: float) -> bool:
        """Return whether to spend a token on a doubt: on one that few recent ones exceed, fewer if tokens are few."""
        beta = self.ask_at_most or 0.0
        tokens = self.tokens + beta
        if doubt == 1.0:
            larger = min(_UNKNOWN_RANK, 5.0 * beta)
        else:
            larger = _share_above(self._ordered, min(self._n_seen, _WINDOW), doubt)
        return bool(tokens >= 1.0 and larger < beta * (tokens + 1.0 - _USUAL_TOKENS))

    def _remember(self, doubt: float, wrong: bool) -> None:
        _replace(self._recent, self._ordered, self._n_seen, doubt, 1.0 if wrong else 0.0)
        self._n_seen += 1

    _COUNTS = ("n_alone", "n_asked", "n_alone_answered", "n_wrong", "n_dropped", "most_open", "n_blocked_right")
    _AMOUNTS = ("balance", "debt", "advance", "credit", "tokens")

    def state(self) -> dict[str, Any]:
        """Return everything as plain JSON values, for `from_state`."""
        names = ("wrong_at_most", "ask_at_most", *self._COUNTS, *self._AMOUNTS)
        by_age = self._recent[:, np.arange(max(0, self._n_seen - _WINDOW), self._n_seen) % _WINDOW]
        recent = [[doubt, wrong == 1.0] for doubt, wrong in by_age.T.tolist()]
        return {name: getattr(self, name) for name in names} | {"recent": recent}

    @classmethod
    def from_state(cls, state: Any) -> Self:
        """Return what `state` was of; a state from elsewhere is checked."""
        names = ("wrong_at_most", "ask_at_most", *cls._COUNTS, *cls._AMOUNTS, "recent")
        if not isinstance(state, dict) or set(state) != set(names):
            raise ValueError(f"state must be a dictionary with the keys {', '.join(names)}; got {brief(state)}")
        made = cls(wrong_at_most=state["wrong_at_most"], ask_at_most=state["ask_at_most"])
        for name in cls._COUNTS:
            setattr(made, name, check_integer(name, state[name], low=0))
        for name in cls._AMOUNTS:
            setattr(made, name, check_number(name, state[name]))
        earned = (made.wrong_at_most or 0.0) * made.n_alone_answered - made.n_wrong + made.debt
        if not (
            made.n_wrong <= made.n_alone_answered
            and made.n_open >= 0
            and min(made.debt, made.advance, made.credit, made.tokens) >= 0.0
            and made.balance <= _MOST_SAVED
            and made.debt <= made.most_debt() + _ROUNDING
            and (made.wrong_at_most is None or made.balance - made.advance <= earned + _ROUNDING)
        ):
            raise ValueError(f"state has counts or amounts that contradict each other; got {brief(state)}")
        recent = state["recent"]
        if not isinstance(recent, list) or len(recent) > _WINDOW:
            raise ValueError(f"recent must be a list of at most {_WINDOW} pairs; got {brief(recent)}")
        for pair in recent:
            if not (isinstance(pair, list) and len(pair) == 2):
                raise ValueError(f"recent must hold pairs of a doubt and True or False; got {brief(pair)}")
            doubt = check_number("recent: a doubt", pair[0], at_least=0.0, at_most=1.0)
            made._remember(doubt, check_switch("recent: whether a guess was wrong", pair[1]))
        return made


def check_share(name: str, value: Any) -> float:
    """Return a share between 0 and 1, or raise ValueError."""
    share = check_number(name, value)
    if not 0.0 < share < 1.0:
        raise ValueError(f"{name} must be a share between 0 and 1, such as 0.05; got {brief(value)}")
    return share


def read_share(name: str, text: str) -> float:
    """Return a share as people write it, or raise ValueError.

    >>> read_share("--wrong-at-most", "5%"), read_share("--wrong-at-most", "0.05")
    (0.05, 0.05)
    """
    try:
        share = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        share = math.nan
    if not 0.0 < share < 1.0:
        raise ValueError(f"{name} must be a share between 0 and 1, such as 5% or 0.05; got {brief(text)}")
    return share


# The window is kept twice, by age and by doubt: a row of doubts, and a row of ones where the guess was wrong.


@jit_no_refcount
def _replace(recent: Floats, ordered: Floats, n_seen: int, doubt: float, wrong: float) -> None:
    """Put a round in the place of the oldest."""
    capacity = recent.shape[1]
    slot, size = n_seen % capacity, min(n_seen, capacity)
    if n_seen >= capacity:
        old, old_wrong = recent[0, slot], recent[1, slot]
        i = np.searchsorted(ordered[0, :size], old)
        while ordered[1, i] != old_wrong:  # rounds of the same doubt are in no particular order
            i += 1
        size -= 1
        for j in range(i, size):
            ordered[0, j], ordered[1, j] = ordered[0, j + 1], ordered[1, j + 1]
    i = np.searchsorted(ordered[0, :size], doubt)
    for j in range(size, i, -1):
        ordered[0, j], ordered[1, j] = ordered[0, j - 1], ordered[1, j - 1]
    ordered[0, i], ordered[1, i] = doubt, wrong
    recent[0, slot], recent[1, slot] = doubt, wrong


@jit_no_refcount
def _largest_cut(ordered: Floats, size: int, aim: float) -> float:
    """Return the largest doubt up to which the mean risk of the recent rounds is at most `aim`; −1 if there is none."""
    cut, excess = -1.0, 0.0
    for i in range(size):
        doubt = ordered[0, i]
        excess += (1.0 - _TRUST) * ordered[1, i] + _TRUST * doubt - aim
        if excess <= 0.0 and (i + 1 == size or ordered[0, i + 1] > doubt):
            cut = doubt
    return cut


@jit_no_refcount
def _share_above(ordered: Floats, size: int, doubt: float) -> float:
    """Return the share of recent rounds whose doubt is larger."""
    return (size - np.searchsorted(ordered[0, :size], doubt, side="right")) / max(size, 1)
