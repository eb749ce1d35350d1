"""Wake-ups between processes by LISTEN and NOTIFY: sent at most once in a while, heard on one connection.

A lost notification loses nothing but time: whoever waits also looks for himself now and then.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable

import asyncpg
import msgspec

from holdfast.errors import HoldfastError
from holdfast.model.lane import Lane, News
from holdfast.store.wakeup import Hub, Probe, always

CHANNEL = "holdfast"
SEND_EVERY = 0.01
"""Seconds between two notifications of one process: a NOTIFY at every insert would serialise all commits."""

LARGEST = 7_000
"""Bytes of a notification; the server takes 8,000."""

_MOST_LANES = 100
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0

Send = Callable[[str], Awaitable[None]]
Connect = Callable[[], Awaitable[asyncpg.Connection]]


class Message(msgspec.Struct, frozen=True, array_like=True):
    """Lanes with news; or queues, where the lanes are too many to name."""

    sender: int
    lanes: list[tuple[str, str, int, int]]
    queues: list[str]


_DECODE = msgspec.json.Decoder(Message).decode


def encode(sender: int, news: Iterable[News]) -> str:
    """A notification, however much there is to tell."""
    earliest: dict[Lane, int] = {}
    for lane, seq in news:
        earliest[lane] = min(seq, earliest.get(lane, seq))
    if len(earliest) <= _MOST_LANES:
        text = msgspec.json.encode(Message(sender, [(*lane, seq) for lane, seq in earliest.items()], []))
        if len(text) <= LARGEST:
            return text.decode()
    queues = sorted({lane.queue for lane in earliest})
    text = msgspec.json.encode(Message(sender, [], queues))
    return text.decode() if len(text) <= LARGEST else msgspec.json.encode(Message(sender, [], [])).decode()


class Notifier:
    """Tells other processes what became ready, coalesced."""

    def __init__(self, sender: int, send: Send) -> None:
        self._sender = sender
        self._send = send
        self._news: list[News] = []
        self._task: asyncio.Task[None] | None = None

    def tell(self, news: Iterable[News]) -> None:
        """Send these soon; does not wait."""
        self._news.extend(news)
        if self._task is None and self._news:
            self._task = asyncio.create_task(self._send_all())

    async def _send_all(self) -> None:
        try:
            while self._news:
                news, self._news = self._news, []
                with contextlib.suppress(HoldfastError):
                    await self._send(encode(self._sender, news))
                await asyncio.sleep(SEND_EVERY)
        finally:
            self._task = None

    async def aclose(self) -> None:
        """Send what is left."""
        if self._task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._task


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
        try:
            message = _DECODE(str(payload))
        except msgspec.DecodeError:
            self._hub.publish_unknown()
            return
        if message.sender == self._own:
            return
        if message.lanes:
            self._hub.publish(
                News(Lane(queue, tenant, priority), seq) for queue, tenant, priority, seq in message.lanes
            )
        else:
            self._hub.publish_unknown(message.queues or None)
