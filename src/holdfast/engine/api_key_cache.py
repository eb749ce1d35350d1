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

CACHE_LIFETIME = seconds(3)
"""Lifetime of a cache entry; bounds how long a revoked key works on other nodes."""

_MAX_KEYS = 10_000
_MAX_UNKNOWN_IDS = 1_000
"""Cap on cached unknown ids, because a client can invent any number of them."""

_CLOCK_REFRESH_INTERVAL_S = 30.0
_LOCK_STRIPES = 64

Monotonic = Callable[[], float]


class _CachedKey(NamedTuple):
    """Cache entry; `key` is None if there is no valid key with this id."""

    key: ApiKey | None
    until: float


class ApiKeyCache:
    """API keys by id. Belongs to one event loop."""

    def __init__(self, store: Store, monotonic: Monotonic = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._valid: OrderedDict[str, _CachedKey] = OrderedDict()
        self._invalid: OrderedDict[str, _CachedKey] = OrderedDict()
        # Concurrent requests with the same uncached key share one read; the locks are striped by key.
        self._locks = [asyncio.Lock() for _ in range(_LOCK_STRIPES)]
        self._clock: tuple[Instant, float] | None = None
        """Database time and monotonic time of the last read."""

    async def valid_key(self, key_id: str) -> ApiKey | None:
        """Return the key if it is valid; the result may be three seconds old."""
        entry = self._lookup(key_id)
        if entry is None:
            async with self._locks[hash(key_id) % _LOCK_STRIPES]:
                entry = self._lookup(key_id) or await self._read(key_id)
        return entry.key

    def is_current(self, key: ApiKey) -> bool:
        """Return True if this key is the current cache entry."""
        entry = self._valid.get(key.id)
        return entry is not None and entry.key is key and self._monotonic() < entry.until

    async def record_use(self, key: ApiKey) -> None:
        """Record the use of a key, unless that was done recently; ignores an unavailable database."""
        if should_record_use(key, await self.now()):
            with suppress(Unavailable):
                await self._store.single(lambda tx: tx.record_key_use(key.id, LAST_USED_INTERVAL))
            self.invalidate(key.id)

    def invalidate(self, key_id: str) -> None:
        """Drop a cache entry."""
        self._valid.pop(key_id, None)
        self._invalid.pop(key_id, None)

    async def now(self) -> Instant:
        """Return the database's time, advanced by this node's monotonic clock since the last read."""
        if self._clock is None or self._monotonic() - self._clock[1] > _CLOCK_REFRESH_INTERVAL_S:
            try:
                started = self._monotonic()
                self._clock = await self._store.single(lambda tx: tx.now()), started
            except Unavailable:
                if self._clock is None:
                    raise
        at, then = self._clock
        return Instant(at + seconds(self._monotonic() - then))

    def _lookup(self, key_id: str) -> _CachedKey | None:
        for entries in (self._valid, self._invalid):
            entry = entries.get(key_id)
            if entry is not None and self._monotonic() < entry.until:
                entries.move_to_end(key_id)
                return entry
        return None

    async def _read(self, key_id: str) -> _CachedKey:
        started = self._monotonic()  # before the read, because the result may be as old as that
        found = await self._store.single(lambda tx: tx.key(key_id))
        self.invalidate(key_id)
        if found is None or not is_valid(*found):
            entry = _CachedKey(None, started + in_seconds(CACHE_LIFETIME))
            return self._insert(self._invalid, key_id, entry, _MAX_UNKNOWN_IDS)
        key, at = found
        self._clock = at, started
        entry = _CachedKey(key, started + in_seconds(cacheable_for(key, at, CACHE_LIFETIME)))
        return self._insert(self._valid, key_id, entry, _MAX_KEYS)

    @staticmethod
    def _insert(entries: OrderedDict[str, _CachedKey], key_id: str, entry: _CachedKey, maximum: int) -> _CachedKey:
        entries[key_id] = entry
        if len(entries) > maximum:
            entries.popitem(last=False)
        return entry
