"""Positions below which lanes have nothing left, so that claims do not walk over what is long claimed."""

import math


class Floor:
    """A position in a lane below which nothing is left, as far as is known."""

    __slots__ = ("_arrivals", "at", "next", "next_since")

    def __init__(self, at: int) -> None:
        self.at = at
        self.next = at
        self.next_since = -math.inf
        self._arrivals: tuple[tuple[int, int], ...] = ()
        """What was heard while claims were under way: moments and positions, both rising."""

    def advance(self, furthest: int, now: float, lag: float) -> None:
        if now - self.next_since >= lag:
            self.at = self.next if lag else furthest
            self.next, self.next_since = furthest, now

    def lower(self, seq: int) -> None:
        if seq <= self.at:
            self.at = seq - 1
        if seq <= self.next:
            self.next = seq - 1

    def record_arrival(self, seq: int, moment: int, oldest: int) -> None:
        """Keep for the claims under way what they may have missed; the oldest of them was asked at `oldest`."""
        self._arrivals = (*((at, first) for at, first in self._arrivals if at > oldest and first < seq), (moment, seq))

    def missed(self, allotted_at: int) -> int | None:
        """The first position that was heard of since a claim was asked, if any was."""
        if not self._arrivals:
            return None
        return next((seq for moment, seq in self._arrivals if moment > allotted_at), None)
