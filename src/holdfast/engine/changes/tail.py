"""The tail of the feed: everything that changes from now on, once each, also what is committed late."""

import asyncio
import time

from holdfast.model.change_log import ChangeEntry
from holdfast.model.time import Instant
from holdfast.policy.gaps import MAX_GAP, GapTracker
from holdfast.store.port.store import Store
from holdfast.store.port.wakeups import Subscription

READ_BATCH_SIZE = 500

_MIN_PAUSE_S, _MAX_PAUSE_S = 0.05, 0.5
"""Seconds between two looks: while there is something to see, and when there was nothing for a while."""


class Tail:
    """Reads the feed as it grows. Whoever holds it is the only reader; it asks only while it is asked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen = GapTracker(0)
        self._subscription: Subscription | None = None
        self._pause = _MIN_PAUSE_S

    @property
    def low_water(self) -> int:
        """Every row up to this number was read, or was rolled back."""
        return self._seen.low_water

    @property
    def upto(self) -> int:
        """The highest number that was read."""
        return self._seen.upto

    async def begin(self) -> None:
        """From here on. Rows that are under way now come too, also with lower numbers than those that are there."""
        kept = await self._store.single(lambda tx: tx.change_log_range())
        first = max(kept.pruned, kept.last - MAX_GAP)
        numbers = await self._store.single(lambda tx: tx.change_numbers(first, 2 * MAX_GAP))
        self._seen = GapTracker(first)
        self._seen.mark_seen(numbers, _now())

    async def more(self) -> list[ChangeEntry]:
        """What has appeared since, oldest first but for what was late."""
        missing = self._seen.missing()
        late = await self._store.single(lambda tx: tx.changes_at(missing)) if missing else []
        upto = self._seen.upto
        fresh = await self._store.single(lambda tx: tx.changes_after(upto, READ_BATCH_SIZE))
        self._pause = _MIN_PAUSE_S if late or fresh else min(2 * self._pause, _MAX_PAUSE_S)
        return [*late, *fresh]

    def note(self, entry: ChangeEntry) -> None:
        """This one was dealt with."""
        self._seen.mark_seen([entry.seq], _now())

    def give_up(self) -> None:
        """Wait no longer for what was rolled back long ago."""
        self._seen.expire(_now())

    async def wait(self) -> None:
        """Until something may have changed: woken where wake-ups arrive by themselves, else after a while."""
        if self._subscription is None:
            self._subscription = self._store.listen(None)
        began = time.monotonic()
        if await self._subscription.wait(self._pause) is not None:
            # Woken: by much at once, perhaps. What arrives within a moment is read together.
            self._pause = _MIN_PAUSE_S
            await asyncio.sleep(max(0.0, _MIN_PAUSE_S - (time.monotonic() - began)))

    def close(self) -> None:
        """Hear no more."""
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None


def _now() -> Instant:
    """How long something is missing is a span: this node's own clock will do."""
    return Instant(int(time.monotonic() * 1_000_000))
