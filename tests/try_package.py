"""Build sdist and wheel into dist/, install the wheel into an empty environment, and try it there: `make package`.

The wheel is built from the sdist, which so must be whole. What onebit runs on is not downloaded again: the environment
gets links to just the distributions that requirements/base.txt pins, and pip says whether they are what the wheel asks
for; then those of the extras. Neither the sources nor anything else that tests need can be seen from there.
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
EXTRAS = ("files", "figures", "serve", "postgres", "dask")
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


def link_pins(extra: str, packages: Path) -> None:
    """Link the distributions that one of the files of requirements pins."""
    for line in (ROOT / "requirements" / f"{extra}.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            link(line.partition("==")[0], packages)


def link(name: str, packages: Path) -> None:
    """Link all that a distribution has among the packages of this environment."""
    found = distribution(name)
    for part in {file.parts[0] for file in found.files or () if file.parts[0] != ".."}:
        if not (packages / part).exists():
            (packages / part).symlink_to(Path(str(found.locate_file(part))).resolve())


def main() -> None:
    """Build, install, try without extras and with them."""
    wheel = build()
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
        (packages,) = environment.glob("lib/python*/site-packages")
        python = environment / "bin" / "python"
        there = [*PIP, "--python", str(python)]
        plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        link_pins("base", packages)
        subprocess.run([*there, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
        for extras in ((), EXTRAS):
            for extra in extras:
                link_pins(extra, packages)
            subprocess.run([*there, "check"], check=True)
            smoke = [python, "-I", ROOT / "tests" / "smoke.py", *extras]
            subprocess.run(smoke, cwd=folder, env=plain, check=True)
    print(f"{wheel.name} works in an empty environment, and with the extras {', '.join(EXTRAS)}")


if __name__ == "__main__":
    main()
