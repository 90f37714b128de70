"""Export the guesses of a log as a table."""

import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from onebit.decider.events import Event, Kind
from onebit.decider.tickets import moment
from onebit.files import replace_file
from onebit.typed_json import write


def check_table(path: "str | os.PathLike[str]") -> Path:
    """Return the path of a table, or raise ValueError unless it ends in .csv or .parquet."""
    place = Path(path)
    if place.suffix not in (".csv", ".parquet"):
        raise ValueError(f"path must end in .csv or .parquet; got {os.fspath(path)!r}")
    return place


def write_guesses(place: Path, events: Iterable[Event], classes: list[Any]) -> int:
    """Write every guess to a CSV or Parquet file, one row each, with its latest feedback."""
    import polars

    lines: dict[str, dict[str, Any]] = {}
    for event in events:
        name, body = str(event.ticket), event.body
        if event.kind == Kind.GUESSED:
            lines[name] = {
                "ticket": name,
                "time": moment(event.time),
                "label": str(classes[body["label"]]),
                "propensity": body["propensity"],
                "correct": None,
                "answered": None,
                "record": write(body["record"]),
            }
        elif event.kind in (Kind.TOLD, Kind.CORRECTED) and name in lines:
            lines[name] |= {"correct": body["correct"], "answered": moment(event.time)}
    time = polars.Datetime("us", "UTC")
    schema: dict[str, Any] = {
        "ticket": str,
        "time": time,
        "label": str,
        "propensity": float,
        "correct": bool,
        "answered": time,
        "record": str,
    }
    frame, content = polars.DataFrame(list(lines.values()), schema=schema), io.BytesIO()
    if place.suffix == ".csv":
        frame.write_csv(content)
    else:
        frame.write_parquet(content)
    replace_file(place, content.getvalue())
    return len(lines)
