"""What is kept of the lines that an attempt logged."""

import msgspec

from holdfast.model.outcome import LogLine, Logs
from holdfast.policy.text import sanitize

MAX_LINES = 100
MAX_LOG_BYTES = 16 * 1024
"""Of all lines of an attempt, as they are stored."""

MAX_LINE_LENGTH = 2_000
_MAX_WORD_LENGTH = 40
_ENCODE = msgspec.json.Encoder().encode


def bound_logs(logs: Logs) -> Logs:
    """The newest lines that there is room for, fit to be stored; the others are counted."""
    lines: list[LogLine] = []
    room = MAX_LOG_BYTES
    for line in reversed(logs.lines[-MAX_LINES:]):
        fit = LogLine(
            at=sanitize(line.at, _MAX_WORD_LENGTH),
            level=sanitize(line.level, _MAX_WORD_LENGTH),
            message=sanitize(line.message, MAX_LINE_LENGTH),
        )
        room -= len(_ENCODE(fit))
        if room < 0:
            break
        lines.append(fit)
    return Logs(tuple(reversed(lines)), logs.dropped + len(logs.lines) - len(lines))


def drop_lines(logs: Logs | None) -> Logs | None:
    """What remains of them when the lines go: how many there were."""
    return None if logs is None else Logs((), logs.dropped + len(logs.lines))
