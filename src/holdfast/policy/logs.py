"""What is kept of the lines that an attempt logged."""

import msgspec

from holdfast.model.outcome import LogLine, Logs
from holdfast.policy.text import clean

MOST_LINES = 100
MOST_BYTES = 16 * 1024
"""Of all lines of an attempt, as they are stored."""

LONGEST_LINE = 2_000
_LONGEST_WORD = 40
_ENCODE = msgspec.json.Encoder().encode


def kept(logs: Logs) -> Logs:
    """The newest lines that there is room for, fit to be stored; the others are counted."""
    lines: list[LogLine] = []
    room = MOST_BYTES
    for line in reversed(logs.lines[-MOST_LINES:]):
        fit = LogLine(
            at=clean(line.at, _LONGEST_WORD),
            level=clean(line.level, _LONGEST_WORD),
            message=clean(line.message, LONGEST_LINE),
        )
        room -= len(_ENCODE(fit))
        if room < 0:
            break
        lines.append(fit)
    return Logs(tuple(reversed(lines)), logs.dropped + len(logs.lines) - len(lines))


def emptied(logs: Logs | None) -> Logs | None:
    """What remains of them when the lines go: how many there were."""
    return None if logs is None else Logs((), logs.dropped + len(logs.lines))
