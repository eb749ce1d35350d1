"""What a handler logs, kept for the record of its attempt: the newest lines, however many there are."""

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
    """The lines of one attempt. Any thread may write."""

    def __init__(self, tell: Callable[[LogLine], None] | None = None) -> None:
        self._tell = tell
        self._lines: deque[LogLine] = deque(maxlen=MAX_LINES)
        self._written = 0
        self._lock = threading.Lock()

    def add(self, line: LogLine) -> None:
        """Keep this line, and tell it on at once if somebody else keeps them as well."""
        with self._lock:
            self._lines.append(line)
            self._written += 1
        if self._tell is not None:
            self._tell(line)

    def logs(self) -> Logs | None:
        """What is kept; None when nothing was written."""
        with self._lock:
            return Logs(tuple(self._lines), self._written - len(self._lines)) if self._written else None


def render_fields(fields: dict[str, object]) -> dict[str, Plain]:
    """Fields as they are logged: on one line, secrets redacted."""
    return {escape_unprintable(name): _shown(name, value) for name, value in fields.items()}


def format_line(level: int, message: str, fields: dict[str, Plain]) -> LogLine:
    """A line as it is kept."""
    text = " ".join([message, *(f"{name}={value}" for name, value in fields.items())])
    now = time.time()
    at = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now % 1 * 1000):03d}Z"
    return LogLine(at, logging.getLevelName(level).lower(), sanitize(text, MAX_LINE_LENGTH))


def _shown(name: str, value: object) -> Plain:
    if value is None or type(value) in _NUMBERS:
        return value  # type: ignore[return-value] # it is one of these
    return redact_field(name, escape_unprintable(str(value)))


def format_message(text: str) -> str:
    """A message as it is logged: on one line, secrets redacted."""
    return redact(escape_unprintable(text))
