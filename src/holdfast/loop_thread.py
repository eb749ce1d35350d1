"""Event loop on a background thread, for synchronous callers of asynchronous code."""

import asyncio
import atexit
import concurrent.futures.thread  # import before registering: exit hooks run in reverse order
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from holdfast.errors import Unavailable

T = TypeVar("T")

_STOP_TIMEOUT_S = 10.0
"""Wait of `stop` for the thread, so that a hanging connection cannot block program exit."""


_threads: "weakref.WeakSet[LoopThread]" = weakref.WeakSet()


class LoopThread:
    """Event loop on a daemon thread. Starts at once; `stop` closes what the coroutines opened.

    Args:
        cleanup: Called on the loop by `stop`, before the remaining tasks are cancelled.
    """

    def __init__(self, cleanup: Callable[[], Awaitable[None]]) -> None:
        self._cleanup = cleanup
        self._started: concurrent.futures.Future[asyncio.AbstractEventLoop] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._serve, name="holdfast", daemon=True)
        self._thread.start()
        self._loop = self._started.result()
        self._pid = os.getpid()
        _threads.add(self)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and block until it returns. Thread-safe.

        Raises:
            Unavailable: The thread was stopped before the coroutine returned.
        """
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:
            coroutine.close()
            raise _stopped() from None
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise _stopped() from None
        except BaseException:  # for example KeyboardInterrupt: no caller waits for the result
            future.cancel()
            raise

    def stop(self, *, wait: bool = True) -> None:
        """Run the cleanup, cancel the remaining tasks and wait for the thread to end.

        Program exit stops every thread.
        """
        if self._pid != os.getpid():  # in a forked child: the thread exists only in the parent
            return
        with suppress(RuntimeError):  # it has already ended
            self._loop.call_soon_threadsafe(self._stop.set)
        if wait:
            self._thread.join(_STOP_TIMEOUT_S)

    def _serve(self) -> None:
        # Not asyncio.Runner: it starts a thread to shut down the executor, which fails during program exit.
        loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(self._until_stopped())
        finally:
            loop.close()

    async def _until_stopped(self) -> None:
        self._stop = asyncio.Event()
        self._started.set_result(asyncio.get_running_loop())
        await self._stop.wait()
        try:
            await self._cleanup()
        finally:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await asyncio.get_running_loop().shutdown_asyncgens()


def _stop_all() -> None:
    for thread in list(_threads):
        thread.stop()


# Not atexit, which runs after the executors of the standard library were shut down.
getattr(threading, "_register_atexit", atexit.register)(_stop_all)


def _stopped() -> Unavailable:
    return Unavailable("the application was closed during the call: it may or may not have taken effect")
