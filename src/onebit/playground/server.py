"""The playground over HTTP, on this machine only: a page and its JSON API.

Requests of other sites are refused. Errors are problem+json (RFC 9457) with the library's messages; internal errors are
only logged.
"""

import asyncio
import secrets
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from onebit.decider.calls import checked, read_json
from onebit.decider.log import to_json
from onebit.playground.catalogue import CATALOGUE, MOST_LEARNERS
from onebit.playground.oracle import LONGEST_NAME, MOST_NAMES, Oracle, StaleError
from onebit.playground.scenes import DRAWN_LABELS, MOST_POINTS, SCENES, make_scene, scene_from_table
from onebit.playground.session import LARGEST_GRID, MOST_AT_ONCE, BusyError, Session
from onebit.reporting.looks import PALETTE
from onebit.service.gate import (
    PAGE_PARTS,
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

PAGE = Path(__file__).parent / "page"
MOST_SESSIONS, MOST_ORACLES = 12, 12
IDLE_SECONDS = 2 * 3600.0
LARGEST_TABLE = 2_000_000  # maximum characters of an uploaded table

_Kept = TypeVar("_Kept")


class NoSuchSessionError(LookupError):
    """There is no session with this id, or it is over."""


class Sessions(Generic[_Kept]):
    """Stores objects under random ids; idle ones are dropped, and the least recently used when there are too many.

    >>> sessions = Sessions(most=1, idle_seconds=60.0)
    >>> first, second = sessions.add("a"), sessions.add("b")
    >>> sessions.get(second), len(sessions)
    ('b', 1)
    """

    def __init__(
        self,
        most: int,
        idle_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        let_go: Callable[[_Kept], None] = lambda _thing: None,
    ) -> None:
        self._most, self._idle_seconds, self._clock, self._let_go = most, idle_seconds, clock, let_go
        self._kept: OrderedDict[str, tuple[_Kept, float]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        with self._lock:
            self._drop_old()
            return len(self._kept)

    def add(self, thing: _Kept) -> str:
        """Store an object and return its id."""
        name = secrets.token_urlsafe(16)
        with self._lock:
            self._drop_old()
            while len(self._kept) >= self._most:
                self._forget(next(iter(self._kept)))
            self._kept[name] = thing, self._clock()
        return name

    def get(self, name: str) -> _Kept:
        """Return the object with an id, and mark it as used."""
        with self._lock:
            self._drop_old()
            if name not in self._kept:
                raise NoSuchSessionError("there is no such session: it was left alone too long; start a new one")
            thing, _ = self._kept.pop(name)
            self._kept[name] = thing, self._clock()
            return thing

    def drop(self, name: str) -> None:
        """Drop the object with an id, if there is one."""
        with self._lock:
            self._forget(name)

    def _drop_old(self) -> None:
        # In order of use: the first is the oldest.
        now = self._clock()
        while self._kept:
            name, (_, asked) = next(iter(self._kept.items()))
            if now - asked <= self._idle_seconds:
                return
            self._forget(name)

    def _forget(self, name: str) -> None:
        if name in self._kept:
            self._let_go(self._kept.pop(name)[0])


# Requests.

_Word = Annotated[str, Meta(max_length=40)]
_Name = Annotated[str, Meta(max_length=200)]
_Seed = Annotated[int, Meta(ge=0, lt=2**53)]
_Number = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]


class _Request(Struct, forbid_unknown_fields=True):
    pass


class _Table(_Request):
    name: _Name
    text: Annotated[str, Meta(max_length=LARGEST_TABLE)]
    label: _Name = ""
    drop: Annotated[list[_Name], Meta(max_length=100)] = []


class _NewSession(_Request):
    stream: _Word
    learners: Annotated[list[_Word], Meta(min_length=1, max_length=MOST_LEARNERS)]
    seed: _Seed = 0
    table: _Table | None = None


class _Advance(_Request):
    rounds: Annotated[int, Meta(ge=1, le=MOST_AT_ONCE)]


class _Point(_Request):
    x: _Number
    y: _Number
    label: _Word


class _Points(_Request):
    points: Annotated[list[_Point], Meta(min_length=1, max_length=MOST_POINTS)]


class _Regions(_Request):
    learner: Annotated[int, Meta(ge=0)]
    size: Annotated[int, Meta(ge=4, le=LARGEST_GRID)] = 32


class _Opinions(_Request):
    learner: Annotated[int, Meta(ge=0)]
    x: _Number
    y: _Number


class _NewOracle(_Request):
    classes: Annotated[list[Annotated[str, Meta(max_length=LONGEST_NAME)]], Meta(min_length=2, max_length=MOST_NAMES)]
    learner: _Word = "svm"
    seed: _Seed = 0


class _OracleAnswer(_Request):
    round: Annotated[int, Meta(ge=1)]
    correct: bool


class Playground:
    """The ASGI application, with no sessions yet."""

    def __init__(self) -> None:
        sessions = self._sessions = Sessions[Session](MOST_SESSIONS, IDLE_SECONDS, let_go=Session.end)
        oracles = self._oracles = Sessions[Oracle](MOST_ORACLES, IDLE_SECONDS)
        page, parts = Files(PAGE), Files(PAGE_PARTS)
        one_session, one_oracle = "/api/sessions/{name}", "/api/oracles/{name}"
        routes = [
            _file("/", lambda _request: page.response("index.html")),
            _file("/page/{path:path}", lambda request: page.response(request.path_params["path"])),
            _file("/parts/{path:path}", lambda request: parts.response(request.path_params["path"])),
            _call("GET", "/api/catalogue", _catalogue),
            _call("POST", "/api/sessions", self._new_session, _NewSession, 201),
            _call("GET", one_session, lambda name: sessions.get(name).frame()),
            _call("POST", f"{one_session}/advance", self._advance, _Advance),
            _call("POST", f"{one_session}/points", self._draw, _Points),
            _call(
                "GET",
                f"{one_session}/regions",
                lambda name, of: sessions.get(name).regions(of.learner, of.size),
                _Regions,
            ),
            _call(
                "GET",
                f"{one_session}/opinions",
                lambda name, of: sessions.get(name).opinions(of.learner, of.x, of.y),
                _Opinions,
            ),
            _call("DELETE", one_session, sessions.drop, status=204),
            _call("POST", "/api/oracles", self._new_oracle, _NewOracle, 201),
            _call("GET", one_oracle, lambda name: oracles.get(name).frame()),
            _call("POST", f"{one_oracle}/answer", self._answer, _OracleAnswer),
        ]
        self._gate = Gate(
            Router(routes, redirect_slashes=False), _admit, "onebit.playground", _problem_of, expected=(BusyError,)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        await self._gate(scope, receive, send)

    def _new_session(self, asked: _NewSession) -> dict[str, Any]:
        if asked.stream == "csv":
            if asked.table is None:
                raise ValueError("table is missing: choose a .csv file")
            table = asked.table
            scene = scene_from_table(table.name, table.text.encode(), asked.seed, table.label or None, table.drop)
        else:
            scene = make_scene(asked.stream, asked.seed)
        session = Session(scene, asked.learners, asked.seed)
        session.prepare()
        return {"id": self._sessions.add(session), **session.frame()}

    def _advance(self, name: str, asked: _Advance) -> dict[str, Any]:
        session = self._sessions.get(name)
        session.advance(asked.rounds)
        return session.frame()

    def _draw(self, name: str, asked: _Points) -> dict[str, Any]:
        session = self._sessions.get(name)
        session.add_points([(point.x, point.y, point.label) for point in asked.points])
        return session.frame()

    def _new_oracle(self, asked: _NewOracle) -> dict[str, Any]:
        oracle = Oracle(asked.classes, asked.learner, asked.seed)
        return {"id": self._oracles.add(oracle), **oracle.frame()}

    def _answer(self, name: str, asked: _OracleAnswer) -> dict[str, Any]:
        oracle = self._oracles.get(name)
        oracle.answer(asked.round, asked.correct)
        return oracle.frame()


def _catalogue() -> dict[str, Any]:
    return {
        "streams": [{"name": name, "title": title} for name, (title, _) in SCENES.items()],
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


def _call(
    method: str, path: str, work: Callable[..., Any], kind: type[Struct] | None = None, status: int = 200
) -> Route:
    """Return a route that calls `work` with the id in the path and the checked body or query."""

    async def answer(request: Request) -> Response:
        arguments: list[Any] = list(request.path_params.values())
        if kind is not None and method == "POST":
            arguments.append(checked(kind, read_json(request.scope["state"]["body"])))
        elif kind is not None:
            arguments.append(checked(kind, dict(request.query_params), strict=False))
        # In a thread, so that learners do not block other requests.
        result = await asyncio.to_thread(work, *arguments)
        return Response(b"" if status == 204 else to_json(result), status, media_type="application/json")

    return Route(path, answer, methods=[method])


def _file(path: str, response_of: Callable[[Request], Response]) -> Route:
    async def answer(request: Request) -> Response:
        return response_of(request)

    return Route(path, answer)


def _admit(_scope: Scope, headers: Headers) -> None:
    check_own_page(headers, "the playground")


_STATUS = {NoSuchSessionError: 404, StaleError: 409, BusyError: 503}


def _problem_of(error: BaseException) -> Problem:
    for kind, status in _STATUS.items():
        if isinstance(error, kind):
            return Problem(status, str(error))
    problem = problem_of(error)
    if problem.status < 500:
        return problem
    return Problem(500, "something went wrong inside; the terminal that started the playground says what")
