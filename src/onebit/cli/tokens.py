"""Say who may ask `onebit serve`, and for what."""

from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.table import Table

from onebit.service.access import Tokens

_Folder = Annotated[Path, "The folder that is served."]
_Name = Annotated[str, "Whose it is."]


def _add(
    folder: _Folder,
    name: _Name,
    *,
    role: Annotated[tuple[str, ...], "play, read or admin; repeat it for several."],
    namespace: Annotated[tuple[str, ...], "Where; repeat it. Without: everywhere."] = (),
    expires: Annotated[str | None, "When it ends: 12h, 90d, 8w, or a date such as 2027-12-31. Without: never."] = None,
) -> None:
    """Make a token, and print it once."""
    print(Tokens(folder).add(name, role, namespace, expires))
    Console(stderr=True).print("Keep it: only its hash is stored, and it is not shown again.")


def _list_tokens(folder: _Folder) -> None:
    """List whose tokens there are, and what they may do."""
    table = Table("name", "roles", "namespaces", "since", "expires")
    for each in Tokens(folder).stored():
        ends = "never" if each.expires is None else each.expires.isoformat()
        table.add_row(each.name, " ".join(each.roles), " ".join(each.namespaces), each.since, ends)
    Console().print(table)


def _remove(folder: _Folder, name: _Name) -> None:
    """Remove a token; a running service knows within a second."""
    tokens = Tokens(folder)
    if not tokens.remove(name):
        Console(stderr=True).print(
            f"That was the last token: nobody may ask until there is another. Delete {tokens.path} to let everybody "
            "on this machine ask without one."
        )


command = {"add": _add, "list": _list_tokens, "remove": _remove}
