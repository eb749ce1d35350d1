"""One connection to Redis that many share: commands go out as they come, and answers come in the same order."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import hiredis
from redis.asyncio.connection import ConnectionPool, SSLConnection, UnixDomainSocketConnection
from redis.exceptions import RedisError

from holdfast.errors import Misconfigured

DEADLINE = 0.025
"""Seconds within which an answer must come. One that does not is not waited for, and neither is any other after it."""

CONNECT_WITHIN = 1.0
"""Seconds that connecting may take. Nobody waits for it."""

_LOOP_WAS_BUSY = 0.005
"""Seconds that a timer may be late before it is this process that was slow, rather than Redis."""

_ONCE_MORE = 0.001
"""Seconds until an answer is looked for again that may be here and not read yet: what is here is read before."""

Argument = str | bytes | int
Pushed = Callable[[bytes], None]


class Away(Exception):
    """Redis does not answer, or not with what was asked for: ask the database."""


class Address(NamedTuple):
    """Where a Redis is and how it lets us in."""

    place: dict[str, Any]
    """For the event loop: `host` and `port`, or `path`; `ssl`."""
    greeting: Sequence[tuple[Argument, ...]]
    """What must be said first."""


def read_url(url: str) -> Address:
    """The address in a URL; `Misconfigured` when it is none."""
    try:
        asked = ConnectionPool.from_url(url).make_connection()  # type: ignore[no-untyped-call]
    except (ValueError, TypeError, AttributeError, RedisError, OSError) as error:
        raise Misconfigured(f"HOLDFAST_REDIS_URL: {error}: use redis://user:password@host:6379/0") from error
    place: dict[str, Any]
    if isinstance(asked, UnixDomainSocketConnection):
        place = {"path": asked.path}
    else:
        place = {"host": asked.host, "port": asked.port}
    if isinstance(asked, SSLConnection):
        place |= {"ssl": asked.ssl_context.get()}
    greeting: list[tuple[Argument, ...]] = []
    if asked.password is not None:
        greeting.append(("AUTH", *([asked.username] if asked.username else []), asked.password))
    if int(asked.db):
        greeting.append(("SELECT", int(asked.db)))
    return Address(place, greeting)


class Wire(asyncio.Protocol):
    """One connection. It is lost as a whole: by whatever breaks it, or when one answer is overdue."""

    def __init__(self, *, deadline: float, pushed: Pushed | None = None) -> None:
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Done, with the reason, when it is of no use any more."""
        self._deadline = deadline
        self._pushed = pushed
        self._loop = asyncio.get_running_loop()
        self._replies = hiredis.Reader()
        self._waiting: deque[tuple[float, asyncio.Future[Any] | None]] = deque()
        self._unsent: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._given_time: tuple[float, asyncio.Future[Any] | None] | None = None
        """Whose answer was looked for once more, because the loop came late."""

    def send(self, *command: Argument, answer: asyncio.Future[Any] | None = None) -> None:
        """Send a command. Its answer goes to `answer`, if somebody is to have it; an error of the server is a value."""
        if self._transport is None or self.lost.done():
            raise Away("there is no connection")
        if not self._unsent:  # what is sent in one turn of the loop leaves together
            self._loop.call_soon(self._flush)
        self._unsent.append(hiredis.pack_command(command))  # type: ignore[arg-type]
        self._waiting.append((time.monotonic(), answer))
        if self._timer is None:
            self._timer = self._loop.call_later(self._deadline, self._look)

    async def ask(self, *command: Argument) -> Any:
        """Send a command; what the server says to it. Raises `Away` when it says nothing in time, or an error."""
        answer: asyncio.Future[Any] = self._loop.create_future()
        self.send(*command, answer=answer)
        reply = await answer
        if isinstance(reply, hiredis.ReplyError):
            raise Away(str(reply))
        return reply

    def expect(self, deadline: float) -> None:
        """From now on an answer must come within this."""
        self._deadline = deadline
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._look()

    def beat_every(self, seconds: float) -> None:
        """Ask for a sign of life now and then: one that says nothing is lost."""
        if not self.lost.done():
            self.send("PING")
            self._loop.call_later(seconds, self.beat_every, seconds)

    def close(self, why: str) -> None:
        """Use it no more; whoever waits is told."""
        if not self.lost.done():
            self.lost.set_result(why)
        if self._transport is not None:
            self._transport.abort()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            _, answer = self._waiting.popleft()
            if answer is not None and not answer.done():
                answer.set_exception(Away(why))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self.close(f"the connection was lost ({exc})" if exc else "the connection was closed")

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        try:
            self._replies.feed(data)
            while (reply := self._replies.gets()) is not False:
                self._take(reply)
        except (hiredis.HiredisError, IndexError) as error:
            self.close(f"what it said makes no sense ({error})")

    def _flush(self) -> None:
        if self._transport is not None and not self.lost.done():
            self._transport.write(b"".join(self._unsent))
        self._unsent.clear()

    def _take(self, reply: Any) -> None:
        if self._pushed is not None and isinstance(reply, list) and reply[0] == b"message":
            self._pushed(reply[2])
            return
        _, answer = self._waiting.popleft()
        if answer is not None and not answer.done():
            answer.set_result(reply)

    def _look(self) -> None:
        """Whether an answer is overdue."""
        self._timer = None
        if not self._waiting:
            return
        now = time.monotonic()
        due = self._waiting[0][0] + self._deadline
        if now < due:
            self._timer = self._loop.call_later(due - now, self._look)
        elif now - due > _LOOP_WAS_BUSY and self._waiting[0] is not self._given_time:
            # The answer may be here and not read yet: once more, after that. Only once, however busy the loop is: what
            # did not come by then is overdue.
            self._given_time = self._waiting[0]
            self._timer = self._loop.call_later(_ONCE_MORE, self._look)
        else:
            self.close(f"no answer within {self._deadline * 1_000:.0f} ms")


async def connect(address: Address, *, deadline: float = DEADLINE, pushed: Pushed | None = None) -> Wire:
    """A connection that was let in and answers quickly enough; raises `Away`."""
    loop = asyncio.get_running_loop()
    wire: Wire | None = None
    try:
        async with asyncio.timeout(CONNECT_WITHIN):
            opening = loop.create_unix_connection if "path" in address.place else loop.create_connection
            _, wire = await opening(lambda: Wire(deadline=CONNECT_WITHIN, pushed=pushed), **address.place)
            for command in address.greeting:
                await wire.ask(*command)
            began = time.monotonic()
            await wire.ask("PING")
            took = time.monotonic() - began
    except (OSError, TimeoutError, Away) as error:
        if wire is not None:
            wire.close("it could not be used")
        raise Away(str(error) or f"it could not be reached within {CONNECT_WITHIN:g} s") from error
    except BaseException:
        if wire is not None:
            wire.close("connecting was given up")
        raise
    if took > deadline:
        wire.close("it is too slow")
        raise Away(f"it took {took * 1_000:.0f} ms to answer, and {deadline * 1_000:.0f} ms are allowed")
    wire.expect(deadline)
    return wire
