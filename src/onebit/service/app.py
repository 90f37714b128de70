"""The service: its routes, each declared once in `ROUTES`, and who may call them."""

import asyncio
import logging
import math
import re
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import msgspec
from starlette import routing
from starlette.requests import Request
from starlette.responses import Response

from onebit.decider import calls
from onebit.decider.client import MOST_AT_ONCE
from onebit.decider.decider import Decider
from onebit.decider.log import to_json
from onebit.machine_memory import memory as machine_memory
from onebit.service.audit import AuditLog
from onebit.service.gate import (
    PAGE_PARTS,
    Allowance,
    Files,
    Gate,
    Headers,
    Problem,
    Receive,
    Scope,
    Send,
    check_own_page,
    problem_of,
)
from onebit.service.metrics import CONTENT_TYPE, Metrics
from onebit.service.openapi import Route, api_page, document
from onebit.service.pages import MOST_LISTED, Watching, columns, one_ticket, open_tickets, overview
from onebit.service.pool import Database, Folder, Opener, WorkerPool
from onebit.service.tokens import ANYBODY, EVERYWHERE, ROLES, Caller, Tokens, check_name
from onebit.service.workers import DeciderWorker

ROUNDS_PER_SECOND = 20_000.0  # default rate limit of one caller, in guesses and feedback
FAILURES_PER_SECOND = 20.0  # maximum rate of wrong tokens from one address
MOST_THREADS = 64  # number of threads for reads, which may wait for busy deciders
PAGE = Path(__file__).parent / "page"
_UP = b"{up}"  # placeholder in pages for the relative path to the service's root, which a proxy may move
_PUBLIC = frozenset({"/api", "/healthz", "/readyz", "/openapi.json"})
_is_page = re.compile(r"/\Z|/(desk|page|parts)/").match  # static files without data of deciders: no token is needed
_LISTED = 10  # open tickets, by default
_FORWARDED = frozenset(
    {b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip"}
)
_LOG = logging.getLogger("onebit.serve")


class Service:
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
        rate: float = ROUNDS_PER_SECOND,
        warms: bool = False,
        memory: float | None = None,
        audit: bool = True,
        opener: Opener = Decider.open,
    ) -> None:
        store = Folder(folder, opener) if log is None else Database(log)
        self._memory = machine_memory() / 2 if memory is None else memory
        self.workers = WorkerPool(store, warms, self._memory)
        self.tokens = Tokens(folder, tokens_required)
        self.metrics = Metrics(self.workers)
        self.audit = AuditLog(folder) if audit else None
        self.watching = Watching()
        self.files = {"page": Files(PAGE), "parts": Files(PAGE_PARTS)}
        self._allowance, self._failures = Allowance(rate), Allowance(FAILURES_PER_SECOND)
        routes = [
            _routed(self, route) for route in (*ROUTES, Route("GET", "/openapi.json", _openapi, "This document."))
        ]
        router = routing.Router(routes, redirect_slashes=False, lifespan=lambda _app: self.running())
        self._gate = Gate(router, self._admit, _LOG.name, is_page=_is_page, note=self._note)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        await self._gate(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Context in which the service runs."""
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(MOST_THREADS, "onebit reader"))
        _LOG.info("deciders may take %.3g GiB of memory", self._memory / 2**30)
        if self.audit is not None:
            self.audit.start()
        self.workers.open_all()
        yield
        await asyncio.to_thread(self.workers.close)
        if self.audit is not None:
            self.audit.close()
        _LOG.info("stopped: all is answered and closed")

    # Who may ask.

    def _admit(self, scope: Scope, headers: Headers) -> None:
        """Put the caller of a request into its state, or raise Problem.

        Where no token is required, only requests from this machine are accepted, and none of other sites.
        """
        state = scope["state"]
        caller, state["caller"] = self.tokens.caller(headers.get(b"authorization")), None
        if not self.tokens.are_required:
            check_own_page(headers, "without tokens the service")
            if not _FORWARDED.isdisjoint(headers):
                raise Problem(403, "a proxy passes on what others ask; make a token first", "PermissionError")
        elif caller is None or caller.is_expired:
            is_public = scope["path"] in _PUBLIC or _is_page(scope["path"])
            if is_public and scope["method"] not in ("POST", "PUT"):  # whose bodies would be read
                return
            wait = self._failures.take(_address(scope))
            if wait:
                message = "too many requests without a valid token; try later"
                raise Problem(429, message, "PermissionError", 1 + int(wait))
            if caller is None:
                raise Problem(401, "a valid token is needed: Authorization: Bearer …", "PermissionError")
            state["expired"] = caller.name
            ended = datetime.fromtimestamp(caller.expires, UTC).isoformat(timespec="seconds")
            raise Problem(401, f"token {caller.name!r} expired at {ended}; ask for a new one", "PermissionError")
        state["caller"] = caller

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request, and log it."""
        state, verb = scope["state"], scope["path"].rpartition("/")[2]
        caller: Caller | None = state.get("caller")
        verb = verb if verb in _VERBS else "other"
        self.metrics.count(verb, status, seconds)
        if self.audit is not None and (status in (401, 403) or (caller and scope["method"] in ("POST", "PUT"))):
            token = state.get("expired") if caller is None or caller is ANYBODY else caller.name
            verb = "create" if scope["method"] == "PUT" else verb
            self.audit.note(token, verb, scope["path"], status, _address(scope))
        level = logging.INFO if status >= 400 else logging.DEBUG
        if _LOG.isEnabledFor(level):
            extra = {"method": scope["method"], "path": scope["path"], "status": status, "seconds": round(seconds, 6)}
            extra |= {"caller": None if caller is None else caller.name, "address": _address(scope)}
            _LOG.log(level, "request", extra=extra)

    def charge(self, request: Request, cost: int) -> None:
        """Raise Problem if a caller exceeds its rate limit."""
        caller = request.scope["state"]["caller"]
        wait = self._allowance.take(_address(request.scope) if caller is ANYBODY else caller.name, cost)
        if wait:
            message = "that is more than one caller may ask for in a second; try later"
            raise Problem(429, message, "BusyError", math.ceil(wait))

    def visible(self, request: Request) -> list[DeciderWorker]:
        """Return the workers that the caller may see."""
        caller: Caller = request.scope["state"]["caller"]
        return [worker for namespace, _, worker in self.workers if caller.sees(namespace)]


def _routed(service: Service, route: Route) -> routing.Route:
    """Return a route for the router, which checks the caller."""

    async def answer(request: Request) -> Response:
        if route.role is not None:
            namespace = route.namespace or request.path_params.get("namespace")
            refusal = request.scope["state"]["caller"].refusal(route.role, namespace)
            if refusal is not None:
                for what, text in request.path_params.items():  # what is no name is 422 for everybody
                    check_name(what, text)
                raise Problem(403, refusal, "PermissionError")
            if route.cost:
                service.charge(request, route.cost)
        return await route.work(service, request)

    made = routing.Route(route.path, answer, methods=[route.method])
    made.methods = {route.method}  # without HEAD
    return made


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else ""


def _json(value: Any, status: int = 200) -> Response:
    return Response(to_json(value), status, media_type="application/json")


async def _worker(service: Service, request: Request) -> DeciderWorker:
    return await service.workers.find(request.path_params["namespace"], request.path_params["name"])


def _number(request: Request, name: str, default: int, most: float = math.inf) -> int:
    """Return an integer query parameter, or raise ValueError."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 17 and int(text) <= most):
        limit = f" to {most}" if most < math.inf else ""
        raise ValueError(f"{name} must be a whole number from 0{limit}; got {text!r:.80}")
    return int(text)


# Routes of a decider.

_DECIDER = "/v1/{namespace}/{name}"


def _verb(
    verb: str, role: str, kind: Any, result: Any, about: str, example: dict[str, Any], is_listed: bool = False
) -> Route:
    """Return a route that goes through a decider's queue; some take lists, with a result for each item."""

    def call_of(body: Any) -> tuple[calls.Call, int]:
        if not is_listed or not isinstance(body, list):
            return calls.checked(kind, body), 1
        if not 0 < len(body) <= MOST_AT_ONCE:
            raise ValueError(f"a list must have 1 to {MOST_AT_ONCE} items; got {len(body)}")

        def call_all(decider: Decider) -> list[Any]:
            answers = []
            for item in body:
                try:
                    answers.append(calls.checked(kind, item)(decider))
                except (ValueError, OSError, RecursionError) as error:
                    answers.append(problem_of(error).described())
            return answers

        return call_all, len(body)

    async def work(service: Service, request: Request) -> Response:
        worker = await _worker(service, request)
        body = request.scope["state"]["body"]
        call, n_items = call_of(calls.read_json(body))
        service.charge(request, n_items)
        return _json(await worker.submit(call, len(body)))

    if is_listed:
        about = f"{about} One, or a list of up to {MOST_AT_ONCE}."
        body: Any = kind | Annotated[list[kind], msgspec.Meta(min_length=1, max_length=MOST_AT_ONCE)]
        result = result | list[Any]
    else:
        body = kind
    return Route("POST", f"{_DECIDER}/{verb}", work, about, role, None, 0, body, result, example)


def _read(what: str, call_of: Callable[[Request], calls.Call], result: Any, about: str) -> Route:
    """Return a read-only route, which bypasses a decider's queue."""

    async def work(service: Service, request: Request) -> Response:
        worker = await _worker(service, request)
        return _json(await worker.read(call_of(request)))

    return Route("GET", f"{_DECIDER}/{what}", work, about, "read", result=result)


def _events(request: Request) -> calls.Call:
    after, limit = _number(request, "after", 0), _number(request, "limit", MOST_AT_ONCE, MOST_AT_ONCE)
    return lambda decider: calls.page_of_events(islice(decider.events(after), limit), decider.classes, after)


def _open_tickets(request: Request) -> calls.Call:
    older_than, limit = request.query_params.get("older_than"), _number(request, "limit", _LISTED, MOST_LISTED)
    return lambda decider: open_tickets(decider, older_than, limit)


def _ticket(request: Request) -> calls.Call:
    return lambda decider: one_ticket(decider, request.query_params.get("id", ""))


async def _create(service: Service, request: Request) -> Response:
    namespace, name = (check_name(what, request.path_params[what]) for what in ("namespace", "name"))
    settings = calls.checked(calls.NewDecider, calls.read_json(request.scope["state"]["body"])).arguments()
    making = asyncio.get_running_loop().run_in_executor(None, service.workers.create, namespace, name, settings)
    try:
        is_new = await asyncio.shield(making)
    except asyncio.CancelledError:  # as in `DeciderWorker.submit`: it may exist by now
        is_new = await making
    worker = service.workers.get(namespace, name)
    if is_new:
        caller = request.scope["state"]["caller"].name
        _LOG.info("a decider was made", extra={"decider": worker.title, "caller": caller})
    return _json(await worker.read(calls.Status()), 201 if is_new else 200)


async def _frame(service: Service, request: Request) -> Response:
    worker = await _worker(service, request)
    return Response(await service.watching.frame(worker), media_type="application/json")


# Routes of the service.


async def _deciders(service: Service, request: Request) -> Response:
    seen = service.visible(request)
    names, open_here = [worker.title for worker in seen], [worker.title for worker in seen if worker.is_ours]
    return _json({"deciders": names, "open_here": open_here})


async def _overview(service: Service, request: Request) -> Response:
    return _json({"deciders": await asyncio.to_thread(overview, service.visible(request))})


async def _me(_service: Service, request: Request) -> Response:
    caller: Caller = request.scope["state"]["caller"]
    roles = [role for role in ROLES if caller.has_role(role)]
    about = {"name": caller.name, "roles": roles, "namespaces": sorted(caller.namespaces)}
    return _json(about | {"has_token": caller is not ANYBODY})


async def _metrics(service: Service, _request: Request) -> Response:
    return Response(await asyncio.to_thread(service.metrics.text), media_type=CONTENT_TYPE)


async def _alive(_service: Service, _request: Request) -> Response:
    return _json({"alive": True})


async def _ready(service: Service, _request: Request) -> Response:
    if awaited := service.workers.awaited:
        raise Problem(503, f"not ready: {awaited}", "BusyError", 1)
    workers = [worker for _, _, worker in service.workers]
    n_open = sum(worker.is_ours for worker in workers)
    return _json({"ready": True, "deciders": len(workers), "open_here": n_open})  # counts only: no token is needed


async def _api(_service: Service, _request: Request) -> Response:
    return Response(api_page(ROUTES), media_type="text/html; charset=utf-8")


async def _openapi(_service: Service, _request: Request) -> Response:
    return Response(_document(), media_type="application/json")


@cache
def _document() -> bytes:
    return to_json(document(ROUTES))


async def _page(service: Service, request: Request) -> Response:
    return service.files["page"].response("index.html", {_UP: b"../../" if request.path_params else b"./"})


async def _file(service: Service, request: Request) -> Response:
    return service.files[request.scope["path"].split("/")[1]].response(request.path_params["path"])


_RECORD = {"channel": "mail", "length": 212}
_NEW = {"classes": ["billing", "refund"], "learner": "BanditSVM", "deadline": 604800, "exploration_floor": 0.02}
ROUTES = [  # in the order in which they are tried
    _verb(
        "guess", "play", calls.Guess, calls.TicketResult,
        "Name a label for a record, and hand out a ticket. The same key again is the same ticket again.",
        {"record": _RECORD, "among": None, "key": "order-17"}, is_listed=True,
    ),
    _verb(
        "tell", "play", calls.Tell, calls.TellResult,
        "Say whether a guess was right. The same again is fine, and counted once.",
        {"id": "5-9f…", "correct": True}, is_listed=True,
    ),
    _verb(
        "shadow", "play", calls.Shadow, calls.ShadowResult,
        "Say what you decided yourself, and whether it was right; the result is what the decider would have done.",
        {"record": _RECORD, "label": "refund", "correct": True, "propensity": None, "key": "order-17"}, is_listed=True,
    ),
    _verb(
        "settings", "admin", calls.Change, dict[str, Any],
        "Change deadline, silence, exploration_floor or max_open, from now on.", {"deadline": 604800},
    ),
    _verb("classes", "admin", calls.AddClass, calls.ClassesResult, "Let a label join.", {"label": "complaint"}),
    _verb(
        "correct", "admin", calls.Correct, calls.DoneResult,
        "Say that an answer was a mistake, and what it should have been. Takes a replay.",
        {"id": "5-9f…", "correct": False},
    ),
    _verb(
        "withdraw", "admin", calls.Withdraw, calls.DoneResult,
        "Say that an answer was a mistake, and nothing is known instead. Takes a replay.", {"id": "5-9f…"},
    ),
    _read("status", lambda _request: calls.Status(), dict[str, Any], "How many guesses, right, wrong and open."),
    _read(
        "report", lambda _request: calls.Report(), dict[str, Any],
        "Mistakes with 95 % intervals, by class and against one label for all; alarms with a likely cause.",
    ),
    _read(
        "log", _events, calls.EventsResult,
        f"Events after number ?after=, at most ?limit= (up to {MOST_AT_ONCE}) and {calls.MOST_BYTES_A_PAGE >> 20} MB, "
        "or one event that is larger; next is the ?after= of the next page.",
    ),
    _read("open", _open_tickets, dict[str, Any], "Open tickets, newest first: ?older_than=, ?limit=."),
    _read("ticket", _ticket, dict[str, Any], "All about a ticket: ?id= is its id, or its key."),
    _read("columns", lambda _request: columns, dict[str, Any], "What each column of the records became."),
    Route("GET", f"{_DECIDER}/desk", _frame, "Status, report, course of mistakes, weights of kernels.", "read"),
    Route(
        "PUT", _DECIDER, _create, "Make a decider; if it is there, it must be the same.", "admin",
        body=calls.NewDecider, example=_NEW,
    ),
    Route("GET", "/v1", _deciders, "The deciders that you may see.", "read"),
    Route("GET", "/v1/overview", _overview, "The deciders that you may see, with numbers.", "read"),
    Route("GET", "/v1/me", _me, "Whose token it is, and what it may do."),
    Route("GET", "/metrics", _metrics, "For Prometheus.", "read", EVERYWHERE, cost=0, result=None),
    Route("GET", "/healthz", _alive, "Whether the process is alive."),
    Route("GET", "/readyz", _ready, "Whether no decider is still being opened or compiled."),
    Route("GET", "/api", _api, "This page.", result=None),
    Route("GET", "/", _page, "The desk: deciders, and how they fare, for people.", result=None),
    Route("GET", "/desk/{namespace}/{name}", _page, "The desk of one decider.", result=None),
    Route("GET", "/page/{path:path}", _file, "Files of the desk.", result=None),
    Route("GET", "/parts/{path:path}", _file, "Files of the desk.", result=None),
]  # fmt: skip
_VERBS = frozenset(route.path.rpartition("/")[2] for route in ROUTES if route.role) - {"v1", "{name}"}
"""Verbs that are counted by name."""
