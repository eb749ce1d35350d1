"""Log formats: text, JSON, and colours for a terminal. Only the CLI sets up logging."""

import logging
import os
import sys
import time
from collections.abc import Iterator
from typing import Any, TextIO

import msgspec

ATTEMPTS = "holdfast.attempts"
"""Logger of finished attempts: successes at DEBUG, failures at WARNING, dead jobs at ERROR."""

MAX_SUCCESSES_PER_S = 10
"""Successes that a process shows on a terminal within a second; the others are counted."""

_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "text_fields"}
"""Fields of every record; the others were attached as `extra`."""

_COLOURS = {logging.DEBUG: "32", logging.INFO: "0", logging.WARNING: "33", logging.ERROR: "31", logging.CRITICAL: "31"}


def set_up(log_format: str, level: str = "info", *, stream: TextIO | None = None) -> None:
    """Log to `stream`, by default standard error. A second call replaces the first.

    Args:
        log_format: "text", "json" or "terminal".
        level: Lowest level of the records that are written, in lower case.
        stream: Where to write.
    """
    stream = stream or sys.stderr
    handler: logging.Handler = logging.StreamHandler(stream)
    if log_format == "terminal":
        handler = TerminalHandler(stream)
    handler.setFormatter({"json": JsonLines, "terminal": TerminalLines}.get(log_format, TextLines)())
    log = logging.getLogger("holdfast")
    log.handlers[:] = [handler]
    log.propagate = False
    log.setLevel(level.upper())
    shows_successes = log_format == "terminal" and level == "info"
    logging.getLogger(ATTEMPTS).setLevel(logging.DEBUG if shows_successes else logging.NOTSET)


def is_json() -> bool:
    """Return True if log lines are JSON, so that messages must not be printed as plain text."""
    return any(isinstance(handler.formatter, JsonLines) for handler in logging.getLogger("holdfast").handlers)


class TextLines(logging.Formatter):
    """Text format: `2026-11-15T12:00:00.123Z WARNING it failed queue=mail`, then any traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        head = f"{_timestamp(record)} {record.levelname} {_one_line(record.getMessage())}"
        return "\n".join([" ".join([head, *_text_fields(record)]), *_traceback(self, record)])


class TerminalLines(logging.Formatter):
    """Format for people: `14:03:22 send: attempt 1 of 5 succeeded after 0.2 s`, in colour."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record; erase the line first, which may show a passing status."""
        at = time.strftime("%H:%M:%S", time.localtime(record.created))
        text, fields = _one_line(record.getMessage()), " ".join(_text_fields(record))
        if os.environ.get("NO_COLOR"):
            head = f"{at} {text} {fields}".rstrip()
        else:
            head = f"\x1b[2m{at}\x1b[0m \x1b[{_COLOURS.get(record.levelno, '0')}m{text}\x1b[0m \x1b[2m{fields}\x1b[0m"
        return "\r\x1b[K" + "\n".join([head, *_traceback(self, record)])


class TerminalHandler(logging.StreamHandler[TextIO]):
    """Handler that shows only some of the successes if there are many."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._second = 0
        self._shown = 0
        self._hidden = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or count it."""
        if record.name == ATTEMPTS and record.levelno == logging.DEBUG:
            if (second := int(record.created)) != self._second:
                if self._hidden:
                    record.msg = f"{record.getMessage()} (and {self._hidden} more that are not shown)"
                    record.args = None
                self._second, self._shown, self._hidden = second, 0, 0
            if self._shown >= MAX_SUCCESSES_PER_S:
                self._hidden += 1
                return
            self._shown += 1
        super().emit(record)


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


def _text_fields(record: logging.LogRecord) -> Iterator[str]:
    """Yield the attached fields as `name=value`: those that the record chooses, or else all."""
    attached = vars(record)
    names = attached.get("text_fields")
    if names is None:
        names = [name for name in attached if name not in _STANDARD_FIELDS]
    for name in names:
        value = attached[name]
        for key, each in value.items() if name == "fields" and isinstance(value, dict) else [(name, value)]:
            if each not in ("", None):
                yield f"{_one_line(str(key))}={_quoted(str(each))}"


def _quoted(value: str) -> str:
    """Return a value in one word, in quotes if it has spaces or quotes."""
    return (
        f'"{_one_line(value).replace(chr(34), chr(92) + chr(34))}"'
        if {" ", '"', "="} & set(value)
        else _one_line(value)
    )


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> Iterator[str]:
    if record.exc_info:
        yield formatter.formatException(record.exc_info)
    elif text := vars(record).get("traceback"):
        for line in str(text).splitlines():
            yield _one_line(line)


def _timestamp(record: logging.LogRecord) -> str:
    whole = int(record.created)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{int((record.created - whole) * 1000):03d}Z"


def _one_line(text: str) -> str:
    """Escape line breaks and control characters."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
