"""Estimate of the database's time without a query."""

import time

from holdfast.model.time import Instant


class DatabaseClock:
    """This node's clock, corrected by the offset that was measured when the engine opened."""

    def __init__(self) -> None:
        self.offset_ms = 0
        """Database time minus this node's time."""

    def set(self, now: Instant) -> None:
        """Set the offset; `now` is the database's time, just read."""
        self.offset_ms = now // 1_000 - time.time_ns() // 1_000_000

    def now_ms(self) -> int:
        """Return the database's time in milliseconds since 1970."""
        return time.time_ns() // 1_000_000 + self.offset_ms

    def now(self) -> Instant:
        """Return the database's time, in steps of a millisecond."""
        return Instant(self.now_ms() * 1_000)
