"""The routes of ``onebit serve``."""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response

from onebit import __version__
from onebit.decider.client import MOST_AT_ONCE
from onebit.decider.decider import Decider
from onebit.decider.report import report
from onebit.machine_memory import memory as machine_memory
from onebit.service import bodies
from onebit.service.api_page import api_page
from onebit.service.audit import AuditLog
from onebit.service.desk_page import add_desk_page
from onebit.service.gate import Gate, address_of
from onebit.service.limits import MOST_BYTES_A_PAGE, MOST_THREADS, Allowance
from onebit.service.metrics import CONTENT_TYPE, Metrics
from onebit.service.names import check_name
from onebit.service.routes import add_route, json_response
from onebit.service.shortcut import Endpoint, Shortcut
from onebit.service.stores import Database, Folder, Opener, Store
from onebit.service.tokens import ANYBODY, EVERYWHERE, Caller, Tokens
from onebit.service.web import Application, Problem, Receive, Scope, Send
from onebit.service.workers import DeciderWorker, WorkerPool

ROUNDS_PER_SECOND = 20_000.0
"""Default rate limit of one caller, in guesses and feedback."""
_LOG = logging.getLogger("onebit.serve")
_ABOUT = "Deciders that learn from right and wrong. Every event is on the disk before its answer."


class Service:
    """The deciders, their tokens, limits and metrics.

    Parameters
    ----------
    store : Store
        Where deciders are stored.
    folder : Path
        The folder with the file of tokens.
    tokens_required : bool
        Whether a token is required even without a file of tokens.
    rate : float
        Maximum guesses and feedback per second of one caller; 0 for no limit.
    warms : bool
        Whether to compile the learner when a decider is opened.
    memory : float
        Maximum memory of all deciders in bytes.
    audit : bool
        Whether to write an audit log.
    """

    def __init__(
        self, store: Store, folder: Path, tokens_required: bool, rate: float, warms: bool, memory: float, audit: bool
    ) -> None:
        self.workers = WorkerPool(store, warms, memory)
        self.tokens = Tokens(folder, tokens_required)
        self.metrics = Metrics(self.workers)
        self.audit = AuditLog(folder) if audit else None
        self._allowance = Allowance(rate)

    def allow(self, request: Request, role: str, namespace: str | None = None) -> Caller:
        """Return the caller, or raise Problem unless it has the role and the namespace."""
        caller: Caller = request.scope["state"]["caller"]
        if not caller.has_role(role):
            message = f"token {caller.name!r} has the role {', '.join(sorted(caller.roles))}; this needs {role}"
            raise Problem(403, message, "PermissionError")
        # The same response whether the namespace exists or not.
        if namespace is not None and not caller.sees(namespace):
            raise Problem(403, f"token {caller.name!r} may not see the namespace {namespace!r}", "PermissionError")
        return caller

    def charge(self, request: Request, caller: Caller, cost: int) -> None:
        """Raise Problem if a caller exceeds its rate limit."""
        wait = self._allowance.take(address_of(request.scope) if caller is ANYBODY else caller.name, cost)
        if wait:
            raise Problem(
                429, "that is more than one caller may ask for in a second; try later", "BusyError", math.ceil(wait)
            )

    async def worker(self, request: Request, role: str) -> tuple[DeciderWorker, Caller]:
        """Return the worker of the decider in a request's path, and the caller."""
        namespace, name = names_of(request)
        caller = self.allow(request, role, namespace)
        return await self.workers.find(namespace, name), caller


def names_of(request: Request) -> tuple[str, str]:
    """Return the namespace and name in a request's path."""
    asked = request.path_params
    return check_name("namespace", asked["namespace"]), check_name("name", asked["name"])


def create_app(
    folder: Path,
    *,
    log: str | None = None,
    tokens_required: bool = False,
    rate: float = ROUNDS_PER_SECOND,
    warms: bool = False,
    memory: float | None = None,
    audit: bool = True,
    opener: Opener = Decider.open,
) -> FastAPI:
    """Return the application, with deciders in a folder or in the database `log`; parameters as in `Service`.

    By default `memory` is half of what the process may use.
    """
    store = Folder(folder, opener) if log is None else Database(log)
    n_bytes = machine_memory() / 2 if memory is None else memory
    service = Service(store, folder, tokens_required, rate, warms, n_bytes, audit)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(MOST_THREADS, "onebit reader"))
        _LOG.info("deciders may take %.3g GiB of memory", n_bytes / 2**30)
        if service.audit is not None:
            service.audit.start()
        service.workers.open_all()
        yield
        await asyncio.to_thread(service.workers.close)
        if service.audit is not None:
            service.audit.close()
        _LOG.info("stopped: all is answered and closed")

    app = _Service(
        title="onebit",
        version=__version__,
        description=_ABOUT,
        servers=[{"url": "."}],  # relative to the document, for proxies with a path prefix
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    verbs = _add_verbs(app, service)
    _add_reads(app, service)
    _add_service_routes(app, service)
    add_desk_page(app, service)
    for status, message in (
        (404, "there is nothing at this address; /api lists what there is"),
        (405, "not with this method"),
    ):
        app.add_exception_handler(status, _always(Problem(status, message)))
    app.front = Gate(Shortcut(app.front, verbs), service.tokens, service.metrics, service.audit)
    return app


class _Service(FastAPI):
    """An application with outer middleware; FastAPI's own middleware would be slower."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.front: Application = super().__call__

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        await self.front(scope, receive, send)


def _always(problem: Problem) -> Any:
    async def answer(_request: Request, error: Exception) -> Response:
        response = problem.response()
        response.headers.update(getattr(error, "headers", None) or {})  # such as Allow
        return response

    return answer


def _add_verbs(app: FastAPI, service: Service) -> dict[str, Endpoint]:
    """Add the routes that go through a decider's queue; return the endpoints by verb."""
    verbs: dict[str, Endpoint] = {}

    def add(
        verb: str, role: str, call_of: Callable[[Any], bodies.Call], is_listed: bool, summary: str, example: Any
    ) -> None:
        async def work(request: Request) -> Response:
            worker, caller = await service.worker(request, role)
            body = request.scope["state"]["body"]
            asked = bodies.read_json(body)
            call, cost = bodies.one_or_many(asked, call_of) if is_listed else (call_of(asked), 1)
            service.charge(request, caller, cost)
            return json_response(await worker.submit(call, len(body)))

        many = f" One, or a list of up to {MOST_AT_ONCE}." if is_listed else ""
        path, description = f"/v1/{{namespace}}/{{name}}/{verb}", f"{summary}{many} Role: {role}."
        verbs[verb] = add_route(app, "POST", path, work, description, example)

    record = {"channel": "mail", "length": 212}
    add(
        "guess", "play", bodies.guess_call, True,
        "Name a label for a record, and hand out a ticket. The same key again is the same ticket again.",
        {"record": record, "among": None, "key": "order-17"},
    )  # fmt: skip
    add(
        "tell", "play", bodies.tell_call, True,
        "Say whether a guess was right. The same again is fine, and counted once.", {"id": "5-9f…", "correct": True},
    )  # fmt: skip
    add(
        "shadow", "play", bodies.shadow_call, True,
        "Say what you decided yourself, and whether it was right; hear what the decider would have done.",
        {"record": record, "label": "refund", "correct": True, "propensity": None, "key": "order-17"},
    )  # fmt: skip
    add(
        "settings", "admin", bodies.change_call, False,
        "Change deadline, silence, exploration_floor or max_open, from now on.", {"deadline": 604800},
    )  # fmt: skip
    add("classes", "admin", bodies.class_call, False, "Let a label join.", {"label": "complaint"})
    add(
        "correct", "admin", bodies.correct_call, False,
        "Say that an answer was a mistake, and what it should have been. Takes a replay.",
        {"id": "5-9f…", "correct": False},
    )  # fmt: skip
    add(
        "withdraw", "admin", bodies.withdraw_call, False,
        "Say that an answer was a mistake, and nothing is known instead. Takes a replay.", {"id": "5-9f…"},
    )  # fmt: skip
    return verbs


def _add_reads(app: FastAPI, service: Service) -> None:
    """Add the read-only routes of a decider, which bypass its queue."""

    def add(what: str, call_of: Callable[[Request], bodies.Call], summary: str) -> None:
        async def work(request: Request) -> Response:
            worker, caller = await service.worker(request, "read")
            service.charge(request, caller, 1)
            return json_response(await worker.read(call_of(request)))

        add_route(app, "GET", f"/v1/{{namespace}}/{{name}}/{what}", work, f"{summary} Role: read.")

    def page_of_log(request: Request) -> bodies.Call:
        after = bodies.page_size(request.query_params.get("after"), "after", 0)
        limit = bodies.page_size(request.query_params.get("limit"), "limit", MOST_AT_ONCE, MOST_AT_ONCE)

        def read(decider: Decider) -> dict[str, Any]:
            return bodies.described_page(islice(decider.events(after), limit), decider.classes, after)

        return read

    add("status", lambda _request: bodies.status_call, "How many guesses, right, wrong and open.")
    add(
        "report",
        lambda _request: lambda decider: bodies.described_report(report(decider)),
        "Mistakes with 95 % intervals, by class and against one label for all; alarms with a likely cause.",
    )
    add(
        "log",
        page_of_log,
        f"Events after number ?after=, at most ?limit= (up to {MOST_AT_ONCE}) and {MOST_BYTES_A_PAGE >> 20} MB, or one "
        "event that is larger; next is the ?after= of the next page.",
    )


def _add_service_routes(app: FastAPI, service: Service) -> None:
    """Add the routes of the service itself, and the creation of deciders."""

    async def create(request: Request) -> Response:
        namespace, name = names_of(request)
        caller = service.allow(request, "admin", namespace)
        service.charge(request, caller, 1)
        settings = bodies.settings_of(bodies.read_json(request.scope["state"]["body"]))
        making = asyncio.get_running_loop().run_in_executor(None, service.workers.create, namespace, name, settings)
        try:
            is_new = await asyncio.shield(making)
        except asyncio.CancelledError:  # as in `DeciderWorker.submit`: it may exist by now
            is_new = await making
        worker = service.workers.get(namespace, name)
        if is_new:
            _LOG.info("a decider was made", extra={"decider": worker.title, "caller": caller.name})
        return json_response(await worker.read(bodies.status_call), 201 if is_new else 200)

    async def deciders(request: Request) -> Response:
        caller = service.allow(request, "read")
        service.charge(request, caller, 1)
        seen = [worker for where, _, worker in service.workers if caller.sees(where)]
        return json_response(
            {
                "deciders": [worker.title for worker in seen],
                "open_here": [worker.title for worker in seen if worker.is_ours],
            }
        )

    async def metrics(request: Request) -> Response:
        service.allow(request, "read", EVERYWHERE)
        return Response(await asyncio.to_thread(service.metrics.text), media_type=CONTENT_TYPE)

    async def alive(_request: Request) -> Response:
        return json_response({"alive": True})

    async def ready(_request: Request) -> Response:
        if awaited := service.workers.awaited:
            raise Problem(503, f"not ready: {awaited}", "BusyError", 1)
        workers = [worker for _, _, worker in service.workers]
        # Counts only: this route needs no token.
        return json_response(
            {"ready": True, "deciders": len(workers), "open_here": sum(worker.is_ours for worker in workers)}
        )

    @cache
    def page() -> str:
        return api_page(app.openapi())

    async def index(_request: Request) -> Response:
        return Response(page(), media_type="text/html; charset=utf-8")

    began = {"classes": ["billing", "refund"], "learner": "BanditSVM", "deadline": 604800, "exploration_floor": 0.02}
    description = "Make a decider; if it is there, it must be the same. Role: admin."
    add_route(app, "PUT", "/v1/{namespace}/{name}", create, description, began)
    add_route(app, "GET", "/v1", deciders, "The deciders that you may see. Role: read.")
    add_route(app, "GET", "/metrics", metrics, "For Prometheus. Role: read, in every namespace.")
    add_route(app, "GET", "/healthz", alive, "Whether the process is alive.")
    add_route(app, "GET", "/readyz", ready, "Whether no decider is still being opened or compiled.")
    add_route(app, "GET", "/api", index, "This page.")
