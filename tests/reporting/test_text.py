import csv
import io
import math
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from onebit.files import replace_file
from onebit.reporting.console import _as_text
from onebit.reporting.figures import looks, new_figure, save
from onebit.reporting.text import (
    _in_csv,
    fixed,
    grouped,
    in_figure,
    in_page,
    printable,
    shortened,
    with_error,
    write_csv,
)

STRANGE = (
    "cost_$5_to_$10",
    "$\\frac{",
    "a\\$b$c",
    "[/red]",
    "o[/]",
    "[bold]\\",
    "\x1b[2J\x1b[31mred",
    "two\nlines\r\ttab",
    "\u202egnp.exe",
    os.fsdecode(b"caf\xe9"),
    "=HYPERLINK(A1)",
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "<script>alert(1)</script>&",
    "_hidden",
    "x" * 250,
    "日本語 😀",
)
"""Names of files that were seen, or that somebody may try."""


@pytest.mark.parametrize("name", STRANGE)
def test_a_name_is_shown_letter_for_letter_and_obeyed_by_nobody(name: str) -> None:
    seen = printable(name)
    assert seen.isprintable()
    seen.encode()
    printed = io.StringIO()
    Console(file=printed, width=400, force_terminal=True, color_system=None).print(_as_text(name, "bold"))
    assert seen in printed.getvalue()
    assert "\x1b" not in printed.getvalue()
    assert "<" not in in_page(name)
    assert len(_as_text(name, most=60).plain) <= 60


def test_a_figure_shows_every_strange_name(tmp_path: Path) -> None:
    with looks():
        figure, (axes,) = new_figure(1, 1, 8.0)
        axes.set_yticks(range(len(STRANGE)), [in_figure(name) for name in STRANGE])
        axes.plot([], [], label=in_figure("$x_1^"))
        figure.legend(loc="outside lower center")
        axes.set_title(in_figure("a$b"))
    png, _ = save(figure, tmp_path, "names")
    assert png.stat().st_size > 5000


@given(st.text(alphabet=st.characters(codec=None)))
def test_any_text_can_be_shown_everywhere(name: str) -> None:
    seen = printable(name)
    assert seen.isprintable()
    assert printable(seen) == seen
    assert in_figure(name).replace(r"\$", "").count("$") == 0
    cell = _in_csv(name)
    assert isinstance(cell, str)
    assert cell[:1] not in set("=+-@\t\r") or float(cell) is not None


@pytest.mark.parametrize("cell", ["-61.18", "1e-05", "+3", "-inf", "nan", "", "0", "-.5", "2.", 7, -7, 1.5, None])
def test_numbers_stay_numbers(cell: object) -> None:
    assert _in_csv(cell) == cell


@pytest.mark.parametrize("cell", ["=1", "+a", "-1+1", "-1_000", "@x", "＝1", "--1", "-"])
def test_what_a_spreadsheet_would_compute_is_marked(cell: str) -> None:
    assert _in_csv(cell) == f"'{cell}"
    text = io.StringIO()
    csv.writer(text).writerow([_in_csv(cell)])
    assert text.getvalue().startswith("'")


def test_a_long_name_keeps_its_beginning_and_its_end() -> None:
    assert shortened("abc", 3) == "abc"
    assert [len(shortened("x" * 300, most)) for most in (2, 3, 40, 41)] == [2, 3, 40, 41]
    assert shortened("a" * 50 + "b" * 50, 21) == "a" * 10 + "…" + "b" * 10


def test_letters_that_the_font_lacks_are_no_warning(tmp_path: Path) -> None:
    with looks():
        figure, (axes,) = new_figure(1, 1, 3.0)
        axes.set_title("日本語")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save(figure, tmp_path, "title")


def test_numbers_for_people_and_for_programs() -> None:
    assert grouped(1234567.4) == "1 234 567"
    assert (grouped(10**20), grouped(-1234.05, 1)) == ("100 000 000 000 000 000 000", "-1 234.0")
    assert (with_error(7.35, 0.509), with_error(3.0, 0.0), with_error(72_154.45, 171.9)) == (
        "7.4 ± 0.5",
        "3 ± 0",
        "72 154 ± 172",
    )


def test_failed_write_leaves_the_old_file_and_no_rubbish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "summary.csv"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_csv(path, ("remark",), [("new",)])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    for content in (b"a long first page", b"short"):
        replace_file(path, content)
        assert path.read_bytes() == content


def test_example_of_printable() -> None:
    assert printable("cl\x1b[2Jear\nl\u202etr") == "cl\\x1b[2Jear\\nl\\u202etr"


def test_example_of_shortened() -> None:
    assert shortened("measurements of the year 2019.csv", 16) == "measurem…019.csv"


def test_example_of_in_figure() -> None:
    assert in_figure("cost_$5_to_$10") == "cost_\\$5_to_\\$10"


def test_example_of_in_page() -> None:
    assert in_page("<b> & co") == "&lt;b&gt; &amp; co"


def test_example_of_in_csv() -> None:
    assert [_in_csv(cell) for cell in ("=1+1", "-61.18", -3, "@cmd", "plain")] == [
        "'=1+1",
        "-61.18",
        -3,
        "'@cmd",
        "plain",
    ]


def test_example_of_grouped() -> None:
    assert (grouped(5000000), grouped(1234.56, 1)) == ("5 000 000", "1 234.6")


def test_example_of_with_error() -> None:
    assert (with_error(1234.4, 5.6), with_error(6.55, 0.47), with_error(1234.0, math.nan)) == (
        "1 234 ± 6",
        "6.6 ± 0.5",
        "1 234",
    )


def test_example_of_fixed() -> None:
    assert (fixed(0.1234, ".2f"), fixed(0.5, ".0%"), fixed(None, ".2f")) == ("0.12", "50%", "")


def test_numbers_in_tables_have_ten_digits(tmp_path: Path) -> None:
    write_csv(tmp_path / "numbers.csv", ("a",) * 6, [(None, 1 / 3, 5e6, math.nan, np.float64(0.1), "-2+3")])
    assert (tmp_path / "numbers.csv").read_text().splitlines()[1] == ",0.3333333333,5000000,,0.1,'-2+3"
