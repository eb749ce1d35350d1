"""News of one process for the others, as they are sent: coalesced, bounded, and told apart from one's own."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable

import msgspec

from holdfast.errors import HoldfastError
from holdfast.model.lane import Lane, LaneReady
from holdfast.store.notify.wakeup import Hub

SEND_EVERY = 0.01
"""Seconds between two messages of one process: a NOTIFY at every insert would serialise all commits."""

LARGEST = 7_000
"""Bytes of a message; a notification of PostgreSQL takes 8,000."""

_MOST_LANES = 100

Send = Callable[[str], Awaitable[None]]


class Message(msgspec.Struct, frozen=True, array_like=True):
    """Lanes with news; or queues, where the lanes are too many to name; neither: any queue may have some."""

    sender: int
    lanes: list[tuple[str, str, int, int]]
    queues: list[str]
    changed: bool = False
    """Nothing became ready, but jobs changed: for those who follow the feed."""


_DECODE = msgspec.json.Decoder(Message).decode


def encode(sender: int, ready_lanes: Iterable[LaneReady]) -> str:
    """A message, however much there is to tell; without news it tells that something changed."""
    earliest: dict[Lane, int] = {}
    for lane, seq in ready_lanes:
        earliest[lane] = min(seq, earliest.get(lane, seq))
    if not earliest:
        return msgspec.json.encode(Message(sender, [], [], changed=True)).decode()
    if len(earliest) <= _MOST_LANES:
        text = msgspec.json.encode(Message(sender, [(*lane, seq) for lane, seq in earliest.items()], []))
        if len(text) <= LARGEST:
            return text.decode()
    queues = sorted({lane.queue for lane in earliest})
    text = msgspec.json.encode(Message(sender, [], queues))
    return text.decode() if len(text) <= LARGEST else msgspec.json.encode(Message(sender, [], [])).decode()


def deliver(hub: Hub, text: str | bytes, *, own: int) -> None:
    """Give a message to the hub, unless it comes from this process. One that makes no sense may mean anything."""
    try:
        message = _DECODE(text)
    except msgspec.DecodeError:
        hub.publish_unknown()
        return
    if message.sender == own:
        return
    if message.lanes:
        hub.publish(LaneReady(Lane(queue, tenant, priority), seq) for queue, tenant, priority, seq in message.lanes)
    elif message.changed:
        hub.publish_change()
    else:
        hub.publish_unknown(message.queues or None)


class Notifier:
    """Tells other processes what became ready, coalesced."""

    def __init__(self, sender: int, send: Send) -> None:
        self._sender = sender
        self._send = send
        self._ready_lanes: list[LaneReady] = []
        self._changed = False
        self._task: asyncio.Task[None] | None = None

    def notify(self, ready_lanes: Iterable[LaneReady], *, changed: bool = False) -> None:
        """Send these soon, or that something changed; does not wait."""
        self._ready_lanes.extend(ready_lanes)
        self._changed = self._changed or changed
        if self._task is None and (self._ready_lanes or self._changed):
            self._task = asyncio.create_task(self._send_all())

    async def _send_all(self) -> None:
        try:
            while self._ready_lanes or self._changed:
                ready_lanes, self._ready_lanes, self._changed = self._ready_lanes, [], False
                with contextlib.suppress(HoldfastError):
                    await self._send(encode(self._sender, ready_lanes))
                await asyncio.sleep(SEND_EVERY)
        finally:
            self._task = None

    async def aclose(self) -> None:
        """Send what is left."""
        if self._task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
