"""The house rules that a test can hold: imports, versions, pins."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

import onebit

ROOT = Path(__file__).parent.parent


def test_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert onebit.__version__ == project["version"]
    assert f"\nversion: {project['version']}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    latest = re.findall(r"^## (.*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[0]
    assert re.fullmatch(re.escape(project["version"]) + r" - (unreleased, date to be set|\d{4}-\d\d-\d\d)", latest)


def test_classifiers_are_known() -> None:
    known = pytest.importorskip("trove_classifiers").classifiers
    assert set(classifiers()) <= known


def classifiers() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: list[str] = project["classifiers"]
    return found


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def jobs(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_what_is_there_and_keep_no_secrets(path: Path) -> None:
    text, makefile = path.read_text(encoding="utf-8"), (ROOT / "Makefile").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    # PyYAML reads the key `on` as true.
    assert workflow[True]
    assert workflow["permissions"] == {"contents": "read"}
    assert not re.search(r"secrets\.|password:|://", text)
    for name, job in workflow["jobs"].items():
        assert set(job.get("permissions", {})) <= {"id-token", "pages"}, name
        assert job["timeout-minutes"] <= 60
        assert set([job["needs"]] if "needs" in job else []) <= set(workflow["jobs"])
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v1)", step.get("uses", "a/b@v1"))
            for target in re.findall(r"^make ([\w-]+)", step.get("run", ""), flags=re.MULTILINE):
                assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    runs = "\n".join(step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"])
    assert "make " in runs
    assert ".ci/run" not in runs or (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_workflows_try_the_versions_that_are_declared() -> None:
    matrix = jobs(ROOT / ".github/workflows/tests.yml")["test"]["strategy"]["matrix"]
    declared = [version for each in classifiers() if (version := each.rpartition(" :: ")[2]).startswith("3.")]
    assert matrix["python"] == declared
    assert {system.partition("-")[0] for system in matrix["os"]} == {"ubuntu", "macos", "windows"}


def test_only_a_tag_is_published_and_by_a_job_that_runs_nothing_of_ours() -> None:
    release = ROOT / ".github/workflows/release.yml"
    assert yaml.safe_load(release.read_text(encoding="utf-8"))[True] == {"push": {"tags": ["v*"]}}
    may_publish = {name for name, job in jobs(release).items() if "id-token" in job.get("permissions", {})}
    assert may_publish == {"publish"}
    publish = jobs(release)["publish"]
    assert publish["environment"] == "pypi"
    assert publish["needs"] == "build"
    assert not [step for step in publish["steps"] if "run" in step]


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
