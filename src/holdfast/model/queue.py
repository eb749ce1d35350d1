"""Settings of a queue."""

from typing import NamedTuple

from holdfast.model.time import Instant


class Queue(NamedTuple):
    """Stored queue settings. A queue without a row is open and unlimited."""

    name: str
    paused: bool = False
    """True if the queue is paused, until `until` if set."""
    reason: str = ""
    until: Instant | None = None
    changed_at: Instant = Instant(0)
    changed_by: str = ""

    def open_at(self, now: Instant) -> bool:
        """Return True if jobs of the queue may be claimed."""
        return not self.paused or (self.until is not None and self.until <= now)
