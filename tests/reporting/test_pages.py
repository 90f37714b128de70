import re

from onebit.reporting.pages import cells, prose, table


def test_columns_of_dashes_are_left_out() -> None:
    classes = ["name", "number", "number", "number"]
    rows = [cells(["a", "3", "", ""], classes), cells(["b", "3", "", "4"], classes)]
    page = table(("learner", "mistakes", "p", "paper"), rows)
    assert re.findall(r'<th scope="col">(.*?)</th>', page) == ["learner", "mistakes", "paper"]
    assert re.findall(r"<td[^>]*>(.*?)</td>", page) == ["a", "3", "–", "b", "3", "4"]


def test_a_table_scrolls_in_its_own_box() -> None:
    assert table(("a",), [cells(["1"], ["number"])]).startswith('<div class="scroll" tabindex="0">')


def test_numbers_are_not_broken_at_the_end_of_a_line() -> None:
    assert prose("5 000 000 rounds, 20 of 1999") == "5\N{NO-BREAK SPACE}000\N{NO-BREAK SPACE}000 rounds, 20 of 1999"
