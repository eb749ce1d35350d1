"""What is set for a queue."""

from typing import NamedTuple

from holdfast.model.time import Instant


class Queue(NamedTuple):
    """A queue somebody has set something for. Others are open and without limits."""

    name: str
    paused: bool = False
    """Nothing of it is claimed, until `until` if that is set."""
    reason: str = ""
    until: Instant | None = None
    changed_at: Instant = Instant(0)
    changed_by: str = ""

    def open_at(self, now: Instant) -> bool:
        """Whether jobs of it may be claimed."""
        return not self.paused or (self.until is not None and self.until <= now)
