"""A log of rounds: which label was guessed, with which propensity, and whether it was right.

It comes from lists, from a file with named columns, or from a learner that is played with a floor of random guesses.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from onebit.encoding import Encoder
from onebit.inputs import Floats, Integers, check_number, check_real, check_rows, check_seed, take
from onebit.labels import check_classes, check_labels, encode_labels, infer_classes
from onebit.learners import Learner
from onebit.streams.data_set import Matrix, as_matrix
from onebit.streams.files import open_table, plain_name
from onebit.streams.reading import PLAIN, Reading

if TYPE_CHECKING:
    from onebit.streams.table import Table

RIGHT, WRONG, UNKNOWN = 1, 0, -1  # the answer to a guess in a log
_ANSWERS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "right", "yes", "1", "1.0"), True),
    **dict.fromkeys(("false", "wrong", "no", "0", "0.0"), False),
    **dict.fromkeys(("", "none", "null", "nan", "na", "n/a", "unknown", "?")),
}
_MEANINGS = {"guess": "guesses", "correct": "answers", "propensity": "propensities", "among": "allowed"}


@dataclass(frozen=True, eq=False)
class LoggedRounds:
    """Logged rounds, in their order; `logged_rounds` makes one from plain lists."""

    name: str
    """What it is called in tables and figures."""
    X: Matrix
    classes: npt.NDArray[Any]
    """The labels that could be guessed."""
    guesses: Integers
    """The label that was guessed in each round, as a position in `classes`."""
    answers: Integers
    """1 for right, 0 for wrong, −1 where unknown."""
    propensities: Floats
    """The chance that the guessed label had when it was drawn; NaN where that is not known."""
    among: tuple[Integers | None, ...] | None = None
    """The labels that were allowed in each round, as positions; None where all were."""
    is_complete: bool = False
    """Whether the right label is always one of `classes`. Then of two classes "not the one" proves the other."""
    named: Integers | None = None
    """The label that a person named as the right one in each round, as a position; −1 where nobody did."""
    about: tuple[tuple[str, str], ...] = ()
    """A summary of what was read."""

    @property
    def n_rounds(self) -> int:
        """How many rounds were played."""
        return len(self.guesses)

    @property
    def is_answered(self) -> npt.NDArray[np.bool_]:
        """Whether the answer of each round is known."""
        is_known: npt.NDArray[np.bool_] = self.answers != UNKNOWN
        return is_known

    @property
    def n_allowed(self) -> Integers:
        """How many labels were allowed in each round."""
        among, n_classes = self.among or [None] * self.n_rounds, len(self.classes)
        return np.array([n_classes if allowed is None else len(allowed) for allowed in among])

    def truths(self) -> Integers:
        """Return the right label of every round in which it is known, as a position; −1 where it is not."""
        right = np.where(self.answers == RIGHT, self.guesses, -1)
        if self.is_complete and len(self.classes) == 2:
            right = np.where(self.answers == WRONG, 1 - self.guesses, right)
        return right if self.named is None else np.where(self.named >= 0, self.named, right)


def logged_rounds(
    X: Any,
    guesses: Any,
    correct: Any,
    propensities: Any = None,
    *,
    among: Sequence[Any] | None = None,
    classes: Any = None,
    name: str = "log",
) -> LoggedRounds:
    """Check a log of rounds and return it.

    Parameters
    ----------
    X : array or sparse matrix of shape (rounds, features)
        The rows, in the order in which they were played.
    guesses : array of shape (rounds,)
        The label that was guessed in each round.
    correct : sequence of True, False and None
        Whether it was right; None where unknown.
    propensities : array of float, float or None
        The chance that the guessed label had, in (0, 1]; NaN where it is not known. Without them there are bounds, and
        no estimates.
    among : sequence of lists of labels and None, optional
        The labels that were allowed in each round; None where all were.
    classes : int or list, optional
        All labels that there are: the right one is always among them. Without it the labels are those that were guessed
        or allowed, and there may be others.
    name : str
        What it is called in tables and figures.

    Examples
    --------
    >>> log = logged_rounds([[0.5], [1.5], [2.5]], ["tea", "milk", "tea"], [True, False, None], classes=["milk", "tea"])
    >>> log.classes[log.truths()[:2]].tolist()
    ['tea', 'tea']
    """
    rows = check_rows(X)
    n = rows.shape[0]
    if n == 0:
        raise ValueError(f"{name}: the log has no rounds")
    guessed = check_labels(guesses, n, "guesses").tolist()
    answered = _listed("correct", correct.tolist() if isinstance(correct, np.ndarray) else correct, n)
    allowed = [None] * n if among is None else _listed("among", among, n)
    for t, each in enumerate(allowed):
        if each is not None and (isinstance(each, (str, bytes)) or not isinstance(each, Iterable)):
            raise ValueError(f"among[{t}] must be a list of labels, or None where all are allowed; got {each!r:.80}")
        allowed[t] = None if each is None else list(each)
    met = [label for each in allowed if each is not None for label in each]
    known = infer_classes(check_labels([*guessed, *met], n + len(met), "guesses"))
    listed = known if classes is None else check_classes(classes)
    codes = encode_labels(check_labels(guesses, n, "guesses"), listed, "guesses", "list every label in classes")
    places = tuple(None if each is None else _places(each, listed, t, guessed[t]) for t, each in enumerate(allowed))
    for t, answer in enumerate(answered):
        if answer is not None and not isinstance(answer, (bool, np.bool_)):
            raise ValueError(f"correct[{t}] must be True, False, or None where unknown; got {answer!r:.80}")
    answers = np.array([UNKNOWN if answer is None else int(answer) for answer in answered], dtype=np.int64)
    if not (answers != UNKNOWN).any():
        raise ValueError(
            f"{name}: correct is None in all of the {n} rounds; at least one must be answered, right or wrong"
        )
    of_all = np.nan if propensities is None else np.asarray(propensities, dtype=np.float64)
    drawn_with = np.broadcast_to(of_all, (n,)).copy()
    given = drawn_with[~np.isnan(drawn_with)]
    check_real(given if len(given) else np.ones(1), "propensities")
    wrong = (drawn_with <= 0.0) | (drawn_with > 1.0)
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(
            f"propensities[{at}] must be above 0 and at most 1: the chance that the guessed label had; "
            f"got {drawn_with[at]:g}. Where it is not known, leave it empty (NaN)"
        )
    allowed_in, is_complete = None if among is None else places, classes is not None
    return LoggedRounds(name, as_matrix(rows), listed, codes, answers, drawn_with, allowed_in, is_complete)


def _listed(name: str, given: Any, n: int) -> list[Any]:
    listed = list(given)
    if len(listed) != n:
        raise ValueError(f"{name} must have {n} entries, one for each round; got {len(listed)}")
    return listed


def _places(allowed: list[Any], classes: npt.NDArray[Any], t: int, guess: Any) -> Integers:
    """Return allowed labels as positions; that which was guessed must be one of them."""
    if not allowed:
        raise ValueError(f"among[{t}] must have at least one label; got none. Where all are allowed, leave it empty")
    labels = check_labels(allowed, len(allowed), f"among[{t}]")
    places = np.unique(encode_labels(labels, classes, f"among[{t}]", "list every label in classes"))
    if guess not in classes[places].tolist():
        raise ValueError(f"guesses[{t}] is {guess!r}, which among[{t}] does not allow; mend one of them")
    return places


class LogColumns(NamedTuple):
    """The columns of a file that record what happened; all others are features.

    A name that is None stands for the usual one, if the file has it: "propensity" and "among".
    """

    guess: Annotated[str, "Column with the label that was guessed."] = "guess"
    correct: Annotated[str, "Column with right or wrong, true or false, 1 or 0; empty if not known."] = "correct"
    propensity: Annotated[
        str | None, "Column with the chance the guess was drawn with; otherwise propensity, if it is there."
    ] = None
    among: Annotated[
        str | None, "Column with the labels that were allowed, a|b|c; otherwise among, if it is there."
    ] = None


_USUAL = LogColumns()


def read_log(
    path: str | Path, columns: LogColumns = _USUAL, *, classes: Sequence[str] | None = None, reading: Reading = PLAIN
) -> LoggedRounds:
    r"""Read a log of rounds from a table: one row a round, in the order in which they were played.

    Parameters
    ----------
    path : str or Path
        A CSV or other delimited text, Parquet or ARFF file.
    columns : LogColumns
        The names of the columns for what was guessed, whether it was right (true or false, right or wrong, 1 or 0,
        empty where unknown), with which propensity (empty where unknown), and which labels were allowed
        (with ``|`` between them; empty where all were). All other columns are features.
    classes : sequence of str, optional
        As for `logged_rounds`.
    reading : Reading
        Further reading options; the label is not used.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = path.write_text("length,guess,correct,propensity\n3.5,mail,true,0.9\n1.5,phone,false,0.2\n0.5,mail,,0.9\n")
    >>> log = read_log(path)
    >>> log.classes[log.guesses].tolist(), log.answers.tolist(), log.propensities.tolist()
    (['mail', 'phone', 'mail'], [1, 0, -1], [0.9, 0.2, 0.9])
    """
    asked = reading._replace(label=columns.guess).checked()
    with open_table(Path(path), asked) as table:
        return _understand(table, asked, columns, classes)


def _understand(table: "Table", asked: Reading, columns: LogColumns, classes: Sequence[str] | None) -> LoggedRounds:
    from onebit.streams.table import read_columns  # needs polars

    roles: dict[str, int] = {}
    for role, name in columns._asdict().items():
        try:
            if name is not None:
                roles[role] = table.position(name)
            elif role in table.names:
                roles[role] = table.names.index(role)
        except ValueError as error:
            raise ValueError(f"{error}. Name the right one with --{role}") from error
    names = {_MEANINGS[role]: repr(table.names[place]) for role, place in roles.items()}
    if len(set(roles.values())) < len(roles):
        raise ValueError(
            f"{table.path}: a column cannot mean two things; guess, correct and the others are "
            f"{', '.join(names.values())}"
        )
    others = [place for role, place in roles.items() if role != "guess"]
    found = read_columns(table, asked._replace(drop=(*asked.drop, *others)))

    def cells(role: str, read: Callable[[str], Any]) -> list[Any] | None:
        """Read the words of a column, if there is one; errors name the cell."""
        if role not in roles:
            return None
        values = []
        for row, cell in enumerate(table.frame.to_series(roles[role]).to_list()):
            try:
                values.append(read("" if cell is None else str(cell).strip()))
            except ValueError as error:
                raise ValueError(f"{table.at(row, roles[role])}: is {cell!r}{error}") from error
        return values

    log = logged_rounds(
        Encoder.of_table(found.features)[1],
        np.array([str(label) for label in found.labels.tolist()]),
        cells("correct", _answer),
        cells("propensity", _propensity),
        among=cells("among", lambda word: [part.strip() for part in word.split("|") if part.strip()] or None),
        classes=classes,
        name=plain_name(table.path),
    )
    facts = {name: found.about[name] for name in ("read as", "columns", "missing")}
    return replace(log, about=tuple((facts | names).items()))


def _answer(word: str) -> bool | None:
    if word.lower() not in _ANSWERS:
        raise ValueError(
            ", which is neither right nor wrong; write true or false (right or wrong, yes or no, 1 or 0), and nothing "
            "where unknown"
        )
    return _ANSWERS[word.lower()]


def _propensity(word: str) -> float:
    propensity = np.inf
    with suppress(ValueError):
        propensity = np.nan if _ANSWERS.get(word.lower(), True) is None else float(word.replace(",", "."))
    if propensity <= 0.0 or propensity > 1.0:
        raise ValueError(
            "; a propensity is above 0 and at most 1: the chance that the guessed label had. Leave the cell "
            "empty where it is not known"
        )
    return propensity


def play_with_floor(
    learner: Learner, X: Any, y: Any, *, floor: float = 0.02, seed: int = 0, name: str = "log"
) -> LoggedRounds:
    """Play a stream with a least propensity for every label, and return the log.

    In a share `floor` of the rounds the label is drawn uniformly, and the learner learns from it by `learn_from`; in
    the others it plays as usual. So each of K labels has a propensity of at least floor/K, and the log holds the
    propensity of the guessed label.

    Parameters
    ----------
    learner : Learner
        With its classes; it continues from its state.
    X : array or sparse matrix of shape (rounds, features)
        The rounds.
    y : array of shape (rounds,)
        Their labels, used only to answer right or wrong.
    floor : float
        How often a label is drawn uniformly, in [0, 1]; 0 to play as usual, and log the propensities.
    seed : int
        Seed of the floor's random numbers; the learner has its own.
    name : str
        What the log is called.

    Examples
    --------
    >>> import onebit
    >>> X, y = onebit.streams.paper_strong(rounds=100, seed=1)
    >>> log = play_with_floor(onebit.BanditPerceptron(classes=9), X, y, floor=0.09)
    >>> float(log.propensities.min().round(3)), float(log.propensities.max().round(3))
    (0.01, 0.92)
    """
    rate = check_number("floor", floor, at_least=0.0, at_most=1.0)
    rows = check_rows(X)
    labels = check_labels(y, rows.shape[0])
    learner.begin(rows.shape[1], fresh=False)
    classes = learner.classes_
    truths = encode_labels(labels, classes)
    random = np.random.default_rng(check_seed(seed))
    is_drawn, drawn = random.random(len(truths)) < rate, random.integers(len(classes), size=len(truths))
    guesses, propensities = np.empty(len(truths), dtype=np.int64), np.empty(len(truths))
    for t, truth in enumerate(truths.tolist()):
        row: Any = take(rows, t, t + 1)
        if is_drawn[t]:
            own = float(learner.probabilities(row)[0, drawn[t]])
            guesses[t], propensities[t] = drawn[t], (1.0 - rate) * own + rate / len(classes)
            label = classes[drawn[t] : drawn[t] + 1]
            learner.learn_from(row, label, bool(drawn[t] == truth), min(1.0, float(propensities[t])))
        else:
            guess = learner.guess(row)
            guesses[t], propensities[t] = guess.index, (1.0 - rate) * guess.propensity + rate / len(classes)
            extra = {"label": classes[truth : truth + 1].tolist()[0]} if learner.full_information else {}
            learner.tell(guess, guess.index == truth, **extra)
    propensities = np.minimum(propensities, 1.0)  # rounding
    return logged_rounds(X, classes[guesses], guesses == truths, propensities, classes=classes, name=name)
