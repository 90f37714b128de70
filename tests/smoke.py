"""What an installed onebit must be able to do; run by the python of the environment that it is installed in.

Its arguments are the extras that are installed; without any, what needs one must say so in one line.
"""

import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import onebit

COMMAND = str(Path(sys.executable).parent / "onebit")
FIGURES = "figures need matplotlib, which is not installed: pip install 'onebit[figures]'"


def main() -> None:
    """Look for the files of the package, play, decide, and ask the command line."""
    package = files(onebit)
    assert Path(onebit.__file__).is_relative_to(sys.prefix), f"{onebit.__file__} is not the installed one"
    assert package.joinpath("py.typed").is_file(), "py.typed is missing: type checkers would not look"
    pages = ("service/page_parts/vendor/NOTICE", "playground/page/index.html", "service/page/index.html")
    for name in ("experiments/published_curves.csv", *pages):
        assert package.joinpath(name).is_file(), f"{name} is missing"

    learner = onebit.BanditPerceptron(classes=["billing", "delivery", "refund"], seed=1)
    learner.tell(learner.guess([0.2, -0.4, 0.1]), correct=False)
    assert learner.n_mistakes_ == 1
    X, y = onebit.streams.paper_strong(rounds=1000, seed=1)
    assert onebit.play(onebit.BanditPerceptron(), X, y, seed=1).mistakes < 300
    with onebit.Decider.open("smoke.onebit", ["billing", "refund"], onebit.BanditPerceptron()) as decider:
        guess = decider.guess({"channel": "mail", "length": 212})
        decider.tell(guess.id, correct=True)

    assert onebit.__version__ in ask("--version")
    assert "800" in ask("bound", "2", "--k", "3", "--gamma", "0.1", "--radius", "1")
    Path("table.csv").write_text("x,class\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(9)))
    if sys.argv[1:]:
        assert "mistakes.png" in ask("play", "table.csv", "--learner", "BanditPerceptron")
        assert "SIGTERM" in ask("serve", "--help")
    else:
        try_without_extras()


def try_without_extras() -> None:
    """Check that all works but what needs an extra, and that this says so in one line."""
    played = ask("play", "iris", "--learner", "BanditPerceptron")
    assert FIGURES in played, played
    assert "report.html is in results/play" in played, played
    assert "Mistakes by tenths" in played, played
    table = "table.csv: reading tables needs polars, which is not installed: pip install 'onebit[files]'"
    for words, line in (
        (["play", "table.csv"], table),
        (["theory"], f"the {FIGURES.replace('figures need', 'figures of onebit theory need')}"),
        (["serve", "folder"], "which are not installed: pip install 'onebit[serve]'"),
        (["playground"], "which are not installed: pip install 'onebit[serve]'"),
        (["mcp", "smoke.onebit"], "onebit mcp needs mcp, which is not installed: pip install 'onebit[mcp]'"),
        (["compare", "iris", "--dask", "tcp://127.0.0.1:1"], "which is not installed: pip install 'onebit[dask]'"),
        (["compare", "iris", "--rival", "vw"], "which is not installed: pip install 'onebit[rivals]'"),
    ):
        run = subprocess.run([COMMAND, *words], capture_output=True, text=True)
        assert run.returncode == 1, run
        assert run.stderr.startswith("error: "), run.stderr
        assert run.stderr.endswith(f"{line}\n"), run.stderr
        assert run.stderr.count("\n") == 1, run.stderr


def ask(*words: str) -> str:
    """Return what a command prints."""
    run = subprocess.run([COMMAND, *words], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return " ".join(run.stdout.split())


if __name__ == "__main__":
    main()
