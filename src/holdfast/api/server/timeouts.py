"""How long a connection waits for its client, for what it is to send and what it is to read; and how much it takes."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple


class Limits(NamedTuple):
    """How long a client may take, in seconds, and how much it may send."""

    head: float = 10
    body: float = 30
    answer: float = 30
    """How long a client may read nothing of its answer."""
    idle: float = 75
    head_size: int = 16_384
    headers: int = 100
    connections: int = 2_000
    """More than these are told to come back; more than twice as many are not even told."""


DEFAULT_LIMITS = Limits()


class Deadline:
    """Rings once when the time is up. Setting it costs little: the timer is moved only where it would ring too late."""

    __slots__ = ("_due", "_loop", "_ring", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._ring = ring
        self._due: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        """Ring after so long, whatever was said before."""
        self._due = due = self._loop.time() + seconds
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._look)

    def lift(self) -> None:
        """Do not ring."""
        self._due = None

    def close(self) -> None:
        """Do not ring, and forget whom to ring for."""
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


class Reading:
    """Cuts a client that reads nothing of what it was sent for a while; however slow, it may go on while it reads."""

    __slots__ = ("_loop", "_seconds", "_timer", "_transport")

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport, seconds: float) -> None:
        self._loop = loop
        self._transport = transport
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None

    def watch(self) -> None:
        """Look from time to time, as long as there is something to be read."""
        if self._timer is None and (left := self._transport.get_write_buffer_size()):
            self._timer = self._loop.call_later(self._seconds, self._look, left)

    def stop(self) -> None:
        """There is no need to."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, before: int) -> None:
        self._timer = None
        if self._transport.get_write_buffer_size() >= before:
            self._transport.abort()
        else:
            self.watch()
