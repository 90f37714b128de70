"""Whether to ask: a limit on wrong decisions, or on questions, that holds for every stream.

`Asking` decides in each round whether the learner's guess stands or a person is asked. It has one of two limits:

- ``wrong_at_most=α``: of the decisions made alone, at most α A + d are wrong, where A of them are answered and d is the
  debt, which grows with the logarithm of the rounds at most. A ledger holds this whatever the guesses, confidences and
  answers are: each right decision earns α, each wrong one costs 1 − α, and it decides alone only if it can pay.
  docs/theory/asking.md has the theorem and its proof.
- ``ask_at_most=β``: of N rounds at most β N + 20 are asked: each round earns β of a question, each question costs one.

Which rounds are worth it is a matter of the doubt, 1 − confidence: within the limit, a cut decides. The limit holds for
any cut.
"""

import math
from bisect import bisect_left, insort
from collections import deque
from typing import Any, NamedTuple, Self

from onebit.inputs import brief, check_integer, check_number

_WINDOW = 500  # answered rounds that the cut is computed from
_LOAN = 1.0  # mistakes
_COMFORT = 8.0  # the balance at which the window may have a share of α wrong
_MOST_SAVED = 10.0  # mistakes: what exceeds it repays the debt or is forgotten
_FIRST_TOKENS = 20.0
_RANKED = 300  # rounds among which a doubt is ranked


class Decision(NamedTuple):
    """What was decided in a round; needed when its answer comes.

    Attributes
    ----------
    ask : bool
        Whether a person decides.
    doubt : float
        The estimated probability that the guess is wrong; 1 where there is no confidence yet.
    wanted : bool
        Whether the doubt was small enough to decide alone. If it asks all the same, it could not have paid a mistake.
    """

    ask: bool
    doubt: float
    wanted: bool


class Asking:
    """Decide round by round whether to ask, within a limit.

    Parameters
    ----------
    wrong_at_most : float
        α in (0, 1): the share wrong among decisions made alone.
    ask_at_most : float
        β in (0, 1): the share of rounds that are asked. Exactly one of the two is given.

    Attributes
    ----------
    n_alone, n_asked : int
        Rounds decided alone, and asked.
    n_alone_answered, n_wrong : int
        Decisions made alone whose answer came, and those of them that were wrong.
    n_open : int
        Decisions made alone whose answer may still come.
    most_open : int
        The largest number of them so far.
    balance, debt : float
        Mistakes it can pay; mistakes it was lent.

    Examples
    --------
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
        self.balance = self.debt = self.credit = 0.0
        self.tokens = _FIRST_TOKENS
        self._recent: deque[tuple[float, bool]] = deque()
        self._sorted: list[tuple[float, bool]] = []

    @property
    def n_open(self) -> int:
        """Decisions made alone whose answer may still come."""
        return self.n_alone - self.n_alone_answered - self.n_dropped

    def decide(self, confidence: float | None) -> Decision:
        """Decide a new round, and open it: `propose`, then `open`.

        Parameters
        ----------
        confidence : float or None
            The estimated probability that the guess is right; None if there is no estimate yet.
        """
        decision = self.propose(confidence)
        self.open(decision)
        return decision

    def propose(self, confidence: float | None) -> Decision:
        """Return what to decide in a new round; nothing is changed, so that it can be recorded first."""
        doubt = 1.0 if confidence is None else 1.0 - check_number("confidence", confidence, at_least=0.0, at_most=1.0)
        if self.wrong_at_most is not None:
            wanted = doubt <= self._cut(self.wrong_at_most)
            ask = not (wanted and self.balance >= 1.0 - self.wrong_at_most)
        else:
            ask = self._is_worth_a_token(doubt)
            wanted = not ask
        return Decision(ask, doubt, wanted)

    def open(self, decision: Decision) -> None:
        """Count a decided round, whose answer may come later; a replay opens what was recorded."""
        self.n_asked += decision.ask
        self.n_alone += not decision.ask
        self.most_open = max(self.most_open, self.n_open)
        if self.ask_at_most is not None:
            self.tokens += self.ask_at_most - decision.ask
            self._remember(decision.doubt, False, _RANKED)

    def answer(self, decision: Decision, correct: bool) -> None:
        """Take the answer of a round: at once, late, in any order, but only once.

        Parameters
        ----------
        decision : Decision
            What `decide` returned.
        correct : bool
            Whether the guess was right; if a person decided, whether the suggestion was.
        """
        ask, doubt, wanted = decision
        if not ask:
            self.n_alone_answered += 1
            self.n_wrong += not correct
        if self.wrong_at_most is None:
            return
        self._remember(doubt, not correct, _WINDOW)
        change = self.wrong_at_most - (not correct)
        if not ask:
            self.balance += change
            if self.balance > _MOST_SAVED:
                self.debt = max(0.0, self.debt - (self.balance - _MOST_SAVED))
                self.balance = _MOST_SAVED
        elif wanted and self.balance < 1.0 - self.wrong_at_most:
            self.n_blocked_right += bool(correct)
            self.credit = max(0.0, self.credit + change)
            if self.credit >= _LOAN * 2.0 ** (self.debt / _LOAN):
                self.balance += _LOAN
                self.debt += _LOAN
                self.credit = 0.0

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
        late = (1.0 - self.wrong_at_most) * max(0, self.most_open - 1)
        return self.wrong_at_most * self.n_alone_answered + self.debt + late

    def _cut(self, alpha: float) -> float:
        """Return the largest doubt up to which few enough of the recent rounds were wrong."""
        share = alpha * min(max(self.balance, _LOAN) / _COMFORT, 2.0)
        cut, total, ordered = -1.0, 0.0, self._sorted
        for i, (doubt, wrong) in enumerate(ordered):
            total += wrong - share
            if total <= 0.0 and (i + 1 == len(ordered) or ordered[i + 1][0] > doubt):
                cut = doubt
        return cut

    def _is_worth_a_token(self, doubt: float) -> bool:
        """Return whether to spend a token on a doubt, which is among the largest of the recent ones."""
        assert self.ask_at_most is not None
        tokens, n_ranked = self.tokens + self.ask_at_most, min(_RANKED, len(self._sorted) + 1)
        larger = len(self._sorted) - bisect_left(self._sorted, (doubt, True))
        return tokens >= 1.0 and larger < n_ranked * self.ask_at_most * tokens / 4.0

    def _remember(self, doubt: float, wrong: bool, most: int) -> None:
        self._recent.append((doubt, wrong))
        insort(self._sorted, (doubt, wrong))
        if len(self._recent) > most:
            del self._sorted[bisect_left(self._sorted, self._recent.popleft())]

    _COUNTS = ("n_alone", "n_asked", "n_alone_answered", "n_wrong", "n_dropped", "most_open", "n_blocked_right")
    _AMOUNTS = ("balance", "debt", "credit", "tokens")

    def state(self) -> dict[str, Any]:
        """Return everything as plain JSON values, for `from_state`."""
        names = ("wrong_at_most", "ask_at_most", *self._COUNTS, *self._AMOUNTS)
        recent = [[doubt, wrong] for doubt, wrong in self._recent]
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
        recent = state["recent"]
        if not isinstance(recent, list) or len(recent) > _WINDOW:
            raise ValueError(f"recent must be a list of at most {_WINDOW} pairs; got {brief(recent)}")
        for pair in recent:
            if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[1], bool)):
                raise ValueError(f"recent must hold pairs of a doubt and True or False; got {brief(pair)}")
            made._remember(check_number("doubt", pair[0], at_least=0.0, at_most=1.0), pair[1], _WINDOW)
        return made


def check_share(name: str, value: Any) -> float:
    """Return a share between 0 and 1, or raise ValueError."""
    share = check_number(name, value)
    if not 0.0 < share < 1.0:
        raise ValueError(f"{name} must be a share between 0 and 1, such as 0.05; got {brief(value)}")
    return share
