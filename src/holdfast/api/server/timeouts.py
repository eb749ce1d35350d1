"""Time and size limits of a connection, and the timers that enforce them."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple


class ServerLimits(NamedTuple):
    """Time limits (seconds) and size limits for clients."""

    head: float = 10
    body: float = 30
    answer: float = 30
    """Maximum time without the client reading any of its response."""
    idle: float = 75
    head_size: int = 16_384
    headers: int = 100
    connections: int = 2_000
    """Above this, requests get 503; above twice this, connections are dropped."""


DEFAULT_LIMITS = ServerLimits()


class Deadline:
    """One-shot timer that is cheap to reset: it moves the event-loop timer only when necessary."""

    __slots__ = ("_due", "_loop", "_ring", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._ring = ring
        self._due: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        """Fire after this many seconds, replacing any earlier deadline."""
        self._due = due = self._loop.time() + seconds
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._look)

    def lift(self) -> None:
        """Cancel the deadline."""
        self._due = None

    def close(self) -> None:
        """Cancel the deadline and release the event-loop timer."""
        self._due = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        if self._due is None:
            return
        if self._loop.time() < self._due:
            self._timer = self._loop.call_at(self._due, self._look)
        else:
            self._due = None
            self._ring()


class ReadWatchdog:
    """Aborts a client that reads nothing for a whole interval; slow readers are allowed."""

    __slots__ = ("_loop", "_seconds", "_timer", "_transport")

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport, seconds: float) -> None:
        self._loop = loop
        self._transport = transport
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None

    def watch(self) -> None:
        """Check periodically while output is buffered."""
        if self._timer is None and (left := self._transport.get_write_buffer_size()):
            self._timer = self._loop.call_later(self._seconds, self._look, left)

    def stop(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, before: int) -> None:
        self._timer = None
        if self._transport.get_write_buffer_size() >= before:
            self._transport.abort()
        else:
            self.watch()
