import json
import math
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import onebit
from onebit.asking import Asking, Decision

ROUNDING = 1e-9  # of sums of some ten thousand floats
Answer = Callable[[int, Decision], bool]


def check_theorem(asking: Asking, late: bool = False) -> None:
    """What docs/theory/asking.md proves, in all of its parts."""
    alpha = asking.wrong_at_most
    assert alpha is not None
    in_flight = (1 - alpha) * max(0, asking.most_open - 1)
    assert asking.n_wrong <= alpha * asking.n_alone_answered + asking.debt + in_flight + ROUNDING
    assert asking.n_wrong <= asking.limit() + ROUNDING
    assert 0 <= asking.debt <= asking.most_debt() + ROUNDING
    earned = alpha * asking.n_alone_answered - asking.n_wrong + asking.debt
    assert asking.balance - asking.advance <= earned + ROUNDING
    assert asking.balance <= 10
    if not late:
        assert in_flight == 0
        assert asking.balance >= -ROUNDING
        assert asking.advance == 0


def play(asking: Asking, confidences: Iterator[float | None], is_right: Answer, rounds: int) -> list[bool]:
    """Play with answers at once, and check the theorem after every round, and for every stretch that ends there."""
    asked, n_loans, least, alpha = [], 0, math.inf, asking.wrong_at_most or 0.0
    for t in range(rounds):
        debt, excess = asking.debt, asking.n_wrong - alpha * asking.n_alone_answered - n_loans
        least = min(least, excess)
        decision = asking.decide(next(confidences))
        asking.answer(decision, is_right(t, decision))
        check_theorem(asking)
        n_loans += asking.debt > debt
        assert asking.n_wrong - alpha * asking.n_alone_answered - n_loans - least <= 10 + ROUNDING  # part 4: R = 1
        asked.append(decision.ask)
    return asked


def always(confidence: float) -> Iterator[float]:
    while True:
        yield confidence


@pytest.mark.parametrize("alpha", [0.1, 0.05, 0.02])
def test_wrong_if_and_only_if_alone(alpha: float) -> None:
    asking = Asking(wrong_at_most=alpha)
    asked = play(asking, always(0.999), lambda _, decision: decision.ask, 20_000)
    assert asking.n_wrong <= 1 + math.log2(1 + 8 * alpha * 20_000)
    assert asking.n_wrong == {0.1: 14, 0.05: 12, 0.02: 11}[alpha]
    assert sum(asked) == 20_000 - asking.n_wrong
    # Each loan is dearer than the one before, but it goes on trying.
    waits = np.diff(np.flatnonzero(~np.array(asked)))
    assert waits[-1] > 1.9 * waits[-2] > 1.9**2 * waits[-3]


def test_sure_and_right_is_soon_alone_for_good() -> None:
    asking = Asking(wrong_at_most=0.05)
    asked = play(asking, always(0.999), lambda _t, _d: True, 1000)
    assert not any(asked[100:])
    assert asking.n_asked + asking.n_alone == 1000


@pytest.mark.parametrize("seed", range(3))
def test_labels_that_flip_at_half_time(seed: int) -> None:
    """Every guess is wrong for a while; then guesses and confidences are as good as before."""
    random = np.random.default_rng(seed)
    doubts = random.beta(0.3, 3.0, 6000)
    wrong = random.random(6000) < doubts
    wrong[3000:3200] = True
    asking = Asking(wrong_at_most=0.05)
    asked = np.array(play(asking, iter(1 - doubts), lambda t, _: not wrong[t], 6000))
    assert asked[3050:3200].mean() > 0.95
    assert asked[3700:4200].mean() < asked[2000:3000].mean() + 0.25
    assert asked[5000:].mean() < asked[2000:3000].mean() + 0.1


@pytest.mark.parametrize("alpha", [0.3, 0.1, 0.05, 0.02])
@pytest.mark.parametrize("seed", range(3))
def test_confidence_that_points_the_wrong_way(alpha: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    confidences = random.random(3000)
    right = random.random(3000) > confidences
    asking = Asking(wrong_at_most=alpha)
    play(asking, iter(confidences), lambda t, _: bool(right[t]), 3000)


@pytest.mark.parametrize("seed", range(20))
def test_random_adversaries_with_answers_at_once(seed: int) -> None:
    """Streams, confidences and an adversary that sees what was decided, drawn at random."""
    random = np.random.default_rng(seed)
    alpha = float(random.choice([0.5, 0.2, 0.07, 0.01, 0.9]))
    quality, spite, drift = random.random(), random.random() ** 4, int(random.integers(1, 1500))

    def confidences() -> Iterator[float | None]:
        while True:
            yield None if random.random() < 0.01 else float(random.choice([0.0, 1.0, 0.5, random.random() ** quality]))

    def is_right(t: int, decision: Decision) -> bool:
        if random.random() < spite:
            return decision.ask
        share = decision.doubt if (t // drift) % 2 == 0 else 1 - decision.doubt
        return bool(random.random() > alpha * quality * share)

    play(Asking(wrong_at_most=alpha), confidences(), is_right, 2000)


@pytest.mark.parametrize("seed", range(20))
def test_answers_late_in_any_order_or_never(seed: int) -> None:
    random = np.random.default_rng(seed)
    alpha, most = float(random.choice([0.3, 0.05, 0.02])), int(random.choice([2, 5, 50, 400]))
    worst_first, spite, missing = random.random() < 0.5, random.random() < 0.3, random.random() * 0.3
    asking = Asking(wrong_at_most=alpha)
    waiting: list[tuple[Decision, bool]] = []
    n_alone = n_asked = n_open = 0
    for _ in range(3000):
        doubt = random.random() ** 6
        decision = asking.decide(1 - doubt)
        n_alone, n_asked = n_alone + (not decision.ask), n_asked + decision.ask
        waiting.append((decision, decision.ask if spite else bool(random.random() > doubt)))
        while len(waiting) > random.integers(0, most):
            place = int(random.integers(len(waiting)))
            if worst_first:
                place = next((i for i, (late, right) in enumerate(waiting) if not (late.ask or right)), place)
            late, right = waiting.pop(place)
            asking.drop(late) if random.random() < missing else asking.answer(late, right)
            check_theorem(asking, late=True)
        n_open = sum(not late.ask for late, _ in waiting)
        assert (asking.n_alone, asking.n_asked, asking.n_open) == (n_alone, n_asked, n_open)
    assert asking.most_open <= most + 1


def test_a_burst_in_flight_costs_what_the_theorem_allows() -> None:
    """The bound for late answers is attained: all that is in flight is wrong."""
    asking = Asking(wrong_at_most=0.1)
    play(asking, always(0.999), lambda _t, _d: True, 300)
    waiting = [decision for _ in range(5000) if not (decision := asking.decide(0.999)).ask]
    # It stops when the balance of 10 is kept for those that are open: 0.9 + 0.005 m > 10.
    assert 1820 <= len(waiting) <= 1821
    for decision in waiting:
        asking.answer(decision, False)
        check_theorem(asking, late=True)
    assert asking.n_wrong == len(waiting)
    assert asking.limit() - asking.n_wrong < 40  # what was forgotten before the burst
    # It asks until it has paid for them, or suggestions are right again.
    assert all(asking.decide(0.999).ask for _ in range(50))


def play_late(asking: Asking, late: int, is_wrong: Callable[[int, Decision], bool], rounds: int) -> list[bool]:
    """Play with every answer so many rounds late, and check the theorem after each."""
    waiting: deque[tuple[Decision, bool]] = deque()
    asked = []
    for t in range(rounds):
        decision = asking.decide(0.999)
        asked.append(decision.ask)
        waiting.append((decision, not is_wrong(t, decision)))
        if len(waiting) > late:
            asking.answer(*waiting.popleft())
            check_theorem(asking, late=True)
    return asked


@pytest.mark.parametrize(("late", "n_wrong"), [(30, 30), (100, 25), (100, 100), (1000, 400)])
def test_it_comes_back_after_a_burst_in_flight(late: int, n_wrong: int) -> None:
    asking = Asking(wrong_at_most=0.05)
    asked = play_late(asking, late, lambda t, _: 2000 <= t < 2000 + n_wrong, 40_000)
    assert sum(asked[20_000:]) < 1000
    assert asking.advance == asking.debt == 0


@pytest.mark.parametrize("late", [3, 40])
def test_it_comes_back_after_an_adversary_with_late_answers(late: int) -> None:
    """Every decision made alone is wrong for a long time: more than all that late answers are allowed."""
    asking = Asking(wrong_at_most=0.05)
    asked = play_late(asking, late, lambda t, decision: 500 <= t < 10_000 and not decision.ask, 40_000)
    assert 10 < asking.n_wrong < asking.limit()
    assert sum(asked[500:10_000]) > 9000
    assert sum(asked[30_000:]) < 100


def test_some_decisions_are_never_answered() -> None:
    asking, asked = Asking(wrong_at_most=0.05), []
    for t in range(6000):
        decision = asking.decide(0.999)
        asked.append(decision.ask)
        if t % 10 or decision.ask:
            asking.answer(decision, t % 100 != 1)
            check_theorem(asking, late=True)
    assert asking.n_open > 500
    assert sum(asked[3000:]) < 300


@pytest.mark.parametrize("beta", [0.01, 0.05, 0.2, 0.7])
@pytest.mark.parametrize("kind", ["random", "growing", "falling", "none", "equal"])
def test_asked_at_most(beta: float, kind: str) -> None:
    random = np.random.default_rng(1)
    n = 4000
    confidences: dict[str, list[float | None]] = {
        "random": list(random.random(n)),
        "growing": list(np.linspace(0, 1, n)),
        "falling": list(np.linspace(1, 0, n)),
        "none": [None] * n,
        "equal": [0.5] * n,
    }
    asking = Asking(ask_at_most=beta)
    for t, confidence in enumerate(confidences[kind], 1):
        decision = asking.decide(confidence)
        asking.answer(decision, bool(random.random() < 0.5))
        assert asking.n_asked <= beta * t + 20 + ROUNDING
        assert asking.n_alone + asking.n_asked == t
    assert asking.n_asked >= 0.8 * beta * n or kind == "growing"
    assert asking.limit() == math.inf


def test_questions_go_where_the_doubt_is() -> None:
    random = np.random.default_rng(1)
    doubts = random.random(5000)
    asking = Asking(ask_at_most=0.2)
    asked = []
    for doubt in doubts:
        decision = asking.decide(1 - doubt)
        asking.answer(decision, bool(random.random() > doubt))
        asked.append(decision.ask)
    assert doubts[np.array(asked)].mean() > 0.84  # 0.9 if all doubts were known beforehand


@pytest.mark.parametrize("limit", [{"wrong_at_most": 0.05}, {"ask_at_most": 0.1}])
def test_a_saved_state_goes_on_as_the_original(limit: dict[str, float]) -> None:
    random = np.random.default_rng(3)
    asking = Asking(**limit)
    open_ones: list[Decision] = []
    for t in range(2500):
        if t in (0, 1, 30, 700, 1900):
            text = json.dumps(asking.state(), allow_nan=False)
            twin = Asking.from_state(json.loads(text))
            assert json.dumps(twin.state()) == text
        doubt = float(random.random() ** 3)
        right = bool(random.random() > doubt)
        decision, other = asking.decide(1 - doubt), twin.decide(1 - doubt)
        assert decision == other == Decision(*json.loads(json.dumps(decision)))
        open_ones.append(decision)
        if len(open_ones) > 3:
            late = open_ones.pop(0)
            for one in (asking, twin):
                one.answer(late, right)
    assert asking.state() == twin.state()


@pytest.mark.parametrize("limit", [{"wrong_at_most": 0.05}, {"ask_at_most": 0.1}])
def test_decisions_are_plain_values_without_the_compiler_too(
    limit: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_largest_cut", "_share_above"):
        function = getattr(onebit.asking, name)
        monkeypatch.setattr(onebit.asking, name, getattr(function, "py_func", function))
    random, asking = np.random.default_rng(3), Asking(**limit)
    for _ in range(500):
        decision = asking.decide(1 - float(random.random() ** 3))
        asking.answer(decision, correct=True)
        assert [type(each) for each in decision] == [bool, float, bool]


def test_memory_is_bounded() -> None:
    asking = Asking(wrong_at_most=0.05)
    play(asking, iter(np.random.default_rng(1).random(5000)), lambda t, _: t % 50 > 0, 5000)
    assert len(json.dumps(asking.state())) < 30_000


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "exactly one of wrong_at_most and ask_at_most"),
        ({"wrong_at_most": 0.1, "ask_at_most": 0.1}, "exactly one of wrong_at_most and ask_at_most"),
        ({"wrong_at_most": 0}, "wrong_at_most must be a share between 0 and 1, such as 0.05; got 0"),
        ({"wrong_at_most": 5}, "wrong_at_most must be a share between 0 and 1, such as 0.05; got 5"),
        ({"wrong_at_most": "5%"}, "wrong_at_most must be a number"),
        ({"ask_at_most": float("nan")}, "ask_at_most must be"),
        ({"ask_at_most": 1.0}, "ask_at_most must be a share between 0 and 1"),
    ],
)
def test_settings_are_checked(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Asking(**settings)


@pytest.mark.parametrize("confidence", [-0.1, 1.1, float("nan"), "high"])
def test_confidence_is_checked(confidence: float) -> None:
    asking = Asking(wrong_at_most=0.1)
    with pytest.raises(ValueError, match="confidence must be"):
        asking.decide(confidence)
    assert asking.n_alone + asking.n_asked == 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_wrong": 1}, "contradict"),
        ({"n_dropped": 1}, "contradict"),
        ({"debt": -1.0}, "contradict"),
        ({"debt": 5000.0}, "contradict"),
        ({"balance": 50.0}, "contradict"),
        ({"balance": 5.0}, "contradict"),
        ({"advance": -1.0}, "contradict"),
        ({"n_alone": -1}, "n_alone must be at least 0"),
        ({"balance": math.nan}, "balance must be"),
        ({"wrong_at_most": 2.0}, "wrong_at_most must be a share"),
        ({"ask_at_most": 0.5}, "exactly one"),
        ({"recent": [[0.5, 1]]}, "recent: whether a guess was wrong must be True or False"),
        ({"recent": [[1.5, True]]}, "recent: a doubt must be"),
        ({"recent": [0.5]}, "pairs"),
        ({"recent": [[0.5, True]] * 500}, "at most 400 pairs"),
        ({"more": 1}, "state must be a dictionary with the keys"),
    ],
)
def test_a_state_from_elsewhere_is_checked(changed: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Asking.from_state(Asking(wrong_at_most=0.1).state() | changed)
