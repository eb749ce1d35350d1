"""Parsers for the values of settings, from text or from TOML."""

import math
import re
from ipaddress import ip_network
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from holdfast.config.dsn import url_of_dsn
from holdfast.model.bounds import MAX_NAME_LENGTH, NAME_PATTERN
from holdfast.model.time import Duration, parse_duration

_UNITS = {"ms": 1_000, "s": 1_000_000, "d": 86_400_000_000}
_TARGET = re.compile(r"(?:[\w.+-]+@)?[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?(:\d{1,5})?", re.ASCII)
_MAILBOX = re.compile(r"[\w.+-]+@[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?", re.ASCII)
_PATH = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*){1,8}", re.ASCII)
_UNIT_WORDS = {"ms": "milliseconds", "s": "seconds", "d": "days"}


class Reader(Protocol):
    """Parser for one kind of value."""

    @property
    def expected(self) -> str:
        """Description of valid values, for error messages and the reference."""

    def read(self, value: object) -> Any:
        """Parse text or a TOML value. Raises `ValueError` without a message."""


class Int(NamedTuple):
    """Integer within bounds."""

    low: int
    high: int

    @property
    def expected(self) -> str:
        return f"a whole number from {self.low} to {self.high}"

    def read(self, value: object) -> int:
        if isinstance(value, bool | float):
            raise ValueError
        number = int(str(value))
        if not self.low <= number <= self.high:
            raise ValueError
        return number


class Fraction(NamedTuple):
    """Number from 0 to 1."""

    @property
    def expected(self) -> str:
        return "a number from 0 to 1"

    def read(self, value: object) -> float:
        if isinstance(value, bool):
            raise ValueError
        number = float(str(value))
        if not 0 <= number <= 1:  # NaN fails too
            raise ValueError
        return number


class DurationValue(NamedTuple):
    """Duration; a bare number counts in `unit`."""

    unit: str
    minimum: Duration
    example: str

    @property
    def expected(self) -> str:
        count = self.minimum / _UNITS[self.unit]
        bound = f"{count:g}" if count >= 1 else f"{self.minimum // _UNITS['s']}s"
        minimum = f", at least {bound}" if self.minimum else ""
        return f"{_UNIT_WORDS[self.unit]}{minimum}, or a text such as {self.example!r}"

    def read(self, value: object) -> Duration:
        if isinstance(value, bool):
            raise ValueError
        try:
            number = float(str(value))
        except ValueError:
            span = parse_duration(str(value))
        else:
            if not math.isfinite(number):
                raise ValueError
            span = parse_duration(number * _UNITS[self.unit] / 1_000_000)
        if span < self.minimum:
            raise ValueError
        return span


class Text(NamedTuple):
    """Text in one line."""

    description: str

    @property
    def expected(self) -> str:
        return self.description

    def read(self, value: object) -> str:
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise ValueError
        return value.strip()


class PathPrefix(NamedTuple):
    """Path prefix, without a trailing slash."""

    @property
    def expected(self) -> str:
        return "a path such as '/holdfast', or '/' for none"

    def read(self, value: object) -> str:
        path = str(value).rstrip("/")
        if path and not _PATH.fullmatch(path):
            raise ValueError
        return path


class Networks(NamedTuple):
    """IP addresses and networks."""

    @property
    def expected(self) -> str:
        return "comma-separated addresses or networks, such as '10.0.0.0/8, ::1'"

    def read(self, value: object) -> tuple[str, ...]:
        items = value if isinstance(value, list) else str(value).split(",")
        return tuple(str(ip_network(str(each).strip())) for each in items)


class Origins(NamedTuple):
    """Web origins in the form that browsers send. Wildcards are refused: they admit too much."""

    @property
    def expected(self) -> str:
        return "comma-separated origins, such as 'https://app.example.com, http://localhost:5173'"

    def read(self, value: object) -> tuple[str, ...]:
        items = value if isinstance(value, list) else str(value).split(",")
        return tuple(_origin(str(each).strip()) for each in items)


def _origin(text: str) -> str:
    parts = urlsplit(text)
    port = "" if parts.port is None else f":{parts.port}"
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname
    # An origin in any other form would never match: no path, no user, only ASCII.
    if parts.scheme not in ("http", "https") or text != f"{parts.scheme}://{host}{port}" or not text.isascii():
        raise ValueError
    if "*" in text or parts.port == {"http": 80, "https": 443}[parts.scheme]:
        raise ValueError
    return text


class Flag(NamedTuple):
    """Boolean."""

    @property
    def expected(self) -> str:
        return "1 or 0"

    def read(self, value: object) -> bool:
        found = {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}.get(str(value).lower())
        if found is None:
            raise ValueError
        return found


class Choice(NamedTuple):
    """Word from a list, in upper or lower case."""

    words: tuple[str, ...]

    @property
    def expected(self) -> str:
        return " or ".join(self.words)

    def read(self, value: object) -> str:
        for word in self.words:
            if word.lower() == str(value).lower():
                return word
        raise ValueError


class Choices(NamedTuple):
    """Any number of words from a list."""

    words: tuple[str, ...]

    @property
    def expected(self) -> str:
        return f"a comma-separated list of {', '.join(self.words)}"

    def read(self, value: object) -> tuple[str, ...]:
        items = value if isinstance(value, list) else str(value).split(",")
        found = {str(each).strip() for each in items} - {""}
        if not found <= set(self.words):
            raise ValueError
        return tuple(word for word in self.words if word in found)


class Url(NamedTuple):
    """URL with one of these schemes, optionally with a driver after a plus sign."""

    schemes: tuple[str, ...]
    forms: str
    accepts_dsn: bool = False
    """True to convert the connection string of a Go driver."""

    @property
    def expected(self) -> str:
        return self.forms

    def read(self, value: object) -> str:
        text = Text("").read(value)
        if self.accepts_dsn:
            text = url_of_dsn(text) or text
        if "://" not in text or urlsplit(text).scheme.split("+", 1)[0] not in self.schemes:
            raise ValueError
        return text


class Systems(NamedTuple):
    """Source systems in order of precedence, or `none`."""

    letters: tuple[str, ...]

    @property
    def expected(self) -> str:
        return f"a comma-separated list of {', '.join(self.letters)} in order of precedence, or none"

    def read(self, value: object) -> tuple[str, ...]:
        items = value if isinstance(value, list) else str(value).split(",")
        found = tuple(str(each).strip().lower() for each in items)
        if found in (("none",), ()):
            return ()
        if not set(found) <= set(self.letters) or len(set(found)) < len(found):
            raise ValueError
        return found


class TenantName(NamedTuple):
    """Name of a tenant."""

    @property
    def expected(self) -> str:
        return f"1 to {MAX_NAME_LENGTH} letters, digits or _ . : / @ + -, starting with a letter, a digit or _"

    def read(self, value: object) -> str:
        text = str(value).strip()
        if len(text) > MAX_NAME_LENGTH or not re.fullmatch(NAME_PATTERN, text, re.ASCII):
            raise ValueError
        return text


class IntList(NamedTuple):
    """List of integers within bounds."""

    low: int
    high: int

    @property
    def expected(self) -> str:
        return f"comma-separated whole numbers from {self.low} to {self.high}"

    def read(self, value: object) -> tuple[int, ...]:
        items = value if isinstance(value, list) else str(value).split(",")
        return tuple(Int(self.low, self.high).read(str(each).strip()) for each in items)


class Targets(NamedTuple):
    """List of networks, and of hosts with or without a port."""

    @property
    def expected(self) -> str:
        return "comma-separated networks and hosts, such as '10.1.0.0/16, hooks.internal, localhost:9000'"

    def read(self, value: object) -> tuple[str, ...]:
        items = value if isinstance(value, list) else str(value).split(",")
        return tuple(_target(str(each).strip()) for each in items)


def _target(text: str) -> str:
    if "/" in text or text.count(":") > 1 or text.replace(".", "").isdigit():
        return str(ip_network(text))
    if not _TARGET.fullmatch(text):
        raise ValueError
    return text.lower()


class Mailbox(NamedTuple):
    """Email address."""

    @property
    def expected(self) -> str:
        return "an address such as jobs@example.com"

    def read(self, value: object) -> str:
        text = Text("").read(value)
        if not _MAILBOX.fullmatch(text):
            raise ValueError
        return text
