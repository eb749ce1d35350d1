"""A thread that owns a connection, so that no call of SQLite ever blocks the event loop."""

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
    """Does what it is asked for, one thing after the other, with a connection that nobody else uses."""

    def __init__(self, connection: apsw.Connection, name: str) -> None:
        self._connection = connection
        self._asked: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._open = True
        self._working = False
        self._process = os.getpid()
        # Not waited for when the interpreter ends: what is not committed by then never happened.
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    @property
    def of_this_process(self) -> bool:
        """False after a fork, in the child: its parent's connections must not be touched."""
        return self._process == os.getpid()

    @property
    def busy(self) -> bool:
        """Whether it is at work now."""
        return self._working

    async def call(self, work: Callable[[apsw.Connection], T], *, after: Callable[[], None] | None = None) -> T:
        """Run `work` on the thread; its result.

        Goes on to its end when the caller is cancelled. `after` is called on the event loop when `work` succeeded,
        whether or not anybody still waits.
        """
        if not self.of_this_process:
            raise RuntimeError("this store was opened before the process forked: open another one in the child")
        if not self._open:
            raise Unavailable("the store is closed: open another")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def succeed(result: T) -> None:
            if after is not None:
                after()
            if not answer.done():
                answer.set_result(result)

        def fail(error: BaseException) -> None:
            if not answer.done():
                answer.set_exception(error)

        def run() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                try:
                    result = work(self._connection)
                except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
                    loop.call_soon_threadsafe(fail, error)
                else:
                    loop.call_soon_threadsafe(succeed, result)

        self._asked.put(run)
        return await answer

    async def aclose(self) -> None:
        """Do what was asked for, then close the connection and end."""
        if self._open:
            self._open = False
            self._asked.put(None)
        await asyncio.to_thread(self._thread.join)

    def _serve(self) -> None:
        while (run := self._asked.get()) is not None:
            self._working = True
            run()
            self._working = False
        self._connection.close()
