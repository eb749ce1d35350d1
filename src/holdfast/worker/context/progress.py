"""How far a job is: written at most about once a second, and the last word before the job is settled."""

import time
from collections.abc import Awaitable, Callable

import msgspec

from holdfast.errors import Invalid, LeaseLost, Unavailable
from holdfast.policy.text import sanitize

WRITE_INTERVAL_S = 1.0
"""Seconds between two writes."""

MAX_NOTE_LENGTH = 500

Save = Callable[[bytes], Awaitable[None]]
"""Writes it; raises `LeaseLost` when the job is not ours any more."""


class _Shown(msgspec.Struct, frozen=True, omit_defaults=True):
    fraction: float
    note: str = ""


class ProgressReporter:
    """Keeps the latest, and writes it when its time has come."""

    def __init__(self, save: Save, clock: Callable[[], float] = time.monotonic) -> None:
        self._save = save
        self._clock = clock
        self._unsaved: bytes | None = None
        self._next = float("-inf")

    async def report(self, fraction: float, note: str) -> None:
        """This is how far it is; written now, or with a later report, or at the end."""
        if not 0 <= fraction <= 1:  # also true for NaN
            raise Invalid(f"a progress of {fraction!r} makes no sense: give a fraction from 0 to 1")
        self._unsaved = msgspec.json.encode(_Shown(float(fraction), sanitize(note, MAX_NOTE_LENGTH)))
        if self._clock() >= self._next:
            await self.flush()

    async def flush(self) -> None:
        """Write what is not written. A database that is away is not worth failing the job for: it stays unwritten."""
        if self._unsaved is None:
            return
        unsaved, self._unsaved = self._unsaved, None
        self._next = self._clock() + WRITE_INTERVAL_S
        try:
            await self._save(unsaved)
        except LeaseLost:
            raise
        except Unavailable:
            if self._unsaved is None:
                self._unsaved = unsaved
