"""Where a service keeps its deciders: in files of a folder, or in a database that several machines share."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from onebit.decider.decider import Decider
from onebit.decider.logs import check_database_is_supported
from onebit.files import make_folder

SUFFIX = ".onebit"

Opener = Callable[..., Decider]
"""`Decider.open`, or something with the same arguments."""


class Store(Protocol):
    """What a service needs of the place where deciders are."""

    is_shared: bool
    """Whether other services use it too."""

    def deciders(self) -> dict[str, str | None]:
        """Return all deciders by ``namespace/name``, and who has each open, if that is known."""

    def open(self, title: str, told: dict[str, Any]) -> Decider:
        """Open one; a new one if there is none and it is told what it is."""


class Folder:
    """Deciders in files: ``folder/namespace/name.onebit``."""

    is_shared = False

    def __init__(self, folder: Path, opener: Opener = Decider.open) -> None:
        self._folder, self._opener = folder, opener

    def deciders(self) -> dict[str, str | None]:
        """Return all; nobody knows who has them."""
        return {f"{path.parent.name}/{path.stem}": None for path in sorted(self._folder.glob(f"*/*{SUFFIX}"))}

    def open(self, title: str, told: dict[str, Any]) -> Decider:
        """Open one."""
        path = self._folder / f"{title}{SUFFIX}"
        make_folder(path.parent)
        try:
            return self._opener(path, **told)
        except BaseException:
            with suppress(OSError):  # it has other deciders
                path.parent.rmdir()
            raise


class Database:
    """Deciders in a PostgreSQL database, by the name ``namespace/name``."""

    is_shared = True

    def __init__(self, url: str) -> None:
        check_database_is_supported()
        from onebit.decider.postgres_place import Place

        self._place = Place.of_url(url)

    def deciders(self) -> dict[str, str | None]:
        """Return all, and who has each open."""
        return self._place.deciders()

    def open(self, title: str, told: dict[str, Any]) -> Decider:
        """Open one."""
        return Decider.open(self._place.url, name=title, **told)
