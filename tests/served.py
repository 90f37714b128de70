"""Asks a service as a server would, without one (no sockets, no client library), or runs one in a thread."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import uvicorn

from onebit.service.app import Service
from onebit.service.server import Connections, Server

LIGHT: dict[str, Any] = {"classes": ["a", "b", "c"], "learner": "BanditPerceptron"}
DESK = "/v1/shop/routing"


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def is_problem(reply: Reply, status: int, said: str = "") -> bool:
    assert (reply.status, reply.headers["content-type"]) == (status, "application/problem+json"), reply
    assert reply.json["status"] == status
    assert said in reply.json["detail"]
    assert "Traceback" not in reply.json["detail"]
    return True


class Served:
    """A service while it runs."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.app = Service(folder, **settings)
        self.service = self.app

    def __enter__(self) -> Self:
        self._runner = asyncio.Runner()
        self._lifespan = self.app.running()
        self._runner.run(self._lifespan.__aenter__())
        for _, _, desk in self.service.workers:
            desk.opened.wait()
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: Any, _trace: TracebackType | None) -> None:
        self._runner.run(self._lifespan.__aexit__(None, None, None))
        self._runner.close()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        return self.ask_all([(method, path, body)], **headers)[0]

    def ask_all(self, requests: list[tuple[str, str, Any]], **headers: str) -> list[Reply]:
        """Ask all at once."""

        async def gathered() -> list[Reply]:
            return list(await asyncio.gather(*(self._ask(*request, headers) for request in requests)))

        return self._runner.run(gathered())

    async def _ask(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Reply:
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent = {"host": "127.0.0.1:8018", "content-length": str(len(content))}
        sent |= {"content-type": "application/json"} if method in ("POST", "PUT") else {}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        plain, _, query = path.partition("?")
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": plain, "raw_path": plain.encode(), "query_string": query.encode(), "root_path": "",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in sent.items()],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8018),
        }  # fmt: skip
        # In two pieces, as large bodies come.
        pieces = [
            {"type": "http.request", "body": content[:10], "more_body": True},
            {"type": "http.request", "body": content[10:], "more_body": False},
        ]
        messages: list[Any] = []

        async def receive() -> Any:
            return pieces.pop(0)

        async def send(message: Any) -> None:
            messages.append(message)

        await self.app(scope, receive, send)
        said = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
        return Reply(messages[0]["status"], said, b"".join(message.get("body", b"") for message in messages[1:]))


def kept_under(path: str, app: Any) -> Any:
    """Return an application as a proxy passes it on under a path, which it takes off; nothing else is there."""

    async def proxy(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            asked = scope["path"]
            inner = asked.removeprefix(path) if asked.startswith(f"{path}/") else "/nothing/is/here"
            scope = {**scope, "path": inner, "raw_path": inner.encode()}
        await app(scope, receive, send)

    return proxy


@contextmanager
def serving_here(folder: Path, under: str = "", places: Connections | None = None, **settings: Any) -> Iterator[str]:
    """Run a service in a thread: a process of its own takes seconds to begin."""
    app = kept_under(under, Service(folder, **settings))
    with running_here(app, places) as (url, _server):
        yield url + under


@contextmanager
def running_here(
    app: Any, places: Connections | None = None, on_stop: Callable[[], None] | None = None, **settings: Any
) -> Iterator[tuple[str, Server]]:
    """Run a server in a thread; settings are uvicorn's."""
    config = uvicorn.Config(app, log_config=None, ws="none", timeout_keep_alive=1, **settings)
    server, listening = Server(config, places or Connections(1_000, 250), on_stop), socket.socket()
    listening.bind(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", server
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
