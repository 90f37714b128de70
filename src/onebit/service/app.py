"""The service: its routes, each declared once in `_ROUTES`, and their documentation."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext
from functools import lru_cache, partial
from html import escape
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, defstruct, json, structs
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from onebit import __version__
from onebit.decider import calls
from onebit.decider.client import MOST_AT_ONCE
from onebit.decider.decider import Decider
from onebit.decider.log import to_json
from onebit.decider.requests import call_of, request_of
from onebit.machine_memory import memory as machine_memory
from onebit.service.audit import AuditLog
from onebit.service.gate import (
    PAGE_PARTS,
    Gate,
    Problem,
    Route,
    Tokens,
    files_of,
    json_response,
    problem_of,
)
from onebit.service.metrics import CONTENT_TYPE, Metrics
from onebit.service.pages import MOST_WATCHED, Watch, columns, log_page, one_ticket, open_tickets, overview
from onebit.service.tokens import ANYBODY, NAME, ROLES, Token, check_name
from onebit.service.workers import DeciderWorker, WorkerPool

_ROUNDS_PER_SECOND = 20_000.0  # default rate limit of one caller, in guesses and feedback
_MOST_THREADS = 64  # number of threads for reads, which may wait for busy deciders
PAGE = Path(__file__).parent / "page"
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
        opener: Callable[..., Decider] = Decider.open,
    ) -> None:
        memory = machine_memory() / 2 if memory is None else memory
        self.workers = WorkerPool(folder, log, opener=opener, warms=warms, memory=memory)
        self.metrics = Metrics(self.workers)
        self.audit = AuditLog(folder) if audit else None
        self.watch = lru_cache(MOST_WATCHED)(Watch)
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


# Routes of a decider.

_DECIDER = "/v1/{namespace}/{name}"
_ANY = dict[str, Any]


def _verb(name: str, role: str, verb: Any, about: str, example: Any, takes_lists: bool = False) -> Route:
    """Return a route to a decider, in whose queue it puts a call; some take lists, with a result for each item."""

    def work(request: Request, asked: Any) -> Any:
        call = partial(_call_all, verb, asked) if isinstance(asked, list) else partial(verb, **structs.asdict(asked))
        n_bytes = len(request.scope["state"]["body"])
        return request.app.workers.submit(*request.path_params.values(), call, n_bytes, verb is calls.guess)

    result: Any = calls.RESULTS.get(verb.__name__, _ANY)
    if takes_lists:
        about, result = f"{about} One, or a list of up to {MOST_AT_ONCE}.", result | list[Any]
    asks = request_of(verb)
    return Route("POST", f"{_DECIDER}/{name}", work, about, role, asks, result, example, takes_lists)


def _call_all(verb: Any, items: list[Any], decider: Decider) -> list[Any]:
    answers = []
    for item in items:
        try:
            answers.append(call_of(verb, item)(decider))
        except (ValueError, OSError, RecursionError) as error:
            answers.append(problem_of(error).described())
    return answers


def _read(what: str, call: Callable[..., Any], about: str) -> Route:
    """Return a read-only route to a decider, which bypasses its queue; the query has the call's other parameters."""

    async def work(request: Request, asked: Struct) -> Any:
        worker = await request.app.workers.find(**request.path_params)
        return await worker.read(partial(call, **structs.asdict(asked)))

    result = calls.RESULTS.get(call.__name__, _ANY)
    return Route("GET", f"{_DECIDER}/{what}", work, about, "read", request_of(call), result)


async def _create(request: Request, asked: calls.NewDecider) -> Response:
    service: Service = request.app
    namespace, name = (check_name(what, request.path_params[what]) for what in ("namespace", "name"))
    settings = asked.arguments()
    making = asyncio.get_running_loop().run_in_executor(None, service.workers.create, namespace, name, settings)
    try:
        is_new = await asyncio.shield(making)
    except asyncio.CancelledError:  # as in `DeciderWorker.submit`: it may exist by now
        is_new = await making
    worker = service.workers.get(namespace, name)
    if is_new:
        caller = request.scope["state"]["caller"].name
        _LOG.info("a decider was made", extra={"decider": worker.title, "caller": caller})
    return json_response(await worker.read(calls.status), 201 if is_new else 200)


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


async def _overview(request: Request) -> Any:
    return {"deciders": await asyncio.to_thread(overview, _visible(request))}


def _me(request: Request) -> Any:
    caller: Token = request.scope["state"]["caller"]
    roles = [role for role in ROLES if caller.has_role(role)]
    about = {"name": caller.name, "roles": roles, "namespaces": sorted(caller.namespaces)}
    return about | {"has_token": caller is not ANYBODY}


async def _metrics(request: Request) -> Response:
    return Response(await asyncio.to_thread(request.app.metrics.text), media_type=CONTENT_TYPE)


def _ready(request: Request) -> Any:
    pool: WorkerPool = request.app.workers
    if awaited := pool.awaited:
        raise Problem(503, f"not ready: {awaited}", "BusyError", 1)
    is_ours = [worker.is_ours for _, _, worker in pool]
    return {"ready": True, "deciders": len(is_ours), "open_here": sum(is_ours)}  # counts only: no token is needed


def _page(up: bytes) -> Response:
    """Return the page, in which addresses begin with the relative path to the service's root; a proxy may move that."""
    return Response((PAGE / "index.html").read_bytes().replace(b"{up}", up), media_type="text/html")


_HOME, _DESK = _page(b"./"), _page(b"../../")
_RECORD = {"channel": "mail", "length": 212}
_NEW = {"classes": ["billing", "refund"], "learner": "BanditSVM", "deadline": 604800, "exploration_floor": 0.02}
_ROUTES = [  # in the order in which they are tried
    _verb(
        "guess", "play", calls.guess,
        "Name a label for a record, and hand out a ticket. The same key again is the same ticket again.",
        {"record": _RECORD, "among": None, "key": "order-17"}, True,
    ),
    _verb(
        "tell", "play", calls.tell,
        "Say whether a guess was right. The same again is fine, and counted once.",
        {"id": "5-9f…", "correct": True}, True,
    ),
    _verb(
        "shadow", "play", calls.shadow,
        "Say what you decided yourself, and whether it was right; the result is what the decider would have done.",
        {"record": _RECORD, "label": "refund", "correct": True, "propensity": None, "key": "order-17"}, True,
    ),
    _verb(
        "settings", "admin", calls.change,
        "Change deadline, silence, exploration_floor or max_open, from now on.", {"deadline": 604800},
    ),
    _verb("classes", "admin", calls.add_class, "Let a label join.", {"label": "complaint"}),
    _verb(
        "correct", "admin", calls.correct,
        "Say that an answer was a mistake, and what it should have been. Takes a replay.",
        {"id": "5-9f…", "correct": False},
    ),
    _verb(
        "withdraw", "admin", calls.withdraw,
        "Say that an answer was a mistake, and nothing is known instead. Takes a replay.", {"id": "5-9f…"},
    ),
    _read("status", lambda decider: calls.status(decider), "How many guesses, right, wrong and open."),
    _read(
        "report", calls.report,
        "Mistakes with 95 % intervals, by class and against one label for all; alarms with a likely cause.",
    ),
    _read(
        "log", log_page,
        f"Events after number ?after=, at most ?limit= (up to {MOST_AT_ONCE}) and {calls.MOST_BYTES_A_PAGE >> 20} MB, "
        "or one event that is larger; next is the ?after= of the next page.",
    ),
    _read("open", open_tickets, "Open tickets, newest first: ?older_than=, ?limit=."),
    _read("ticket", one_ticket, "All about a ticket: ?id= is its id, or its key."),
    _read("columns", columns, "What each column of the records became."),
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
    Route("GET", "/page/{path:path}", files_of(PAGE), "Files of the desk.", result=None),
    Route("GET", "/parts/{path:path}", files_of(PAGE_PARTS), "Files of the desk.", result=None),
]  # fmt: skip
_VERBS = frozenset(route.path.rpartition("/")[2] for route in _ROUTES if route.role) - {"v1", "{name}"}
"""Verbs that are counted by name."""


# Their documentation.

_ABOUT = "Deciders that learn from right and wrong. Every event is on the disk before its answer."


def _document() -> dict[str, Any]:
    """Return the OpenAPI document of all routes."""
    fields = [("title", str), ("status", int), ("detail", str), ("error", str)]
    types: dict[Any, Any] = {
        "problem": defstruct("ProblemResult", fields, namespace={"__doc__": "An error (RFC 9457)."})
    }
    for at, route in enumerate(_ROUTES):
        if route.takes_lists:
            many = Annotated[list[route.asks], Meta(min_length=1, max_length=MOST_AT_ONCE)]  # type: ignore[name-defined]
            types[at, "body"] = route.asks | many
        elif route.method != "GET":
            types[at, "body"] = route.asks
        if route.result is not None:
            types[at, "result"] = route.result
    found, components = json.schema_components(types.values(), ref_template="#/components/schemas/{name}")
    schemas = dict(zip(types, found, strict=True))
    refused = {"application/problem+json": {"schema": schemas["problem"]}}
    paths: dict[str, dict[str, Any]] = {}
    for at, route in enumerate(_ROUTES):
        path, method = route.path.replace(":path", ""), route.method.lower()
        names = re.findall(r"{(\w+)}", path)
        operation = paths.setdefault(path, {})[method] = {
            "description": route.description,
            "operationId": "_".join([method, *re.findall(r"\w+", path)]),
        }
        if names:
            schema = {"type": "string"} | ({"pattern": f"^{NAME}$"} if "name" in names else {})
            operation["parameters"] = [
                {"name": each, "in": "path", "required": True, "schema": schema} for each in names
            ]
        if (at, "body") in schemas:
            content = {"schema": schemas[at, "body"], "example": route.example}
            operation["requestBody"] = {"required": True, "content": {"application/json": content}}
        done: dict[str, Any] = {"description": "OK"}
        if (at, "result") in schemas:
            done["content"] = {"application/json": {"schema": schemas[at, "result"]}}
        operation["responses"] = {"200": done, "default": {"description": "Problem", "content": refused}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "onebit", "description": _ABOUT, "version": __version__},
        "servers": [{"url": "."}],  # relative to the document, for proxies with a path prefix
        "paths": paths,
        "components": {"schemas": components},
    }


def _api_page() -> str:
    """Return the documentation of all routes as HTML, without external resources."""
    listed = [f"<dt>{route.method} {escape(route.path)}<dd>{escape(route.description)}" for route in _ROUTES]
    head = f"<!doctype html><html lang=en><meta charset=utf-8><title>onebit</title><h1>onebit {__version__}</h1>"
    for_programs = 'For programs: <a href="openapi.json">openapi.json</a>.'
    return f"{head}<p>{escape(_ABOUT)} {for_programs}<dl>{''.join(listed)}</dl>"


_API: Response = Response(_api_page(), media_type="text/html")
_OPENAPI: Response = Response(to_json(_document()), media_type="application/json")
