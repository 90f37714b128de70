"""Storage of a service's deciders: files in a folder, or a database shared by several machines."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from onebit.decider.decider import Decider
from onebit.decider.settings import check_database_is_supported
from onebit.files import make_folder

SUFFIX = ".onebit"

Opener = Callable[..., Decider]
"""`Decider.open`, or a function with the same parameters."""


class Store(Protocol):
    """Interface of the storage of deciders."""

    is_shared: bool
    """Whether several services can use it."""

    def deciders(self) -> dict[str, str | None]:
        """Return all deciders by ``namespace/name``, with their owners if known."""

    def open(self, title: str, settings: dict[str, Any]) -> Decider:
        """Open a decider; with settings, create it if necessary."""


class Folder:
    """Deciders in files: ``folder/namespace/name.onebit``."""

    is_shared = False

    def __init__(self, folder: Path, opener: Opener = Decider.open) -> None:
        self._folder, self._opener = folder, opener

    def deciders(self) -> dict[str, str | None]:
        """Return all deciders; owners are unknown."""
        return {f"{path.parent.name}/{path.stem}": None for path in sorted(self._folder.glob(f"*/*{SUFFIX}"))}

    def open(self, title: str, settings: dict[str, Any]) -> Decider:
        """Open a decider."""
        path = self._folder / f"{title}{SUFFIX}"
        make_folder(path.parent)
        try:
            return self._opener(path, **settings)
        except BaseException:
            with suppress(OSError):  # not empty
                path.parent.rmdir()
            raise


class Database:
    """Deciders in a PostgreSQL database, by the name ``namespace/name``."""

    is_shared = True

    def __init__(self, url: str) -> None:
        check_database_is_supported()
        from onebit.decider.postgres import Database as PostgresDatabase

        self._database = PostgresDatabase(url)

    def deciders(self) -> dict[str, str | None]:
        """Return all deciders with their owners."""
        return self._database.deciders()

    def open(self, title: str, settings: dict[str, Any]) -> Decider:
        """Open a decider."""
        return Decider.open(self._database.url, name=title, **settings)
