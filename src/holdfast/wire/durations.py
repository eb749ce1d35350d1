"""Durations in requests: seconds or a text, with the bounds that the codecs enforce.

Constraints in `extra_json_schema` only document; the codecs check them, with better error messages.
"""

from typing import Annotated, NamedTuple

from msgspec import Meta

from holdfast.errors import Invalid
from holdfast.model.time import Duration, parse_duration, seconds

_DAY_S = 86_400


class Bounds(NamedTuple):
    """Shortest and longest duration of a field, in seconds, and how an error message names them."""

    minimum: float
    maximum: float
    text: str

    @property
    def meta(self) -> Meta:
        """Bounds as JSON Schema."""
        return Meta(extra_json_schema={"minimum": self.minimum, "maximum": self.maximum})


LEASE = Bounds(1, _DAY_S, "give 1 to 86,400 seconds")
WINDOW = Bounds(60, 90 * _DAY_S, "give a duration from '1m' to '90d'")
FAIRNESS_WINDOW = Bounds(60, 7 * _DAY_S, "give a duration from '1m' to '7d'")
RATE_WINDOW = Bounds(1, _DAY_S, "give a time from 1 to 86,400 seconds")
RATE_PERIOD = Bounds(0.001, _DAY_S, "give a time from 1 ms to 86,400 s")
OVERLAP = Bounds(0, 30 * _DAY_S, "give 0 to 2,592,000 seconds, or '30d'")
KEY_LIFETIME = Bounds(1, 3_650 * _DAY_S, "give a time from 1 to 315,360,000 seconds")
TOKEN_LIFETIME = Bounds(1, 3_600, "give a time from 1 to 3,600 seconds")

_ANY = Meta(extra_json_schema={"minimum": 0, "maximum": 10**12 - 1})
_TEXT = Meta(extra_json_schema={"pattern": r"^\s*([0-9]+(\.[0-9]+)?|([0-9]+(\.[0-9]+)?(us|ms|s|m|h|d))+)\s*$"})
_LEASE, _WINDOW, _FAIRNESS, _RATE_WINDOW = LEASE.meta, WINDOW.meta, FAIRNESS_WINDOW.meta, RATE_WINDOW.meta
_PERIOD, _OVERLAP, _KEY, _TOKEN = RATE_PERIOD.meta, OVERLAP.meta, KEY_LIFETIME.meta, TOKEN_LIFETIME.meta

Text = Annotated[str, _TEXT]
Seconds = Annotated[Annotated[int, _ANY] | Annotated[float, _ANY] | Text, Meta(examples=[30, "5m"])]
Lease = Annotated[Annotated[int, _LEASE] | Annotated[float, _LEASE] | Text, Meta(examples=[15, "30s"])]
Window = Annotated[Annotated[int, _WINDOW] | Annotated[float, _WINDOW] | Text, Meta(examples=[3_600, "1h"])]
FairnessWindow = Annotated[Annotated[int, _FAIRNESS] | Annotated[float, _FAIRNESS] | Text, Meta(examples=[900, "15m"])]
RateWindow = Annotated[Annotated[int, _RATE_WINDOW] | Annotated[float, _RATE_WINDOW] | Text, Meta(examples=[60, "1m"])]
RatePeriod = Annotated[Annotated[int, _PERIOD] | Annotated[float, _PERIOD] | Text, Meta(examples=[1, "1s"])]
Overlap = Annotated[Annotated[int, _OVERLAP] | Annotated[float, _OVERLAP] | Text, Meta(examples=[86_400, "24h"])]
KeyLifetime = Annotated[Annotated[int, _KEY] | Annotated[float, _KEY] | Text, Meta(examples=[7_776_000, "90d"])]
TokenLifetime = Annotated[Annotated[int, _TOKEN] | Annotated[float, _TOKEN] | Text, Meta(examples=[900, "15m"])]


def span(value: float | str | None, pointer: str, bounds: Bounds | None = None) -> Duration | None:
    """Parse a duration. Raises `Invalid` with this pointer."""
    if value is None:
        return None
    name = pointer[1:].replace("/", ".")
    try:
        duration = parse_duration(value)
    except ValueError as error:
        raise Invalid(f"{name}: {error}", pointer=pointer) from None
    if bounds is not None and not seconds(bounds.minimum) <= duration <= seconds(bounds.maximum):
        raise Invalid(f"{name}: {bounds.text}", pointer=pointer)
    return duration
