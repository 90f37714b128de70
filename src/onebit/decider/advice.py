"""Errors that name a remedy, formatted for Python, HTTP requests, or agents' tools."""

import json
from collections.abc import Callable
from typing import Any

_METHODS = {"correct": "correct_answer"}  # where the Python name differs
_LONGEST_LABEL = 200
_ROUTES = {"add_class": "classes"}  # where the name in the URL differs


def in_python(verb: str, arguments: dict[str, Any]) -> str:
    """Format a call as Python.

    >>> in_python("correct", {"id": "5-9f86", "correct": False})
    "correct_answer('5-9f86', False)"
    """
    return f"{_METHODS.get(verb, verb)}({', '.join(map(repr, arguments.values()))})"


def in_http(verb: str, arguments: dict[str, Any]) -> str:
    """Format a call as an HTTP request.

    >>> in_http("add_class", {"label": "refund"})
    'POST …/classes {"label": "refund"}'
    """
    return f"POST …/{_ROUTES.get(verb, verb)} {_as_json(arguments)}"


def in_tools(verb: str, arguments: dict[str, Any]) -> str:
    """Format a call as an agent's tool call.

    >>> in_tools("correct", {"id": "5-9f86", "correct": False})
    'correct {"id": "5-9f86", "correct": false}'
    """
    return f"{verb} {_as_json(arguments)}"


def _as_json(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False)


class AdvisedError(ValueError):
    """An error whose remedy is another call.

    Parameters
    ----------
    problem : str
        What is wrong.
    verb : str, optional
        The call that is the remedy, by the name of the agents' tool; None if there is no remedy.
    **arguments : str, int or bool
        Arguments of that call.

    Examples
    --------
    >>> error = AdvisedError("no class; it can join", "add_class", label="refund")
    >>> str(error)
    "no class; it can join: add_class('refund')"
    >>> error.worded(in_http)
    'no class; it can join: POST …/classes {"label": "refund"}'
    """

    def __init__(self, problem: str, verb: str | None = None, **arguments: Any) -> None:
        self.problem, self.verb, self.arguments = problem, verb, arguments
        super().__init__(self.worded(in_python))

    def worded(self, call: Callable[[str, dict[str, Any]], str]) -> str:
        """Return the message, with the remedy formatted by `call`."""
        return self.problem if self.verb is None else f"{self.problem}: {call(self.verb, self.arguments)}"

    def described(self) -> dict[str, Any]:
        """Return the error as plain JSON values, the inverse of `of_description`."""
        return {"problem": self.problem, "verb": self.verb, "arguments": self.arguments}

    @classmethod
    def of_description(cls, description: Any) -> "AdvisedError | None":
        """Rebuild an error from `described`, or return None for other values."""
        try:
            return cls(str(description["problem"]), description["verb"], **description["arguments"])
        except (KeyError, TypeError):
            return None


def no_class_error(problem: str, label: Any) -> AdvisedError:
    """Return the error for an unknown label; the remedy is to add it, if it is a short text or number."""
    if not isinstance(label, (str, int)) or len(str(label)) > _LONGEST_LABEL:
        return AdvisedError(problem)
    return AdvisedError(f"{problem}. A new label can join", "add_class", label=label)
