"""What an installed onebit must be able to do; run by the python of the environment that it is installed in."""

import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import onebit


def main() -> None:
    """Play a round and a stream, and ask the command line."""
    assert Path(onebit.__file__).is_relative_to(sys.prefix), f"{onebit.__file__} is not the installed one"
    assert files(onebit).joinpath("py.typed").is_file(), "py.typed is missing: type checkers would not look"
    assert files(onebit.__name__ + ".experiments").joinpath("published_curves.csv").is_file(), "a table is missing"
    package = files(onebit.__name__)
    for page in ("service/page_parts/vendor/NOTICE", "playground/page/index.html", "service/page/index.html"):
        assert package.joinpath(page).is_file(), f"{page} is missing"

    learner = onebit.BanditPerceptron(classes=["billing", "delivery", "refund"], seed=1)
    learner.tell(learner.guess([0.2, -0.4, 0.1]), correct=False)
    assert learner.n_mistakes_ == 1

    X, y = onebit.streams.paper_strong(rounds=1000, seed=1)
    assert onebit.play(onebit.BanditPerceptron(), X, y, seed=1).mistakes < 300

    command = str(Path(sys.executable).parent / "onebit")
    version = subprocess.run([command, "--version"], check=True, capture_output=True, text=True).stdout
    assert onebit.__version__ in version, version
    bound = [command, "bound", "2", "--k", "3", "--gamma", "0.1", "--radius", "1"]
    assert "800" in subprocess.run(bound, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
