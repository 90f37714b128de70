"""The methods of a decider as tools for AI agents, over MCP: ``onebit mcp``.

Arguments are parsed by the same functions as requests of the service, so limits and messages are the same. The decider
runs in a thread, so that the protocol does not wait for the disk.
"""

import json
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from onebit import __version__
from onebit.decider.calls import VERBS
from onebit.decider.client import LARGEST_BODY, RemoteDecider
from onebit.decider.decider import Decider
from onebit.decider.requests import parsed, request_of
from onebit.decider.tickets import AdvisedError

_AnyDecider = Decider | RemoteDecider
_LOG = logging.getLogger("onebit.mcp")
_MOST_LABELS = 50  # labels listed in the instructions

_TOOLS = {name: verb for name, verb in VERBS.items() if verb.hints is not None}
_INSTRUCTIONS = (
    "onebit picks one of several labels (a tool, a prompt, a model, a route) for a record, and learns from being told "
    "right or wrong. First call guess, and do what its label says. Keep the id. As soon as you know how it went, call "
    "tell with that id: without an answer nothing is learned. Never answer for a label that you did not try. If guess "
    "returns ask: true, do not act on its label: ask your user which label is right, and call label with the answer."
)


def _answer(decider: _AnyDecider, name: str, arguments: Any) -> Any:
    """Call one of `_TOOLS` with an agent's arguments; raises ValueError and the exceptions of the library."""
    body = json.dumps({} if arguments is None else arguments).encode()
    if len(body) > LARGEST_BODY:
        raise ValueError(f"the call is larger than {LARGEST_BODY} bytes; send less at once")
    call = _TOOLS[name].call
    return call(decider, **msgspec.structs.asdict(parsed(request_of(call), body)))


def _schema_of(verb: Callable[..., Any]) -> dict[str, Any]:
    _, components = msgspec.json.schema_components([request_of(verb)])
    (schema,) = components.values()
    return {name: value for name, value in schema.items() if name not in ("title", "description")}


def _instructions(decider: _AnyDecider, about: str | None) -> str:
    """Return the instructions for a new session; raises ValueError for labels that JSON cannot represent."""
    lines = [_INSTRUCTIONS] if about is None else [_INSTRUCTIONS, f"This decider decides: {about}"]
    if isinstance(decider, Decider):
        labels = decider.classes
        try:
            json.dumps(labels, ensure_ascii=False, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise ValueError(f"labels for agents must be texts or numbers; the decider's are {labels!r:.80}") from error
        more = ", …" if len(labels) > _MOST_LABELS else ""
        lines.append(f"Labels: {json.dumps(labels[:_MOST_LABELS], ensure_ascii=False)[1:-1]}{more}.")
    return "\n".join(lines)


def _create_server(decider: _AnyDecider, about: str | None = None) -> Any:
    """Return a server of the official SDK for a decider; `about` describes the decision for the agent."""
    # Imported here: a large optional dependency.
    import anyio
    import mcp_types as types
    from mcp.server import Server
    from mcp.shared.exceptions import MCPError

    async def list_tools(_context: Any, _params: Any) -> Any:
        tools = [
            types.Tool(
                name=name,
                description=" ".join(str(verb.call.__doc__).split()),
                input_schema=_schema_of(verb.call),
                annotations=types.ToolAnnotations(**verb.hints or {}),
            )
            for name, verb in _TOOLS.items()
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(_context: Any, params: Any) -> Any:
        if params.name not in _TOOLS:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name!r:.80}; there are {', '.join(_TOOLS)}")
        try:
            result = await anyio.to_thread.run_sync(_answer, decider, params.name, params.arguments)
        except Exception as error:
            content = [types.TextContent(text=_error_text(params.name, error))]
            return types.CallToolResult(content=content, is_error=True)
        text = json.dumps(result, ensure_ascii=False)
        return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=result)

    return Server(
        "onebit",
        version=__version__,
        instructions=_instructions(decider, about),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _error_text(name: str, error: Exception) -> str:
    """Return the error message for an agent: the library's own, but no details of internal errors."""
    if isinstance(error, UnicodeError):
        return "the call has text that is no Unicode: half of a pair of surrogates"
    if isinstance(error, RecursionError):
        return "the call is nested too deep"
    if isinstance(error, AdvisedError):
        return error.worded(lambda verb, arguments: f"{verb} {json.dumps(arguments, ensure_ascii=False)}")
    if isinstance(error, (ValueError, OSError)):
        return str(error)
    _LOG.error("%s failed", name, exc_info=error)
    return "something went wrong inside; onebit's standard error says what"


def serve_stdio(decider: _AnyDecider, about: str | None = None) -> None:
    """Serve MCP on standard input and output until the input ends."""
    import anyio
    from mcp.server.stdio import stdio_server

    server = _create_server(decider, about)

    async def serve() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(serve)
