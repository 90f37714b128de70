from pathlib import Path

import pytest

from onebit.files import replace_file
from onebit.reporting.tables import grouped, number, with_error, write_csv


def test_numbers_for_people_and_for_programs() -> None:
    assert grouped(1234567.4) == "1 234 567"
    assert (grouped(10**20), grouped(-1234.05, 1)) == ("100 000 000 000 000 000 000", "-1 234.0")
    assert (with_error(7.35, 0.509), with_error(3.0, 0.0), with_error(72_154.45, 171.9)) == (
        "7.4 ± 0.5",
        "3 ± 0",
        "72 154 ± 172",
    )
    assert (number(None), number(1 / 3), number(5e6)) == ("", "0.3333333333", "5000000")


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
