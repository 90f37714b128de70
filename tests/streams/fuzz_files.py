"""A program that damages small sound files of every kind and reads them.

It runs in a process of its own, with little memory and a clock, so that a crash, an endless loop or a huge allocation
is a failed test rather than a dead suite. Every file must be read or refused by a ValueError that names it. What Polars
reads of a text must be what Python's csv module reads. Prints how often each outcome was seen.
"""

import gzip
import io
import json
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from onebit.streams import read_table
from onebit.streams.data_set import DataSet
from onebit.streams.text import _as_utf8, _find_delimiter, _read_cells, _read_quickly

MEMORY, SECONDS = 6 << 30, 150
RARELY = 4  # every fourth time: a Parquet file takes a process of its own
TOKENS = [
    *(
        b",",
        b";",
        b"\t",
        b"|",
        b'"',
        b'""',
        b"'",
        b"\n",
        b"\r",
        b"\r\n",
        b"\0",
        b" ",
        b"?",
        b"NA",
        b"nan",
        b"inf",
        b"-",
    ),
    *(
        b"1e400",
        b"1_0",
        "٣".encode(),
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"1,5",
        b"1.234,5",
        b"2024-01-31",
        b"%",
        b"{",
        b"}",
    ),
    *(b"@data", b"@attribute", b":", b"#", b"999999999999", b"-1", b"0x10", b"x^", b"\x1f\x8b", b"\xe9", b"class"),
    *(b"\xff\xff\xff\x7f", b"\xfe\xff\xff\xff\x0f", b"\x85", b"1000000000:1"),
]


def sound_files() -> dict[str, bytes]:
    """Return a sound file of every kind, by name."""
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(30, 3)).round(3), generator.integers(3, size=30)
    words, days = np.array(["red", "blue", "green"])[generator.integers(3, size=30)], generator.integers(1, 28, size=30)
    head = "height,width,depth,colour,day,class"
    lines = [
        f"{','.join(map(str, row))},{word},2024-03-{day:02d},{'abc'[label]}"
        for row, word, day, label in zip(X.tolist(), words.tolist(), days.tolist(), y.tolist(), strict=True)
    ]
    plain = "\n".join([head, *lines]) + "\n"
    quoted = "\r\n".join('"' + '","'.join(line.split(",")) + '"' for line in (head, *lines)) + "\r\n"
    quoted = quoted.replace('"red"', '"red, or ""so"""').replace('"blue"', '"blue\nish"')
    svm = "".join(f"{label} 1:{row[0]} 2:{row[1]} 3:{row[2]}\n" for row, label in zip(X, y, strict=True))
    attributes = ("a numeric", "b real", "'a colour' {red,blue,green}", "d date", "class {0,1,2}")
    arff = "@relation r\n" + "".join(f"@attribute {each}\n" for each in attributes) + "@data\n"
    cells = zip(X.tolist(), words.tolist(), days.tolist(), y.tolist(), strict=True)
    arff += "".join(f"{row[0]},{row[1]},{word},2024-03-{day:02d},{label}\n" for row, word, day, label in cells)
    frame = pl.DataFrame({"a": X[:, 0], "b": words, "d": pl.Series(days).cast(pl.Date), "class": y})
    parquet, npz, packed = io.BytesIO(), io.BytesIO(), io.BytesIO()
    frame.write_parquet(parquet)
    np.savez(npz, X=X, y=y)
    np.savez_compressed(packed, X=X, y=y, classes=np.array(["a", "b", "c"]))
    return {
        "plain.csv": plain.encode(),
        "quoted.csv": quoted.encode(),
        "decimal.csv": plain.replace(",", ";").replace(".", ",").encode(),
        "tabs.tsv": plain.replace(",", "\t").encode(),
        "wide.csv": plain.encode("utf-16"),
        "packed.csv.gz": gzip.compress(plain.encode()),
        "a.parquet": parquet.getvalue(),
        "a.arff": arff.encode(),
        "a.svm": svm.encode(),
        "a.npz": npz.getvalue(),
        "packed.npz": packed.getvalue(),
    }


def damaged(content: bytes, generator: np.random.Generator) -> bytes:
    """Return a file after one to four random changes; of a packed one, as often those of what is in it."""
    if content.startswith(b"\x1f\x8b") and generator.random() < 0.5:
        return gzip.compress(damaged(gzip.decompress(content), generator))
    found = bytearray(content)
    for _ in range(min(4, generator.geometric(0.6))):
        at, length = (int(generator.integers(n)) for n in (len(found) + 1, 1 + min(24, len(found))))
        kind = generator.integers(6)
        if kind == 0 and at < len(found):
            found[at] ^= 1 << int(generator.integers(8))
        elif kind == 1:
            del found[at : at + length]
        elif kind == 2:
            found[at:at] = TOKENS[generator.integers(len(TOKENS))]
        elif kind == 3:
            found[at : at + length] = TOKENS[generator.integers(len(TOKENS))]
        elif kind == 4:
            found[at:at] = found[max(0, at - length) : at]
        elif kind == 5 and generator.random() < 0.2:
            del found[at:]
    return bytes(found)


def some_reading(generator: np.random.Generator) -> dict[str, Any]:
    """Return options, most often none."""
    given: dict[str, Any] = {
        "label": ["class", "colour", 0, -1, "lost"][generator.integers(5)],
        "drop": [["day"], ["height,width"], [1], ["class"]][generator.integers(4)],
        "columns": [["height", "colour"], [0, 1], ["class"]][generator.integers(3)],
        "missing": "indicator",
        "delimiter": [",", ";", " ", "tab", "§"][generator.integers(5)],
        "decimal": [",", "."][generator.integers(2)],
        "encoding": ["latin-1", "utf-16", "cp1252", "utf-7"][generator.integers(4)],
        "max_words": 5,
    }
    return {name: value for name, value in given.items() if generator.random() < 0.12}


def check_text(path: Path, content: bytes) -> None:
    """Raise unless Polars reads the same cells as Python's csv module, or leaves them to it."""
    try:
        text = _as_utf8(path, content, None)
        delimiter = _find_delimiter(text.decode()) if text.strip() else ","
        if _read_quickly(text, delimiter) is None:
            return
        quick = _read_cells(path, text, delimiter)
        careful = _read_cells(path, text, delimiter, quickly=False)
    except ValueError:
        return
    if not quick.equals(careful):
        raise AssertionError(f"Polars and csv read other cells: {content!r}")


def outcome(path: Path, content: bytes, options: dict[str, Any]) -> str:
    """Return what became of a file: read, or refused."""
    path.write_bytes(content)
    try:
        data = read_table(path, **options)
    except ValueError as error:
        said = str(error)
        if path.name not in said and not said.startswith(("encoding", "delimiter")):
            raise AssertionError(f"does not name the file: {said}") from error
        return "refused"
    if not isinstance(data, DataSet):
        raise AssertionError("not a data set")
    return "read"


def main(seed: int, cases: int, seconds: float) -> None:
    """Damage and read files until the cases or the seconds are used up."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("error")
    generator, files, seen, end = np.random.default_rng(seed), sound_files(), Counter[str](), time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            if outcome(Path(folder) / name, content, {}) != "read":
                raise AssertionError(f"{name} is sound")
        for case in range(cases):
            if time.monotonic() > end:
                break
            name = list(files)[case % len(files)]
            if name == "a.parquet" and case // len(files) % RARELY:
                continue
            content, options = damaged(files[name], generator), some_reading(generator)
            if name.endswith((".svm", ".npz")):
                options = {}
            path = Path(folder) / name
            signal.alarm(SECONDS)  # ends the process, even inside compiled code
            try:
                seen[f"{outcome(path, content, options)} {name}"] += 1
                if name.endswith((".csv", ".tsv")):
                    check_text(path, content)
            except BaseException:
                print(f"seed {seed}, case {case}, {name}, {options}: {content!r}", file=sys.stderr)
                raise
            signal.alarm(0)
    print(json.dumps(seen))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
