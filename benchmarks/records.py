"""Records as rows: microseconds of processor time for one record of ten columns, beside scikit-learn's FeatureHasher.

``python benchmarks/records.py``
"""

import random
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from rich.console import Console
from rich.table import Table
from sklearn.feature_extraction import FeatureHasher

from onebit.encoding import Encoder, record_to_json

_TEXT = "Where is my parcel? I ordered it three weeks ago and nobody answers the phone. "
_REPEATS = 7


def make_record(i: int, rng: random.Random) -> dict[str, Any]:
    return {
        "length": rng.randrange(1000),
        "amount": 100.0 * rng.random(),
        "age": rng.randrange(90),
        "urgent": rng.random() < 0.5,
        "score": rng.gauss(0.0, 1.0),
        "balance": rng.gauss(0.0, 1000.0),
        "channel": rng.choice(["mail", "phone", "chat"]),
        "country": rng.choice(["de", "fr", "us", "uk", "in"]),
        "plan": rng.choice(["free", "pro"]),
        "sent": datetime(2026, 1, 1) + timedelta(minutes=i),
    }


def microseconds(work: Callable[[Any], Any], records: list[Any]) -> float:
    """Return the least processor time per record in several passes."""
    least = float("inf")
    for _ in range(_REPEATS):
        start = time.process_time()
        for record in records:
            work(record)
        least = min(least, time.process_time() - start)
    return 1e6 * least / len(records)


def main() -> None:
    rng = random.Random(1)
    records = [make_record(i, rng) for i in range(2000)]
    without_date = [{**record, "sent": rng.random()} for record in records]
    with_holes = [{name: value for name, value in record.items() if rng.random() < 0.8} for record in records]
    with_text = [{**record, "subject": _TEXT} for record in records[:200]]
    table = Table("records", "places", "look + take", "look")
    for name, used, encoder in (
        ("numbers and words", without_date, Encoder()),
        ("with a date", records, Encoder()),
        ("a fifth missing", with_holes, Encoder()),
        ("scaled", records, Encoder(scale=True)),
        ("with a text", with_text, Encoder()),
    ):

        def look_and_take(record: Any, encoder: Encoder = encoder) -> None:
            encoder.take(encoder.look(record))

        both = microseconds(look_and_take, used)
        table.add_row(name, f"{encoder.width}", f"{both:.1f} µs", f"{microseconds(encoder.look, used):.1f} µs")
    hasher = FeatureHasher(64)
    words = [{key: value for key, value in record.items() if key != "sent"} for record in records]
    hashed = microseconds(lambda record: hasher.transform([record]), words)
    table.add_row("FeatureHasher, without the date", "64", "", f"{hashed:.1f} µs")
    table.add_row("record_to_json", "", "", f"{microseconds(record_to_json, records):.1f} µs")
    Console().print(table)


if __name__ == "__main__":
    main()
