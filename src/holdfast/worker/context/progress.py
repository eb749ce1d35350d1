"""Progress of a running job, written at most once a second and before the job is settled."""

import time
from collections.abc import Awaitable, Callable

import msgspec

from holdfast.errors import Invalid, LeaseLost, Unavailable
from holdfast.policy.text import sanitize

WRITE_INTERVAL_S = 1.0
"""Shortest time between two writes."""

MAX_NOTE_LENGTH = 500

Save = Callable[[bytes], Awaitable[None]]
"""Write encoded progress; raise `LeaseLost` if the worker no longer holds the job."""


class _ProgressRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    fraction: float
    note: str = ""


class ProgressReporter:
    """Keeps the latest progress of a job and writes it at a limited rate."""

    def __init__(self, save: Save, clock: Callable[[], float] = time.monotonic) -> None:
        self._save = save
        self._clock = clock
        self._unsaved: bytes | None = None
        self._next_write_at = float("-inf")

    async def report(self, fraction: float, note: str) -> None:
        """Set the progress; write it now unless the last write was too recent."""
        if not 0 <= fraction <= 1:  # rejects NaN too
            raise Invalid(f"progress must be a fraction from 0 to 1, not {fraction!r}")
        self._unsaved = msgspec.json.encode(_ProgressRecord(float(fraction), sanitize(note, MAX_NOTE_LENGTH)))
        if self._clock() >= self._next_write_at:
            await self.flush()

    async def flush(self) -> None:
        """Write the unwritten progress; keep it for later if the database is unavailable."""
        if self._unsaved is None:
            return
        unsaved, self._unsaved = self._unsaved, None
        self._next_write_at = self._clock() + WRITE_INTERVAL_S
        try:
            await self._save(unsaved)
        except LeaseLost:
            raise
        except Unavailable:
            if self._unsaved is None:
                self._unsaved = unsaved
