"""``onebit mcp``."""

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

from onebit.extras import require_extra


def command(
    where: Annotated[str, "A decider's file, begun or continued; with --url its namespace/name."],
    *,
    classes: Annotated[tuple[str, ...], "The labels, to begin one. Repeat it or put commas between."] = (),
    learner: Annotated[str | None, 'Such as "Banditron:exploration=0.02"; to begin one.'] = None,
    deadline: Annotated[float | None, "Seconds after which a guess without an answer is closed; to begin one."] = None,
    exploration_floor: Annotated[float, "The share of guesses drawn evenly among the labels; to begin one."] = 0.0,
    about: Annotated[str | None, "What is decided, in words for the agents."] = None,
    url: Annotated[str | None, "A service, http://127.0.0.1:8018, instead of a file."] = None,
    token_file: Annotated[Path | None, "A file with the service's token."] = None,
) -> None:
    """Give AI agents a decider's verbs over MCP, on standard input and output; their host starts it."""
    require_extra("onebit mcp needs", "mcp")
    if url is None and token_file is not None:
        raise ValueError("--token-file is for a service: give its --url too, or leave it out")
    from onebit.decider.agents import serve_stdio
    from onebit.decider.calls import own_learner
    from onebit.decider.client import Client
    from onebit.decider.decider import Decider

    labels = [name.strip() for part in classes for name in part.split(",")] or None
    if "" in (labels or ()):
        raise ValueError(f"--classes must name labels between commas; got {','.join(classes)!r:.80}")
    settings: dict[str, Any] = {"deadline": deadline, "exploration_floor": exploration_floor}
    if url is None:
        own = None if learner is None else own_learner(learner)
        with Decider.open(where, labels, own, **settings) as decider:
            serve_stdio(decider, about)
        return
    token = None if token_file is None else token_file.read_text(encoding="utf-8").strip()
    with closing(Client(url, token)) as client:
        if labels is None:
            serve_stdio(client.decider(where), about)
        else:
            serve_stdio(client.create(where, labels, learner, **settings), about)
