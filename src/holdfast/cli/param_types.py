"""Parameter types of the command line, besides those of click."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import msgspec

from holdfast.model.time import in_seconds, parse_duration


class TimeType(click.ParamType[datetime]):
    """Time in RFC 3339, or as a distance into the past (or into the future, with `ahead`)."""

    name = "time"

    def __init__(self, *, ahead: bool = False) -> None:
        self._ahead = ahead

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Return the time with a time zone, by default that of this machine."""
        if isinstance(value, datetime):
            return value
        try:
            distance = timedelta(seconds=in_seconds(parse_duration(str(value))))
            return datetime.now(UTC) + distance if self._ahead else datetime.now(UTC) - distance
        except (ValueError, OverflowError):
            pass
        try:
            return datetime.fromisoformat(str(value)).astimezone()
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not a time: write 2030-01-31T12:00:00Z, or a duration such as 2h", param, ctx)


class LimitType(click.ParamType[Any]):
    """Number or rate, or `none` to remove a limit."""

    name = "limit"

    def __init__(self, *, integer: bool) -> None:
        self._integer = integer

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a number, a rate such as `10/s` as text, or "none"."""
        text = str(value)
        if text.lower() == "none":
            return "none"
        try:
            return int(text) if self._integer else float(text)
        except ValueError:
            if self._integer:
                self.fail(f"{text!r} is neither a whole number nor 'none'", param, ctx)
            return text  # the service validates rates


class JsonType(click.ParamType[Any]):
    """JSON as text, as @FILE, or as - for standard input."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the decoded value."""
        text = str(value)
        source = "it"
        if text == "-":
            text, source = sys.stdin.read(), "standard input"
        elif text.startswith("@"):
            try:
                text, source = Path(text[1:]).read_text(encoding="utf-8"), text[1:]
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
                self.fail(f"cannot read {text[1:]}: {reason}", param, ctx)
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            self.fail(f"{source} is not JSON ({error}): write '{{\"name\": 1}}', @FILE or -", param, ctx)


class RetryType(click.ParamType[Any]):
    """Delays between attempts: a list such as `10s,1m`, or `base=2s,cap=5m,jitter=0.2`."""

    name = "retry"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the retry options of a submission."""
        parts = [part.strip() for part in str(value).split(",")]
        if "=" not in str(value):
            return {"delays": parts}
        fields: dict[str, Any] = dict(part.partition("=")[::2] for part in parts)
        try:
            if "jitter" in fields:
                fields["jitter"] = float(fields["jitter"])
        except ValueError:
            fields["jitter"] = None
        if not fields.keys() <= {"base", "cap", "jitter"} or None in fields.values():
            self.fail(f"{value!r}: write delays such as 10s,1m,1h, or base=2s,cap=5m,jitter=0.2", param, ctx)
        return fields


RETRY = RetryType()
PAST_TIME = TimeType()
FUTURE_TIME = TimeType(ahead=True)
INTEGER_LIMIT = LimitType(integer=True)
RATE_LIMIT = LimitType(integer=False)
JSON = JsonType()
