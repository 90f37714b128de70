"""``onebit serve``."""

import ipaddress
import logging
import os
from pathlib import Path
from typing import Annotated, Any

from onebit.decider.settings import has_password, is_database
from onebit.engine.compile_notice import NOTICE
from onebit.extras import require_extra
from onebit.files import make_folder
from onebit.inputs import check_integer, check_number
from onebit.service.access import Tokens

_LOG_VARIABLE = "ONEBIT_LOG"
"""Names the database, so that no password need be on the command line."""
_PASSWORD_FILE_VARIABLE = "ONEBIT_LOG_PASSWORD_FILE"
"""Names a file with the database's password, as containers are given secrets."""
_UVICORN: Any = {"log_config": None, "access_log": False, "server_header": False, "proxy_headers": False, "ws": "none"}
_UVICORN |= {"timeout_keep_alive": 30, "timeout_graceful_shutdown": 20}  # seconds of an idle connection, of the end
_FAILED, _INTERRUPTED = 1, 130  # what shells expect


def command(
    folder: Annotated[Path, "Where deciders and tokens are; made if it is missing."],
    *,
    host: Annotated[str, "Where to listen; others than this machine need tokens."] = "127.0.0.1",
    port: Annotated[int, "Where to listen; 0: any that is free."] = 8018,
    rate: Annotated[float, "Guesses and answers a second that one caller may ask for; 0: any number."] = 20_000.0,
    log_requests: Annotated[bool, "Note every request; otherwise those that were refused."] = False,
    log: Annotated[
        str | None, "Keep deciders in a PostgreSQL database, by its URL; or say it in the variable ONEBIT_LOG."
    ] = None,
    memory: Annotated[
        float | None, "GiB of memory that deciders may take together; half of what there is, if not given."
    ] = None,
    audit: Annotated[bool, "Note who did what in the folder's audit.jsonl."] = True,
    max_connections: Annotated[
        int | None, "Connections at once; 1 000, or half as many as open files are allowed, if not given."
    ] = None,
    max_connections_per_address: Annotated[
        int | None, "Of them from one address, such as a proxy's; a quarter of all, if not given."
    ] = None,
) -> None:
    """Serve deciders over HTTP: guess, tell, reports, metrics. SIGTERM stops it when all is answered."""
    log = _database(log)
    check_integer("--port", port, low=0, high=65535)
    check_number("--rate", rate, at_least=0.0)
    n_bytes = None if memory is None else check_number("--memory", memory, above=0.0) * 2**30
    require_extra("serving needs", "serve")
    is_open_to_others = not _is_loopback(host)
    tokens = Tokens(folder)
    if is_open_to_others and not tokens.stored():
        raise ValueError(
            f"--host {host} can be reached from other machines, and {tokens.path} has no tokens: add one with "
            f"onebit tokens add {folder} NAME --role admin, or leave --host out"
        )
    make_folder(folder)
    import uvicorn  # a large library: who serves nothing does without it

    from onebit.service import server
    from onebit.service.app import Service

    # Before the log is set up: the reason of an error is the last line that is said.
    app = Service(
        folder, log=log, tokens_required=is_open_to_others, rate=rate, warms=True, memory=n_bytes, audit=audit
    )
    connections = server.Connections(max_connections, max_connections_per_address, server.raise_file_limit())
    server.set_up_process(log_requests)
    if os.path.lexists(tokens.path) and not tokens.stored():
        logging.getLogger("onebit.serve").warning("%s has no token: nobody may ask until one is added", tokens.path)
    NOTICE.keep_quiet()  # the journal has a line for each decider
    config = uvicorn.Config(app, host, port, **_UVICORN)
    deciders = app.workers
    try:
        server.Server(config, connections, on_stop=deciders.stopping.set).run()
    except (KeyboardInterrupt, SystemExit) as ended:  # SIGTERM has ended the process when all was closed
        # A thread within the compiler can only be left, and may crash if Python is taken down around it.
        if deciders.has_left_threads:
            logging.shutdown()
            os._exit(_FAILED if isinstance(ended, SystemExit) else _INTERRUPTED)
        raise


def _database(log: str | None) -> str | None:
    """Return the URL of the database that was named, if one was."""
    if log is not None and has_password(log):
        raise ValueError(
            f"--log must have no password: everybody on this machine could read it there. Give it in {_LOG_VARIABLE} "
            f"instead of --log, in PGPASSWORD, in the file ~/.pgpass, or in one that {_PASSWORD_FILE_VARIABLE} names"
        )
    log = log or os.environ.get(_LOG_VARIABLE) or None
    if log is not None and not is_database(log):
        raise ValueError(f"--log and {_LOG_VARIABLE} must be the URL of a database: postgresql://user@host/database")
    if (named := os.environ.get(_PASSWORD_FILE_VARIABLE)) and log is not None:
        try:
            password = Path(named).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise ValueError(
                f"{_PASSWORD_FILE_VARIABLE}={named} cannot be read ({reason}); is it there, may you read it?"
            ) from None
        if not password or "\n" in password or "\0" in password:
            raise ValueError(f"{_PASSWORD_FILE_VARIABLE}={named} must have one line, the database's password")
        os.environ["PGPASSWORD"] = password  # where libpq looks for it
    return log


def _is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    >>> _is_loopback("127.0.0.1"), _is_loopback("localhost"), _is_loopback("::1"), _is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
