"""Bounds on the stored log lines of an attempt."""

import msgspec

from holdfast.model.outcome import LogLine, Logs
from holdfast.policy.text import sanitize

MAX_LINES = 100
MAX_LOG_BYTES = 16 * 1024
"""Total encoded size of an attempt's stored lines."""

MAX_LINE_LENGTH = 2_000
_MAX_WORD_LENGTH = 40
_ENCODE = msgspec.json.Encoder().encode


def bound_logs(logs: Logs) -> Logs:
    """Return the newest lines within the bounds, sanitized, with the number of dropped ones."""
    lines: list[LogLine] = []
    room = MAX_LOG_BYTES
    for line in reversed(logs.lines[-MAX_LINES:]):
        sanitized = LogLine(
            at=sanitize(line.at, _MAX_WORD_LENGTH),
            level=sanitize(line.level, _MAX_WORD_LENGTH),
            message=sanitize(line.message, MAX_LINE_LENGTH),
        )
        room -= len(_ENCODE(sanitized))
        if room < 0:
            break
        lines.append(sanitized)
    return Logs(tuple(reversed(lines)), logs.dropped + len(logs.lines) - len(lines))


def drop_lines(logs: Logs | None) -> Logs | None:
    """Drop all lines and keep only their number."""
    return None if logs is None else Logs((), logs.dropped + len(logs.lines))
