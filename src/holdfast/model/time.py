"""Instants and durations, as integer microseconds.

The database's clock decides when a job is due and when a lease ends, so every `Instant` comes from it; nodes use their
own clocks only to measure durations.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import NewType

Instant = NewType("Instant", int)
"""Microseconds since 1970-01-01 UTC, by the database's clock."""

Duration = NewType("Duration", int)
"""Duration in microseconds."""

_UNITS = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_PART = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|m|h|d)", re.ASCII)
_MAX_TEXT_LENGTH = 40
_MAX_SECONDS = 1e12


def micros(n: int) -> Duration:
    """Return a duration of `n` microseconds."""
    return Duration(n)


def seconds(n: float) -> Duration:
    """Return a duration of `n` seconds."""
    return Duration(round(n * 1_000_000))


def days(n: float) -> Duration:
    """Return a duration of `n` 24-hour days."""
    return Duration(round(n * _UNITS["d"]))


def in_seconds(span: Duration) -> float:
    """Convert a duration to seconds."""
    return span / 1_000_000


def after(at: Instant, span: Duration) -> Instant:
    """Return the instant `span` after `at`."""
    return Instant(at + span)


def parse_duration(value: float | str) -> Duration:
    """Parse `5`, `0.5`, `"90"` (seconds) or `"5m"`, `"1h30m"`, `"250ms"`.

    Raises:
        ValueError: The value is not a duration; the message shows the format.
    """
    if isinstance(value, bool):
        raise ValueError(f"{value} is not a duration: give seconds or a text such as '5m'")
    if isinstance(value, int | float):
        if not 0 <= value < _MAX_SECONDS:  # also false for NaN
            raise ValueError(f"{value} is not a duration: give seconds, 0 or more")
        return seconds(value)
    text = value.strip()
    if len(text) > _MAX_TEXT_LENGTH:
        raise ValueError("a duration is at most 40 characters, such as '5m' or '1h30m'")
    if re.fullmatch(r"\d+(?:\.\d+)?", text, re.ASCII):
        return parse_duration(float(text))
    parts = _PART.findall(text)
    if not parts or "".join(n + unit for n, unit in parts) != text:
        raise ValueError(f"{text!r} is not a duration: write it as '250ms', '30s', '5m', '1h30m' or '7d'")
    return parse_duration(sum(float(n) * _UNITS[unit] for n, unit in parts) / 1_000_000)


def rfc3339(at: Instant) -> str:
    """Format an instant as RFC 3339, in UTC with microseconds."""
    return f"{_format_second(at // 1_000_000)}.{at % 1_000_000:06d}Z"


def parse_rfc3339(text: str) -> Instant:
    """Parse an instant that `rfc3339` formatted."""
    moment = datetime.fromisoformat(text)
    return Instant(round(moment.replace(microsecond=0).timestamp()) * 1_000_000 + moment.microsecond)


@lru_cache(1_024)  # times formatted together usually share the second
def _format_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
