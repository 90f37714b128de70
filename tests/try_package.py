"""Build sdist and wheel into dist/, install the wheel into an empty environment, and try it there: `make package`.

The wheel is built from the sdist, which so must be whole. What onebit runs on is not downloaded again: the environment
gets links to just the distributions that requirements/base.txt pins, and pip says whether they are what the wheel asks
for. Neither the sources nor anything else that tests need can be seen from there.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


def build() -> Path:
    """Build both, and return the wheel."""
    shutil.rmtree(DIST, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "hatchling", "build", "--target", "sdist"], cwd=ROOT, check=True)
    (sdist,) = DIST.glob("*.tar.gz")
    offline = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*PIP, "wheel", *offline, "--wheel-dir", str(DIST), str(sdist)], check=True)
    (wheel,) = DIST.glob("*.whl")
    return wheel


def empty_environment(folder: Path) -> Path:
    """Make an environment that has only the pinned requirements, and return its python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for line in (ROOT / "requirements" / "base.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            link(line.partition("==")[0], packages)
    return folder / "bin" / "python"


def link(name: str, packages: Path) -> None:
    """Link all that a distribution has among the packages of this environment."""
    found = distribution(name)
    for part in {file.parts[0] for file in found.files or () if file.parts[0] != ".."}:
        if not (packages / part).exists():
            (packages / part).symlink_to(Path(str(found.locate_file(part))).resolve())


def main() -> None:
    """Build, install, try."""
    wheel = build()
    with tempfile.TemporaryDirectory() as folder:
        python = empty_environment(Path(folder) / "environment")
        there = [*PIP, "--python", str(python)]
        subprocess.run([*there, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
        subprocess.run([*there, "check"], check=True)
        plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        subprocess.run([python, "-I", ROOT / "tests" / "smoke.py"], cwd=folder, env=plain, check=True)
    print(f"{wheel.name} works in an empty environment")


if __name__ == "__main__":
    main()
