"""What of the feed was seen: numbers are drawn before the commit, so a lower one can appear after a higher one."""

from collections.abc import Iterable
from typing import Self

import msgspec
from msgspec import Struct

from holdfast.model.time import Duration, Instant, seconds

WATCHED = seconds(120)
"""How long a number that was left out is waited for: no transaction lasts that long, so then it was rolled back."""

WIDEST = 1_000
"""How many numbers before one that was seen are waited for: no more transactions are under way at once."""


class Hole(Struct, frozen=True, array_like=True):
    """Numbers that were left out, the ends included, and since when that is known."""

    first: int
    last: int
    since: Instant


class Seen(Struct):
    """All numbers up to `upto` but those in the holes, which may still appear."""

    upto: int
    holes: list[Hole] = []

    @classmethod
    def read(cls, upto: int, holes: bytes | str) -> Self:
        """As it was written."""
        return cls(upto, _HOLES.decode(holes))

    def written(self) -> bytes:
        """The holes, to be kept beside the number."""
        return _ENCODE(self.holes)

    @property
    def low_water(self) -> int:
        """Everything up to here was seen, or never will be."""
        return min((hole.first for hole in self.holes), default=self.upto + 1) - 1

    def missing(self) -> list[int]:
        """Numbers to ask for again, in order."""
        return [number for hole in self.holes for number in range(hole.first, hole.last + 1)]

    def note(self, numbers: Iterable[int], now: Instant) -> None:
        """These were seen: in order, each beyond `upto` or in a hole."""
        found: set[int] = set()
        for number in numbers:
            if number <= self.upto:
                found.add(number)
                continue
            if number > self.upto + 1:
                self.holes.append(Hole(max(self.upto + 1, number - WIDEST), number - 1, now))
            self.upto = number
        if found:
            self.holes = [part for hole in self.holes for part in _without(hole, found)]

    def give_up(self, now: Instant, after: Duration = WATCHED) -> None:
        """Wait no longer for what has been missing for so long."""
        if self.holes and self.holes[0].since <= now - after:
            self.holes = [hole for hole in self.holes if hole.since > now - after]


_HOLES = msgspec.json.Decoder(list[Hole])
_ENCODE = msgspec.json.Encoder().encode


def _without(hole: Hole, found: set[int]) -> list[Hole]:
    inside = sorted(number for number in found if hole.first <= number <= hole.last)
    parts: list[Hole] = []
    first = hole.first
    for number in inside:
        if first < number:
            parts.append(Hole(first, number - 1, hole.since))
        first = number + 1
    if first <= hole.last:
        parts.append(Hole(first, hole.last, hole.since))
    return parts
