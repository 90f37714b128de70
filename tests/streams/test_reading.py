"""The options of reading."""

import gzip
from pathlib import Path

import pytest

from onebit.streams import read_table
from onebit.streams.reading import Reading
from tables import read


def test_a_delimiter_that_is_given(tmp_path: Path) -> None:
    assert read(tmp_path, "1~2~x\n3~4~y\n5~6~x\n", delimiter="~").X.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert read(tmp_path, " 1  2 x\n3 4   y\n5 6 x  \n", delimiter=" ").X.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert read(tmp_path, "1§2§x\n3§4§y\n5§6§x\n", delimiter="§").X.tolist() == [[1, 2], [3, 4], [5, 6]]
    for wrong in ("", "ab", "\n", '"', "1"):
        with pytest.raises(ValueError, match="delimiter must be one sign"):
            read(tmp_path, "1,2\n", delimiter=wrong)
    with pytest.raises(ValueError, match="delimiter and decimal must differ"):
        read(tmp_path, "1,2\n", delimiter=",", decimal=",")


def test_the_limit_is_a_setting(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"n,y\n" + b"1,a\n2,b\n" * 100_000))
    with pytest.raises(ValueError, match=r"a\.csv\.gz: does not fit into memory .*more than the 0\.002 GiB allowed"):
        read_table(path, max_gib=0.002)
    assert read_table(path, max_gib=1).X.shape == (200_000, 1)
    with pytest.raises(ValueError, match="max_gib"):
        read_table(path, max_gib=0)
    assert Reading().most_bytes(10**9) == 200e9


def test_options_that_are_given() -> None:
    assert Reading(label="y", drop=("a",), missing="refuse").given == {"label": "y", "drop": ("a",)}
    with pytest.raises(TypeError, match="lable"):
        read_table("a.csv", lable="y")
