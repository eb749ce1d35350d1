"""Timeouts and size limits of a connection, and the timers that enforce them."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple


class ServerLimits(NamedTuple):
    """Timeouts and size limits for clients."""

    head_timeout_s: float = 10
    """Time for the complete head to arrive, and for a TLS handshake."""
    body_timeout_s: float = 30
    """Time for the complete body to arrive."""
    stalled_read_timeout_s: float = 30
    """Time in which the client must read at least part of the pending output."""
    idle_timeout_s: float = 75
    """Time that a connection may be idle between two requests."""
    max_head_bytes: int = 16_384
    max_headers: int = 100
    max_connections: int = 2_000
    """Above this number, idle connections close; if none is idle, requests get 503."""
    max_unsent_bytes: int = 16 * 1024 * 1024
    """Output that the clients of one caller have not read; above, the slowest is disconnected."""
    max_node_unsent_bytes: int = 64 * 1024 * 1024
    """Output that all clients together have not read."""


DEFAULT_LIMITS = ServerLimits()


class Deadline:
    """Timer that is cheap to reset: it reschedules the event-loop timer only when necessary."""

    __slots__ = ("_callback", "_due", "_loop", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
        self._loop = loop
        self._callback = callback
        self._due: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        """Fire after this many seconds, replacing any earlier deadline."""
        self._due = due = self._loop.time() + seconds
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._fire)

    def cancel(self) -> None:
        """Cancel the deadline; the event-loop timer may still fire, and does nothing then."""
        self._due = None

    def close(self) -> None:
        """Cancel the deadline for good; release the event-loop timer and the callback."""
        self._due = None
        self._callback = _nothing
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        if self._due is None:
            return
        if self._loop.time() < self._due:
            self._timer = self._loop.call_at(self._due, self._fire)
        else:
            self._due = None
            self._callback()


def _nothing() -> None:
    """Do nothing."""


class ReadWatchdog:
    """Abort a connection whose client reads nothing for a whole interval; slow readers may stay."""

    __slots__ = ("_loop", "_seconds", "_timer", "_transport")

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport, seconds: float) -> None:
        self._loop = loop
        self._transport = transport
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None

    def watch(self) -> None:
        """Check periodically while output is buffered."""
        if self._timer is None and (pending := self._transport.get_write_buffer_size()):
            self._timer = self._loop.call_later(self._seconds, self._check, pending)

    def stop(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self, before: int) -> None:
        self._timer = None
        if self._transport.get_write_buffer_size() >= before:
            self._transport.abort()
        else:
            self.watch()
