"""docs/theory/README.md maps every numbered statement of the paper to code and to a test that exist."""

import ast
import re
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import NamedTuple

import pytest

from onebit.cli import COMMANDS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "theory" / "README.md"

# The paper counts them all with one counter.
STATEMENTS = {
    1: "Definition",
    2: "Theorem",
    3: "Theorem",
    4: "Theorem",
    5: "Theorem",
    6: "Corollary",
    7: "Theorem",
    8: "Theorem",
    9: "Lemma",
    10: "Theorem",
    11: "Theorem",
    12: "Lemma",
    13: "Lemma",
    14: "Lemma",
    15: "Proposition",
    16: "Lemma",
    17: "Lemma",
    18: "Lemma",
    19: "Lemma",
    20: "Lemma",
    21: "Theorem",
    22: "Lemma",
    23: "Definition",
    24: "Theorem",
    25: "Lemma",
}
ALSO = ["Remark after Theorem 3", "Theorem 5's proof", *(f"Algorithm {n}" for n in range(1, 6)), "Figure 1", "Figure 2"]


class Row(NamedTuple):
    statement: str
    code: list[str]
    page: str
    tests: list[str]


@cache
def rows() -> list[Row]:
    table = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]
    assert all(len(row) == 4 for row in cells), "a row of the map has four cells"
    assert cells[0] == ["statement", "code", "page", "tests"]
    return [Row(a, re.findall(r"`([^`]+)`", b), c, re.findall(r"`([^`]+)`", d)) for a, b, c, d in cells[1:]]


def test_every_numbered_statement_has_a_row_in_order() -> None:
    numbered = [re.match(r"(\w+) (\d+):", row.statement) for row in rows()]
    found = [(int(match[2]), match[1]) for match in numbered if match and match[1] not in ("Algorithm", "Figure")]
    assert found == list(STATEMENTS.items())
    for name in ALSO:
        assert any(name in row.statement for row in rows()), name


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.statement)
def test_what_a_row_names_exists(row: Row) -> None:
    assert row.code or row.statement.startswith(("Lemma 12", "Lemma 13"))  # inequalities between numbers
    assert row.tests
    for name in row.code:
        if name.startswith("onebit "):
            assert name.removeprefix("onebit ") in set(COMMANDS)
        else:
            assert resolve_name(f"onebit.{name}").__doc__, f"{name} says nothing about itself"
    for name in row.tests:
        path, _, function = name.partition("::")
        assert function, f"{name} must name a test, not only a file"
        assert function.startswith("test_")
        assert function in functions(ROOT / "tests" / path), name
    links = re.findall(r"\]\(([^)]+)\)", row.page)
    assert links
    assert all((PAGE.parent / link).is_file() for link in links)


def test_a_wrong_name_would_be_noticed() -> None:
    with pytest.raises((AttributeError, ImportError)):
        resolve_name("onebit.theory.no_such_thing")
    with pytest.raises((AttributeError, ImportError)):
        resolve_name("onebit.BanditPerceptron.no_such_method")
    assert "test_no_such_thing" not in functions(Path(__file__))


@cache
def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
