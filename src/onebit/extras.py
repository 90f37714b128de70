"""Optional dependencies: what each extra of the package installs, and the one line that names a missing one."""

import importlib.util

_EXTRAS = {
    "files": ("polars",),
    "figures": ("matplotlib",),
    "serve": ("starlette", "uvicorn", "prometheus_client"),
    "postgres": ("psycopg",),
    "mcp": ("mcp",),
    "dask": ("distributed",),
    "rivals": ("vowpalwabbit",),
}
"""The modules that onebit imports from each extra."""


def missing_extra(purpose: str, extra: str) -> str | None:
    """Return the line that names a missing extra, or None if it is installed."""
    missing = [name for name in _EXTRAS[extra] if importlib.util.find_spec(name) is None]
    if not missing:
        return None
    verb = "is" if len(missing) == 1 else "are"
    return f"{purpose} {' and '.join(missing)}, which {verb} not installed: pip install 'onebit[{extra}]'"


def require_extra(purpose: str, extra: str) -> None:
    """Raise RuntimeError with that line if an extra is not installed."""
    if (line := missing_extra(purpose, extra)) is not None:
        raise RuntimeError(line)
