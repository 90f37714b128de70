"""Refusals that name a remedy in the words of the caller: a method of Python, a request over HTTP, an agent's tool."""

import json
from collections.abc import Callable
from typing import Any

_METHODS = {"correct": "correct_answer"}  # where Python's name is another
_LONGEST_LABEL = 200
_ROUTES = {"add_class": "classes"}  # where the name in the address is another


def in_python(verb: str, arguments: dict[str, Any]) -> str:
    """Return a call as it is written in Python.

    >>> in_python("correct", {"id": "5-9f86", "correct": False})
    "correct_answer('5-9f86', False)"
    """
    return f"{_METHODS.get(verb, verb)}({', '.join(map(repr, arguments.values()))})"


def in_http(verb: str, arguments: dict[str, Any]) -> str:
    """Return a call as a request of the service.

    >>> in_http("add_class", {"label": "refund"})
    'POST …/classes {"label": "refund"}'
    """
    return f"POST …/{_ROUTES.get(verb, verb)} {_as_json(arguments)}"


def in_tools(verb: str, arguments: dict[str, Any]) -> str:
    """Return a call as an agent makes it.

    >>> in_tools("correct", {"id": "5-9f86", "correct": False})
    'correct {"id": "5-9f86", "correct": false}'
    """
    return f"{verb} {_as_json(arguments)}"


def _as_json(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False)


class AdvisedError(ValueError):
    """Something is refused, and another call is the remedy.

    Parameters
    ----------
    problem : str
        What is wrong.
    verb : str, optional
        What to call instead, by its name among the agents' tools; nothing, if there is no remedy.
    **arguments : str, int or bool
        What to call it with.

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
        """Return the message, with the remedy in the words of a caller."""
        return self.problem if self.verb is None else f"{self.problem}: {call(self.verb, self.arguments)}"

    def described(self) -> dict[str, Any]:
        """Return it as JSON can write it; `of_description` reads it again."""
        return {"problem": self.problem, "verb": self.verb, "arguments": self.arguments}

    @classmethod
    def of_description(cls, description: Any) -> "AdvisedError | None":
        """Return the error that was described, or None if that is no description of one."""
        try:
            return cls(str(description["problem"]), description["verb"], **description["arguments"])
        except (KeyError, TypeError):
            return None


def no_class_error(problem: str, label: Any) -> AdvisedError:
    """Return the error about a label that is no class: it can join, if it is a plain one."""
    if not isinstance(label, (str, int)) or len(str(label)) > _LONGEST_LABEL:
        return AdvisedError(problem)
    return AdvisedError(f"{problem}. A new label can join", "add_class", label=label)
