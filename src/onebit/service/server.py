"""The server of ``onebit serve``: uvicorn's, which says where it listens, and ends when what it began is answered."""

import asyncio
import logging
import socket
from collections.abc import Callable

import uvicorn

_LAST_ANSWERS_SECONDS = 1.0
_LOG = logging.getLogger("onebit.serve")


class Server(uvicorn.Server):
    """A server whose connections `protocol.guard` has set up.

    Parameters
    ----------
    config : uvicorn.Config
        Its settings.
    on_stop : callable, optional
        Called when it begins to stop, before it waits for the requests that it has.
    """

    def __init__(self, config: uvicorn.Config, on_stop: Callable[[], None] | None = None) -> None:
        super().__init__(config)
        self._on_stop = on_stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        for server in self.servers:
            for listening in server.sockets:
                where = listening.getsockname()
                shown = f"[{where[0]}]" if ":" in where[0] else where[0]
                _LOG.info("listening on http://%s:%d", shown, where[1])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop; requests that deciders had begun when the grace was over are answered once they are written."""
        if self._on_stop is not None:
            self._on_stop()
        await super().shutdown(sockets)
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=_LAST_ANSWERS_SECONDS)
