"""A decider, in a file or a database, as the log that `onebit evaluate` reads."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import onebit
from in_process import onebit as onebit_command
from onebit.checks.problems import noisy_problem
from onebit.cli import app
from onebit.cli.evaluate import _describe_log
from onebit.decider.logged_rounds import read_decider
from onebit.decider.sqlite import SQLiteLog
from onebit.decider.tickets import Kind, LogError, OwnedError, UnreachableError
from onebit.experiments.evaluate import Candidate, evaluate, logged_rounds, replay
from onebit.experiments.evaluate.estimates import known
from postgres_server import require_server


@pytest.mark.parametrize("text", [None, "a text of several words"])
def test_a_deciders_guesses_are_a_log(tmp_path: Path, text: str | None) -> None:
    path, problem = tmp_path / "desk.onebit", noisy_problem(40, 3, 4)
    with onebit.Decider.open(path, classes=["a", "b", "c"], learner=onebit.BanditPerceptron()) as desk:
        tickets = []
        for x, label in zip(problem.X, problem.y, strict=True):
            ticket = desk.guess({str(i): value for i, value in enumerate(x)} | ({"text": text} if text else {}))
            tickets.append(ticket)
            if len(tickets) % 2:
                desk.tell(ticket, ticket.label == "abc"[label])
        desk.correct_answer(tickets[0], not desk._state.feedback[tickets[0].id])
        with pytest.raises(OwnedError):
            read_decider(str(path))
    assert SQLiteLog.is_at(str(path))
    assert not SQLiteLog.is_at(str(tmp_path / "nowhere"))
    log = read_decider(str(path))
    assert log.classes[log.guesses].tolist() == [ticket.label for ticket in tickets]
    assert np.array_equal(log.propensities, [ticket.propensity for ticket in tickets])
    assert (log.answers == -1).sum() == 20
    if text is None:
        command = ["evaluate", str(path), "--learners", "BanditPerceptron UniformGuess", "--out", str(tmp_path / "out")]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        assert (tmp_path / "out" / "report.html").exists()


def test_a_decider_that_is_open_is_said_to_be_open(tmp_path: Path) -> None:
    """Of a new file the header, which marks it as a decider's, is still in the journal."""
    path = tmp_path / "desk.onebit"
    with onebit.Decider.open(path, classes=2, learner=onebit.BanditPerceptron()) as desk:
        desk.tell(desk.guess({"x": 1.0}), True)
        assert SQLiteLog.is_at(str(path))
        code, said = evaluated(str(path), "--learners", "BanditPerceptron")
    assert code == 1
    assert "is open in this process" in said
    (tmp_path / "table.onebit").write_bytes(b"x,guess,correct")
    assert not SQLiteLog.is_at(str(tmp_path / "table.onebit"))


def test_a_decider_without_guesses(tmp_path: Path) -> None:
    path = tmp_path / "desk.onebit"
    onebit.Decider.open(path, classes=2).close()
    with pytest.raises(LogError, match="nothing to evaluate"):
        read_decider(str(path))


def test_what_a_decider_cannot_know_is_not_sure(tmp_path: Path) -> None:
    """After "wrong" the other of two labels need not be right, unless somebody says that there are no others."""
    path = str(tmp_path / "desk.onebit")
    with onebit.Decider.open(path, classes=["a", "b"], learner=onebit.BanditPerceptron()) as desk:
        for _ in range(3):
            desk.tell(desk.guess({"x": 1.0}, among=["a"]), False)
    assert known(read_decider(path), np.array([1, 1, 1])) == (0, 0, 3)
    assert known(read_decider(path, ["b", "a"]), np.array([1, 1, 1])) == (3, 0, 0)
    with pytest.raises(ValueError, match="--classes must list the decider's"):
        read_decider(path, ["a", "b", "c"])


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_label_is_allowed_once_it_has_joined(log_place: tuple[str | Path, str | None], is_compacted: bool) -> None:
    path, name = log_place
    with onebit.Decider.open(path, name=name, classes=["a", "b"], learner=onebit.BanditPerceptron()) as desk:
        before = desk.guess({"x": 1.0})
        desk.add_class("c")
        after = desk.guess({"x": 1.0}, among=["c"])
        if is_compacted:
            desk.compact()
        desk.add_class("d")
        for ticket in (before, after):
            desk.tell(ticket, True)
    log = read_decider(str(path), name=name)
    assert log.classes.tolist() == ["a", "b", "c", "d"]
    assert log.n_allowed.tolist() == [2, 1]


def test_of_labels_that_may_have_joined_later_none_is_taken_to_be_allowed(tmp_path: Path) -> None:
    """The event of a class that joined is compacted, and an open guess is not: which came first is not known."""
    path = tmp_path / "desk.onebit"
    with onebit.Decider.open(path, classes=["a", "b"], learner=onebit.UniformGuess(), max_open=9) as desk:
        desk.tell(desk.guess({"x": 1.0}), True)
        before = desk.guess({"x": 1.0})
        desk.add_class("c")
        after = desk.guess({"x": 1.0})
        while after.label != "c":  # which it cannot have been before
            after = desk.guess({"x": 1.0})
        n_gone = desk.status().guesses - desk.status().open
        desk.compact()
        later = desk.guess({"x": 1.0})
        for ticket in (before, after, later):
            desk.tell(ticket, True)
    log = read_decider(str(path), ["a", "b", "c"])
    answered = log.n_allowed[log.is_answered].tolist()
    assert answered == [2, 3, 3]
    assert dict(log.about)["left out"] == f"{n_gone} guesses that were compacted or forgotten"


class RandomHistory:
    """A decider to which everything happens that can, in random order, and what of its history is erased."""

    def __init__(self, path: Path, seed: int) -> None:
        self.random, self.now, self.path = np.random.default_rng(seed), 0.0, path
        self.told: dict[str, tuple[object, bool | None]] = {}
        self.gone: Counter[tuple[object, bool | None]] = Counter()
        self.kinds: set[str] = set()
        self.desk = self.opened()
        self.verbs = [
            *[self.guess, self.tell] * 6,
            *(self.guess_among, self.guess_many_in_vain, self.correct, self.withdraw, self.wait, self.change),
            *(self.shadow, self.add_class, self.forget, self.compact, self.open_again),
        ]

    def opened(self) -> onebit.Decider:
        learner, first = onebit.BanditPerceptron(), None if self.path.exists() else ["a", "b"]
        return onebit.Decider.open(self.path, first, learner, deadline=100.0 if first else None, clock=lambda: self.now)

    def drawn(self, from_: Iterable[Any]) -> Any:
        return from_[int(self.random.integers(len(from_)))] if (from_ := list(from_)) else None

    def record(self) -> dict[str, object]:
        return {"x": float(self.random.normal()), "y": float(self.random.normal())}

    def guess(self) -> None:
        self.now += 1.0
        self.desk.guess(self.record())

    def guess_among(self) -> None:
        self.desk.guess(self.record(), among=[self.drawn(self.desk.classes)])

    def guess_many_in_vain(self) -> None:
        with pytest.raises(ValueError, match="record"):
            self.desk.guess_many([self.record(), "no record"])

    def tell(self) -> None:
        if ticket := self.drawn(self.desk.open_tickets()):
            correct = bool(self.random.random() < 0.5)
            self.desk.tell(ticket, correct)
            self.told[ticket.id] = ticket.label, correct

    def correct(self) -> None:
        if ticket := self.drawn(self.told):
            label, correct = self.told[ticket]
            self.desk.correct_answer(ticket, not correct)
            self.told[ticket] = label, not correct

    def withdraw(self) -> None:
        if ticket := self.drawn(self.told):
            self.desk.withdraw(ticket)
            self.told[ticket] = self.told[ticket][0], None

    def wait(self) -> None:
        self.now += 90.0

    def change(self) -> None:
        self.desk.change(silence=self.drawn(["nothing", "wrong", "wrong"]), max_open=int(self.random.integers(3, 9)))

    def shadow(self) -> None:
        self.desk.shadow(self.record(), self.drawn(self.desk.classes), self.drawn([True, False, None]))

    def add_class(self) -> None:
        if len(self.desk.classes) < 5:
            self.desk.add_class(f"label {len(self.desk.classes)}")

    def note_kinds(self) -> None:
        self.kinds |= {event.kind for event in self.desk.events()}

    def forget(self) -> None:
        self.note_kinds()
        if ticket := self.drawn([*self.told, *(each.id for each in self.desk.open_tickets())]):
            if ticket in self.told:
                self.gone[self.told[ticket]] += 1
            self.desk.forget([ticket])
            self.told.clear()  # none of them can be corrected any more

    def compact(self) -> None:
        self.note_kinds()
        if self.random.random() < 0.05:
            self.desk.compact()
            self.told.clear()
            self.gone = Counter(
                {
                    (label, correct): n
                    for label, (_, *counts) in self.desk.by_class().items()
                    for correct, n in zip([True, False], counts, strict=True)
                }
            )

    def open_again(self) -> None:
        self.desk.close()
        self.desk = self.opened()


@pytest.mark.parametrize("seed", range(8))
def test_what_counts_for_a_decider_counts_for_evaluate(tmp_path: Path, seed: int) -> None:
    history = RandomHistory(tmp_path / "desk.onebit", seed)
    for verb in history.random.permutation(np.array(history.verbs * 6)):
        verb()
    history.guess()  # there is something to evaluate
    history.guess()
    history.tell()
    history.note_kinds()
    assert history.kinds == set(Kind)
    by_class = history.desk.by_class()
    history.desk.close()
    log = read_decider(str(history.path))
    for at, label in enumerate(log.classes.tolist()):
        answers = log.answers[log.guesses == at]
        for correct, counted in zip([True, False], by_class[label][1:], strict=True):
            assert (answers == correct).sum() + history.gone[label, correct] == counted, (label, correct)
    facts = known(log, log.guesses)
    assert facts.unknown == 0
    assert facts.wrong == sum(wrong for _, _, wrong in by_class.values()) - sum(
        n for (_, correct), n in history.gone.items() if correct is False
    )


def test_silence_that_says_wrong_is_a_mistake_of_the_log(tmp_path: Path) -> None:
    """A rival whose guesses are known to be right is better, not worse, than a log whose users turned away."""
    path, now = tmp_path / "desk.onebit", 0.0
    learner = onebit.UniformGuess()
    with onebit.Decider.open(path, ["a", "b"], learner, deadline=1.0, silence="wrong", clock=lambda: now) as desk:
        for _ in range(40):
            ticket = desk.guess({"x": 1.0})
            if ticket.label == "a":
                desk.tell(ticket, True)
            now += 2.0
        desk.shadow({"x": 1.0}, "a", True)
        status = desk.status()
    log = read_decider(str(path), ["a", "b"])
    assert (log.answers == 0).sum() == status.wrong == status.silent > 0
    assert (log.answers == 1).sum() == status.right > 0
    always_a = onebit.BanditPerceptron(classes=["a", "b"]).learn_labels(np.ones((2, log.X.shape[1])), ["a", "a"])
    (_, row) = evaluate(log, [Candidate("always a", always_a, is_frozen=True)])
    assert row.verdict == "surely fewer"
    about = _describe_log(log)
    assert about["silence"].startswith(f"{status.wrong} of the wrong: no answer came in time")
    assert about["left out"] == "1 rounds of shadow mode, which learners do not hear"


def evaluated(*arguments: str) -> tuple[int, str]:
    done = onebit_command("evaluate", *arguments)
    return done.returncode, done.stdout + done.stderr


def state_of(url: str) -> list[object]:
    """Return all that a reader must leave alone."""
    import psycopg

    with psycopg.connect(url) as connection:
        return [
            connection.execute(f"SELECT * FROM onebit.{table} ORDER BY 1, 2").fetchall()
            for table in ("deciders", "about", "events", "snapshots")
        ]


def test_a_decider_in_a_database_is_read_while_an_application_has_it(
    in_database: tuple[str, str], tmp_path: Path
) -> None:
    import psycopg

    url, name = in_database
    with psycopg.connect(url) as connection:
        connection.execute("CREATE ROLE looker LOGIN")
    looker = url.replace("onebit@", "looker@")
    with onebit.Decider.open(url, name=name, classes=["a", "b"], learner=onebit.BanditPerceptron()) as desk:
        with psycopg.connect(url) as connection:
            connection.execute("GRANT USAGE ON SCHEMA onebit TO looker")
            connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA onebit TO looker")
        for i in range(20):
            desk.tell(desk.guess({"x": float(i % 2)}), i % 3 == 0)
        before, out = state_of(url), tmp_path / "out"
        code, said = evaluated(looker, "--name", name, "--learners", "BanditPerceptron UniformGuess", "--out", str(out))
        assert code == 0, said
        assert state_of(url) == before
        assert name in said
        assert f"--name {name}" in (out / "report.html").read_text(encoding="utf-8")
        desk.guess({"x": 1.0})
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP OWNED BY looker")
        with pytest.raises(LogError, match=r"permission denied.*may you read there"):
            read_decider(looker, name=name)
        connection.execute("DROP ROLE looker")


def test_a_reader_sees_one_moment_and_cannot_write(in_database: tuple[str, str]) -> None:
    import psycopg

    from onebit.decider.postgres import PostgresReader

    with onebit.Decider.open(in_database[0], name=in_database[1], classes=2, learner=onebit.UniformGuess()) as desk:
        desk.guess({"x": 1.0})
        log = PostgresReader(*in_database)
        desk.guess({"x": 1.0})
        assert [event.seq for event in log.events()] == list(range(1, log.last_seq + 1))
        assert desk._log.last_seq == log.last_seq + 1
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            log._owning().execute("DELETE FROM onebit.events")
        log.close()
    with psycopg.connect(in_database[0]) as connection:
        of_this = "SELECT id FROM onebit.deciders WHERE name = %s"
        connection.execute(
            f"DELETE FROM onebit.events WHERE kind = 'guessed' AND decider = ({of_this})", [in_database[1]]
        )
    with pytest.raises(LogError, match=r"event \d+ is missing"):
        PostgresReader(*in_database)


def test_a_database_that_cannot_be_read_is_said_without_its_password(in_database: tuple[str, str]) -> None:
    url, name = in_database
    secret = url.replace("onebit@", "onebit:hunter2@")
    with onebit.Decider.open(url, name=name, classes=2, learner=onebit.UniformGuess()):
        with pytest.raises(LogError, match="there is no decider of that name; there are '") as caught:
            read_decider(secret, name="nobody")
        assert "hunter2" not in str(caught.value)
        with pytest.raises(LogError, match="nothing to evaluate") as caught:
            read_decider(secret, name=name)
        assert "hunter2" not in str(caught.value)


def test_a_server_that_is_not_there() -> None:
    require_server()
    with pytest.raises(UnreachableError, match="cannot be reached") as caught:
        read_decider("postgresql://app:hunter2@127.0.0.1:1/decisions", name="routing")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["postgresql://app@db/decisions"], "say which, --name support/routing"),
        (["desk.csv", "--name", "routing"], "--name routing: is for deciders in a database"),
        (["postgresql://app:hunter2@db/decisions", "--name", "a"], "must have no password"),
        (["postgresql://app:hun#ter2@db/decisions", "--name", "a"], "must have no password"),
        (["postgresql://db/decisions?password=hunter2", "--name", "a"], "must have no password"),
        (["postgresql://app:hunter/2@db/decisions", "--name", "a"], "URL of the database must be one such as"),
    ],
)
def test_which_decider_is_meant(arguments: list[str], said: str) -> None:
    pytest.importorskip("psycopg")
    code, heard = evaluated(*arguments, "--learners", "UniformGuess")
    assert code == 1
    assert said in heard
    assert "hun" not in heard


def test_asked_rounds_have_the_label_that_a_person_named(tmp_path: Path) -> None:
    path, problem = str(tmp_path / "desk.onebit"), noisy_problem(200, 3, 4)
    names = ["a", "b", "c"]
    settings: dict[str, Any] = {"wrong_at_most": 0.1, "silence": "wrong", "max_open": 5}
    with onebit.Decider.open(path, classes=names, learner=onebit.BanditPerceptron(), **settings) as desk:
        silent = desk.guess(problem.X[0])
        assert silent.ask
        rounds = []
        for x, code in zip(problem.X[1:], problem.y[1:].tolist(), strict=True):
            ticket = desk.guess(x)
            desk.label(ticket, names[code]) if ticket.ask else desk.tell(ticket, ticket.label == names[code])
            rounds.append((ticket, names.index(ticket.label) == code, code))
        withdrawn, mended = [ticket for ticket, right, _ in rounds if ticket.ask and not right][:2]
        desk.withdraw(withdrawn)
        desk.correct_answer(mended, True)
        desk.guess_many(problem.X[:6])  # the first ticket is closed without an answer
        status = desk.status()
    log = read_decider(path)
    truths = log.truths()[1:200].tolist()
    assert log.answers[0] == -1, "the label was not decided on: silence says nothing about it"
    for (ticket, right, code), truth, answer in zip(rounds, truths, log.answers[1:200].tolist(), strict=True):
        if ticket.id == withdrawn.id:
            assert (truth, answer) == (-1, -1)
        elif ticket.id == mended.id:
            assert (truth, answer) == (names.index(ticket.label), 1)
        else:
            assert (truth, answer) == (code if right or ticket.ask else -1, right)
    n_asked = sum(ticket.ask for ticket, _, _ in rounds)
    facts = _describe_log(log)["asked"]
    assert facts.startswith(f"{n_asked + 1 + 6} rounds, in which a person decided; the suggestion counts as the guess")
    assert facts.endswith(f"Of the decisions made alone {status.right} were right and {status.wrong} wrong")
    heard = []
    for hears in ("facts", "nothing"):
        found = evaluate(log, [Candidate("p", onebit.BanditPerceptron())], hears=hears)
        heard.append(found[1].known)
    assert known(log, log.truths()).wrong == 0
    is_open = (log.answers == 0) & (log.truths() < 0)
    assert known(log, np.zeros(log.n_rounds, int)).unknown == (is_open & (log.guesses != 0)).sum() < is_open.sum()
    assert heard[0].wrong < heard[1].wrong
    code_, said = evaluated(path, "--learners", "BanditPerceptron MulticlassPerceptron", "--out", str(tmp_path / "out"))
    assert code_ == 0, said
    assert "rounds, in which a person decided" in said.replace("\n", " ")


def test_learners_hear_the_label_that_was_named() -> None:
    problem, draw = noisy_problem(150, 3, 4), np.random.default_rng(0)
    logged = draw.integers(3, size=150)
    right = logged == problem.y
    named = np.where(~right & (draw.random(150) < 0.5), problem.y, -1)
    log = replace(logged_rounds(problem.X, logged, right, 1 / 3, classes=3), named=named)
    for learner, label_only in ((onebit.BanditPerceptron(), False), (onebit.MulticlassPerceptron(), True)):
        found = replay(log, Candidate("again", learner), preprocessing="none").tolist()
        learner.set_params(classes=3)
        for t, guess in enumerate(found):
            x, label = problem.X[t : t + 1], int(named[t])
            assert learner.guess(x[0]).label == guess
            if not (label_only and label >= 0):
                learner.learn_from(x, logged[t : t + 1], right[t : t + 1], 1 / 3)
            if label >= 0:
                learner.learn_labels(x, [label])
