"""Calls of a decider as JSON, for the service and for agents: `VERBS` says what is asked, and what is returned.

A verb is a function of a decider. Its other parameters are the fields of a request, and it returns plain JSON values.
"""

from collections.abc import Callable
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Struct, defstruct

from onebit.decider.client import MOST_AT_ONCE
from onebit.decider.decider import Decider
from onebit.decider.log import to_json
from onebit.decider.report import report
from onebit.decider.tickets import Kind
from onebit.encoding import record_from_json
from onebit.experiments.entries import kernel_names, parse_player
from onebit.experiments.players import build
from onebit.learners import Learner, all_learners
from onebit.machine_memory import claim_memory

_MOST_CLASSES = 100_000
_MOST_BYTES_A_PAGE = 4 << 20  # maximum bytes of a page of the log, unless a single event is larger


def _shown(description: str | None, kind: str | list[str], **more: Any) -> Meta:
    """Describe a field of any type, which the decider itself checks: for schemas, and to complete "… must be …"."""
    return Meta(description=description, extra_json_schema={"type": kind, **more})


_A_LABEL = "a text of 1 to 200 letters or a whole number below 2^53"  # larger ones are not exact in all JSON parsers
_Label = Annotated[str, Meta(min_length=1, max_length=200)] | Annotated[int, Meta(gt=-(2**53), lt=2**53)]
_LABELS = f"a list of at most {_MOST_CLASSES} labels allowed now, each {_A_LABEL}; all, if left out"
_RECORD = (
    "an object with named values (numbers, truth values, words, texts, lists of words), or a list of numbers; use the "
    "same names every time, though some may be missing"
)
_RightLabel = Annotated[_Label, Meta(description=f"the right label, {_A_LABEL}")]
_Record = Annotated[Any, _shown(_RECORD, ["object", "array"])]
_KEY = "a name of this request, of at most 200 letters: the same key gets the first answer again, and counts once"
_Key = Annotated[Any, _shown(_KEY, ["string", "null"])]
_Id = Annotated[Any, _shown("the id that guess returned", "string")]
_Correct = Annotated[Any, _shown("whether the label was right", "boolean")]
_CorrectOrNull = Annotated[Any, _shown("whether that was right; null if it is not known", ["boolean", "null"])]
_CHANCE = "above 0 and at most 1, the chance of a label that you drew"
_Propensity = Annotated[Annotated[float, Meta(gt=0.0, le=1.0)] | None, Meta(description=_CHANCE)]
_Deadline = Annotated[Any, _shown("seconds until a ticket is closed without an answer", ["number", "null"])]
_Silence = Annotated[Any, _shown("what a ticket closed without an answer means", "string", enum=["nothing", "wrong"])]
_Floor = Annotated[Any, _shown("the share of guesses drawn uniformly, from 0 to 1", "number")]
_Count = Annotated[Any, _shown(None, "integer")]
_WRONG = "the share wrong among decisions that are not asked about, between 0 and 1; null: it never asks"
_WrongAtMost = Annotated[Any, _shown(_WRONG, ["number", "null"])]
_AskAtMost = Annotated[Any, _shown("the share of guesses that are asked about, between 0 and 1", ["number", "null"])]
_Number = Annotated[int, Meta(ge=0, lt=10**16, description="a whole number from 0")]
_Limit = Annotated[int, Meta(ge=0, le=MOST_AT_ONCE, description=f"a whole number from 0 to {MOST_AT_ONCE}")]
_Json = dict[str, Any]

_OWN = "one of onebit's own, such as BanditSVM or Banditron:exploration=0.02"

_DRAWN = [("id", str), ("label", Any), ("propensity", float), ("time", str)]
_TICKET = defstruct("TicketResult", [*_DRAWN, ("confidence", float | None), ("ask", bool), ("ranking", list[Any])])
_NEWS = defstruct("TellResult", [("news", bool)])
_DONE = defstruct("DoneResult", [("done", bool)])
_SHADOW = defstruct("ShadowResult", [("label", Any), ("agrees", bool)])
_CLASSES = defstruct("ClassesResult", [("classes", list[Any])])
_EVENTS = defstruct("EventsResult", [("events", list[Any]), ("next", int)])

# The verbs, described for agents.


def _guess(
    decider: Decider,
    record: _Record,
    among: Annotated[Annotated[list[_Label], Meta(max_length=_MOST_CLASSES)] | None, Meta(description=_LABELS)] = None,
    key: _Key = None,
) -> _Json:
    """Ask which label to pick for a record, before you act.

    Returns id, label, propensity (the chance with which it was drawn, not how sure it is), confidence (how likely it is
    to be right; null until there is enough feedback), ask, ranking (the best labels, best first) and time. If ask is
    true, the label is a suggestion only: ask your user which label is right, show the ranking, and call label with the
    answer. Otherwise do what the label says, then tell how it went, with the id.
    Example: {"record": {"task": "sum up a contract", "pages": 12, "language": "de"}, "key": "task-17"}
    """
    if isinstance(decider, Decider):  # the service of a RemoteDecider checks memory itself
        claim_memory(decider.ticket_bytes(), more=True)  # until the ticket is closed
    return plain(decider.guess(_read_record(record), among, key=key))  # type: ignore[no-any-return]


def _tell(decider: Decider, id: _Id, correct: _Correct) -> _Json:
    """Say whether the label of a guess was right, now or days later.

    Returns news: false if that was known already; saying it again does no harm. If the opposite was told before by
    mistake, use correct. Example: {"id": "5-9f86d081884c7d65", "correct": true}
    """
    return {"news": decider.tell(id, correct)}


def _label(decider: Decider, id: _Id, label: _RightLabel) -> _Json:
    """Say which label is right for a guess, now or days later; it teaches more than tell.

    Use it where a person named the right label, such as where guess returned ask: true. Returns news: false if that was
    known already. Example: {"id": "5-9f86d081884c7d65", "label": "refund"}
    """
    return {"news": decider.label(id, label)}


def _correct(
    decider: Decider,
    id: _Id,
    correct: Annotated[Any, _shown("whether the label was right", ["boolean", "null"])] = None,
    label: Annotated[_Label | None, Meta(description=f"the right label, {_A_LABEL}, in place of correct")] = None,
) -> _Json:
    """Say that an answer given before was a mistake, and what it should have been: correct, or the right label.

    For a ticket without an answer use tell. Takes a replay. Example: {"id": "5-9f86d081884c7d65", "correct": false}
    """
    decider.correct_answer(id, correct, label=label)
    return {"done": True}


def _withdraw(decider: Decider, id: _Id) -> _Json:
    """Say that an answer given before was a mistake, and that the right one is not known.

    Takes a replay. Example: {"id": "5-9f86d081884c7d65"}
    """
    decider.withdraw(id)
    return {"done": True}


def _shadow(
    decider: Decider,
    record: _Record,
    label: Annotated[_Label, Meta(description=f"the label that you picked, {_A_LABEL}")],
    correct: _CorrectOrNull,
    propensity: _Propensity = None,
    key: _Key = None,
) -> _Json:
    """Teach it with a decision that you made yourself, without guess.

    Say what you picked, and whether that was right (null if it is not known). Returns the label it would have picked.
    Example: {"record": {"task": "translate", "pages": 2}, "label": "small-model", "correct": true, "key": "t-8"}
    """
    return decider.shadow(_read_record(record), label, correct, propensity=propensity, key=key)._asdict()


def _add_class(decider: Decider, label: Annotated[_Label, Meta(description=_A_LABEL)]) -> _Json:
    """Add a label that may be picked from now on.

    Labels cannot be removed; leave one out with among. Returns all labels. Example: {"label": "web-search"}
    """
    _check_classes(len(decider.classes) + 1)
    decider.add_class(label)
    return {"classes": decider.classes}


def _change(
    decider: Decider,
    deadline: _Deadline = UNSET,
    silence: _Silence = UNSET,
    exploration_floor: _Floor = UNSET,
    max_open: _Count = UNSET,
    wrong_at_most: _WrongAtMost = UNSET,
    ask_at_most: _AskAtMost = UNSET,
) -> _Json:
    """Change deadline, silence, exploration_floor, max_open, wrong_at_most or ask_at_most, from now on.

    Example: {"deadline": 604800}
    """
    given = {"deadline": deadline, "silence": silence, "exploration_floor": exploration_floor, "max_open": max_open}
    given |= {"wrong_at_most": wrong_at_most, "ask_at_most": ask_at_most}
    decider.change(**{name: value for name, value in given.items() if value is not UNSET})
    return decider.settings.changeable()


def _status(decider: Any) -> _Json:
    """Return the labels there are, and how many guesses were right, wrong, and still wait for an answer."""
    if not isinstance(decider, Decider):
        return decider.status()  # type: ignore[no-any-return]
    return {name: value for name, value in plain(decider.status()).items() if name != "path"}


def _report(decider: Any) -> _Json:
    """Return how well it does: mistakes with 95 % intervals, by label and recently, and alarms with a likely cause."""
    return plain(report(decider) if isinstance(decider, Decider) else decider.report())  # type: ignore[no-any-return]


def _log_page(decider: Decider, after: _Number = 0, limit: _Limit = MOST_AT_ONCE) -> _Json:
    """Return events after number ?after=, at most ?limit= (up to 1000) and 4 MB, or one event that is larger.

    In the result next is the ?after= of the next page.
    """
    # Limited in size, but with at least one event: with labels by name, without data for replays.
    page: list[msgspec.Raw] = []
    n_bytes, classes = 0, decider.classes
    for event in islice(decider.events(after), limit):
        body = {name: value for name, value in event.body.items() if name != "additions"}
        for name in ("label", "wanted", "would"):
            if type(body.get(name)) is int and event.kind != Kind.CLASS_ADDED:
                body[name] = classes[body[name]]
        for name in ("among", "ranking"):
            if body.get(name) is not None:
                body[name] = [classes[i] for i in body[name]]
        about = {name: getattr(event, name) for name in ("seq", "time", "kind", "ticket", "key")}
        text = to_json(about | {"body": body})  # one at a time, to save memory
        n_bytes += len(text)
        if page and n_bytes > _MOST_BYTES_A_PAGE:
            break
        page.append(msgspec.Raw(text))
        after = event.seq
    return {"events": page, "next": after}


_READS = {"read_only_hint": True, "open_world_hint": False}
_ONCE = {"read_only_hint": False, "destructive_hint": False, "idempotent_hint": True, "open_world_hint": False}
_EVERY_TIME = _ONCE | {"idempotent_hint": False}


class Verb(NamedTuple):
    """A call of a decider in JSON."""

    call: Callable[..., _Json]
    result: Any = _Json
    """The type of its result, for the documentation."""
    hints: dict[str, bool] | None = None
    """What hosts of agents are told of the tool; None if it is none."""


VERBS = {
    "guess": Verb(_guess, _TICKET, _EVERY_TIME),
    "tell": Verb(_tell, _NEWS, _ONCE),
    "label": Verb(_label, _NEWS, _ONCE),
    "correct": Verb(_correct, _DONE, _ONCE),
    "withdraw": Verb(_withdraw, _DONE, _ONCE),
    "shadow": Verb(_shadow, _SHADOW, _EVERY_TIME),
    "add_class": Verb(_add_class, _CLASSES, _EVERY_TIME),
    "status": Verb(_status, hints=_READS),
    "report": Verb(_report, hints=_READS),
    "change": Verb(_change),
    "log": Verb(_log_page, _EVENTS),
}


class NewDecider(Struct, forbid_unknown_fields=True, kw_only=True):
    """Settings of a new decider."""

    deadline: _Deadline = UNSET
    silence: _Silence = UNSET
    exploration_floor: _Floor = UNSET
    max_open: _Count = UNSET
    wrong_at_most: _WrongAtMost = UNSET
    ask_at_most: _AskAtMost = UNSET
    classes: Annotated[int | list[_Label], Meta(description=f"a count or a list of labels, each {_A_LABEL}")]
    learner: Annotated[str | None, Meta(description=_OWN)] = None
    kinds: Annotated[dict[str, str] | None, Meta(description="an object of columns and their kinds")] = None
    seed: _Count = UNSET

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `Decider.open`."""
        n_classes = self.classes if isinstance(self.classes, int) else len(self.classes)
        _check_classes(n_classes)
        given = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not UNSET}
        if self.learner is not None:
            given["learner"] = own_learner(self.learner, given.get("seed", 0))
        return given


def _check_classes(n_classes: int) -> None:
    if n_classes > _MOST_CLASSES:
        raise ValueError(f"a decider of the service may have {_MOST_CLASSES} classes at most; got {n_classes}")


def _read_record(value: Any) -> Any:
    record = record_from_json(value)
    if not isinstance(record, (dict, list)):
        raise ValueError(f"record must be an object with named values, or a list of numbers; got {record!r:.80}")
    return record


def own_learner(text: str, seed: int = 0) -> Learner:
    """Return one of onebit's own learners; requests cannot import other classes."""
    name, _, settings = text.partition(":")
    if name not in {cls.__name__ for cls in all_learners()}:
        raise ValueError(f"learner must be {_OWN}; got {text!r:.80}")
    kernels = {written.partition(":")[0] for written in kernel_names()} | {"none", "auto"}
    for part in settings.split(","):
        setting, _, value = part.partition("=")
        if setting.strip() == "kernel" and value.strip().partition(":")[0].lower() not in kernels:
            raise ValueError(f"kernel must be one of {', '.join(sorted(kernels))}; got {value.strip()!r:.80}")
    made = build(parse_player(text).spec)
    return made.set_params(seed=seed) if "seed" in made.get_params(deep=False) else made


def plain(value: Any) -> Any:
    """Return a result as JSON can write it: named tuples are dicts, other tuples lists, and times texts."""
    if hasattr(value, "_asdict"):
        return {name: plain(each) for name, each in value._asdict().items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value.isoformat() if isinstance(value, datetime) else value
