"""Reconnecting Redis connection that delays a caller at most until the deadline.

One late response ends the connection for all callers. A background task reconnects with growing delays, and the
connection is used again only after Redis has responded within the deadline. A Redis that is down, frozen, slow or
not a Redis costs the requests in flight one deadline, and later requests nothing.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any

from holdfast import tasks
from holdfast.coordination.redis_protocol import (
    RESPONSE_TIMEOUT_S,
    Argument,
    PipelinedConnection,
    RedisAddress,
    RedisUnavailable,
    connect,
    parse_url,
)
from holdfast.telemetry.emit import Emit, log_event
from holdfast.telemetry.events import RedisChanged

_MIN_RECONNECT_DELAY_S, _MAX_RECONNECT_DELAY_S = 0.1, 2.0


class Script:
    """Lua script of this package, which the server caches by its digest."""

    def __init__(self, name: str) -> None:
        self.text = files("holdfast.coordination").joinpath(f"{name}.lua").read_text()
        self.digest = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()


class RedisConnection:
    """Reconnecting connection for commands. Belongs to one event loop.

    Args:
        url: `redis://`, `rediss://` or `unix://` URL.
        scripts: Scripts to load after connecting.
        timeout: Seconds within which every response must arrive.
        emit: Sink of `RedisChanged` events.
    """

    def __init__(
        self,
        url: str,
        scripts: Sequence[Script] = (),
        *,
        timeout: float = RESPONSE_TIMEOUT_S,
        emit: Emit = log_event,
    ) -> None:
        self.address: RedisAddress = parse_url(url)
        self.lookups: Counter[tuple[str, str]] = Counter()
        """Number of lookups by purpose and result: `hit`, `miss` or `away`."""
        self.losses = 0
        """Number of times that Redis became unavailable, including at the start."""
        self.on_change: list[Callable[[], None]] = []
        """Called when Redis becomes available or unavailable."""
        self._timeout = timeout
        self._scripts = scripts
        self._emit = emit
        self._current: PipelinedConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._reported: bool | None = None
        self._first_try = asyncio.Event()

    @property
    def up(self) -> bool:
        """True while connected."""
        return self._current is not None

    async def start(self) -> None:
        """Connect; return after the first try, or earlier if it takes long."""
        self._task = tasks.start(keep_connected(self._connect, self._on_loss), name="holdfast redis connection")
        with suppress(TimeoutError):
            await asyncio.wait_for(self._first_try.wait(), 4 * self._timeout)

    async def query(self, *command: Argument) -> Any:
        """Return the response to a command; raises `RedisUnavailable`, at once while disconnected."""
        if self._current is None:
            raise RedisUnavailable("not connected")
        return await self._current.query(*command)

    async def run(self, script: Script, key: str, *arguments: Argument) -> Any:
        """Run a script and return its result; raises `RedisUnavailable`."""
        try:
            return await self.query("EVALSHA", script.digest, 1, key, *arguments)
        except RedisUnavailable as error:
            if str(error).startswith("NOSCRIPT") and self._current is not None:
                self._current.close("the server has lost our scripts")  # reconnecting loads them again
            raise

    def send(self, *command: Argument) -> None:
        """Send a command without waiting for its response. Dropped while disconnected."""
        if self._current is not None:
            with suppress(RedisUnavailable):
                self._current.send(*command)

    async def aclose(self) -> None:
        """Close the connection; commands passed to `send` have been written."""
        await tasks.stop(self._task)

    async def _connect(self) -> PipelinedConnection:
        connection = await connect(self.address, timeout=self._timeout)
        for script in self._scripts:
            await connection.query("SCRIPT", "LOAD", script.text)
        self._current = connection
        self._report(up=True, reason="")
        return connection

    def _on_loss(self, reason: str) -> None:
        self._current = None
        self._report(up=False, reason=reason)

    def _report(self, *, up: bool, reason: str) -> None:
        self._first_try.set()
        if up is self._reported:
            return
        self.losses += not up
        self._reported = up
        self._emit(RedisChanged(up, reason))
        for callback in self.on_change:
            callback()


async def keep_connected(
    open_connection: Callable[[], Awaitable[PipelinedConnection]], on_loss: Callable[[str], None]
) -> None:
    """Connect and reconnect until cancelled; call `on_loss` after every loss and failed try."""
    delay = _MIN_RECONNECT_DELAY_S
    loop = asyncio.get_running_loop()
    while True:
        connection: PipelinedConnection | None = None
        began = loop.time()
        try:
            connection = await open_connection()
            reason = await asyncio.shield(connection.lost)
        except RedisUnavailable as error:
            reason = str(error)
        finally:
            if connection is not None:
                connection.close("this process closed it")
        on_loss(reason)
        # Delays grow for a connection that is lost soon after it was opened, because each try may cost requests a
        # deadline.
        lasted = loop.time() - began > 10 * _MAX_RECONNECT_DELAY_S
        delay = _MIN_RECONNECT_DELAY_S if lasted else min(2 * delay, _MAX_RECONNECT_DELAY_S)
        await asyncio.sleep(delay)
