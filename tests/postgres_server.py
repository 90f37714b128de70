"""A PostgreSQL server of the tests' own, in a temporary folder; the tests are skipped where there is none to start."""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG
REQUIRED = "ONEBIT_REQUIRE_POSTGRES"


@cache
def binaries() -> Path | None:
    """Return the folder of the server's programs, if there is one."""
    found = shutil.which("postgres")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists() and (place / "postgres").exists()), None)


def require_server() -> None:
    """Skip a test where there is no server or no psycopg; fail instead where that is asked for."""
    try:
        import psycopg  # noqa: F401

        missing = "" if binaries() else "no PostgreSQL server is installed"
    except ImportError:
        missing = "psycopg is not installed"
    if missing:
        (pytest.fail if os.environ.get(REQUIRED) else pytest.skip)(missing)


def _as_somebody() -> Callable[[], None]:
    """Return what lets a child be somebody else, since the server does not run as root, and end with its parent."""
    import pwd

    names = {each.pw_name: each for each in pwd.getpwall()}
    who = names.get("postgres") or names["nobody"]
    library = ctypes.CDLL(None)

    def become() -> None:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(who.pw_gid)
            os.setuid(who.pw_uid)
        if sys.platform == "linux":
            library.prctl(_END_WITH_PARENT, signal.SIGINT)

    return become


class Server:
    """A server while it runs; it listens on this machine, and trusts everybody there."""

    def __init__(self, *, fsync: bool) -> None:
        self._fsync = fsync
        self._become = _as_somebody()
        self._folder = Path(tempfile.mkdtemp(prefix="onebit-postgres-", dir="/tmp"))
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"postgresql://onebit@127.0.0.1:{self.port}/postgres"

    def __enter__(self) -> Self:
        self._folder.chmod(0o777)
        self._run("initdb", "-D", "data", "-U", "onebit", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8")
        self.start()
        return self

    def _run(self, program: str, *arguments: str) -> None:
        place = binaries()
        assert place is not None
        command = [str(place / program), *arguments]
        with (self._folder / f"{program}.txt").open("wb") as said:
            subprocess.run(
                command, cwd=self._folder, preexec_fn=self._become, stdout=said, stderr=said, check=True, env=_plain()
            )

    def start(self) -> None:
        """Start it, and return when it answers."""
        place = binaries()
        assert place is not None
        settings = {
            "port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": self._folder,
            "fsync": "on" if self._fsync else "off", "max_connections": 60, "shared_buffers": "16MB",
            "autovacuum": "off", "restart_after_crash": "on",
        }  # fmt: skip
        command = [str(place / "postgres"), "-D", "data"]
        command += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self._folder / "server.txt").open("ab") as said:
            self._process = subprocess.Popen(
                command, cwd=self._folder, preexec_fn=self._become, stdout=said, stderr=said, env=_plain()
            )
        give_up = time.monotonic() + 60.0
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError((self._folder / "server.txt").read_text()[-2000:])
            time.sleep(0.02)

    def answers(self) -> bool:
        """Say whether it can be asked."""
        import psycopg

        try:
            psycopg.connect(self.url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def kill(self) -> None:
        """End it at once, with all its processes, as a loss of power would."""
        assert self._process is not None
        children = _children(self._process.pid)
        self._process.kill()
        self._process.wait()
        for child in children:
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                continue
        give_up = time.monotonic() + 30.0
        while any(Path(f"/proc/{child}").exists() for child in children) and time.monotonic() < give_up:
            time.sleep(0.01)

    def __exit__(self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # fast: sessions are ended
            self._process.wait(30)
        shutil.rmtree(self._folder, ignore_errors=True)


def _plain() -> dict[str, str]:
    """Return an environment without settings of this user's own, in which nobody looks for a home."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"HOME": "/"}


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
