"""Tables that tests write and read."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from onebit.streams import read_table


def read(folder: Path, text: str | bytes, name: str = "table.csv", **options: Any) -> Any:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_table(path, **options)


def labels(data: Any) -> list[str]:
    return [data.label_names[code] for code in data.y]


def rows(values: Iterable[object]) -> str:
    """Return a table of one column n, and labels a and b."""
    return "n,y\n" + "".join(f"{value},{'ab'[i % 2]}\n" for i, value in enumerate(values))


def write(folder: Path, text: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path
