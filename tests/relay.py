"""A network between two programs that can be cut: connections are closed, or nothing passes any more."""

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self


class Relay:
    """Passes on what comes to `port` to another port of this machine."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._passes = threading.Event()
        self._passes.set()
        self._is_cut, self._is_over = False, False
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        self._is_over = True
        self._passes.set()
        self._listening.close()
        self.cut()

    def cut(self) -> None:
        """Close all connections, and every new one."""
        self._is_cut = True
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._sockets = []

    def swallow(self) -> None:
        """Let nothing pass; connections stay, and new ones can be made."""
        self._passes.clear()

    def mend(self) -> None:
        """Let all pass again, and what was kept back."""
        self._is_cut = False
        self._passes.set()

    def _accept(self) -> None:
        while not self._is_over:
            try:
                here, _ = self._listening.accept()
            except OSError:
                return
            if self._is_cut:
                here.close()
                continue
            try:
                there = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                here.close()
                continue
            self._sockets += [here, there]
            for source, sink in ((here, there), (there, here)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._passes.wait()
                sink.sendall(data)
        self._passes.wait()  # nobody hears of an end either
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)
        source.close()
