"""What ``onebit serve`` and ``onebit tokens`` do."""

import importlib.util
import ipaddress
import logging
import os
from pathlib import Path

from rich.console import Console
from rich.table import Table

from onebit.decider.settings import has_password, is_database
from onebit.engine.compile_notice import NOTICE
from onebit.files import make_folder
from onebit.inputs import check_integer, check_number
from onebit.service.tokens import FILE, add_token, read_tokens, remove_token

_NEEDED = ("starlette", "uvicorn", "prometheus_client")
LOG_VARIABLE = "ONEBIT_LOG"
"""Names the database, so that no password need be on the command line."""
PASSWORD_FILE_VARIABLE = "ONEBIT_LOG_PASSWORD_FILE"
"""Names a file with the database's password, as containers are given secrets."""
_GRACE_SECONDS = 20
_FAILED, _INTERRUPTED = 1, 130  # what shells expect


def serve_command(
    folder: Path,
    host: str,
    port: int,
    rate: float,
    log_requests: bool,
    log: str | None = None,
    memory: float | None = None,
    audit: bool = True,
    max_connections: int | None = None,
    max_connections_per_address: int | None = None,
) -> None:
    """Serve the deciders of a folder or a database until SIGTERM or Ctrl-C.

    Parameters
    ----------
    folder : Path
        Where deciders and tokens are; made if it is missing.
    host, port : str, int
        Where to listen.
    rate : float
        Guesses and answers a second that one caller may ask for; 0 for any number.
    log_requests : bool
        Whether every request has a line in the journal, or only those that were refused.
    log : str, optional
        The URL of a PostgreSQL database for the deciders; the variable ONEBIT_LOG says it too.
    memory : float, optional
        Gibibytes of memory that deciders may take together; half of what there is, if not given.
    audit : bool
        Whether it is noted who did what, in the file audit.jsonl of the folder.
    max_connections, max_connections_per_address : int, optional
        How many connections there may be at once, in all and from one address.
    """
    log = _database(log)
    check_integer("--port", port, low=0, high=65535)
    check_number("--rate", rate, at_least=0.0)
    n_bytes = None if memory is None else check_number("--memory", memory, above=0.0) * 2**30
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"{' and '.join(missing)} must be installed for this: pip install 'onebit[serve]'")
    is_open_to_others = not is_loopback(host)
    if is_open_to_others and not read_tokens(folder):
        raise ValueError(
            f"--host {host} can be reached from other machines, and {folder / FILE} has no tokens: add one with "
            f"onebit tokens add {folder} NAME --role admin, or leave --host out"
        )
    make_folder(folder)
    # A large library: who serves nothing does without it.
    import uvicorn

    from onebit.service.app import Service
    from onebit.service.audit import AuditLog
    from onebit.service.connections import KEEP_ALIVE_SECONDS, connection_limits, guard
    from onebit.service.server import NAME, Server, raise_file_limit, set_up_log, set_up_process

    if audit:
        AuditLog(folder).check()  # here, where the reason is the last line that is said
    connections = connection_limits(max_connections, max_connections_per_address, raise_file_limit())
    set_up_process()
    set_up_log(log_requests)
    if os.path.lexists(folder / FILE) and not read_tokens(folder):
        logging.getLogger(NAME).warning("%s has no token: nobody may ask until one is added", folder / FILE)
    NOTICE.keep_quiet()  # the journal has a line for each decider
    app = Service(
        folder, log=log, tokens_required=is_open_to_others, rate=rate, warms=True, memory=n_bytes, audit=audit
    )
    config = uvicorn.Config(
        app,
        host,
        port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    deciders = app.workers
    try:
        Server(guard(config, connections), on_stop=deciders.stop_compiling).run()
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
            f"--log must have no password: everybody on this machine could read it there. Give it in {LOG_VARIABLE} "
            f"instead of --log, in PGPASSWORD, in the file ~/.pgpass, or in one that {PASSWORD_FILE_VARIABLE} names"
        )
    log = log or os.environ.get(LOG_VARIABLE) or None
    if log is not None and not is_database(log):
        raise ValueError(f"--log and {LOG_VARIABLE} must be the URL of a database: postgresql://user@host/database")
    if (named := os.environ.get(PASSWORD_FILE_VARIABLE)) and log is not None:
        os.environ["PGPASSWORD"] = _password_in(Path(named))  # where libpq looks for it
    return log


def _password_in(path: Path) -> str:
    """Return the password in a file, or raise ValueError, which does not tell it."""
    try:
        password = path.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or "it is no text"
        raise ValueError(
            f"{PASSWORD_FILE_VARIABLE}={path} cannot be read ({said}); is it there, may you read it?"
        ) from None
    if not password or "\n" in password or "\0" in password:
        raise ValueError(f"{PASSWORD_FILE_VARIABLE}={path} must have one line, the database's password")
    return password


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def add_token_command(
    folder: Path, name: str, roles: list[str], namespaces: list[str], expires: str | None = None
) -> None:
    """Add a token, and print it once."""
    print(add_token(folder, name, roles, namespaces, expires))
    Console(stderr=True).print("Keep it: only its hash is stored, and it is not shown again.")


def list_tokens_command(folder: Path) -> None:
    """Print whose tokens there are."""
    table = Table("name", "roles", "namespaces", "since", "expires")
    for each in read_tokens(folder):
        ends = "never" if each["expires"] is None else each["expires"]
        table.add_row(each["name"], " ".join(each["roles"]), " ".join(each["namespaces"]), each["since"], ends)
    Console().print(table)


def remove_token_command(folder: Path, name: str) -> None:
    """Remove a token; say so if it was the last."""
    if not remove_token(folder, name):
        Console(stderr=True).print(
            f"That was the last token: nobody may ask until there is another. Delete {folder / FILE} to let everybody "
            "on this machine ask without one."
        )
