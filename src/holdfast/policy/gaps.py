"""Gaps in the sequence numbers of the change log.

Numbers are assigned before commit, so a lower one can appear after a higher one.
"""

from collections.abc import Iterable
from typing import Self

import msgspec
from msgspec import Struct

from holdfast.model.time import Duration, Instant, seconds

GAP_TIMEOUT = seconds(120)
"""Age at which a missing number counts as rolled back; no transaction lasts that long."""

MAX_GAP = 1_000
"""Missing numbers tracked below a seen one; fewer transactions are in flight at once."""


class Gap(Struct, frozen=True, array_like=True):
    """Inclusive range of missing numbers, and the time at which it was noticed."""

    first: int
    last: int
    since: Instant


class GapTracker(Struct):
    """Set of seen numbers: all up to `upto` except those in `gaps`, which may still appear."""

    upto: int
    gaps: list[Gap] = []

    @classmethod
    def read(cls, upto: int, gaps: bytes | str) -> Self:
        """Decode stored state."""
        return cls(upto, _GAPS.decode(gaps))

    def encode_gaps(self) -> bytes:
        """Encode the gaps, to be stored beside `upto`."""
        return _ENCODE(self.gaps)

    @property
    def low_water(self) -> int:
        """Highest number up to which every number was seen or has expired."""
        return min((gap.first for gap in self.gaps), default=self.upto + 1) - 1

    def missing(self) -> list[int]:
        """Return the numbers to query again, in order."""
        return [number for gap in self.gaps for number in range(gap.first, gap.last + 1)]

    def mark_seen(self, numbers: Iterable[int], now: Instant) -> None:
        """Record numbers as seen; they must be sorted, each beyond `upto` or in a gap."""
        late: set[int] = set()
        for number in numbers:
            if number <= self.upto:
                late.add(number)
                continue
            if number > self.upto + 1:
                self.gaps.append(Gap(max(self.upto + 1, number - MAX_GAP), number - 1, now))
            self.upto = number
        if late:
            self.gaps = [part for gap in self.gaps for part in _without(gap, late)]

    def expire(self, now: Instant, after: Duration = GAP_TIMEOUT) -> None:
        """Drop the gaps that were noticed at least `after` ago."""
        if self.gaps and self.gaps[0].since <= now - after:
            self.gaps = [gap for gap in self.gaps if gap.since > now - after]


_GAPS = msgspec.json.Decoder(list[Gap])
_ENCODE = msgspec.json.Encoder().encode


def _without(gap: Gap, numbers: set[int]) -> list[Gap]:
    inside = sorted(number for number in numbers if gap.first <= number <= gap.last)
    parts: list[Gap] = []
    first = gap.first
    for number in inside:
        if first < number:
            parts.append(Gap(first, number - 1, gap.since))
        first = number + 1
    if first <= gap.last:
        parts.append(Gap(first, gap.last, gap.since))
    return parts
