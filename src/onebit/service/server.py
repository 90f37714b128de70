"""The server of ``onebit serve``: uvicorn with a log line at startup and graceful shutdown."""

import asyncio
import logging
import socket
from collections.abc import Callable

import uvicorn

_LAST_ANSWERS_SECONDS = 1.0
_LOG = logging.getLogger("onebit.serve")


class Server(uvicorn.Server):
    """A server for a configuration from `protocol.guard`.

    Parameters
    ----------
    config : uvicorn.Config
        Its settings.
    on_stop : callable, optional
        Called when it starts to stop, before it waits for running requests.
    """

    def __init__(self, config: uvicorn.Config, on_stop: Callable[[], None] | None = None) -> None:
        super().__init__(config)
        self._on_stop = on_stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening."""
        await super().startup(sockets)
        for server in self.servers:
            for listening in server.sockets:
                where = listening.getsockname()
                shown = f"[{where[0]}]" if ":" in where[0] else where[0]
                _LOG.info("listening on http://%s:%d", shown, where[1])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop; requests that workers have started are still answered after the grace period."""
        if self._on_stop is not None:
            self._on_stop()
        await super().shutdown(sockets)
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=_LAST_ANSWERS_SECONDS)
