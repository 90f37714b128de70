"""Read one file in a process of its own; `onebit.streams.child_reader` starts it.

It is run as a script, so that it starts in a fraction of a second: neither scikit-learn nor Numba is imported.
"""

import contextlib
import json
import os
import signal
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any


def main(folder: Path) -> None:
    """Run the job described in a folder; write arrays there and print the rest of the answer as JSON."""
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    sys.path[:] = job["sys_path"]
    read: Callable[[dict[str, Any], Path], dict[str, Any]] = _parquet if job["kind"] == "parquet" else _text
    try:
        answer = read(job, folder)
    except MemoryError as error:
        answer = {"no_memory": str(error)}
    except BaseException as error:  # a panic of Polars is no Exception
        lines = str(error).strip().splitlines() or [type(error).__name__]
        answer = {"error": lines[0], "is_clear": type(error) is ValueError}
    print(json.dumps(answer))


def _parquet(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    import polars as pl

    _limit(job)
    lazy = pl.scan_parquet(job["path"], glob=False)
    needed = 8 * len(lazy.collect_schema()) * int(lazy.select(pl.len()).collect().item())
    if needed > job["bytes"]:
        raise MemoryError(f"its rows and columns ask for {needed / 2**30:.3g} GiB")
    frame = pl.read_parquet(job["path"], glob=False)
    try:
        frame.write_ipc(folder / "frame.arrow")
    except (OSError, pl.exceptions.PolarsError) as error:  # a full disk
        raise ValueError(f"{job['path']}: its columns cannot be put into {folder.parent} ({error})") from error
    return {}


def _text(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    # Empty packages in place of the real ones, which import all of onebit: seconds, and 200 MB.
    for name in ("onebit", "onebit.streams"):
        package = types.ModuleType(name)
        package.__path__ = [str(Path(job["package"], *name.split(".")[1:]))]
        sys.modules[name] = package
    import numpy as np

    from onebit.machine_memory import no_more_than
    from onebit.streams.columns import read_columns
    from onebit.streams.reading import Reading
    from onebit.streams.text_table import read_text_table

    _limit(job)
    path, reading = Path(job["path"]), Reading(**job["reading"]).checked()
    with no_more_than(job["bytes"]):
        found = read_columns(read_text_table(path, path.read_bytes(), reading), reading)
    np.save(folder / "X.npy", found.X)
    np.save(folder / "labels.npy", found.labels, allow_pickle=False)
    return {"where": found.where, "about": found.about, "feature_names": found.feature_names}


def _limit(job: dict[str, Any]) -> None:
    """Let this process take no more memory and time than it is allowed; neither can be done on Windows."""
    if hasattr(signal, "alarm"):
        signal.alarm(job["seconds"])  # ends the process, even inside compiled code
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        taken = 1024 * int(status.partition("VmData:")[2].split()[0])
        room = (256 << 20) + (8 << 20) * (os.cpu_count() or 1)  # for the threads of Polars
        resource.setrlimit(resource.RLIMIT_DATA, (taken + room + job["bytes"], resource.RLIM_INFINITY))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
