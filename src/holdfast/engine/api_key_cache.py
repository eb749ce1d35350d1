"""Cache of API keys for a few seconds, and an estimate of the database's clock."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from holdfast.errors import Unavailable
from holdfast.model.access import ApiKey
from holdfast.model.time import Instant, in_seconds, seconds
from holdfast.policy.access import LAST_USED_INTERVAL, cacheable_for, is_valid, should_record_use
from holdfast.store.port.store import Store

REMEMBERED = seconds(3)
"""Lifetime of a cache entry; bounds how long a revoked key works on other nodes."""

_MAX_KEYS = 10_000
_MAX_UNKNOWN_IDS = 1_000
"""Cap on cached unknown ids, because a client can invent any number of them."""

_TIME_KEPT = 30.0
_LOCKS = 64

Monotonic = Callable[[], float]


class _Read(NamedTuple):
    key: ApiKey | None
    until: float


class ApiKeyCache:
    """API keys by id. Belongs to one event loop."""

    def __init__(self, store: Store, monotonic: Monotonic = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._known: OrderedDict[str, _Read] = OrderedDict()
        self._unknown: OrderedDict[str, _Read] = OrderedDict()
        # Concurrent requests with the same uncached key share one read; the locks are striped by key.
        self._asking = [asyncio.Lock() for _ in range(_LOCKS)]
        self._told: tuple[Instant, float] | None = None

    async def good_key(self, key_id: str) -> ApiKey | None:
        """Return the key if it is valid; the result may be three seconds old."""
        read = self._remembered(key_id)
        if read is None:
            async with self._asking[hash(key_id) % _LOCKS]:
                read = self._remembered(key_id) or await self._ask(key_id)
        return read.key

    def remembers(self, key: ApiKey) -> bool:
        """Return True if this key is the current cache entry."""
        read = self._known.get(key.id)
        return read is not None and read.key is key and self._monotonic() < read.until

    async def note_use(self, key: ApiKey) -> None:
        """Record from time to time that a key is in use; ignores an unavailable database."""
        if should_record_use(key, await self.now()):
            with suppress(Unavailable):
                await self._store.single(lambda tx: tx.note_key(key.id, LAST_USED_INTERVAL))
            self.forget(key.id)

    def forget(self, key_id: str) -> None:
        """Drop a cache entry."""
        self._known.pop(key_id, None)
        self._unknown.pop(key_id, None)

    async def now(self) -> Instant:
        """Return the database's time, advanced by this node's monotonic clock since the last read."""
        if self._told is None or self._monotonic() - self._told[1] > _TIME_KEPT:
            try:
                asked = self._monotonic()
                self._told = await self._store.single(lambda tx: tx.now()), asked
            except Unavailable:
                if self._told is None:
                    raise
        at, then = self._told
        return Instant(at + seconds(self._monotonic() - then))

    def _remembered(self, key_id: str) -> _Read | None:
        for shelf in (self._known, self._unknown):
            read = shelf.get(key_id)
            if read is not None and self._monotonic() < read.until:
                shelf.move_to_end(key_id)
                return read
        return None

    async def _ask(self, key_id: str) -> _Read:
        # Taken before the read, because the result may be that old.
        asked = self._monotonic()
        found = await self._store.single(lambda tx: tx.key(key_id))
        self.forget(key_id)
        if found is None or not is_valid(*found):
            return self._remember(self._unknown, key_id, _Read(None, asked + in_seconds(REMEMBERED)), _MAX_UNKNOWN_IDS)
        key, at = found
        self._told = at, asked
        read = _Read(key, asked + in_seconds(cacheable_for(key, at, REMEMBERED)))
        return self._remember(self._known, key_id, read, _MAX_KEYS)

    @staticmethod
    def _remember(shelf: OrderedDict[str, _Read], key_id: str, read: _Read, most: int) -> _Read:
        shelf[key_id] = read
        if len(shelf) > most:
            shelf.popitem(last=False)
        return read
