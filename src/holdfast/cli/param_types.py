"""Kinds of values on the command line that click has no word for."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import msgspec

from holdfast.model.time import in_seconds, parse_duration


class Moment(click.ParamType[datetime]):
    """A time in RFC 3339, or how long ago (in how long, for what lies ahead)."""

    name = "time"

    def __init__(self, *, ahead: bool = False) -> None:
        self._ahead = ahead

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """With a time zone: the machine's own if none is written."""
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
            self.fail(f"{value!r} is no time: write 2030-01-31T12:00:00Z, or a length such as 2h", param, ctx)


class Limit(click.ParamType[Any]):
    """A number, or `none` to take a limit away."""

    name = "limit"

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A number, a rate such as `10/s`, or "none"."""
        text = str(value)
        if text.lower() == "none":
            return "none"
        try:
            return int(text) if self._whole else float(text)
        except ValueError:
            if self._whole:
                self.fail(f"{text!r} is neither a whole number nor 'none'", param, ctx)
            return text  # the service knows which rates there are


class Json(click.ParamType[Any]):
    """JSON, as text, as @FILE, or as - for standard input."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value."""
        text = str(value)
        where = "it"
        if text == "-":
            text, where = sys.stdin.read(), "standard input"
        elif text.startswith("@"):
            try:
                text, where = Path(text[1:]).read_text(encoding="utf-8"), text[1:]
            except (OSError, UnicodeDecodeError) as error:
                why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
                self.fail(f"{text[1:]} cannot be read: {why}", param, ctx)
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            self.fail(f"{where} is not JSON ({error}): write '{{\"name\": 1}}', @FILE or -", param, ctx)


MOMENT = Moment()
LATER = Moment(ahead=True)
WHOLE = Limit(whole=True)
RATE = Limit(whole=False)
JSON = Json()
