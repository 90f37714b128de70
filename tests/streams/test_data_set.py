"""Data sets are checked, known by their content, and described."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from onebit.streams import DataSet, describe, read_table
from tables import read


def test_content_knows_the_data_and_not_the_name(tmp_path: Path) -> None:
    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 0, 1])
    np.savez(tmp_path / "a.npz", X=X, y=y)
    np.savez(tmp_path / "b.npz", X=X.astype(np.float32), y=y)
    np.savez(tmp_path / "c.npz", X=X + np.eye(6, 2), y=y)
    np.savez(tmp_path / "d.npz", X=X, y=1 - y)
    first, *others = (read_table(tmp_path / f"{name}.npz").content for name in "abcd")
    assert [other == first for other in others] == [True, False, False]


def test_a_data_set_of_ones_own_is_checked() -> None:
    damaged = scipy.sparse.csr_array(([1.0, 1.0], [0, 10**8], [0, 1, 2]), shape=(2, 4))
    with pytest.raises(ValueError, match="columns must lie between 0 and 3"):
        DataSet("damaged", damaged, np.array([0, 1]), ("a", "b"))


def test_what_was_read_is_told(tmp_path: Path) -> None:
    text = "team,amount,days,id,vip\na,1.5,3,8,yes\nb,2.5,4,9,no\na,3.5,1,8,no\n"
    assert describe(read(tmp_path, text, drop=["id"])) == {
        "read as": "text with commas between cells, names in line 1",
        "rows": "3",
        "label": "'vip' (the last column; --label chooses another)",
        "classes": "2: no 2, yes 1",
        "columns": "1 of words: 'team' (2 different); 2 of numbers: 'amount', 'days'",
        "dropped": "'id'",
        "missing": "nothing",
    }
    assert describe(read(tmp_path, text, label="team"))["label"] == "'team' (as asked for)"
    assert describe(read(tmp_path, text.replace("id", "class")))["label"].startswith("'class' (by its name")
