"""Floors of lanes: positions below which no jobs are left.

They spare claims from scanning rows that were claimed long ago.
"""

import math


class Floor:
    """Position in a lane at and below which no jobs are left, as far as is known."""

    __slots__ = ("_arrivals", "at", "next", "next_since")

    def __init__(self, at: int) -> None:
        self.at = at
        self.next = at
        """Position that becomes the floor after the lag."""
        self.next_since = -math.inf
        self._arrivals: tuple[tuple[int, int], ...] = ()
        """Notifications received during claims: logical times and positions, both ascending."""

    def advance(self, furthest: int, now: float, lag: float) -> None:
        """Raise the floor to the furthest claimed position, after `lag` seconds."""
        if now - self.next_since >= lag:
            self.at = self.next if lag else furthest
            self.next, self.next_since = furthest, now

    def lower(self, seq: int) -> None:
        """Lower the floor below a position that has a ready job."""
        if seq <= self.at:
            self.at = seq - 1
        if seq <= self.next:
            self.next = seq - 1

    def record_arrival(self, seq: int, moment: int, oldest: int) -> None:
        """Record a notification that claims in flight may have missed.

        `oldest` is the logical time at which the oldest of these claims was allotted.
        """
        self._arrivals = (*((at, first) for at, first in self._arrivals if at > oldest and first < seq), (moment, seq))

    def missed(self, allotted_at: int) -> int | None:
        """Return the lowest position notified since a claim was allotted; None if there was none."""
        if not self._arrivals:
            return None
        return next((seq for moment, seq in self._arrivals if moment > allotted_at), None)
