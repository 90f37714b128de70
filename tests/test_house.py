"""The house rules that a test can hold: imports, versions, examples in the README."""

import doctest
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import onebit

ROOT = Path(__file__).parent.parent


def test_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert onebit.__version__ == project["version"]


def test_readme_examples_run() -> None:
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted >= 5
    assert result.failed == 0


def test_docs_examples_run() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        assert doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS).failed == 0


def test_links_between_pages_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if not target.startswith(("http", "mailto")):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_pins_cover_what_is_installed_and_name_no_index() -> None:
    for path in (ROOT / "requirements").glob("*.txt"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert line.startswith("#") or re.fullmatch(r"[A-Za-z0-9_.-]+==[\w.]+", line), f"{path.name}: {line}"


def test_imports_go_one_way() -> None:
    run = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout
