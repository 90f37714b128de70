"""What all tests share."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from live_places import Place
from postgres_server import Server, require_server

# scikit-learn imports pandas wherever it is installed. The suite starts hundreds of processes, few of which need it,
# and importing it in each would take longer than most tests: they do not see it. This process does: it has begun.
if "PYTEST_XDIST_WORKER" in os.environ:
    _folder = Path(tempfile.mkdtemp(prefix="onebit-tests-"))
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)
    (_folder / "pandas.py").write_text('raise ImportError("hidden by tests/conftest.py")\n')
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_folder), os.environ.get("PYTHONPATH", "")]))

_NUMBERS = count()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One PostgreSQL server for all tests of a process; those that kill one have their own."""
    require_server()
    with Server(fsync=False) as server:
        yield server


@pytest.fixture
def in_database(server: Server) -> "tuple[str, str]":
    """Return where a decider of this test's own may be."""
    return server.url, f"shop/desk-{next(_NUMBERS)}"


@pytest.fixture(params=["file", "database"])
def log_place(request: pytest.FixtureRequest, tmp_path: Path) -> "tuple[str | Path, str | None]":
    """Return where a decider may be: once in a file, once in a database."""
    if request.param == "file":
        return tmp_path / "desk.onebit", None
    found: tuple[str, str] = request.getfixturevalue("in_database")
    return found


@pytest.fixture
def place(log_place: "tuple[str | Path, str | None]") -> Place:
    """Return a place for what must be the same wherever it is kept."""
    return Place(*log_place)


@pytest.fixture
def file(tmp_path: Path) -> Place:
    """Return a place for what has nothing to do with where it is kept."""
    return Place(tmp_path / "desk.onebit")
