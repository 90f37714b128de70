"""HTTP client of ``onebit serve``.

Connections are kept open. Requests are retried if their outcome is unknown, which is safe: guesses and shadows have an
idempotency key, and repeated feedback has no effect. Adding a class is not retried.
"""

import json
import random
import secrets
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

import numpy as np

from onebit.decider import tickets
from onebit.decider.tickets import Shadow, Ticket
from onebit.encoding import record_to_json
from onebit.inputs import brief, check_integer, check_number

MOST_AT_ONCE = 1_000  # guesses or answers in one request
LARGEST_BODY = 4_000_000  # bytes of one request
_PATIENCE = 120.0  # the first guess of a new service may compile for a minute
_CONNECT_SECONDS = 10.0
_TRY_AGAIN = (429, 502, 503, 504)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0
_KINDS = (ValueError, tickets.LogError, tickets.LogWriteError, tickets.OwnedError, PermissionError)
_ERRORS: dict[str, type[Exception]] = {kind.__name__: kind for kind in _KINDS} | {"BusyError": ConnectionError}


class Client:
    """Client of a service. Thread-safe.

    Parameters
    ----------
    url : str
        URL of the service: ``"http://127.0.0.1:8018"``.
    token : str, optional
        The token printed by ``onebit tokens add``.
    timeout : float
        Seconds to wait for each response: the first guess of a decider may wait a minute for its learner's compilation.
    retries : int
        Maximum number of retries of a request.

    It raises the errors of the library itself; PermissionError if the token is missing, wrong, or lacks the role; and
    ConnectionError or TimeoutError if the service cannot be reached, or is too busy, after all retries.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8018")
    >>> decider = client.decider("shop/routing")
    >>> ticket = decider.guess({"channel": "mail", "length": 212})  # doctest: +SKIP
    >>> decider.tell(ticket.id, correct=False)  # doctest: +SKIP
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
        """Return a decider by its namespace and name, ``"shop/routing"``; sends no request."""
        namespace, slash, own = name.partition("/")
        if not slash or not namespace or not own or "/" in own:
            raise ValueError(f"name must be a namespace and a name, such as shop/routing; got {name!r}")
        return RemoteDecider(self, f"/v1/{quote(namespace, safe='')}/{quote(own, safe='')}", name)

    def create(self, name: str, classes: Any, learner: str | None = None, **settings: Any) -> "RemoteDecider":
        """Create a decider by its namespace and name; if it exists, it must have the same settings.

        `classes` are strings or integers, or their number. `learner` is one of onebit's own, in the syntax of the
        commands: ``"Banditron:exploration=0.02"``. The settings are those of `Decider.open`: `kinds`, `deadline`,
        `silence`, `exploration_floor`, `max_open`, `wrong_at_most`, `ask_at_most` and `seed`.
        """
        decider = self.decider(name)
        body = {"classes": classes} | settings | ({} if learner is None else {"learner": learner})
        self.ask("PUT", decider.path, body)
        return decider

    def deciders(self) -> list[str]:
        """Return the names of the deciders that the token may see."""
        return list(self.ask("GET", "/v1")["deciders"])

    def ask(self, method: str, path: str, body: Any = None, *, again: bool = True) -> Any:
        """Send a request and return the response; with `again` also after failures in which it may have arrived."""
        content = None if body is None else json.dumps(body, allow_nan=False, default=_plain).encode()
        for n_tries in range(self._retries + 1):
            is_last = n_tries == self._retries
            pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**n_tries) * random.uniform(0.5, 1.0)
            try:
                status, reply, retry_after = self._once(method, path, content, is_reusing=again)
            except (OSError, HTTPException) as error:
                is_safe = again or isinstance(error, ConnectionRefusedError)  # which certainly did not arrive
                if is_safe and not is_last:
                    pass
                elif isinstance(error, TimeoutError):
                    late = f"{self!r} does not answer in time; is it busy? Give a longer timeout"
                    raise TimeoutError(late) from error
                else:
                    raise ConnectionError(f"{self!r} cannot be reached ({error}); is it running there?") from error
            else:
                if status < 400:
                    return reply
                if is_last or status not in _TRY_AGAIN or not (again or status in (429, 503)):
                    raise _error_of(reply, status)
                pause = max(pause, min(retry_after, _LONGEST_PAUSE))
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _once(self, method: str, path: str, body: bytes | None, is_reusing: bool) -> tuple[int, Any, float]:
        """Return status, body and the seconds to wait; reusing a connection is only safe with retries: it may close."""
        headers = {} if body is None else {"Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        with self._lock:
            connection = self._idle.pop() if is_reusing and self._idle else None
        if connection is None:
            kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
            seconds = min(self._timeout, _CONNECT_SECONDS)
            connection = kind(str(self._parts.hostname), self._parts.port, timeout=seconds)
        try:
            if connection.sock is None:
                connection.connect()
                connection.sock.settimeout(self._timeout)  # type: ignore[attr-defined]
            connection.request(method, self._parts.path.rstrip("/") + path, body, headers)
            response = connection.getresponse()
            content = response.read()
        except BaseException:
            connection.close()  # a late response must not be read as that of the next request
            raise
        with self._lock:
            self._idle.append(connection)
        reply, wait = None, response.getheader("Retry-After", "0")
        with suppress(ValueError):  # a proxy may answer with something else, or nothing
            reply = json.loads(content)
        return response.status, reply, float(wait) if wait.isdigit() else 0.0

    def close(self) -> None:
        """Close idle connections; later requests open new ones."""
        with self._lock:
            while self._idle:
                self._idle.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class RemoteDecider:
    """A decider of a service, returned by `Client.decider`, with the methods of `Decider`."""

    def __init__(self, client: Client, path: str, name: str) -> None:
        self._client, self.path, self.name = client, path, name

    def __repr__(self) -> str:
        return f"{self._client!r}.decider({self.name!r})"

    def guess(self, record: Any, among: Any = None, *, key: str | None = None) -> Ticket:
        """Guess a label for a record; return a ticket for `tell`.

        By default the key is random, for retries of this call. With a key of your own, such as an order number, another
        process can repeat the request and gets the same ticket.
        """
        return _ticket_of(self._post("guess", _guess_item(record, among, key)))

    def tell(self, ticket: "str | Ticket", correct: bool) -> bool:
        """Record whether a guess was right; return whether the feedback is new."""
        return bool(self._post("tell", _answer_item(ticket, correct=correct))["news"])

    def label(self, ticket: "str | Ticket", label: Any) -> bool:
        """Record the right label of a guess, which teaches more than `tell`; return whether the feedback is new."""
        return bool(self._client.ask("PUT", f"{self.path}/label", _answer_item(ticket, label=label))["news"])

    def guess_many(self, records: Iterable[Any], among: Any = None) -> list[Ticket]:
        """Guess a label for each record, up to 1 000 in a request."""
        return [_ticket_of(each) for each in self._post_all("guess", [_guess_item(x, among, None) for x in records])]

    def tell_many(self, answers: "Iterable[tuple[str | Ticket, bool]]") -> list[bool]:
        """Record feedback for many guesses, given as (ticket, correct) pairs."""
        items = [_answer_item(ticket, correct=correct) for ticket, correct in answers]
        return [bool(each["news"]) for each in self._post_all("tell", items)]

    def shadow(
        self, record: Any, label: Any, correct: bool | None, *, propensity: float | None = None, key: str | None = None
    ) -> Shadow:
        """Send a decision of the application; return what the decider would have guessed."""
        item = _guess_item(record, None, key) | {"label": label, "correct": correct, "propensity": propensity}
        reply = self._post("shadow", item)
        return Shadow(reply["label"], reply["agrees"])

    def add_class(self, label: Any) -> None:
        """Add a label to the classes; the request is not retried."""
        self._post("classes", {"label": label}, again=False)

    def change(self, **settings: Any) -> None:
        """Change settings from now on, as `Decider.change` does."""
        self._post("settings", settings)

    def correct_answer(self, ticket: "str | Ticket", correct: bool | None = None, *, label: Any = None) -> None:
        """Replace feedback that was mistaken: by whether the guess was right, or by the right label."""
        self._post("correct", _answer_item(ticket, correct=correct, label=label))

    def withdraw(self, ticket: "str | Ticket") -> None:
        """Withdraw feedback that was mistaken."""
        self._post("withdraw", _answer_item(ticket))

    @property
    def classes(self) -> list[Any]:
        """The current labels."""
        return list(self.status()["classes"])

    def status(self) -> dict[str, Any]:
        """Return the status: counts and settings."""
        return dict(self._client.ask("GET", f"{self.path}/status"))

    def report(self) -> dict[str, Any]:
        """Return the report, with confidence intervals and alarms."""
        return dict(self._client.ask("GET", f"{self.path}/report"))

    def events(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """Yield the events of the log with numbers above `after`, in order."""
        while found := self._client.ask("GET", f"{self.path}/log?{urlencode({'after': after})}")["events"]:
            yield from found
            after = found[-1]["seq"]

    def _post(self, verb: str, body: Any, *, again: bool = True) -> Any:
        return self._client.ask("POST", f"{self.path}/{verb}", body, again=again)

    def _post_all(self, verb: str, items: list[Any]) -> list[Any]:
        replies: list[Any] = []
        for start in range(0, len(items), MOST_AT_ONCE):
            replies += self._post(verb, items[start : start + MOST_AT_ONCE])
        for reply in replies:
            if "error" in reply:
                raise _error_of(reply, reply["status"])
        return replies


def _guess_item(record: Any, among: Any, key: str | None) -> dict[str, Any]:
    item = {"record": record_to_json(record), "key": secrets.token_hex(16) if key is None else key}
    return item if among is None else item | {"among": list(among)}


def _answer_item(ticket: "str | Ticket", **feedback: Any) -> dict[str, Any]:
    return {"id": ticket.id if isinstance(ticket, Ticket) else ticket, **feedback}


def _plain(value: Any) -> Any:
    """Return a number of NumPy's as one of Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{brief(value)} cannot be sent: labels and settings are texts, numbers or lists of them")


def _ticket_of(reply: Any) -> Ticket:
    return Ticket(**reply | {"time": datetime.fromisoformat(reply["time"]), "ranking": tuple(reply["ranking"])})


def _error_of(problem: Any, status: int) -> Exception:
    """Return the exception for a problem+json response."""
    problem = problem if isinstance(problem, dict) else {}
    kind = tickets.TicketConflictError if status == HTTPStatus.CONFLICT else tickets.AdvisedError
    with suppress(KeyError, TypeError):
        remedy = problem["remedy"]
        return kind(str(remedy["problem"]), remedy["verb"], **remedy["arguments"])
    detail = str(problem.get("detail", f"the service answered {status}"))
    return _ERRORS.get(str(problem.get("error")), RuntimeError)(detail)
