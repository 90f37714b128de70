"""A real browser for tests of pages. They run with `make test-ci`, and are skipped where there is no Chromium.

With ONEBIT_NEEDS_BROWSER set they are not skipped, and fail there.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

SCRIPT = "<img src=x onerror=document.title='stolen'>"
"""A name that is script, unless it is taken for text."""
SECONDS = 20.0
_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

NEEDS_BROWSER = [
    pytest.mark.ci,
    pytest.mark.skipif(
        _CHROMIUM is None and not os.environ.get("ONEBIT_NEEDS_BROWSER"), reason="there is no Chromium on this machine"
    ),
]


@contextmanager
def launched() -> Iterator[Browser]:
    """Run Chromium."""
    expect.set_options(timeout=1000 * SECONDS)
    with sync_playwright() as playwright:
        # Containers have no room for a sandbox, and the only page is ours.
        started = playwright.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()
