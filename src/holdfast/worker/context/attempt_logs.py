"""Log lines of one attempt, stored with the attempt: the newest lines up to a limit."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from holdfast.model.outcome import LogLine, Logs
from holdfast.policy.logs import MAX_LINE_LENGTH, MAX_LINES
from holdfast.policy.redact import redact, redact_field
from holdfast.policy.text import escape_unprintable, sanitize

Plain = bool | int | float | str | None
_NUMBERS = (bool, int, float)


class AttemptLogs:
    """Newest log lines of one attempt. Thread-safe.

    Args:
        forward: Called with each line, for a job process that sends its lines to the worker.
    """

    def __init__(self, forward: Callable[[LogLine], None] | None = None) -> None:
        self._forward = forward
        self._lines: deque[LogLine] = deque(maxlen=MAX_LINES)
        self._written = 0
        self._lock = threading.Lock()

    def add(self, line: LogLine) -> None:
        """Keep a line, drop the oldest one if there are too many, and forward the line."""
        with self._lock:
            self._lines.append(line)
            self._written += 1
        if self._forward is not None:
            self._forward(line)

    def logs(self) -> Logs | None:
        """Return the kept lines and the number of dropped ones, or None if nothing was logged."""
        with self._lock:
            return Logs(tuple(self._lines), self._written - len(self._lines)) if self._written else None


def render_fields(fields: dict[str, object]) -> dict[str, Plain]:
    """Convert the fields of a log call to single-line values with secrets redacted."""
    return {escape_unprintable(name): _render_value(name, value) for name, value in fields.items()}


def format_line(level: int, message: str, fields: dict[str, Plain]) -> LogLine:
    """Build the stored line of a log call from its rendered message and fields."""
    text = " ".join([message, *(f"{name}={value}" for name, value in fields.items())])
    now = time.time()
    at = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now % 1 * 1000):03d}Z"
    return LogLine(at, logging.getLevelName(level).lower(), sanitize(text, MAX_LINE_LENGTH))


def _render_value(name: str, value: object) -> Plain:
    if value is None or type(value) in _NUMBERS:
        return value  # type: ignore[return-value] # narrowed by the check above
    return redact_field(name, escape_unprintable(str(value)))


def format_message(text: str) -> str:
    """Return a log message as a single line with secrets redacted."""
    return redact(escape_unprintable(text))
