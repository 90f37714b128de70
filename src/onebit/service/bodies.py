"""What requests may say, and what is answered: JSON in, calls of a decider, JSON out."""

import json
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import msgspec

from onebit.arena.grammar import kernel_names, parse_player
from onebit.arena.players import build
from onebit.decider.client import MOST_AT_ONCE
from onebit.decider.decider import Decider
from onebit.decider.events import Event
from onebit.decider.quick_json import to_json
from onebit.decider.report import Report
from onebit.decider.settings import CHANGEABLE
from onebit.decider.tickets import Shadow, Ticket
from onebit.encoding.record_json import record_from_json
from onebit.learners import Learner, all_learners
from onebit.machine_memory import claim_memory
from onebit.service.limits import MOST_BYTES_A_PAGE, MOST_CLASSES
from onebit.service.problems import problem_of
from onebit.typed_json import parse

Call = Callable[[Decider], Any]
"""What a request asks of a decider; what it returns can be written as JSON."""

_LONGEST_LABEL = 200
_LARGEST_LABEL = 2**53  # beyond it JSON's readers disagree
_BEGUN_WITH = ("kinds", "deadline", "silence", "exploration_floor", "max_open", "seed")


def read_json(body: bytes) -> Any:
    """Return what a body says, or raise ValueError."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return msgspec.json.decode(body)
    try:  # whatever is wrong with it is said here
        said = parse(body.decode())
        if b"\\ud" in body or b"\\uD" in body:
            json.dumps(said, ensure_ascii=False).encode()  # half a pair of surrogates can be stored nowhere
    except UnicodeDecodeError as error:
        raise ValueError("the body must be JSON in UTF-8") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"the body must be JSON: {error}") from error
    return said


def fields_of(said: Any, needed: Iterable[str], allowed: Iterable[str] = ()) -> dict[str, Any]:
    """Return the fields of an object, or raise ValueError if one is missing or unknown."""
    if not isinstance(said, dict):
        raise ValueError(f"a JSON object with {', '.join(needed or allowed)} is needed; got {type(said).__name__}")
    for name in needed:
        if name not in said:
            raise ValueError(f"{name} is missing; needed: {', '.join(needed)}")
    known = (*needed, *allowed)
    for name in said:
        if name not in known:
            raise ValueError(f"there is no field {name!r:.80}; there are {', '.join(known)}")
    return said


def one_or_many(said: Any, call_of: Callable[[Any], Call]) -> tuple[Call, int]:
    """Return the call for one item, or for a list of them, and how many they are.

    In a list every item is answered for itself: what cannot be done is a problem in its place.
    """
    if not isinstance(said, list):
        return call_of(said), 1
    if not 0 < len(said) <= MOST_AT_ONCE:
        raise ValueError(f"a list must have 1 to {MOST_AT_ONCE} items; got {len(said)}")

    def all_of_them(desk: Decider) -> list[Any]:
        answers = []
        for item in said:
            try:
                answers.append(call_of(item)(desk))
            except (ValueError, OSError, RecursionError) as error:
                answers.append(problem_of(error).described())
        return answers

    return all_of_them, len(said)


# One function for every verb.


def guess_call(said: Any) -> Call:
    """Return a guess."""
    fields = fields_of(said, ["record"], ["among", "key"])
    record, key = _record(fields["record"]), fields.get("key")
    among = None if fields.get("among") is None else _labels("among", fields["among"])

    def guess(desk: Decider) -> dict[str, Any]:
        if isinstance(desk, Decider):  # agents may ask one of a service, which counts for itself
            claim_memory(desk.ticket_bytes(), more=True)  # it stays open until it is answered
        return described_ticket(desk.guess(record, among, key=key))

    return guess


def tell_call(said: Any) -> Call:
    """Return an answer."""
    fields = fields_of(said, ["id", "correct"])
    return lambda desk: {"news": desk.tell(fields["id"], fields["correct"])}


def correct_call(said: Any) -> Call:
    """Return the correction of an answer."""
    fields = fields_of(said, ["id", "correct"])

    def correct(desk: Decider) -> dict[str, bool]:
        desk.correct_answer(fields["id"], fields["correct"])
        return {"done": True}

    return correct


def withdraw_call(said: Any) -> Call:
    """Return the withdrawal of an answer."""
    fields = fields_of(said, ["id"])

    def withdraw(desk: Decider) -> dict[str, bool]:
        desk.withdraw(fields["id"])
        return {"done": True}

    return withdraw


def shadow_call(said: Any) -> Call:
    """Return what the application decided itself."""
    fields = fields_of(said, ["record", "label", "correct"], ["propensity", "key"])
    record, label, chance = _record(fields["record"]), fields["label"], fields.get("propensity")
    correct, key = fields["correct"], fields.get("key")
    if chance is not None and (isinstance(chance, bool) or not isinstance(chance, (int, float)) or not 0 < chance <= 1):
        raise ValueError(f"propensity must be above 0 and at most 1; got {chance!r:.80}")
    _labels("label", [label])
    return lambda desk: described_shadow(desk.shadow(record, label, correct, propensity=chance, key=key))


def class_call(said: Any) -> Call:
    """Return a class that joins."""
    (label,) = _labels("label", [fields_of(said, ["label"])["label"]])

    def add(desk: Decider) -> Any:
        if len(desk.classes) >= MOST_CLASSES:
            raise ValueError(f"a decider of the service may have {MOST_CLASSES} classes; it has as many")
        desk.add_class(label)
        return {"classes": desk.classes}

    return add


def change_call(said: Any) -> Call:
    """Return a change of settings."""
    told = fields_of(said, [], CHANGEABLE)

    def change(desk: Decider) -> dict[str, Any]:
        desk.change(**told)
        return desk.settings.changeable()

    return change


def settings_of(said: Any) -> dict[str, Any]:
    """Return what `Decider.open` is told for a new decider."""
    fields = fields_of(said, ["classes"], ["learner", *_BEGUN_WITH])
    classes, seed = fields["classes"], fields.get("seed", 0)
    if classes is None:  # to `Decider.open` that means: go on with the one that is there
        raise ValueError("classes must be a count or a list of labels; got null")
    if isinstance(classes, list):
        classes = _labels("classes", classes)
    if isinstance(classes, int) and classes > MOST_CLASSES:
        raise ValueError(f"a decider of the service may have {MOST_CLASSES} classes at most")
    kinds = fields.get("kinds")
    if kinds is not None and not (isinstance(kinds, dict) and all(isinstance(kind, str) for kind in kinds.values())):
        raise ValueError(f"kinds must be an object of columns and their kinds; got {kinds!r:.80}")
    learner = None if fields.get("learner") is None else own_learner(fields["learner"], seed)
    return {"classes": classes, "learner": learner} | {name: fields[name] for name in _BEGUN_WITH if name in fields}


def own_learner(text: Any, seed: int = 0) -> Learner:
    """Return one of onebit's own learners: a request may not name what else could be imported.

    >>> own_learner("Banditron:exploration=0.1")
    Banditron(exploration=0.1)
    >>> own_learner("os:system")
    Traceback (most recent call last):
        ...
    ValueError: learner must be one of onebit's own, such as BanditSVM or Banditron:exploration=0.02; got 'os:system'
    """
    known = {cls.__name__ for cls in all_learners()}
    kernels = {written.partition(":")[0] for written in kernel_names()} | {"none", "auto"}
    if not isinstance(text, str) or text.partition(":")[0] not in known:
        raise ValueError(
            f"learner must be one of onebit's own, such as BanditSVM or Banditron:exploration=0.02; got {text!r:.80}"
        )
    for part in text.partition(":")[2].split(","):
        setting, _, value = part.partition("=")
        if setting.strip() == "kernel" and value.strip().partition(":")[0].lower() not in kernels:
            raise ValueError(f"kernel must be one of {', '.join(sorted(kernels))}; got {value.strip()!r:.80}")
    made = build(parse_player(text).spec)
    return made.set_params(seed=seed) if "seed" in made.get_params(deep=False) else made


def _record(said: Any) -> Any:
    """Return a record, or raise ValueError for what is none."""
    record = record_from_json(said)
    if not isinstance(record, (dict, list)):
        raise ValueError(f"record must be an object with named values, or a list of numbers; got {record!r:.80}")
    return record


def _labels(what: str, labels: Any) -> list[Any]:
    """Return labels, which in the service are words or whole numbers."""
    if not isinstance(labels, list):
        raise ValueError(f"{what} must be a list of labels; got {labels!r:.80}")
    if len(labels) > MOST_CLASSES:
        raise ValueError(f"{what}: a decider of the service may have {MOST_CLASSES} classes at most; got {len(labels)}")
    for label in labels:
        is_word = isinstance(label, str) and 0 < len(label) <= _LONGEST_LABEL
        is_number = type(label) is int and abs(label) < _LARGEST_LABEL
        if not is_word and not is_number:
            raise ValueError(
                f"{what}: a label must be a text of 1 to {_LONGEST_LABEL} letters or a whole number below 2^53; "
                f"got {label!r:.80}"
            )
    return labels


# Answers.


def described_ticket(ticket: Ticket) -> dict[str, Any]:
    """Return a ticket as JSON."""
    return {"id": ticket.id, "label": ticket.label, "propensity": ticket.propensity, "time": ticket.time.isoformat()}


def described_shadow(shadow: Shadow) -> dict[str, Any]:
    """Return what the decider would have done as JSON."""
    return {"label": shadow.label, "agrees": shadow.agrees}


def status_call(desk: Decider) -> dict[str, Any]:
    """Return a decider's status, without its path."""
    status = desk.status()
    said = status._asdict() | {"since": status.since.isoformat()}
    said["oldest_open"] = None if status.oldest_open is None else status.oldest_open.isoformat()
    del said["path"]
    return said


def described_report(report: Report) -> dict[str, Any]:
    """Return a report as JSON."""
    return _plain(report)  # type: ignore[no-any-return]


def _plain(value: Any) -> Any:
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(each) for name, each in value._asdict().items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value


def described_event(event: Event, classes: list[Any]) -> dict[str, Any]:
    """Return an event as JSON: labels by name, and without what only a replay needs."""
    body = {name: value for name, value in event.body.items() if name != "additions"}
    for name in ("label", "wanted", "would"):
        if type(body.get(name)) is int and event.kind != "joined":
            body[name] = classes[body[name]]
    if body.get("among") is not None:
        body["among"] = [classes[i] for i in body["among"]]
    said = {"seq": event.seq, "time": event.time, "kind": str(event.kind), "ticket": event.ticket, "key": event.key}
    return said | {"body": body}


def described_page(events: Iterable[Event], classes: list[Any], after: int) -> dict[str, Any]:
    """Return events as a page of JSON, as many as it has room for and at least one; `next` is the last one's number."""
    written: list[msgspec.Raw] = []
    n_bytes = 0
    for event in events:
        text = to_json(described_event(event, classes))  # one at a time: as objects they take many times as much
        n_bytes += len(text)
        if written and n_bytes > MOST_BYTES_A_PAGE:
            break
        written.append(msgspec.Raw(text))
        after = event.seq
    return {"events": written, "next": after}


def page_size(text: str | None, name: str, default: int, most: float = math.inf) -> int:
    """Return a whole number of a query, or raise ValueError."""
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 17 and int(text) <= most):
        raise ValueError(
            f"{name} must be a whole number from 0{f' to {most}' if most < math.inf else ''}; got {text!r:.80}"
        )
    return int(text)
