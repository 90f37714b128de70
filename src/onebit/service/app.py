"""The service: its routes, each declared once in `_ROUTES`, with their documentation and the data of the pages."""

import asyncio
import json
import logging
import math
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext
from functools import lru_cache, partial
from html import escape
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, defstruct, structs
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from onebit import __version__
from onebit.decider import calls
from onebit.decider.client import MOST_AT_ONCE
from onebit.decider.decider import Decider
from onebit.decider.log import to_json
from onebit.decider.report import costs_of_limits, how_sure, report, share_of
from onebit.decider.requests import checked, request_of
from onebit.decider.tickets import Event, Kind, Ticket
from onebit.machine_memory import memory as machine_memory
from onebit.service.access import ANYBODY, NAME, AuditLog, Token, Tokens, check_name
from onebit.service.gate import Gate, Problem, Route, json_response, page_routes
from onebit.service.metrics import Metrics
from onebit.service.workers import DeciderWorker, WorkerPool

_PAGE = Path(__file__).parent / "page"
_ROUNDS_PER_SECOND = 20_000.0  # default rate limit of one caller, in guesses and feedback
_MOST_THREADS = 64  # number of threads for reads, which may wait for busy deciders
_MOST_WATCHED = 16  # deciders whose last events are cached: about 2 MB each
_FRESH_SECONDS = 0.25
_PATIENCE_SECONDS = 0.5  # for busy deciders, in the list
_MOST_LISTED = 50  # maximum number of open tickets on a page
_MOST_SHOWN = 100  # classes, and columns, on a page
_MOST_CATEGORIES = 12
_LEARNER_LETTERS = 200
_IN_A_LIST, _ALONE = (12, 160), (200, 4_000)  # values that are shown of a record, and letters of each
_NAME_LETTERS = 80
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
_DECIDER = "/v1/{namespace}/{name}"
_ANY = dict[str, Any]
_STATUS = calls.VERBS["status"].call
_ListLimit = Annotated[int, Meta(ge=0, le=_MOST_LISTED, description=f"a whole number from 0 to {_MOST_LISTED}")]
_LOG = logging.getLogger("onebit.serve")


class Service(Gate):
    """The ASGI application: the deciders of a folder, or of the database at the URL `log`, with tokens and limits.

    `rate` is the maximum of guesses and feedback per second of one caller, 0 for no limit; `memory` that of all
    deciders in bytes, by default half of what the process may use; `warms` is whether learners are compiled at once.
    """

    def __init__(
        self,
        folder: Path,
        *,
        log: str | None = None,
        tokens_required: bool = False,
        rate: float = _ROUNDS_PER_SECOND,
        warms: bool = False,
        memory: float | None = None,
        audit: bool = True,
    ) -> None:
        memory = machine_memory() / 2 if memory is None else memory
        self.workers = WorkerPool(folder, log, warms=warms, memory=memory)
        self.metrics = Metrics(self.workers)
        self.audit = AuditLog(folder) if audit else None
        self.watch = lru_cache(_MOST_WATCHED)(_Watch)
        self.tokens = Tokens(folder, tokens_required)
        super().__init__(_ROUTES, "without tokens the service", self.tokens, rate)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Context in which the service runs."""
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_MOST_THREADS, "onebit reader"))
        _LOG.info("deciders may take %.3g GiB of memory", self.workers.budget.n_bytes / 2**30)
        with nullcontext() if self.audit is None else self.audit.writing():
            self.workers.open_all()
            yield
            await asyncio.to_thread(self.workers.close)
        _LOG.info("stopped: all is answered and closed")

    def note(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request, and log it."""
        state, method, path = scope["state"], scope["method"], scope["path"]
        caller, address, verb = state["caller"], state["address"], path.rpartition("/")[2]
        verb = verb if verb in _VERBS else "other"
        self.metrics.requests(verb, status).inc()
        self.metrics.seconds(verb).observe(seconds)
        if self.audit is not None and (status in (401, 403) or (caller and method in ("POST", "PUT"))):
            is_new = method == "PUT" and path.count("/") == _DECIDER.count("/")
            self.audit.note(state["token"], "create" if is_new else verb, path, status, address)
        level = logging.INFO if status >= 400 else logging.DEBUG
        if _LOG.isEnabledFor(level):
            extra = {"method": method, "path": path, "status": status, "seconds": round(seconds, 6)}
            extra |= {"caller": None if caller is None else caller.name, "address": address}
            _LOG.log(level, "request", extra=extra)


# What is read of a decider. Parameters are the query of a request, docstrings describe the routes.


def _columns(decider: Decider) -> dict[str, Any]:
    """Return what the first columns of the records became."""
    found = decider.columns()
    listed = []
    for each in found[:_MOST_SHOWN]:
        column = each._asdict() | {"n_places": len(each.slots), "n_categories": len(each.categories)}
        del column["slots"]
        listed.append(column | {"categories": each.categories[:_MOST_CATEGORIES]})
    return {"columns": listed, "n_more": len(found) - len(listed)}


def _open_tickets(decider: Decider, older_than: str | None = None, limit: _ListLimit = 10) -> dict[str, Any]:
    """Return open tickets, newest first, with their records: ?older_than=, ?limit=."""
    return _listed(decider, decider.open_tickets(older_than, limit + 1), limit, _IN_A_LIST)


def _asked(decider: Decider, order: str = "doubt", limit: _ListLimit = 10) -> dict[str, Any]:
    """Return open tickets that a person is asked about, the least sure first (?order=oldest, newest), ?limit=."""
    return _listed(decider, decider.open_tickets(None, limit + 1, asked=True, order=order), limit, _ALONE)


def _limits(decider: Decider) -> dict[str, Any]:
    """Return what share of guesses a person would be asked about at other limits, going by the last 10 000 events."""
    return {"limits": calls.plain(costs_of_limits(decider))}


def _confidence(decider: Decider) -> dict[str, Any]:
    """Return how often guesses were right by their confidence, and the share wrong of the surest, of 10 000 events."""
    return dict(calls.plain(how_sure(decider)))


def _listed(decider: Decider, tickets: list[Ticket], limit: int, size: tuple[int, int]) -> dict[str, Any]:
    """Return tickets with the first values of their records."""
    listed = []
    for ticket in tickets[:limit]:
        asked = _guessed(decider.look_up(ticket))
        record = _shown_record(None if asked is None else asked.body["record"], *size)
        listed.append({**calls.plain(ticket), "record": record})
    return {"tickets": listed, "has_more": len(tickets) > limit}


def _guessed(events: list[Event]) -> Event | None:
    return next((event for event in events if event.kind == Kind.GUESSED), None)


def _one_ticket(decider: Decider, id: str = "") -> dict[str, Any]:
    """Return all about a ticket: ?id= is its id, or the key of its request."""
    events = decider.look_up(id)
    if (asked := _guessed(events)) is None:
        raise Problem(404, f"there is no ticket {id!r:.80}, nor a request with that key, or it was compacted away")
    body, classes, last = asked.body, decider.classes, events[-1]
    unanswered: dict[str, str] = {Kind.GUESSED: "open", Kind.CLOSED: "silent"}
    answered = {True: "right", False: "wrong", None: "withdrawn"}
    return {
        "id": asked.ticket,
        "key": asked.key,
        "time": asked.time,
        "label": classes[body["label"]],
        "propensity": body["propensity"],
        "is_explored": body["label"] != body["wanted"],
        "among": None if body["among"] is None else [classes[i] for i in body["among"]][: _ALONE[0]],
        "record": _shown_record(body["record"], *_ALONE),
        "state": unanswered.get(last.kind) or answered[last.body["correct"]],
        "history": [
            {"time": each.time, "kind": str(each.kind), "correct": each.body.get("correct")} for each in events
        ],
    }


def _shown_record(record: Any, most: int, longest: int) -> dict[str, Any]:
    """Return the first values of a record as pairs of short strings, and the number of the others."""
    if isinstance(record, dict) and set(record) == {"$mapping"}:
        pairs = [(str(name), value) for name, value in record["$mapping"]]
    elif isinstance(record, dict):
        pairs = list(record.items())
    else:
        pairs = [(str(place), value) for place, value in enumerate(record or ())]
    values = [[_cut(name, _NAME_LETTERS), _cut(_text_of(value), longest)] for name, value in pairs[:most]]
    return {"values": values, "n_more": len(pairs) - len(values)}


def _text_of(value: Any) -> str:
    if value is None or value == []:
        return "—"
    if isinstance(value, dict) and value.keys() & {"$date", "$datetime", "$float", "$set"} and len(value) == 1:
        return _text_of(*value.values())
    if isinstance(value, list) and not any(isinstance(item, (dict, list)) for item in value):
        return ", ".join(map(_text_of, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


class _Watch:
    """The changing data of a decider's page, computed once for all viewers."""

    def __init__(self, worker: DeciderWorker) -> None:
        self._worker = worker
        self._turn, self._recent = asyncio.Lock(), deque[Any]()
        self._frame, self._made = b"", -math.inf

    async def frame(self) -> bytes:
        """Return the data as JSON."""
        self._worker.open_decider()
        async with self._turn:
            if time.monotonic() - self._made > _FRESH_SECONDS:
                self._frame = await self._worker.read(self._look)
                self._made = time.monotonic()
            return self._frame

    def _look(self, decider: Decider) -> bytes:
        summary, status = calls.plain(report(decider, self._recent)), _STATUS(decider)
        status |= {"n_classes": len(status.pop("classes")), "learner": f"{status['learner']:.{_LEARNER_LETTERS}}"}
        summary["by_class"] = sorted(summary["by_class"], key=lambda each: -each["guessed"])[:_MOST_SHOWN]
        frame = {"status": status, "report": summary, **decider.settings.changeable()}
        frame |= {"course": decider.learning_curve(), "weights": decider.kernel_weights()}
        return json.dumps(frame, allow_nan=False, default=str).encode()


# Routes of a decider.


def _verb(name: str, role: str, verb: str = "", takes_lists: bool = False, method: str = "POST") -> Route:
    """Return a route to a decider, in whose queue it puts a call; some take lists, with a result for each item."""
    call, result, _ = calls.VERBS[verb or name]
    asks = request_of(call)

    def work(request: Request, asked: Any) -> Any:
        is_list = isinstance(asked, list)
        todo: Any = partial(_call_all, call, asks, asked) if is_list else partial(call, **structs.asdict(asked))
        n_bytes = len(request.scope["state"]["body"])
        return request.app.workers.submit(*request.path_params.values(), todo, n_bytes, name == "guess")

    about, _, example = _described(call).partition(" Example: ")
    if takes_lists:
        about, result = f"{about} One, or a list of up to {MOST_AT_ONCE}.", result | list[Any]
    return Route(method, f"{_DECIDER}/{name}", work, about, role, asks, result, json.loads(example), takes_lists)


def _described(function: Callable[..., Any]) -> str:
    return " ".join(str(function.__doc__).split())


def _call_all(call: Callable[..., Any], asks: type[Struct], items: list[Any], decider: Decider) -> list[Any]:
    answers = []
    for item in items:
        try:
            answers.append(call(decider, **structs.asdict(checked(asks, item))))
        except (ValueError, OSError, RecursionError) as error:
            answers.append(Problem.of(error).described())
    return answers


def _read(what: str, call: Callable[..., Any], result: Any = _ANY) -> Route:
    """Return a read-only route to a decider, which bypasses its queue; the query has the call's other parameters."""

    async def work(request: Request, asked: Struct) -> Any:
        worker = await request.app.workers.find(**request.path_params)
        return await worker.read(partial(call, **structs.asdict(asked)))

    return Route("GET", f"{_DECIDER}/{what}", work, _described(call), "read", request_of(call), result)


async def _create(request: Request, asked: calls.NewDecider) -> Response:
    workers: WorkerPool = request.app.workers
    namespace, name = (check_name(what, request.path_params[what]) for what in ("namespace", "name"))
    making = asyncio.create_task(asyncio.to_thread(workers.create, namespace, name, asked.arguments()))
    try:
        is_new = await asyncio.shield(making)
    except asyncio.CancelledError:  # as in `DeciderWorker.submit`: it may exist by now
        is_new = await making
    worker = workers.get(namespace, name)
    if is_new:
        caller = request.scope["state"]["caller"].name
        _LOG.info("a decider was made", extra={"decider": worker.title, "caller": caller})
    return json_response(await worker.read(_STATUS), 201 if is_new else 200)


async def _desk(request: Request) -> Response:
    service: Service = request.app
    worker = await service.workers.find(**request.path_params)
    return Response(await service.watch(worker).frame(), media_type="application/json")


# Routes of the service.


def _visible(request: Request) -> list[DeciderWorker]:
    """Return the workers that the caller may see."""
    caller: Token = request.scope["state"]["caller"]
    return [worker for namespace, _, worker in request.app.workers if caller.sees(namespace)]


def _deciders(request: Request) -> Any:
    seen = _visible(request)
    return {"deciders": [each.title for each in seen], "open_here": [each.title for each in seen if each.is_ours]}


def _summary(worker: DeciderWorker, seconds: float) -> dict[str, Any]:
    if not worker.opened.is_set():
        return {"state": "opening"}
    try:
        status, is_busy = worker.status_within(seconds)
    except (Problem, ValueError, OSError) as error:
        return {"state": "fault", "says": Problem.of(error).detail}
    numbers: dict[str, Any] | None = None
    if status is not None:
        n_answered = status.right + status.wrong
        numbers = {"guesses": status.guesses, "open": status.open, "answered": n_answered}
        numbers |= {"mistakes": share_of(status.wrong, n_answered)._asdict(), "last": status.last.timestamp()}
    return {"state": "busy" if is_busy else "ready", "numbers": numbers}


async def _overview(request: Request) -> Any:
    seen, end = _visible(request), time.monotonic() + _PATIENCE_SECONDS  # in total

    def listed() -> list[dict[str, Any]]:
        return [{"name": worker.title, **_summary(worker, max(end - time.monotonic(), 0.0))} for worker in seen]

    return {"deciders": await asyncio.to_thread(listed)}


def _me(request: Request) -> Any:
    caller: Token = request.scope["state"]["caller"]
    about = {"name": caller.name, "roles": caller.all_roles, "namespaces": sorted(caller.namespaces)}
    return about | {"has_token": caller is not ANYBODY}


async def _metrics(request: Request) -> Response:
    return Response(await asyncio.to_thread(request.app.metrics.text), media_type=_PROMETHEUS)


def _ready(request: Request) -> Any:
    pool: WorkerPool = request.app.workers
    if awaited := pool.awaited:
        raise Problem(503, f"not ready: {awaited}", "BusyError", 1)
    is_ours = [worker.is_ours for _, _, worker in pool]
    return {"ready": True, "deciders": len(is_ours), "open_here": sum(is_ours)}  # counts only: no token is needed


def _page(up: bytes) -> Response:
    """Return the page, in which addresses begin with the relative path to the service's root; a proxy may move that."""
    return Response((_PAGE / "index.html").read_bytes().replace(b"{up}", up), media_type="text/html")


_HOME, _DESK = _page(b"./"), _page(b"../../")
_NEW = {"classes": ["billing", "refund"], "learner": "BanditSVM", "deadline": 604800, "exploration_floor": 0.02}
_ROUTES = [  # in the order in which they are tried
    _verb("guess", "play", takes_lists=True),
    _verb("tell", "play", takes_lists=True),
    _verb("label", "play", method="PUT"),
    _verb("shadow", "play", takes_lists=True),
    _verb("settings", "admin", "change"),
    _verb("classes", "admin", "add_class"),
    _verb("correct", "admin"),
    _verb("withdraw", "admin"),
    *(_read(name, *calls.VERBS[name][:2]) for name in ("status", "report", "log")),
    _read("open", _open_tickets),
    _read("asked", _asked),
    _read("limits", _limits),
    _read("confidence", _confidence),
    _read("ticket", _one_ticket),
    _read("columns", _columns),
    Route("GET", f"{_DECIDER}/desk", _desk, "Status, report, course of mistakes, weights of kernels.", "read"),
    Route(
        "PUT", _DECIDER, _create, "Make a decider; if it is there, it must be the same.", "admin",
        calls.NewDecider, example=_NEW,
    ),
    Route("GET", "/v1", _deciders, "The deciders that you may see.", "read"),
    Route("GET", "/v1/overview", _overview, "The deciders that you may see, with numbers.", "read"),
    Route("GET", "/v1/me", _me, "Whose token it is, and what it may do."),
    Route("GET", "/metrics", _metrics, "For Prometheus.", "read", result=None, is_everywhere=True),
    Route("GET", "/healthz", lambda _request: {"alive": True}, "Whether the process is alive."),
    Route("GET", "/readyz", _ready, "Whether no decider is still being opened or compiled."),
    Route("GET", "/api", lambda _request: _API, "This page.", result=None),
    Route("GET", "/openapi.json", lambda _request: _OPENAPI, "What there is, in the form of OpenAPI."),
    Route("GET", "/", lambda _request: _HOME, "The desk: deciders, and how they fare, for people.", result=None),
    Route("GET", "/desk/{namespace}/{name}", lambda _request: _DESK, "The desk of one decider.", result=None),
    *page_routes(_PAGE, "Files of the desk."),
]  # fmt: skip
_VERBS = frozenset(route.path.rpartition("/")[2] for route in _ROUTES if route.role) - {"v1", "{name}"}
_ABOUT = "Deciders that learn from right and wrong. Every event is on the disk before its answer."


def _document() -> dict[str, Any]:
    """Return the OpenAPI document of all routes."""
    fields = [("title", str), ("status", int), ("detail", str), ("error", str)]
    types: list[Any] = [defstruct("ProblemResult", fields, namespace={"__doc__": "An error (RFC 9457)."})]
    for route in _ROUTES:
        body: Any = None if route.method == "GET" else route.asks
        if route.takes_lists:
            body |= Annotated[list[body], Meta(min_length=1, max_length=MOST_AT_ONCE)]
        types += [body, route.result]
    (problem, *found), schemas = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    refused = {"description": "Problem", "content": {"application/problem+json": {"schema": problem}}}
    paths: dict[str, dict[str, Any]] = {}
    for route, body, result in zip(_ROUTES, found[::2], found[1::2], strict=True):
        path, method = route.path.replace(":path", ""), route.method.lower()
        done: dict[str, Any] = {"description": "OK"}
        if route.result is not None:
            done["content"] = {"application/json": {"schema": result}}
        operation = paths.setdefault(path, {})[method] = {
            "description": route.description,
            "operationId": "_".join([method, *re.findall(r"\w+", path)]),
            "responses": {"200": done, "default": refused},
        }
        if names := re.findall(r"{(\w+)}", path):
            schema = {"type": "string"} | ({"pattern": f"^{NAME}$"} if "name" in names else {})
            operation["parameters"] = [
                {"name": each, "in": "path", "required": True, "schema": schema} for each in names
            ]
        if route.method != "GET":
            content = {"schema": body, "example": route.example}
            operation["requestBody"] = {"required": True, "content": {"application/json": content}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "onebit", "description": _ABOUT, "version": __version__},
        "servers": [{"url": "."}],  # relative to the document, for proxies with a path prefix
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _api_page() -> str:
    """Return the documentation of all routes as HTML, without external resources."""
    listed = [f"<dt>{route.method} {escape(route.path)}<dd>{escape(route.description)}" for route in _ROUTES]
    head = f"<!doctype html><html lang=en><meta charset=utf-8><title>onebit</title><h1>onebit {__version__}</h1>"
    for_programs = 'For programs: <a href="openapi.json">openapi.json</a>.'
    return f"{head}<p>{escape(_ABOUT)} {for_programs}<dl>{''.join(listed)}</dl>"


_API: Response = Response(_api_page(), media_type="text/html")
_OPENAPI: Response = Response(to_json(_document()), media_type="application/json")
