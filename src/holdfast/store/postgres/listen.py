"""Wake-ups between processes by LISTEN and NOTIFY, heard on one connection.

A lost notification loses nothing but time: whoever waits also looks for himself now and then.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

import asyncpg

from holdfast.errors import HoldfastError
from holdfast.store.notify.notifications import deliver
from holdfast.store.notify.wakeup import Hub, Probe, always

CHANNEL = "holdfast"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0

Connect = Callable[[], Awaitable[asyncpg.Connection]]


class Listener:
    """Hears notifications and hands them to the hub. While it is deaf, the hub polls."""

    def __init__(self, hub: Hub, connect: Connect, own: int, *, while_deaf: Probe = always) -> None:
        self._hub = hub
        self._connect = connect
        self._own = own
        self._while_deaf = while_deaf
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Listen, and reconnect for as long as this is open. Without effect when it does already."""
        if self._task is None:
            self._task = asyncio.create_task(self._listen())

    async def aclose(self) -> None:
        """Stop listening."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _listen(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            with contextlib.suppress(
                HoldfastError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError
            ):
                connection = await self._connect()
                try:
                    began = time.monotonic()
                    await self._hear(connection)
                finally:
                    self._hub.probe = self._while_deaf
                    connection.terminate()
                if time.monotonic() - began > _LONGEST_PAUSE:
                    pause = _FIRST_PAUSE
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _hear(self, connection: asyncpg.Connection) -> None:
        ended = asyncio.Event()
        connection.add_termination_listener(lambda _: ended.set())
        await connection.add_listener(CHANNEL, self._heard)
        # What was sent while nobody listened is unknown: everyone looks once, then news arrive by themselves.
        self._hub.probe = None
        self._hub.publish_unknown()
        while not ended.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), 15)
                break
            await connection.execute("SELECT 1")  # a dead peer is noticed, not waited for

    def _heard(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        deliver(self._hub, str(payload), own=self._own)
