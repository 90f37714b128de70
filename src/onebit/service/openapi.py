"""The documentation of all routes: an OpenAPI document, and a page without external resources."""

import re
from collections.abc import Iterable
from html import escape
from typing import Any, TypedDict

import msgspec

from onebit import __version__
from onebit.service.gate import Route
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


def document(routes: list[Route]) -> dict[str, Any]:
    """Return the OpenAPI document of routes."""
    types = [kind for route in routes for kind in (route.body, route.result) if kind is not None]
    found, components = msgspec.json.schema_components(
        [*types, ProblemResult], ref_template="#/components/schemas/{name}"
    )
    schemas = iter(found)
    refused = {"application/problem+json": {"schema": found[-1]}}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        path, method = route.path.replace(":path", ""), route.method.lower()
        names = re.findall(r"{(\w+)}", path)
        operation = paths.setdefault(path, {})[method] = {
            "description": route.description,
            "operationId": "_".join([method, *re.findall(r"\w+", path)]),
        }
        if names:
            schema = {"type": "string"} | ({"pattern": f"^{NAME}$"} if "name" in names else {})
            operation["parameters"] = [
                {"name": each, "in": "path", "required": True, "schema": schema} for each in names
            ]
        if route.body is not None:
            content = {"schema": next(schemas), "example": route.example}
            operation["requestBody"] = {"required": True, "content": {"application/json": content}}
        done: dict[str, Any] = {"description": "OK"}
        if route.result is not None:
            done["content"] = {"application/json": {"schema": next(schemas)}}
        operation["responses"] = {"200": done, "default": {"description": "Problem", "content": refused}}
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
