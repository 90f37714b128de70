"""What the service says to its operator: one JSON object a line, on standard error. Records never are in it."""

import json
import logging
import sys
from datetime import UTC, datetime

NAME = "onebit.serve"
_EXTRAS = ("method", "path", "status", "seconds", "caller", "address", "decider", "detail")


class JsonLines(logging.Formatter):
    """A line of the journal as JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        said = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "says": record.getMessage(),
        }
        said |= {name: getattr(record, name) for name in _EXTRAS if hasattr(record, name)}
        if record.exc_info:
            said["trace"] = self.formatException(record.exc_info)
        return json.dumps(said, default=repr)


def keep_journal(with_requests: bool) -> None:
    """Write the journal to standard error; with every request in it, or only those that were refused."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.captureWarnings(True)
    for name in (NAME, "py.warnings", "uvicorn.error"):
        log = logging.getLogger(name)
        log.handlers, log.propagate = [handler], False
        log.setLevel(logging.WARNING if name != NAME else logging.DEBUG if with_requests else logging.INFO)
