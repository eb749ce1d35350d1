"""A bounded number of connections, handed out to one task at a time."""

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.errors import Unavailable
from holdfast.store.mysql.driver import Link
from holdfast.store.mysql.errors import DRIVER, translate

_WAIT = 10.0
"""Seconds to wait for a connection to become free."""


class Pool:
    """Connections are opened when they are needed, the last used first; broken ones are never handed out twice."""

    def __init__(self, connect: Callable[[], Awaitable[Link]], size: int, *, wait: float = _WAIT) -> None:
        self._connect = connect
        self.size = size
        self.busy = 0
        self._free = asyncio.Semaphore(size)
        self._idle: list[Link] = []
        self._wait = wait
        self._closed = False

    @property
    def idle(self) -> int:
        """Connections that wait for work."""
        return len(self._idle)

    async def acquire(self) -> Link:
        """A connection that looks alive; `Unavailable` when none gets free in time or the server is away."""
        if self._closed:
            raise Unavailable("the store is closed")
        try:
            async with asyncio.timeout(self._wait):
                await self._free.acquire()
        except TimeoutError as error:
            raise Unavailable(
                f"no database connection was free within {self._wait:g} s: "
                "the server is slow or away, or the pool is too small"
            ) from error
        self.busy += 1
        try:
            while self._idle:
                link = self._idle.pop()
                if link.usable():
                    return link
                link.close()
            return await self._connect()
        except BaseException as error:
            self.busy -= 1
            self._free.release()
            if isinstance(error, DRIVER):
                raise translate(error) from error
            raise

    def release(self, link: Link) -> None:
        """Take a connection back, with no transaction open on it."""
        if self._closed or not link.usable():
            link.close()
        else:
            self._idle.append(link)
        self.busy -= 1
        self._free.release()

    async def aclose(self) -> None:
        """Close what is idle now, and the others as they come back."""
        self._closed = True
        while self._idle:
            await self._idle.pop().quit()
