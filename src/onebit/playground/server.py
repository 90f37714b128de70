"""The playground over HTTP, on this machine only: a page and its JSON API."""

import asyncio
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, structs
from starlette.requests import Request
from starlette.responses import Response

from onebit.decider.requests import request_of
from onebit.playground.digits import Asker, Oracle
from onebit.playground.scenes import make_scene, scene_from_table
from onebit.playground.session import Session
from onebit.service.gate import Gate, Problem, Route, json_response, page_routes

_PAGE = Path(__file__).parent / "page"
_MOST_SESSIONS, _IDLE_SECONDS = 12, 2 * 3600.0
_LARGEST_TABLE = 2_000_000  # maximum characters of an uploaded table


class _Sessions:
    """Keeps objects under random ids; idle ones are dropped, and the least recently used when there are too many."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[Any, float]] = OrderedDict()  # the one used longest ago first

    def add(self, thing: Any) -> str:
        """Store an object and return its id."""
        if len(self._kept) >= _MOST_SESSIONS:
            self._kept.popitem(last=False)
        name = secrets.token_urlsafe(16)
        self._kept[name] = thing, time.monotonic()
        return name

    def get(self, name: str) -> Any:
        """Return the object with an id, and mark it as used; raises Problem if there is none."""
        now = time.monotonic()
        thing, used = self._kept.pop(name, (None, -math.inf))
        if now - used > _IDLE_SECONDS:
            raise Problem(404, "there is no such session: it was left alone too long; start a new one")
        self._kept[name] = thing, now
        return thing

    def drop(self, name: str) -> None:
        """Drop the object with an id, if there is one."""
        self._kept.pop(name, None)


# Requests.


class _Table(Struct, forbid_unknown_fields=True):
    name: str
    text: Annotated[str, Meta(max_length=_LARGEST_TABLE)]
    label: str = ""
    drop: list[str] = []


def _new_session(stream: str, learners: list[str], seed: int = 0, table: _Table | None = None) -> Session:
    if stream != "csv":
        scene = make_scene(stream, seed)
    elif table is None:
        raise ValueError("table is missing: choose a .csv file")
    else:
        scene = scene_from_table(table.name, table.text.encode(), seed, table.label or None, table.drop)
    return Session(scene, learners, seed)


class Playground(Gate):
    """The ASGI application, with no sessions yet."""

    def __init__(self) -> None:
        sessions, oracles, askers = _Sessions(), _Sessions(), _Sessions()
        home = Response((_PAGE / "index.html").read_bytes(), media_type="text/html")

        def dropped(request: Request) -> Response:
            sessions.drop(request.path_params["name"])
            return Response(status_code=204)

        routes = [
            Route("GET", "/", lambda _request: home),
            *page_routes(_PAGE),
            Route("GET", "/api/catalogue", lambda _request: Session.choices()),
            _new("/api/sessions", sessions, _new_session),
            _call("GET", "/api/sessions/{name}", sessions, Session.frame),
            _call("POST", "/api/sessions/{name}/advance", sessions, Session.advance),
            _call("POST", "/api/sessions/{name}/points", sessions, Session.add_points),
            _call("GET", "/api/sessions/{name}/regions", sessions, Session.regions),
            _call("GET", "/api/sessions/{name}/opinions", sessions, Session.opinions),
            _call("GET", "/api/sessions/{name}/promises", sessions, Session.promises),
            Route("DELETE", "/api/sessions/{name}", dropped),
            _new("/api/oracles", oracles, Oracle),
            _call("GET", "/api/oracles/{name}", oracles, Oracle.frame),
            _call("POST", "/api/oracles/{name}/answer", oracles, Oracle.answer),
            _new("/api/askers", askers, Asker),
            _call("GET", "/api/askers/{name}", askers, Asker.frame),
            _call("POST", "/api/askers/{name}/label", askers, Asker.label),
            _call("POST", "/api/askers/{name}/go-on", askers, Asker.go_on),
        ]
        super().__init__(routes, "the playground")


def _new(path: str, kept: _Sessions, make: Callable[..., Any]) -> Route:
    """Return a route that makes and stores an object; in a thread, so that learners do not block other requests."""

    async def work(_request: Request, asked: Struct) -> Response:
        made = await asyncio.to_thread(make, **structs.asdict(asked))
        return json_response({"id": kept.add(made)} | await asyncio.to_thread(made.frame), 201)

    return Route("POST", path, work, asks=request_of(make))


def _call(method: str, path: str, kept: _Sessions, call: Callable[..., Any]) -> Route:
    """Return a route that calls a method of the object with the id in the path; a POST returns its frame."""

    async def work(request: Request, asked: Struct) -> Any:
        thing = kept.get(request.path_params["name"])
        found = await asyncio.to_thread(call, thing, **structs.asdict(asked))
        return await asyncio.to_thread(thing.frame) if method == "POST" else found

    return Route(method, path, work, asks=request_of(call))
