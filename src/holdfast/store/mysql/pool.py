"""Connection pool. A connection is used by one task at a time."""

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.errors import Unavailable
from holdfast.store.mysql.driver import MysqlConnection
from holdfast.store.mysql.errors import DRIVER, translate

_ACQUIRE_TIMEOUT_S = 10.0


class Pool:
    """Pool that opens connections on demand and reuses the most recently used one."""

    def __init__(
        self, connect: Callable[[], Awaitable[MysqlConnection]], size: int, *, wait: float = _ACQUIRE_TIMEOUT_S
    ) -> None:
        self._connect = connect
        self.size = size
        self.busy = 0
        self._free = asyncio.Semaphore(size)
        self._idle: list[MysqlConnection] = []
        self._wait = wait
        self._closed = False

    @property
    def idle(self) -> int:
        """Number of idle connections."""
        return len(self._idle)

    async def acquire(self) -> MysqlConnection:
        """Return a connection that appears to be alive.

        Raises:
            Unavailable: none became free in time, or the server is down.
        """
        if self._closed:
            raise Unavailable("the store is closed")
        try:
            async with asyncio.timeout(self._wait):
                await self._free.acquire()
        except TimeoutError as error:
            raise Unavailable(
                f"no database connection was free within {self._wait:g} s: "
                "the server is slow or down, or the pool is too small"
            ) from error
        self.busy += 1
        try:
            while self._idle:
                connection = self._idle.pop()
                if connection.usable():
                    return connection
                connection.close()
            return await self._connect()
        except BaseException as error:
            self.busy -= 1
            self._free.release()
            if isinstance(error, DRIVER):
                raise translate(error) from error
            raise

    def release(self, connection: MysqlConnection) -> None:
        """Return a connection without an open transaction to the pool."""
        if self._closed or not connection.usable():
            connection.close()
        else:
            self._idle.append(connection)
        self.busy -= 1
        self._free.release()

    async def aclose(self) -> None:
        """Close idle connections now, and busy ones when they are released."""
        self._closed = True
        while self._idle:
            await self._idle.pop().quit()
