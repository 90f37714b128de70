"""The playground over HTTP, on this machine only: a page and its JSON API.

Requests of other sites are refused. Errors are problem+json (RFC 9457) with the library's messages; internal errors are
only logged.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi import Path as PathPart
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat
from starlette.exceptions import HTTPException

from onebit.playground.catalogue import CATALOGUE, MOST_LEARNERS
from onebit.playground.oracle import LONGEST_NAME, MOST_NAMES, Oracle, StaleError
from onebit.playground.scenes import DRAWN_LABELS, MOST_POINTS, make_scene, scene_from_table, scene_titles
from onebit.playground.session import LARGEST_GRID, MOST_AT_ONCE, BusyError, Session
from onebit.playground.sessions import NoSuchSessionError, Sessions
from onebit.reporting.looks import PALETTE
from onebit.service.web import (
    HEADERS,
    PAGE_HEADERS,
    PAGE_PARTS,
    Application,
    Message,
    Problem,
    Receive,
    Scope,
    Send,
    check_own_page,
    headers_of,
    read_body,
)

PAGE = Path(__file__).parent / "page"
MOST_SESSIONS, MOST_ORACLES = 12, 12
IDLE_SECONDS = 2 * 3600.0
LARGEST_TABLE = 2_000_000
"""Maximum characters of an uploaded table."""

_HEADERS = [*HEADERS, *PAGE_HEADERS]
_LOG = logging.getLogger("onebit.playground")


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Table(_Body):
    """A table of the user."""

    name: str = Field(max_length=200)
    text: str = Field(max_length=LARGEST_TABLE)
    label: str = Field(default="", max_length=200)
    """The label column; the default ones if empty."""
    drop: list[Annotated[str, Field(max_length=200)]] = Field(default=[], max_length=100)
    """Columns to leave out."""


class NewSession(_Body):
    """Settings of a new session."""

    stream: str = Field(max_length=40)
    learners: list[Annotated[str, Field(max_length=40)]] = Field(min_length=1, max_length=MOST_LEARNERS)
    seed: int = Field(default=0, ge=0, lt=2**53)
    table: Table | None = None


class Advance(_Body):
    """Number of rounds to play."""

    rounds: int = Field(ge=1, le=MOST_AT_ONCE)


class Point(_Body):
    """A drawn point."""

    x: FiniteFloat
    y: FiniteFloat
    label: str = Field(max_length=40)


class Points(_Body):
    """Drawn points."""

    points: list[Point] = Field(min_length=1, max_length=MOST_POINTS)


class NewOracle(_Body):
    """Settings of a new oracle session."""

    classes: list[Annotated[str, Field(max_length=LONGEST_NAME)]] = Field(min_length=2, max_length=MOST_NAMES)
    learner: str = Field(default="svm", max_length=40)
    seed: int = Field(default=0, ge=0, lt=2**53)


class OracleAnswer(_Body):
    """Feedback for a round."""

    round: int = Field(ge=1)
    correct: bool


_Id = Annotated[str, PathPart(max_length=64)]


def create_app() -> FastAPI:
    """Return the application, with no sessions yet."""
    app = FastAPI(title="onebit playground", docs_url=None, redoc_url=None, openapi_url=None)
    sessions: Sessions[Session] = Sessions(MOST_SESSIONS, IDLE_SECONDS, let_go=Session.end)
    oracles: Sessions[Oracle] = Sessions(MOST_ORACLES, IDLE_SECONDS)
    _add_sessions(app, sessions)
    _add_oracles(app, oracles)
    _add_page(app)
    _add_errors(app)
    app.add_middleware(Gate)
    return app


# Not async: FastAPI runs these functions in threads, so that learners do not block other requests.


def _add_sessions(app: FastAPI, sessions: Sessions[Session]) -> None:
    @app.get("/api/catalogue")
    def catalogue() -> dict[str, Any]:
        return {
            "streams": [{"name": name, "title": title} for name, title in scene_titles().items()],
            "learners": [
                {
                    "key": key,
                    "title": entry.title,
                    "says": entry.description,
                    "full_information": type(entry.learner).full_information,
                }
                for key, entry in CATALOGUE.items()
            ],
            "most_learners": MOST_LEARNERS,
            "most_at_once": MOST_AT_ONCE,
            "drawn_labels": DRAWN_LABELS,
            "palette": PALETTE[:-1],
        }

    @app.post("/api/sessions", status_code=201)
    def new_session(asked: NewSession) -> dict[str, Any]:
        if asked.stream == "csv":
            if asked.table is None:
                raise ValueError("table is missing: choose a .csv file")
            table = asked.table
            scene = scene_from_table(table.name, table.text.encode(), asked.seed, table.label or None, table.drop)
        else:
            scene = make_scene(asked.stream, asked.seed)
        session = Session(scene, asked.learners, asked.seed)
        session.prepare()
        return {"id": sessions.add(session), **session.frame()}

    @app.get("/api/sessions/{name}")
    def frame(name: _Id) -> dict[str, Any]:
        return sessions.get(name).frame()

    @app.post("/api/sessions/{name}/advance")
    def advance(name: _Id, asked: Advance) -> dict[str, Any]:
        session = sessions.get(name)
        session.advance(asked.rounds)
        return session.frame()

    @app.post("/api/sessions/{name}/points")
    def draw(name: _Id, asked: Points) -> dict[str, Any]:
        session = sessions.get(name)
        session.add_points([(point.x, point.y, point.label) for point in asked.points])
        return session.frame()

    @app.get("/api/sessions/{name}/regions")
    def regions(
        name: _Id, learner: Annotated[int, Query(ge=0)], size: Annotated[int, Query(ge=4, le=LARGEST_GRID)] = 32
    ) -> dict[str, Any]:
        return sessions.get(name).regions(learner, size)

    @app.get("/api/sessions/{name}/opinions")
    def opinions(name: _Id, learner: Annotated[int, Query(ge=0)], x: FiniteFloat, y: FiniteFloat) -> dict[str, Any]:
        return sessions.get(name).opinions(learner, x, y)

    @app.delete("/api/sessions/{name}", status_code=204)
    def end(name: _Id) -> None:
        sessions.drop(name)


def _add_oracles(app: FastAPI, oracles: Sessions[Oracle]) -> None:
    @app.post("/api/oracles", status_code=201)
    def new_oracle(asked: NewOracle) -> dict[str, Any]:
        oracle = Oracle(asked.classes, asked.learner, asked.seed)
        return {"id": oracles.add(oracle), **oracle.frame()}

    @app.get("/api/oracles/{name}")
    def look(name: _Id) -> dict[str, Any]:
        return oracles.get(name).frame()

    @app.post("/api/oracles/{name}/answer")
    def answer(name: _Id, asked: OracleAnswer) -> dict[str, Any]:
        oracle = oracles.get(name)
        oracle.answer(asked.round, asked.correct)
        return oracle.frame()


def _add_page(app: FastAPI) -> None:
    @app.get("/")
    def index() -> FileResponse:
        return FileResponse(PAGE / "index.html")

    app.mount("/page", StaticFiles(directory=PAGE))
    app.mount("/parts", StaticFiles(directory=PAGE_PARTS))


def problem(status: int, detail: str) -> Response:
    """Return an error as problem+json."""
    return Problem(status, detail).response()


def _add_errors(app: FastAPI) -> None:
    def of(status: int) -> Callable[[Request, Exception], Response]:
        return lambda _request, error: problem(status, str(error))

    for kind, status in ((NoSuchSessionError, 404), (StaleError, 409), (BusyError, 503), (ValueError, 422)):
        app.add_exception_handler(kind, of(status))

    @app.exception_handler(HTTPException)
    def refused(_request: Request, error: HTTPException) -> Response:
        return problem(error.status_code, str(error.detail))

    @app.exception_handler(RequestValidationError)
    def misread(_request: Request, error: RequestValidationError) -> Response:
        faults = [f"{'.'.join(map(str, fault['loc'][1:])) or 'body'}: {fault['msg']}" for fault in error.errors()[:3]]
        return problem(422, "; ".join(faults))


class Gate:
    """Middleware for every request: origin, size limits, and response headers."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        has_begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                message = {**message, "headers": [*message.get("headers", []), *_HEADERS]}
            await send(message)

        try:
            headers = headers_of(scope)
            check_own_page(headers, "the playground")
            body = await read_body(scope["method"], headers, receive)
            await self._app(scope, _replay(body, receive), send_with_headers)
        except Problem as refusal:
            await refusal.response()(scope, receive, send_with_headers)
        except Exception as error:
            _LOG.error("%s %s failed", scope["method"], scope["path"], exc_info=error)
            if not has_begun:
                broken = problem(500, "something went wrong inside; the terminal that started the playground says what")
                await broken(scope, receive, send_with_headers)


def _replay(body: bytes, receive: Receive) -> Receive:
    is_sent = False

    async def again() -> Message:
        nonlocal is_sent
        if is_sent:
            return await receive()
        is_sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
