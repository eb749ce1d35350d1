"""Thread that owns a connection, so that calls to SQLite never block the event loop."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar

import apsw

from holdfast.errors import Unavailable

T = TypeVar("T")


class ConnectionThread:
    """Runs calls in order on a connection that no other thread uses."""

    def __init__(self, connection: apsw.Connection, name: str) -> None:
        self._connection = connection
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._open = True
        self._busy = False
        self._process = os.getpid()
        # A daemon: the interpreter does not wait for it, and uncommitted work is rolled back.
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    @property
    def in_owner_process(self) -> bool:
        """False in a forked child, which must not touch the connections of its parent."""
        return self._process == os.getpid()

    @property
    def busy(self) -> bool:
        """True while a call runs."""
        return self._busy

    async def call(self, work: Callable[[apsw.Connection], T], *, after: Callable[[], None] | None = None) -> T:
        """Run `work` on the thread and return its result.

        The work runs to its end even if the caller is cancelled. `after` is called on the event loop if the work
        succeeded, even if the caller no longer waits.
        """
        if not self.in_owner_process:
            raise RuntimeError("this store was opened before the process forked: open another one in the child")
        if not self._open:
            raise Unavailable("the store is closed: open another one")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def succeed(result: T) -> None:
            if after is not None:
                after()
            if not future.done():
                future.set_result(result)

        def fail(error: BaseException) -> None:
            if not future.done():
                future.set_exception(error)

        def run() -> None:
            with contextlib.suppress(RuntimeError):  # the event loop is closed, so that no task waits
                try:
                    result = work(self._connection)
                except BaseException as error:  # noqa: BLE001 - raised where it is awaited
                    loop.call_soon_threadsafe(fail, error)
                else:
                    loop.call_soon_threadsafe(succeed, result)

        self._calls.put(run)
        return await future

    async def aclose(self) -> None:
        """Run the pending calls, then close the connection and end the thread."""
        if self._open:
            self._open = False
            self._calls.put(None)
        await asyncio.to_thread(self._thread.join)

    def _serve(self) -> None:
        while (run := self._calls.get()) is not None:
            self._busy = True
            run()
            self._busy = False
        self._connection.close()
