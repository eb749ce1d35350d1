"""The tail of the feed: everything that changes from now on, once each, also what is committed late."""

import asyncio
import time

from holdfast.model.change_log import Entry
from holdfast.model.time import Instant
from holdfast.policy.gaps import WIDEST, Seen
from holdfast.store.port.store import Store, Subscription

READ_AT_ONCE = 500

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.5
"""Seconds between two looks: while there is something to see, and when there was nothing for a while."""


class Tail:
    """Reads the feed as it grows. Whoever holds it is the only reader; it asks only while it is asked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen = Seen(0)
        self._subscription: Subscription | None = None
        self._pause = _FIRST_PAUSE

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
        kept = await self._store.single(lambda tx: tx.feed_kept())
        first = max(kept.pruned, kept.last - WIDEST)
        numbers = await self._store.single(lambda tx: tx.feed_numbers(first, 2 * WIDEST))
        self._seen = Seen(first)
        self._seen.note(numbers, _now())

    async def more(self) -> list[Entry]:
        """What has appeared since, oldest first but for what was late."""
        missing = self._seen.missing()
        late = await self._store.single(lambda tx: tx.feed_at(missing)) if missing else []
        upto = self._seen.upto
        fresh = await self._store.single(lambda tx: tx.feed_after(upto, READ_AT_ONCE))
        self._pause = _FIRST_PAUSE if late or fresh else min(2 * self._pause, _LONGEST_PAUSE)
        return [*late, *fresh]

    def note(self, entry: Entry) -> None:
        """This one was dealt with."""
        self._seen.note([entry.seq], _now())

    def give_up(self) -> None:
        """Wait no longer for what was rolled back long ago."""
        self._seen.give_up(_now())

    async def wait(self) -> None:
        """Until something may have changed: woken where wake-ups arrive by themselves, else after a while."""
        if self._subscription is None:
            self._subscription = self._store.listen(None)
        began = time.monotonic()
        if await self._subscription.wait(self._pause) is not None:
            # Woken: by much at once, perhaps. What arrives within a moment is read together.
            self._pause = _FIRST_PAUSE
            await asyncio.sleep(max(0.0, _FIRST_PAUSE - (time.monotonic() - began)))

    def close(self) -> None:
        """Hear no more."""
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None


def _now() -> Instant:
    """How long something is missing is a span: this node's own clock will do."""
    return Instant(int(time.monotonic() * 1_000_000))
