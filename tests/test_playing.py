import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import onebit
from everything import kernel_examples, learner_examples
from onebit.asking import Asking
from onebit.checks.problems import noisy_problem, snapshot
from onebit.learners.run import default_checkpoints
from onebit.streams import AdaptiveStream, LearnerView


def test_curve_ends_at_the_last_round_and_counts_mistakes() -> None:
    problem = noisy_problem(777)
    for learner in (
        onebit.BanditPerceptron(),
        onebit.NearestNeighbor(0.2),
        onebit.BanditPerceptron(onebit.kernels.Rational()),
    ):
        trace = onebit.play(learner, problem.X, problem.y, keep_guesses=True)
        running = np.cumsum(trace.guesses != problem.y)
        assert np.array_equal(trace.curve.mistakes, running[trace.curve.rounds - 1])
        assert trace.curve.rounds[-1] == trace.rounds == 777
        assert trace.mistakes == running[-1]
        assert onebit.play(learner, problem.X, problem.y).guesses is None


def test_checkpoints_of_ones_own() -> None:
    problem = noisy_problem(100)
    for engine in ("stream", "rounds"):
        trace = onebit.play(onebit.BanditPerceptron(), problem.X, problem.y, checkpoints=[10, 50], engine=engine)
        assert trace.curve.rounds.tolist() == [10, 50, 100]
    for bad in ([0, 50], [101], [10**8], np.array([2**64 - 1], dtype=np.uint64)):
        with pytest.raises(ValueError, match=r"checkpoints must be (whole numbers from 1 to 100|below 2⁶³)"):
            onebit.play(onebit.BanditPerceptron(), problem.X, problem.y, checkpoints=bad)
    for same in ([50, 10, 10], np.array([10, 50], dtype=np.uint64), np.array([10, 50], dtype=">i2")):
        trace = onebit.play(onebit.BanditPerceptron(), problem.X, problem.y, checkpoints=same)
        assert trace.curve.rounds.tolist() == [10, 50, 100]
    assert onebit.play(onebit.BanditPerceptron(), problem.X, problem.y, checkpoints=[]).curve.rounds.tolist() == [100]


@pytest.mark.parametrize("rounds", [1, 2, 1000, 10**9])
def test_the_curve_has_bounded_memory(rounds: int) -> None:
    points = default_checkpoints(rounds)
    assert points[0] == 1
    assert points[-1] == rounds
    assert len(points) <= 300
    assert np.all(np.diff(points) > 0)


def test_a_data_set_brings_its_labels() -> None:
    data = onebit.streams.bundled("iris")
    learner, named = onebit.BanditPerceptron(), np.array(data.label_names)[data.y]
    trace = onebit.play(learner, data, seed=3, keep_guesses=True)
    other = onebit.play(onebit.BanditPerceptron(), data.X, named, seed=3, keep_guesses=True)
    assert np.array_equal(trace.guesses, other.guesses)  # type: ignore[arg-type]
    assert learner.classes_.tolist() == list(data.label_names)
    by_hand = onebit.play(onebit.BanditPerceptron(), data, seed=3, keep_guesses=True, engine="rounds")
    assert np.array_equal(trace.guesses, by_hand.guesses)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="y must be left out with DataSet"):
        onebit.play(learner, data, data.y)


@pytest.mark.parametrize("learner", [onebit.BanditSVM(), onebit.BanditPerceptron(), onebit.NearestNeighbor(0.2)])
@pytest.mark.parametrize("n_rounds", [7, 333])
def test_progress_changes_nothing(learner: onebit.Learner, n_rounds: int) -> None:
    problem = noisy_problem(n_rounds)
    told: list[tuple[int, int]] = []
    plain = onebit.play(learner, problem.X, problem.y, seed=2, keep_guesses=True)
    shown = onebit.play(
        learner, problem.X, problem.y, seed=2, keep_guesses=True, on_progress=lambda *so_far: told.append(so_far)
    )
    assert told[-1] == (n_rounds, n_rounds)
    assert len(told) == -(-n_rounds // 50)
    assert np.array_equal(plain.guesses, shown.guesses)  # type: ignore[arg-type]
    assert np.array_equal(plain.curve, shown.curve)
    assert (plain.mistakes, plain.updates) == (shown.mistakes, shown.updates)


def test_progress_lets_new_labels_join_in_the_same_round() -> None:
    problem = noisy_problem(200)
    labels = np.where(np.arange(200) < 150, problem.y, 9)  # 9 comes only in the last piece

    def guesses(**options: Any) -> Any:
        learner = onebit.BanditPerceptron(classes="grow")
        onebit.play(learner, problem.X[:20], problem.y[:20], seed=1)
        return onebit.play(learner, problem.X, labels, fresh=False, keep_guesses=True, **options).guesses

    assert guesses().tolist() == guesses(on_progress=lambda *_: None).tolist()


def test_progress_over_a_frame_keeps_its_names() -> None:
    problem = noisy_problem(120)
    frame = polars.DataFrame(dict(zip("abcdefgh", problem.X.T, strict=False)))
    learner = onebit.BanditPerceptron()
    onebit.play(learner, frame, problem.y, on_progress=lambda *_: None)
    assert learner.feature_names_in_.tolist() == frame.columns


def test_generators_of_pairs() -> None:
    problem = noisy_problem(200)
    learner = onebit.BanditPerceptron(classes=4)
    trace = onebit.play(learner, ((x, y) for x, y in zip(problem.X, problem.y, strict=True)), seed=5)
    twin = onebit.BanditPerceptron(classes=4)
    same = onebit.play(twin, problem.X, problem.y, seed=5, checkpoints=trace.curve.rounds)
    assert np.array_equal(trace.curve, same.curve)
    assert trace.updates == same.updates
    assert onebit.play(learner, zip(problem.X, problem.y, strict=True), max_rounds=50).rounds == 50
    for wrong, said in (
        (iter([]), "ended before its first round"),
        (iter([3]), r"must give pairs \(features, label\); got 3"),
        (iter([([1.0, 2.0], 9)]), "not among the 4 classes"),
        (iter([(1.0, 0)]), r"features must be one round's, of shape \(n_features,\); got shape \(\)"),
        (iter([([[1.0, 2.0], [3.0]], 0)]), "features"),
    ):
        with pytest.raises(ValueError, match=said):
            onebit.play(learner, wrong)
    with pytest.raises(ValueError, match=r"classes must be given.*BanditPerceptron\(classes="):
        onebit.play(onebit.BanditPerceptron(), iter([([1.0], 0)]))
    with pytest.raises(ValueError, match="y must be left out"):
        onebit.play(learner, iter([]), [1])


def test_a_refused_call_takes_nothing_from_an_iterator() -> None:
    problem = noisy_problem(20)
    for bad in ({"max_rounds": 0}, {"checkpoints": ["x"]}):
        pairs = zip(problem.X, problem.y, strict=True)
        with pytest.raises(ValueError, match=next(iter(bad))):
            onebit.play(onebit.BanditPerceptron(classes=4), pairs, **bad)
        assert len(list(pairs)) == 20


def test_a_trace_as_frame_and_figure() -> None:
    from matplotlib import pyplot

    problem = noisy_problem(100)
    trace = onebit.play(onebit.BanditPerceptron(), problem.X, problem.y)
    frame = trace.to_frame()
    assert frame.columns == ["round", "mistakes", "rate"]
    assert frame.row(-1) == (100, trace.mistakes, trace.mistakes / 100)
    axes = trace.plot(color="red", label="mine")
    assert trace.plot(axes) is axes
    line = axes.lines[0]
    assert (line.get_color(), line.get_label()) == ("red", "mine")
    assert np.asarray(line.get_xydata())[[0, -1]].tolist() == [[0, 0], [100, trace.mistakes]]
    pyplot.close(axes.figure)  # type: ignore[arg-type]


def test_bad_calls_are_named() -> None:
    problem = noisy_problem(10)
    with pytest.raises(ValueError, match="learner must be an onebit learner"):
        onebit.play("perceptron", problem.X, problem.y)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="engine must be one of"):
        onebit.play(onebit.BanditPerceptron(), problem.X, problem.y, engine="gpu")
    with pytest.raises(ValueError, match="confidence must be True or False"):
        onebit.play(onebit.BanditPerceptron(), problem.X, problem.y, confidence=None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="y is missing"):
        onebit.play(onebit.BanditPerceptron(), problem.X)
    with pytest.raises(ValueError, match="not among the 2 classes"):
        onebit.play(onebit.BanditPerceptron(classes=2), problem.X, problem.y)
    learner = onebit.BanditPerceptron().fit(problem.X, problem.y)
    with pytest.raises(ValueError, match="X has 2 features, but BanditPerceptron is expecting 5"):
        learner.partial_fit(problem.X[:, :2], problem.y)
    with pytest.raises(ValueError, match="seed must stay"):
        onebit.play(learner, problem.X, problem.y, fresh=False, seed=99)


class Contrary:
    """Shows one of three points, labelled with what the learner is least likely to guess."""

    classes = 3
    n_features = 3

    def __init__(self, rounds: int) -> None:
        self.left = rounds

    def next(self, learner: LearnerView) -> tuple[Any, int] | None:
        if self.left == 0:
            return None
        self.left -= 1
        x = np.eye(3)[learner.round % 3]
        return x, int(np.argmin(learner.probabilities(x)))


@pytest.mark.parametrize("learner", [onebit.BanditPerceptron(), onebit.MulticlassPerceptron(), onebit.Banditron(0.1)])
def test_adaptive_streams_see_the_learner(learner: onebit.Learner) -> None:
    stream = Contrary(60)
    assert isinstance(stream, AdaptiveStream)
    trace = onebit.play(learner, stream, seed=1, keep_guesses=True)
    assert trace.rounds == 60
    assert trace.mistakes >= 30
    assert trace.guesses is not None
    assert len(trace.guesses) == 60
    assert trace.curve.mistakes[-1] == trace.mistakes
    cut = onebit.play(learner, Contrary(60), seed=1, max_rounds=10)
    assert cut.rounds == 10
    with pytest.raises(ValueError, match="ended before its first round"):
        onebit.play(learner, Contrary(0))
    with pytest.raises(ValueError, match="max_rounds must be between"):
        onebit.play(learner, Contrary(60), max_rounds=2**60)
    with pytest.raises(ValueError, match="y must be left out"):
        onebit.play(learner, Contrary(3), [0, 1, 2])


def test_ctrl_c_in_the_middle_loses_nothing() -> None:
    problem = noisy_problem(300)
    learner = onebit.BanditPerceptron(classes=4)
    onebit.play(learner, problem.X, problem.y)
    known, count = snapshot(learner), 0
    original = learner.guess

    def interrupted(features: Any, among: Any = None) -> onebit.Guess:
        nonlocal count
        count += 1
        if count == 100:
            raise KeyboardInterrupt
        return original(features, among)

    learner.guess = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        onebit.play(learner, problem.X, problem.y, engine="rounds", fresh=False)
    assert snapshot(learner) == known


_GAMES = """
import hashlib, onebit, sys
from everything import kernel_examples, learner_examples
from onebit.checks.problems import guesses_of, noisy_problem
problem = noisy_problem(40)
X, y = onebit.streams.paper_weak(40, 5)
kernels = [onebit.BanditPerceptron(kernel) for kernel in kernel_examples()]
some = learner_examples() if sys.argv[1] == "learners" else kernels
for learner in some:
    guesses = guesses_of(learner, problem.X, problem.y, seed=3).tolist() + guesses_of(learner, X, y, seed=3).tolist()
    arrays = b"".join(array.tobytes() for array in learner.learned().values())
    print(hashlib.sha256(repr(guesses).encode() + arrays + X.tobytes()).hexdigest(), *repr(learner).split())
"""


@pytest.mark.parametrize(
    "things", [pytest.param("learners", marks=pytest.mark.ci), pytest.param("kernels", marks=pytest.mark.slow)]
)
def test_the_same_code_without_the_compiler_plays_the_same_games(things: str) -> None:
    def output(**environment: str) -> list[str]:
        return subprocess.run(
            [sys.executable, "-c", _GAMES, things],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent), **environment},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.splitlines()

    compiled, plain = output(), output(NUMBA_DISABLE_JIT="1")
    assert len(compiled) == len(learner_examples() if things == "learners" else kernel_examples())
    assert plain == compiled


def test_importing_onebit_stays_light() -> None:
    # Learners are scikit-learn's estimators. What its base brings along (pandas, where there is one) is not ours.
    heavy = ["matplotlib", "typer", "rich", "pandas", "polars", "distributed"]
    heavy += ["sklearn.datasets", "sklearn.svm", "sklearn.metrics"]
    script = f"""import sys, numba, sklearn.base
before = set(sys.modules)
import onebit
from onebit.asking import Asking
print(*(set({heavy}) & (set(sys.modules) - before)))"""
    found = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert found.split() == []


def test_hash_and_print_of_a_ticket() -> None:
    learner = onebit.BanditPerceptron(classes=["a", "b"])
    guess = learner.guess([1.0, 0.0])
    assert repr(guess) == "Guess(round=0, label='a', propensity=1, explored=False)"
    assert guess in {guess}
    with pytest.raises(AttributeError):
        guess.label = "b"  # type: ignore[misc]
    assert hash(pickle.loads(pickle.dumps(guess))) == hash(guess) != hash(learner.guess([1.0, 0.0]))


def test_a_game_that_asks_is_the_same_by_hand_and_keeps_its_limit() -> None:
    X, y = onebit.streams.paper_strong(rounds=600, seed=2)
    learner = onebit.BanditPerceptron()
    trace = onebit.play(learner, X, y, seed=3, wrong_at_most=0.05, keep_guesses=True)
    other, asking = onebit.BanditPerceptron(classes=int(y.max()) + 1, seed=3), Asking(wrong_at_most=0.05)
    asked, wrong, right = 0, 0, 0
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        guess = other.guess(x)
        decision = asking.decide(guess.confidence)
        correct = bool(guess.label == label)
        asking.answer(decision, correct)
        if decision.ask:
            other.label(guess, label)
        else:
            other.tell(guess, correct)
        asked, right = asked + decision.ask, right + (decision.ask and correct)
        wrong += not decision.ask and not correct
        assert trace.guesses is not None
        assert trace.guesses[t] == guess.label
        assert trace.by_round is not None
        assert trace.by_round.asked[t] == decision.ask
    assert (trace.asked, trace.mistakes, trace.suggestions_right) == (asked, wrong, right)
    assert 0 < trace.asked < 600
    assert trace.wrong_limit == asking.limit() >= trace.mistakes
    assert trace.curve.mistakes[-1] == trace.mistakes
    assert np.array_equal(learner.learned()["weights"], other.learned()["weights"])


def test_a_game_with_confidence_is_the_same_game() -> None:
    X, y = onebit.streams.paper_strong(rounds=400, seed=2)
    told: list[tuple[int, int]] = []
    with_it = onebit.play(
        onebit.BanditPerceptron(), X, y, confidence=True, keep_guesses=True, on_progress=lambda *at: told.append(at)
    )
    without = onebit.play(onebit.BanditPerceptron(), X, y, keep_guesses=True)
    assert told[-1] == (400, 400)
    assert with_it.guesses is not None
    assert without.guesses is not None
    assert np.array_equal(with_it.guesses, without.guesses)
    assert (with_it.mistakes, with_it.updates, with_it.uniform_guesses) == (
        without.mistakes,
        without.updates,
        without.uniform_guesses,
    )
    assert np.array_equal(with_it.curve.mistakes, without.curve.mistakes)
    assert with_it.by_round is not None
    assert with_it.asked == 0
    assert with_it.by_round.right.sum() == 400 - with_it.mistakes
    assert np.isnan(with_it.by_round.confidence[0])
    assert without.by_round is None


def test_iterators_and_adaptive_streams_can_be_asked_about() -> None:
    X, y = onebit.streams.paper_strong(rounds=300, seed=2)
    classes = list(range(int(y.max()) + 1))
    pairs = onebit.play(onebit.BanditPerceptron(classes=classes), iter(zip(X, y, strict=True)), wrong_at_most=0.1)
    rows = onebit.play(onebit.BanditPerceptron(classes=classes), X, y, wrong_at_most=0.1)
    assert (pairs.rounds, pairs.asked, pairs.mistakes) == (rows.rounds, rows.asked, rows.mistakes)
    with pytest.raises(ValueError, match="exactly one of wrong_at_most and ask_at_most"):
        onebit.play(onebit.BanditPerceptron(), X, y, wrong_at_most=0.1, ask_at_most=0.1)
    for wrong in (0.0, 1.0, -1.0, "5%", float("nan"), True):
        with pytest.raises(ValueError, match="wrong_at_most"):
            onebit.play(onebit.BanditPerceptron(), X, y, wrong_at_most=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("learner", [onebit.BanditPerceptron(), onebit.BanditSVM(), onebit.NearestNeighbor(0.2)])
def test_several_labels_may_be_right(learner: onebit.Learner) -> None:
    problem = noisy_problem(400)
    n_classes = int(problem.y.max()) + 1
    one = np.arange(n_classes) == problem.y[:, None]
    expected = onebit.play(learner, problem.X, problem.y, seed=3, keep_guesses=True)
    same = onebit.play(learner, problem.X, one, seed=3, keep_guesses=True)
    assert np.array_equal(np.asarray(same.guesses), np.asarray(expected.guesses))
    several = one | (np.arange(n_classes) == (problem.y[:, None] + 1) % n_classes)
    several[:5] = False
    played = onebit.play(learner, problem.X, several, seed=3, keep_guesses=True)
    guesses = np.asarray(played.guesses)
    assert played.mistakes == np.count_nonzero(~several[np.arange(400), guesses]) < expected.mistakes
    for options in ({"engine": "rounds"}, {"on_progress": lambda *_: None}, {"confidence": True}):
        again = onebit.play(learner, problem.X, several, seed=3, keep_guesses=True, **options)
        assert np.array_equal(np.asarray(again.guesses), guesses)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_several_right_labels_may_come_in_any_kind_of_array() -> None:
    X, right = onebit.streams.several_right(50, seed=1)
    expected = onebit.play(onebit.BanditPerceptron(), X, right).mistakes
    assert onebit.play(onebit.BanditPerceptron(), X, np.asmatrix(right)).mistakes == expected
    with pytest.raises(ValueError, match="y must have no masked entries"):
        onebit.play(onebit.BanditPerceptron(), X, np.ma.MaskedArray(right, mask=right))


def test_who_is_asked_names_one_of_several_right_labels() -> None:
    X, right = onebit.streams.several_right(1500, seed=1)
    trace = onebit.play(onebit.BanditSVM(exclusive=False), X, right, wrong_at_most=0.05)
    assert 0 < trace.asked < 1000
    assert trace.mistakes <= trace.wrong_limit  # type: ignore[operator]
    nothing_right = onebit.play(onebit.BanditSVM(exclusive=False), X, np.zeros_like(right), wrong_at_most=0.05)
    assert nothing_right.asked == 1500


def test_several_right_labels_are_checked() -> None:
    X, right = np.eye(4), np.ones((4, 3), dtype=bool)
    assert onebit.play(onebit.BanditPerceptron(classes=["a", "b", "c"]), X, right).mistakes == 0
    bad: list[tuple[onebit.Learner, Any, str]] = [
        (onebit.FullInformationSVM(), right, "the feedback of FullInformationSVM is the right label itself"),
        (onebit.BanditSVM(classes=4), right, "y must have a column for each of the 4 classes; got 3"),
        (onebit.BanditSVM(), right[1:], r"y must have a row for each of the 4 rounds; got shape \(3, 3\)"),
        (onebit.BanditSVM(), np.ones((4, 64), dtype=bool), "at most 63 columns"),
        (onebit.BanditSVM(), right.astype(int), "one label for each"),
    ]
    for learner, given, words in bad:
        with pytest.raises(ValueError, match=words):
            onebit.play(learner, X, given)
    widest = np.zeros((40, 63), dtype=bool)
    widest[:, [5, 62]] = True
    trace = onebit.play(onebit.UniformGuess(), np.ones((40, 2)), widest, seed=1, keep_guesses=True)
    assert trace.mistakes == np.count_nonzero(~np.isin(np.asarray(trace.guesses), [5, 62]))
