"""Synchronous face of `Sender`, for `Client`."""

import os
import threading
import weakref
from collections.abc import AsyncGenerator, Generator
from typing import Any

from holdfast.loop_thread import LoopThread
from holdfast.sdk.models import Event
from holdfast.sdk.responses import Response
from holdfast.sdk.sender import Sender
from holdfast.sdk.sse import EventParser
from holdfast.sdk.worker_requests import Request


class SyncSender:
    """Sends requests through a `Sender` on a background thread.

    Safe to use from many threads, and after a fork.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self._sender = Sender(*args, **options)
        self._lock = threading.Lock()
        self._threads: dict[int, LoopThread] = {}
        """Thread by process id: a forked child starts its own."""

    def send(self, request: Request, **options: Any) -> Response:
        """Return the response; see `Sender.send`."""
        return self._thread().run(self._sender.send(request, **options))

    def stream(self, request: Request, parser: EventParser, *, retry_timeout: float) -> Generator[Event]:
        """Yield events as they arrive; see `Sender.stream`."""
        thread = self._thread()
        events = self._sender.stream(request, parser, retry_timeout=retry_timeout)
        try:
            while (event := thread.run(_next(events))) is not None:
                yield event
        finally:
            thread.run(_close(events))

    def close(self) -> None:
        """Close all connections. The next call opens new ones."""
        with self._lock:
            thread = self._threads.pop(os.getpid(), None)
        if thread is not None:
            thread.stop()

    def _thread(self) -> LoopThread:
        thread = self._threads.get(os.getpid())
        if thread is None:
            with self._lock:
                thread = self._threads.get(os.getpid())
                if thread is None:
                    thread = self._threads[os.getpid()] = LoopThread(self._sender.aclose)
                    weakref.finalize(self, thread.stop, wait=False).atexit = False
        return thread


async def _next(events: AsyncGenerator[Event]) -> Event | None:
    return await anext(events, None)


async def _close(events: AsyncGenerator[Event]) -> None:
    await events.aclose()
