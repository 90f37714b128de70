"""What all tests share."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

# scikit-learn imports pandas wherever it is installed. The suite starts hundreds of processes, few of which need it,
# and importing it in each would take longer than most tests: they do not see it. This process does: it has begun.
if "PYTEST_XDIST_WORKER" in os.environ:
    _folder = Path(tempfile.mkdtemp(prefix="onebit-tests-"))
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)
    (_folder / "pandas.py").write_text('raise ImportError("hidden by tests/conftest.py")\n')
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_folder), os.environ.get("PYTHONPATH", "")]))
