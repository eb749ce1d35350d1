"""What a node remembers of keys, for a few seconds, and what time it is by the database's clock."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from holdfast.errors import Unavailable
from holdfast.model.access import ApiKey
from holdfast.model.time import Instant, in_seconds, seconds
from holdfast.policy.access import NOTED_EVERY, good_for, is_good, use_is_news
from holdfast.store.port.store import Store

REMEMBERED = seconds(3)
"""How long a node relies on what it read: a key that is revoked elsewhere is dead here by then."""

_MOST_KEYS = 10_000
_MOST_UNKNOWN = 1_000
"""Ids that are no key's are remembered too, but only so many: whoever makes them up makes up any number."""

_TIME_KEPT = 30.0
_LOCKS = 64

Monotonic = Callable[[], float]


class _Read(NamedTuple):
    key: ApiKey | None
    until: float


class Keyring:
    """Finds keys by their id. Belongs to one event loop."""

    def __init__(self, store: Store, monotonic: Monotonic = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._known: OrderedDict[str, _Read] = OrderedDict()
        self._unknown: OrderedDict[str, _Read] = OrderedDict()
        # Of many requests with one key that nobody remembers, one asks the database. A few locks do for all keys.
        self._asking = [asyncio.Lock() for _ in range(_LOCKS)]
        self._told: tuple[Instant, float] | None = None

    async def good_key(self, key_id: str) -> ApiKey | None:
        """The key, if it is good now; what was read within the last three seconds counts."""
        read = self._remembered(key_id)
        if read is None:
            async with self._asking[hash(key_id) % _LOCKS]:
                read = self._remembered(key_id) or await self._ask(key_id)
        return read.key

    def remembers(self, key: ApiKey) -> bool:
        """Whether this is what would be found now, without asking the database."""
        read = self._known.get(key.id)
        return read is not None and read.key is key and self._monotonic() < read.until

    async def note_use(self, key: ApiKey) -> None:
        """Note that a key is in use, now and then; that this fails is no reason to turn anybody away."""
        if use_is_news(key, await self.now()):
            with suppress(Unavailable):
                await self._store.single(lambda tx: tx.note_key(key.id, NOTED_EVERY))
            self.forget(key.id)

    def forget(self, key_id: str) -> None:
        """Ask the database the next time."""
        self._known.pop(key_id, None)
        self._unknown.pop(key_id, None)

    async def now(self) -> Instant:
        """The database's time: as it last told, and what went by since on this node's monotonic clock."""
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
        # From before the question: the answer may be as old as that.
        asked = self._monotonic()
        found = await self._store.single(lambda tx: tx.key(key_id))
        self.forget(key_id)
        if found is None or not is_good(*found):
            return self._remember(self._unknown, key_id, _Read(None, asked + in_seconds(REMEMBERED)), _MOST_UNKNOWN)
        key, at = found
        self._told = at, asked
        read = _Read(key, asked + in_seconds(good_for(key, at, REMEMBERED)))
        return self._remember(self._known, key_id, read, _MOST_KEYS)

    @staticmethod
    def _remember(shelf: OrderedDict[str, _Read], key_id: str, read: _Read, most: int) -> _Read:
        shelf[key_id] = read
        if len(shelf) > most:
            shelf.popitem(last=False)
        return read
