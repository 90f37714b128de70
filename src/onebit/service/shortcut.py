"""Fast routing of the most frequent requests: FastAPI's routing takes longer than a guess."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from onebit.service.web import Application, Receive, Scope, Send

Endpoint = Callable[[Request], Awaitable[Response]]


class Shortcut:
    """ASGI middleware that routes ``POST /v1/{namespace}/{name}/{verb}``; other requests go to the application.

    Parameters
    ----------
    app : application
        The wrapped application.
    verbs : dict
        The application's endpoints by verb.
    """

    def __init__(self, app: Application, verbs: dict[str, Endpoint]) -> None:
        self._app, self._verbs = app, verbs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or pass it on."""
        if scope["type"] == "http" and scope["method"] == "POST":
            parts = scope["path"].split("/")
            if len(parts) == 5 and parts[1] == "v1" and parts[4] in self._verbs:
                scope["path_params"] = {"namespace": parts[2], "name": parts[3]}
                response = await self._verbs[parts[4]](Request(scope, receive))
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)
