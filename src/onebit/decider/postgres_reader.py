"""A log in PostgreSQL as it is at one moment, for who only reads: whoever has the decider open is left alone."""

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
    """A log among others in a PostgreSQL database, to be read and closed soon.

    It takes no lock and no epoch, and the server itself refuses it to write: the right to read is all it needs. While
    it is open the server keeps what others delete.

    Parameters
    ----------
    url : str
        The database, as `onebit.decider.postgres.PostgresLog` takes it.
    name : str
        Which decider.
    """

    errors, size = psycopg.Error, EVENT_SIZE

    def __init__(self, url: str, name: str) -> None:
        check_decider_name(name)
        place = Place.of_url(url)
        super().__init__(f"{place.shown} {name!r}")
        self._connection = place.connect()
        try:
            self._id, said = self._begin(name)
            self.compacted = self._compacted_now()
            ((last,),) = self._find("coalesce(max(seq), 0)", "events")
            self.last_seq = max(last, self.compacted)
            if said != self.last_seq:
                raise LogError(f"{self.path}: event {said} is missing; put a backup in its place")
        except BaseException:
            self.close()
            raise

    def _begin(self, name: str) -> tuple[int, int]:
        """Return the number of the decider, and of its last event as its owner noted it."""
        try:
            self._connection.execute(_ONE_MOMENT)
            number = number_of(self._connection, self.path, name)
            if number is None:
                raise LogError(f"{self.path}: there is no decider of that name; there are {self._names()}")
            (said,) = one_row(self._connection, "SELECT last_seq FROM onebit.deciders WHERE id = %s", [number])
        except psycopg.Error as error:
            raise LogError(f"{self.path}: cannot be read ({words(error)}); may you read there?") from None
        return number, said

    def _names(self) -> str:
        found: list[Any] = []
        with suppress(psycopg.Error):  # a database without deciders has no such table
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
        """Do nothing: who only reads has nothing in line."""

    def close(self) -> None:
        """Let go."""
        with suppress(psycopg.Error):
            self._connection.close()
