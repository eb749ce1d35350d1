"""Log formats: one line per record, as text or as JSON. Only the CLI sets up logging."""

import logging
import sys
import time
from typing import Any, TextIO

import msgspec

_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""Fields of every record; the others were attached as `extra`."""


def set_up(log_format: str, *, level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Log to `stream`, by default standard error. A second call replaces the first."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    log = logging.getLogger("holdfast")
    log.handlers[:] = [handler]
    log.propagate = False
    log.setLevel(level)


class TextLines(logging.Formatter):
    """Text format: `2026-11-15T12:00:00.123Z WARNING reclaimed 3 jobs …`, then any traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        line = f"{_timestamp(record)} {record.levelname} {_one_line(record.getMessage())}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonLines(logging.Formatter):
    """JSON format: `at`, `level`, `logger`, `message`, and the attached fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record; values that JSON cannot represent become text."""
        fields: dict[str, Any] = {
            "at": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        known = _STANDARD_FIELDS | fields.keys()
        fields |= {name: value for name, value in vars(record).items() if name not in known}
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(fields, enc_hook=str).decode()


def _timestamp(record: logging.LogRecord) -> str:
    whole = int(record.created)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{int((record.created - whole) * 1000):03d}Z"


def _one_line(text: str) -> str:
    """Escape line breaks and control characters."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
