"""What of the feed was seen: numbers are drawn before the commit, so a lower one can appear after a higher one."""

from collections.abc import Iterable
from typing import Self

import msgspec
from msgspec import Struct

from holdfast.model.time import Duration, Instant, seconds

GAP_TIMEOUT = seconds(120)
"""How long a number that was left out is waited for: no transaction lasts that long, so then it was rolled back."""

MAX_GAP = 1_000
"""How many numbers before one that was seen are waited for: no more transactions are under way at once."""


class Gap(Struct, frozen=True, array_like=True):
    """Numbers that were left out, the ends included, and since when that is known."""

    first: int
    last: int
    since: Instant


class GapTracker(Struct):
    """All numbers up to `upto` but those in the holes, which may still appear."""

    upto: int
    gaps: list[Gap] = []

    @classmethod
    def read(cls, upto: int, gaps: bytes | str) -> Self:
        """As it was written."""
        return cls(upto, _GAPS.decode(gaps))

    def encode_gaps(self) -> bytes:
        """The holes, to be kept beside the number."""
        return _ENCODE(self.gaps)

    @property
    def low_water(self) -> int:
        """Everything up to here was seen, or never will be."""
        return min((gap.first for gap in self.gaps), default=self.upto + 1) - 1

    def missing(self) -> list[int]:
        """Numbers to ask for again, in order."""
        return [number for gap in self.gaps for number in range(gap.first, gap.last + 1)]

    def mark_seen(self, numbers: Iterable[int], now: Instant) -> None:
        """These were seen: in order, each beyond `upto` or in a hole."""
        found: set[int] = set()
        for number in numbers:
            if number <= self.upto:
                found.add(number)
                continue
            if number > self.upto + 1:
                self.gaps.append(Gap(max(self.upto + 1, number - MAX_GAP), number - 1, now))
            self.upto = number
        if found:
            self.gaps = [part for gap in self.gaps for part in _without(gap, found)]

    def expire(self, now: Instant, after: Duration = GAP_TIMEOUT) -> None:
        """Wait no longer for what has been missing for so long."""
        if self.gaps and self.gaps[0].since <= now - after:
            self.gaps = [gap for gap in self.gaps if gap.since > now - after]


_GAPS = msgspec.json.Decoder(list[Gap])
_ENCODE = msgspec.json.Encoder().encode


def _without(gap: Gap, found: set[int]) -> list[Gap]:
    inside = sorted(number for number in found if gap.first <= number <= gap.last)
    parts: list[Gap] = []
    first = gap.first
    for number in inside:
        if first < number:
            parts.append(Gap(first, number - 1, gap.since))
        first = number + 1
    if first <= gap.last:
        parts.append(Gap(first, gap.last, gap.since))
    return parts
