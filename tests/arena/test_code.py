"""What invalidates stored games, and what does not."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from onebit.arena.code import code_version, reachable
from onebit.arena.grid import Spec
from onebit.arena.players import player_from

LEARNER = '''
"""A learner."""
from onebit.learners import Banditron
from strange.numbers import RATE


class Mine(Banditron):
    """Explores a little."""

    def __init__(self, exploration=RATE, kernel=None, *, classes=None, seed=0):
        super().__init__(exploration, kernel, classes=classes, seed=seed)
'''
NUMBERS = '"""Numbers."""\nRATE = 0.25  # a quarter\n"""Of the rounds."""\n'


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A stranger's package: a learner, numbers it imports, a reader it does not."""
    folder = tmp_path / "strange"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "mine.py").write_text(LEARNER)
    (folder / "numbers.py").write_text(NUMBERS)
    (folder / "reader.py").write_text("READ = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "strange"]:
        del sys.modules[name]


def version() -> str:
    return code_version(player_from(Spec("strange.mine:Mine")).code())


@pytest.mark.parametrize(
    ("file", "change", "is_other"),
    [
        ("numbers.py", lambda text: text.replace("a quarter", "one in four"), False),
        ("numbers.py", lambda text: text.replace("Of the rounds.", "Of all rounds."), False),
        ("numbers.py", lambda text: text.replace("Numbers.", "All numbers."), False),
        ("numbers.py", lambda text: text.replace("RATE = 0.25", "RATE = (\n    0.25\n)"), False),
        ("mine.py", lambda text: text.replace("Explores a little.", "Explores."), False),
        ("reader.py", lambda text: "READ = 2\n", False),
        ("numbers.py", lambda text: text.replace("0.25", "0.26"), True),
        ("mine.py", lambda text: text.replace("kernel=None", "kernel=False"), True),
        ("mine.py", lambda text: text + "\nOTHER = 'a string that is used'\n", True),
    ],
)
def test_only_code_that_plays_counts(package: Path, file: str, change: Callable[[str], str], is_other: bool) -> None:
    before = version()
    assert version() == before
    path = package / file
    changed = change(path.read_text())
    assert changed != path.read_text()
    path.write_text(changed)
    assert (version() != before) == is_other


def test_modules_beside_a_strangers_are_followed_and_installed_ones_are_not(package: Path) -> None:
    (package.parent / "alone.py").write_text("import numpy\nimport beside\nfrom strange import numbers\n")
    (package.parent / "beside.py").write_text("import json\nfrom .nowhere import nothing\n")
    importlib.invalidate_caches()
    assert reachable("alone") == {"alone", "beside", "strange.numbers"}


def test_a_learner_depends_on_its_own_modules_only() -> None:
    banditron = player_from(Spec("Banditron")).code()
    assert {"onebit.learners.banditron", "onebit.learners.base", "onebit.play", "onebit.kernels"} <= banditron
    others = {"onebit.learners", "onebit.learners.nearest_neighbor", "onebit.streams.csv_table", "onebit.streams.files"}
    assert not others & banditron


def test_version_names_the_libraries() -> None:
    assert all(library in code_version([]) for library in ("numpy 2", "scipy 1", "numba 0"))


def test_code_without_a_file_is_an_error() -> None:
    with pytest.raises(ValueError, match="sys has no file"):
        code_version(["sys"])
