"""``onebit playground``: serve the page on this machine, and open a browser."""

import os
import socket
import subprocess
import sys
import threading
import webbrowser
from contextlib import suppress
from importlib.metadata import version
from typing import Annotated

from rich.console import Console

from onebit.extras import require_extra
from onebit.inputs import check_integer

_HOST = "127.0.0.1"
_NO_COMPILER = "NUMBA_DISABLE_JIT"


def command(
    *,
    port: Annotated[int, "Where to listen, on this machine only; another if it is taken."] = 8017,
    browser: Annotated[bool, "Open the page in a browser."] = True,
    compiled: Annotated[bool, "Compile the learners: faster, after a minute or two the first time."] = False,
) -> None:
    """Open a page where you watch learners learn, draw points for them, or answer them yourself."""
    check_integer("--port", port, low=0, high=65535)
    require_extra("the playground needs", "serve")
    # Whether code is compiled is settled when onebit is imported, so another process must do it. As plain Python it is
    # guess for guess the same, and the first round comes at once.
    if not compiled and os.environ.get(_NO_COMPILER) != "1":
        words = ["playground", "--port", str(port), "--browser" if browser else "--no-browser"]
        again, environment = [sys.executable, "-m", "onebit", *words], {**os.environ, _NO_COMPILER: "1"}
        if os.name == "posix":
            os.execve(again[0], again, environment)
        with suppress(KeyboardInterrupt):
            raise SystemExit(subprocess.run(again, env=environment, check=False).returncode)
        return
    import uvicorn

    from onebit.playground.server import Playground
    from onebit.service.server import Connections, Server, raise_file_limit

    listening = _listen(port)
    address = f"http://{_HOST}:{listening.getsockname()[1]}/"
    console = Console(highlight=False, soft_wrap=True)
    settings = uvicorn.Config(Playground(), log_level="warning", server_header=False, timeout_graceful_shutdown=1)
    console.print(f"onebit {version('onebit')}: the playground is at {address} (Ctrl-C stops it)")
    sys.stdout.flush()
    if browser:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    with suppress(KeyboardInterrupt):
        Server(settings, Connections(n_files=raise_file_limit())).run(sockets=[listening])
    console.print("Stopped.")


def _listen(port: int) -> socket.socket:
    """Return a socket of this machine alone, on that port, or on any other if it is taken."""
    try:
        return socket.create_server((_HOST, port))
    except OSError:
        return socket.create_server((_HOST, 0))
