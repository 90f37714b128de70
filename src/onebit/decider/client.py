"""The two verbs from another process or machine: a client of ``onebit serve``.

It needs nothing beside Python's own library: ``http.client`` keeps connections open, and that is all that is wanted
here. A request is sent again when nobody knows whether it arrived. That cannot count twice: a guess and a shadow have
a key, and an answer that is known is no news. A new class is not sent again.
"""

import json
import random
import secrets
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import quote, urlencode, urlsplit

from onebit.decider.advice import AdvisedError
from onebit.decider.log_errors import LogError, LogWriteError, OwnedError
from onebit.decider.tickets import Shadow, Ticket, TicketConflictError
from onebit.encoding.record_json import record_to_json
from onebit.inputs import check_integer, check_number

MOST_AT_ONCE = 1_000
"""Guesses or answers in one request."""
_PATIENCE = 120.0  # a service that has just begun may compile for a minute before its first guess
_CONNECT_SECONDS = 10.0
_TRY_AGAIN = (429, 502, 503, 504)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0
_ERRORS: dict[str, type[Exception]] = {
    "ValueError": ValueError,
    "LogError": LogError,
    "LogWriteError": LogWriteError,
    "OwnedError": OwnedError,
    "PermissionError": PermissionError,
    "BusyError": ConnectionError,
}


class _Reply(NamedTuple):
    status: int
    said: Any
    retry_after: float


class Client:
    """A service of deciders.

    Any number of threads may share it.

    Parameters
    ----------
    url : str
        Where it is: ``"http://127.0.0.1:8018"``.
    token : str, optional
        What ``onebit tokens add`` printed.
    timeout : float
        Seconds to wait for an answer, each time it is tried. The first guess of a decider may take a minute, while its
        learner is compiled. A connection must be there after 10 seconds.
    retries : int
        How often a request is sent again.

    Raises
    ------
    ValueError, LogError, LogWriteError, OwnedError
        As the library itself.
    PermissionError
        If the token is missing or wrong, or may not do that.
    ConnectionError, TimeoutError
        If the service cannot be reached, or is too busy, after all retries.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8018")
    >>> desk = client.decider("shop/routing")
    >>> ticket = desk.guess({"channel": "mail", "length": 212})  # doctest: +SKIP
    >>> desk.tell(ticket.id, correct=False)  # doctest: +SKIP
    True
    """

    def __init__(self, url: str, token: str | None = None, *, timeout: float = _PATIENCE, retries: int = 5) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"url must be one such as http://127.0.0.1:8018; got {url!r}")
        if token is not None and not (token.isascii() and token.isprintable()):
            raise ValueError("token must be what onebit tokens add printed")
        self._parts, self._token = parts, token
        self._timeout = check_number("timeout", timeout, above=0.0)
        self._retries = check_integer("retries", retries, low=0)
        self._idle: list[HTTPConnection] = []
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Client({self._parts.geturl()!r})"  # not the token

    def decider(self, name: str) -> "RemoteDecider":
        """Return a decider by its namespace and name, ``"shop/routing"``; nothing is asked yet."""
        namespace, slash, own = name.partition("/")
        if not slash or not namespace or not own or "/" in own:
            raise ValueError(f"name must be a namespace and a name, such as shop/routing; got {name!r}")
        return RemoteDecider(self, f"/v1/{quote(namespace, safe='')}/{quote(own, safe='')}", name)

    def create(self, name: str, classes: Any, learner: str | None = None, **settings: Any) -> "RemoteDecider":
        """Make a decider, or go on with it if it is there; it must be the same then.

        Parameters
        ----------
        name : str
            Its namespace and name.
        classes : int or list
            The labels: texts or whole numbers.
        learner : str
            One of onebit's own as commands write it: ``"Banditron:exploration=0.02"``.
        **settings
            `kinds`, `deadline`, `silence`, `exploration_floor`, `max_open` and `seed`, as for `Decider.open`.
        """
        desk = self.decider(name)
        said = {"classes": classes} | settings | ({} if learner is None else {"learner": learner})
        self.ask("PUT", desk.path, said)
        return desk

    def deciders(self) -> list[str]:
        """Return the names of the deciders that the token may see."""
        return list(self.ask("GET", "/v1")["deciders"])

    def ask(self, method: str, path: str, said: Any = None, *, again: bool = True) -> Any:
        """Send a request, again if need be, and return what is answered.

        Parameters
        ----------
        method, path : str
            What is asked.
        said : object
            Its body, as JSON can write it.
        again : bool
            Whether it may be sent again when nobody knows whether it arrived.
        """
        body = None if said is None else json.dumps(said, allow_nan=False).encode()
        for n_tries in range(self._retries + 1):
            is_last = n_tries == self._retries
            failure: Exception | None = None
            pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**n_tries) * random.uniform(0.5, 1.0)
            try:
                reply = self._once(method, path, body, is_reusing=again)
            except ConnectionRefusedError as error:  # it did not arrive for certain
                failure = error
            except (OSError, HTTPException) as error:
                if not again:
                    raise _unreachable(self, error) from error
                failure = error
            if failure is not None:
                if is_last:
                    raise _unreachable(self, failure) from failure
            elif reply.status < 400:
                return reply.said
            elif is_last or reply.status not in _TRY_AGAIN or not (again or reply.status in (429, 503)):
                raise error_of(reply.said, reply.status)
            else:
                pause = max(pause, min(reply.retry_after, _LONGEST_PAUSE))
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _once(self, method: str, path: str, body: bytes | None, is_reusing: bool) -> _Reply:
        """Send a request once; one that may not be sent again needs a new connection: others may be closed by now."""
        headers = {} if body is None else {"Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        connection = self._connection(is_reusing)
        try:
            if connection.sock is None:
                connection.connect()
                # Two small packets go out for a request; the second must not wait for the first to be acknowledged.
                opened: socket.socket = connection.sock  # type: ignore[assignment]
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                opened.settimeout(self._timeout)
            connection.request(method, self._parts.path.rstrip("/") + path, body, headers)
            response = connection.getresponse()
            content = response.read()
        except BaseException:
            connection.close()  # whatever comes on it now is no answer to the next request
            raise
        with self._lock:
            self._idle.append(connection)
        try:
            said = json.loads(content) if content else None
        except ValueError:
            said = None
        wait = response.getheader("Retry-After", "0")
        return _Reply(response.status, said, float(wait) if wait.isdigit() else 0.0)

    def _connection(self, is_reusing: bool) -> HTTPConnection:
        with self._lock:
            if is_reusing and self._idle:
                return self._idle.pop()
        kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
        seconds = min(self._timeout, _CONNECT_SECONDS)
        return kind(str(self._parts.hostname), self._parts.port, timeout=seconds)

    def close(self) -> None:
        """Close the connections that nobody uses; a later request opens one again."""
        with self._lock:
            while self._idle:
                self._idle.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: Any, _trace: TracebackType | None) -> None:
        self.close()


class RemoteDecider:
    """A decider of a service; `Client.decider` returns one. Its verbs are those of `Decider`."""

    def __init__(self, client: Client, path: str, name: str) -> None:
        self._client, self.path, self.name = client, path, name

    def __repr__(self) -> str:
        return f"{self._client!r}.decider({self.name!r})"

    def guess(self, record: Any, among: Any = None, *, key: str | None = None) -> Ticket:
        """Name a label for a record, and hand out a ticket for `tell`.

        Without a key it has one of its own, so that it may be sent again; with one of yours (an order's number) another
        process may ask again, and gets the same ticket.
        """
        return _ticket_of(self._post("guess", _guess_item(record, among, key)))

    def tell(self, ticket: "str | Ticket", correct: bool) -> bool:
        """Say whether a guess was right; returns whether it was news."""
        return bool(self._post("tell", _answer_item(ticket, correct))["news"])

    def guess_many(self, records: Iterable[Any], among: Any = None) -> list[Ticket]:
        """Name a label for each of many records, up to 1 000 in a request."""
        items = [_guess_item(record, among, None) for record in records]
        return [_ticket_of(each) for each in self._in_lists("guess", items)]

    def tell_many(self, answers: "Iterable[tuple[str | Ticket, bool]]") -> list[bool]:
        """Say whether guesses were right, by pairs of a ticket and an answer."""
        items = [_answer_item(ticket, correct) for ticket, correct in answers]
        return [bool(each["news"]) for each in self._in_lists("tell", items)]

    def shadow(
        self,
        record: Any,
        label: Any,
        correct: bool | None,
        *,
        propensity: float | None = None,
        key: str | None = None,
    ) -> Shadow:
        """Say what was decided without it, and hear what it would have done; the key is as for `guess`."""
        item = {"record": record_to_json(record), "label": label, "correct": correct, "propensity": propensity}
        said = self._post("shadow", item | {"key": _key(key)})
        return Shadow(said["label"], said["agrees"])

    def add_class(self, label: Any) -> None:
        """Let a label join the classes. It is not sent again by itself."""
        self._post("classes", {"label": label}, again=False)

    def change(self, **told: Any) -> None:
        """Change settings, from now on: deadline, silence, exploration_floor, max_open."""
        self._post("settings", told)

    def correct_answer(self, ticket: "str | Ticket", correct: bool) -> None:
        """Say that an answer was a mistake, and what it should have been."""
        self._post("correct", _answer_item(ticket, correct))

    def withdraw(self, ticket: "str | Ticket") -> None:
        """Say that an answer was a mistake, and that nothing is known instead."""
        self._post("withdraw", {"id": _name_of(ticket)})

    @property
    def classes(self) -> list[Any]:
        """The labels it may guess, as they are now."""
        return list(self.status()["classes"])

    def status(self) -> dict[str, Any]:
        """Return how it fares, in numbers."""
        return dict(self._client.ask("GET", f"{self.path}/status"))

    def report(self) -> dict[str, Any]:
        """Return how it fares, with intervals and alarms."""
        return dict(self._client.ask("GET", f"{self.path}/report"))

    def events(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """Yield the events of the log after that one, in order."""
        while found := self._client.ask("GET", f"{self.path}/log?{urlencode({'after': after})}")["events"]:
            yield from found
            after = found[-1]["seq"]

    def _post(self, verb: str, said: Any, *, again: bool = True) -> Any:
        return self._client.ask("POST", f"{self.path}/{verb}", said, again=again)

    def _in_lists(self, verb: str, items: list[Any]) -> list[Any]:
        answers: list[Any] = []
        for start in range(0, len(items), MOST_AT_ONCE):
            answers += self._post(verb, items[start : start + MOST_AT_ONCE])
        for answer in answers:
            if "error" in answer:
                raise error_of(answer, answer["status"])
        return answers


def _guess_item(record: Any, among: Any, key: str | None) -> dict[str, Any]:
    item = {"record": record_to_json(record), "key": _key(key)}
    return item if among is None else item | {"among": list(among)}


def _key(key: str | None) -> str:
    return secrets.token_hex(16) if key is None else key


def _answer_item(ticket: "str | Ticket", correct: Any) -> dict[str, Any]:
    said = bool(correct) if type(correct).__name__ == "bool_" else correct  # NumPy's
    return {"id": _name_of(ticket), "correct": said}


def _name_of(ticket: "str | Ticket") -> str:
    return ticket.id if isinstance(ticket, Ticket) else ticket


def _ticket_of(said: Any) -> Ticket:
    return Ticket(said["id"], said["label"], said["propensity"], datetime.fromisoformat(said["time"]))


def error_of(said: Any, status: int) -> Exception:
    """Return the exception that a problem stands for."""
    if not isinstance(said, dict):
        said = {}
    kind = TicketConflictError if status == HTTPStatus.CONFLICT else AdvisedError
    if (advised := kind.of_description(said.get("remedy"))) is not None:
        return advised
    detail = str(said.get("detail", f"the service answered {status}"))
    return _ERRORS.get(str(said.get("error")), RuntimeError)(detail)


def _unreachable(client: Client, error: Exception) -> OSError:
    if isinstance(error, TimeoutError):
        return TimeoutError(f"{client!r} does not answer in time; is it busy? Give a longer timeout")
    return ConnectionError(f"{client!r} cannot be reached ({error}); is it running there?")
