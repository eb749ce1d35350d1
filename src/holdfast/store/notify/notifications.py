"""Notifications of ready jobs between processes, coalesced and bounded in size."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable

import msgspec

from holdfast import tasks
from holdfast.errors import HoldfastError
from holdfast.model.lane import Lane, LaneReady
from holdfast.store.notify.wakeup import Hub

SEND_INTERVAL_S = 0.01
"""Interval between messages of one process; a NOTIFY per insert would serialize all commits."""

MAX_MESSAGE_BYTES = 7_000
"""Maximum size of a message; PostgreSQL limits the payload of a notification to 8,000 bytes."""

_MAX_LANES = 100

Send = Callable[[str], Awaitable[None]]


class Message(msgspec.Struct, frozen=True, array_like=True):
    """Lanes with newly ready jobs; if they are too many, only queues; if these are too, neither."""

    sender: int
    lanes: list[tuple[str, str, int, int]]
    queues: list[str]
    changed: bool = False
    """True if jobs changed and none became ready: wakes readers of the change log."""


_DECODE = msgspec.json.Decoder(Message).decode


def encode(sender: int, ready_lanes: Iterable[LaneReady]) -> str:
    """Encode a message that fits the size limit; without lanes it says that jobs changed."""
    earliest: dict[Lane, int] = {}
    for lane, seq in ready_lanes:
        earliest[lane] = min(seq, earliest.get(lane, seq))
    if not earliest:
        return msgspec.json.encode(Message(sender, [], [], changed=True)).decode()
    if len(earliest) <= _MAX_LANES:
        text = msgspec.json.encode(Message(sender, [(*lane, seq) for lane, seq in earliest.items()], []))
        if len(text) <= MAX_MESSAGE_BYTES:
            return text.decode()
    queues = sorted({lane.queue for lane in earliest})
    text = msgspec.json.encode(Message(sender, [], queues))
    return text.decode() if len(text) <= MAX_MESSAGE_BYTES else msgspec.json.encode(Message(sender, [], [])).decode()


def deliver(hub: Hub, text: str | bytes, *, own_id: int) -> None:
    """Deliver a message to the hub, unless it comes from this process.

    A message that cannot be decoded wakes all subscriptions.
    """
    try:
        message = _DECODE(text)
    except msgspec.DecodeError:
        hub.publish_unknown()
        return
    if message.sender == own_id:
        return
    if message.lanes:
        hub.publish(LaneReady(Lane(queue, tenant, priority), seq) for queue, tenant, priority, seq in message.lanes)
    elif message.changed:
        hub.publish_change()
    else:
        hub.publish_unknown(message.queues or None)


class Notifier:
    """Sends coalesced notifications of ready jobs to other processes."""

    def __init__(self, sender: int, send: Send) -> None:
        self._sender = sender
        self._send = send
        self._ready_lanes: list[LaneReady] = []
        self._changed = False
        self._task: asyncio.Task[None] | None = None

    def notify(self, ready_lanes: Iterable[LaneReady], *, changed: bool = False) -> None:
        """Schedule a notification; does not wait."""
        self._ready_lanes.extend(ready_lanes)
        self._changed = self._changed or changed
        if self._task is None and (self._ready_lanes or self._changed):
            self._task = tasks.start(self._send_all(), name="holdfast notifier")

    async def _send_all(self) -> None:
        try:
            while self._ready_lanes or self._changed:
                ready_lanes, self._ready_lanes, self._changed = self._ready_lanes, [], False
                with contextlib.suppress(HoldfastError):
                    await self._send(encode(self._sender, ready_lanes))
                await asyncio.sleep(SEND_INTERVAL_S)
        finally:
            self._task = None

    async def aclose(self) -> None:
        """Send the pending notifications and stop."""
        if self._task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
