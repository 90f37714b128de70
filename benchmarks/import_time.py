"""How long `import onebit` takes, beside importing what it stands on: ``python benchmarks/import_time.py``.

Each import is a process of its own; the two take turns, so that whatever else the machine does meets both. The goal is
a ratio of at most 1.2.
"""

import statistics
import subprocess
import sys

RUNS = 15
GROUND, WHOLE = "import numba, sklearn.base", "import onebit"
_TIMED = "import time; start = time.process_time(); {}; print(time.process_time() - start)"


def seconds(statement: str) -> float:
    """Return the processor time of an import in a fresh process."""
    run = subprocess.run(
        [sys.executable, "-c", _TIMED.format(statement)], check=True, capture_output=True, text=True
    )  # fmt: skip
    return float(run.stdout)


def main() -> None:
    """Print the medians and the ratio of the pairs."""
    seconds(GROUND), seconds(WHOLE)  # compiled files are written
    pairs = [(seconds(GROUND), seconds(WHOLE)) for _ in range(RUNS)]
    ground, whole = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(whole / ground for ground, whole in pairs)
    print(f"{GROUND}: {ground:.2f} s\n{WHOLE}: {whole:.2f} s\nratio {ratio:.2f} (median of {RUNS} pairs)")


if __name__ == "__main__":
    main()
