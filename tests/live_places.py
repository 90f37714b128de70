"""Where the tests keep their deciders: in a file, or in a PostgreSQL database."""

import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

import onebit
from onebit.decider.decider import Decider

ZEROS = "'\\x00'::bytea"


def begun(path: Path, **settings: Any) -> Decider:
    """Open a decider of three classes that learns without being compiled for long."""
    told: dict[str, Any] = {"classes": ["a", "b", "c"], "learner": onebit.BanditPerceptron()}
    return Decider.open(path, **told | settings)


class Place(NamedTuple):
    """Where a decider is."""

    path: Any
    name: str | None = None

    def open(self, **settings: Any) -> Decider:
        return Decider.open(self.path, name=self.name, **settings)

    def begun(self, learner: Any = None, **settings: Any) -> Decider:
        """Open a decider of three classes."""
        return self.open(
            classes=["a", "b", "c"], learner=onebit.Banditron() if learner is None else learner, **settings
        )

    def other(self, name: str) -> "Place":
        """Return a place beside it."""
        return Place(self.path.with_name(name)) if self.name is None else Place(self.path, f"{self.name} {name}")

    def change(self, statement: str) -> None:
        """Change what is there behind the decider's back."""
        if self.name is None:
            with sqlite3.connect(self.path) as connection:
                connection.execute(statement)
            connection.close()
            return
        import psycopg

        with psycopg.connect(self.path, options="-c search_path=onebit") as database:
            database.execute(f"{statement.replace('zeroblob(100)', ZEROS)} AND {self._mine}")

    def content(self) -> bytes:
        """Return all that is kept of events."""
        if self.name is None:
            return bytes(self.path.read_bytes())
        import psycopg

        with psycopg.connect(self.path) as database:
            found = database.execute(f"SELECT body FROM onebit.events WHERE {self._mine}").fetchall()
        return "".join(body for (body,) in found).encode()

    @property
    def _mine(self) -> str:
        return f"decider = (SELECT id FROM onebit.deciders WHERE name = '{self.name}')"
