"""What works without the extras, and the one line for what does not."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from onebit.extras import _EXTRAS, missing_extra, require_extra

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DECLARED = PROJECT["optional-dependencies"]

# A process in which the extras cannot be found; it runs commands, and prints how each ended.
WITHOUT = f"""
import sys
sys.modules.update(dict.fromkeys({[name for names in _EXTRAS.values() for name in names]!r}))
from onebit.cli import main
for words in sys.argv[1:]:
    sys.argv = ["onebit", *words.split()]
    try:
        main()
    except SystemExit as ended:
        print("ended with", ended.code or 0, flush=True)
"""


def test_extras_install_what_is_looked_for() -> None:
    assert set(_EXTRAS) | {"all", "docs"} == set(DECLARED)
    distributions = packages_distributions()
    for extra, modules in _EXTRAS.items():
        declared = {re.split(r"[^\w.-]", line)[0] for line in DECLARED[extra]}
        found = {distributions.get(module, [module])[0].replace("_", "-") for module in modules}
        assert found <= declared, extra


def test_all_is_all_that_has_wheels_everywhere() -> None:
    (line,) = DECLARED["all"]
    assert set(re.findall(r"\w+", line)) - {"onebit"} == set(_EXTRAS) - {"rivals"}


def test_every_extra_has_its_pins() -> None:
    for extra in _EXTRAS:
        paths = [ROOT / "requirements" / f"{name}.txt" for name in ("base", "serve", extra)]  # mcp is on top of serve
        pins = "".join(path.read_text(encoding="utf-8") for path in paths).lower()
        for line in DECLARED[extra]:
            name = re.split(r"[^\w.-]", line)[0].lower()
            assert re.search(rf"^{name}==", pins, re.MULTILINE), f"{name} is not pinned in {extra}.txt"


def test_one_line_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing_extra("figures need", "figures") is None
    monkeypatch.setitem(_EXTRAS, "figures", ("not_there",))
    line = "figures need not_there, which is not installed: pip install 'onebit[figures]'"
    assert missing_extra("figures need", "figures") == line
    with pytest.raises(RuntimeError) as raised:
        require_extra("figures need", "figures")
    assert str(raised.value) == line
    monkeypatch.setitem(_EXTRAS, "serve", ("uvicorn", "not_there", "nor_this"))
    assert missing_extra("serving needs", "serve") == (
        "serving needs not_there and nor_this, which are not installed: pip install 'onebit[serve]'"
    )


def test_commands_without_extras(tmp_path: Path) -> None:
    """Figures are left out, and all else is done; a table cannot be read, and an npz file can."""
    (tmp_path / "table.csv").write_text("x,class\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(9)))
    script = "import numpy; numpy.savez('rows.npz', X=numpy.eye(9), y=numpy.arange(9) % 2)"
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    few = "--learners UniformGuess --learners Majority --runs 2 --jobs 1 --rounds 20"
    commands = {
        "play rows.npz --learner UniformGuess": 0,
        f"compare rows.npz {few}": 0,
        f"league rows.npz --no-bundled {few}": 0,
        "margin iris": 0,
        "bound": 0,
        "play table.csv": 1,
        "theory": 1,
        "serve folder": 1,
        "mcp desk.onebit": 1,
    }
    run = subprocess.run([sys.executable, "-c", WITHOUT, *commands], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert [int(code) for code in re.findall(r"ended with (\d)", run.stdout)] == list(commands.values()), run.stderr
    no_figures = "there will be no figures: figures need matplotlib, which is not installed: pip install"
    assert run.stdout.count(no_figures) == 3
    assert "Mistakes by tenths of the stream" in run.stdout
    for name in ("play/report.html", "compare/comparison.csv", "compare/report.html", "league/report.html"):
        assert (tmp_path / "results" / name).is_file()
    lines = run.stderr.splitlines()
    assert [re.search(r"pip install 'onebit\[(\w+)\]'$", line)[1] for line in lines] == [  # type: ignore[index]
        *("files", "figures", "serve", "mcp")
    ]
    assert all(line.startswith("error: ") for line in lines)
