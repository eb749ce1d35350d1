"""Tail of the change log: every change from now on, exactly once, including late commits."""

import asyncio
import time
from typing import TYPE_CHECKING

from holdfast.model.change_log import ChangeEntry
from holdfast.model.time import Instant
from holdfast.policy.gaps import MAX_GAP, GapTracker
from holdfast.store.port.store import Store

if TYPE_CHECKING:
    from holdfast.store.port.wakeups import Subscription

READ_BATCH_SIZE = 500

_MIN_POLL_DELAY_S, _MAX_POLL_DELAY_S = 0.05, 0.5
"""Delay between two reads: while there are changes, and after a time without any."""


class Tail:
    """Reader of the change log as it grows, for a single consumer.

    It queries the database only when it is called.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen = GapTracker(0)
        self._subscription: Subscription | None = None
        self._poll_delay = _MIN_POLL_DELAY_S

    @property
    def low_water(self) -> int:
        """Highest number up to which every row was read or rolled back."""
        return self._seen.low_water

    @property
    def upto(self) -> int:
        """Highest number that was read."""
        return self._seen.upto

    async def begin(self) -> None:
        """Start at the end of the log.

        Rows of transactions in flight are included, even if their numbers are lower than those of existing rows.
        """
        kept = await self._store.single(lambda tx: tx.change_log_range())
        first = max(kept.pruned, kept.last - MAX_GAP)
        numbers = await self._store.single(lambda tx: tx.change_numbers(first, 2 * MAX_GAP))
        self._seen = GapTracker(first)
        self._seen.mark_seen(numbers, _now())

    async def read_new(self) -> list[ChangeEntry]:
        """Return entries that appeared since the last call: late ones, then new ones in order."""
        missing = self._seen.missing()
        late = await self._store.single(lambda tx: tx.changes_at(missing)) if missing else []
        upto = self._seen.upto
        new = await self._store.single(lambda tx: tx.changes_after(upto, READ_BATCH_SIZE))
        self._poll_delay = _MIN_POLL_DELAY_S if late or new else min(2 * self._poll_delay, _MAX_POLL_DELAY_S)
        return [*late, *new]

    def mark_seen(self, entry: ChangeEntry) -> None:
        """Record that an entry was processed, so that `read_new` does not return it again."""
        self._seen.mark_seen([entry.seq], _now())

    def expire_gaps(self) -> None:
        """Stop waiting for entries whose transactions were rolled back long ago."""
        self._seen.expire(_now())

    async def wait(self) -> None:
        """Wait for a notification if the store sends them, else for the polling delay."""
        if self._subscription is None:
            self._subscription = self._store.listen(None)
        began = time.monotonic()
        if await self._subscription.wait(self._poll_delay) is not None:
            # Changes often arrive in bursts; those that arrive within the minimum delay are read together.
            self._poll_delay = _MIN_POLL_DELAY_S
            await asyncio.sleep(max(0.0, _MIN_POLL_DELAY_S - (time.monotonic() - began)))

    def close(self) -> None:
        """Unsubscribe."""
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None


def _now() -> Instant:
    """Return this node's monotonic time; only the age of gaps matters."""
    return Instant(int(time.monotonic() * 1_000_000))
