"""Add routes with error handling and OpenAPI documentation."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request, Response

from onebit.decider.log import to_json
from onebit.service.names import PATTERN
from onebit.service.problems import problem_of
from onebit.service.shortcut import Endpoint
from onebit.service.web import Problem

_LOG = logging.getLogger("onebit.serve")


def add_route(app: FastAPI, method: str, path: str, work: Endpoint, description: str, example: Any = None) -> Endpoint:
    """Add a route with its OpenAPI documentation; return its endpoint."""
    endpoint = _answered(work)
    extra: dict[str, Any] = {}
    if example is not None:
        extra["requestBody"] = {"required": True, "content": {"application/json": {"example": example}}}
    if "{name}" in path:
        schema = {"type": "string", "pattern": f"^{PATTERN}$"}
        extra["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": schema} for name in ("namespace", "name")
        ]
    app.add_api_route(
        path,
        endpoint,
        methods=[method],
        description=description,
        name=f"{method} {path}",
        openapi_extra=extra,
        response_class=Response,
        response_model=None,
    )
    return endpoint


def _answered(work: Callable[[Request], Awaitable[Response]]) -> Endpoint:
    """Wrap an endpoint so that exceptions become problem responses."""

    async def endpoint(request: Request) -> Response:
        try:
            return await work(request)
        except Exception as error:
            problem = problem_of(error)
            if problem.status >= 500 and not isinstance(error, Problem):
                _LOG.error("%s %s failed", request.method, request.scope["path"], exc_info=error)
            return problem.response()

    return endpoint


def json_response(value: Any, status: int = 200) -> Response:
    """Return a JSON response."""
    return Response(to_json(value), status, media_type="application/json")
