"""Port for wake-ups. Part of `holdfast.store.port.store`."""

from typing import Protocol

from holdfast.model.lane import LaneReady


class Subscription(Protocol):
    """Wake-ups for one worker; those that arrive between waits are kept for the next wait."""

    async def wait(self, timeout: float) -> list[LaneReady] | None:
        """Wait until a job may have become ready; return None on timeout.

        An empty list means that the lanes are unknown: scan all lanes. A lost wake-up delays work by the timeout.
        """

    @property
    def poll_interval_s(self) -> float | None:
        """Longest time for which this subscription misses a ready job; None if wake-ups may be lost.

        If it is set, a wait without a wake-up means that there is nothing to claim.
        """

    def reset(self) -> None:
        """Reset the polling back-off after work was found."""

    def close(self) -> None:
        """Unsubscribe; end a wait in progress."""
