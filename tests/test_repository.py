"""The house rules that a test can hold: imports, versions, pins."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import onebit

ROOT = Path(__file__).parent.parent


def test_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert onebit.__version__ == project["version"]
    assert f"\nversion: {project['version']}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_pins_cover_what_is_installed_and_name_no_index() -> None:
    for path in (ROOT / "requirements").glob("*.txt"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert line.startswith("#") or re.fullmatch(r'[\w.-]+==[\w.]+(; \w+ != "\w+")?', line), (
                f"{path.name}: {line}"
            )


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w.-]", line)[0].lower() for line in requirements}


def test_what_is_imported_is_declared_and_pinned() -> None:
    """A library that comes with another one today need not come with it tomorrow."""
    imported = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                imported.add(str(node.module).partition(".")[0])
    distributions = packages_distributions()
    strangers = imported - set(sys.stdlib_module_names) - {"onebit"}
    used = {distributions.get(name, [name])[0].lower().replace("_", "-") for name in strangers}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed, extra = names(project["dependencies"]), names(list(chain(*project["optional-dependencies"].values())))
    assert used - needed - extra == set(), "imported, not declared"
    assert needed - used == set(), "declared, never imported"
    pins = (ROOT / "requirements" / "base.txt").read_text(encoding="utf-8").lower()
    assert all(f"\n{name}==" in pins for name in needed)


def test_imports_go_one_way() -> None:
    run = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout


def test_thousands_are_written_one_way() -> None:
    # `onebit.reporting.text.grouped` is the one home: 5 000 000, and neither 5,000,000 nor 5000000 nor 5·10⁶.
    home = ROOT / "src/onebit/reporting/text.py"
    for module in [*(ROOT / "src").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]:
        if module != home:
            source = module.read_text(encoding="utf-8")
            assert not re.findall(r":,(?:\.\d+)?[a-z%]?\}", source), f"{module.name}: call grouped"
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        no_prose = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)|https?://\S+", re.DOTALL)
        text = no_prose.sub("", page.read_text(encoding="utf-8"))
        assert not re.findall(r"\b\d{1,3}(?:,\d{3})+\b|(?<![\d.])\d{5,}\b", text), page.name
        if page.parent != ROOT:
            assert not re.findall(r"·10[⁴⁵⁶⁷⁸⁹]", text), page.name


def test_modules_are_short() -> None:
    """Past 500 lines a module holds two ideas."""
    long = {
        path.name for path in (ROOT / "src").rglob("*.py") if len(path.read_text(encoding="utf-8").splitlines()) > 500
    }
    assert not long


def test_learners_are_public_names() -> None:
    assert {cls.__name__ for cls in onebit.learners.all_learners()} <= set(onebit.__all__)


def test_every_module_has_its_tests() -> None:
    """A package's ``__init__`` is tested with its modules, or under the package's name."""
    elsewhere = {"checks/problems.py": "checks/test_protocol.py", "cli/accept_loss.py": "decider/test_sqlite.py"}
    for module in (ROOT / "src/onebit").rglob("[!_]*.py"):
        name = module.relative_to(ROOT / "src/onebit")
        tests = elsewhere.get(name.as_posix(), name.with_name(f"test_{name.name}").as_posix())
        assert (ROOT / "tests" / tests).is_file(), f"{name} has no tests/{tests}"
