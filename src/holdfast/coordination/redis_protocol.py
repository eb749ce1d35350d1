"""Pipelined Redis connection for concurrent callers, with one deadline for all."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import hiredis
from redis.asyncio.connection import ConnectionPool, SSLConnection, UnixDomainSocketConnection
from redis.exceptions import RedisError

from holdfast.errors import Misconfigured

RESPONSE_TIMEOUT_S = 0.025
"""A response that takes longer ends the connection, and all callers stop waiting."""

CONNECT_TIMEOUT_S = 1.0
"""Timeout of connecting, for which no caller waits."""

_BUSY_LOOP_S = 0.005
"""A timer that fires this late means that this process was busy, not that Redis was slow."""

_RECHECK_DELAY_S = 0.001
"""Delay that lets the loop read a response that has already arrived."""

Argument = str | bytes | int
OnMessage = Callable[[bytes], None]


class RedisUnavailable(Exception):
    """Redis did not respond in time, or responded with an error: use the database."""


class RedisAddress(NamedTuple):
    """Address of a Redis server and the commands that log in."""

    endpoint: dict[str, Any]
    """Arguments of the event loop's connect method: `host` and `port`, or `path`; `ssl`."""
    login: Sequence[tuple[Argument, ...]]


def parse_url(url: str) -> RedisAddress:
    """Return the address of a URL; raises `Misconfigured` if it is malformed."""
    try:
        parsed = ConnectionPool.from_url(url).make_connection()  # type: ignore[no-untyped-call]
    except (ValueError, TypeError, AttributeError, RedisError, OSError) as error:
        raise Misconfigured(f"HOLDFAST_REDIS_URL: {error}: use redis://user:password@host:6379/0") from error
    endpoint: dict[str, Any]
    if isinstance(parsed, UnixDomainSocketConnection):
        endpoint = {"path": parsed.path}
    else:
        endpoint = {"host": parsed.host, "port": parsed.port}
    if isinstance(parsed, SSLConnection):
        endpoint |= {"ssl": parsed.ssl_context.get()}
    login: list[tuple[Argument, ...]] = []
    if parsed.password is not None:
        login.append(("AUTH", *([parsed.username] if parsed.username else []), parsed.password))
    if int(parsed.db):
        login.append(("SELECT", int(parsed.db)))
    return RedisAddress(endpoint, login)


class PipelinedConnection(asyncio.Protocol):
    """Connection that sends commands at once and matches responses by order.

    The connection fails as a whole: by any error of the socket, and when one response is late.
    """

    def __init__(self, *, timeout: float, on_message: OnMessage | None = None) -> None:
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Completed with the reason when the connection is no longer usable."""
        self._timeout = timeout
        self._on_message = on_message
        self._loop = asyncio.get_running_loop()
        self._parser = hiredis.Reader()
        self._pending: deque[tuple[float, asyncio.Future[Any] | None]] = deque()
        """Send time of each command without a response, and the future that receives it."""
        self._unsent: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._rechecked: tuple[float, asyncio.Future[Any] | None] | None = None
        """Command that got the extra time of `_RECHECK_DELAY_S`."""

    def send(self, *command: Argument, response: asyncio.Future[Any] | None = None) -> None:
        """Send a command. `response` receives the reply; an error of the server is a value."""
        if self._transport is None or self.lost.done():
            raise RedisUnavailable("not connected")
        if not self._unsent:  # commands of one iteration of the loop are written together
            self._loop.call_soon(self._flush)
        self._unsent.append(hiredis.pack_command(command))  # type: ignore[arg-type]
        self._pending.append((time.monotonic(), response))
        if self._timer is None:
            self._timer = self._loop.call_later(self._timeout, self._check_deadline)

    async def query(self, *command: Argument) -> Any:
        """Send a command and return its response; raises `RedisUnavailable`."""
        response: asyncio.Future[Any] = self._loop.create_future()
        self.send(*command, response=response)
        reply = await response
        if isinstance(reply, hiredis.ReplyError):
            raise RedisUnavailable(str(reply))
        return reply

    def set_timeout(self, timeout: float) -> None:
        """Change the timeout, also for commands in flight."""
        self._timeout = timeout
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._check_deadline()

    def ping_periodically(self, interval: float) -> None:
        """Send PING at this interval, so that a silent server is noticed."""
        if not self.lost.done():
            self.send("PING")
            self._loop.call_later(interval, self.ping_periodically, interval)

    def close(self, reason: str) -> None:
        """Close the connection and fail all pending commands."""
        if not self.lost.done():
            self.lost.set_result(reason)
        if self._transport is not None:
            self._transport.abort()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._pending:
            _, response = self._pending.popleft()
            if response is not None and not response.done():
                response.set_exception(RedisUnavailable(reason))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.close(f"the connection was lost ({exc})" if exc else "the connection was closed")

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed(data)
            while (reply := self._parser.gets()) is not False:
                self._on_reply(reply)
        except (hiredis.HiredisError, IndexError) as error:
            self.close(f"the server does not speak the Redis protocol ({error})")

    def _flush(self) -> None:
        if self._transport is not None and not self.lost.done():
            self._transport.write(b"".join(self._unsent))
        self._unsent.clear()

    def _on_reply(self, reply: Any) -> None:
        if self._on_message is not None and isinstance(reply, list) and reply[0] == b"message":
            self._on_message(reply[2])
            return
        _, response = self._pending.popleft()
        if response is not None and not response.done():
            response.set_result(reply)

    def _check_deadline(self) -> None:
        """Close the connection if the oldest pending response is late."""
        self._timer = None
        if not self._pending:
            return
        now = time.monotonic()
        due = self._pending[0][0] + self._timeout
        if now < due:
            self._timer = self._loop.call_later(due - now, self._check_deadline)
        elif now - due > _BUSY_LOOP_S and self._pending[0] is not self._rechecked:
            # The loop was busy, so the response may have arrived without being read. Check again after the loop has
            # read, but only once per command, however busy the loop is.
            self._rechecked = self._pending[0]
            self._timer = self._loop.call_later(_RECHECK_DELAY_S, self._check_deadline)
        else:
            self.close(f"no response within {self._timeout * 1_000:.0f} ms")


async def connect(
    address: RedisAddress, *, timeout: float = RESPONSE_TIMEOUT_S, on_message: OnMessage | None = None
) -> PipelinedConnection:
    """Open a connection, log in and check its speed; raises `RedisUnavailable`."""
    loop = asyncio.get_running_loop()
    connection: PipelinedConnection | None = None
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            open_transport = loop.create_unix_connection if "path" in address.endpoint else loop.create_connection
            _, connection = await open_transport(
                lambda: PipelinedConnection(timeout=CONNECT_TIMEOUT_S, on_message=on_message), **address.endpoint
            )
            for command in address.login:
                await connection.query(*command)
            began = time.monotonic()
            await connection.query("PING")
            took = time.monotonic() - began
    except (OSError, TimeoutError, RedisUnavailable) as error:
        if connection is not None:
            connection.close("it could not be used")
        raise RedisUnavailable(str(error) or f"it could not be reached within {CONNECT_TIMEOUT_S:g} s") from error
    except BaseException:
        if connection is not None:
            connection.close("connecting was cancelled")
        raise
    if took > timeout:
        connection.close("it is too slow")
        raise RedisUnavailable(f"it took {took * 1_000:.0f} ms to respond; {timeout * 1_000:.0f} ms are allowed")
    connection.set_timeout(timeout)
    return connection
