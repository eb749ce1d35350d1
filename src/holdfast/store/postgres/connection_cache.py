"""Cache of recently used connections in front of the driver's pool.

Acquiring a connection from the driver's pool and releasing it costs a timer, a task and a dozen calls: more than a
short transaction itself.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from holdfast.store.port.store import PoolUse
from holdfast.store.postgres import pool as pools
from holdfast.store.postgres.errors import READ_ONLY

MAX_IDLE_S = pools.MAX_IDLE_S
_MAX_CACHED = 4


class ConnectionCache:
    """Connections for one transaction at a time; none is cached while a task waits for one."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._cached: list[tuple[asyncpg.Connection, float]] = []
        """Connections with the time of their release, the latest last."""
        self._waiting = 0
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    async def acquire(self, timeout: float) -> asyncpg.Connection:
        """Return a connection; the caller must release it.

        Raises:
            TimeoutError: none became free in time.
        """
        while self._cached:
            connection, _ = self._cached.pop()
            if not pools.is_gone(connection):
                return connection
            await self.restore(connection)
        self._waiting += 1
        try:
            return await self._pool.acquire(timeout=timeout)
        finally:
            self._waiting -= 1

    async def release(self, connection: asyncpg.Connection) -> None:
        """Release a connection after a success, when nothing runs on it."""
        if self._waiting or len(self._cached) >= _MAX_CACHED or pools.is_gone(connection):
            await self.restore(connection)
            return
        self._cached.append((connection, self._loop.time()))
        if self._timer is None:
            self._timer = self._loop.call_later(MAX_IDLE_S, self._close_idle)

    async def restore(self, connection: asyncpg.Connection) -> None:
        """Release a connection in any state; the pool ends whatever runs on it."""
        await self._pool.release(connection)

    @asynccontextmanager
    async def use(self, timeout: float) -> AsyncIterator[asyncpg.Connection]:
        """Use a connection within a block."""
        connection = await self.acquire(timeout)
        try:
            yield connection
        except READ_ONLY:
            pools.terminate(connection)
            raise
        finally:
            await self.restore(connection)

    def usage(self) -> PoolUse:
        """Return the numbers of busy and idle connections."""
        idle = self._pool.get_idle_size() + sum(not pools.is_gone(connection) for connection, _ in self._cached)
        return PoolUse(self._pool.get_size() - idle, idle, self._pool.get_max_size())

    async def aclose(self) -> None:
        """Close all connections."""
        if self._timer is not None:
            self._timer.cancel()
        cached, self._cached = self._cached, []
        for connection, _ in cached:
            await self.restore(connection)
        await pools.close_quietly(self._pool)

    def _close_idle(self) -> None:
        """Close connections that were idle for too long; a firewall may have dropped them."""
        self._timer = None
        now = self._loop.time()
        while self._cached and self._cached[0][1] + MAX_IDLE_S <= now:
            pools.terminate(self._cached.pop(0)[0])
        if self._cached:
            self._timer = self._loop.call_at(self._cached[0][1] + MAX_IDLE_S, self._close_idle)
