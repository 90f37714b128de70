"""Calls of a decider as JSON, for the service and for agents: what is asked, checked by msgspec, and what is returned.

A request is a class. Those that a decider answers are called with it, and return plain JSON values.
"""

import json
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, TypedDict, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct

from onebit.decider.decider import Decider
from onebit.decider.log import to_json
from onebit.decider.report import report
from onebit.decider.tickets import Event, Kind, Ticket
from onebit.encoding import record_from_json
from onebit.experiments.entries import kernel_names, parse_player
from onebit.experiments.players import build
from onebit.inputs import brief
from onebit.learners import Learner, all_learners
from onebit.machine_memory import claim_memory
from onebit.typed_json import parse

_ITEM = re.compile(r"`\$\[(\d+)\]")  # in an error of msgspec: the item of a list

MOST_CLASSES = 100_000
MOST_BYTES_A_PAGE = 4 << 20  # maximum bytes of a page of the log, unless a single event is larger

Call = Callable[[Decider], Any]  # A call of a decider with a result of plain JSON values
_Struct = TypeVar("_Struct", bound=Struct)


# Checking. Descriptions are shown in schemas, and complete the message "… must be …".


def read_json(body: bytes) -> Any:
    """Parse a JSON body, or raise ValueError."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return msgspec.json.decode(body)
    try:
        value = parse(body.decode())
        if b"\\ud" in body or b"\\uD" in body:
            json.dumps(value, ensure_ascii=False).encode()  # lone surrogates cannot be stored
    except UnicodeDecodeError as error:
        raise ValueError("the body must be JSON in UTF-8") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"the body must be JSON: {error}") from error
    return value


def parsed(kind: type[_Struct], body: bytes, takes_lists: bool = False) -> _Struct | list[Any]:
    """Return a JSON body as a struct, or as a list of plain values if it is one and may be; raises ValueError."""
    value = read_json(body)
    return value if takes_lists and isinstance(value, list) else checked(kind, value)


def checked(kind: type[_Struct], value: Any, strict: bool = True) -> _Struct:
    """Return parsed JSON as a struct, or raise ValueError that names the field, the value and the remedy.

    >>> checked(AddClass, {"label": 1.5})
    Traceback (most recent call last):
        ...
    ValueError: label must be a text of 1 to 200 letters or a whole number below 2^53; got 1.5
    """
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise ValueError(_explained(kind, value, strict) or str(error)) from None


def _explained(kind: type[Struct], value: Any, strict: bool) -> str:
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    needed = [name for name, field in fields.items() if field.required]
    if not isinstance(value, dict):
        return f"a JSON object with {', '.join(needed or fields)} is needed; got {type(value).__name__}"
    if missing := [name for name in needed if name not in value]:
        return f"{missing[0]} is missing; needed: {', '.join(needed)}"
    if unknown := [name for name in value if name not in fields]:
        return f"there is no field {unknown[0]!r:.80}; there are {', '.join(fields)}"
    for name, each in value.items():
        try:
            msgspec.convert(each, fields[name].type, strict=strict)
        except msgspec.ValidationError as error:
            described = [meta.description for meta in getattr(fields[name].type, "__metadata__", ())]
            reason = f"must be {described[-1]}" if described and described[-1] else f"is wrong: {error}"
            at = _ITEM.search(str(error)) if isinstance(each, list) else None
            return f"{name} {reason}; got {brief(each if at is None else each[int(at[1])])}"
    return ""


_A_LABEL = "a text of 1 to 200 letters or a whole number below 2^53"  # larger ones are not exact in all JSON parsers
_Label = Annotated[str, Meta(min_length=1, max_length=200)] | Annotated[int, Meta(gt=-(2**53), lt=2**53)]


def _shown(description: str | None, kind: str | list[str], **more: Any) -> Meta:
    """Return what the schema says of a field of any type, which the decider itself checks."""
    return Meta(description=description, extra_json_schema={"type": kind, **more})


_Record = Annotated[
    Any,
    _shown(
        "an object with named values (numbers, truth values, words, texts, lists of words), or a list of numbers; use "
        "the same names every time, though some may be missing",
        ["object", "array"],
    ),
]
_Key = Annotated[
    Any,
    _shown(
        "a name of this request, of at most 200 letters, such as the id of the task, so that asking again after a lost "
        "reply counts once: the same key gets the first answer again",
        ["string", "null"],
    ),
]
_Id = Annotated[Any, _shown("the id that guess returned", "string")]
_Correct = Annotated[Any, _shown("whether the label was right", "boolean")]
_CorrectOrNull = Annotated[Any, _shown("whether that was right; null if it is not known", ["boolean", "null"])]
_Deadline = Annotated[Any, _shown("seconds until a ticket is closed without an answer", ["number", "null"])]
_Silence = Annotated[Any, _shown("what a ticket closed without an answer means", "string", enum=["nothing", "wrong"])]
_Floor = Annotated[Any, _shown("the share of guesses drawn uniformly, from 0 to 1", "number")]
_Count = Annotated[Any, _shown(None, "integer")]


# Requests.


class _Request(Struct, forbid_unknown_fields=True):
    pass


class Guess(_Request):
    """Ask for a label for a record."""

    record: _Record
    among: Annotated[
        Annotated[list[_Label], Meta(max_length=MOST_CLASSES)] | None,
        Meta(description=f"a list of at most {MOST_CLASSES} labels allowed now, each {_A_LABEL}; all, if left out"),
    ] = None
    key: _Key = None

    def __call__(self, decider: Decider) -> "TicketResult":
        """Make the call."""
        if isinstance(decider, Decider):  # the service of a RemoteDecider checks memory itself
            claim_memory(decider.ticket_bytes(), more=True)  # until the ticket is closed
        return ticket_result(decider.guess(_record(self.record), self.among, key=self.key))


class Tell(_Request):
    """Give feedback for a guess."""

    id: _Id
    correct: _Correct

    def __call__(self, decider: Decider) -> "TellResult":
        """Make the call."""
        return {"news": decider.tell(self.id, self.correct)}


class Correct(_Request):
    """Correct earlier feedback."""

    id: _Id
    correct: _Correct

    def __call__(self, decider: Decider) -> "DoneResult":
        """Make the call."""
        decider.correct_answer(self.id, self.correct)
        return {"done": True}


class Withdraw(_Request):
    """Withdraw earlier feedback."""

    id: _Id

    def __call__(self, decider: Decider) -> "DoneResult":
        """Make the call."""
        decider.withdraw(self.id)
        return {"done": True}


class Shadow(_Request):
    """Teach with a decision of the application."""

    record: _Record
    label: Annotated[_Label, Meta(description=f"the label that you picked, {_A_LABEL}")]
    correct: _CorrectOrNull
    propensity: Annotated[
        Annotated[float, Meta(gt=0.0, le=1.0)] | None,
        Meta(description="above 0 and at most 1, the chance of a label that you drew"),
    ] = None
    key: _Key = None

    def __call__(self, decider: Decider) -> "ShadowResult":
        """Make the call."""
        found = decider.shadow(_record(self.record), self.label, self.correct, propensity=self.propensity, key=self.key)
        return {"label": found.label, "agrees": found.agrees}


class AddClass(_Request):
    """Add a label."""

    label: Annotated[_Label, Meta(description=_A_LABEL)]

    def __call__(self, decider: Decider) -> "ClassesResult":
        """Make the call."""
        if len(decider.classes) >= MOST_CLASSES:
            raise ValueError(f"a decider of the service may have {MOST_CLASSES} classes; it has as many")
        decider.add_class(self.label)
        return {"classes": decider.classes}


class _Changeable(_Request, kw_only=True):
    deadline: _Deadline = UNSET
    silence: _Silence = UNSET
    exploration_floor: _Floor = UNSET
    max_open: _Count = UNSET


class Change(_Changeable):
    """Change settings."""

    def __call__(self, decider: Decider) -> dict[str, Any]:
        """Make the call."""
        decider.change(**_given(self))
        return decider.settings.changeable()


class NewDecider(_Changeable, kw_only=True):
    """Settings of a new decider."""

    classes: Annotated[int | list[_Label], Meta(description=f"a count or a list of labels, each {_A_LABEL}")]
    learner: Annotated[
        str | None, Meta(description="one of onebit's own, such as BanditSVM or Banditron:exploration=0.02")
    ] = None
    kinds: Annotated[dict[str, str] | None, Meta(description="an object of columns and their kinds")] = None
    seed: _Count = UNSET

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `Decider.open`."""
        n_classes = self.classes if isinstance(self.classes, int) else len(self.classes)
        if n_classes > MOST_CLASSES:
            raise ValueError(f"a decider of the service may have {MOST_CLASSES} classes at most; got {n_classes}")
        given = _given(self)
        if self.learner is not None:
            given["learner"] = own_learner(self.learner, given.get("seed", 0))
        return given


class Status(_Request):
    """Ask for the counts."""

    def __call__(self, decider: Decider) -> dict[str, Any]:
        """Make the call."""
        return status(decider) if isinstance(decider, Decider) else decider.status()


class Report(_Request):
    """Ask for the report."""

    def __call__(self, decider: Decider) -> dict[str, Any]:
        """Make the call."""
        return plain(report(decider)) if isinstance(decider, Decider) else decider.report()  # type: ignore[no-any-return]


def _given(request: Struct) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(request).items() if value is not UNSET}


def _record(value: Any) -> Any:
    record = record_from_json(value)
    if not isinstance(record, (dict, list)):
        raise ValueError(f"record must be an object with named values, or a list of numbers; got {record!r:.80}")
    return record


def own_learner(text: str, seed: int = 0) -> Learner:
    """Return one of onebit's own learners; requests cannot import other classes.

    >>> own_learner("Banditron:exploration=0.1")
    Banditron(exploration=0.1)
    >>> own_learner("os:system")
    Traceback (most recent call last):
        ...
    ValueError: learner must be one of onebit's own, such as BanditSVM or Banditron:exploration=0.02; got 'os:system'
    """
    name, _, settings = text.partition(":")
    if name not in {cls.__name__ for cls in all_learners()}:
        own = "one of onebit's own, such as BanditSVM or Banditron:exploration=0.02"
        raise ValueError(f"learner must be {own}; got {text!r:.80}")
    kernels = {written.partition(":")[0] for written in kernel_names()} | {"none", "auto"}
    for part in settings.split(","):
        setting, _, value = part.partition("=")
        if setting.strip() == "kernel" and value.strip().partition(":")[0].lower() not in kernels:
            raise ValueError(f"kernel must be one of {', '.join(sorted(kernels))}; got {value.strip()!r:.80}")
    made = build(parse_player(text).spec)
    return made.set_params(seed=seed) if "seed" in made.get_params(deep=False) else made


# Results.


class TicketResult(TypedDict):
    """A guess."""

    id: str
    label: Any
    propensity: float
    time: str


class TellResult(TypedDict):
    """Whether the feedback was new."""

    news: bool


class DoneResult(TypedDict):
    """A change that was made."""

    done: bool


class ShadowResult(TypedDict):
    """What the decider would have guessed."""

    label: Any
    agrees: bool


class ClassesResult(TypedDict):
    """All labels."""

    classes: list[Any]


class EventsResult(TypedDict):
    """A page of the log; `next` is the number of its last event."""

    events: list[Any]
    next: int


def ticket_result(ticket: Ticket) -> TicketResult:
    """Return a ticket as JSON."""
    return {"id": ticket.id, "label": ticket.label, "propensity": ticket.propensity, "time": ticket.time.isoformat()}


def status(decider: Decider) -> dict[str, Any]:
    """Return a decider's status, without its path."""
    found = decider.status()._asdict()
    del found["path"]
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in found.items()}


def plain(value: Any) -> Any:
    """Return named tuples as dicts, and lists of them."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(each) for name, each in value._asdict().items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def page_of_events(events: Iterable[Event], classes: list[Any], after: int) -> EventsResult:
    """Return events as a page, limited in size but with at least one: with labels by name, without data for replays."""
    page: list[msgspec.Raw] = []
    n_bytes = 0
    for event in events:
        body = {name: value for name, value in event.body.items() if name != "additions"}
        for name in ("label", "wanted", "would"):
            if type(body.get(name)) is int and event.kind != Kind.CLASS_ADDED:
                body[name] = classes[body[name]]
        if body.get("among") is not None:
            body["among"] = [classes[i] for i in body["among"]]
        about = {name: getattr(event, name) for name in ("seq", "time", "kind", "ticket", "key")}
        text = to_json(about | {"body": body})  # one at a time, to save memory
        n_bytes += len(text)
        if page and n_bytes > MOST_BYTES_A_PAGE:
            break
        page.append(msgspec.Raw(text))
        after = event.seq
    return {"events": page, "next": after}
