"""Parse request bodies into calls of a decider, and convert results to JSON."""

import json
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import msgspec

from onebit.decider.client import MOST_AT_ONCE
from onebit.decider.decider import Decider
from onebit.decider.log import to_json
from onebit.decider.report import Report
from onebit.decider.settings import CHANGEABLE
from onebit.decider.tickets import Event, Kind, Shadow, Ticket
from onebit.encoding import record_from_json
from onebit.experiments.entries import kernel_names, parse_player
from onebit.experiments.players import build
from onebit.learners import Learner, all_learners
from onebit.machine_memory import claim_memory
from onebit.service.limits import MOST_BYTES_A_PAGE, MOST_CLASSES
from onebit.service.problems import problem_of
from onebit.typed_json import parse

Call = Callable[[Decider], Any]
"""A call of a decider with a result of plain JSON values."""

_LONGEST_LABEL = 200
_LARGEST_LABEL = 2**53  # larger integers are not exact in all JSON parsers
_BEGUN_WITH = ("kinds", "deadline", "silence", "exploration_floor", "max_open", "seed")


def read_json(body: bytes) -> Any:
    """Parse a JSON body, or raise ValueError."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return msgspec.json.decode(body)
    try:  # all errors of the body become ValueError
        value = parse(body.decode())
        if b"\\ud" in body or b"\\uD" in body:
            json.dumps(value, ensure_ascii=False).encode()  # lone surrogates cannot be stored
    except UnicodeDecodeError as error:
        raise ValueError("the body must be JSON in UTF-8") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"the body must be JSON: {error}") from error
    return value


def fields_of(body: Any, needed: Iterable[str], allowed: Iterable[str] = ()) -> dict[str, Any]:
    """Return the fields of an object, or raise ValueError if one is missing or unknown."""
    if not isinstance(body, dict):
        raise ValueError(f"a JSON object with {', '.join(needed or allowed)} is needed; got {type(body).__name__}")
    for name in needed:
        if name not in body:
            raise ValueError(f"{name} is missing; needed: {', '.join(needed)}")
    known = (*needed, *allowed)
    for name in body:
        if name not in known:
            raise ValueError(f"there is no field {name!r:.80}; there are {', '.join(known)}")
    return body


def one_or_many(body: Any, call_of: Callable[[Any], Call]) -> tuple[Call, int]:
    """Return the call for one item or a list of items, and the number of items.

    In a list, each item has its own result; failed ones are problems.
    """
    if not isinstance(body, list):
        return call_of(body), 1
    if not 0 < len(body) <= MOST_AT_ONCE:
        raise ValueError(f"a list must have 1 to {MOST_AT_ONCE} items; got {len(body)}")

    def all_of_them(decider: Decider) -> list[Any]:
        answers = []
        for item in body:
            try:
                answers.append(call_of(item)(decider))
            except (ValueError, OSError, RecursionError) as error:
                answers.append(problem_of(error).described())
        return answers

    return all_of_them, len(body)


# One function for each verb.


def guess_call(body: Any) -> Call:
    """Return the call for a guess."""
    fields = fields_of(body, ["record"], ["among", "key"])
    record, key = _record(fields["record"]), fields.get("key")
    among = None if fields.get("among") is None else _labels("among", fields["among"])

    def guess(decider: Decider) -> dict[str, Any]:
        if isinstance(decider, Decider):  # a RemoteDecider's service checks memory itself
            claim_memory(decider.ticket_bytes(), more=True)  # until the ticket is closed
        return described_ticket(decider.guess(record, among, key=key))

    return guess


def tell_call(body: Any) -> Call:
    """Return the call for feedback."""
    fields = fields_of(body, ["id", "correct"])
    return lambda decider: {"news": decider.tell(fields["id"], fields["correct"])}


def correct_call(body: Any) -> Call:
    """Return the call for a correction of feedback."""
    fields = fields_of(body, ["id", "correct"])

    def correct(decider: Decider) -> dict[str, bool]:
        decider.correct_answer(fields["id"], fields["correct"])
        return {"done": True}

    return correct


def withdraw_call(body: Any) -> Call:
    """Return the call for a withdrawal of feedback."""
    fields = fields_of(body, ["id"])

    def withdraw(decider: Decider) -> dict[str, bool]:
        decider.withdraw(fields["id"])
        return {"done": True}

    return withdraw


def shadow_call(body: Any) -> Call:
    """Return the call for a shadow decision."""
    fields = fields_of(body, ["record", "label", "correct"], ["propensity", "key"])
    record, label, chance = _record(fields["record"]), fields["label"], fields.get("propensity")
    correct, key = fields["correct"], fields.get("key")
    if chance is not None and (isinstance(chance, bool) or not isinstance(chance, (int, float)) or not 0 < chance <= 1):
        raise ValueError(f"propensity must be above 0 and at most 1; got {chance!r:.80}")
    _labels("label", [label])
    return lambda decider: described_shadow(decider.shadow(record, label, correct, propensity=chance, key=key))


def class_call(body: Any) -> Call:
    """Return the call for a new class."""
    (label,) = _labels("label", [fields_of(body, ["label"])["label"]])

    def add(decider: Decider) -> Any:
        if len(decider.classes) >= MOST_CLASSES:
            raise ValueError(f"a decider of the service may have {MOST_CLASSES} classes; it has as many")
        decider.add_class(label)
        return {"classes": decider.classes}

    return add


def change_call(body: Any) -> Call:
    """Return the call for a change of settings."""
    changes = fields_of(body, [], CHANGEABLE)

    def change(decider: Decider) -> dict[str, Any]:
        decider.change(**changes)
        return decider.settings.changeable()

    return change


def settings_of(body: Any) -> dict[str, Any]:
    """Return the arguments of `Decider.open` for a new decider."""
    fields = fields_of(body, ["classes"], ["learner", *_BEGUN_WITH])
    classes, seed = fields["classes"], fields.get("seed", 0)
    if classes is None:  # in `Decider.open`, None means an existing decider
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
    """Return one of onebit's own learners; requests cannot import other classes.

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


def _record(value: Any) -> Any:
    """Return a record, or raise ValueError."""
    record = record_from_json(value)
    if not isinstance(record, (dict, list)):
        raise ValueError(f"record must be an object with named values, or a list of numbers; got {record!r:.80}")
    return record


def _labels(what: str, labels: Any) -> list[Any]:
    """Return labels, which must be strings or integers in the service."""
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


# Results.


def described_ticket(ticket: Ticket) -> dict[str, Any]:
    """Return a ticket as JSON."""
    return {"id": ticket.id, "label": ticket.label, "propensity": ticket.propensity, "time": ticket.time.isoformat()}


def described_shadow(shadow: Shadow) -> dict[str, Any]:
    """Return a shadow result as JSON."""
    return {"label": shadow.label, "agrees": shadow.agrees}


def status_call(decider: Decider) -> dict[str, Any]:
    """Return a decider's status, without its path."""
    status = decider.status()
    described = status._asdict() | {"since": status.since.isoformat()}
    described["oldest_open"] = None if status.oldest_open is None else status.oldest_open.isoformat()
    del described["path"]
    return described


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
    """Return an event as JSON, with labels by name and without data for replays."""
    body = {name: value for name, value in event.body.items() if name != "additions"}
    for name in ("label", "wanted", "would"):
        if type(body.get(name)) is int and event.kind != Kind.CLASS_ADDED:
            body[name] = classes[body[name]]
    if body.get("among") is not None:
        body["among"] = [classes[i] for i in body["among"]]
    described = {
        "seq": event.seq,
        "time": event.time,
        "kind": str(event.kind),
        "ticket": event.ticket,
        "key": event.key,
    }
    return described | {"body": body}


def described_page(events: Iterable[Event], classes: list[Any], after: int) -> dict[str, Any]:
    """Return events as a page of JSON, limited in size but at least one; `next` is the last number."""
    written: list[msgspec.Raw] = []
    n_bytes = 0
    for event in events:
        text = to_json(described_event(event, classes))  # one at a time, to save memory
        n_bytes += len(text)
        if written and n_bytes > MOST_BYTES_A_PAGE:
            break
        written.append(msgspec.Raw(text))
        after = event.seq
    return {"events": written, "next": after}


def page_size(text: str | None, name: str, default: int, most: float = math.inf) -> int:
    """Parse an integer query parameter, or raise ValueError."""
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 17 and int(text) <= most):
        raise ValueError(
            f"{name} must be a whole number from 0{f' to {most}' if most < math.inf else ''}; got {text!r:.80}"
        )
    return int(text)
