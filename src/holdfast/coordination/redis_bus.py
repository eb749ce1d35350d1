"""Wake-ups between processes through Redis publish/subscribe.

A lost message only delays work until the next poll.
"""

from typing import TYPE_CHECKING

from holdfast import tasks
from holdfast.coordination.redis_connection import RedisConnection, keep_connected
from holdfast.coordination.redis_protocol import PipelinedConnection, connect
from holdfast.model.ids import new_worker_id
from holdfast.store.notify.notifications import Notifier, deliver
from holdfast.store.notify.wakeup import Bus, Hub

if TYPE_CHECKING:
    import asyncio

_PING_INTERVAL_S = 2.0
_LISTENER_TIMEOUT_S = 1.0
"""Timeout of the listening connection, for which no caller waits."""


class RedisBus(Bus):
    """Bus that listens on its own connection and publishes on the shared one."""

    def __init__(self, connection: RedisConnection, prefix: str) -> None:
        self._connection = connection
        self._channel = f"{prefix}wakeups"
        self._own_id = new_worker_id()
        self._notifier = Notifier(self._own_id, self._publish)
        self._hub: Hub | None = None
        self._listening = False
        self._task: asyncio.Task[None] | None = None

    def join(self, hub: Hub) -> None:
        self._hub = hub
        hub.announce = self._notifier.notify
        self._connection.on_change.append(self._update_hub)
        self._task = tasks.start(keep_connected(self._connect, self._on_loss), name="holdfast redis listener")

    async def aclose(self) -> None:
        """Publish pending wake-ups and stop listening."""
        await self._notifier.aclose()
        await tasks.stop(self._task)

    async def _publish(self, text: str) -> None:
        self._connection.send("PUBLISH", self._channel, text)

    async def _connect(self) -> PipelinedConnection:
        listener = await connect(self._connection.address, timeout=_LISTENER_TIMEOUT_S, on_message=self._on_message)
        try:
            await listener.query("SUBSCRIBE", self._channel)
        except BaseException:
            listener.close("it could not subscribe")
            raise
        self._listening = True
        self._update_hub()
        listener.ping_periodically(_PING_INTERVAL_S)
        return listener

    def _on_loss(self, reason: str) -> None:
        del reason
        self._listening = False
        self._update_hub()

    def _update_hub(self) -> None:
        """Tell the hub whether wake-ups arrive.

        Both connections must work: the listening one cannot distinguish a frozen server from a quiet one.
        """
        hub = self._hub
        if hub is None:
            return
        pushed = self._listening and self._connection.up and hub.names_lanes
        if pushed is not hub.pushed:
            hub.pushed = pushed
            hub.publish_unknown()  # every waiting subscriber polls once, then waits as the new state requires

    def _on_message(self, text: bytes) -> None:
        if self._hub is not None:
            deliver(self._hub, text, own_id=self._own_id)
