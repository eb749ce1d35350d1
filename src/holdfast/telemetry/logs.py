"""Logs: one line for each record, as text for people or as JSON for machines. Only the command line sets them up."""

import logging
import sys
import time
from typing import Any, TextIO

import msgspec

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""What every record has; the rest was attached as `extra`."""


def set_up(log_format: str, *, level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Write the records of holdfast to `stream`, by default standard error. Repeated calls replace the first."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    log = logging.getLogger("holdfast")
    log.handlers[:] = [handler]
    log.propagate = False
    log.setLevel(level)


class TextLines(logging.Formatter):
    """`2026-11-15T12:00:00.123Z WARNING took back 3 jobs …`: one line, an exception on the lines after it."""

    def format(self, record: logging.LogRecord) -> str:
        """One record."""
        line = f"{_at(record)} {record.levelname} {_one_line(record.getMessage())}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonLines(logging.Formatter):
    """One object a line: `at`, `level`, `logger`, `message`, and whatever fields were attached."""

    def format(self, record: logging.LogRecord) -> str:
        """One record; a field that JSON cannot hold is written as its text."""
        fields: dict[str, Any] = {
            "at": _at(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields |= {name: value for name, value in vars(record).items() if name not in _PLAIN and name not in fields}
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(fields, enc_hook=str).decode()


def _at(record: logging.LogRecord) -> str:
    whole = int(record.created)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{int((record.created - whole) * 1000):03d}Z"


def _one_line(text: str) -> str:
    """Without anything that would begin another line, or tell a terminal what to do."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
