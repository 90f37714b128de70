"""What invalidates stored games, and what does not."""

import ast
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from onebit.code_version import code_version, reachable
from onebit.experiments.players import player_from
from onebit.experiments.store import Spec
from onebit.learners import all_learners

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


# What Python runs on import of `alone`, file by file; the last is the file that decides the number it gets.
DECIDED_ELSEWHERE = {
    "an attribute of a package whose module was imported": {
        "alone.py": "import strange.reader\nRATE = strange.RATE\n",
        "strange/__init__.py": "RATE = 1\n",
    },
    "a package that changes what it passes on": {
        "alone.py": "from strange import RATE\n",
        "strange/__init__.py": "from .numbers import RATE\nRATE = RATE * 2\n",
    },
    "what is passed on and then changed": {
        "alone.py": "from strange import RATE\n",
        "strange/__init__.py": "from .numbers import RATE\nRATE = RATE * 2\n",
        "strange/numbers.py": "RATE = 1\n",
    },
    "the second choice": {
        "alone.py": "from strange import RATE\n",
        "strange/__init__.py": "try:\n    from .fast import RATE\nexcept ImportError:\n    from .slow import RATE\n",
        "strange/fast.py": "from .nowhere import RATE\n",
        "strange/slow.py": "RATE = 1\n",
    },
    "the last of two imports": {
        "alone.py": "from strange import RATE\n",
        "strange/__init__.py": "from .numbers import RATE\nfrom .other import RATE\n",
        "strange/other.py": "RATE = 1\n",
    },
    "another name": {
        "alone.py": "from strange import RATE\n",
        "strange/__init__.py": "from .numbers import RATE as OLD\nfrom .other import NEW as RATE\n",
        "strange/other.py": "NEW = 1\n",
    },
    "a package that sets what is in its module": {
        "alone.py": "from strange.numbers import RATE\n",
        "strange/__init__.py": "from . import numbers\nnumbers.RATE = 2\n",
    },
    "a folder without __init__ beside the module": {
        "alone.py": "from bare.inner.numbers import RATE\n",
        "bare/inner/numbers.py": "RATE = 1\n",
    },
    "a module beside a folder without __init__": {
        "alone.py": "import bare.mine as mine\n",
        "bare/mine.py": "from beside import RATE\n",
        "beside.py": "RATE = 1\n",
    },
    "another folder of sys.path": {
        "alone.py": "def rate():\n    from afar import RATE\n    return RATE\n",
        "../elsewhere/afar.py": "RATE = 1\n",
    },
    "everything": {"alone.py": "from beside import *\n", "beside.py": "RATE = 1\n"},
}


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    importlib.invalidate_caches()


@pytest.mark.parametrize("files", DECIDED_ELSEWHERE.values(), ids=DECIDED_ELSEWHERE.keys())
def test_code_is_followed_to_where_it_decides(
    package: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str]
) -> None:
    monkeypatch.syspath_prepend(package.parent.parent / "elsewhere")
    write(package.parent, files)
    before, last = code_version(reachable("alone")), list(files)[-1]
    write(package.parent, {last: files[last] + "OTHER = 2\n"})
    assert code_version(reachable("alone")) != before


def test_the_root_brings_its_packages(package: Path) -> None:
    assert reachable("strange.mine") >= {"strange", "strange.mine", "strange.numbers"}


def test_modules_beside_a_strangers_are_followed_and_installed_ones_are_not(package: Path) -> None:
    imports = "import numpy.linalg\nimport pytest\nimport json\nimport sys\nimport __main__\nimport beside\n"
    (package.parent / "alone.py").write_text(imports + "from strange import numbers\n")
    (package.parent / "beside.py").write_text("import json\nfrom .nowhere import nothing\nimport nowhere.at.all\n")
    importlib.invalidate_caches()
    assert reachable("alone") == {"alone", "beside", "strange", "strange.numbers"}


def test_an_installed_package_is_followed_within_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site-packages"
    write(site, {"theirs/__init__.py": "", "theirs/mine.py": "import theirs.rate, others\n", "theirs/rate.py": ""})
    write(site, {"others.py": ""})
    monkeypatch.syspath_prepend(site)
    assert reachable("theirs.mine") == {"theirs", "theirs.mine", "theirs.rate"}


def test_nothing_is_executed(package: Path) -> None:
    bang = "raise SystemExit(0)\n"
    imports = "import loud.inner.most\nfrom loud.inner import most\nimport setup\n"
    write(package.parent, {"alone.py": imports, "setup.py": bang})
    write(package.parent, {"loud/__init__.py": bang, "loud/inner/__init__.py": bang, "loud/inner/most.py": bang})
    write(package.parent, {"bare/inner/deep/most.py": bang})
    with (package.parent / "alone.py").open("a") as file:
        file.write("import bare.inner.deep.most\n")
    before = set(sys.modules)
    code_version(reachable("alone"))
    assert reachable("alone") >= {"loud", "loud.inner", "loud.inner.most", "setup", "bare.inner.deep.most"}
    assert set(sys.modules) == before


def test_imports_for_types_are_not_followed(package: Path) -> None:
    checks = (
        "import typing\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import gui\nelse:\n    import beside\n"
    )
    write(package.parent, {"alone.py": checks + "if typing.TYPE_CHECKING:\n    from strange import reader\n"})
    write(package.parent, {"gui.py": "", "beside.py": ""})
    assert reachable("alone") == {"alone", "beside"}


@pytest.mark.parametrize(("text", "words"), [(b"RATE = = 1\n", r"line 1: invalid syntax"), (b"\0", "null bytes")])
def test_a_file_that_is_not_python(package: Path, text: bytes, words: str) -> None:
    broken = package.parent / "broken.py"
    write(package.parent, {"alone.py": "try:\n    import broken\nexcept SyntaxError:\n    pass\n"})
    broken.write_bytes(text)
    before = code_version(reachable("alone"))
    with pytest.raises(ValueError, match=rf"broken \(.*broken.py\) cannot be read: .*{words}"):
        reachable("broken")
    broken.write_text("RATE = 1\n")
    assert code_version(reachable("alone")) != before


def test_strange_escapes_are_read_in_silence(package: Path) -> None:
    write(package.parent, {"alone.py": "PATTERN = '\\d'\n"})
    assert reachable("alone") == {"alone"}


def test_strings_that_do_nothing_count_nowhere(package: Path) -> None:
    code = "if 1:\n    a = 1\nelse:\n    b = 1{0}\n"
    code += "try:\n    c = 1\nexcept ValueError:\n    d = 1{0}\nfinally:\n    e = 1{0}\n"
    write(package.parent, {"alone.py": code.format("")})
    before = code_version(reachable("alone"))
    write(package.parent, {"alone.py": code.format("\n    'Explained.'")})
    assert code_version(reachable("alone")) == before


def test_what_strangers_take_from_onebit(package: Path) -> None:
    learners = {"onebit.learners.perceptrons", "onebit.learners.nearest_neighbor"}
    for text, wanted in [
        ("from onebit import Banditron\n", {"onebit.learners.perceptrons"}),
        ("from onebit.learners import Banditron as Mine\n", {"onebit.learners.perceptrons"}),
        ("import onebit.kernels as kernels\n", set()),
        ("import onebit.kernels\nMine = onebit.Banditron\n", learners),
        ("import onebit.learners\n", learners),
    ]:
        write(package.parent, {"alone.py": text})
        assert reachable("alone") & learners == wanted, text


def test_a_learner_depends_on_its_own_modules_only() -> None:
    banditron = player_from(Spec("Banditron")).code()
    assert {"onebit.learners.perceptrons", "onebit.learners.base", "onebit.playing", "onebit.kernels"} <= banditron
    others = {
        "onebit.learners",
        "onebit.learners.nearest_neighbor",
        "onebit.streams.table",
        "onebit.streams.files",
    }
    assert not others & banditron


@pytest.mark.parametrize("learner", ["Banditron", "BanditSVM", "NearestNeighbor", "BanditPerceptron"])
def test_what_only_describes_a_game_is_no_part_of_it(package: Path, learner: str) -> None:
    beside = (
        "onebit.bounds",
        "onebit.engine.code_cache",
        "onebit.extras",
        "onebit.experiments.comparison",
        "onebit.reporting",
    )
    assert not [name for name in player_from(Spec(learner)).code() if name.startswith(beside)]
    # A stranger may let a bound decide.
    write(package.parent, {"alone.py": "from onebit.bounds import is_safe_reach\n"})
    assert "onebit.bounds" in reachable("alone")


def test_bounds_are_used_in_promises_only() -> None:
    """Else they would decide games, and `onebit.code_version` must follow them."""
    games = [name for learner in all_learners() for name in player_from(Spec(learner.__name__)).code()]
    for name in set(games):
        tree = ast.parse(Path(str(sys.modules[name].__file__)).read_bytes())
        found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        taken = {alias.name for node in found if str(node.module).startswith("onebit.bounds") for alias in node.names}
        promises = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "promise"]
        inside = {id(node) for promise in promises for node in ast.walk(promise)}
        used = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in taken]
        assert all(id(node) in inside for node in used), name


def test_version_names_the_libraries() -> None:
    assert all(library in code_version([]) for library in ("python 3.", "numpy 2", "scipy 1", "numba 0"))


def test_code_without_a_file_is_an_error() -> None:
    with pytest.raises(ValueError, match="sys has no file"):
        code_version(["sys"])


def test_example_of_reachable() -> None:
    assert reachable("onebit.engine.randomness") == {"onebit.engine.jit", "onebit.engine.randomness"}
