"""Tables that tests write and read."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

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


def animals(folder: Path) -> Path:
    """Return a user's file: a header, numbers, words, labels that are words."""
    generator = np.random.default_rng(0)
    lines = ["height,width,colour,animal"]
    for k in generator.integers(3, size=240).tolist():
        height, width = generator.normal([0.0, 4.0, 8.0][k], 1.0), generator.normal([5.0, -5.0, 0.0][k], 1.0)
        lines.append(f"{height:.4f},{width:.4f},{('red', 'blue')[k % 2]},{('cat', 'dog', 'emu')[k]}")
    return write(folder, "\n".join(lines) + "\n", "animals.csv")
