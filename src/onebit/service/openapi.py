"""What a route is, and the documentation of all routes: an OpenAPI document, and a page without external resources."""

import re
from collections.abc import Awaitable, Callable, Iterable
from html import escape
from http import HTTPStatus
from typing import Any, NamedTuple, TypedDict

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from onebit import __version__
from onebit.service.tokens import NAME

_ABOUT = "Deciders that learn from right and wrong. Every event is on the disk before its answer."
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>onebit</title></head><body>
<h1>onebit {version}</h1>
<p>{about}</p>
<p>The same for programs: <a href="openapi.json">openapi.json</a>.</p>
<dl>
{routes}
</dl></body></html>
"""


class ProblemResult(TypedDict):
    """An error (RFC 9457)."""

    title: str
    status: int
    detail: str
    error: str


class Route(NamedTuple):
    """One route of the service."""

    method: str
    path: str
    work: Callable[[Any, Request], Awaitable[Response]]  # returns the response for a service and a request
    about: str  # description for the documentation
    role: str | None = None  # the role that a caller needs; None: any token, or none at all if `app` has it as public
    namespace: str | None = None  # the namespace that a caller needs, if there is none in the path
    cost: int = 1  # how much it counts for the caller's rate, if it needs a role; 0 if `work` charges it
    body: Any = None  # type of the request's body
    result: Any = dict[str, Any]  # type of the result, if it is JSON
    example: Any = None  # example of a body

    @property
    def description(self) -> str:
        """The description with the needed role."""
        if self.role is None:
            return self.about
        return f"{self.about} Role: {self.role}{'' if self.namespace is None else ', in every namespace'}."


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """Return the OpenAPI document of routes."""
    listed = list(routes)
    types = [kind for route in listed for kind in (route.body, route.result) if kind is not None]
    found, components = msgspec.json.schema_components(
        [*types, ProblemResult], ref_template="#/components/schemas/{name}"
    )
    schemas = iter(found)
    name = {"type": "string", "pattern": f"^{NAME}$"}
    paths: dict[str, dict[str, Any]] = {}
    for route in listed:
        path = route.path.replace(":path", "")
        operation_id = "_".join([route.method.lower(), *re.findall(r"\w+", path)])
        operation: dict[str, Any] = {"description": route.description, "operationId": operation_id}
        if parameters := re.findall(r"{(\w+)}", path):
            schema = name if "name" in parameters else {"type": "string"}
            operation["parameters"] = [
                {"name": each, "in": "path", "required": True, "schema": schema} for each in parameters
            ]
        if route.body is not None:
            content = {"schema": next(schemas), "example": route.example}
            operation["requestBody"] = {"required": True, "content": {"application/json": content}}
        done: dict[str, Any] = {"description": HTTPStatus.OK.phrase}
        if route.result is not None:
            done["content"] = {"application/json": {"schema": next(schemas)}}
        refused = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemResult"}}}
        operation["responses"] = {"200": done, "default": {"description": "Problem", "content": refused}}
        paths.setdefault(path, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "onebit", "description": _ABOUT, "version": __version__},
        "servers": [{"url": "."}],  # relative to the document, for proxies with a path prefix
        "paths": paths,
        "components": {"schemas": components},
    }


def api_page(routes: Iterable[Route]) -> str:
    """Return the documentation of routes as HTML."""
    rows = [
        f"<dt><code>{route.method} {escape(route.path)}</code></dt>\n<dd>{escape(route.description)}</dd>"
        for route in routes
    ]
    return _PAGE.format(version=escape(__version__), about=escape(_ABOUT), routes="\n".join(rows))
