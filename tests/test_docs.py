"""What the pages say is so: examples run, commands can be typed, links lead somewhere, nothing is left out."""

import ast
import doctest
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

import onebit
from onebit import cli
from onebit.learners import all_learners

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
COMMANDS = {name: cli.load(name) for name in cli.COMMANDS}

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def blocks(page: Path, language: str) -> list[str]:
    found = re.findall(r"^```(.*)\n((?s:.*?))^```$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [text for name, text in found if name == language]


@each_page
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS, encoding="utf-8")
    assert result.failed == 0
    for program in blocks(page, "python"):
        if not program.startswith(">>> "):
            exec(compile(program, page.name, "exec"), {"__name__": page.stem})


@each_page
def test_outputs_are_shown_where_they_are_checked(page: Path) -> None:
    """A value in a comment, ``ticket.label  # "delivery"``, would be checked by nothing: such examples have prompts."""
    for program in [*blocks(page, "python"), *blocks(page, "py")]:
        if not program.startswith(">>> "):
            assert [line for line in program.splitlines() if states_a_value(line)] == []


def states_a_value(line: str) -> bool:
    """Return whether a line is an expression with its value in a comment."""
    expression, mark, comment = line.partition("  # ")
    try:
        ast.literal_eval(comment.strip())
        return bool(mark) and isinstance(ast.parse(expression.strip()).body[0], ast.Expr)
    except (SyntaxError, ValueError, IndexError):
        return False


def test_what_states_a_value() -> None:
    assert states_a_value('ticket.label  # "delivery"')
    assert states_a_value("desk.tell(ticket.id, correct=True)  # True")
    assert not states_a_value("desk.tell(ticket.id, correct=True)  # now, tomorrow")
    assert not states_a_value("n = 3  # 3")


@each_page
def test_commands_can_be_typed(page: Path) -> None:
    """Every `onebit …` in a block has a command and options that there are; arguments may be anything."""
    for block in blocks(page, ""):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("onebit "):
                _, name, *words = shlex.split(line, comments=True)
                assert name in COMMANDS, line
                COMMANDS[name].make_context(name, words)


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http", "mailto")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_tests_in_the_table_of_faults_are_there() -> None:
    named = set(re.findall(r"`(?:tests/\S*/)?(test_\w+)(?:\.py)?`", (DOCS / "faults.md").read_text(encoding="utf-8")))
    assert len(named) > 30
    sources = list((ROOT / "tests").rglob("test_*.py"))
    there = {path.stem for path in sources}
    there.update(*(re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8")) for path in sources))
    assert named - there == set()


def test_every_command_is_on_the_page_of_commands() -> None:
    text = (DOCS / "commands.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"| `onebit {name}` |" not in text] == []


def test_every_learner_can_be_chosen() -> None:
    text = (DOCS / "choose.md").read_text(encoding="utf-8")
    assert [cls.__name__ for cls in all_learners() if f"| `{cls.__name__}(" not in text] == []


def test_the_decision_figure_names_what_there_is() -> None:
    drawn = " ".join(ElementTree.parse(DOCS / "images" / "choose.svg").getroot().itertext())
    named = re.findall(r"\b([A-Z]\w+)\(", drawn)
    assert "BanditSVM" in named
    assert [name for name in named if not hasattr(onebit, name) and not hasattr(onebit.kernels, name)] == []
