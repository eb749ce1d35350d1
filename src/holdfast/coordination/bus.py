"""Wake-ups between processes by publish and subscribe. A message that is lost costs the next look, nothing else."""

import asyncio

from holdfast.coordination.redis_connection import Link, keep
from holdfast.coordination.redis_protocol import Wire, connect
from holdfast.model.ids import new_worker_id
from holdfast.store.notify.notifications import Notifier, deliver
from holdfast.store.notify.wakeup import Hub

_BEAT_EVERY = 2.0
_HEARD_WITHIN = 1.0
"""Seconds within which the connection that listens must answer: nobody waits for it."""


class RedisBus:
    """See `holdfast.store.notify.wakeup.Bus`. Listens on a connection of its own; speaks on the one that all share."""

    def __init__(self, link: Link, prefix: str) -> None:
        self._link = link
        self._channel = f"{prefix}news"
        self._own = new_worker_id()
        self._notifier = Notifier(self._own, self._send)
        self._hub: Hub | None = None
        self._hears = False
        self._task: asyncio.Task[None] | None = None

    def join(self, hub: Hub) -> None:
        """See the port."""
        self._hub = hub
        hub.announce = self._notifier.notify
        self._link.changed.append(self._judge)
        self._task = asyncio.create_task(keep(self._connected, self._lost))

    async def aclose(self) -> None:
        """Speak out and listen no more."""
        await self._notifier.aclose()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _send(self, text: str) -> None:
        self._link.send("PUBLISH", self._channel, text)

    async def _connected(self) -> Wire:
        wire = await connect(self._link.address, deadline=_HEARD_WITHIN, pushed=self._heard)
        try:
            await wire.ask("SUBSCRIBE", self._channel)
        except BaseException:
            wire.close("it cannot listen")
            raise
        self._hears = True
        self._judge()
        wire.beat_every(_BEAT_EVERY)
        return wire

    def _lost(self, reason: str) -> None:
        del reason
        self._hears = False
        self._judge()

    def _judge(self) -> None:
        """News come by themselves while we can hear, and the server answers: one that is frozen says nothing."""
        hub = self._hub
        if hub is None:
            return
        pushed = self._hears and self._link.up and hub.names_lanes
        if pushed is not hub.pushed:
            hub.pushed = pushed
            hub.publish_unknown()  # whoever waits looks once, and then waits as things stand now

    def _heard(self, text: bytes) -> None:
        if self._hub is not None:
            deliver(self._hub, text, own=self._own)
