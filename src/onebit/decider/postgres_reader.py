"""Read a consistent view of a log in PostgreSQL, without disturbing its owner."""

from contextlib import suppress
from typing import Any

import psycopg

from onebit.decider.log import LogReader
from onebit.decider.log_errors import LogError, UnreachableError
from onebit.decider.postgres_place import (
    EVENT_SIZE,
    Place,
    check_decider_name,
    lines_after,
    number_of,
    one_row,
    selected,
    words,
)

_ONE_MOMENT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresReader(LogReader):
    """A log in a PostgreSQL database, for reading within a short time.

    It takes neither lock nor epoch, and needs only the right to read: the transaction is read-only. While it is open,
    the server cannot vacuum rows that others delete.

    Parameters
    ----------
    url : str
        The database, as in `onebit.decider.postgres.PostgresLog`.
    name : str
        Name of the decider.
    """

    errors, size = psycopg.Error, EVENT_SIZE

    def __init__(self, url: str, name: str) -> None:
        check_decider_name(name)
        place = Place.of_url(url)
        super().__init__(f"{place.shown} {name!r}")
        self._connection = place.connect()
        try:
            self._id, noted = self._begin(name)
            self.compacted = self._compacted_now()
            ((last,),) = self._find("coalesce(max(seq), 0)", "events")
            self.last_seq = max(last, self.compacted)
            if noted != self.last_seq:
                raise LogError(f"{self.path}: event {noted} is missing; put a backup in its place")
        except BaseException:
            self.close()
            raise

    def _begin(self, name: str) -> tuple[int, int]:
        """Return the id of the decider, and the number of its last event as recorded by its owner."""
        try:
            self._connection.execute(_ONE_MOMENT)
            number = number_of(self._connection, self.path, name)
            if number is None:
                raise LogError(f"{self.path}: there is no decider of that name; there are {self._names()}")
            (noted,) = one_row(self._connection, "SELECT last_seq FROM onebit.deciders WHERE id = %s", [number])
        except psycopg.Error as error:
            raise LogError(f"{self.path}: cannot be read ({words(error)}); may you read there?") from None
        return number, noted

    def _names(self) -> str:
        found: list[Any] = []
        with suppress(psycopg.Error):  # no such table without deciders
            found = self._connection.execute("SELECT name FROM onebit.deciders ORDER BY name").fetchall()
        return f"{', '.join(repr(name) for (name,) in found) or 'none':.200}"

    def _rows(self, columns: str, table: str, where: str, values: tuple[Any, ...]) -> list[Any]:
        try:
            return selected(self._connection, self._id, columns, table, where, values)
        except psycopg.OperationalError as error:
            if not self._connection.closed:
                raise
            raise UnreachableError(f"{self.path}: cannot be reached any more ({words(error)}); try again") from None

    def _lines_after(self, after: int) -> list[Any]:
        return lines_after(self._find, after)

    def flush(self) -> None:
        """Do nothing: a reader has no pending events."""

    def close(self) -> None:
        """Close the connection."""
        with suppress(psycopg.Error):
            self._connection.close()
