"""How each kind of value is read, as text or as TOML has it, and what to say when it cannot be."""

import math
import re
from ipaddress import ip_network
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from holdfast.model.time import Duration, parse_duration

_UNITS = {"ms": 1_000, "s": 1_000_000, "d": 86_400_000_000}
_TARGET = re.compile(r"(?:[\w.+-]+@)?[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?(:\d{1,5})?", re.ASCII)
_MAILBOX = re.compile(r"[\w.+-]+@[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?", re.ASCII)
_PATH = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*){1,8}", re.ASCII)
_UNIT_WORDS = {"ms": "milliseconds", "s": "seconds", "d": "days"}


class Reader(Protocol):
    """Reads one kind of value, as text or as TOML has it; raises ValueError for others. `takes` says what it wants."""

    @property
    def takes(self) -> str:
        """What it wants, in words."""

    def read(self, value: object) -> Any:
        """The value, or ValueError."""


class Whole(NamedTuple):
    """A whole number."""

    low: int
    high: int

    @property
    def takes(self) -> str:
        return f"a whole number from {self.low} to {self.high}"

    def read(self, value: object) -> int:
        if isinstance(value, bool | float):
            raise ValueError
        number = int(str(value))
        if not self.low <= number <= self.high:
            raise ValueError
        return number


class Ratio(NamedTuple):
    """A part of a whole."""

    @property
    def takes(self) -> str:
        return "a number from 0 to 1"

    def read(self, value: object) -> float:
        if isinstance(value, bool):
            raise ValueError
        number = float(str(value))
        if not 0 <= number <= 1:  # also for NaN
            raise ValueError
        return number


class Span(NamedTuple):
    """A length of time: a bare number counts in `unit`."""

    unit: str
    least: Duration
    example: str

    @property
    def takes(self) -> str:
        count = self.least / _UNITS[self.unit]
        bound = f"{count:g}" if count >= 1 else f"{self.least // _UNITS['s']}s"
        least = f", at least {bound}" if self.least else ""
        return f"{_UNIT_WORDS[self.unit]}{least}, or a text such as {self.example!r}"

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
        if span < self.least:
            raise ValueError
        return span


class Text(NamedTuple):
    """Any text in one line."""

    what: str

    @property
    def takes(self) -> str:
        return self.what

    def read(self, value: object) -> str:
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise ValueError
        return value.strip()


class PathPrefix(NamedTuple):
    """The beginning of a path."""

    @property
    def takes(self) -> str:
        return "a path such as '/holdfast', or '/' for none"

    def read(self, value: object) -> str:
        path = str(value).rstrip("/")
        if path and not _PATH.fullmatch(path):
            raise ValueError
        return path


class Networks(NamedTuple):
    """Addresses and networks of addresses."""

    @property
    def takes(self) -> str:
        return "addresses or networks with commas between, such as '10.0.0.0/8, ::1'"

    def read(self, value: object) -> tuple[str, ...]:
        given = value if isinstance(value, list) else str(value).split(",")
        return tuple(str(ip_network(str(each).strip())) for each in given)


class Origins(NamedTuple):
    """Origins as browsers write them: exact ones, for whatever matches many would let in more than was meant."""

    @property
    def takes(self) -> str:
        return "origins with commas between, such as 'https://app.example.com, http://localhost:5173'"

    def read(self, value: object) -> tuple[str, ...]:
        given = value if isinstance(value, list) else str(value).split(",")
        return tuple(_origin(str(each).strip()) for each in given)


def _origin(text: str) -> str:
    parts = urlsplit(text)
    port = "" if parts.port is None else f":{parts.port}"
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname
    # Written as a browser would, or else it would never match: no path, no user, nothing but ASCII.
    if parts.scheme not in ("http", "https") or text != f"{parts.scheme}://{host}{port}" or not text.isascii():
        raise ValueError
    if "*" in text or parts.port == {"http": 80, "https": 443}[parts.scheme]:
        raise ValueError
    return text


class Switch(NamedTuple):
    """On or off."""

    @property
    def takes(self) -> str:
        return "1 or 0"

    def read(self, value: object) -> bool:
        found = {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}.get(str(value).lower())
        if found is None:
            raise ValueError
        return found


class Word(NamedTuple):
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def takes(self) -> str:
        return " or ".join(self.words)

    def read(self, value: object) -> str:
        if value not in self.words:
            raise ValueError
        return str(value)


class Words(NamedTuple):
    """Some of a few words."""

    words: tuple[str, ...]

    @property
    def takes(self) -> str:
        return f"any of {', '.join(self.words)}, with commas between"

    def read(self, value: object) -> tuple[str, ...]:
        given = value if isinstance(value, list) else str(value).split(",")
        found = {str(each).strip() for each in given} - {""}
        if not found <= set(self.words):
            raise ValueError
        return tuple(word for word in self.words if word in found)


class Url(NamedTuple):
    """A URL of one of these schemes; a driver may follow after a plus sign."""

    schemes: tuple[str, ...]
    forms: str

    @property
    def takes(self) -> str:
        return self.forms

    def read(self, value: object) -> str:
        text = Text("").read(value)
        if "://" not in text or urlsplit(text).scheme.split("+", 1)[0] not in self.schemes:
            raise ValueError
        return text


class Numbers(NamedTuple):
    """Some whole numbers."""

    low: int
    high: int

    @property
    def takes(self) -> str:
        return f"whole numbers from {self.low} to {self.high} with commas between"

    def read(self, value: object) -> tuple[int, ...]:
        given = value if isinstance(value, list) else str(value).split(",")
        return tuple(Whole(self.low, self.high).read(str(each).strip()) for each in given)


class Targets(NamedTuple):
    """Networks, and hosts with or without a port."""

    @property
    def takes(self) -> str:
        return "networks and hosts with commas between, such as '10.1.0.0/16, hooks.internal, localhost:9000'"

    def read(self, value: object) -> tuple[str, ...]:
        given = value if isinstance(value, list) else str(value).split(",")
        return tuple(_target(str(each).strip()) for each in given)


def _target(text: str) -> str:
    if "/" in text or text.count(":") > 1 or text.replace(".", "").isdigit():
        return str(ip_network(text))
    if not _TARGET.fullmatch(text):
        raise ValueError
    return text.lower()


class Mailbox(NamedTuple):
    """An address of mail."""

    @property
    def takes(self) -> str:
        return "an address such as jobs@example.com"

    def read(self, value: object) -> str:
        text = Text("").read(value)
        if not _MAILBOX.fullmatch(text):
            raise ValueError
        return text
