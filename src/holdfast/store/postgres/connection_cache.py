"""Connections of a pool, given out one transaction at a time; those used last stay at hand for the next.

To take a connection from the driver's pool and to give it back costs a timer, a task and a dozen calls: more than a
short transaction itself.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from holdfast.store.port.store import PoolUse
from holdfast.store.postgres import pool as pools

LONGEST_IDLE = pools.LONGEST_IDLE
_MOST_AT_HAND = 4


class ConnectionCache:
    """Whoever waits for a connection gets the next that is free: none is kept at hand meanwhile."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._at_hand: list[tuple[asyncpg.Connection, float]] = []
        """With when they came back, the latest last."""
        self._asking = 0
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    async def acquire(self, timeout: float) -> asyncpg.Connection:
        """A connection, to be given back; raises `TimeoutError` when none is free in time."""
        while self._at_hand:
            connection, _ = self._at_hand.pop()
            if not pools.is_gone(connection):
                return connection
            await self.restore(connection)
        self._asking += 1
        try:
            return await self._pool.acquire(timeout=timeout)
        finally:
            self._asking -= 1

    async def release(self, connection: asyncpg.Connection) -> None:
        """Give a connection back after all went well, so that nothing is under way on it."""
        if self._asking or len(self._at_hand) >= _MOST_AT_HAND or pools.is_gone(connection):
            await self.restore(connection)
            return
        self._at_hand.append((connection, self._loop.time()))
        if self._timer is None:
            self._timer = self._loop.call_later(LONGEST_IDLE, self._let_go)

    async def restore(self, connection: asyncpg.Connection) -> None:
        """Give a connection back after whatever happened: the pool ends what is under way on it."""
        await self._pool.release(connection)

    @asynccontextmanager
    async def use(self, timeout: float) -> AsyncIterator[asyncpg.Connection]:
        """A connection within this block."""
        connection = await self.acquire(timeout)
        try:
            yield connection
        finally:
            await self.restore(connection)

    def counted(self) -> PoolUse:
        """How many are at work, and how many wait for work."""
        idle = self._pool.get_idle_size() + sum(not pools.is_gone(connection) for connection, _ in self._at_hand)
        return PoolUse(self._pool.get_size() - idle, idle, self._pool.get_max_size())

    async def aclose(self) -> None:
        """Close all."""
        if self._timer is not None:
            self._timer.cancel()
        at_hand, self._at_hand = self._at_hand, []
        for connection, _ in at_hand:
            await self.restore(connection)
        await pools.close_quietly(self._pool)

    def _let_go(self) -> None:
        """Nobody wanted these for long: whatever is between may have forgotten them by now."""
        self._timer = None
        now = self._loop.time()
        while self._at_hand and self._at_hand[0][1] + LONGEST_IDLE <= now:
            pools.cut(self._at_hand.pop(0)[0])
        if self._at_hand:
            self._timer = self._loop.call_at(self._at_hand[0][1] + LONGEST_IDLE, self._let_go)
