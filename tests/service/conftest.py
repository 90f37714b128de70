"""A service with one decider, for the tests of this folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from served import Served


@pytest.fixture
def served(tmp_path: Path) -> "Iterator[Served]":
    from served import DESK, LIGHT, Served  # the tests are skipped where there is no Starlette

    with Served(tmp_path) as served:
        assert served.ask("PUT", DESK, LIGHT).status == 201
        yield served
