import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from onebit.import_paths import _read_value, did_you_mean, find_by_import_path, import_path_of, is_import_path


def test_a_path_leads_back() -> None:
    assert find_by_import_path(import_path_of(Fraction), "number") is Fraction


@pytest.mark.parametrize("text", ["Banditron", "Banditron:exploration=0.1", "gaussian:0.5", "C:\\data.csv", ":a", "a:"])
def test_other_texts_are_no_paths(text: str) -> None:
    assert not is_import_path(text)


def test_what_other_processes_cannot_find_is_refused() -> None:
    thing: Any
    for thing in (lambda: 0, Fraction(1, 2)):
        with pytest.raises(ValueError, match="put it at the top level of a module that can be imported"):
            import_path_of(thing)
    code = "from onebit.import_paths import import_path_of\nclass Mine: pass\nimport_path_of(Mine)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "Mine is defined in the script or session itself" in run.stderr


def test_a_module_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "broken_module.py").write_text("1 / 0\n")
    (tmp_path / "needy_module.py").write_text("import something_else\n")
    with pytest.raises(ValueError, match=r"learner broken_module:A: importing it failed with ZeroDivisionError"):
        find_by_import_path("broken_module:A", "learner")
    with pytest.raises(ValueError, match="needy_module needs 'something_else', which is not installed"):
        find_by_import_path("needy_module:A", "learner")


def test_example_of_is_import_path() -> None:
    assert (is_import_path("mypackage.mine:EpsPerceptron"), is_import_path("gaussian:0.5")) == (True, False)


def test_example_of_import_path_of() -> None:
    from fractions import Fraction

    assert import_path_of(Fraction) == "fractions:Fraction"


def test_example_of_did_you_mean() -> None:
    assert (did_you_mean("bandit_svm", ["BanditSVM", "Banditron"]), did_you_mean("forest", ["BanditSVM"])) == (
        ". Did you mean BanditSVM?",
        "",
    )


def test_example_of_read_value() -> None:
    assert (_read_value("true"), _read_value("3"), _read_value("3.0"), _read_value("auto")) == (True, 3, 3.0, "auto")
