"""What ``onebit mcp`` does."""

import importlib.util
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple


class McpRequest(NamedTuple):
    """What the command line says; `onebit.cli` says what each is."""

    where: str
    classes: list[str]
    learner: str | None
    deadline: float | None
    exploration_floor: float
    about: str | None
    url: str | None
    token_file: Path | None


def mcp_command(request: McpRequest) -> None:
    """Give agents a decider's verbs over MCP, on standard input and output, until the input ends."""
    if importlib.util.find_spec("mcp") is None:
        raise RuntimeError("mcp must be installed for this: pip install 'onebit[mcp]'")
    if request.url is None and request.token_file is not None:
        raise ValueError("--token-file is for a service: give its --url too, or leave it out")
    from onebit.decider.agents import serve_stdio
    from onebit.decider.calls import own_learner
    from onebit.decider.client import Client
    from onebit.decider.decider import Decider

    classes = [name.strip() for part in request.classes for name in part.split(",")] or None
    if classes is not None and "" in classes:
        raise ValueError(f"--classes must name labels between commas; got {','.join(request.classes)!r:.80}")
    settings: dict[str, Any] = {"deadline": request.deadline, "exploration_floor": request.exploration_floor}
    if request.url is None:
        learner = None if request.learner is None else own_learner(request.learner)
        with Decider.open(request.where, classes, learner, **settings) as desk:
            serve_stdio(desk, request.about)
        return
    token = None if request.token_file is None else request.token_file.read_text(encoding="utf-8").strip()
    with closing(Client(request.url, token)) as client:
        if classes is None:
            serve_stdio(client.decider(request.where), request.about)
        else:
            serve_stdio(client.create(request.where, classes, request.learner, **settings), request.about)
