import html
import re
import sys
from pathlib import Path

import pytest

from onebit.reporting.pages import _prose, _table_html, write_page
from onebit.reporting.text import Cell, Table


def test_columns_of_dashes_are_left_out() -> None:
    page = _table_html(Table(("learner", "mistakes", "p", "paper"), [["a", "3", "", ""], ["b", "3", "", "4"]]))
    assert re.findall(r'<th scope="col">(.*?)</th>', page) == ["learner", "mistakes", "paper"]
    assert re.findall(r"<td[^>]*>(.*?)</td>", page) == ["a", "3", "–", "b", "3", "4"]


def test_a_table_scrolls_in_its_own_box() -> None:
    assert _table_html(Table(("a",), [["1"]])).startswith('<div class="scroll" tabindex="0">')


def test_what_a_cell_holds_is_text_and_no_markup() -> None:
    cell = Cell("<i>LongName", "good", small="<b>")
    page = _table_html(Table(("a",), [[cell]]))
    assert '<td class="name good">&lt;i&gt;Long<wbr>Name <small>&lt;b&gt;</small></td>' in page


def test_numbers_are_not_broken_at_the_end_of_a_line() -> None:
    assert _prose("5 000 000 rounds, 20 of 1999") == "5\N{NO-BREAK SPACE}000\N{NO-BREAK SPACE}000 rounds, 20 of 1999"


def test_example_of_prose() -> None:
    assert _prose("a < 5 000 000") == "a &lt; 5\xa0000\xa0000"


def test_the_command_is_shown_as_a_shell_takes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/onebit", "compare", "my file.csv", "--label", "a'b"])
    write_page(tmp_path, "A title", {"": ["first"], "Empty": [], "Tables": [{"a": "b"}]}, {"Seed": "3"})
    page = html.unescape((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "onebit compare 'my file.csv' --label 'a'\"'\"'b'" in page
    assert re.findall("<h2>(.*)</h2>", page) == ["Tables", "What was run", "How to get it again"]
    assert "<dt>Seed</dt><dd>3</dd>" in page
