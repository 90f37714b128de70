"""The command line as a user meets it."""

import errno
import os
import re
import shlex
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from onebit import __version__, cli
from onebit.cli import main
from onebit.experiments.entries import kernel_names
from onebit.learners import all_learners
from onebit.streams.sources import known_names

Capture = pytest.CaptureFixture[str]


def run_here(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Call `onebit` in this process, as its script does, and return the exit code."""
    monkeypatch.setattr(sys, "argv", ["onebit", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def raising(error: Exception) -> Callable[..., NoReturn]:
    def fail(*_: object) -> NoReturn:
        raise error

    return fail


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("compare", "iris", "--jobs", "0"), "--jobs must be at least 1; got 0"),
        (("compare", "iris", "--jobs", "1000000"), "--jobs must be at most .* cores; got 1000000"),
        (("reproduce", "--quick", "--jobs", "1000000"), "--jobs must be at most .* cores; got 1000000"),
        (("compare", "iris", "--runs", "9223372036854775808"), "runs must be between 1 and 100000"),
        (("compare", "iris", "--seed", "9223372036854775806"), "seed + runs must be"),
        (("adversary", "--runs", "9223372036854775808"), "--runs must be between 2 and"),
        (("compare", "iris", "--learners", "Banditon:exploration"), "no module 'Banditon'; .*Did you mean Banditron?"),
        (("compare", "iris", "--learners", "bandit_svm"), "no learner 'bandit_svm'.*Did you mean BanditSVM?"),
        (("compare", "iris", "--learners", "Banditron:kernel=ratoinal"), "Did you mean rational?"),
        (("compare", "paper_weka"), "Did you mean paper_weak?"),
        (("margin", "."), ".: is a folder; name one file in it"),
    ],
)
def test_slips_are_named(
    arguments: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_here(monkeypatch, *arguments) == 1
    said = capfd.readouterr().err
    assert re.search(words.replace("?", r"\?").replace("+", r"\+"), said), said
    assert said.startswith("error: ")
    assert not list(tmp_path.iterdir())


def test_version_and_help(monkeypatch: pytest.MonkeyPatch, capfd: Capture) -> None:
    assert run_here(monkeypatch, "--version") == 0
    assert capfd.readouterr().out == f"onebit {__version__}\n"
    monkeypatch.setenv("COLUMNS", "300")
    assert run_here(monkeypatch, "compare", "--help") == 0
    said = capfd.readouterr().out
    for name in (*known_names(), *(cls.__name__ for cls in all_learners()), "mypackage.mine:Mine", ".streams:mine"):
        assert name in said
    assert run_here(monkeypatch, "margin", "--help") == 0
    said = capfd.readouterr().out
    for name in (*known_names(), *kernel_names(), "mypackage.kernels:Mine"):
        assert name in said


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (OSError(errno.ENOSPC, "whatever"), 1, "error: No space left on device; make room and give the same command"),
        (
            PermissionError(errno.EACCES, "whatever", "a/b.csv"),
            1,
            "error: a/b.csv: Permission denied; ask for the right",
        ),
        (OSError("it is broken"), 1, "error: it is broken; mend it"),
        (MemoryError(), 1, "error: there is not enough memory; use fewer --rounds"),
        (MemoryError("Unable to allocate 5 TiB"), 1, "not enough memory (Unable to allocate 5 TiB)"),
        (ValueError("two\nlines\x1b[2J"), 1, "error: two\nlines\\x1b[2J\n"),
    ],
)
def test_what_a_user_can_mend_is_no_traceback(
    error: Exception, code: int, words: str, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    monkeypatch.setattr("onebit.cli.bound._print_list", raising(error))
    assert run_here(monkeypatch, "bound") == code
    said = capfd.readouterr().err
    assert words in said
    assert "Traceback" not in said


@pytest.mark.parametrize("error", [KeyError("x"), TypeError("y"), AssertionError("z"), ZeroDivisionError()])
def test_a_bug_is_shown_and_asks_to_be_reported(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.cli.bound._print_list", raising(error))
    monkeypatch.setattr(sys, "argv", ["onebit", "bound"])
    with pytest.raises(type(error)) as caught:
        main()
    assert "please report it" in "".join(traceback.format_exception(caught.value))


@pytest.mark.ci
def test_a_disk_that_fills_up_while_figures_are_drawn(tmp_path: Path) -> None:
    """A limit on the size of files stands for the end of the disk: what is played fits, the pictures do not."""
    (tmp_path / "a.csv").write_text("x,class\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(9)))
    command = "ulimit -f 32; exec " + shlex.join(
        [sys.executable, "-m", "onebit", "compare", "a.csv", "--learners", "UniformGuess", "--runs", "1", "--jobs", "1"]
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert run.returncode == 1
    assert "File too large; make room and give the same command again" in run.stderr
    assert not list(tmp_path.rglob("*.part"))


def test_the_list_of_commands_is_what_they_say_of_themselves() -> None:
    modules = {path.stem for path in Path(cli.__file__).parent.glob("*.py")} - {"__init__", "options"}
    assert {name.replace("-", "_") for name in cli.COMMANDS} == modules
    for name, text in cli.COMMANDS.items():
        assert cli.load(name).help == text


def test_help_lists_users_commands_first(monkeypatch: pytest.MonkeyPatch, capfd: Capture) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run_here(monkeypatch, "--help") == 0
    said = capfd.readouterr().out
    places = [re.search(rf"^│ {name} ", said, re.MULTILINE) for name in cli.COMMANDS]
    assert all(places)
    assert [place.start() for place in places if place] == sorted(place.start() for place in places if place)
    assert said.index("Your data") < said.index("Decisions in production") < said.index("Research")


@pytest.mark.parametrize("words", [["--version"], ["--help"]])
def test_nothing_large_is_imported_to_say_what_there_is(words: list[str]) -> None:
    code = """
import atexit, sys
from onebit.cli import main
atexit.register(lambda: print(*{"numpy", "numba", "scipy", "sklearn"} & set(sys.modules), file=sys.stderr))
main()
"""
    run = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert run.stderr.strip() == ""


def completed(*words: str) -> set[str]:
    """What a shell is offered after these words."""
    asked = {"_ONEBIT_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(["onebit", *words])}
    asked["COMP_CWORD"] = str(len(words))
    command = [str(Path(sys.executable).parent / "onebit")]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **asked})
    assert run.returncode == 0, run.stderr
    return set(run.stdout.split())


def test_a_shell_completes_commands_and_options() -> None:
    assert completed("pla") == {"play", "playground"}
    assert {"--label", "--learner", "--seed"} <= completed("play", "iris", "--")
    assert completed("tokens", "a") == {"add"}


def test_completion_is_installed(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = [str(Path(sys.executable).parent / "onebit"), "--install-completion", "bash"]
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr
    assert "_ONEBIT_COMPLETE" in (tmp_path / ".bash_completions" / "onebit.sh").read_text()
