"""Outages of the database as the maintenance loops of a process see them."""

import time
from collections.abc import Callable

from holdfast.errors import Contention, Unavailable
from holdfast.telemetry.emit import Emit
from holdfast.telemetry.events import DatabaseChanged


def is_outage(error: Exception) -> bool:
    """Return True if the database did not respond, which is no fault of a loop."""
    return isinstance(error, Unavailable) and not isinstance(error, Contention)


class OutageMonitor:
    """Emits one event when the database becomes unavailable and one when it is back."""

    def __init__(self, emit: Emit, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._emit = emit
        self._monotonic = monotonic
        self._since: float | None = None
        self._last_failure = 0.0

    def now(self) -> float:
        """Return the current time, to be passed to `succeeded` after the round."""
        return self._monotonic()

    def failed(self, error: Exception) -> None:
        """Record that a loop could not reach the database."""
        self._last_failure = self._monotonic()
        if self._since is None:
            self._since = self._last_failure
            self._emit(DatabaseChanged(up=False, reason=str(error)))

    def succeeded(self, began: float) -> None:
        """Record a round that succeeded; one that began before the last failure proves nothing."""
        if self._since is not None and began > self._last_failure:
            self._emit(DatabaseChanged(up=True, seconds=self._monotonic() - self._since))
            self._since = None
