"""The service's log for the operator: JSON lines on standard error, without records."""

import json
import logging
import sys
from datetime import UTC, datetime

NAME = "onebit.serve"
_EXTRAS = ("method", "path", "status", "seconds", "caller", "address", "decider", "detail")


class JsonLines(logging.Formatter):
    """Formats log records as JSON lines."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a log record as a JSON line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "says": record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in _EXTRAS if hasattr(record, name)}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=repr)


def keep_journal(with_requests: bool) -> None:
    """Log to standard error; with all requests, or only refused ones."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.captureWarnings(True)
    for name in (NAME, "py.warnings", "uvicorn.error"):
        log = logging.getLogger(name)
        log.handlers, log.propagate = [handler], False
        log.setLevel(logging.WARNING if name != NAME else logging.DEBUG if with_requests else logging.INFO)
