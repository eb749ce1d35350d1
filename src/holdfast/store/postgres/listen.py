"""Wake-ups between processes by LISTEN and NOTIFY, received on one connection.

A lost notification only delays work, because subscribers also poll from time to time.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

import asyncpg

from holdfast import tasks
from holdfast.errors import HoldfastError
from holdfast.store.notify.notifications import deliver
from holdfast.store.notify.polling import Probe
from holdfast.store.notify.wakeup import Hub

CHANNEL = "holdfast"
_MIN_RECONNECT_DELAY_S, _MAX_RECONNECT_DELAY_S = 0.2, 5.0
_CHECK_INTERVAL_S = 15.0

Connect = Callable[[], Awaitable[asyncpg.Connection]]


class Listener:
    """Delivers notifications to the hub. While it is disconnected, the hub polls."""

    def __init__(self, hub: Hub, connect: Connect, own_id: int, probe: Probe) -> None:
        self._hub = hub
        self._connect = connect
        self._own_id = own_id
        self._probe = probe
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Listen and reconnect until closed. Does nothing if already started."""
        if self._task is None:
            self._task = tasks.start(self._listen(), name="holdfast postgres listener")

    async def aclose(self) -> None:
        """Stop listening."""
        await tasks.stop(self._task)

    async def _listen(self) -> None:
        delay = _MIN_RECONNECT_DELAY_S
        while True:
            with contextlib.suppress(
                HoldfastError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError
            ):
                connection = await self._connect()
                try:
                    began = time.monotonic()
                    await self._receive(connection)
                finally:
                    self._hub.probe = self._probe
                    connection.terminate()
                if time.monotonic() - began > _MAX_RECONNECT_DELAY_S:
                    delay = _MIN_RECONNECT_DELAY_S
            await asyncio.sleep(delay)
            delay = min(2 * delay, _MAX_RECONNECT_DELAY_S)

    async def _receive(self, connection: asyncpg.Connection) -> None:
        ended = asyncio.Event()
        connection.add_termination_listener(lambda _: ended.set())
        await connection.add_listener(CHANNEL, self._on_notification)
        # Notifications sent before this point are lost: every subscriber scans once, then relies on notifications.
        self._hub.probe = None
        self._hub.publish_unknown()
        while not ended.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), _CHECK_INTERVAL_S)
                break
            await connection.execute("SELECT 1")  # detects a dead peer

    def _on_notification(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        deliver(self._hub, str(payload), own_id=self._own_id)
